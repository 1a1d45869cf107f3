"""What the canonical form has of columns: what their values follow from, conditions on them, and what is added up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.columns import Column
from dp_service.queries.filters import Value, pattern_of
from dp_service.queries.intervals import Interval, Intervals, ordinal, universe_of
from dp_service.queries.plan_values import PlanValue
from dp_service.queries.time_parts import TimePart
from dp_service.queries.times import TimeColumn, TimeUnit
from dp_service.terms import ColumnType, ValueType
from dp_service.values.bounds import ValueBounds


class Source(ABC):
    """How a column's values follow from others of the table: a function of one row, or of a member's in an element.

    Attributes:
        is_of_member: Whether it is of all of a member's rows in an element, and not of one row.
        counts_together: Whether a member counts in all of its values, or in none.
        is_cumulative: Whether who has a value has all before it.
    """

    is_of_member: ClassVar[bool] = False
    counts_together: ClassVar[bool] = False
    is_cumulative: ClassVar[bool] = False

    @classmethod
    def __get_pydantic_core_schema__(cls, _: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A plan carries any of them (`functions`); their fields tell them apart."""
        forms = cls.__subclasses__()
        return (
            core_schema.union_schema([handler.generate_schema(each) for each in forms])
            if forms
            else handler(cls)
        )

    @abstractmethod
    def __bytes__(self) -> bytes:
        """The bytes of its meaning; a label tells them from the unit of timestamps, which no function has."""

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """The columns of the table that it is read from, without those whose numbers are."""
        return tuple(each.column.key for each in self.conditions)

    @property
    def values_read(self) -> tuple[QueryValue, ...]:
        """The columns whose numbers it is read from, as those that are summed."""
        return ()

    @property
    def conditions(self) -> tuple[ColumnCondition, ...]:
        """The conditions on columns of the table that it depends on."""
        return ()

    def with_conditions(self, change: Callable[[Condition], Condition]) -> Source:
        """Return it with changed conditions."""
        del change
        return self

    @property
    def values_written(self) -> tuple[Value, ...]:
        """The values that a query has to name beside its conditions."""
        return ()

    def typical_of(self, buckets: Mapping[BucketLength, int | None]) -> int | None:
        """Return in how many of all buckets of time a member typically is; None: these are no buckets, or not known."""
        del buckets
        return None

    def text_read(self, column: QueryColumn) -> QueryColumn | None:
        """Return the column of texts that no answer may be able to carry, of a column with this source; None: none."""
        return column

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True)
class QueryLookup(Source):
    """How a column's values follow from another column of the table: its `key`, whose values have the texts `entries`.

    `hash` names the file that says so, and so the entries.
    """

    key: QueryColumn
    entries: tuple[tuple[PlanValue, str], ...] = field(compare=False, repr=False)
    hash: str

    def __bytes__(self) -> bytes:
        return length_prefixed(b"lookup", bytes(self.key), self.hash.encode())

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """The column of keys."""
        return (self.key,)


@dataclass(frozen=True)
class QueryTime:
    """A column of times that a dimension is a function of.

    `zone` is the IANA name of the zone whose calendar it is; for values in days it is always UTC. `unit` is what the
    column's values count, microseconds where it has the engine's own type for timestamps.
    """

    column: QueryColumn
    zone: str
    unit: TimeUnit

    def __bytes__(self) -> bytes:
        return length_prefixed(bytes(self.column), self.zone.encode(), self.unit.name.lower().encode())

    def __str__(self) -> str:
        return self.column.name + ("" if self.unit is TimeUnit.DAYS else f" in {self.zone}")


@dataclass(frozen=True)
class QueryPart(Source):
    """A part of a row's time, such as its hour; there are conditions on it as well."""

    time: QueryTime
    part: TimePart

    def __bytes__(self) -> bytes:
        return length_prefixed(b"part", bytes(self.time), self.part.encode())

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """The time column."""
        return (self.time.column,)

    def __str__(self) -> str:
        return f"the {self.part} of {self.time}"


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

    def __bytes__(self) -> bytes:
        null_value = (
            b"drop" if self.null_value is None else length_prefixed(b"keep", value_bytes(self.null_value))
        )
        # Nothing more for a column of another type: its questions keep the fingerprints that they have.
        stored = () if self.stored is None else (self.stored.name.lower().encode(),)
        source = () if self.source is None else (bytes(self.source),)
        return length_prefixed(self.name.encode(), self.type.encode(), null_value, *stored, *source)

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """The columns of the table that its values are read from."""
        return (self,) if self.source is None else self.source.read_from

    @property
    def key(self) -> QueryColumn:
        """The column that a looked-up one is looked up by; itself of another one."""
        return self if self.lookup is None else self.lookup.key

    @property
    def conditions(self) -> tuple[ColumnCondition, ...]:
        """The conditions on columns of the table that its values depend on."""
        return () if self.source is None else self.source.conditions

    @property
    def values_read(self) -> tuple[QueryValue, ...]:
        """The columns whose numbers it is read from."""
        return () if self.source is None else self.source.values_read

    @property
    def text_read(self) -> QueryColumn | None:
        """The column of texts behind it that no answer may be able to carry; None: there is none."""
        return self if self.source is None else self.source.text_read(self)

    @property
    def is_of_member(self) -> bool:
        """Whether it is a function of all of a member's rows in an element, and not of one row."""
        return self.source is not None and self.source.is_of_member

    @property
    def counts_together(self) -> bool:
        """Whether a member counts in all of its values, or in none."""
        return self.source is not None and self.source.counts_together

    def __str__(self) -> str:
        return self.name if self.source is None else str(self.source) or self.name

    @property
    def universe(self) -> Interval:
        """The integers that stand for the column's values, if it holds no texts."""
        return universe_of(self.type, counted=self.stored is not None)


def value_bytes(value: Value) -> bytes:
    """Encode a value; the type of its column is encoded separately."""
    return value.encode() if isinstance(value, str) else str(ordinal(value)).encode()


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

    @property
    def size(self) -> int | None:
        """How many values it allows; None: any number."""
        return None if self.excluded else len(self.values)

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
    def size(self) -> int:
        """How many values it allows."""
        return sum(each.end - each.start for each in self.intervals)

    @property
    def hull(self) -> Interval:
        """The integers from the first that is allowed to the last."""
        return Interval(self.intervals[0].start, self.intervals[-1].end)

    @property
    def leaves_out_far_times(self) -> bool:
        """Whether an end is open that queries write all the same, as that of the engine's own timestamps."""
        universe, column = self.column.universe, self.column
        is_open = self.hull.start == universe.start or self.hull.end == universe.end
        return is_open and column.type is ColumnType.TIMESTAMP and column.stored is None

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

    `null_value` is left out like NULL, or stands for every value that is not usable if the policy keeps such rows. Rows
    that do not meet the `condition`, or whose value is not usable, are not summed, and count in other numbers. An
    average has a count of the others beside its sum: it `has_own_count`, of at most `rows` of a member in an element,
    None: it is of members' totals.
    """

    name: str
    type: ValueType
    bounds: ValueBounds
    keeps_nulls: bool
    null_value: Fraction | None
    has_own_count: bool = False
    condition: Condition | None = None
    rows: int | None = None
    # Members are weighted by its own cells, and not by those of the count.
    has_own_weight: ClassVar[bool] = True


@dataclass(frozen=True)
class QueryCount:
    """A number of rows that the question counts beside its own count: those that meet `condition`, None: all.

    Of one member in one element it is between the ends of `bounds.totals`: 0 and 1 where members are `counted`.
    """

    counted: Measure
    bounds: ValueBounds
    condition: Condition | None = None
    has_own_count: ClassVar[bool] = False

    @property
    def has_own_weight(self) -> bool:
        """Whether it counts rows beside a count of members, as it does alone."""
        return not self.bounds.totals.is_centred


Coordinate = QueryValue | QueryCount
"""What is added up over the members, or rows, of each element beside their number."""
