"""Texts of questions, in groups that mean the same."""

HEAD = "SELECT article_id, COUNT(DISTINCT member_id) FROM engagement"
TAIL = "GROUP BY article_id LIMIT 5"
COUNTRIES = "SELECT country, COUNT(DISTINCT member_id) FROM engagement"
SCORES = "SELECT score, country, COUNT(DISTINCT member_id) FROM engagement"
WHERE = f"{HEAD} WHERE {{}} {TAIL}"


def _all(*conditions: str) -> list[str]:
    return [WHERE.format(each) for each in conditions]


# Each row is spellings of one meaning; between rows the meaning differs.
MEANINGS = [
    # Joined by OR: order, repetition and NOT say nothing, and what is on one column is one set.
    _all(
        "active OR article_id = 'x'",
        "article_id = 'x' OR active = TRUE OR (active)",
        "NOT (NOT active AND article_id <> 'x')",
        "(active OR article_id IN ('x', 'x')) AND (article_id = 'x' OR active <> FALSE)",
        "article_id = 'x' OR (score > 3 AND score < 2) OR active",
    ),
    _all("active OR article_id = 'y'"),
    _all(
        "article_id IN ('x', 'yz')",
        "article_id = ANY(ARRAY['yz', 'x'])",
        "article_id = 'x' OR article_id = 'y' || 'z'",
    ),
    _all("score NOT IN (1, 2)", "NOT score = ANY(ARRAY[1, 2])"),
    _all("NOT active OR article_id = 'x'", "NOT (active AND article_id <> 'x')"),
    _all(
        "active AND article_id = 'x'",
        "(active AND article_id = 'x') OR (article_id = 'x' AND active)",
        "NOT (NOT active OR article_id <> 'x')",
    ),
    _all("NOT (active OR article_id = 'x')", "NOT active AND article_id <> 'x'"),
    _all("active OR article_id = 'x' AND score > 1", "active OR (score > 1 AND article_id = 'x')"),
    _all("(active OR article_id = 'x') AND score > 1", "score >= 2 AND (article_id = 'x' OR active)"),
    _all(
        "score < -5 OR score > 1000000",
        "NOT score BETWEEN -5 AND 1000000",
        "score NOT BETWEEN -5 AND 1000000",
        "score >= 1000001 OR NOT score > -6",
    ),
    _all(
        "day < '2019-01-01' OR day >= '2019-02-01'",
        "NOT (day BETWEEN '2019-01-01' AND '2019-01-31')",
    ),
    _all("day < '2019-01-01' OR active"),
    # Patterns.
    _all(
        "article_id LIKE 'a%'",
        "article_id LIKE 'a%%' AND article_id <> 'null'",
        "NOT (article_id NOT LIKE 'a%')",
        "article_id LIKE 'a%' AND article_id LIKE 'a%' AND article_id IS NOT NULL",
    ),
    _all("article_id ILIKE 'a%'", "article_id ILIKE 'A%'"),
    _all("article_id LIKE 'A%'"),
    _all("article_id NOT LIKE 'a%'", "NOT article_id LIKE 'a%'"),
    _all("article_id LIKE 'a_%'", "article_id LIKE 'a%_'", "article_id LIKE 'a%_%'"),
    _all("article_id LIKE '1%'", "article_id ILIKE '1%'"),
    _all("article_id LIKE 'a'", "article_id = 'a'"),
    _all("article_id ILIKE 'a'"),
    _all("article_id = ''", "article_id ILIKE ''"),
    # NULL that is kept is the column's null value; where it is left out, IS NOT NULL is no condition.
    _all("title IS NOT NULL", "title <> ''"),
    _all("title IS NOT NULL OR active", "active OR title NOT LIKE ''"),
    # Of a known domain only its elements are asked for, whatever else a condition lets through.
    [
        f"{COUNTRIES} GROUP BY country",
        f"{COUNTRIES} WHERE country IN ('FR', 'AT', 'DE') GROUP BY country",
        f"{COUNTRIES} WHERE country <> 'US' GROUP BY country",
    ],
    [
        f"{COUNTRIES} WHERE country <> 'FR' GROUP BY country",
        f"{COUNTRIES} WHERE country NOT LIKE '%r' AND country NOT LIKE 'F_' GROUP BY country",
        f"{COUNTRIES} WHERE country LIKE 'D%' OR country = 'AT' GROUP BY country",
        f"{COUNTRIES} WHERE country IN ('DE', 'AT') AND country <> 'US' GROUP BY country",
    ],
    [
        f"{SCORES} GROUP BY score, country LIMIT 3",
        f"{SCORES} WHERE score BETWEEN -1 AND 1 GROUP BY score, country LIMIT 3",
        f"{SCORES} WHERE score >= -7 AND country <> 'US' GROUP BY score, country LIMIT 3",
        f"{SCORES} WHERE score <> 2 GROUP BY score, country LIMIT 3",
    ],
    # A column is held to its domain whatever is known of the others.
    [
        f"{HEAD.replace('article_id', 'country, article_id')} GROUP BY country, article_id LIMIT 5",
        f"{HEAD.replace('article_id', 'country, article_id')} WHERE country IN ('FR', 'AT', 'DE') "
        "GROUP BY country, article_id LIMIT 5",
    ],
    [
        *_all("article_id IS NOT NULL", "article_id LIKE '%'"),
        f"{HEAD} {TAIL}",
        f"{HEAD} AS n {TAIL}".replace("FROM engagement AS n", "AS n FROM engagement"),
    ],
    [
        f"{HEAD} WHERE score BETWEEN 1 AND 3 {TAIL}",
        f"{HEAD} WHERE score >= 1 AND score <= 3 {TAIL}",
        f"{HEAD} WHERE 1 = 1 AND score > 0 AND score < 4 {TAIL}".replace("1 = 1 AND ", ""),
        f"{HEAD} WHERE score IN (3, 2, 1, 2) {TAIL}",
        f"{HEAD} WHERE ((score <= 3)) AND (score NOT IN (0) AND (score >= 0)) {TAIL}",
        f"{HEAD} where score between 1 and 3 and score <> 7 group by article_id limit 9",
    ],
    [f"{HEAD} WHERE score BETWEEN 1 AND 4 {TAIL}"],
    [f"{HEAD} WHERE score >= 1 {TAIL}", f"{HEAD} WHERE score > 0 AND score <= 9223372036854775807 {TAIL}"],
    [
        f"{HEAD} WHERE country IN ('DE', 'FR') AND article_id <> 'x' {TAIL}",
        f"{HEAD} WHERE 'x' <> 'y' AND article_id <> 'x' AND country IN ('FR','DE','FR') {TAIL}".replace(
            "'x' <> 'y' AND ", ""
        ),
        f"{HEAD} WHERE country IN ('FR', 'AT', 'DE') AND country <> 'AT' AND NOT (article_id IN ('x')) {TAIL}",
        f"{HEAD} WHERE country IN ('FR', 'DE', 'null') AND article_id NOT IN ('null', 'x') {TAIL}",
    ],
    [f"{HEAD} WHERE country IN ('DE') AND article_id <> 'x' {TAIL}"],
    [f"{HEAD} WHERE country NOT IN ('DE') AND article_id <> 'x' {TAIL}"],
    [f"{HEAD} WHERE country IN ('AT', 'de') AND article_id <> 'x' {TAIL}"],
    [
        f"{HEAD} WHERE active = TRUE {TAIL}",
        f"{HEAD} WHERE active <> FALSE {TAIL}",
        f"{HEAD} WHERE active IN (TRUE) {TAIL}",
    ],
    [f"{HEAD} WHERE active = FALSE {TAIL}"],
    [
        f"{HEAD} WHERE day >= '2019-01-01' AND day < '2019-02-01' {TAIL}",
        f"{HEAD} WHERE day BETWEEN DATE '2019-01-01' AND DATE '2019-01-31' {TAIL}",
    ],
    [
        f"{HEAD} WHERE day = '2019-01-01' {TAIL}",
        f"{HEAD} WHERE day BETWEEN '2019-01-01' AND '2019-01-01' {TAIL}",
    ],
    [f"{HEAD} {TAIL}".replace("DISTINCT member_id", "*")],
    ["SELECT article_id, country, COUNT(*) FROM engagement GROUP BY article_id, country LIMIT 5"],
    [
        "SELECT country, article_id, COUNT(*) FROM engagement GROUP BY country, article_id LIMIT 5",
        "SELECT country, article_id FROM engagement GROUP BY article_id, country ORDER BY COUNT(*) DESC LIMIT 7",
    ],
    [
        "SELECT EXTRACT(ISODOW FROM day), COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "SELECT date_part('isodow', engagement.day) AS weekday, COUNT(DISTINCT member_id) FROM engagement "
        "GROUP BY weekday ORDER BY COUNT(DISTINCT member_id) DESC",
    ],
    [
        "SELECT EXTRACT(MONTH FROM day) AS m, country, COUNT(*) FROM engagement GROUP BY m, country",
        "SELECT MONTH(day), country, COUNT(*) FROM engagement GROUP BY 1, country",
    ],
    [
        "SELECT country, COUNT(*) FROM engagement WHERE EXTRACT(MONTH FROM day) BETWEEN 3 AND 5 GROUP BY country",
        "SELECT country, COUNT(*) FROM engagement WHERE MONTH(day) >= 3 AND NOT 6 <= MONTH(day) GROUP BY country",
        "SELECT country, COUNT(*) FROM engagement WHERE MONTH(day) IN (5, 3) OR MONTH(day) = 4 GROUP BY country",
    ],
    [
        "SELECT country, COUNT(*) FROM engagement WHERE DATE_TRUNC('month', day) = '2019-03-01' GROUP BY country",
        "SELECT country, COUNT(*) FROM engagement WHERE day >= '2019-03-01' AND day < '2019-04-01' GROUP BY country",
        "SELECT country, COUNT(*) FROM engagement WHERE CAST(DATE_TRUNC('quarter', day) AS DATE) IN ('2019-01-01') "
        "AND DATE_TRUNC('month', day) > '2019-02-11' GROUP BY country",
    ],
    ["SELECT EXTRACT(QUARTER FROM day) AS q, country, COUNT(*) FROM engagement GROUP BY q, country"],
    [
        "SELECT LEFT(article_id, 2) AS head, COUNT(DISTINCT member_id) FROM engagement GROUP BY 1 LIMIT 3",
        "SELECT substring(article_id, 1, 2), COUNT(DISTINCT member_id) FROM engagement GROUP BY LEFT(article_id, 2) "
        "LIMIT 3",
    ],
    [
        "SELECT SPLIT_PART(article_id, 'a', 2) AS p, COUNT(DISTINCT member_id) FROM engagement GROUP BY p LIMIT 3",
    ],
    [
        "SELECT WIDTH_BUCKET(score, -1, 5, 2), COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "SELECT WIDTH_BUCKET(score, -1.5, 4.5, 2) AS b, COUNT(DISTINCT member_id) FROM engagement GROUP BY b",
    ],
]
