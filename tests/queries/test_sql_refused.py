"""SQL texts that are refused, each with its reason; no reason repeats a literal."""

import pytest

from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from tests.support.queries.policies import POLICY

HEAD = "SELECT article_id, COUNT(DISTINCT member_id) FROM engagement"
TAIL = "GROUP BY article_id ORDER BY 2 DESC LIMIT 5"
PLAIN = f"{HEAD} {TAIL}"


def where(condition: str) -> str:
    """Return a question with one condition."""
    return f"{HEAD} WHERE {condition} {TAIL}"


A_FUNCTION = "a function, subquery or CTE"
NOT_ASCII = "a character that is no part of a question"

MALFORMED = {
    "empty": ("", "begins with SELECT"),
    "blank": (" \n", "begins with SELECT"),
    "nothing selected": (
        "SELECT FROM engagement GROUP BY article_id LIMIT 5",
        "SELECT with columns and the count",
    ),
    "comma before the first column": (f"SELECT, {PLAIN[7:]}", "a comma that separates nothing"),
    "comma after the count": (PLAIN.replace(" FROM", ", FROM"), "a comma that separates nothing"),
    "two commas": (PLAIN.replace("article_id,", "article_id,,", 1), "a comma that separates nothing"),
    "comma at the end of a list": (where("article_id IN ('a',)"), "a comma that separates nothing"),
    "comma at the end of the grouping": (
        PLAIN.replace("BY article_id ORDER", "BY article_id, ORDER"),
        "a comma that separates nothing",
    ),
    "SET before": (f"SET useMultistageEngine=true; {PLAIN}", "several statements"),
    "SET after": (f"{PLAIN}; SET numGroupsLimit=1", "several statements"),
    "SET alone": ("SET numGroupsLimit=1", "begins with SELECT"),
    "EXPLAIN": (f"EXPLAIN {PLAIN}", "begins with SELECT"),
    "OPTION": (f"{PLAIN} OPTION(numGroupsLimit=1)", A_FUNCTION),
    "OPTION without parentheses": (f"{PLAIN} OPTION", "can be parsed"),
    "OPTION in a trailing comment": (f"{PLAIN} -- OPTION(numGroupsLimit=1)", "a comment"),
    "line comment": (f"{PLAIN} -- x", "a comment"),
    "block comment": (f"SELECT /* x */ {PLAIN[7:]}", "a comment"),
    "nested comments": (f"SELECT /* /* x */ */ {PLAIN[7:]}", "a comment"),
    "hint": (f"SELECT /*+ x */ {PLAIN[7:]}", "a comment"),
    "slash comment": (f"{PLAIN} // x", "a comment"),
    "hash comment": (f"{PLAIN} # x", "a comment"),
    "template comment": (f"{PLAIN} {{# x #}}", "a comment"),
    "several statements": (f"{PLAIN}; {PLAIN}", "several statements"),
    "two semicolons": (f"{PLAIN};;", "several statements"),
    "IN_SUBQUERY": (where("IN_SUBQUERY(article_id, 'SELECT 1') = 1"), A_FUNCTION),
    "IN_PARTITIONED_SUBQUERY": (where("inPartitionedSubquery(article_id, 'x') = 1"), A_FUNCTION),
    "LOOKUP": (where("LOOKUP('t', 'c', 'k', member_id) = 'x'"), A_FUNCTION),
    "LOOKUP after a line break": (where("LOOKUP\n('t', 'c', 'k', member_id) = 'x'"), A_FUNCTION),
    "function hidden by underscores": (where("l_o_o_k_u_p('t', 'c', 'k', article_id) = 'x'"), A_FUNCTION),
    "quoted function": (where("\"lookup\"('t', 'c', 'k', article_id) = 'x'"), A_FUNCTION),
    "function over a dimension": (f"SELECT UPPER(article_id), {PLAIN[19:]}", A_FUNCTION),
    "other aggregate": (PLAIN.replace("COUNT", "SUM"), A_FUNCTION),
    "approximate count": (
        PLAIN.replace("COUNT(DISTINCT member_id)", "DISTINCTCOUNTHLL(member_id)"),
        A_FUNCTION,
    ),
    "cast": (where("CAST(article_id AS VARCHAR) = 'x'"), A_FUNCTION),
    "cast of a literal": (where("day = CAST('2019-01-01' AS DATE)"), A_FUNCTION),
    "double colon": (where("article_id::varchar = 'x'"), "a cast or a parameter"),
    "subquery in FROM": (PLAIN.replace("engagement", "(SELECT * FROM engagement)"), A_FUNCTION),
    "subquery in IN": (
        where("article_id IN (SELECT article_id FROM engagement)"),
        "a subquery is not accepted",
    ),
    "EXISTS": (where("EXISTS (SELECT 1)"), A_FUNCTION),
    "CTE": (f"WITH x AS (SELECT 1) {PLAIN}", "begins with SELECT"),
    "UNION": (f"{PLAIN} UNION ALL {PLAIN}", "a statement other than one plain SELECT"),
    "UNION without LIMIT": ("SELECT a FROM engagement UNION SELECT b FROM engagement", "one plain SELECT"),
    "join": (PLAIN.replace("engagement", "engagement JOIN clicks"), "JOINS in SELECT"),
    "comma join": (PLAIN.replace("engagement", "engagement, clicks"), "JOINS in SELECT"),
    "table alias": (PLAIN.replace("engagement", "engagement e"), "ALIAS in TABLE"),
    "qualified table": (PLAIN.replace("engagement", "db.engagement"), "a qualified name"),
    "qualified column": (where("engagement.article_id = 'x'"), "a qualified name"),
    "sample": (PLAIN.replace("engagement", "engagement TABLESAMPLE (10)"), A_FUNCTION),
    "SORT BY": (PLAIN.replace("ORDER BY 2 DESC", "SORT BY secret"), "SORT in SELECT"),
    "DISTRIBUTE BY": (PLAIN.replace(" LIMIT", " DISTRIBUTE BY member_id LIMIT"), "DISTRIBUTE in SELECT"),
    "star after a table": (PLAIN.replace("engagement", "engagement *"), r"\* is not accepted"),
    "star before a column": (PLAIN.replace("SELECT ", "SELECT *"), r"\* is not accepted"),
    "GROUP BY DISTINCT": (PLAIN.replace("BY article", "BY DISTINCT article"), "DISTINCT in GROUP BY"),
    "HAVING": (PLAIN.replace("ORDER", "HAVING COUNT(*) > 3 ORDER"), "HAVING in SELECT"),
    "QUALIFY": (PLAIN.replace("ORDER", "QUALIFY article_id = 'x' ORDER"), "QUALIFY in SELECT"),
    "DISTINCT": (f"SELECT DISTINCT {PLAIN[7:]}", "DISTINCT in SELECT"),
    "star": (PLAIN.replace("article_id,", "*,", 1), r"\* is not accepted"),
    "window": (PLAIN.replace("member_id)", "member_id) OVER (PARTITION BY article_id)"), A_FUNCTION),
    "named window": (PLAIN.replace("member_id)", "member_id) OVER w"), "an expression other than"),
    "FILTER": (PLAIN.replace("member_id)", "member_id) FILTER (WHERE score = 1)"), A_FUNCTION),
    "OFFSET": (f"{PLAIN} OFFSET 3", "OFFSET in SELECT"),
    "MySQL's offset": (PLAIN.replace("LIMIT 5", "LIMIT 5, 10"), "OFFSET in SELECT"),
    "FETCH": (
        PLAIN.replace("LIMIT 5", "FETCH FIRST 5 ROWS ONLY"),
        "FETCH is not accepted",
    ),
    "FOR UPDATE": (f"{PLAIN} FOR UPDATE", "LOCKS in SELECT"),
    "ROLLUP": (PLAIN.replace("GROUP BY article_id", "GROUP BY article_id WITH ROLLUP"), "ROLLUP in GROUP"),
    "GROUP BY ALL": (PLAIN.replace("GROUP BY article_id", "GROUP BY ALL"), "ALL in GROUP"),
    "negative limit": (PLAIN.replace("LIMIT 5", "LIMIT -5"), "LIMIT with a whole number"),
    "limit of zero": (PLAIN.replace("LIMIT 5", "LIMIT 0"), "from 1 to 100000"),
    "huge limit": (PLAIN.replace("LIMIT 5", f"LIMIT {'9' * 5000}"), "more than 64 bits"),
    "fractional limit": (PLAIN.replace("LIMIT 5", "LIMIT 5.5"), "a number other than an integer"),
    "no limit to the whole": (PLAIN.replace("LIMIT 5", "LIMIT ALL"), "LIMIT with a whole number"),
    "float": (where("score = 0.5"), "a number other than an integer"),
    "exponent": (where("score = 1e3"), "a number other than an integer"),
    "hexadecimal": (where("score = 0x1F"), "a number other than an integer"),
    "underscores in a number": (where("score = 1_000"), "a number other than an integer"),
    "more than 64 bits": (where("score = 9223372036854775808"), "an integer of 64 bits"),
    "arithmetic": (where("score = 1 - 1"), "an expression other than"),
    "double sign": (where("score = - -1"), "a sign before something other than an integer"),
    "Unicode text": (where(r"article_id = U&'\0041'"), "a prefixed text"),
    "Unicode text after a line break": (where("article_id = U\n&'x'"), "a prefixed text"),
    "escaped text": (where(r"article_id = E'\n'"), "a prefixed text"),
    "national text": (where("article_id = N'x'"), "a prefixed text"),
    "bytes": (where("article_id = X'41'"), "a prefixed text"),
    "dollar text": (where("article_id = $$x$$"), "dollar-quoted"),
    "neighbouring texts": (where("article_id = 'a' 'b'"), "a quoted word beside another"),
    "text that does not end": (where("article_id = 'a"), "a text that does not end"),
    "backslash escape": (where(r"article_id = 'a\' OR 1=1 --'"), "a comment"),
    "NUL": (where("article_id = 'a\0'"), "a NUL or surrogate"),
    "surrogate": (where("article_id = '\ud800'"), "a NUL or surrogate"),
    "typed literal": (where("day > TIMESTAMP '2019-01-01'"), "a cast or typed literal other than DATE"),
    "long s as keyword": (f"\u017felect{PLAIN[6:]}", NOT_ASCII),
    "Cyrillic look-alike": (where("\u0430rticle_id = 'x'"), NOT_ASCII),
    "full-width sign": (where("article_id \uff1d 'x'"), NOT_ASCII),
    "curly quotes": (where("article_id = \u2018x\u2019"), NOT_ASCII),
    "no-break space": (PLAIN.replace(" FROM", "\u00a0FROM"), NOT_ASCII),
    "quoted look-alike": (where("\"\u0430rticle_id\" = 'x'"), "a quoted name other than"),
    "quoted name with quotes": (
        where('"a""b" = \'x\''),
        "a quoted word beside another",
    ),
    "backquotes": (where("`article_id` = 'x'"), "a name in backquotes"),
    "array": (where("article_id[1] = 'x'"), "an array"),
    "parameter": (where("article_id = ?"), "a parameter"),
    "named parameter": (where("article_id = :x"), "a cast or a parameter"),
    "very long": (where(f"article_id = '{'x' * 10_000}'"), "at most 10000 characters"),
    "deep nesting": (where("(" * 1000 + "score = 1" + ")" * 1000), "deeper nesting"),
    "parentheses that do not match": (where("(score = 1"), "can be parsed"),
    "OR": (where("score = 1 OR score = 0"), "OR is not accepted"),
    "XOR": (where("score = 1 XOR score = 0"), "can be parsed"),
    "NOT of a comparison": (where("NOT score = 1"), "NOT other than in NOT IN"),
    "NOT BETWEEN": (where("score NOT BETWEEN 0 AND 1"), "NOT other than in NOT IN"),
    "BETWEEN without AND": (where("score BETWEEN 1 54775807"), "BETWEEN without AND"),
    "BETWEEN of days without AND": (
        where("day BETWEEN DATE '2019-01-01' (DATE '2019-01-02')"),
        "BETWEEN without AND",
    ),
    "BETWEEN SYMMETRIC": (where("score BETWEEN SYMMETRIC 1 AND 0"), "SYMMETRIC in BETWEEN"),
    "IS NULL": (where("article_id IS NULL"), "IS is not accepted"),
    "NULL": (where("article_id = NULL"), "NULL is not accepted"),
    "LIKE": (where("article_id LIKE 'x%'"), "LIKE is not accepted"),
    "regular expression": (where("article_id ~ 'x'"), NOT_ASCII),
    "truth value alone": (where("active"), "an expression other than"),
    "constant": (where("TRUE"), "an expression other than"),
    "literal first": (where("1 = score"), "does not begin with a column"),
    "two columns": (where("article_id = country"), "an expression other than"),
    "row values": (
        where("(article_id, country) IN (('a', 'b'))"),
        "does not begin with a column",
    ),
    "empty list": (where("article_id IN ()"), "1 to 1000 values"),
    "integer for a text": (where("article_id = 1"), "a literal of the type of the column"),
    "text for an integer": (where("score = '1'"), "a literal of the type of the column"),
    "day for a text": (where("article_id = DATE '2019-01-01'"), "a literal of the type of the column"),
    "no day": (where("day >= '2019-02-30'"), "'YYYY-MM-DD'"),
    "moment for a day": (where("day >= '2019-01-01 00:00'"), "'YYYY-MM-DD'"),
    "no GROUP BY": (f"{HEAD} LIMIT 5", "GROUP BY with the selected columns"),
    "other grouping": (PLAIN.replace("BY article_id", "BY country"), "exactly the selected columns"),
    "wider grouping": (
        PLAIN.replace("BY article_id", "BY article_id, country"),
        "exactly the selected columns",
    ),
    "grouping by place": (PLAIN.replace("BY article_id", "BY 1"), "an expression other than"),
    "no count": ("SELECT article_id FROM engagement GROUP BY article_id LIMIT 5", "COUNT"),
    "count first": (
        "SELECT COUNT(*), article_id FROM engagement GROUP BY article_id",
        "an expression other than",
    ),
    "no dimension": ("SELECT COUNT(*) FROM engagement", "GROUP BY"),
    "five dimensions": (
        "SELECT article_id, country, score, active, day, COUNT(*) FROM engagement "
        "GROUP BY article_id, country, score, active, day",
        "1 to 4 columns",
    ),
    "dimension twice": (
        "SELECT country, country, COUNT(*) FROM engagement GROUP BY country, country",
        "each column to group by once",
    ),
    "distinct articles": (
        PLAIN.replace("DISTINCT member_id", "DISTINCT country"),
        "of the table's member column",
    ),
    "count of a column": (PLAIN.replace("DISTINCT member_id", "member_id"), "of the table's member column"),
    "count of one": (PLAIN.replace("DISTINCT member_id", "1"), "of the table's member column"),
    "distinct pairs": (PLAIN.replace("member_id", "member_id, country"), "of the table's member column"),
    "alias of a dimension": (PLAIN.replace("article_id,", "article_id AS a,", 1), "an alias other than"),
    "alias in a filter": (
        f"{HEAD} AS n WHERE n > 3 {TAIL}".replace("FROM engagement AS n", "AS n FROM engagement"),
        "lists no column",
    ),
    "alias like a column": (
        PLAIN.replace("member_id)", "member_id) AS article_id"),
        "an alias that is the name of a column",
    ),
    "ascending": (PLAIN.replace("DESC", "ASC"), "the count descending"),
    "dimension descending": (PLAIN.replace("DESC", "DESC, 1 DESC"), "columns ascending"),
    "dimension first": (PLAIN.replace("2 DESC", "1 DESC"), "the count first"),
    "other count": (PLAIN.replace("2 DESC", "COUNT(*) DESC"), "the count that is selected"),
    "unselected key": (PLAIN.replace("DESC", "DESC, country"), "and then selected columns"),
    "place outside": (PLAIN.replace("DESC", "DESC, 2"), "and then selected columns"),
    "place of an omitted count": (
        "SELECT country FROM engagement GROUP BY country ORDER BY 2 DESC",
        "the count first",
    ),
}


@pytest.mark.parametrize(("text", "reason"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_text_outside_the_subset_is_refused_with_its_reason(text: str, reason: str) -> None:
    """Whatever is not expressly accepted is refused, and named."""
    with pytest.raises((QuestionError, RefusedByPolicyError), match=reason):
        parse_sql(text, POLICY)


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
}


@pytest.mark.parametrize(("text", "rule"), BY_POLICY.values(), ids=BY_POLICY.keys())
def test_a_question_that_the_policy_forbids_is_refused_by_rule(text: str, rule: Rule) -> None:
    """The rule is told, and nothing of what the engine might hold beyond the policy."""
    with pytest.raises(RefusedByPolicyError) as refusal:
        resolve(parse_sql(text, POLICY), POLICY, now=0)
    assert refusal.value.rule is rule


@pytest.mark.parametrize(
    "condition",
    [
        "article_id = 'XYZZY' OR 1 = 1",
        "day >= 'XYZZY'",
        "score = 'XYZZY'",
        "article_id = XYZZY",
        "article_id = 'XYZZY' AND",
        "article_id = U&'XYZZY'",
        "XYZZY = 'XYZZY'",
        "member_id = 'XYZZY'",
        "article_id = 'XYZZY' AND article_id = 'YZZYX'",
        "article_id = '\0XYZZY'",
    ],
)
def test_no_error_repeats_what_was_asked(condition: str) -> None:
    """Errors end up in logs and must not carry anyone's filters, not even as the cause of an exception."""
    with pytest.raises((QuestionError, RefusedByPolicyError)) as refusal:
        resolve(parse_sql(where(condition), POLICY), POLICY, now=0)
    error = refusal.value
    assert "xyzzy" not in str(error).lower()
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
