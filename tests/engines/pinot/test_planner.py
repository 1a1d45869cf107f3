"""What is rendered for Pinot is read by the parser of Pinot 1.5.1, and means there what it means in DuckDB.

With GRIS_TEST_PINOT_VERSION from 1.0 on, a Pinot of that version with two servers answers in place of Calcite.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import duckdb
import pytest

from dp_service.queries.asked_numbers import DistinctValues, Measure
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render import render
from dp_service.queries.render.member_bounds import first_elements_of, min_count_of, weights_of
from dp_service.queries.resolution import resolve, second_look
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import Element, MemberValue
from tests.support.queries import quantiles, sums
from tests.support.queries.duckdb_rows import store
from tests.support.queries.lookups import expected, nasty
from tests.support.queries.reference import Row, bounded_answer, distinct_answer, relative_answer
from tests.support.queries.strategies import NOW
from tests.support.queries.sums import NUMBERS, WHOLES, policy
from tests.support.some import some

from .planner import Ask, Planned, Planner, RefusedError, Table, is_there

pytestmark = pytest.mark.skipif(
    not is_there(),
    reason="Pinot's parser needs a JDK 17 and Maven (Debian: openjdk-17-jdk-headless and maven)",
)

POLICY = parse_policy("""
epsilon_per: 1
delta: 1e-2
tables:
  visits:
    member: visitor
    measures: {distinct_members: true, events: {tau: 2, tau_is: clipped}}
    columns:
      page: {type: string, group_by: true, filter: [in, not_in]}
      score: {type: int64, group_by: true, filter: [in, not_in, range]}
      active: {type: bool, group_by: true, filter: [in], nulls: keep, null_value: false}
      day: {type: date, group_by: true, filter: [in, range]}
      seen: {type: timestamp, zone: Europe/Berlin, filter: [range]}
      region: {type: string, group_by: true, domain: ["DE", "it's", "Zürich"], delta: 1, nulls: keep, null_value: none}
""")
PAGES = ("a", "b'b", 'c"c', "d%d", "e\\e", "ü\U0001f600", "", "--", "SET x=1; ")
REGIONS = ("DE", "it's", "Zürich", "none")
FIRST_DAY = datetime.date(2024, 1, 1)
# In milliseconds since 1970, as Pinot stores timestamps.
SEEN = 1_704_063_600_000
QUESTIONS = (
    "SELECT page, COUNT(DISTINCT visitor) FROM visits GROUP BY page ORDER BY 2 DESC LIMIT 3",
    "SELECT page, COUNT(*) FROM visits GROUP BY page ORDER BY 2 DESC LIMIT 3",
    "SELECT page, score, active, day, COUNT(*) FROM visits GROUP BY page, score, active, day ORDER BY 5 DESC LIMIT 3",
    "SELECT region, COUNT(*) FROM visits GROUP BY region",
    "SELECT region, COUNT(DISTINCT visitor) FROM visits GROUP BY region",
    "SELECT page, COUNT(*) FROM visits WHERE page IN ('b''b', 'ü\U0001f600', 'e\\e', '--', 'SET x=1; ') GROUP BY page "
    "ORDER BY 2 DESC LIMIT 3",
    "SELECT score, COUNT(*) FROM visits WHERE page NOT IN ('a', '') AND score >= -3 AND score < 2 AND active = TRUE "
    "AND day BETWEEN DATE '2024-01-02' AND DATE '2024-01-05' GROUP BY score ORDER BY 2 DESC LIMIT 3",
    "SELECT page, COUNT(*) FROM visits WHERE seen >= DATE '2024-01-02' AND seen <= TIMESTAMP '2024-01-05 00:30:00' "
    "GROUP BY page ORDER BY 2 DESC LIMIT 3",
    "SELECT page, COUNT(*) FROM visits WHERE NOT (page LIKE '%''%' OR score > 1 AND score < 3) OR active "
    "OR seen < DATE '2024-01-02' GROUP BY page ORDER BY 2 DESC LIMIT 3",
    "SELECT COUNT(DISTINCT visitor) FROM visits WHERE page ILIKE '_Et x=%' OR page NOT LIKE '%_%'",
    "SELECT COUNT(DISTINCT visitor) FROM visits WHERE score >= 1",
    "SELECT COUNT(*) FROM visits WHERE page IN ('a', '--')",
    "SELECT COUNT(*) FROM visits WHERE score = 77",
)

BOUNDS = """
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  t:
    member: member
    measures: {distinct_members: true, rows: 6}
    contributions: {bound: in_query, units: 20, min_count: 2%s}
    columns:
      text: {type: string, group_by: true, typical: 3}
      number: {type: int64, group_by: true, typical: 3}
      flag: {type: bool, group_by: true, typical: 3, domain: [false, true]}
      day: {type: date, group_by: true, typical: 3}
"""
BOUNDING = parse_policy(BOUNDS % "")
TWO_LOOKS = parse_policy(BOUNDS % ", longest_list: 75")
DIMENSIONS = (("text",), ("number",), ("flag",), ("day",), ("text", "number"), ("day", "flag", "text"))
BOUNDED = tuple(
    HistogramQuery("t", dimensions, measure, k=3) for dimensions in DIMENSIONS for measure in Measure
)
VALUED = parse_policy((BOUNDS % "").replace("rows: 6", "rows: 6, distinct: {text: 2, number: 3, day: 2}"))
VALUES = tuple(
    HistogramQuery("t", by, DistinctValues(column))
    for by in ((), *DIMENSIONS)
    for column in ("text", "number", "day")
    if column not in by
)
# A second look counts these alone; days are numbers since 1970, as in what a first look has found.
NAMES: dict[tuple[str, ...], tuple[Element, ...]] = {
    ("text",): (("",), ("it's",), ("\\x41",), ("\U0001f600" * 128,)),
    ("number",): ((-(2**63) + 1,), (0,), (2**63 - 1,)),
    ("text", "number"): (("a", -1), ("\uffff", 0), ("--", 2**63 - 1)),
    ("day", "flag", "text"): ((18_728, False, "a"), (19_723, True, "--"), (19_723, False, 'c"c')),
}
SECOND = tuple(
    (HistogramQuery("t", by, measure, k=3), names) for by, names in NAMES.items() for measure in Measure
)
ODD_TEXTS = (
    "",
    "a",
    "\x01",
    "\x7f",
    "it's",
    'c"c',
    "\\x41",
    "--",
    "\u00df" * 300,
    "\ud7ff",
    "\uffff",
    "\U0001f600" * 128,
)


@dataclass(frozen=True)
class Asked:
    """What one question is rendered as, and what it came to on both engines."""

    pinot: Planned
    duckdb: list[tuple[object, ...]]


@dataclass(frozen=True)
class Found:
    """What each of these questions came to on Pinot's side, by the name of the questions."""

    questions: list[Planned]
    bounded: list[Planned]
    values: list[Planned]
    second: list[Planned]
    sums: list[Planned]
    quantiles: list[Planned]


def _rows() -> list[tuple[object, ...]]:
    """Return 600 visits, in which members come back to the same element up to eight times."""
    return [
        (
            f"v{i % 23}",
            PAGES[i % 7 * (i % 3) % 9],
            i % 6 - 3,
            i % 4 > 0,
            i % 8,
            REGIONS[i * i % 4],
            SEEN + i * 777_777,
        )
        for i in range(600)
    ]


def _odd_rows() -> list[Row]:
    """Return 900 rows with texts, numbers and days at the ends of what there is, of members with many of them."""
    chosen = random.Random(22)
    numbers = (-(2**63) + 1, 2**63 - 1, 0, -1, *(chosen.randrange(-(2**62), 2**62) for _ in range(4)))
    days = (
        datetime.date.min,
        datetime.date.max,
        *(FIRST_DAY - datetime.timedelta(1000 * i) for i in range(6)),
    )
    return [
        Row(
            chosen.choice(("m", "\u00e9", "\U0001f600" * 200, "0")) + str(chosen.randrange(9)),
            chosen.choice(ODD_TEXTS),
            chosen.choice(numbers),
            chosen.choice((True, False)),
            chosen.choice(days),
        )
        for _ in range(900)
    ]


def _odd_table() -> Table:
    types = ("VARCHAR", "VARCHAR", "BIGINT", "BOOLEAN", "INTEGER")
    rows = [tuple(map(_as_in_pinot, row)) for row in _odd_rows()]
    return Table(dict(zip(Row._fields, types, strict=True)), rows)


def _on_duckdb(queries: Sequence[str]) -> list[list[tuple[object, ...]]]:
    with duckdb.connect() as engine:
        engine.execute(
            "CREATE TABLE visits (visitor TEXT, page TEXT, score BIGINT, active BOOLEAN, day DATE, region TEXT, "
            "seen TIMESTAMP)"
        )
        rows = [
            (*row[:4], FIRST_DAY + datetime.timedelta(int(str(row[4]))), row[5], _timestamp(row[6]))
            for row in _rows()
        ]
        store(engine, "visits", rows)
        return [[tuple(map(_as_in_pinot, row)) for row in engine.execute(sql).fetchall()] for sql in queries]


def _timestamp(milliseconds: object) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=int(str(milliseconds)))


def _as_in_pinot(value: object) -> object:
    return (value - datetime.date(1970, 1, 1)).days if isinstance(value, datetime.date) else value


def _table() -> Table:
    names = ("visitor", "page", "score", "active", "day", "region", "seen")
    types = ("VARCHAR", "VARCHAR", "BIGINT", "BOOLEAN", "INTEGER", "VARCHAR", "TIMESTAMP")
    epoch = (FIRST_DAY - datetime.date(1970, 1, 1)).days
    rows = [(*row[:4], epoch + int(str(row[4])), *row[5:]) for row in _rows()]
    return Table(dict(zip(names, types, strict=True)), rows)


SUMMED = {
    "dropped": policy(table="dropped"),
    "kept": policy(whole=WHOLES[1], number=NUMBERS[1], typical=3, table="kept"),
    "doubled": policy(whole=WHOLES[2], number=NUMBERS[2], min_count=2, table="doubled"),
    "apart": policy(whole=WHOLES[3], number=NUMBERS[3], table="apart"),
}
SUMS = tuple(
    sums.asked(*columns, by=by, table=table, measure=measure)
    for table in SUMMED
    for columns, measure in (
        (("whole",), Measure.DISTINCT_MEMBERS),
        (("number", "whole"), Measure.DISTINCT_MEMBERS),
        (("number", "whole"), Measure.EVENTS),
    )
    for by in ((), ("text",))
)


SPREAD = {
    "rows": (MemberValue.ROWS, quantiles.policy(table="rows")),
    "means": (
        MemberValue.MEAN,
        quantiles.policy(whole=quantiles.WHOLES[1], number=quantiles.NUMBERS[1], typical=3, table="means"),
    ),
    "totals": (
        MemberValue.TOTAL,
        quantiles.policy(whole=quantiles.WHOLES[2], number=quantiles.NUMBERS[2], typical=1, table="totals"),
    ),
    "largest": (MemberValue.LARGEST, quantiles.policy(table="largest")),
}
QUANTILES = tuple(
    quantiles.asked(column, by=by, of=of, table=table)
    for table, (of, _) in SPREAD.items()
    for column in ("whole", "number")
    for by in ((), ("text",))
)


def _summed_table(policy: Policy, table: str) -> Table:
    types = ("VARCHAR", "VARCHAR", "BIGINT", "DOUBLE")
    rows = sums.as_in_pinot(policy, table, sums.odd_rows(500))
    return Table(dict(zip(sums.Row._fields, types, strict=True)), rows)


@pytest.fixture(scope="module")
def found(planned: Ask) -> Found:
    """What every question came to on Pinot's side."""
    resolutions = [resolve(parse_sql(sql, POLICY), POLICY, now=0) for sql in QUESTIONS]
    resolutions += [resolve(query, BOUNDING, now=0) for query in BOUNDED]
    resolutions += [resolve(query, VALUED, now=0) for query in VALUES]
    resolutions += [second_look(resolve(query, TWO_LOOKS, now=0), names) for query, names in SECOND]
    resolutions += [resolve(query, SUMMED[query.table], now=0) for query in SUMS]
    resolutions += [resolve(query, SPREAD[query.table][1], now=0) for query in QUANTILES]
    tables = {"visits": _table(), "t": _odd_table()}
    policies = SUMMED | {name: policy for name, (_, policy) in SPREAD.items()}
    tables |= {name: _summed_table(policy, name) for name, policy in policies.items()}
    answers = iter(planned(tables, [render(each, "pinot") for each in resolutions]))
    return Found(
        *(
            list(islice(answers, len(group)))
            for group in (QUESTIONS, BOUNDED, VALUES, SECOND, SUMS, QUANTILES)
        )
    )


@pytest.fixture(scope="module")
def asked(found: Found) -> list[Asked]:
    """Every question of `QUESTIONS`, asked of both."""
    resolutions = [resolve(parse_sql(sql, POLICY), POLICY, now=0) for sql in QUESTIONS]
    wanted = _on_duckdb([render(each, "duckdb") for each in resolutions])
    return [Asked(pinot, duck) for pinot, duck in zip(found.questions, wanted, strict=True)]


def test_every_option_is_one_that_pinot_knows(asked: list[Asked]) -> None:
    """A misspelt option would be ignored without a word, and counts would be wrong."""
    assert not any(each.pinot.unknown_options for each in asked)
    assert all(each.pinot.options["numGroupsLimit"] == "100000000" for each in asked)


def test_no_broker_decides_what_becomes_of_nulls(asked: list[Asked]) -> None:
    """A broker's own default stands only where the query does not say what it wants."""
    assert {"false"} == {each.pinot.options.get("enableNullHandling") for each in asked}


def test_only_clipped_questions_go_to_the_multi_stage_engine(asked: list[Asked]) -> None:
    """Pinot's parser sees the option where the policy clips, and nowhere else."""
    is_multistage = ["useMultistageEngine" in each.pinot.options for each in asked]
    assert ["COUNT(*)" in question for question in QUESTIONS] == is_multistage


def test_a_query_means_the_same_to_calcite_and_to_duckdb(asked: list[Asked]) -> None:
    """Counts, their clipping, filters, quoted texts and the total order, all of them."""
    assert [each.duckdb for each in asked] == [each.pinot.rows for each in asked]
    assert all(each.duckdb for each in asked)


def test_counts_are_whole_numbers(asked: list[Asked]) -> None:
    """A clipped sum is no float, as LEAST would make it; Pinot's single-stage engine counts members in 32 bits."""
    for question, each in zip(QUESTIONS, asked, strict=True):
        kinds = {"BIGINT"} if "COUNT(*)" in question else {"BIGINT", "INTEGER"}
        name, kind = each.pinot.columns[-1]
        assert (name, kind in kinds) == ("gris_count", True), (question, kind)


def test_a_query_for_distinct_values_counts_what_members_of_the_reference_keep(found: Found) -> None:
    """Two windows, one inside the other, over texts, numbers and days at the ends of what there is."""
    rows = _odd_rows()
    for query, answer in zip(VALUES, found.values, strict=True):
        resolution = resolve(query, VALUED, now=0)
        bound, least = first_elements_of(resolution), min_count_of(resolution) or 0
        wanted = distinct_answer(query, VALUED, rows, bound, least=least, now=0)
        assert wanted
        assert sorted(tuple(map(_as_in_pinot, row)) for row in wanted) == sorted(answer.rows)
        assert answer.columns[-1][1] == "BIGINT"


def test_a_bounded_query_counts_what_the_reference_counts(found: Found) -> None:
    """Pinot computes the weights of the reference, whatever values elements are, and counts members once."""
    rows = _odd_rows()
    for query, answer in zip(BOUNDED, found.bounded, strict=True):
        bound = weights_of(resolve(query, BOUNDING, now=0))
        if bound is None:
            wanted = relative_answer(query, BOUNDING, rows, now=0)
        else:
            wanted = bounded_answer(query, BOUNDING, rows, bound, now=0)
        assert wanted
        assert sorted(tuple(map(_as_in_pinot, row)) for row in wanted) == sorted(answer.rows)


def test_a_second_look_counts_the_names_alone(found: Found) -> None:
    """Members are bounded within the names, however these are written, and no count is too small."""
    for (query, names), answer in zip(SECOND, found.second, strict=True):
        bound = weights_of(second_look(resolve(query, TWO_LOOKS, now=0), names))
        assert bound is not None
        assert bound.min_count is None
        rows = [row for row in _odd_rows() if _element(row, query) in names]
        wanted = bounded_answer(query, TWO_LOOKS, rows, bound, now=0)
        assert sorted(tuple(map(_as_in_pinot, row)) for row in wanted) == sorted(answer.rows)
        assert wanted


def _element(row: Row, query: HistogramQuery) -> tuple[object, ...]:
    return tuple(_as_in_pinot(getattr(row, name)) for name in query.plain_dimensions)


def test_a_bounded_query_fails_rather_than_leave_rows_out(found: Found) -> None:
    """Pinot knows the options by which a window that is too large is an error, and counts are integers."""
    for answer in some((*found.bounded, *found.second)):
        assert not answer.unknown_options
        assert ("THROW", "100000000") == (
            answer.options["windowOverflowMode"],
            answer.options["maxRowsInWindow"],
        )
        assert {("gris_count", "BIGINT")} <= {*answer.columns}
    # Flags are known, so that counts of members are released relative to the total, and members are counted besides.
    shifted = [answer for answer in found.bounded if ("gris_first_count", "BIGINT") in answer.columns]
    assert len(shifted) == 2


def test_a_query_sums_what_the_reference_sums(found: Found) -> None:
    """Halves, NaN, infinities and 2^53 + 1 become the same whole numbers, of the same members that are counted."""
    for query, answer in zip(SUMS, found.sums, strict=True):
        assert not answer.unknown_options
        assert {"BIGINT"} == {kind for name, kind in answer.columns if name != "text"}
        wanted = sums.reference(query, SUMMED[query.table], sums.odd_rows(500))
        assert wanted == answer.rows


def test_a_query_finds_the_cells_that_the_reference_finds(found: Found) -> None:
    """Whichever value of a member counts: by a formula, by a search among the edges, and by a hash of rows."""
    for query, answer in zip(QUANTILES, found.quantiles, strict=True):
        assert not answer.unknown_options
        kinds = {name: kind for name, kind in answer.columns if name != "text"}
        assert set(kinds) == {"gris_cell", "gris_count"}
        assert set(kinds.values()) <= {"INTEGER", "BIGINT"}
        assert quantiles.reference(query, SPREAD[query.table][1], sums.odd_rows(500)) == answer.rows


def test_no_number_becomes_a_filtered_one(found: Found) -> None:
    """A filtered sum is NULL where no row passes: one value decided whether the answer of its group can be read."""
    groups = (found.questions, found.bounded, found.second, found.sums, found.quantiles)
    assert not [each for group in groups for each in group if each.filtered]


def test_a_number_that_becomes_a_filtered_one_is_noticed(planner: Planner) -> None:
    """A sum of CASE .. ELSE 0 END is one, and COALESCE takes no filter away."""
    number = 'SUM(CASE WHEN "score" > 0 THEN "score" ELSE 0 END)'
    queries = [f'SELECT {each} FROM "visits" GROUP BY "page"' for each in (number, f"COALESCE({number}, 0)")]  # noqa: S608
    assert [each.filtered for each in planner.planned({"visits": _table()}, queries)] == [1, 1]


def test_what_pinot_does_not_take_is_noticed(planner: Planner) -> None:
    """A misspelt option is found, and so is SQL that is not Pinot's."""
    tables = {"visits": _table()}
    (misspelt,) = planner.planned(tables, ['SET minServerTrimSize=-1; SELECT "page" FROM "visits"'])
    assert ["minServerTrimSize"] == misspelt.unknown_options
    with pytest.raises(RefusedError, match="no_such_column"):
        planner.planned(tables, ['SELECT "no_such_column" FROM "visits"'])
    # One question leaves nothing to the next.
    with pytest.raises(RefusedError, match="visits"):
        planner.planned({}, ['SELECT "page" FROM "visits"'])


def test_pinot_counts_what_is_looked_up(planned: Ask) -> None:
    """With a query inside and without one, bounded and not, with and without an element for other keys."""
    texts, answers = [], []
    for kept in (False, True):
        for bounded in (False, True):
            policy, rows, questions = nasty(kept=kept, bounded=bounded)
            texts += [render(resolve(each, policy, now=NOW), "pinot") for each in questions]
            answers += [expected(each, policy, rows) for each in questions]
    held = [(row.member, row.text) for row in rows]
    found = planned({"t": Table({"member": "VARCHAR", "text": "VARCHAR"}, held)}, texts)
    assert [each.unknown_options for each in found] == [[]] * len(texts)
    assert [[tuple(row) for row in each.rows] for each in found] == answers


COPIED = parse_policy("""
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  t:
    member: member
    measures: {distinct_members: true}
    contributions: {bound: prepared, delta: 2, units: 20, elements: [text, number], period: all}
    columns:
      text: {type: string, group_by: true}
      number: {type: int64, group_by: true}
""")


def test_the_weights_of_a_prepared_copy_are_those_that_duckdb_adds_up(planned: Ask) -> None:
    """One of a row each by all columns of the copy, and by fewer the largest of a member's."""
    random_ = random.Random(4)
    rows = [
        (f"m{member}", text, number, random_.randrange(1, 101))
        for member in range(30)
        for text, number in random_.sample([(text, number) for text in PAGES for number in range(5)], 9)
    ]
    questions = [
        resolve(HistogramQuery("t", by, Measure.DISTINCT_MEMBERS), COPIED, now=NOW)
        for by in (("text", "number"), ("text",), ("number",))
    ]
    columns = {"member": "VARCHAR", "text": "VARCHAR", "number": "BIGINT", "weight": "INTEGER"}
    found = planned({"t": Table(columns, rows)}, [render(each, "pinot") for each in questions])
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in columns.items())})"
        )
        store(connection, "t", rows)
        wanted = [connection.execute(render(each, "duckdb")).fetchall() for each in questions]
    assert all(wanted)
    assert [[tuple(row) for row in each.rows] for each in found] == wanted
