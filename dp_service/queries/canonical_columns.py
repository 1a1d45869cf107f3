"""What the canonical form has of columns: what their values follow from, conditions on them, and what is added up."""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.columns import Column
from dp_service.queries.filters import Value, pattern_of
from dp_service.queries.intervals import Interval, Intervals, ordinal, universe_of
from dp_service.queries.plan_values import PlanValue
from dp_service.queries.text_functions import TextFunction
from dp_service.queries.time_parts import TimePart
from dp_service.queries.times import TimeColumn, TimeUnit
from dp_service.terms import ColumnType, ValueType
from dp_service.values.bounds import Clamp, ValueBounds
from dp_service.values.squares import Squares


@dataclass(frozen=True)
class QueryLookup:
    """How a column's values follow from another column of the table: its `key`, whose values have the texts `entries`.

    `hash` names the file that says so, and so the entries.
    """

    key: QueryColumn
    entries: tuple[tuple[PlanValue, str], ...] = field(compare=False, repr=False)
    hash: str


@dataclass(frozen=True)
class QueryTime:
    """A column of times that a dimension is a function of.

    `zone` is the IANA name of the zone whose calendar it is; for values in days it is always UTC. `unit` is what the
    column's values count, microseconds where it has the engine's own type for timestamps.
    """

    column: QueryColumn
    zone: str
    unit: TimeUnit


@dataclass(frozen=True)
class QueryBucket:
    """The bucket of time that a row is in, by its first day."""

    time: QueryTime
    length: BucketLength


@dataclass(frozen=True)
class QueryPart:
    """A part of a row's time, such as its hour."""

    time: QueryTime
    part: TimePart


@dataclass(frozen=True)
class QueryCase:
    """The value of the first condition that a row meets, `otherwise` of a row that meets none."""

    branches: tuple[tuple[Condition, PlanValue], ...]
    otherwise: PlanValue


@dataclass(frozen=True)
class QueryBins:
    """The label of the first of `edges` that a row's number is below, in steps of its quantum; the last one beyond all.

    `value` is brought between the edges, and of it nothing else is used than how a row's number is read and rounded.
    """

    value: QueryValue
    edges: tuple[int, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class QueryPartOfText:
    """A part of the text in a column, or the text in other letters."""

    column: QueryColumn
    function: TextFunction


@dataclass(frozen=True)
class QueryFunnel:
    """The number of the deepest step, from 1, that a member reaches with its rows in an element; 0 is left out."""

    steps: tuple[Condition, ...]


@dataclass(frozen=True)
class QueryCohorts:
    """The buckets of a question's range by their first days, and the value of the time column that each begins with.

    Members whose first time is before the first of these values are left out.
    """

    of: QueryTime
    length: BucketLength
    first_days: tuple[datetime.date, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True)
class QueryFirst:
    """The bucket of a member's first time, by its first day."""

    cohorts: QueryCohorts


@dataclass(frozen=True)
class QueryLater:
    """How many buckets after its member's first one a row is in."""

    since: QueryCohorts


Source = (
    QueryLookup
    | QueryBucket
    | QueryPart
    | QueryCase
    | QueryBins
    | QueryPartOfText
    | QueryFunnel
    | QueryFirst
    | QueryLater
)
"""How a column's values follow from the table's columns: a function of one row, or of a member's rows in an element."""


@dataclass(frozen=True)
class QueryColumn:
    """A column that the question groups by or restricts.

    `null_value` stands for NULL; None: rows with NULL are left out. `stored` is the unit of timestamps that are stored
    as integers; None: the column holds none. `source` None: the table has the column. Of a looked-up one NULL is a key
    that has no text, and a row whose key is left out is left out, too.
    """

    name: str
    type: ColumnType
    null_value: PlanValue | None
    stored: TimeUnit | None = None
    source: Source | None = None

    @property
    def lookup(self) -> QueryLookup | None:
        """How it is looked up; None: it is not."""
        return self.source if isinstance(self.source, QueryLookup) else None

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """The columns of the table that its values are read from."""
        match self.source:
            case None:
                return (self,)
            case QueryLookup(key=key):
                return (key,)
            case QueryBucket(time=time) | QueryPart(time=time):
                return (time.column,)
            case QueryFirst(cohorts=cohorts) | QueryLater(since=cohorts):
                return (cohorts.of.column,)
            case QueryPartOfText(column=column):
                return (column,)
            case _:
                # None of bins: numbers are read as those that are summed.
                return tuple(each.column.key for each in self.conditions)

    @property
    def key(self) -> QueryColumn:
        """The column that a looked-up one is looked up by; itself of another one."""
        return self if self.lookup is None else self.lookup.key

    @property
    def conditions(self) -> tuple[ColumnCondition, ...]:
        """The conditions on columns of the table that its values depend on."""
        match self.source:
            case QueryCase(branches=branches):
                return tuple(each for condition, _ in branches for each in column_conditions(condition))
            case QueryFunnel(steps=steps):
                return tuple(each for condition in steps for each in column_conditions(condition))
        return ()

    @property
    def is_of_member(self) -> bool:
        """Whether it is a function of all of a member's rows in an element, and not of one row."""
        return isinstance(self.source, QueryFunnel | QueryFirst | QueryLater)

    @property
    def universe(self) -> Interval:
        """The integers that stand for the column's values, if it holds no texts."""
        return universe_of(self.type, counted=self.stored is not None)


UTC = "UTC"


def query_time(time: TimeColumn, column: Column) -> QueryTime:
    """Return the time column as functions of time have it: days are counted as if each began in UTC, without clocks."""
    return QueryTime(query_column(column), UTC if time.unit is TimeUnit.DAYS else time.zone, time.unit)


def query_column(column: Column) -> QueryColumn:
    """Return what a question's meaning has of a column."""
    stored = None if column.timestamps is None else column.timestamps.stored
    lookup = column.lookup
    found = None if lookup is None else QueryLookup(query_column(lookup.key), lookup.entries, lookup.hash)
    return QueryColumn(column.name, column.type, column.value_for_null, stored, found)


@dataclass(frozen=True)
class TextRestriction:
    """The text is one of `values` - or none of them, if `excluded` - which are sorted and distinct."""

    column: QueryColumn
    values: tuple[str, ...]
    excluded: bool

    def among(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return those of some values that meet the condition."""
        listed = frozenset(self.values)
        return tuple(each for each in values if (each in listed) is not self.excluded)


@dataclass(frozen=True)
class OrdinalRestriction:
    """The integer, day, timestamp or truth value lies in `intervals`."""

    column: QueryColumn
    intervals: Intervals

    @property
    def hull(self) -> Interval:
        """The integers from the first that is allowed to the last."""
        return Interval(self.intervals[0].start, self.intervals[-1].end)

    def among(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return those of some values that meet the condition."""
        starts = [each.start for each in self.intervals]

        def meets(number: int) -> bool:
            place = bisect_right(starts, number) - 1
            return place >= 0 and number < self.intervals[place].end

        return tuple(each for each in values if meets(ordinal(each)))


Restriction = TextRestriction | OrdinalRestriction


@dataclass(frozen=True)
class PatternCondition:
    """The text has a pattern of LIKE - or has not, if `negated` - whose letters A to Z may `fold` to a to z."""

    column: QueryColumn
    pattern: str
    folds: bool
    negated: bool

    def among(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return those of some texts that meet the condition."""
        pattern = pattern_of(self.pattern, folds=self.folds)
        return tuple(each for each in values if bool(pattern.fullmatch(str(each))) is not self.negated)


@dataclass(frozen=True)
class PartCondition:
    """A part of a time is one of `numbers`, and the time is `within` some of the column's values.

    Every engine knows the calendar of these times. A row with another time, or without one, does not meet it.
    """

    source: QueryPart
    numbers: tuple[int, ...]
    within: Intervals

    @property
    def column(self) -> QueryColumn:
        """The column of times."""
        return self.source.time.column

    @property
    def times(self) -> OrdinalRestriction:
        """The condition that the time is within these values."""
        return OrdinalRestriction(self.column, self.within)

    def among(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return those of some times that may meet the condition: its calendar is not looked at."""
        return self.times.among(values)


@dataclass(frozen=True)
class Every:
    """All of several conditions hold; they are sorted and distinct. In a plan its field tells it from `Some`."""

    every: tuple[Condition, ...]

    @property
    def parts(self) -> tuple[Condition, ...]:
        """The conditions."""
        return self.every


@dataclass(frozen=True)
class Some:
    """One of several conditions holds, or several do; they are sorted and distinct."""

    some: tuple[Condition, ...]

    @property
    def parts(self) -> tuple[Condition, ...]:
        """The conditions."""
        return self.some


ColumnCondition = Restriction | PatternCondition | PartCondition
"""A condition on one column of the table. A row without a value meets none, unless the null value stands for it."""
Condition = ColumnCondition | Every | Some


def column_conditions(condition: Condition) -> Iterator[ColumnCondition]:
    """Yield the conditions on columns that a condition consists of."""
    if isinstance(condition, Every | Some):
        for part in condition.parts:
            yield from column_conditions(part)
    else:
        yield condition


@dataclass(frozen=True)
class QueryValue:
    """A column that the question sums, where it has a `condition` in the rows that meet it.

    `null_value` is left out like NULL, or stands for every value that is not usable if the policy keeps such rows. With
    `has_own_count` rows whose value is not usable count, and the column has a count of the others beside its sum. With
    a `condition` every row of the question counts; those that do not meet it, or whose value is not usable, are not
    summed, and no part of an own count. With `squares` the squares of members' totals, or of rows' values, are summed.
    """

    name: str
    type: ValueType
    bounds: ValueBounds
    keeps_nulls: bool
    null_value: Fraction | None
    has_own_count: bool = False
    condition: Condition | None = None
    squares: Squares | None = None

    def ends(self, *, over_rows: bool) -> Clamp:
        """Return between which ends that is what a row adds, or a member."""
        clamp = self.bounds.rows if over_rows else self.bounds.totals
        return clamp if self.squares is None else self.squares.clamp


@dataclass(frozen=True)
class QueryCount:
    """A number of rows that the question counts beside its own count: those that meet `condition`, None: all.

    Of one member in one element it is between the ends of `bounds.totals`: 0 and 1 where members are `counted`.
    """

    counted: Measure
    bounds: ValueBounds
    condition: Condition | None = None
    has_own_count: ClassVar[bool] = False
    squares: ClassVar[None] = None

    def ends(self, *, over_rows: bool) -> Clamp:
        """Return between which ends that is what a row adds, or a member."""
        return self.bounds.rows if over_rows else self.bounds.totals


Coordinate = QueryValue | QueryCount
"""What is added up over the members, or rows, of each element beside their number."""
