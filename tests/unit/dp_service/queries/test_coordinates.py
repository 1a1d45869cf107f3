"""Numbers beside the count: what SQL asks for, which spellings mean one question, and what a row adds to each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random

import duckdb
import pytest

from dp_service.parameters.numbers import Computed, Plain
from dp_service.queries.asked_numbers import AskedNumber, Measure, Part
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql, with_places
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import AggregateFunction
from dp_service.values.bounds import Clamp, ValueBounds
from dp_service.values.quantum import Quantum, Value
from tests.support.member_sums import SummedColumn, group_sums
from tests.support.queries.sums import Added, weighted_numbers
from tests.support.typical import typically

_COLUMNS = """
      m: {type: string}
      text: {type: string, group_by: true, filter: [in, not_in]}
      n: {type: int64, group_by: true, filter: [in, not_in, range]}
      hidden: {type: int64}"""
POLICY = parse_policy(f"""
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: m
    contributions: {{bound: in_query, units: 10, sums: {{max_members: 1000, max_rows: 100000}}}}
    measures: {{distinct_members: true, rows: 6}}
    columns: {typically(2, _COLUMNS)}
    values:
      x: {{type: int64, lower: 2, upper: 10, row_lower: 0, row_upper: 10}}
      y: {{type: int64, lower: 0, upper: 10}}
  unbounded:
    member: m
    measures: {{distinct_members: true, events: {{tau: 3, tau_is: clipped}}}}
    columns: {_COLUMNS}
  counted:
    member: m
    contributions: {{bound: in_query, units: 10}}
    measures: {{distinct_members: true}}
    columns: {typically(2, _COLUMNS)}
""")


COARSE = parse_policy(f"""
epsilon_per: 0.001
delta: 1e-6
count_noise: gaussian
tables:
  counted:
    member: m
    contributions: {{bound: assumed, delta: 1, units: 1}}
    measures: {{distinct_members: true, events: {{tau: 40000, tau_is: clipped}}}}
    columns: {_COLUMNS}
""")


def resolved(sql: str) -> Resolution:
    """Return a question as the policy resolves it."""
    return resolve(parse_sql(sql, POLICY), POLICY, now=0)


def numbers(selected: str, table: str = "t") -> str:
    """Return a question for some numbers by text."""
    return f"SELECT text, {selected} FROM {table} GROUP BY text"  # noqa: S608


MEMBERS = "COUNT(DISTINCT m)"
SAME = {
    "members": (
        "COUNT(DISTINCT m), COUNT(DISTINCT m) FILTER (WHERE n > 3 AND text <> 'a')",
        "COUNT(DISTINCT m) FILTER (WHERE NOT (text = 'a' OR n < 4)), COUNT(DISTINCT m)",
        "COUNT(DISTINCT CASE WHEN text <> 'a' AND n > 3 THEN m END) AS few",
        "COUNT(DISTINCT m), COUNT(DISTINCT CASE WHEN n >= 4 AND text <> 'a' THEN m ELSE NULL END)",
        "100.0 * COUNT(DISTINCT m) FILTER (WHERE n > 3 AND text <> 'a') / NULLIF(COUNT(DISTINCT m), 0) AS part",
        "DISTINCTCOUNT(m), DISTINCTCOUNT(m) FILTER (WHERE text <> 'a' AND text <> 'a' AND n > 3)",
    ),
    "rows beside members": (
        f"{MEMBERS}, COUNT(*)",
        f"COUNT(*), {MEMBERS}",
        f"{MEMBERS}, SUM(1) AS all_of_them",
    ),
    "some rows": (
        "COUNT(*), COUNT(*) FILTER (WHERE n IN (1, 2))",
        "SUM(CASE WHEN n = 2 OR n = 1 THEN 1 ELSE 0 END)",
        "COUNT(*), COUNT(CASE WHEN n BETWEEN 1 AND 2 THEN 1 END)",
        "COUNT_IF(n IN (1, 2))",
        "SUM(IF(n = 1 OR n = 2, 1, 0)) AS few",
        "COUNT(CASE WHEN n IN (2, 1, 2) THEN m END)",
    ),
    "a sum": (
        f"{MEMBERS}, SUM(x) FILTER (WHERE n = 1)",
        f"SUM(CASE WHEN n = 1 THEN x ELSE 0 END), {MEMBERS}",
        f"{MEMBERS}, SUM(CASE WHEN n = 1 THEN x END) AS y",
        f"{MEMBERS}, SUM_IF(x, n = 1)",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_spellings_of_one_number_are_one_question(name: str) -> None:
    """CASE or FILTER, in any order, with any alias, and however the condition is written."""
    found = {canonical_bytes(resolved(numbers(each)).query) for each in SAME[name]}
    assert len(found) == 1
    specified = {str(resolved(numbers(each)).parameters.specified(drawn_by=(1, 1))) for each in SAME[name]}
    assert len(specified) == 1


def test_other_numbers_are_other_questions() -> None:
    """A condition of a number is none of the question, nor one of another number, nor that of an average."""
    texts = [
        *(each[0] for each in SAME.values()),
        MEMBERS,
        "AVG(x) FILTER (WHERE n = 1)",
        f"{MEMBERS}, SUM(x)",
        f"{MEMBERS}, SUM(x) FILTER (WHERE n = 2)",
        f"{MEMBERS}, COUNT(*) FILTER (WHERE n = 1)",
        f"{MEMBERS}, COUNT(*) FILTER (WHERE n = 1), SUM(x)",
        f"{MEMBERS}, {MEMBERS} FILTER (WHERE n = 1)",
    ]
    asked = [resolved(numbers(each)) for each in texts]
    asked.append(resolved("SELECT text, SUM(x) FROM t WHERE n = 1 GROUP BY text"))
    found = {(canonical_bytes(each.query), str(each.parameters.specified(drawn_by=(1, 1)))) for each in asked}
    assert len(found) == len(asked)


def test_a_question_without_numbers_with_conditions_has_the_order_and_the_shares_that_it_had() -> None:
    """Columns come by their names; a number with a condition comes behind them and takes a part of the rest."""
    sums = resolved(numbers(f"{MEMBERS}, SUM(x) FILTER (WHERE n = 2), COUNT(*), SUM(x)")).parameters.sums
    assert sums is not None
    assert [(each.name, each.function.value, each.condition) for each in sums.columns] == [
        ("x", "sum", 0),
        ("x", "sum", 1),
        ("", "rows", 0),
    ]
    assert [each.share for each in sums.columns] == [Fraction(1, 6)] * 3
    assert [each.form.parts for each in sums.asked] == [(1,), (2,), (0,)]
    assert (sums.columns[1].low, sums.columns[2].high) == (0, 3)


def test_a_table_without_values_counts_with_conditions() -> None:
    """Only a bound of contributions is needed; half of the units are those of the count."""
    sums = resolved(numbers(f"{MEMBERS} FILTER (WHERE n = 1)", "counted")).parameters.sums
    assert sums is not None
    assert (sums.share, sums.columns[0].share) == (Fraction(1, 2), Fraction(1, 2))


@pytest.mark.parametrize(
    ("quotient", "measure", "functions"),
    [
        ("SUM(x) / COUNT(*)", Measure.EVENTS, "sum rows"),
        ("100 * AVG(CASE WHEN n = 1 THEN 1 ELSE 0 END)", Measure.EVENTS, "rows rows"),
        ("AVG(CASE WHEN n = 1 THEN x ELSE 0 END)", Measure.EVENTS, "sum rows"),
        ("COUNT(*) * 1.0 / COUNT(DISTINCT m)", Measure.DISTINCT_MEMBERS, "rows members"),
        ("(SUM(x) / COUNT(DISTINCT m)) * 2", Measure.DISTINCT_MEMBERS, "sum members"),
        ("COUNT(CASE WHEN n = 1 THEN 1 END) / COUNT(*)", Measure.EVENTS, "rows rows"),
        ("COUNT(DISTINCT m) FILTER (WHERE n = 1) / (COUNT(DISTINCT m) / 100.0)", None, "members members"),
    ],
)
def test_a_quotient_by_the_count_is_a_view_of_its_number(
    quotient: str, measure: Measure | None, functions: str
) -> None:
    """It is of the same release as the number itself, and is divided by the count of its own measure."""
    query = parse_sql(numbers(f"{quotient} AS q"), POLICY)
    assert query.measure is (measure or Measure.DISTINCT_MEMBERS)
    (number,) = query.aggregates
    above, below = number.parts
    assert (f"{above.function.value} {below.function.value}", number.alias) == (functions, "q")
    assert below == query.the_count
    by_itself = replace(query, aggregates=(AskedNumber(Plain(above)),))
    first, second = (resolve(each, POLICY, now=0) for each in (query, by_itself))
    assert canonical_bytes(first.query) == canonical_bytes(second.query)
    of_release = [each.parameters.specified(drawn_by=(1, 1)) for each in (first, second)]
    assert of_release[0] == of_release[1]


SOME = "COUNT(*) FILTER (WHERE n = 1)"
OTHERS = "COUNT(*) FILTER (WHERE n = 2)"


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (f"{SOME} / {OTHERS}", "rows_where_1_per_rows_where_2"),
        (f"100.0 * {SOME} / NULLIF({OTHERS}, 0)", "100_times_rows_where_1_per_rows_where_2"),
        (f"({SOME}) - {OTHERS}", "rows_where_1_minus_rows_where_2"),
        (
            f"{SOME} - ({SOME.replace('1', '3')} - {OTHERS})",
            "rows_where_1_minus_rows_where_2_plus_rows_where_3",
        ),
        (f"COUNT(*) - {SOME}", "count_minus_rows_where_1"),
        (f"COUNT(*) / {SOME}", "count_per_rows_where_1"),
        (f"{MEMBERS}, COUNT(*) / {MEMBERS}", "rows_per_count"),
        (f"{MEMBERS}, SUM(x) / {MEMBERS} FILTER (WHERE n = 1)", "sum_x_of_rows_per_members_where_1"),
        ("AVG(CASE WHEN n = 1 THEN x ELSE 0 END)", "sum_x_of_rows_where_1_per_count"),
    ],
)
def test_a_number_of_several_is_a_view_of_their_release(number: str, name: str) -> None:
    """It has no part in the release, and a list may be in its order, or filtered by it, as it is written."""
    written = number.removeprefix(f"{MEMBERS}, ")
    sql = numbers(number)
    asked = parse_sql(f"{sql} HAVING {written} > 1 ORDER BY {written} DESC LIMIT 3", POLICY)
    assert (asked.ordered_by, [each.aggregate for each in asked.having]) == (0, [0])
    found = resolved(sql)
    sums = found.parameters.sums
    assert sums is not None
    parts = [part for each in asked.aggregates for part in each.parts if part != asked.the_count]
    plain = replace(parse_sql(sql, POLICY), aggregates=tuple(AskedNumber(Plain(part)) for part in parts))
    of_parts = resolve(plain, POLICY, now=0)
    assert canonical_bytes(of_parts.query) == canonical_bytes(found.query)
    assert of_parts.parameters.specified(drawn_by=(1, 1)) == found.parameters.specified(drawn_by=(1, 1))
    assert sums.asked[0].name == name


@pytest.mark.parametrize(
    "number",
    [
        "SUM(x) / SUM(x)",
        "SUM(x) - COUNT(*) + 1",
        "COUNT(*) - 2 * SUM(x)",
        "AVG(x) - AVG(x) FILTER (WHERE n = 1)",
        "(SUM(x) - COUNT(*)) / NULLIF(SUM(x) + COUNT(*), 0) * -1.5",
        "1 - SUM(x) / COUNT(*)",
        "SUM(y) / COUNT(*)",
        "AVG(x) * 1.2",
        f"{SOME} / COUNT(*) - {OTHERS} / COUNT(*)",
        "SUM(x) / SUM(SUM(x)) OVER ()",
        "SUM(SUM(x)) OVER ()",
    ],
)
def test_arithmetic_releases_each_of_its_numbers_once(number: str) -> None:
    """With the numbers themselves beside it, it is the same release: a repeat with other arithmetic is free."""
    found = parse_sql(numbers(f"{number} AS q"), POLICY)
    (asked,) = found.aggregates
    assert isinstance(asked.form, Computed)
    released = dict.fromkeys(part for part in asked.parts if part != found.the_count)
    assert len(asked.parts) == len(set(asked.parts))
    beside = tuple(AskedNumber(form) for form in asked.form.numbers if set(form.parts) <= set(released))
    first, second = (
        resolve(replace(found, aggregates=each), POLICY, now=0) for each in ((asked,), (asked, *beside))
    )
    assert canonical_bytes(first.query) == canonical_bytes(second.query)
    assert first.parameters.specified(drawn_by=(1, 1)) == second.parameters.specified(drawn_by=(1, 1))


@pytest.mark.parametrize("number", ["COUNT(*) * 100.0 / SUM(COUNT(*)) OVER ()", "7 + 2 * COUNT(*)"])
def test_what_is_computed_of_the_count_alone_is_the_release_of_the_count(number: str) -> None:
    """A list in its order is one in the order of the count."""
    plain, computed = (
        parse_sql(f"SELECT n, COUNT(*){beside} FROM t GROUP BY n ORDER BY {order} DESC LIMIT 3", POLICY)  # noqa: S608
        for beside, order in (("", "2"), (f", {number} AS q", "q"))
    )
    first, second = (resolve(each, POLICY, now=0) for each in (plain, computed))
    assert canonical_bytes(first.query) == canonical_bytes(second.query)
    assert first.parameters.specified(drawn_by=(1, 1)) == second.parameters.specified(drawn_by=(1, 1))
    assert (computed.ordered_by, computed.k) == (None, plain.k)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (numbers(f"{MEMBERS} FILTER (WHERE hidden = 1)"), "does not allow"),
        (numbers(f"{MEMBERS} FILTER (WHERE x = 1)"), "value column"),
        (numbers("COUNT(*) FILTER (WHERE n = 1)", "counted"), "does not offer COUNT"),
        (numbers(f"{MEMBERS}, SUM(x) FILTER (WHERE n = 1)", "counted"), "no values of a column"),
        (numbers("COUNT(*) FILTER (WHERE n = 1 AND n = 2)"), "contradict"),
        (numbers(f"{MEMBERS}, {SOME} / COUNT(*)"), "for a part of rows"),
        (numbers(f"{MEMBERS}, SUM(x) / COUNT(*)"), "an amount per row"),
        (numbers(f"{MEMBERS}, AVG(CASE WHEN n = 1 THEN x ELSE 0 END)"), "an amount per row"),
        (
            numbers(" + ".join(f"COUNT(*) FILTER (WHERE n = {n})" for n in range(17))),
            "at most 16 sums and counts",
        ),
        (f"{numbers('SUM(x) - COUNT(*)')} ORDER BY COUNT(*) - SUM(x)", "a number that is selected"),
        (numbers("SUM(x) / 0"), "a division by 0"),
        (numbers("SUM(x) * 1e10"), "from 10\\^-9 to 10\\^9"),
        (numbers("SUM(x) * 1e-10"), "from 10\\^-9 to 10\\^9"),
        (numbers(f"SUM(x) * {' * '.join(['7'] * 17)}"), "at most 16 numbers"),
        (
            numbers("SUM(x) * (1 - SUM(x) / (SUM(x) * SUM(x) * SUM(x)))"),
            "at most 4 numbers of the table in one",
        ),
        (numbers("2 * 3"), "a number of the table"),
        (numbers("MAX(x) / COUNT(*)"), "counts, SUM, AVG and numbers in arithmetic"),
        (f"{numbers('100.0 / COUNT(*)')} ORDER BY 100.0 / COUNT(*)", "the count that this is computed of"),
        (f"{numbers('COUNT(*) / 7')} HAVING COUNT(*) / 7 > 1", "of the count itself"),
        (numbers("SUM(x) / NULLIF(COUNT(*), 1)"), "expected 0"),
        (numbers("AVG(CASE WHEN n = 1 THEN x ELSE 1 END)"), "expected nothing behind ELSE"),
        (numbers("ROUND(SUM(x) / COUNT(*), 2)"), "leave it out and round"),
        (numbers("SUM(x * 2) / COUNT(*)"), "arithmetic is not accepted"),
        (numbers("COUNT(*) FILTER (n = 1)"), "expected WHERE"),
        (numbers("COUNT(CASE WHEN n = 1 THEN 1 ELSE 0 END)"), "expected nothing behind ELSE, which COUNT"),
        (numbers("SUM(CASE WHEN n = 1 THEN 1 ELSE 2 END)"), "expected ELSE 0"),
        (numbers("COUNT(CASE WHEN n = 1 THEN 1 WHEN n = 2 THEN 1 END)"), "a second WHEN"),
        (numbers("COUNT(CASE WHEN n = 1 THEN 1 END) FILTER (WHERE n = 2)"), "CASE beside another argument"),
        ("SELECT COUNT(DISTINCT m), COUNT(*) FROM unbounded", "bounds no contributions"),
        (
            f"{numbers(f'{MEMBERS} FILTER (WHERE n = 1)')} ORDER BY COUNT(*) DESC",
            "the count that is selected",
        ),
    ],
)
def test_what_the_policy_does_not_allow_is_refused(sql: str, said: str) -> None:
    """A condition of a number needs the leave that one in WHERE needs."""
    with pytest.raises((QuestionError, RefusedByPolicyError), match=said):
        resolved(sql)


def test_a_refused_condition_of_a_number_is_shown_where_it_stands() -> None:
    """As one in WHERE is; and one that no row meets, for its column leaves NULL out, is no part of another number."""
    for condition, said in (
        ("hidden = 1", "hidden: the policy"),
        ("n = 1 OR text IS NULL", "IS NULL of text"),
    ):
        sql = numbers(f"{MEMBERS}, {MEMBERS} FILTER (WHERE {condition})")
        with pytest.raises((QuestionError, RefusedByPolicyError), match=f"line 1, column 65: {said}"):
            with_places(sql, POLICY, partial(resolved, sql))


def test_an_average_of_some_rows_changes_no_sum_of_them() -> None:
    """It is of a count of its own, by which a member's rows are cut; a sum beside it is what it is alone."""
    total = "SUM(x) FILTER (WHERE n = 1)"
    alone, beside = (resolved(numbers(f"COUNT(*), {each}")) for each in (total, f"{total}, AVG{total[3:]}"))
    assert alone.query.values[0] in beside.query.values
    assert sorted(each.has_own_count for each in beside.query.values) == [False, True]


def test_a_number_whose_noise_cannot_be_drawn_is_refused() -> None:
    """The policy does not know which numbers are asked for at once."""
    with pytest.raises(QuestionError, match="whose noise can be drawn"):
        resolve(parse_sql(numbers(f"{MEMBERS}, COUNT(*)", "counted"), COARSE), COARSE, now=0)


def test_a_number_that_is_the_count_is_refused() -> None:
    """It would be drawn, and paid for, twice."""
    for measure, function in (
        (Measure.DISTINCT_MEMBERS, AggregateFunction.MEMBERS),
        (Measure.EVENTS, AggregateFunction.ROWS),
    ):
        with pytest.raises(QuestionError, match="the count itself"):
            HistogramQuery("t", ("text",), measure, aggregates=(AskedNumber(Plain(Part(function))),))
    with pytest.raises(QuestionError, match="expected a column"):
        Part(AggregateFunction.SUM)
    with pytest.raises(QuestionError, match="expected a column"):
        Part(AggregateFunction.ROWS, "x")


def column(rows: int, low: int, high: int, *, is_sum: bool = False, own: bool = False) -> SummedColumn:
    """Return how a number is added up, by the reference."""
    bounds = ValueBounds(Quantum(Fraction(1)), Clamp(0, rows), Clamp(low, high, is_centred=not is_sum))
    return SummedColumn(bounds, None, own)


def meets(n: int | None) -> bool:
    """Return what SQL says of n > 3."""
    return n is not None and n > 3


def counted(n: int | None, _: int | None) -> Value:
    """Return 1 for a row that meets the condition."""
    return int(meets(n))


def added(n: int | None, x: int | None) -> Value:
    """Return what a row adds to a sum; one without a value adds nothing."""
    return x if meets(n) and x is not None else 0


def averaged(n: int | None, x: int | None) -> Value:
    """Return the value of a row that an average is of; None: it is not of this row."""
    return x if meets(n) else None


def every(_: int | None, __: int | None) -> Value:
    """Return 1."""
    return 1


FORMS = [
    (MEMBERS, f"{MEMBERS} FILTER (WHERE n > 3)", counted, column(1, 0, 1)),
    (MEMBERS, "COUNT(*) FILTER (WHERE n > 3)", counted, column(1, 0, 3, is_sum=True)),
    (MEMBERS, "COUNT(*)", every, column(1, 0, 3, is_sum=True)),
    (MEMBERS, "SUM(x) FILTER (WHERE n > 3)", added, column(10, 0, 10, is_sum=True)),
    ("COUNT(*)", "COUNT(*) FILTER (WHERE n > 3)", counted, column(1, 0, 3)),
    ("COUNT(*)", "SUM(x) FILTER (WHERE n > 3)", added, column(10, 0, 10, is_sum=True)),
    ("COUNT(*)", "AVG(x) FILTER (WHERE n > 3)", averaged, column(10, 2, 10, own=True)),
]


def numbers_of(values: list[tuple[Value]], summed: SummedColumn, tau: int) -> list[Added]:
    """Return what a member adds to the count, to the sum, and to the sum's own count if it has one."""
    counted, totals = min(len(values), tau), summed.bounds.totals
    rows = tau if tau > 1 and totals.is_centred else None
    (found,) = group_sums([values], [replace(summed, has_own_count=True)], rows_of_member=rows).columns
    count = Added(counted, counted, tau)
    if not totals.is_centred:
        return [count, Added(found.centred, abs(found.centred) // 2, totals.largest)]
    if not summed.has_own_count:
        return [count, Added(found.centred, counted, tau)]
    assert found.count is not None
    return [count, Added(found.centred, found.count, tau, True), Added(found.count, found.count, tau)]


@pytest.mark.parametrize(("count", "number", "of_row", "summed"), FORMS)
def test_an_engine_adds_up_what_the_reference_does(
    count: str, number: str, of_row: Callable[[int | None, int | None], Value], summed: SummedColumn
) -> None:
    """Over rows of members with several texts, weighted by the question's rows and clipped among them alone."""
    chosen = Random(3)
    values = (None, -7, 0, 1, 5, 30, 2**63 - 1)
    rows = [
        (
            f"m{chosen.randrange(9)}",
            chosen.choice("abc"),
            chosen.choice((None, *range(8))),
            chosen.choice(values),
        )
        for _ in range(150)
    ]
    members: dict[str, dict[str, list[tuple[Value]]]] = defaultdict(lambda: defaultdict(list))
    for member, text, n, x in rows:
        members[member][text].append((of_row(n, x),))
    expected: dict[str, list[int]] = {}
    for texts in members.values():
        cells = {
            text: numbers_of(found, summed, 1 if count == MEMBERS else 3) for text, found in texts.items()
        }
        for text, found in weighted_numbers(cells, 2, 12).items():
            before = expected.get(text, [0] * len(found))
            expected[text] = [old + each.number for old, each in zip(before, found, strict=True)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (m VARCHAR, text VARCHAR, n BIGINT, x BIGINT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        answer = connection.execute(render(resolved(numbers(f"{count}, {number}")), "duckdb")).fetchall()
    assert {row[0]: list(row[1:]) for row in answer} == expected
