"""Funnels, first times and later ones: questions, and what each of them counts, said in plain Python."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.dimensions import Dimension
from dp_service.queries.elements import days_of, microseconds_of
from dp_service.queries.filters import AnyOf, Filter, In, NotIn, TimeRange
from dp_service.queries.functions.first_times import FirstSeen, Later
from dp_service.queries.functions.funnels import Funnel
from dp_service.queries.functions.ordered_funnels import OrderedFunnel
from dp_service.queries.structured import HistogramQuery
from tests.support.queries.buckets import DAY, EPOCH, MICROSECOND, TYPES, UTC, Row

STEPS: dict[Filter, Callable[[str | None], bool]] = {
    In("text", ("a",)): lambda text: text == "a",
    In("text", ("b",)): lambda text: text == "b",
    # NULL meets no condition, as in SQL.
    NotIn("text", ("a",)): lambda text: text is not None and text != "a",
    AnyOf((In("text", ("b",)), In("text", ("c",)))): lambda text: text in ("b", "c"),
}
START, END = datetime.datetime(2024, 1, 14, tzinfo=UTC), datetime.datetime(2024, 7, 3, tzinfo=UTC)


@dataclass(frozen=True)
class Asked:
    """What is asked of the small table of `buckets`.

    Attributes:
        kind: The type of the time column.
        steps: The steps of a funnel; none: there is none.
        length: Of the buckets of first times; None: there are none.
        first: Whether first times are grouped by.
        later: Whether how much later members come back is grouped by.
        with_text: Whether another column is grouped by as well.
        in_order: Whether the steps are in order of time.
    """

    kind: str = "timestamps"
    steps: tuple[Filter, ...] = ()
    length: BucketLength | None = None
    first: bool = False
    later: bool = False
    with_text: bool = False
    in_order: bool = False

    @property
    def zone(self) -> str:
        """The zone whose calendar it is."""
        return "UTC" if "days" in self.kind else "Europe/Berlin"

    @property
    def question(self) -> HistogramQuery:
        """The question."""
        dimensions: list[Dimension] = ["text"] if self.with_text else []
        if self.steps:
            dimensions.append(OrderedFunnel(self.steps, "at") if self.in_order else Funnel(self.steps))
        if self.length is not None:
            dimensions += [FirstSeen("at", self.length)] if self.first else []
            dimensions += [Later("at", self.length)] if self.later else []
        within = None if self.length is None else TimeRange(START, END)
        return HistogramQuery("t", tuple(dimensions), Measure.DISTINCT_MEMBERS, time_range=within)

    def counted(self, rows: Iterable[Row]) -> dict[tuple[Any, ...], int]:
        """Return how many members are in each element that has some."""
        held: dict[tuple[str | None, str], list[Row]] = {}
        for row in rows:
            is_counted = not self.with_text or row.text in ("a", "b")
            is_timed = self.length is None or (row.at is not None and self._time(row.at) < END)
            is_timed = is_timed and (row.at is not None or not self.in_order)
            if row.member is not None and is_counted and is_timed:
                held.setdefault((row.text if self.with_text else None, row.member), []).append(row)
        found: dict[tuple[Any, ...], int] = {}
        for (text, _), of_member in held.items():
            for element in self._elements(of_member):
                key = (text, *element) if self.with_text else element
                found[key] = found.get(key, 0) + 1
        return found

    def _elements(self, rows: list[Row]) -> set[tuple[Any, ...]]:
        """Return the elements of one member, but for the other column."""
        step = self._deepest(rows)
        if self.steps and not step:
            return set()
        of_steps = (step,) if self.steps else ()
        if self.length is None:
            return {of_steps}
        times = [self._time(row.at) for row in rows if row.at is not None]
        if min(times) < START:
            return set()
        buckets = [self._bucket(each) for each in times]
        every = [self._bucket(START)]
        while every[-1] < max(buckets):
            every.append(self.length.day_after(every[-1]))
        firsts = (min(buckets),) if self.first else ()
        laters = (
            {(every.index(each) - every.index(min(buckets)),) for each in buckets} if self.later else {()}
        )
        return {(*of_steps, *firsts, *later) for later in laters}

    def _deepest(self, rows: list[Row]) -> int:
        """Return the deepest step that a member's rows reach: in order, by whichever rows at however many times."""
        if self.in_order:
            times = {row.at: self._time(row.at) for row in rows if row.at is not None}
            # Which numbers of steps are reached at which times, by any rows.
            reached = {(0, datetime.datetime.min.replace(tzinfo=UTC))}
            for row in sorted(rows, key=lambda row: times[row.at or EPOCH]):
                at = times[row.at or EPOCH]
                reached |= {
                    (step + 1, at)
                    for step, before in reached
                    if before < at and step < len(self.steps) and STEPS[self.steps[step]](row.text)
                }
            return max(step for step, _ in reached)
        step = 0
        while step < len(self.steps) and any(STEPS[self.steps[step]](row.text) for row in rows):
            step += 1
        return step

    def _time(self, at: datetime.datetime) -> datetime.datetime:
        """Return the time that the column holds."""
        step = TYPES[self.kind].step
        if step == DAY:
            return at.replace(hour=0, minute=0, second=0, microsecond=0)
        return EPOCH + microseconds_of(at) // step * step * MICROSECOND

    def _bucket(self, at: datetime.datetime) -> datetime.date:
        assert self.length is not None
        return self.length.first_day(at.astimezone(ZoneInfo(self.zone)).date())


QUESTIONS = (
    Asked(steps=tuple(STEPS)[:2]),
    Asked(steps=tuple(STEPS)[::-1], with_text=True),
    Asked("timestamps", tuple(STEPS), in_order=True),
    Asked("days", tuple(STEPS)[1::-1], with_text=True, in_order=True),
    Asked("days", length=BucketLength.MONTH, first=True),
    Asked("timestamps", tuple(STEPS)[1:3], BucketLength.WEEK, first=True),
    Asked("milliseconds", length=BucketLength.QUARTER, later=True, with_text=True),
    Asked("timestamps", length=BucketLength.MONTH, first=True, later=True),
    Asked("numbered days", length=BucketLength.WEEK, first=True, later=True, with_text=True),
)
"""A question of each form, for engines that are slow to ask."""


def random_rows(random: Random, size: int = 400) -> list[Row]:
    """Return rows of some members, some of whom come before the range of these questions and after it."""
    hours = int((END - START) / datetime.timedelta(hours=1))
    return [
        Row(
            f"m{random.randrange(60)}",
            None
            if random.random() < 0.05
            else START + datetime.timedelta(hours=random.randrange(-300, hours + 300)),
            random.choice([None, "a", "b", "c"]),
        )
        for _ in range(size)
    ]


def days_in(counts: Mapping[tuple[Any, ...], int]) -> dict[tuple[Any, ...], int]:
    """Return the same with days as releases have them, as numbers since 1970."""
    return {
        tuple(days_of(each) if isinstance(each, datetime.date) else each for each in element): count
        for element, count in counts.items()
    }
