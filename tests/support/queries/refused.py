"""SQL that is refused, and what is said of it."""

from dp_service.queries.errors import Rule

HEAD = "SELECT article_id, COUNT(DISTINCT member_id) FROM engagement"
TAIL = "GROUP BY article_id ORDER BY 2 DESC LIMIT 5"
PLAIN = f"{HEAD} {TAIL}"


def where(condition: str) -> str:
    """Return a question with one condition."""
    return f"{HEAD} WHERE {condition} {TAIL}"


def _multiplied(names: int) -> str:
    """Return a statement in another one, each of which names the one column of the next so many times."""
    inner, outer = (" AND ".join([each] * names) for each in ("active", "a"))
    return "SELECT COUNT(*) FROM (SELECT (inner) AS a FROM engagement) x WHERE outer".replace(
        "inner", inner
    ).replace("outer", outer)


A_FUNCTION = (
    r"COUNT\(\*\) are, SUM and AVG of value columns, DATE_TRUNC of the time column, and no other function"
)
MALFORMED = {
    "empty": ("", "begins with SELECT"),
    "blank": (" \n", "begins with SELECT"),
    "distinct ones": ("SELECT SUM(DISTINCT 1) FROM engagement", "equal values"),
    "a named statement that nothing reads": (
        "WITH de AS (SELECT * FROM engagement WHERE country = 'DE') SELECT COUNT(*) FROM engagement",
        "line 1, column 6: a statement behind WITH that nothing reads",
    ),
    "casts in one another": (
        PLAIN.replace("article_id", f"{'CAST(' * 300}day{' AS DATE)' * 300}", 1),
        "more than 32 parentheses",
    ),
    "casts behind one another": (
        PLAIN.replace("article_id", f"DATE_TRUNC('day', day){'::DATE' * 5000}", 1),
        "more than 2 casts",
    ),
    "rows that have a number": (
        "SELECT COUNT(*) FROM (SELECT country FROM engagement HAVING COUNT(*) > 5) x",
        "HAVING without GROUP BY",
    ),
    "two inner columns of one name": (
        "SELECT COUNT(*) FROM (SELECT country AS a, article_id AS A FROM engagement) x WHERE a = 'DE'",
        "gives twice",
    ),
    "listed values by their counts": (
        "SELECT DISTINCT country FROM engagement GROUP BY country ORDER BY COUNT(*) DESC",
        "SELECT DISTINCT without a count",
    ),
    "listed values and totals": (
        "SELECT country, score FROM engagement GROUP BY GROUPING SETS ((country, score), (country))",
        "GROUPING SETS is not accepted: ask for totals",
    ),
    "listed values with a condition on several columns": (
        "SELECT DISTINCT country, score FROM engagement WHERE country = 'DE' OR score = 1",
        "SELECT DISTINCT without a count",
    ),
    "an alias beside a star that hides a column": (
        "SELECT COUNT(*) FROM (SELECT *, article_id AS Country FROM engagement) x WHERE country = 'DE'",
        "an alias beside",
    ),
    "statements in one another": (
        "SELECT COUNT(*) FROM (SELECT * FROM (SELECT * FROM engagement) x) y",
        "more than one statement inside of another",
    ),
    "a second named statement": (
        "WITH x AS (SELECT * FROM engagement), y AS (SELECT * FROM x) SELECT COUNT(*) FROM y",
        "more than one statement inside of another",
    ),
    "a subquery beside a named statement": (
        "WITH x AS (SELECT * FROM engagement) SELECT COUNT(*) FROM (SELECT * FROM x) y",
        "more than one statement inside of another",
    ),
    "names that multiply": (_multiplied(names=300), "repeat an expression so often"),
    "nothing selected": (
        "SELECT FROM engagement GROUP BY article_id LIMIT 5",
        "SELECT with columns and the count",
    ),
    "comma before the first column": (f"SELECT, {PLAIN[7:]}", "a comma that separates nothing"),
    "comma after the count": (PLAIN.replace(" FROM", ", FROM"), "a comma that separates nothing"),
    "two commas": (PLAIN.replace("article_id,", "article_id,,", 1), "a comma that separates nothing"),
    "comma at the end of a list": (
        where("article_id IN ('a',)"),
        "a comma that separates nothing",
    ),
    "comma at the end of the grouping": (
        PLAIN.replace("BY article_id ORDER", "BY article_id, ORDER"),
        "a comma that separates nothing",
    ),
    "SET before": (
        f"SET useMultistageEngine=true; {PLAIN}",
        "expected a statement that begins with SELECT, got SET",
    ),
    "SET after": (f"{PLAIN}; SET numGroupsLimit=1", "several statements"),
    "SET alone": ("SET numGroupsLimit=1", "begins with SELECT"),
    "EXPLAIN": (f"EXPLAIN ANALYZE {PLAIN}", "EXPLAIN SELECT"),
    "OPTION": (f"{PLAIN} OPTION(numGroupsLimit=1)", "OPTION"),
    "OPTION without parentheses": (f"{PLAIN} OPTION", "OPTION"),
    "nested comments": (f"SELECT /* /* x */ */ {PLAIN[7:]}", "a comment"),
    "slash comment": (f"{PLAIN} // x", "/ after a number"),
    "hash comment": (f"{PLAIN} # x", "a comment"),
    "template comment": (f"{PLAIN} {{# x #}}", "a template"),
    "several statements": (f"{PLAIN}; {PLAIN}", "several statements"),
    "two semicolons": (f"{PLAIN};;", "several statements"),
    "IN_SUBQUERY": (where("IN_SUBQUERY(article_id, 'SELECT 1') = 1"), r"IN_SUBQUERY\(\.\.\)"),
    "IN_PARTITIONED_SUBQUERY": (
        where("inPartitionedSubquery(article_id, 'x') = 1"),
        r"INPARTITIONEDSUBQUERY\(\.\.\)",
    ),
    "LOOKUP": (where("LOOKUP('t', 'c', 'k', member_id) = 'x'"), r"LOOKUP\(\.\.\)"),
    "LOOKUP after a line break": (where("LOOKUP\n('t', 'c', 'k', member_id) = 'x'"), r"LOOKUP\(\.\.\)"),
    "function hidden by underscores": (where("l_o_o_k_u_p('t', 'c', 'k', article_id) = 'x'"), A_FUNCTION),
    "quoted function": (where("\"lookup\"('t', 'c', 'k', article_id) = 'x'"), A_FUNCTION),
    "function over a dimension": (f"SELECT TRIM(article_id), {PLAIN[19:]}", r"TRIM\(\.\.\)"),
    "other aggregate": (PLAIN.replace("COUNT", "KURTOSIS"), r"KURTOSIS\(\.\.\)"),
    "largest of distinct members": (PLAIN.replace("COUNT", "MAX"), "DISTINCT in MAX"),
    "sum without a count": (PLAIN.replace("COUNT", "SUM"), r"SUM\(DISTINCT \.\.\)"),
    "approximate count of another column": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "DISTINCTCOUNTHLL(country)"),
        "of the table's member column",
    ),
    "exact count of another column": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "DISTINCTCOUNT(country)"),
        "of the table's member column",
    ),
    "approximate count with a precision": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "DISTINCTCOUNTHLL(member_id, 12)"),
        "an expression other than|of the table's member column",
    ),
    "standard approximate count with a precision": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "APPROX_COUNT_DISTINCT(member_id, 1)"),
        r"expected COUNT\(DISTINCT member_id\) of the table's member col",
    ),
    "approximate count of two columns": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "DISTINCTCOUNT(member_id, country)"),
        "of the table's member column",
    ),
    "approximate count of every row": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "DISTINCTCOUNT(*)"),
        r"expected COUNT\(DISTINCT member_id\) of the table's member col",
    ),
    "approximate count of nothing": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "DISTINCTCOUNT()"),
        "of the table's member column",
    ),
    "approximate count of distinct values": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "DISTINCTCOUNT(DISTINCT member_id)"),
        r"expected COUNT\(DISTINCT member_id\) of the table's member col",
    ),
    "cast": (where("CAST(article_id AS VARCHAR) = 'x'"), "a cast other than to DATE or TIMESTAMP"),
    "double colon": (where("article_id::varchar = 'x'"), "a cast other than to DATE or TIMESTAMP"),
    "subquery in IN": (
        where("article_id IN (SELECT article_id FROM engagement)"),
        r"a subquery is not accepted: .* FUNNEL_COUNT\(STEPS",
    ),
    "EXISTS": (where("EXISTS (SELECT 1)"), r"EXISTS\(\.\.\)"),
    "UNION": (f"{PLAIN} UNION ALL {PLAIN}", "a statement other than one plain SELECT"),
    "UNION without LIMIT": ("SELECT a FROM engagement UNION SELECT b FROM engagement", "one plain SELECT"),
    "join": (
        PLAIN.replace("engagement", "engagement JOIN clicks"),
        "a join, or a second table, is not accepted",
    ),
    "join by a column": (
        PLAIN.replace("engagement", "engagement JOIN clicks USING (day)"),
        "a join, or a second table, is not accepted",
    ),
    "join by a condition": (
        PLAIN.replace("engagement", "engagement JOIN clicks ON (day = at)"),
        "a join, or a second table, is not accepted",
    ),
    "comma join": (
        PLAIN.replace("engagement", "engagement, clicks"),
        "a join, or a second table, is not accepted",
    ),
    "table alias with columns": (
        PLAIN.replace("engagement", "engagement e (a)"),
        "a list of columns after a table's alias",
    ),
    "table alias without AS and quotes": (
        PLAIN.replace("engagement", "engagement FINAL"),
        "FINAL after a name",
    ),
    "qualified table": (PLAIN.replace("engagement", "db.engagement"), "a schema or database before a name"),
    "column of another table": (
        where("clicks.article_id = 'x'"),
        "expected engagement before a column, or nothing",
    ),
    "column of a table in other case": (
        where("Engagement.article_id = 'x'"),
        "expected engagement before a column",
    ),
    "column of a table that has an alias": (
        f"{where('engagement.score = 1')}".replace("FROM engagement", "FROM engagement e"),
        "expected the table's alias before a column, or nothing",
    ),
    "column of a table of a schema": (where("db.engagement.article_id = 'x'"), "a schema or database before"),
    "every column of a table": (PLAIN.replace("article_id,", "engagement.*,", 1), r"\* is not accepted"),
    "count's alias of a table": (
        PLAIN.replace("member_id)", "member_id) AS n").replace("2 DESC", "engagement.n DESC"),
        "expected ORDER BY with a number descending, or with the sele",
    ),
    "sample": (PLAIN.replace("engagement", "engagement TABLESAMPLE (10)"), "TABLESAMPLE after a name"),
    "SORT BY": (PLAIN.replace("ORDER BY 2 DESC", "SORT BY secret"), "SORT after a name"),
    "DISTRIBUTE BY": (PLAIN.replace(" LIMIT", " DISTRIBUTE BY member_id LIMIT"), "DISTRIBUTE after DESC"),
    "star after a table": (PLAIN.replace("engagement", "engagement *"), r"\* after a name"),
    "star before a column": (PLAIN.replace("SELECT ", "SELECT *"), r"\* is not accepted"),
    "GROUP BY DISTINCT": (PLAIN.replace("BY article", "BY DISTINCT article"), "DISTINCT in GROUP BY"),
    "HAVING of another count": (PLAIN.replace("ORDER", "HAVING COUNT(*) > 3 ORDER"), "HAVING with the count"),
    "HAVING of a column": (PLAIN.replace("ORDER", "HAVING article_id > 3 ORDER"), "HAVING with the count"),
    "HAVING of a text": (
        PLAIN.replace("ORDER", "HAVING COUNT(DISTINCT member_id) > 'x' ORDER"),
        "expected HAVING with the count, or a sum or an average that ",
    ),
    "HAVING with OR": (
        PLAIN.replace("ORDER", "HAVING COUNT(DISTINCT member_id) > 3 OR COUNT(DISTINCT member_id) < 1 ORDER"),
        "joined by AND",
    ),
    "HAVING after ORDER BY": (
        PLAIN.replace(" LIMIT", " HAVING COUNT(DISTINCT member_id) > 3 LIMIT"),
        "clause|parsed",
    ),
    "a condition on a bucket that there is not": (
        PLAIN.replace("GROUP", "WHERE DATE_TRUNC('month', day) = '2024-01-02' GROUP"),
        "the first day of a month",
    ),
    "a condition on a bucket of texts": (
        PLAIN.replace("GROUP", "WHERE DATE_TRUNC('month', country) = '2024-01-01' GROUP"),
        "country: expected DATE_TRUNC of a column of days",
    ),
    "a condition on a part that no time has": (
        PLAIN.replace("GROUP", "WHERE EXTRACT(MONTH FROM day) = 13 GROUP"),
        "a number that a time can have: 1 to 12",
    ),
    "a condition on a part and a text": (
        PLAIN.replace("GROUP", "WHERE EXTRACT(MONTH FROM day) = 'March' GROUP"),
        "expected a whole number",
    ),
    "a bucket without quotes": (
        "SELECT DATE_TRUNC(month, day), COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "length in single quotes",
    ),
    "a bucket of an hour": (
        "SELECT DATE_TRUNC('hour', day), COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "expected one of 'day', 'week'",
    ),
    "a bucket with a zone of its own": (
        "SELECT DATE_TRUNC('day', day, 'Asia/Tokyo'), COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "the policy says which zone",
    ),
    "a bucket of another day": (
        "SELECT DATE_TRUNC('month', day) AS day, COUNT(DISTINCT member_id) FROM engagement GROUP BY day",
        "both a column and an alias",
    ),
    "buckets of two lengths": (
        "SELECT DATE_TRUNC('month', day), DATE_TRUNC('day', day), COUNT(*) FROM engagement GROUP BY 1, 2",
        "buckets of one length",
    ),
    "a weekday with two readings": (
        "SELECT EXTRACT(DOW FROM day), COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "two readings: write EXTRACT.ISODOW",
    ),
    "a weekday as a function": (
        "SELECT DAYOFWEEK(day), COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "two readings: write EXTRACT.ISODOW",
    ),
    "a year by itself": (
        "SELECT EXTRACT(YEAR FROM day), COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "write DATE_TRUNC.'year'",
    ),
    "an unknown part": (
        "SELECT EXTRACT(CENTURY FROM day), COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "another part is not offered: expected one of HOUR",
    ),
    "CASE without WHEN": (
        "SELECT CASE ELSE 1 END, COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "got ELSE",
    ),
    "CASE as a column": (
        "SELECT CASE WHEN day < '2019-01-01' THEN 1 END, COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "CASE and IF are not accepted outside of a number: .* a view in Pinot or DuckDB",
    ),
    "IF as a column": (
        "SELECT IF(score > 1, 'a', 'b') AS x, COUNT(*) FROM engagement GROUP BY x",
        "CASE and IF are not accepted outside of a number",
    ),
    "a condition as a column": (
        "SELECT score > 1, COUNT(*) FROM engagement GROUP BY 1",
        "a condition is not accepted as a column: .* a view in Pinot or DuckDB",
    ),
    "a condition on CASE": (
        where("CASE WHEN score > 1 THEN 'a' END = 'a'"),
        "CASE and IF are not accepted outside of a number",
    ),
    "days between two columns": (
        "SELECT WIDTH_BUCKET(DATE_DIFF('day', day, day), 0, 9, 3), COUNT(*) FROM engagement GROUP BY 1",
        "days between two columns are not accepted",
    ),
    "a CASE as a day": (
        "SELECT CAST(CASE WHEN day < '2019-01-01' THEN 1 ELSE 2 END AS DATE), COUNT(*) FROM engagement GROUP BY 1",
        "a cast of",
    ),
    "an hour as a day": (
        "SELECT CAST(EXTRACT(MONTH FROM day) AS DATE), COUNT(*) FROM engagement GROUP BY 1",
        r"a cast of .* write DATE_TRUNC\('day', column\) to group",
    ),
    "bins of days": (
        "SELECT WIDTH_BUCKET(day, 0, 10, 5), COUNT(DISTINCT member_id) FROM engagement GROUP BY 1",
        "of a column of numbers",
    ),
    "QUALIFY": (PLAIN.replace("ORDER", "QUALIFY article_id = 'x' ORDER"), "QUALIFY after a name"),
    "star": (PLAIN.replace("article_id,", "*,", 1), r"\* is not accepted: no rows are shown"),
    "rows": ("SELECT * FROM engagement LIMIT 5", r"\* is not accepted: no rows are shown, only counts"),
    "rows of a table": ("SELECT e.* FROM engagement e", r"\* is not accepted: no rows are shown"),
    "window": (
        PLAIN.replace("member_id)", "member_id) OVER (PARTITION BY article_id)"),
        "a window function is not accepted",
    ),
    "named window": (PLAIN.replace("member_id)", "member_id) OVER w"), "a window function"),
    "FILTER": (
        PLAIN.replace("member_id)", "member_id) FILTER (WHERE 1 = 1)"),
        "a condition that every row meets",
    ),
    "OFFSET": (f"{PLAIN} OFFSET 3", "OFFSET is not"),
    "MySQL's offset": (PLAIN.replace("LIMIT 5", "LIMIT 5, 10"), "OFFSET is not"),
    "FOR UPDATE": (f"{PLAIN} FOR UPDATE", "FOR after a number"),
    "ROLLUP": (
        PLAIN.replace("GROUP BY article_id", "GROUP BY article_id WITH ROLLUP"),
        "WITH in GROUP BY is not accepted: ask for totals",
    ),
    "negative limit": (PLAIN.replace("LIMIT 5", "LIMIT -5"), "LIMIT with a whole number"),
    "huge limit": (PLAIN.replace("LIMIT 5", f"LIMIT {'9' * 5000}"), "more than 64 bits"),
    "product in a sum": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "SUM(score*2)"),
        "arithmetic",
    ),
    "fraction of a percentile": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY score)"),
        "ORDER BY",
    ),
    "fractional limit": (
        PLAIN.replace("LIMIT 5", "LIMIT 5.5"),
        "expected LIMIT with a whole number, how many elements to sho",
    ),
    "no limit to the whole": (PLAIN.replace("LIMIT 5", "LIMIT ALL"), "LIMIT with a whole number"),
    "float": (where("score = 0.5"), "a number other than an integer"),
    "fraction around a space": (
        where("score = 0 . 5"),
        r"\. after a number",
    ),
    "exponent": (where("score = 1e3"), "a number other than an integer"),
    "hexadecimal": (where("score = 0x1F"), "a number other than a decimal one"),
    "underscores in a number": (where("score = 1_000"), "a number other than a decimal one"),
    "more than 64 bits": (where("score = 9223372036854775808"), "an integer of 64 bits"),
    "arithmetic": (where("score = 1 - 1"), "arithmetic"),
    "double sign": (where("score = - -1"), "a sign before something other than a number"),
    "Unicode text": (where(r"article_id = U&'\0041'"), "a prefixed text"),
    "Unicode text after a line break": (where("article_id = U\n&'x'"), "a prefixed text"),
    "escaped text": (where(r"article_id = E'\n'"), "a prefixed text"),
    "national text": (where("article_id = N'x'"), "a prefixed text"),
    "bytes": (where("article_id = X'41'"), "a prefixed text"),
    "dollar text": (where("article_id = $$x$$"), "dollar-quoted"),
    "neighbouring texts": (where("article_id = 'a' 'b'"), "a quoted word beside another"),
    "text that does not end": (where("article_id = 'a"), "a text that does not end"),
    "backslash escape": (
        where(r"article_id = 'a\' OR 1=1 --'"),
        "expected GROUP BY with the selected columns",
    ),
    "NUL": (where("article_id = 'a\0'"), "a NUL or surrogate"),
    "surrogate": (where("article_id = '\ud800'"), "a NUL or surrogate"),
    "typed literal": (
        where("article_id > TIMESTAMP '2019-01-01 10:00:00'"),
        "a typed literal other than DATE, and TIMESTAMP for a column ",
    ),
    "long s as keyword": (
        f"\u017felect{PLAIN[6:]}",
        r"the letter U\+017F \(LATIN SMALL LETTER LONG S\) is no part of ",
    ),
    "Cyrillic look-alike": (
        where("\u0430rticle_id = 'x'"),
        r"the letter U\+0430 \(CYRILLIC SMALL LETTER A\) is no part of a ",
    ),
    "full-width sign": (
        where("article_id \uff1d 'x'"),
        r"the character U\+FF1D \(FULLWIDTH EQUALS SIGN\) is no part of a",
    ),
    "curly quotes": (
        where("article_id = \u2018x\u2019"),
        r"the typographic quote U\+2018 \(LEFT SINGLE QUOTATION MARK\)",
    ),
    "no-break space": (PLAIN.replace(" FROM", "\u00a0FROM"), r"the character U\+00A0 \(NO\-BREAK SPACE\)"),
    "quoted look-alike": (where("\"\u0430rticle_id\" = 'x'"), "other characters than ASCII letters"),
    "quoted name with quotes": (where('"a""b" = \'x\''), "other characters than ASCII letters"),
    "quoted name that does not end": (where('"a = 1'), "does not end"),
    "quoted table in other letters": (
        PLAIN.replace("engagement", '"eng agement"'),
        "other characters than ASCII",
    ),
    "empty quoted name": (PLAIN.replace("member_id)", 'member_id) AS ""'), "is empty or does not end"),
    "blank alias": (PLAIN.replace("member_id)", 'member_id) AS "  "'), "1 to 128 characters"),
    "long alias": (PLAIN.replace("member_id)", f'member_id) AS "{"n" * 129}"'), "1 to 128 characters"),
    "alias with a line break": (PLAIN.replace("member_id)", 'member_id) AS "a\nb"'), "control or invisible"),
    "alias that turns the direction": (
        PLAIN.replace("member_id)", 'member_id) AS "a\u202eb"'),
        "control or invisible",
    ),
    "array": (where("article_id[1] = 'x'"), r"\["),
    "ANY behind <": (where("score < ANY(ARRAY[1])"), "write IN, NOT IN"),
    "ALL behind <>": (where("score <> ALL(ARRAY[1])"), "write IN, NOT IN"),
    "ANY of a subquery": (where("score = ANY(SELECT 1)"), "expected values, as in = ANY"),
    "ANY of a column": (where("'x' = ANY(article_id)"), "expected values, as in = ANY"),
    "empty array": (where("score = ANY(ARRAY[])"), "1 value or more"),
    "empty array as a text": (where("score = ANY('{ }')"), "1 value or more"),
    "array of arrays": (where("article_id = ANY('{{a}}')"), "expected values, as in = ANY"),
    "array without its end": (where("article_id = ANY('{a')"), "expected values, as in = ANY"),
    "array with a comma at its end": (where("article_id = ANY('{a,}')"), "expected values, as in = ANY"),
    "array with two commas": (where("article_id = ANY('{a, ,b}')"), "expected values, as in = ANY"),
    "array without a comma": (where("article_id = ANY('{\"a\"b}')"), "expected values, as in = ANY"),
    "array with NULL": (where("article_id = ANY('{a,null}')"), "write IS NULL"),
    "array of too many values": (where(f"score = ANY('{{{'1,' * 10_000}1}}'::int[])"), "10,000 values"),
    "sum cast to whole numbers": ("SELECT SUM(score)::bigint FROM engagement", "a cast other than"),
    "quotient cast to whole numbers": (
        "SELECT (COUNT(*) FILTER (WHERE score > 1) / COUNT(*))::int FROM engagement",
        "a cast other than",
    ),
    "count cast to a fraction": (
        "SELECT COUNT(*)::double precision FROM engagement",
        "a cast other than .* a view",
    ),
    "column joined": (where("article_id = 'x' || country"), "joining texts"),
    "another day than midnight in UTC": (
        where("day = TIMESTAMP '2019-01-01 00:00:00+01'"),
        "expected days as",
    ),
    "array alone": (where("article_id = ARRAY['a']"), "behind = ANY"),
    "LIMIT with a text": (f"{PLAIN} LIMIT 'a'::int", "a cast other than"),
    "parameter": (where("article_id = ?"), "a parameter"),
    "named parameter": (where("article_id = :x"), ": is not accepted: a parameter"),
    "very long": (where(f"article_id = '{'x' * 10_000}'"), "expected a text of at most 1024 characters"),
    "deep nesting": (
        where("(" * 1000 + "score = 1" + ")" * 1000),
        "more than 32 parentheses in one another are not accepted",
    ),
    "parentheses that do not match": (where("(score = 1"), r"expected \), got GROUP"),
    "OR without an end": (where("score = 1 OR"), "expected a column, a value or a function, got GROUP"),
    "XOR": (where("score = 1 XOR score = 0"), "XOR after a number"),
    "BETWEEN without AND": (where("score BETWEEN 1 54775807"), "expected AND, got a number"),
    "BETWEEN of days without AND": (
        where("day BETWEEN DATE '2019-01-01' (DATE '2019-01-02')"),
        r"expected AND, got \(",
    ),
    "BETWEEN of truth values without AND": (
        where("active BETWEEN TRUE TRUE"),
        "expected AND, got TRUE",
    ),
    "BETWEEN of parentheses without AND": (where("score BETWEEN (1) (2)"), r"expected AND, got \("),
    "comma at the end": (f"{PLAIN},", "a comma that separates nothing"),
    "comma before the semicolon": (f"{PLAIN},;", "a comma that separates nothing"),
    "comma after the order": (PLAIN.replace(" LIMIT 5", ","), "a comma that separates nothing"),
    "comma after the table": (PLAIN.replace("engagement", "engagement,"), "a join, or a second table,"),
    "two directions": (PLAIN.replace("DESC", "ASC DESC"), "DESC after ASC"),
    "the same direction twice": (PLAIN.replace("DESC", "DESC, 1 ASC ASC"), "ASC after ASC"),
    "LIMIT ONLY": (f"{PLAIN} ONLY", "ONLY after a number"),
    "LIMIT of rows": (f"{PLAIN} ROWS", "ROWS after a number"),
    "LIMIT of rows only": (f"{PLAIN} ROWS ONLY", "ROWS after a number"),
    "percent of the whole": (f"{PLAIN} PERCENT", "a name after a number"),
    "FILTER as an alias": (PLAIN.replace("member_id)", "member_id) FILTER"), r"FILTER after \)"),
    "FILTER as an alias after AS": (
        PLAIN.replace("member_id)", "member_id) AS filter"),
        "FILTER as an alias",
    ),
    "LIMIT before GROUP BY": (
        f"{HEAD} LIMIT 5 GROUP BY article_id ORDER BY 2 DESC",
        "each clause once, in the order",
    ),
    "ORDER BY before GROUP BY": (
        f"{HEAD} ORDER BY 2 DESC GROUP BY article_id LIMIT 5",
        "each clause once, in the order",
    ),
    "GROUP BY before WHERE": (
        f"{HEAD} GROUP BY article_id WHERE score = 1",
        "each clause once, in the order",
    ),
    "FROM first": (f"FROM engagement {HEAD[:45]}", "begins with SELECT"),
    "no table": ("SELECT 1", "such as SELECT 1, .* read the catalogue"),
    "no table, with a semicolon": ("select 1;", "such as SELECT 1, .* read the catalogue"),
    "BETWEEN SYMMETRIC": (where("score BETWEEN SYMMETRIC 1 AND 0"), "BETWEEN SYMMETRIC is not"),
    "NULL": (where("article_id = NULL"), "NULL is not accepted"),
    "regular expression": (where("article_id ~ 'x'"), r"\~ and regular expressions are not accepted"),
    "two columns": (where("article_id = country"), "a name where a value is expected: .* single quotes"),
    "text in double quotes": (
        where('article_id = "x"'),
        "a name where a value is expected: .* single quotes",
    ),
    "number in double quotes": (where('score = "1"'), "a name where a value is expected"),
    "list of texts in double quotes": (where('article_id IN ("x")'), "a name where a value is expected"),
    "row values": (
        where("(article_id, country) IN (('a', 'b'))"),
        "does not begin with a column",
    ),
    "empty list": (where("article_id IN ()"), "expected 1 value or more in a list"),
    "integer for a text": (where("article_id = 1"), "expected (texts|integers) ."),
    "text for an integer": (where("score = '1'"), "expected (texts|integers) ."),
    "day for a text": (where("article_id = DATE '2019-01-01'"), "expected (texts|integers) ."),
    "no day": (where("day >= '2019-02-30'"), "'YYYY-MM-DD'"),
    "moment for a day": (where("day >= '2019-01-01 00:01'"), "'YYYY-MM-DD'"),
    "no GROUP BY": (f"{HEAD} LIMIT 5", "GROUP BY with the selected columns: GROUP BY article_id"),
    "no GROUP BY, and a name that is not a column's": (
        f"{HEAD.replace('article_id', 'Meier')} LIMIT 5",
        "expected GROUP BY with the selected columns",
    ),
    "other grouping": (PLAIN.replace("BY article_id", "BY country"), "exactly the selected columns"),
    "wider grouping": (
        PLAIN.replace("BY article_id", "BY article_id, country"),
        "exactly the selected columns",
    ),
    "grouping by a position outside": (
        PLAIN.replace("BY article_id", "BY 2"),
        "expected the position of a column in GROUP BY",
    ),
    "grouping by position zero": (
        PLAIN.replace("BY article_id", "BY 0"),
        "expected the position of a column in GROUP BY",
    ),
    "grouping by a column and its position": (
        PLAIN.replace("BY article_id", "BY article_id, 1"),
        "exactly the selected columns",
    ),
    "no count": ("SELECT article_id FROM engagement GROUP BY article_id LIMIT 5", "COUNT"),
    "two counts": (
        PLAIN.replace(" FROM", ", COUNT(DISTINCT member_id) FROM"),
        "a count that is selected twice",
    ),
    "a total beside a column": (
        "SELECT country, COUNT(*) FROM engagement",
        "expected GROUP BY with the selected columns: GROUP BY country",
    ),
    "a total by a column that is not selected": (
        "SELECT COUNT(*) FROM engagement GROUP BY country",
        "expected GROUP BY with exactly the selected columns",
    ),
    "two totals": ("SELECT COUNT(*), COUNT(1) FROM engagement", "a count that is selected twice"),
    "a total with a condition on it": (
        "SELECT COUNT(*) FROM engagement HAVING COUNT(*) > 5",
        "total is always shown",
    ),
    "a total by nothing": ("SELECT COUNT(*) FROM engagement GROUP BY ()", "not accepted"),
    "a total of one more word": ("SELECT COUNT(*) FROM engagement LIMIT 1 ONLY", "ONLY after a number"),
    "five dimensions": (
        "SELECT article_id, country, score, active, day, COUNT(*) FROM engagement "
        "GROUP BY article_id, country, score, active, day",
        "at most 4 columns",
    ),
    "dimension twice": (
        "SELECT country, country, COUNT(*) FROM engagement GROUP BY country, country",
        "each column to group by once",
    ),
    "distinct articles": (
        PLAIN.replace("DISTINCT member_id", "DISTINCT country"),
        "of the table's member column",
    ),
    "distinct pairs": (PLAIN.replace("member_id", "member_id, country"), "of the table's member column"),
    "alias of a column like another one": (
        PLAIN.replace("article_id,", 'article_id AS "Country",', 1),
        "an alias that is the name of a column",
    ),
    "alias of a column like the count's": (
        PLAIN.replace("article_id,", 'article_id AS "N",', 1).replace("member_id)", "member_id) AS n"),
        "an alias that is given twice",
    ),
    "alias of a column in a filter": (
        PLAIN.replace("article_id,", 'article_id AS "Land",', 1).replace(
            "GROUP", "WHERE \"Land\" = 'x' GROUP"
        ),
        "lists no column",
    ),
    "alias behind the table": (
        PLAIN.replace("article_id,", 'article_id AS "Land",', 1).replace(
            "BY article_id", 'BY engagement."Land"'
        ),
        "exactly the selected columns",
    ),
    "keyword as the alias of a column": (
        PLAIN.replace("article_id,", "article_id AS end,", 1),
        "END as an alias",
    ),
    "alias in a filter": (
        f"{HEAD} AS n WHERE n > 3 {TAIL}".replace("FROM engagement AS n", "AS n FROM engagement"),
        "lists no column",
    ),
    "alias like a column": (
        PLAIN.replace("member_id)", "member_id) AS article_id"),
        "an alias that is the name of a column",
    ),
    "dimension descending": (PLAIN.replace("DESC", "DESC, 1 DESC"), "columns ascending"),
    "dimension first": (
        PLAIN.replace("2 DESC", "1 DESC"),
        "expected ORDER BY with a number descending, or with the sele",
    ),
    "other count": (PLAIN.replace("2 DESC", "COUNT(*) DESC"), "the count that is selected"),
    "unselected key": (PLAIN.replace("DESC", "DESC, country"), "and then selected columns"),
    "place outside": (PLAIN.replace("DESC", "DESC, 2"), "and then selected columns"),
    "place of an omitted count": (
        "SELECT country FROM engagement GROUP BY country ORDER BY 2 DESC",
        "the count first",
    ),
}
BY_POLICY = {
    "member in a filter": (where("member_id = 'x'"), Rule.MEMBER_COLUMN),
    "quoted member in a filter": (where("\"member_id\" IN ('x')"), Rule.MEMBER_COLUMN),
    "member in other case": (where("MEMBER_ID = 'x'"), Rule.COLUMN),
    "quoted column in other case": (where("\"ARTICLE_ID\" = 'x'"), Rule.COLUMN),
    "grouping by members": (
        "SELECT member_id, COUNT(*) FROM engagement GROUP BY member_id",
        Rule.MEMBER_COLUMN,
    ),
    "unknown column": (where("salary > 3"), Rule.COLUMN),
    "virtual column": (where("docId = 3"), Rule.COLUMN),
    "unknown table": (PLAIN.replace("engagement", "employees"), Rule.TABLE),
    "table in other case": (PLAIN.replace("engagement", "Engagement"), Rule.TABLE),
    "column for filters alone": (
        "SELECT title, COUNT(*) FROM engagement GROUP BY title",
        Rule.GROUP_BY,
    ),
    "column for nothing": (where("secret = 'x'"), Rule.FILTER),
    "operator that is not listed": (where("title = 'x'"), Rule.FILTER),
    "equality on the time column without leave": (
        "SELECT kind, COUNT(DISTINCT user) FROM clicks WHERE at = 3 GROUP BY kind",
        Rule.FILTER,
    ),
    "measure that is not offered": ("SELECT kind, COUNT(*) FROM clicks GROUP BY kind", Rule.MEASURE),
    "total of events whose tau is assumed": ("SELECT COUNT(*) FROM engagement", Rule.MEASURE),
    "total of events that are not offered": ("SELECT COUNT(*) FROM clicks", Rule.MEASURE),
}
