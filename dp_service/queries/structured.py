"""The structured form of a question, and the limits that every question keeps.

The constructors check everything that does not depend on a policy, and raise QuestionError naming the field. So every
`HistogramQuery` is well formed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from math import lcm

from dp_service.parameters.numbers import Computed
from dp_service.parameters.release import HavingCondition
from dp_service.queries.asked_numbers import (
    MAXIMUM_QUANTILE_DENOMINATOR,
    AskedNumber,
    AskedQuantile,
    Counted,
    DistinctValues,
    Measure,
    Part,
    count_part,
)
from dp_service.queries.dimensions import Dimension, functions_of, is_series, require_together
from dp_service.queries.filters import (
    ColumnFilter,
    Filter,
    In,
    Like,
    NotIn,
    TimeRange,
    column_filters,
    depth_of,
    require_valid,
)
from dp_service.queries.functions.function import Function
from dp_service.queries.max_error import MaxError
from dp_service.terms import AggregateFunction, ColumnType, MemberValue

MAXIMUM_DIMENSIONS = 4
MAXIMUM_FILTERS = 128
MAXIMUM_DEPTH = 8
# All texts of a question together; the rendered queries travel in one message.
MAXIMUM_TEXT_TOTAL = 200_000
# As many as a number in a client may say; of more than there are, all are shown.
MAXIMUM_K = 2**31 - 1
MAXIMUM_AGGREGATES = 16
MAXIMUM_QUANTILES = 999
MAXIMUM_HAVING = 16


class Free(StrEnum):
    """What a question in SQL asks that needs no release."""

    COLUMNS = "columns"
    ELEMENTS = "elements"


def _texts(condition: Filter) -> list[str]:
    values = [value for each in column_filters(condition) for value in _values(each)]
    return [value for value in values if isinstance(value, str)]


def _values(condition: ColumnFilter) -> tuple[object, ...]:
    match condition:
        case In() | NotIn():
            return condition.values
        case Like():
            return (condition.pattern,)
        case _:
            return ()


@dataclass(frozen=True)
class HistogramQuery:
    """Count `measure` by `dimensions` in `table` where all `filters` hold within `time_range`; show the `k` largest.

    Attributes:
        table: The table.
        dimensions: What to group by, at most 4 different columns or functions of a row; none: one total, whose element
            has no values.
        measure: What is counted.
        filters: Conditions, all of which must hold: at most 128 on columns, in one another at most 8 times.
        time_range: Which rows count, by the table's time column; None: all.
        k: How many elements to show, from 1 to 2^31 - 1; None: all that the mechanism may show.
        omit_counts: Whether to show only the order of the elements.
        aggregates: At most 16 different numbers beside the counts, in the order in which they are shown: beside counts
            of events they are of rows, beside counts of members of members' totals, but for `over_rows`.
        ordered_by: The place in `aggregates`, or in `quantiles`, of the one that the list is in descending order of;
            None: it is in the order of its counts, beside quantiles of its elements. It changes what is shown of a
            release, and not what is released.
        smallest_first: Whether the list is in ascending order of what it is in descending order of otherwise.
        quantiles: At most 999 different quantiles of one column, its smallest and its largest value among them; then no
            counts and no aggregates are shown, and all elements of a known domain are.
        ranked: Whether a list by functions of time is in descending order of its counts, as any other is, and not in
            the order of time.
        by_element: Whether the list is in ascending order of its elements, as one by functions of time is that is not
            ranked; k then shows the first of them.
        having: At most 16 conditions on what was released of an element; elements that do not meet all of them are not
            shown. They change nothing of what is released.
        max_error: How exact its counts have to be, as `MaxError` reads it; empty: the price is the policy's.
        count_alias: The name of the counts in SQL, for those who display them; no part of the question.
        aliases: The name of each column in SQL, None where it is its own; empty: all are. No part of the question.
        shown: In which order SQL selects the columns of the answer, as places among dimensions, the count, and
            aggregates or, instead of both, quantiles; empty: in this one. No part of the question.
        free: What it asks that needs no release: its columns, or the values of listed domains; None: it needs one.
        probed: The names and types of a table's columns that are asked for, where these are all that is; then `free` is
            COLUMNS, and the other fields are those of a question that groups by one of them.
        explained: Whether its price alone is asked for, by EXPLAIN. No part of the question.
        in_sql: Whether the question was asked in SQL, for the words of errors; no part of the question.
        over_rows: Whether sums beside a count of members are over rows, as SQL has them, and not of members' totals.
        is_of_values: Whether it asks for sums or averages of columns, and for no count.
    """

    table: str
    dimensions: tuple[Dimension, ...]
    measure: Counted
    filters: tuple[Filter, ...] = ()
    time_range: TimeRange | None = None
    k: int | None = None
    omit_counts: bool = False
    aggregates: tuple[AskedNumber, ...] = ()
    ordered_by: int | None = None
    quantiles: tuple[AskedQuantile, ...] = ()
    ranked: bool = False
    having: tuple[HavingCondition, ...] = ()
    by_element: bool = False
    smallest_first: bool = False
    max_error: str = ""
    count_alias: str | None = field(default=None, compare=False)
    aliases: tuple[str | None, ...] = field(default=(), compare=False)
    shown: tuple[int, ...] = field(default=(), compare=False)
    free: Free | None = None
    probed: tuple[tuple[str, ColumnType], ...] = ()
    explained: bool = field(default=False, compare=False)
    in_sql: bool = field(default=False, compare=False)
    over_rows: bool = False
    is_of_values: bool = False

    def __post_init__(self) -> None:
        require_valid(
            len(self.dimensions) <= MAXIMUM_DIMENSIONS,
            "dimensions",
            f"expected at most {MAXIMUM_DIMENSIONS} columns to group by",
        )
        shows_something = bool(self.dimensions) or not self.omit_counts
        require_valid(
            shows_something, "omit_counts", "expected false: a total has nothing to show but its count"
        )
        distinct = len(set(self.dimensions)) == len(self.dimensions)
        require_valid(distinct, "dimensions", "expected each column to group by once")
        self._check_of_members()
        every = self.every_filter
        conditions = sum(1 for each in every for _ in column_filters(each))
        require_valid(
            conditions <= MAXIMUM_FILTERS, "filters", f"expected at most {MAXIMUM_FILTERS} conditions"
        )
        require_valid(
            max(map(depth_of, every), default=0) <= MAXIMUM_DEPTH,
            "filters",
            f"expected AND and OR in one another at most {MAXIMUM_DEPTH} times",
        )
        texts = [text for condition in every for text in _texts(condition)]
        texts += [str(each) for one in self.functions for each in one.values or ()]
        total = sum(map(len, texts))
        require_valid(
            total <= MAXIMUM_TEXT_TOTAL, "filters", f"expected at most {MAXIMUM_TEXT_TOTAL} characters in all"
        )
        require_valid(
            self.k is None or 1 <= self.k <= MAXIMUM_K, "k", f"expected a whole number from 1 to {MAXIMUM_K}"
        )
        MaxError.of(self.max_error)
        self._check_aggregates()
        self._check_distinct()
        self._check_quantiles()
        self._check_having()
        require_valid(
            not self.smallest_first or not self.in_element_order,
            "smallest_first",
            "expected false of a list that is in the order of its elements",
        )
        require_valid(
            not self.by_element
            or (self.ordered_by is None and not self.omit_counts and bool(self.dimensions)),
            "by_element",
            "expected false of a list that is in the order of a number, and of a total",
        )

    def _check_quantiles(self) -> None:
        asked = self.quantiles
        if not asked:
            return
        require_valid(
            len(asked) <= MAXIMUM_QUANTILES, "quantiles", f"expected at most {MAXIMUM_QUANTILES} quantiles"
        )
        require_valid(len(set(asked)) == len(asked), "quantiles", "expected each quantile once")
        require_valid(
            len({(each.column, each.of) for each in asked}) == 1,
            "quantiles",
            "expected quantiles of one column: each column is a question of its own",
        )
        require_valid(
            lcm(*(each.q.denominator for each in asked if each.q is not None))
            <= MAXIMUM_QUANTILE_DENOMINATOR,
            "quantiles",
            "expected quantiles with a common denominator of at most 10,000, such as four digits give",
        )
        require_valid(
            not self.aggregates,
            "aggregates",
            "expected none beside quantiles: sums and averages are another release, so ask for them apart",
        )
        require_valid(
            self.measure is Measure.DISTINCT_MEMBERS,
            "measure",
            "expected distinct members: no count is released beside quantiles",
        )
        require_valid(
            not self.omit_counts, "omit_counts", "expected false: no counts are released beside quantiles"
        )
        require_valid(
            all(each.has_quantiles for each in self.functions),
            "dimensions",
            "expected no buckets of time beside quantiles: ask for the quantiles of each range of time apart",
        )
        require_valid(
            not self.having, "having", "expected none beside quantiles: every element of the domain is shown"
        )
        require_valid(
            self.k is None,
            "k",
            "expected none beside quantiles: every element of the domain has its own, and they are in its order",
        )

    @property
    def plain_dimensions(self) -> tuple[str, ...]:
        """Those of its dimensions that are columns as they are."""
        return tuple(each for each in self.dimensions if isinstance(each, str))

    @property
    def functions(self) -> tuple[Function, ...]:
        """Those of its dimensions that are functions."""
        return functions_of(self.dimensions)

    @property
    def grouped_columns(self) -> tuple[str, ...]:
        """The columns that it groups by as they are, or by a part of their texts, each once."""
        restricted = (name for each in self.functions if each.is_restricted for name in each.columns)
        return tuple(dict.fromkeys([*self.plain_dimensions, *restricted]))

    @property
    def row_filters(self) -> tuple[Filter, ...]:
        """Its conditions, and of bins of whole numbers that a row is in one."""
        return (*self.filters, *(each for one in self.functions for each in one.row_filters))

    @property
    def every_filter(self) -> tuple[Filter, ...]:
        """Its conditions, those of its numbers and of what it groups by among them."""
        of_numbers = (one for each in self.aggregates for part in each.parts for one in part.condition)
        of_functions = (one for each in self.functions for one in each.conditions)
        return (*self.filters, *of_numbers, *of_functions)

    @property
    def sums_rows(self) -> bool:
        """Whether sums and averages are over rows, and not over members' totals."""
        return bool(self.aggregates) and self.measure is Measure.EVENTS

    @property
    def ranks_rows(self) -> bool:
        """Whether quantiles are of rows, and not of one value for each member."""
        return any(each.of is MemberValue.ROWS for each in self.quantiles)

    @property
    def the_count(self) -> Part:
        """The count, as a part of numbers."""
        return count_part(
            Measure.DISTINCT_MEMBERS if self.measure is Measure.DISTINCT_MEMBERS else Measure.EVENTS
        )

    @property
    def in_element_order(self) -> bool:
        """Whether the list is in ascending order of its elements."""
        of_time = any(map(is_series, self.dimensions)) and not self.ranked and self.ordered_by is None
        return of_time or self.by_element

    def _check_of_members(self) -> None:
        """Refuse numbers of rows beside a function of a member's rows, which counts members."""
        require_together(self.dimensions)
        of_member = next((str(each) for each in self.functions if each.is_of_member), "")
        require_valid(
            not of_member
            or (self.measure is Measure.DISTINCT_MEMBERS and not self.aggregates and not self.quantiles),
            "measure",
            f"expected distinct members, and no other number, beside {of_member}: it is of members, and not of rows",
        )

    def _check_aggregates(self) -> None:
        require_valid(
            self.ordered_by is None or 0 <= self.ordered_by < len(self.quantiles or self.aggregates),
            "ordered_by",
            "expected a number or a quantile that the question asks for",
        )
        named = [self.ordered_by, *(each.aggregate for each in self.having)]
        asked = {place for place, each in enumerate(self.aggregates) if set(each.parts) == {self.the_count}}
        require_valid(
            not asked.intersection(named) or bool(self.quantiles),
            "aggregates",
            "expected an order and conditions of the count itself, and not of what is computed of it alone",
        )
        if not self.aggregates:
            return
        require_valid(
            len(self.aggregates) <= MAXIMUM_AGGREGATES,
            "aggregates",
            f"expected at most {MAXIMUM_AGGREGATES} sums and averages",
        )
        distinct = len(set(self.aggregates)) == len(self.aggregates)
        require_valid(distinct, "aggregates", "expected each sum and average once")
        require_valid(
            all(
                isinstance(each.form, Computed) or set(each.parts) != {self.the_count}
                for each in self.aggregates
            ),
            "aggregates",
            "expected no number that is the count itself: it is shown anyway, so leave it out or give it a condition",
        )
        parts = {part for each in self.aggregates for part in each.parts}
        require_valid(
            len(parts - {self.the_count}) <= MAXIMUM_AGGREGATES,
            "aggregates",
            f"expected numbers of at most {MAXIMUM_AGGREGATES} sums and counts",
        )
        require_valid(
            self.measure is Measure.DISTINCT_MEMBERS
            or all(each.function is not AggregateFunction.MEMBERS for each in parts),
            "measure",
            "expected distinct members, which a number of members and one of rows are counted beside",
        )
        require_valid(
            self.measure is not Measure.DISTINCT_MEMBERS or not any(map(_is_of_rows, self.aggregates)),
            "measure",
            "expected a count of rows, COUNT(*) alone, for a part of rows or an amount per row: beside a count of "
            "members each number of rows and each total of a member is cut by itself, and theirs is no part of another",
        )
        require_valid(
            not self.omit_counts,
            "omit_counts",
            "expected false: sums and averages come with their counts, which cost nothing more",
        )

    def _check_distinct(self) -> None:
        if not isinstance(self.measure, DistinctValues):
            return
        require_valid(
            not self.aggregates,
            "aggregates",
            "expected none beside distinct values of a column: sums and averages are another release, so ask for them "
            "apart",
        )

    def _check_having(self) -> None:
        if not self.having:
            return
        require_valid(
            len(self.having) <= MAXIMUM_HAVING, "having", f"expected at most {MAXIMUM_HAVING} conditions"
        )
        require_valid(
            bool(self.dimensions), "having", "expected columns to group by: a total is always shown"
        )
        require_valid(
            not self.omit_counts,
            "having",
            "expected counts that are shown: a condition is on what is released",
        )
        places = range(len(self.aggregates))
        named = all(each.aggregate is None or each.aggregate in places for each in self.having)
        require_valid(
            named, "having", "expected the count, or a sum or an average that the question asks for"
        )


def _is_of_rows(number: AskedNumber) -> bool:
    """Return whether a number compares rows with rows, or with the amounts of members."""
    functions = [part.function for part in number.parts]
    of_rows = [each for each in functions if each in (AggregateFunction.ROWS, AggregateFunction.SUM)]
    return len(of_rows) > 1 and AggregateFunction.ROWS in of_rows
