"""A member changes its own element of funnels and first times, and no other, through the real SQL and a real DuckDB."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution, resolve
from dp_service.releases.kinds import kind_of
from tests.support.examples import examples
from tests.support.queries.buckets import NOW, TYPES, UTC, Row, arrow_table, policy
from tests.support.queries.of_members import END, START, STEPS, Asked

TWO = tuple(STEPS)[:2]
EDGES = [START, END, *(datetime.datetime(2024, month, 1, tzinfo=UTC) for month in range(1, 8))]
ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from([None, "ada", "bob", "eve"]),
        st.none()
        | st.builds(
            lambda edge, hours: edge + datetime.timedelta(hours=hours),
            st.sampled_from(EDGES),
            st.integers(-50, 50),
        ),
        st.sampled_from([None, "a", "b", "c"]),
        st.just(1),
    ),
    max_size=14,
)
IN_ORDER = (TWO, None, False, False, False, True)
FORMS: list[Any] = [(TWO, None, False, False), IN_ORDER, (TWO, BucketLength.MONTH, True, False)]
FORMS += [
    ((), length, first, later) for length in BucketLength for first, later in [(True, False), (True, True)]
]
FORMS = [each for each in FORMS if each[1] not in (BucketLength.DAY, BucketLength.YEAR)]


def faults(
    resolution: Resolution, rows: Sequence[Row], kind: str, *, wrong: Callable[[str], str] = lambda sql: sql
) -> list[str]:
    """Return what some member changes beyond what is charged; `wrong` changes the query."""
    parameters = resolution.parameters
    sql = wrong(render(resolution, "duckdb"))
    whole = met(sql, rows, kind, resolution)
    found: list[str] = []
    for member in ("ada", "bob", "eve"):
        without = met(sql, [row for row in rows if row.member != member], kind, resolution)
        changes = {key: whole.get(key, 0) - without.get(key, 0) for key in {*whole, *without}}
        moved = [change for change in changes.values() if change]
        if len(moved) > (parameters.delta_l0 or 0):
            found.append("a member changes more elements than Delta")
        if any(not 0 <= change <= 1 for change in moved):
            found.append("a member changes an element by more than itself")
        cost = kind_of(parameters).mechanism.worst_case_cost().information
        if parameters.contributions is None and sum(map(abs, moved)) > cost:
            found.append("a member's change is worth more than is charged")
    return found


def met(sql: str, rows: Sequence[Row], kind: str, resolution: Resolution) -> dict[tuple[Any, ...], int]:
    """Return the counts of a query within the domain."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("t", arrow_table(rows, kind))
        answer = database.execute(sql).fetchall()
    size, domain = len(resolution.columns), set(resolution.parameters.domain or ())
    counts = {tuple(map(_scalar, row[:size])): int(row[size]) for row in answer}
    return {element: count for element, count in counts.items() if element in domain}


def _scalar(value: Any) -> Any:
    return value.toordinal() - 719_163 if isinstance(value, datetime.date) else value


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(
    rows=ROWS,
    kind=st.sampled_from(list(TYPES)),
    form=st.sampled_from(FORMS),
    with_text=st.booleans(),
    block=st.sampled_from(["", "contributions: {bound: in_query, units: 10}"]),
)
def test_a_member_changes_its_own_elements_alone(
    rows: list[Row], kind: str, form: Any, with_text: bool, block: str
) -> None:
    """By no more than Delta and the price, where the query bounds members and where the policy does."""
    asked = replace(Asked(kind, *form), with_text=with_text)
    resolution = resolve(asked.question, policy(kind, asked.zone, contributions=block, typical=1), now=NOW)
    assert faults(resolution, rows, kind) == []


# Ada meets one step and Bob the other; Ada comes first, and both come in many months.
HEAVY = [Row("ada", edge, "a") for edge in EDGES[2:]] + [Row("bob", edge, "b") for edge in EDGES[4:]]


def reached_together(sql: str) -> str:
    """Count the rows that meet a step over all members, and not over one."""
    return sql.replace("SUM(CAST", "SUM(SUM(CAST").replace("AS BIGINT)) AS", "AS BIGINT))) OVER () AS")


def first_of_all(sql: str) -> str:
    """Take the first time of all members, which each of them can move."""
    return sql.replace('OVER (PARTITION BY "member")', "OVER ()")


def multiplied(sql: str) -> str:
    """Join each member with all of its rows, and count them."""
    joined = sql.replace('WHERE "gris_met_1"', 'JOIN "t" USING ("member") WHERE "gris_met_1"')
    return joined.replace('COUNT(DISTINCT "member")', "COUNT(*)")


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ((TWO, None, False, False), reached_together),
        (((), BucketLength.MONTH, True, True), first_of_all),
        ((TWO, None, False, False), multiplied),
        (IN_ORDER, first_of_all),
    ],
)
def test_a_query_in_which_a_member_changes_more_is_found(form: Any, wrong: Callable[[str], str]) -> None:
    """The ways in which such a query could be wrong."""
    resolution = resolve(Asked("timestamps", *form).question, policy(contributions=""), now=NOW)
    sql = render(resolution, "duckdb")
    assert wrong(sql) != sql
    assert faults(resolution, HEAVY, "timestamps") == []
    assert faults(resolution, HEAVY, "timestamps", wrong=wrong) != []
