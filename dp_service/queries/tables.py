"""The content of a policy as values: the currency, and for each table what may be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import ceil, prod
from typing import Annotated, TypeVar

from pydantic import Field

from dp_service.queries.asked_numbers import Counted, DistinctValues, Measure
from dp_service.queries.audience_terms import AskedAs, Audience
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.columns import Column, Operator
from dp_service.queries.currency import Currency
from dp_service.queries.domains import MAXIMUM_ELEMENTS
from dp_service.queries.errors import RefusedByPolicyError, Rule
from dp_service.queries.filters import In
from dp_service.queries.functions.bins import MAXIMUM_EDGES
from dp_service.queries.functions.first_times import MOST_COHORTS
from dp_service.queries.policy_types import MAXIMUM_ROWS_OF_MEMBER, Identifier, Stated
from dp_service.queries.publications import Publication, policy_statement
from dp_service.queries.structured import MAXIMUM_DIMENSIONS, HistogramQuery
from dp_service.queries.suggestions import by_bins, instead_of, quoted
from dp_service.queries.table_contributions import Contributions
from dp_service.queries.time_parts import TimePart
from dp_service.queries.times import TimeColumn
from dp_service.queries.value_columns import QuantileColumn, ValueColumn
from dp_service.terms import BoundedBy, Consistency, CountNoise, ValueType

_NumberColumn = TypeVar("_NumberColumn", QuantileColumn, ValueColumn)

DEFAULT_MAX_K = 100
"""The largest k of questions whose price grows with k, where the policy states none."""


class TauIs(StrEnum):
    """Why no member changes a count of events by more than tau.

    ASSUMED: the policy's author promises it; nothing checks it, and if it is false the guarantee is. CLIPPED: the query
    itself counts no member more often than that in one element.
    """

    ASSUMED = "assumed"
    CLIPPED = "clipped"


class Events(Stated):
    """Rows may be counted where no query bounds members: how many of a member count in one element, and why."""

    tau: Annotated[int, Field(gt=0, le=1_000_000)]
    tau_is: Annotated[TauIs, Field(strict=False)]


@dataclass(frozen=True)
class OfferedMeasure:
    """What may be counted, by how much a member changes a count, and why (None: each member counts once)."""

    measure: Counted
    tau: int
    tau_is: TauIs | None


class Measures(Stated):
    """What may be counted: members, rows, and distinct values of columns, as the policy says.

    Rows may be counted where the policy states one of `events` and `rows`.

    Attributes:
        distinct_members: Whether members may be counted.
        events: How rows count where no query bounds members.
        rows: How many rows of a member count in full where the query bounds members, in all elements together.
        distinct: The columns whose distinct values may be counted, and how many of a member count in one element.
    """

    distinct_members: bool = False
    events: Events | None = None
    rows: Annotated[int, Field(gt=0, le=MAXIMUM_ROWS_OF_MEMBER)] | None = None
    distinct: dict[Identifier, Annotated[int, Field(gt=0, le=1_000_000)]] = Field(default_factory=dict)

    @property
    def offered(self) -> tuple[OfferedMeasure, ...]:
        """The measures that may be counted."""
        members = [OfferedMeasure(Measure.DISTINCT_MEMBERS, 1, None)] if self.distinct_members else []
        events = self.events
        rows = [] if events is None else [OfferedMeasure(Measure.EVENTS, events.tau, events.tau_is)]
        rows += [] if self.rows is None else [OfferedMeasure(Measure.EVENTS, self.rows, TauIs.CLIPPED)]
        values = (
            OfferedMeasure(DistinctValues(column), most, TauIs.CLIPPED)
            for column, most in sorted(self.distinct.items())
        )
        return (*members, *rows, *values)

    @property
    def assumed_tau(self) -> int | None:
        """How many rows of a member there are in one element, where that is a promise; None: it is none."""
        return self.events.tau if self.events is not None and self.events.tau_is is TauIs.ASSUMED else None

    @property
    def counts_rows(self) -> bool:
        """Whether rows may be counted."""
        return self.events is not None or self.rows is not None

    def most_squared(self, elements: int) -> int:
        """Return by how much, in square, a member moves counts of rows of a question, in up to so many elements."""
        # Of Delta * ceil(rows / Delta)^2 the largest is at one of the ends.
        of_rows = 0 if self.rows is None else max(self.rows**2, elements)
        return of_rows if self.events is None else elements * self.events.tau**2


class TableKeys(Stated):
    """What holds of a table as the policy states it.

    Attributes:
        member: The column of the members.
        time: The time column; None: there is none.
        data_version: The version of the data that the policy declares; None: the engine's own counts.
        consistency: Whether a repeated question gets the same answer.
        d_bar: How many elements of an unknown domain are fetched; None: the default for the mechanism.
        reserve_first: Whether the budget is reserved before the engine is asked, to spare it questions that the budget
            refuses.
        contributions: How contributions are bounded; None: they are not.
        measures: What may be counted.
        block: The column that says which block of members a row is of; None: questions read all blocks.
    """

    member: Identifier
    time: TimeColumn | None = None
    data_version: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    consistency: Annotated[Consistency, Field(strict=False)] = Consistency.KEYED
    d_bar: Annotated[int, Field(ge=10, le=100_000)] | None = None
    reserve_first: bool = False
    contributions: Contributions | None = None
    measures: Measures
    block: Identifier | None = None


class Table(TableKeys):
    """A table that the policy lists, with what its keys lead to.

    Attributes:
        name: The name of the table.
        columns: The columns that the policy lists.
        max_k: How many elements are shown at most by mechanisms whose price grows with k.
        values: The columns that may be summed, by name.
        quantiles: The columns whose quantiles may be asked for, by name.
        forced: What must hold of each row that counts, whatever a question says.
    """

    name: str
    columns: tuple[Column, ...]
    max_k: int
    values: tuple[ValueColumn, ...]
    quantiles: tuple[QuantileColumn, ...]
    forced: tuple[In, ...]

    @property
    def numbers(self) -> tuple[ValueColumn | QuantileColumn, ...]:
        """The columns that may be summed, and then those with quantiles: a column can be among both."""
        return (*self.values, *self.quantiles)

    @property
    def buckets(self) -> Sequence[BucketLength]:
        """Into which buckets of time questions may divide the time column, from the shortest on."""
        return () if self.time is None else tuple(self.time.buckets)

    @property
    def parts(self) -> Sequence[TimePart]:
        """By which parts of the time column questions may group."""
        return () if self.time is None else tuple(self.time.parts)

    @property
    def most_typical(self) -> int:
        """How many values of one of its columns, or buckets or parts of time, a member typically has at most."""
        columns = [each.typical for each in self.columns]
        times = [] if self.time is None else [*self.time.buckets.values(), *self.time.parts.values()]
        return max((each for each in (*columns, *times) if each is not None), default=1)

    @property
    def most_elements(self) -> int:
        """In how many elements a question can count a member in full at most: by four columns, or functions of them."""
        unstated = any(each.typical is None for each in self.numbers)
        most = max(
            self.most_typical, MAXIMUM_EDGES + 1 if unstated else 1, MOST_COHORTS if self.buckets else 1
        )
        # Whoever counts in so many counts in all that there are.
        return min(prod([most] * MAXIMUM_DIMENSIONS), MAXIMUM_ELEMENTS)

    def quantile(self, name: str) -> QuantileColumn:
        """Return a column whose quantiles a question asks for.

        Raises:
            RefusedByPolicyError: The policy lists no grid for it.
        """
        return self._number_column(self.quantiles, "quantiles", name)

    def value(self, name: str) -> ValueColumn:
        """Return a column whose values a question sums.

        Raises:
            RefusedByPolicyError: The policy does not list its values.
        """
        return self._number_column(self.values, "values", name)

    def _number_column(self, columns: tuple[_NumberColumn, ...], what: str, name: str) -> _NumberColumn:
        """Return the column of a name among those of which the policy lists something."""
        for column in columns:
            if column.name == name:
                return column
        names = [column.name for column in columns]
        raise RefusedByPolicyError(
            Rule.COLUMN,
            f"the policy lists no {what} of a column {quoted(name, names)} for the table {self.name}; "
            f"{instead_of(name, names)}",
        )

    def numbers_of(self, name: str) -> ValueColumn | QuantileColumn:
        """Return a column of numbers, which are summed or have quantiles.

        Raises:
            RefusedByPolicyError: The policy lists no numbers of it.
        """
        return self._numbers.get(name) or self.value(name)

    def has_numbers(self, name: str) -> bool:
        """Return whether the policy lists a column's numbers, to be summed or for quantiles."""
        return name in self._numbers

    @property
    def _numbers(self) -> Mapping[str, ValueColumn | QuantileColumn]:
        found: dict[str, ValueColumn | QuantileColumn] = {
            each.name: each for each in self.quantiles if each.type is not ValueType.DATE
        }
        return found | {each.name: each for each in self.values}

    def column(self, name: str) -> Column:
        """Return a column that a question names.

        Raises:
            RefusedByPolicyError: The policy does not list it, or it is the member column.
        """
        if name == self.member:
            raise RefusedByPolicyError(
                Rule.MEMBER_COLUMN,
                f"{name}: the member column may be counted, but neither filtered on nor grouped by; ask "  # noqa: S608
                f"SELECT COUNT(DISTINCT {name}) FROM {self.name}",
            )
        return self._listed(name)

    def member_column(self) -> Column | None:
        """Return the member column if the policy lists it, or None."""
        return next((column for column in self.columns if column.name == self.member), None)

    def time_column(self) -> Column:
        """Return the time column.

        Raises:
            RefusedByPolicyError: The table has none.
        """
        if self.time is None:
            raise RefusedByPolicyError(
                Rule.TIME_COLUMN, f"the policy names no time column for the table {self.name}"
            )
        return self._listed(self.time.name)

    def operators(self, column: Column) -> frozenset[Operator]:
        """Return the conditions that may be set on a column; ranges of the time column always may."""
        is_time = self.time is not None and self.time.name == column.name
        return frozenset(column.operators) | ({Operator.RANGE} if is_time else frozenset())

    @property
    def usable_columns(self) -> tuple[Column, ...]:
        """The columns that questions can group by or filter on, by name."""
        usable = [column for column in self.columns if column.group_by or self.operators(column)]
        return tuple(sorted(usable, key=lambda column: column.name))

    @property
    def own_columns(self) -> tuple[Column, ...]:
        """The columns that the table has itself, and not by looking them up."""
        return tuple(column for column in self.columns if column.lookup is None)

    def tau(self, measure: Counted, shares: Fraction | int) -> int:
        """Return tau: by how much one member changes a count.

        Args:
            measure: What is counted.
            shares: Into how many parts the rows of a member are divided, one of which an element has.

        Raises:
            RefusedByPolicyError: The table does not offer the measure.
        """
        for offered in self.measures.offered:
            if offered.measure == measure:
                is_shared = measure is Measure.EVENTS and self.measures.rows is not None
                return ceil(offered.tau / shares) if is_shared else offered.tau
        offered_counts = " and ".join(_count(each.measure, self) for each in self.measures.offered)
        stated = self.contributions
        what = f"the policy does not offer {_count(measure, self)} for the table {self.name}"
        if stated is not None and stated.bounded_by is BoundedBy.PREPARED:
            what = f"the table {self.name} is a prepared copy, of members and their weights: no other counts follow"
        raise RefusedByPolicyError(Rule.MEASURE, f"{what}; it offers {offered_counts}")

    def rows_with_value(self, column: ValueColumn, shares: Fraction) -> int:
        """Return how many rows of a member count in full in an element, of those with a value of a column.

        Raises:
            RefusedByPolicyError: Neither the column nor the table says how many do.
        """
        return self.tau(Measure.EVENTS, shares) if column.rows is None else ceil(column.rows / shares)

    def require_total(self, measure: Counted) -> None:
        """Check that tau bounds how much one member changes a total, and not only a group.

        An assumed tau is promised of the rows that a member has in one element of a column. In a total all rows of a
        member are in one element, and nothing is promised of them. A query that clips enforces tau there as well.

        Raises:
            RefusedByPolicyError: It does not.
        """
        if measure is Measure.EVENTS and self.measures.assumed_tau is not None:
            raise RefusedByPolicyError(
                Rule.MEASURE,
                f"COUNT(*) without GROUP BY is not offered for the table {self.name}: the policy assumes how many rows "
                "a member has in one element of a column (tau_is: assumed), which bounds no total. It is offered "
                f"where the query clips (rows, or tau_is: clipped){self._other_total}",
            )

    @property
    def _other_total(self) -> str:
        members = _count(Measure.DISTINCT_MEMBERS, self)
        return f"; {members} has no such limit" if self.measures.distinct_members else ""

    def clips(self, query: HistogramQuery) -> bool:
        """Return whether a query counts at most tau rows of a member in one element.

        Where numbers of rows are asked for, it does whatever the policy assumes.
        """
        counted = query.measure is Measure.EVENTS and self.measures.assumed_tau is None
        return query.sums_rows or query.ranks_rows or counted

    def _in_bins(self, name: str) -> str:
        """Return what a refusal tells to ask of a column of numbers: counts by bins between its bounds."""
        if not self.has_numbers(name):
            return ""
        bounds = self.numbers_of(name).bounds
        low, high = (end * bounds.quantum.size for end in (bounds.rows.low, bounds.rows.high))
        measure = Measure.DISTINCT_MEMBERS if self.measures.distinct_members else Measure.EVENTS
        return (
            f". Ask for all of its bins instead: {by_bins(_count(measure, self), self.name, name, low, high)}"
        )

    def _listed(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        names = [column.name for column in self.usable_columns]
        if name in {*(each.name for each in self.values), *(each.name for each in self.quantiles)}:
            raise RefusedByPolicyError(
                Rule.COLUMN,
                f"{name} is a value column of the table {self.name}: it has sums, averages or quantiles, and bins as "
                f"groups; it is neither grouped by nor filtered on as it is{self._in_bins(name)}",
                name,
            )
        raise RefusedByPolicyError(
            Rule.COLUMN,
            f"the policy lists no column {quoted(name, names)} for the table {self.name}; {instead_of(name, names)}",
            name,
        )


def _count(measure: Counted, table: Table) -> str:
    """Return a measure in the words of SQL."""
    if isinstance(measure, DistinctValues):
        return f"COUNT(DISTINCT {measure.column})"
    return "COUNT(*)" if measure is Measure.EVENTS else f"COUNT(DISTINCT {table.member})"


@dataclass(frozen=True)
class Policy:
    """What may be asked in a deployment, and the currency of the price. Everything that is not listed is refused.

    Attributes:
        currency: The currency.
        tables: The tables.
        audiences: What each audience is offered of them; empty: everybody is offered everything.
        whole: The policy of which this is what an audience sees; None: it is the whole one.
        asked_as: Which audience that is.
    """

    currency: Currency
    tables: tuple[Table, ...]
    audiences: Mapping[str, Audience] = field(default_factory=dict)
    whole: Policy | None = None
    asked_as: AskedAs | None = None

    @property
    def count_noise(self) -> CountNoise:
        """The noise in counts that are drawn apart from the selection, for the whole deployment."""
        return self.currency.count_noise

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all tables and of their columns, which every caller may read in the catalogue."""
        names = {name for table in self.tables for name in (table.name, table.member)}
        for table in self.tables:
            for columns in (table.columns, table.values, table.quantiles):
                names.update(each.name for each in columns)
        return frozenset(names)

    @property
    def members(self) -> frozenset[str]:
        """The names of the member columns of all tables."""
        return frozenset(table.member for table in self.tables)

    @property
    def is_divided(self) -> bool:
        """Whether rows of any table say which block a member is of."""
        return any(table.block is not None for table in self.tables)

    @cached_property
    def publications(self) -> frozenset[Publication]:
        """The published domains of all columns of all tables; every account may see all of them."""
        domains = (column.publication for table in self.tables for column in table.columns)
        return frozenset(each for each in domains if each is not None)

    @cached_property
    def statement(self) -> str:
        """The policy statement of the publications, which every charge carries to the ledger; empty if none.

        It is that of the whole policy for every audience: what members are promised is of all together.
        """
        return policy_statement(self.publications) if self.whole is None else self.whole.statement

    def table(self, name: str) -> Table:
        """Return a table that a question names.

        Raises:
            RefusedByPolicyError: The policy does not list it.
        """
        for table in self.tables:
            if table.name == name:
                return table
        names = [table.name for table in self.tables]
        raise RefusedByPolicyError(
            Rule.TABLE, f"the policy lists no table {quoted(name, names)}; {instead_of(name, names)}"
        )
