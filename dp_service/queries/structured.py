"""The structured form of a question, and the limits that every question keeps.

The constructors check everything that does not depend on a policy, and raise QuestionError naming the field. So every
`HistogramQuery` is well formed.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from math import lcm

from dp_service.parameters.release import HavingCondition
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.errors import QuestionError
from dp_service.terms import AggregateFunction, ColumnType, RankFunction

MAXIMUM_DIMENSIONS = 4
DRILL_DOWN_DIMENSIONS = 2
MAXIMUM_FILTERS = 32
MAXIMUM_VALUES = 1000
MAXIMUM_TEXT_LENGTH = 1024
# All texts of a question together; the rendered queries travel in one message.
MAXIMUM_TEXT_TOTAL = 200_000
MAXIMUM_K = 100_000
MAXIMUM_AGGREGATES = 16
MAXIMUM_QUANTILES = 999
MAXIMUM_QUANTILE_DENOMINATOR = 10_000
MAXIMUM_HAVING = 16
INT64_MINIMUM = -(2**63)
INT64_MAXIMUM = 2**63 - 1

FORBIDDEN_CHARACTER = re.compile("[\0\ud800-\udfff]")

Value = str | int | bool | datetime.date
"""A value of a column; a timestamp is a `datetime.datetime`, which is a `datetime.date` to Python, in UTC."""


class Measure(StrEnum):
    """What is counted for each element."""

    DISTINCT_MEMBERS = "distinct_members"
    EVENTS = "events"


# Exact classes: bool is a subclass of int and datetime of date, and neither may pass for the other.
_TYPE_OF_CLASS = {
    str: ColumnType.STRING,
    int: ColumnType.INT64,
    bool: ColumnType.BOOL,
    datetime.date: ColumnType.DATE,
    datetime.datetime: ColumnType.TIMESTAMP,
}

VALUES_OF = {
    ColumnType.STRING: "texts (in SQL in single quotes)",
    ColumnType.INT64: "integers (in SQL without quotes)",
    ColumnType.BOOL: "truth values (in SQL TRUE or FALSE)",
    ColumnType.DATE: "days (in SQL as 'YYYY-MM-DD')",
    ColumnType.TIMESTAMP: "timestamps (in SQL as TIMESTAMP 'YYYY-MM-DD hh:mm:ss' or DATE 'YYYY-MM-DD')",
}
"""What a column of each type is compared with, in messages."""


def fault_of(value: object) -> str | None:
    """Return what is wrong with `value` as a value of any column, or None."""
    if type(value) not in _TYPE_OF_CLASS:
        return "expected a text, an integer, a truth value, a day or a timestamp"
    if isinstance(value, str):
        return _fault_of_text(value)
    if type(value) is int and not INT64_MINIMUM <= value <= INT64_MAXIMUM:
        return "expected an integer of 64 bits"
    if isinstance(value, datetime.datetime) and value.utcoffset() != datetime.timedelta(0):
        return "expected timestamps in UTC"
    return None


def _fault_of_text(text: str) -> str | None:
    if len(text) > MAXIMUM_TEXT_LENGTH:
        return f"expected a text of at most {MAXIMUM_TEXT_LENGTH} characters"
    if FORBIDDEN_CHARACTER.search(text):
        return "expected a text without NUL and surrogate code points"
    return None


def type_of(value: Value) -> ColumnType:
    """Return the column type that a value belongs to."""
    return _TYPE_OF_CLASS[type(value)]


def _require(condition: bool, field: str, message: str) -> None:
    if not condition:
        raise QuestionError(field, message)


def _check_value(value: Value) -> None:
    fault = fault_of(value)
    if fault is not None:
        raise QuestionError("filters", fault)


def _check_set(values: tuple[Value, ...]) -> None:
    _require(1 <= len(values) <= MAXIMUM_VALUES, "filters", f"expected 1 to {MAXIMUM_VALUES} values in a set")
    for value in values:
        _check_value(value)
    _require(len(set(map(type_of, values))) == 1, "filters", "expected values of one type in a set")


@dataclass(frozen=True)
class In:
    """The column's value is one of `values`; their order and repetition have no meaning."""

    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        _check_set(self.values)


@dataclass(frozen=True)
class NotIn:
    """The column's value is none of `values`; their order and repetition have no meaning."""

    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        _check_set(self.values)


@dataclass(frozen=True)
class Bound:
    """One end of an interval; `exclusive` leaves the value itself out."""

    value: Value
    exclusive: bool = False

    def __post_init__(self) -> None:
        _check_value(self.value)


@dataclass(frozen=True)
class Range:
    """The column's value lies between two bounds, of which one may be missing."""

    column: str
    lower: Bound | None
    upper: Bound | None

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.lower, self.upper) if bound is not None]
        _require(bool(bounds), "filters", "expected a lower bound, an upper bound or both")
        types = {type_of(bound.value) for bound in bounds}
        _require(len(types) == 1, "filters", "expected two bounds of one type")


Filter = In | NotIn | Range


def _texts(condition: Filter) -> list[str]:
    if isinstance(condition, Range):
        return []
    return [value for value in condition.values if isinstance(value, str)]


@dataclass(frozen=True)
class TimeRange:
    """The half-open interval [start, end) of timestamps in UTC, or of days of the time column's zone.

    A day stands for its beginning; None: unbounded on that side.
    """

    start: datetime.date | None
    end: datetime.date | None

    def __post_init__(self) -> None:
        for bound in (self.start, self.end):
            in_utc = not isinstance(bound, datetime.datetime) or bound.utcoffset() == datetime.timedelta(0)
            _require(in_utc, "time_range", "expected timestamps in UTC")


@dataclass(frozen=True)
class Aggregate:
    """A sum or an average of a value column; `alias` is its name in SQL and no part of the question."""

    function: AggregateFunction
    column: str
    alias: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class AskedQuantile:
    """A quantile of a column's values, one for each member, or about the smallest or the largest of them.

    Attributes:
        function: Which of them.
        column: The column.
        q: The quantile, strictly between 0 and 1; None for the smallest and the largest.
        alias: Its name in SQL, and no part of the question.
    """

    function: RankFunction
    column: str
    q: Fraction | None = None
    alias: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        is_quantile = self.function is RankFunction.QUANTILE
        _require(is_quantile is (self.q is not None), "quantiles", "expected a number for each quantile")
        if self.q is None:
            return
        _require(0 < self.q < 1, "quantiles", "expected quantiles strictly between 0 and 1 (0 % and 100 %)")
        _require(
            self.q.denominator <= MAXIMUM_QUANTILE_DENOMINATOR,
            "quantiles",
            "expected quantiles of at most four digits, such as 0.9999",
        )


@dataclass(frozen=True)
class Bucket:
    """The time column among the dimensions is divided into buckets of its zone's calendar.

    `ranked`: the list is in descending order of a number, as any other is, and not in the order of the elements.
    """

    length: BucketLength
    ranked: bool = False


@dataclass(frozen=True)
class HistogramQuery:
    """Count `measure` by `dimensions` in `table` where all `filters` hold within `time_range`; show the `k` largest.

    Attributes:
        table: The table.
        dimensions: The columns to group by, at most 4 different ones; none: one total, whose element has no values.
        measure: What is counted.
        filters: At most 32 conditions; all must hold.
        time_range: Which rows count, by the table's time column; None: all.
        k: How many elements to show, from 1 to 100,000; None: all that the mechanism may show.
        omit_counts: Whether to show only the order of the elements.
        aggregates: At most 16 different sums and averages beside the counts, in the order in which they are shown:
            beside counts of members of their totals, beside counts of events of rows.
        ordered_by: The place in `aggregates` of the one that the list is in descending order of; None: it is in the
            order of its counts. It changes what is shown of a release, and not what is released.
        quantiles: At most 999 different quantiles of one column, its smallest and its largest value among them; then no
            counts and no aggregates are shown, and all elements of a known domain are.
        bucket: How the time column, which is then one of the dimensions, is divided; None: columns are as they are.
        having: At most 16 conditions on what was released of an element; elements that do not meet all of them are not
            shown. They change nothing of what is released.
        totals_by: One of two dimensions, of whose values totals are released as well; None: there are none.
        count_alias: The name of the counts in SQL, for those who display them; no part of the question.
        aliases: The name of each column in SQL, None where it is its own; empty: all are. No part of the question.
        in_sql: Whether the question was asked in SQL, for the words of errors; no part of the question.
    """

    table: str
    dimensions: tuple[str, ...]
    measure: Measure
    filters: tuple[Filter, ...] = ()
    time_range: TimeRange | None = None
    k: int | None = None
    omit_counts: bool = False
    aggregates: tuple[Aggregate, ...] = ()
    ordered_by: int | None = None
    quantiles: tuple[AskedQuantile, ...] = ()
    bucket: Bucket | None = None
    having: tuple[HavingCondition, ...] = ()
    totals_by: str | None = None
    count_alias: str | None = field(default=None, compare=False)
    aliases: tuple[str | None, ...] = field(default=(), compare=False)
    in_sql: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        _require(
            len(self.dimensions) <= MAXIMUM_DIMENSIONS,
            "dimensions",
            f"expected at most {MAXIMUM_DIMENSIONS} columns to group by",
        )
        shows_something = bool(self.dimensions) or not self.omit_counts
        _require(shows_something, "omit_counts", "expected false: a total has nothing to show but its count")
        distinct = len(set(self.dimensions)) == len(self.dimensions)
        _require(distinct, "dimensions", "expected each column to group by once")
        _require(
            len(self.filters) <= MAXIMUM_FILTERS, "filters", f"expected at most {MAXIMUM_FILTERS} filters"
        )
        total = sum(len(text) for condition in self.filters for text in _texts(condition))
        _require(
            total <= MAXIMUM_TEXT_TOTAL, "filters", f"expected at most {MAXIMUM_TEXT_TOTAL} characters in all"
        )
        _require(
            self.k is None or 1 <= self.k <= MAXIMUM_K, "k", f"expected a whole number from 1 to {MAXIMUM_K}"
        )
        self._check_aggregates()
        self._check_quantiles()
        self._check_having()
        self._check_totals()

    def _check_quantiles(self) -> None:
        asked = self.quantiles
        if not asked:
            return
        _require(
            len(asked) <= MAXIMUM_QUANTILES, "quantiles", f"expected at most {MAXIMUM_QUANTILES} quantiles"
        )
        _require(len(set(asked)) == len(asked), "quantiles", "expected each quantile once")
        _require(
            len({each.column for each in asked}) == 1,
            "quantiles",
            "expected quantiles of one column: each column is a question of its own",
        )
        _require(
            lcm(*(each.q.denominator for each in asked if each.q is not None))
            <= MAXIMUM_QUANTILE_DENOMINATOR,
            "quantiles",
            "expected quantiles with a common denominator of at most 10,000, such as four digits give",
        )
        _require(
            not self.aggregates,
            "aggregates",
            "expected none beside quantiles: sums and averages are another release, so ask for them apart",
        )
        _require(
            self.measure is Measure.DISTINCT_MEMBERS,
            "measure",
            "expected distinct members: quantiles are of one value for each member",
        )
        _require(
            not self.omit_counts, "omit_counts", "expected false: no counts are released beside quantiles"
        )
        _require(
            self.bucket is None,
            "bucket",
            "expected none beside quantiles: ask for the quantiles of each range of time apart",
        )
        _require(
            not self.having, "having", "expected none beside quantiles: every element of the domain is shown"
        )
        _require(
            self.k is None,
            "k",
            "expected none beside quantiles: every element of the domain has its own, and they are in its order",
        )

    @property
    def sums_rows(self) -> bool:
        """Whether sums and averages are over rows, and not over members' totals."""
        return bool(self.aggregates) and self.measure is Measure.EVENTS

    @property
    def in_time_order(self) -> bool:
        """Whether the list is in ascending order of its elements, of which one part is a bucket of time."""
        return self.bucket is not None and not self.bucket.ranked and self.ordered_by is None

    def _check_aggregates(self) -> None:
        _require(
            self.ordered_by is None or 0 <= self.ordered_by < len(self.aggregates),
            "ordered_by",
            "expected a sum or an average that the question asks for",
        )
        if not self.aggregates:
            return
        _require(
            len(self.aggregates) <= MAXIMUM_AGGREGATES,
            "aggregates",
            f"expected at most {MAXIMUM_AGGREGATES} sums and averages",
        )
        distinct = len(set(self.aggregates)) == len(self.aggregates)
        _require(distinct, "aggregates", "expected each sum and average once")
        _require(
            not self.omit_counts,
            "omit_counts",
            "expected false: sums and averages come with their counts, which cost nothing more",
        )

    def _check_totals(self) -> None:
        if self.totals_by is None:
            return
        _require(
            len(self.dimensions) == DRILL_DOWN_DIMENSIONS and self.totals_by in self.dimensions,
            "totals_by",
            f"expected one of exactly two columns to group by, got {', '.join(self.dimensions) or 'none'}: totals add "
            "up over the other one",
        )
        _require(
            not self.quantiles, "totals_by", "expected none beside quantiles: those of parts do not add up"
        )
        _require(
            self.bucket is None,
            "totals_by",
            "expected none beside buckets of time: ask for the totals without the bucket",
        )
        _require(
            all(each.function is AggregateFunction.SUM for each in self.aggregates),
            "totals_by",
            "expected none beside averages: those of parts do not add up; ask for sums and counts",
        )
        _require(
            self.ordered_by is None and not self.having,
            "totals_by",
            "expected a list in the order of its counts, which HAVING does not filter",
        )
        _require(not self.omit_counts, "totals_by", "expected counts that are shown: totals are of them")

    def _check_having(self) -> None:
        if not self.having:
            return
        _require(
            len(self.having) <= MAXIMUM_HAVING, "having", f"expected at most {MAXIMUM_HAVING} conditions"
        )
        _require(bool(self.dimensions), "having", "expected columns to group by: a total is always shown")
        _require(
            not self.omit_counts,
            "having",
            "expected counts that are shown: a condition is on what is released",
        )
        places = range(len(self.aggregates))
        named = all(each.aggregate is None or each.aggregate in places for each in self.having)
        _require(named, "having", "expected the count, or a sum or an average that the question asks for")
