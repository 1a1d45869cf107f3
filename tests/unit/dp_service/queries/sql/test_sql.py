"""SQL texts that are accepted: their structured form, and the query that each engine is asked."""

import hashlib
import re
from dataclasses import replace

import pytest

from dp_service.parameters.release import Listing
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import In
from dp_service.queries.render import render
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import Free
from tests.support.queries.accepted import ACCEPTED, Accepted
from tests.support.queries.policies import POLICY, resolved


def one_line(sql: str) -> str:
    """Return a query that is broken into lines for people as it is sent."""
    return " ".join(sql.split())


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_text_becomes_the_structured_form(case: Accepted) -> None:
    """SQL is only another spelling of the structured form."""
    assert parse_sql(case.sql, POLICY) == case.form


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_each_engine_is_asked_a_query_written_afresh(case: Accepted) -> None:
    """Nothing of the text but its literals, quoted anew, reaches an engine."""
    resolution = resolved(case.sql)
    assert render(resolution, "duckdb") == one_line(case.duckdb)
    without_lengths = re.sub(r" AND length\(.*?\) <= 1024", "", one_line(case.duckdb))
    # Pinot stores no NULL: what it stores where a member is missing is left out.
    by_value = re.sub(r"(\"\w+\") IS NOT NULL", r"\1 <> 'null'", one_line(case.pinot or without_lengths))
    assert render(resolution, "pinot") == case.pinot_prefix + by_value


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_text_has_the_fingerprint_that_it_always_had(case: Accepted) -> None:
    """Another fingerprint would be another release, with other noise and another charge, of every question."""
    digest = hashlib.sha256(canonical_bytes(resolved(case.sql).query)).hexdigest()
    assert digest[:16] == case.fingerprint


@pytest.mark.parametrize(
    ("plain", "parenthesised"),
    [
        ("score BETWEEN -1 AND 3", "score BETWEEN (-1) AND (3)"),
        ("score = 1", "((score)) = (1)"),
        ("score IN (1, 2)", "(score IN ((1), (2)))"),
        ("score > -1 AND score < 4", "(score > (-1)) AND ((score < 4))"),
    ],
)
def test_redundant_parentheses_say_nothing(plain: str, parenthesised: str) -> None:
    """Around values, columns and conditions alike."""
    head, tail = "SELECT article_id, COUNT(*) FROM engagement WHERE", "GROUP BY article_id LIMIT 1"
    assert parse_sql(f"{head} {plain} {tail}", POLICY) == parse_sql(f"{head} {parenthesised} {tail}", POLICY)


FULL = (
    "SELECT article_id, COUNT(DISTINCT member_id) FROM engagement WHERE score IN (0, 1) GROUP BY article_id "
    "ORDER BY 2 DESC LIMIT 5"
)


@pytest.mark.parametrize(
    "text",
    [
        FULL.replace("COUNT(DISTINCT member_id)", "DISTINCTCOUNT(member_id)"),
        FULL.replace("COUNT(DISTINCT member_id)", "distinctcounthll (member_id)"),
        FULL.replace("COUNT(DISTINCT member_id)", "APPROX_COUNT_DISTINCT(engagement.member_id)"),
        FULL.replace("ORDER BY 2", "ORDER BY DISTINCTCOUNT(member_id)"),
        FULL.replace("GROUP BY article_id", "GROUP BY 1"),
        FULL.replace("article_id", "engagement.article_id"),
        FULL.replace("article_id", '"engagement" . "article_id"'),
        FULL.replace("article_id", "e.article_id").replace("engagement", "engagement AS e"),
        FULL.replace("article_id", '"My table".article_id').replace("engagement", 'engagement "My table"'),
        FULL.replace("article_id,", 'article_id AS "article_id",'),
        FULL.replace("score IN (0, 1)", "score = 0 OR score = 1"),
        FULL.replace("score IN (0, 1)", "(score = 1 OR (score IN (0) OR engagement.score = 1))"),
    ],
)
def test_what_bi_tools_write_is_one_question(text: str) -> None:
    """Names of the distinct count, tables before columns, positions, and OR for IN change no byte of a question."""
    assert resolved(FULL) == resolved(text)


@pytest.mark.parametrize(
    "alias", ["Members (%)", "COUNT(DISTINCT member_id)", 'say "n"', "Anzahl für é 世", "filter", "\\"]
)
def test_an_alias_in_quotes_may_hold_any_characters(alias: str) -> None:
    """It names the counts for those who display them, also in ORDER BY, and is no part of the question."""
    quoted = '"' + alias.replace('"', '""') + '"'
    text = FULL.replace("member_id)", f"member_id) AS {quoted}").replace("ORDER BY 2", f"ORDER BY {quoted}")
    assert parse_sql(text, POLICY).count_alias == alias
    assert resolved(FULL) == resolved(text)


@pytest.mark.parametrize("alias", ["Artikel", "Artikel (%)", 'say "n"', "Länge é 世", "\\"])
def test_a_column_may_have_an_alias_of_any_characters(alias: str) -> None:
    """It names the column for those who display it, also in GROUP BY and ORDER BY, and is no part of the question."""
    quoted = '"' + alias.replace('"', '""') + '"'
    text = FULL.replace("article_id,", f"article_id AS {quoted},", 1)
    assert parse_sql(text, POLICY).aliases == (alias, *[None] * (len(parse_sql(FULL, POLICY).dimensions) - 1))
    by_alias = text.replace("GROUP BY article_id", f"GROUP BY {quoted}").replace(
        "2 DESC", f"2 DESC, {quoted}"
    )
    assert resolved(FULL) == resolved(text) == resolved(by_alias)


@pytest.mark.parametrize("alias", ["Article_Id", "ARTICLE_ID"])
def test_a_column_may_have_its_own_name_in_other_letters_as_its_alias(alias: str) -> None:
    """As analysts title their columns: it can mean no other column, for no two names differ in case alone."""
    text = FULL.replace("article_id,", f'article_id AS "{alias}",', 1)
    assert parse_sql(text, POLICY).aliases[0] == alias
    assert resolved(FULL) == resolved(text) == resolved(" ".join(["SELECT * FROM (", text, ") AS around"]))


def test_the_longest_conjunction_is_parsed() -> None:
    """A text of a thousand conditions meets the limit of filters, not the end of the stack."""
    conditions = " AND ".join(f"score<>{i % 10}" for i in range(600))
    head, tail = "SELECT article_id, COUNT(*) FROM engagement WHERE", "GROUP BY article_id LIMIT 1"
    with pytest.raises(ValueError, match="at most 128 conditions"):
        parse_sql(f"{head} {conditions} {tail}", POLICY)


def test_a_named_statement_hides_a_table_in_any_case_of_letters() -> None:
    """As engines read it: otherwise its conditions would be lost."""
    text = (
        "WITH Engagement AS (SELECT * FROM engagement WHERE country = 'DE') SELECT COUNT(*) FROM engagement"
    )
    assert parse_sql(text, POLICY).filters == (In("country", ("DE",)),)


@pytest.mark.parametrize(
    ("plain", "cast"),
    [
        ("article_id = 'a'", "article_id = 'a'::text"),
        ("article_id IN ('a', 'b')", "article_id IN (CAST('a' AS CHARACTER VARYING), 'b'::VARCHAR)"),
        ("score = -1", "score = -1::int4"),
        ("score < 3", "score < CAST(3 AS BIGINT)"),
        ("score = -1", "score = '-1'::int"),
        ("article_id = 'ab'", "article_id = 'a'::text || ('b' || '')"),
        ("article_id LIKE 'a%'", "article_id LIKE 'a' || '%'"),
        ("article_id IN ('a', 'b')", "article_id = ANY(ARRAY['a', 'b'])"),
        (
            "article_id IN ('a', 'b c', '\"', 'NULL')",
            """article_id = ANY(('{a, b c ,"\\"","NULL"}'::text[]))""",
        ),
        ("score IN (1, -2)", "score = ANY('{1,-2}'::int[])"),
        ("score IN (1, -2)", "score = ANY(ARRAY['1', -2]::BIGINT[])"),
        ("day = '2019-01-01'", "day = TIMESTAMP '2019-01-01 00:00:00+00:00'"),
        ("day = '2019-01-01'", "day = '2019-01-01T00:00:00+00:00'::timestamptz"),
        ("day = '2019-01-01'", "day = '2019-01-01 +00'"),
    ],
)
def test_a_literal_may_be_cast_to_what_it_is(plain: str, cast: str) -> None:
    """As drivers write their parameters."""
    head, tail = "SELECT article_id, COUNT(*) FROM engagement WHERE", "GROUP BY article_id LIMIT 1"
    assert parse_sql(f"{head} {plain} {tail}", POLICY) == parse_sql(f"{head} {cast} {tail}", POLICY)


@pytest.mark.parametrize(
    "cast",
    [
        *("'1.5'::int", "1::text", "1.5::int", "score::text", "'a'::varchar(1)", "'a'::timestamptz"),
        *(
            "'1' || score",
            "'1'::int || '2'",
            "ANY(ARRAY[1, '1.5']::int[])",
            "ANY('{1}')",
            "ANY(ARRAY[1]::int)",
        ),
    ],
)
def test_a_literal_is_cast_to_nothing_else(cast: str) -> None:
    """What would become another value, or a column."""
    head, tail = "SELECT article_id, COUNT(*) FROM engagement WHERE score =", "GROUP BY article_id LIMIT 1"
    with pytest.raises(QuestionError, match=r"accepted|expected|texts with an offset"):
        parse_sql(f"{head} {cast} {tail}", POLICY)


@pytest.mark.parametrize(
    ("plain", "cast"),
    [
        ("COUNT(*)", "CAST(COUNT(*) AS BIGINT)"),
        ("COUNT(DISTINCT member_id)", "(COUNT(DISTINCT member_id))::INT8"),
    ],
)
def test_a_count_may_be_cast_to_whole_numbers(plain: str, cast: str) -> None:
    """Wherever it stands: it is the same question, and so a free repeat."""
    text = "SELECT article_id, x AS n FROM engagement GROUP BY 1 HAVING x > 3.5 ORDER BY x DESC LIMIT 5"
    asked = text.replace("x", cast).replace("LIMIT 5", "LIMIT ('5'::int8)")
    assert parse_sql(text.replace("x", plain), POLICY) == parse_sql(asked, POLICY)


@pytest.mark.parametrize("order", ["2", "n", "COUNT(*)"])
@pytest.mark.parametrize("group", ["1, 3", "land, score", "country, 3"])
def test_what_a_statement_is_ordered_and_grouped_by_is_not_what_another_one_around_it_calls_so(
    order: str, group: str
) -> None:
    """Neither other aliases nor other positions of its columns change what its own clauses mean."""
    inner = (
        "SELECT country AS land, COUNT(*) AS n, score FROM engagement GROUP BY g HAVING n > 3 ORDER BY o DESC"
    )
    inner = f"{inner} LIMIT 2".replace("BY g", f"BY {group}").replace("BY o", f"BY {order}")
    outer = "SELECT score AS n, n AS land, land AS x FROM (Q) x".replace("Q", inner)
    plain, around = parse_sql(inner, POLICY), parse_sql(outer, POLICY)
    assert around.dimensions == ("score", "country")
    assert (around.ordered_by, around.having, around.by_element, around.k) == (
        plain.ordered_by,
        plain.having,
        plain.by_element,
        2,
    )


def test_having_may_name_an_alias_around_a_statement_that_renames() -> None:
    """An alias of the outer statement is no column of the inner one."""
    text = "SELECT land, COUNT(*) AS n FROM (SELECT country AS land FROM engagement) x GROUP BY land HAVING n > 5"
    plain = "SELECT country, COUNT(*) AS n FROM engagement GROUP BY country HAVING n > 5"
    assert parse_sql(text, POLICY).having == parse_sql(plain, POLICY).having


COUNTRIES = "SELECT country, COUNT(DISTINCT member_id) AS n FROM engagement GROUP BY country"


@pytest.mark.parametrize("order", ["n", "n ASC, country", "2", "COUNT(DISTINCT member_id) ASC NULLS LAST"])
def test_the_smallest_come_first_in_a_list_of_a_known_domain(order: str) -> None:
    """All of it is released, so the smallest are a part of the same release, at the same price."""
    smallest, largest = (resolved(f"{COUNTRIES} ORDER BY {each} LIMIT 2") for each in (order, "n DESC"))
    assert smallest.parameters.listing == Listing(in_element_order=False, smallest_first=True)
    assert replace(smallest.parameters, listing=None) == largest.parameters


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        (COUNTRIES.replace("country", "cohort") + " ORDER BY n LIMIT 2", "above a threshold"),
        (COUNTRIES.replace("country", "article_id") + " ORDER BY n LIMIT 2", "one by one"),
    ],
)
def test_the_smallest_of_what_is_not_all_released_are_refused(sql: str, found: str) -> None:
    """The smallest of an answer would be mistaken for the smallest that there are."""
    with pytest.raises(QuestionError, match=f"ORDER BY .. DESC: .*{found}"):
        resolved(sql)


def test_a_total_is_in_any_order() -> None:
    """Tools order what has one row."""
    total = "SELECT COUNT(DISTINCT member_id) AS n FROM engagement"
    assert parse_sql(total, POLICY) == parse_sql(f"{total} ORDER BY n", POLICY)


OF_ENGAGEMENT = ("member_id", "active", "article_id", "cohort", "country", "day", "score", "shown", "title")


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM engagement LIMIT 0", OF_ENGAGEMENT),
        ("SELECT e.* FROM engagement e WHERE 1 = 0", OF_ENGAGEMENT),
        ("SELECT * FROM (SELECT * FROM engagement WHERE active) AS v LIMIT 0", OF_ENGAGEMENT),
        ("SELECT * FROM (SELECT country AS c, member_id FROM engagement) AS v LIMIT 0", ("c", "member_id")),
        (
            "SELECT title, active, score, shown, day FROM engagement LIMIT 0",
            ("title", "active", "score", "shown", "day"),
        ),
        ('SELECT TRUE AS "_" FROM "engagement" WHERE 1 <> 1 LIMIT 0', ("_",)),
        ("SELECT 1, TRUE FROM engagement LIMIT 0", ("1", "true")),
    ],
)
def test_the_columns_of_a_table_are_told_and_no_others(sql: str, names: tuple[str, ...]) -> None:
    """Tools ask for a table's columns first; one that the policy only names is none."""
    question = parse_sql(sql, POLICY)
    assert question.free is Free.COLUMNS
    assert tuple(name for name, _ in question.probed) == names
    assert resolved(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM engagement LIMIT 1",
        "SELECT * FROM engagement WHERE secret = 'x' LIMIT 0",
        "SELECT secret FROM engagement LIMIT 0",
        "SELECT TRUE FROM engagement",
        "SELECT *, country FROM engagement LIMIT 0",
        "SELECT x.* FROM engagement LIMIT 0",
        "SELECT * FROM engagement WHERE 1 = 0 OR active",
    ],
)
def test_rows_and_other_columns_are_not_told(sql: str) -> None:
    """Whatever a text is of that has rows, or that the policy does not offer."""
    with pytest.raises((QuestionError, RefusedByPolicyError)):
        resolved(sql)


COUNTED = "SELECT country, COUNT(score) FROM engagement WHERE {} GROUP BY country"


@pytest.mark.parametrize(
    "condition", ["score IS NOT NULL", "NOT score = 3", "score > 1 AND (country = 'DE' OR score = 5)"]
)
def test_a_count_of_a_column_is_one_of_rows_where_the_others_are_left_out(condition: str) -> None:
    """Conditions on it alone leave them out, and so does grouping by it."""
    text = COUNTED.format(condition)
    assert parse_sql(text, POLICY) == parse_sql(text.replace("COUNT(score)", "COUNT(*)"), POLICY)
    by_it = "SELECT country, COUNT(country) FROM engagement GROUP BY country"
    assert parse_sql(by_it, POLICY) == parse_sql(by_it.replace("COUNT(country)", "COUNT(*)"), POLICY)


@pytest.mark.parametrize(
    "condition",
    ["score = 1 OR country = 'DE'", "CASE WHEN score = 3 THEN 1 ELSE 0 END = 0", "country = 'DE'", "1 = 1"],
)
def test_a_count_of_a_column_is_refused_where_rows_without_a_value_may_count(condition: str) -> None:
    """It would count them as well, as a count of rows does."""
    with pytest.raises(QuestionError, match="add column IS NOT NULL to WHERE"):
        parse_sql(COUNTED.format(condition), POLICY)
