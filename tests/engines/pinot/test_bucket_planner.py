"""Buckets of time are read by the parser of Pinot 1.5.1, and its `dateTrunc` puts rows where Python's calendar does."""

from __future__ import annotations

import datetime

import pytest

from dp_service.queries.elements import date_of
from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from dp_service.queries.time_parts import TimePart
from tests.support.examples import long_but
from tests.support.queries.buckets import (
    MICROSECOND,
    NOW,
    TYPES,
    UTC,
    Row,
    asked,
    counted,
    functions,
    members_of_hours,
    policy,
    sorted_by,
    sorted_in,
    stored,
)

from .planner import Ask, Planned, Table, is_there

pytestmark = pytest.mark.skipif(
    not is_there(),
    reason="Pinot's parser needs a JDK 17 and Maven (Debian: openjdk-17-jdk-headless and maven)",
)

HOUR = datetime.timedelta(hours=1)
START, END = (datetime.datetime(2023, 12, 20, 5, tzinfo=UTC), datetime.datetime(2024, 11, 2, 9, tzinfo=UTC))
KINDS = ("days", "numbered days", "timestamps", "seconds", "milliseconds", "microseconds")
UNBOUNDED, BOUNDED = "", "contributions: {bound: in_query, units: 10}"
EDGES = [
    datetime.datetime(2024, 3, 31, 1, tzinfo=UTC),
    datetime.datetime(2024, 10, 27, 1, tzinfo=UTC),
    *(datetime.datetime(2024, month, 1, tzinfo=UTC) for month in range(1, 11)),
]


def rows() -> list[Row]:
    """Return a member for each of many times; half of them are around midnights and changes of clocks."""
    times = [START + 31 * HOUR * step for step in range(-3, 250)]
    times += [
        edge + hours * HOUR - more * MICROSECOND
        for edge in EDGES
        for hours in (-2, -1, 0)
        for more in (0, 1000)
    ]
    return [Row(str(place), time) for place, time in enumerate(times)]


def queries(kind: str, block: str) -> list[str]:
    """Return the query for each function of time."""
    start, end = within(kind)
    under = policy(kind, "UTC" if "days" in kind else "Europe/Berlin", contributions=block, typical=400)
    return [render(resolve(asked(each, start, end), under, now=NOW), "pinot") for each in functions(kind)]


def within(kind: str) -> tuple[datetime.datetime, datetime.datetime]:
    """Return the range, for days from midnight to midnight."""
    if "days" not in kind:
        return START, END
    return START.replace(hour=0), END.replace(hour=0)


def table(kind: str) -> Table:
    """Return the rows as Pinot stores them: days and timestamps as numbers, the latter in milliseconds."""
    of = "milliseconds" if kind == "timestamps" else kind
    held = [(row.member, stored(row.at, of)) for row in rows() if row.at is not None]
    return Table({"member": "VARCHAR", "at": "INTEGER" if kind == "days" else "BIGINT"}, held)


@pytest.mark.parametrize("kind", long_but(lambda kind: kind in ("days", "timestamps"), KINDS))
def test_pinot_counts_in_the_buckets_of_the_calendar(planned: Ask, kind: str) -> None:
    """In every type of column, for every function, with a query inside and without one."""
    answers: list[Planned] = planned({"t": table(kind)}, queries(kind, UNBOUNDED) + queries(kind, BOUNDED))
    of = "milliseconds" if kind == "timestamps" else kind
    for function, answer in zip([*functions(kind), *functions(kind)], answers, strict=True):
        assert answer.unknown_options == []
        is_part = isinstance(function, TimePart)
        name = f"gris_{function}" if is_part else "gris_bucket"
        assert [name for name, _ in answer.columns][:2] == [name, "gris_count"]
        found = {int(each) if is_part else date_of(int(each)): count for each, count, *_ in answer.rows}  # type: ignore[call-overload]
        assert found == counted(rows(), function, within(kind), "Europe/Berlin", of)


@pytest.mark.parametrize("kind", long_but(lambda kind: kind in ("days", "timestamps"), KINDS))
def test_pinot_meets_conditions_on_parts_as_the_calendar_does(planned: Ask, kind: str) -> None:
    """In CASE and in WHERE, with a query inside and without one."""
    under = [
        policy(kind, "UTC" if "days" in kind else "Europe/Berlin", contributions=block, typical=400)
        for block in (UNBOUNDED, BOUNDED)
    ]
    parts = [each for each in functions(kind) if isinstance(each, TimePart)]
    asked_for = [
        resolve(each, policy, now=NOW)
        for policy in under
        for part in parts
        for each in sorted_by(part, *within(kind))
    ]
    answers = planned({"t": table(kind)}, [render(each, "pinot") for each in asked_for])
    of = "milliseconds" if kind == "timestamps" else kind
    of_hours = members_of_hours(rows(), within(kind), "Europe/Berlin", TYPES[of].step)
    expected = [each for part in [*parts, *parts] for each in sorted_in(part, of_hours)]
    assert [sorted(each.rows) for each in answers] == expected
