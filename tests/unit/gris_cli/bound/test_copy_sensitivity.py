"""What a member changes in answers of prepared copies, through the SQL that makes and asks them: no more than D."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product

import duckdb
import pytest

from dp_service.bounding.weights import least_kept
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import In, TimeRange
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution, resolve, second_look
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.bounded import Bounded
from dp_service.terms import GRID
from gris_cli.data.bound.bounded_copies import BoundedCopyRequest, weighted_rows
from gris_cli.data.bound.source import ROWS, Columns
from gris_cli.data.dialects import DUCKDB, READ_TIME

Pair = tuple[int, int, int]
"""A month, from 1 on, and the two values of an element."""

DELTA = 2
JANUARY, FEBRUARY, MARCH = (datetime.datetime(2024, month, 1, tzinfo=datetime.UTC) for month in (1, 2, 3))
MONTHS, ONE = TimeRange(JANUARY, MARCH), TimeRange(JANUARY, FEBRUARY)
POLICY = f"""
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: who
    time: {{column: day, type: date}}
    contributions:
      {{bound: prepared, delta: {DELTA}, units: 20, elements: [a, b], period: day, periods: month, longest_list: 75}}
    measures: {{distinct_members: true}}
    columns:
      who: {{type: int64}}
      day: {{type: date}}
      a: {{type: int64, group_by: true, filter: [in]}}
      b: {{type: int64, group_by: true, filter: [in], KNOWN}}
"""
ALL = list(product((1, 2), range(2), range(2)))
"""Two months with four elements in each."""


def asked(
    by: Iterable[str], range_: TimeRange, *, is_known: bool, filters: tuple[In, ...] = ()
) -> Resolution:
    """Return what a question resolves to; over a known domain of b no member is in more than a few of its elements."""
    policy = parse_policy(
        POLICY.replace("KNOWN", "domain: [0, 1, 2, 3, 4, 5, 6, 7]" if is_known else "null_value: 9")
    )
    question = HistogramQuery("t", tuple(by), Measure.DISTINCT_MEMBERS, filters, time_range=range_)
    return resolve(question, policy, now=0)


def distance_of(resolution: Resolution) -> int:
    """Return D, for which the noise of the counts is made."""
    kind = kind_of(resolution.parameters)
    assert isinstance(kind, Bounded)
    look = (
        kind.first_look.names_look if kind.first_look is not None and resolution.names is None else kind.look
    )
    assert look is not None
    return look.bound.squared_distance


@contextmanager
def copied(
    members: Sequence[Sequence[Pair]], change: Callable[[str], str]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a copy with these members, called -1 and so on, beside others of whom each element has one."""
    every = dict.fromkeys([*ALL, *(pair for rows in members for pair in rows)])
    rows = [(place + 1, *pair) for place, pair in enumerate(every)]
    rows += [(-place - 1, *pair) for place, held in enumerate(members) for pair in held]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE MACRO {READ_TIME}(t) AS t")
        columns = [list(column) for column in zip(*rows, strict=True)]
        connection.execute(
            f"CREATE TABLE {ROWS} AS SELECT who, make_date(2024, month, 5 + b % 9) AS day, a, b FROM "
            "(SELECT unnest($1) AS who, unnest($2) AS month, unnest($3) AS a, unnest($4) AS b)",
            columns,
        )
        request = BoundedCopyRequest("t", Columns("who", ("a", "b"), "day", "month"), DELTA)
        connection.execute(f"CREATE TABLE copy AS {change(weighted_rows(DUCKDB, request))}")
        yield connection


def moved(resolution: Resolution, *members: Sequence[Pair], change: Callable[[str], str] = str) -> list[int]:
    """Return by how much each member moves all counts, in square: what the query counts with it and without it."""
    query, size = change(render(resolution, "duckdb")), len(resolution.columns)
    with copied(members, change) as connection:

        def counts(condition: str) -> Counter[tuple[int, ...]]:
            connection.execute(f"CREATE OR REPLACE VIEW t AS SELECT * FROM copy WHERE who > 0 {condition}")
            return Counter({row[:size]: int(row[size]) for row in connection.execute(query).fetchall()})

        others, found = counts(""), []
        for place in range(len(members)):
            counted = counts(f"OR who = {-place - 1}")
            assert counted >= others
            found.append(sum((count - others[key]) ** 2 for key, count in counted.items()))
    return found


QUESTIONS = [
    pytest.param(
        by,
        range_,
        is_known,
        filters,
        id=f"{','.join(by)} {months} {'known' if is_known else 'unknown'} {which}",
    )
    for by in (("a", "b"), ("a",), ("b",))
    for range_, months in ((ONE, "one month"), (MONTHS, "two months"))
    for is_known in (True, False)
    for filters, which in (((), "all"), ((In("b", (1,)),), "some"))
]
MEMBERS = [
    tuple(pair for pair, is_held in zip(ALL, chosen, strict=True) if is_held)
    for chosen in product((False, True), repeat=len(ALL))
    if any(chosen)
]


@pytest.mark.slow
@pytest.mark.parametrize(("by", "range_", "is_known", "filters"), QUESTIONS)
def test_no_member_moves_counts_by_more_than_the_noise_is_for(
    by: tuple[str, ...], range_: TimeRange, filters: tuple[In, ...], *, is_known: bool
) -> None:
    """Every member of up to four elements in each of two months; some reach half of it or more."""
    resolution = asked(by, range_, is_known=is_known, filters=filters)
    assert 0 < max(moved(resolution, *MEMBERS)) <= distance_of(resolution)


SIZES = [1, 2, 3, 7, 49, 69, 70, 138, 139, 140, 141, 142, 625, 10_000]
"""How many elements members have; of 139 on, the weight is 12 or 11, and then less than what is counted."""


def many(size: int) -> list[Pair]:
    """Return a member with so many elements in the first month, and two of these in the second."""
    return [(1, place // 8, place % 8) for place in range(size)] + [
        (2, 0, place) for place in range(min(size, 2))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("by", [("a", "b"), ("a",), ("b",)], ids=",".join)
def test_a_member_of_any_size_moves_counts_by_no_more(by: tuple[str, ...]) -> None:
    """In one month and in two, over a known domain and an unknown one."""
    for range_, is_known in product((ONE, MONTHS), (False, True)):
        resolution = asked(by, range_, is_known=is_known)
        assert max(moved(resolution, *map(many, SIZES))) <= distance_of(resolution)


def test_small_weights_count_over_a_known_domain_alone() -> None:
    """Of a member with so many elements that its weight is less than 12."""
    size = DELTA * GRID**2 // least_kept(GRID) ** 2 + 2
    ends = (In("b", (0, 1, 2)), In("a", (0, 1)))
    assert moved(asked(("a", "b"), ONE, is_known=False, filters=ends), many(size)) == [0]
    assert moved(asked(("b",), ONE, is_known=True, filters=(ends[1],)), many(size)) > [0]


def test_a_second_look_moves_by_no_more_than_its_own_bound() -> None:
    """It counts the names, with weights over all elements."""
    resolution = second_look(asked(("a", "b"), MONTHS, is_known=False), ((0, 0), (0, 1), (1, 1)))
    assert 0 < max(moved(resolution, *MEMBERS)) <= distance_of(resolution)


WRONG = {
    "weights of several months add up": (
        ("a", "b"),
        MONTHS,
        "MAX(",
        "SUM(",
        [(1, 0, 0), (2, 0, 0), (1, 1, 1), (2, 1, 1)],
    ),
    "weights of several rows add up": (("a",), ONE, "MAX(", "SUM(", [(1, 0, 0), (1, 0, 1)]),
    "weights are rounded up": (("a", "b"), ONE, "FLOOR(SQRT", "CEIL(SQRT", [(1, 0, 0), (1, 0, 1), (1, 1, 0)]),
    "there are no weights": (("a", "b"), ONE, "held > 2", "false", [(1, 0, 0), (1, 0, 1), (1, 1, 0)]),
}


@pytest.mark.parametrize(("by", "range_", "old", "new", "rows"), WRONG.values(), ids=WRONG.keys())
def test_each_wrong_form_moves_counts_by_more(
    by: tuple[str, ...], range_: TimeRange, old: str, new: str, rows: list[Pair]
) -> None:
    """So the tests above see it."""
    resolution = asked(by, range_, is_known=False)
    (right,) = moved(resolution, rows)
    (wrong,) = moved(resolution, rows, change=lambda sql: sql.replace(old, new))
    assert right <= distance_of(resolution) < wrong
