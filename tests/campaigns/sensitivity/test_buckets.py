"""A member changes a series by no more than was priced, through the real SQL and a real DuckDB."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import duckdb
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dp_service.mechanisms.aggregates import BoundMoments
from dp_service.mechanisms.bounded import BoundGauss, Shift
from dp_service.noise.gaussian_price import DISCRETENESS
from dp_service.queries.asked_numbers import DistinctValues, Measure, sum_of
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.functions import buckets
from dp_service.queries.policy import Policy
from dp_service.queries.render import render
from dp_service.queries.render.time_expressions import LocalTimes
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.time_buckets import buckets_between
from dp_service.queries.time_parts import TimePart
from dp_service.releases.histogram import TypedHistogram, checked_histogram, over_domain
from dp_service.releases.kinds import kind_of
from dp_service.terms import MechanismName
from dp_service.values.bounds import Clamp
from tests.support.examples import examples
from tests.support.queries.buckets import (
    MICROSECOND,
    NOW,
    SUMS,
    TYPES,
    UTC,
    Row,
    TimeFunction,
    arrow_table,
    asked,
    functions,
    policy,
)

BLOCKS = {
    "bounded": "contributions: {bound: in_query, units: 10}",
    "shifted": "contributions: {bound: in_query, units: 10}",
    "summed": "contributions: {bound: in_query, units: 10, sums: {max_members: 1000, max_rows: 1000}}",
    "unbounded": "",
}
# Berlin changed its clocks at 1:00 in UTC on both days.
CHANGES = [datetime.datetime(2024, 3, 31, 1, tzinfo=UTC), datetime.datetime(2024, 10, 27, 1, tzinfo=UTC)]
YEARS = [datetime.datetime(year, 12, 31, 23, tzinfo=UTC) for year in (2023, 2024)]
ENDS = [*CHANGES, *YEARS, *(datetime.datetime(2024, month, 1, tzinfo=UTC) for month in (2, 3, 4, 7))]
TIMES = st.one_of(
    st.none(),
    st.builds(
        lambda end, hours, more: end + datetime.timedelta(hours=hours) + more * MICROSECOND,
        st.sampled_from(ENDS),
        st.integers(-30, 30),
        st.integers(-1, 1),
    ),
)
ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from([None, "ada", "bob", "eve"]),
        TIMES,
        st.sampled_from([None, "a", "b", "c"]),
        st.sampled_from([None, -20, 0, 3, 20]),
    ),
    max_size=14,
)


@dataclass(frozen=True)
class Case:
    """A question and the policy that it is asked under."""

    block: str
    kind: str
    function: TimeFunction
    events: bool
    with_text: bool

    @property
    def policy(self) -> Policy:
        """The policy."""
        values = SUMS if self.block == "summed" else ""
        typical = 3 if self.block == "shifted" else 2
        return policy(self.kind, contributions=BLOCKS[self.block], typical=typical, values=values)

    def question(self, start: datetime.datetime, end: datetime.datetime) -> HistogramQuery:
        """Return the question for a range."""
        measure = Measure.EVENTS if self.events and self.block != "summed" else Measure.DISTINCT_MEMBERS
        by = ("at", "text") if self.with_text else ("at",)
        query = asked(self.function, start, end, by=by, measure=measure)
        if self.block != "summed":
            return query
        return replace(query, aggregates=(sum_of("whole"),))


def met(resolution: Resolution, rows: Sequence[Row], kind: str) -> TypedHistogram:
    """Return what the mechanism meets."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("t", arrow_table(rows, kind))
        answer = database.execute(render(resolution, "duckdb")).fetchall()
    assert len(answer) <= resolution.row_limit
    types = tuple(each for _, each in resolution.columns)
    columns = [list(each) for each in zip(*answer, strict=True)] or [[] for _ in range(9)]
    elements = [
        [each.toordinal() - 719163 if isinstance(each, datetime.date) else each for each in column]
        for column in columns[: len(types)]
    ]
    numbers = columns[len(types) :]
    stated = resolution.parameters.contributions
    is_shifted = stated is not None and stated.shifted
    sums = [list(map(int, column)) for column in numbers[1 : 1 + len(resolution.query.values)]]
    clamps = [Clamp(value.bounds.totals.low, value.bounds.totals.high) for value in resolution.query.values]
    found = checked_histogram(
        types,
        elements,
        list(map(int, numbers[0])),
        sums,
        row_limit=resolution.row_limit,
        first_counts=list(map(int, numbers[1])) if is_shifted else None,
        clamps=clamps,
    )
    return over_domain(found, resolution.parameters.domain or (), row_limit=resolution.row_limit)


def faults(
    resolution: Resolution, rows: Sequence[Row], kind: str, *, asks: Resolution | None = None
) -> list[str]:
    """Return what some member changes beyond what is charged; `asks` is what is asked instead of the question."""
    query = resolution if asks is None else asks
    whole = met(query, rows, kind)
    found: list[str] = []
    for member in ("ada", "bob", "eve"):
        without = met(query, [row for row in rows if row.member != member], kind)
        found += _changes(resolution, whole, without)
    return found


def _changes(resolution: Resolution, whole: TypedHistogram, without: TypedHistogram) -> Iterator[str]:
    parameters, mechanism = resolution.parameters, kind_of(resolution.parameters).mechanism
    changes = [int(a - b) for a, b in zip(whole.counts, without.counts, strict=True)]
    moved = [change for change in changes if change]
    stated = parameters.contributions
    grid = 1 if stated is None else stated.grid
    if parameters.delta_l0 is not None and len(moved) > parameters.delta_l0:
        yield "a member changes more buckets than Delta"
    if any(not 0 <= change <= parameters.tau * grid for change in changes):
        yield "a member changes a bucket by more than tau"
    if isinstance(mechanism, BoundGauss):
        rho = sum(Fraction(change**2) for change in changes) / (2 * (mechanism.variance - DISCRETENESS))
        if rho > mechanism.rho:
            yield "a member's change is worth more than is charged"
    if isinstance(shift := mechanism, Shift):
        assert whole.total is not None
        assert without.total is not None
        a, b = shift.factors
        total = whole.total - without.total
        squares = sum((b * change - a * total) ** 2 for change in changes)
        rho = Fraction(squares) / (2 * (shift.count_variance - DISCRETENESS))
        rho += Fraction(total**2) / (2 * (shift.total_variance - DISCRETENESS))
        if rho > shift.rho:
            yield "a member's change is worth more than is charged"
    if isinstance(moments := mechanism, BoundMoments):
        sums = [int(a - b) for a, b in zip(whole.sums[0], without.sums[0], strict=True)]
        if any(each and not change for each, change in zip(sums, changes, strict=True)):
            yield "a member changes a sum and not the count"
        if any(abs(each) > moments.columns[0].clamp.width for each in sums):
            yield "a member changes a sum by more than its width"
        rho = sum(Fraction(each**2) for each in moved) / (2 * (moments.count_variance - DISCRETENESS))
        rho += sum(Fraction(each**2) for each in sums) / (2 * (moments.sum_variance(0) - DISCRETENESS))
        if rho > moments.rho:
            yield "a member's change is worth more than is charged"
    # KnownLap has noise of scale tau / epsilon_per in each: the price is a unit for every tau that is moved.
    is_laplace = parameters.mechanism is MechanismName.KNOWN_LAP
    if is_laplace and sum(moved) > parameters.tau * mechanism.worst_case_cost().information:
        yield "a member's change is worth more than is charged"


CASES = st.builds(
    Case,
    st.sampled_from(list(BLOCKS)),
    st.sampled_from(list(TYPES)),
    st.sampled_from([*BucketLength, *TimePart]),
    st.booleans(),
    st.booleans(),
)
# Ada is there in all months, twice on the days when clocks change, before and after the range, and without a time.
HEAVY = [Row("ada", end + datetime.timedelta(hours=hours)) for end in ENDS for hours in (-1, 0, 1)]
HEAVY += [Row("ada", None), Row("bob", ENDS[0]), Row("eve", datetime.datetime(2023, 6, 1, tzinfo=UTC))]
HEAVY_VALUES = [row._replace(text=text) for row in HEAVY for text in ("a", "b", "c")]
START, END = datetime.datetime(2024, 1, 5, 7, tzinfo=UTC), datetime.datetime(2024, 12, 31, 20, tzinfo=UTC)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(rows=ROWS, case=CASES, start=st.sampled_from(ENDS), days=st.integers(1, 300))
@example(
    rows=HEAVY, case=Case("shifted", "timestamps", BucketLength.MONTH, False, False), start=START, days=300
)
@example(rows=HEAVY, case=Case("summed", "seconds", BucketLength.DAY, False, False), start=START, days=300)
def test_a_member_changes_a_series_within_the_price(
    rows: list[Row], case: Case, start: datetime.datetime, days: int
) -> None:
    """Times of NULL, outside of the range and around changes of clocks, in every type of column."""
    assume(case.function in functions(case.kind))
    question = case.question(start, start + datetime.timedelta(days=days, hours=5))
    resolution = resolve(question, case.policy, now=NOW)
    assert faults(resolution, rows, case.kind) == []


@pytest.mark.slow
@settings(max_examples=examples(20), deadline=None)
@given(
    rows=ROWS,
    kind=st.sampled_from(list(TYPES)),
    length=st.sampled_from(list(BucketLength)),
    most=st.integers(1, 2),
    start=st.sampled_from(ENDS),
    days=st.integers(1, 300),
)
def test_a_member_changes_a_series_of_distinct_values_within_the_price(
    *, rows: list[Row], kind: str, length: BucketLength, most: int, start: datetime.datetime, days: int
) -> None:
    """It keeps so many values in so many buckets, wherever clocks change."""
    offered = policy(kind, contributions=BLOCKS["of their own"])
    (table,) = offered.tables
    measures = table.measures.model_copy(update={"distinct": {"text": most}})
    offered = replace(offered, tables=(table.model_copy(update={"measures": measures}),))
    query = asked(length, start, start + datetime.timedelta(days=days, hours=5))
    resolution = resolve(replace(query, measure=DistinctValues("text")), offered, now=NOW)
    assert faults(resolution, [*HEAVY_VALUES, *rows], kind) == []


def heavy(block: str = "bounded", length: BucketLength = BucketLength.MONTH) -> Resolution:
    """Return a question about the heavy rows."""
    case = Case(block, "timestamps", length, events=False, with_text=False)
    return resolve(case.question(START, END), case.policy, now=NOW)


def test_members_that_are_not_bounded_over_buckets_are_found() -> None:
    """Ada counts in five months where two may count."""
    resolution = heavy()
    contributions = resolution.parameters.contributions
    assert contributions is not None
    in_full = replace(contributions, typical=1000)
    unbounded = replace(resolution, parameters=replace(resolution.parameters, contributions=in_full))
    assert faults(resolution, HEAVY, "timestamps") == []
    assert "a member's change is worth more than is charged" in faults(
        resolution, HEAVY, "timestamps", asks=unbounded
    )


def test_a_bound_of_buckets_that_the_query_forgets_is_found() -> None:
    """The query keeps more of a member than its noise is for."""
    resolution = heavy()
    contributions = resolution.parameters.contributions
    assert contributions is not None
    forgotten = replace(contributions, typical=9)
    asks = replace(resolution, parameters=replace(resolution.parameters, contributions=forgotten))
    assert "a member's change is worth more than is charged" in faults(
        resolution, HEAVY, "timestamps", asks=asks
    )


def test_rows_beside_the_buckets_change_no_other_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should an engine put rows beside the range, nothing is cut off for them: there is room for one at each end."""
    day = Row("bob", START + datetime.timedelta(days=3))
    case = Case("bounded", "timestamps", BucketLength.DAY, events=False, with_text=False)
    end = datetime.datetime(2024, 1, 9, 22, 30, tzinfo=UTC)
    resolution = resolve(case.question(START, end), case.policy, now=NOW)
    rows = [Row(name, START + datetime.timedelta(days=days)) for days in range(4) for name in ("ada", "eve")]
    rows += [Row("bob", end - MICROSECOND), Row("cyd", end - MICROSECOND), day]
    right = met(resolution, rows, "timestamps").counts.tolist()
    two_hours_later = "({0} + 7200000000)"
    monkeypatch.setattr(LocalTimes, "moved", lambda _self, number, _unit: two_hours_later.format(number))
    assert met(resolution, rows, "timestamps").counts.tolist()[:-1] == right[:-1]


def test_a_range_that_is_one_bucket_too_long_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket of which no row can be counted is not in the domain, and one of which some can is."""
    real = buckets_between
    expected = len(heavy().parameters.domain or ())
    for wrong in (-1, 1):
        step = datetime.timedelta(days=31 * wrong)
        monkeypatch.setattr(
            buckets,
            "buckets_between",
            lambda length, start, end, zone, step=step: real(length, start, end + step, zone),
        )
        assert (len(heavy().parameters.domain or ()) != expected) is (wrong < 0)
