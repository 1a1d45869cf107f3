"""The content of a policy as values: the currency, and for each table what may be asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.errors import RefusedByPolicyError, Rule
from dp_service.queries.publications import Publication, policy_statement
from dp_service.queries.structured import Measure, Value
from dp_service.queries.suggestions import instead_of, quoted
from dp_service.queries.times import TimeColumn, Timestamps
from dp_service.terms import ColumnType, Consistency, CountNoise

_UNIT_ID_CHARACTERS = 32
DEFAULT_MAX_K = 100
"""The largest k of questions whose price grows with k, where the policy states none."""


class Operator(StrEnum):
    """A kind of filter; `=` is IN with one value and `<>` is NOT_IN with one."""

    IN = "in"
    NOT_IN = "not_in"
    RANGE = "range"


class Nulls(StrEnum):
    """What happens to a row whose value is NULL: it is left out, or it counts with the column's null value."""

    DROP = "drop"
    KEEP = "keep"


class TauIs(StrEnum):
    """Why no member changes a count of events by more than tau.

    ASSUMED: the policy's author promises it; nothing checks it, and if it is false the guarantee is. CLIPPED: the query
    itself counts no member more often than that in one element.
    """

    ASSUMED = "assumed"
    CLIPPED = "clipped"


@dataclass(frozen=True)
class Events:
    """Rows may be counted, and by how much one member changes a count."""

    tau: int
    tau_is: TauIs


@dataclass(frozen=True)
class Currency:
    """The currency of a deployment: what one information unit and one call are worth.

    `count_noise` belongs to it. If any count is Gaussian, a unit is worth its zCDP and nothing in bounded range or
    epsilon-DP, for every account. A ledger must not add up units of both kinds: a later policy without Gaussian counts
    would account for them by bounds that do not cover what was released.
    """

    epsilon_per: Fraction
    delta: Fraction
    count_noise: CountNoise = CountNoise.LAPLACE

    @property
    def unit_id(self) -> str:
        """The name of the currency, 32 hexadecimal characters: equal exactly if the numbers and the count noise are."""
        kind = () if self.count_noise is CountNoise.LAPLACE else (self.count_noise.value.encode(),)
        encoded = length_prefixed(b"gris/unit/v1", _ratio(self.epsilon_per), _ratio(self.delta), *kind)
        return hashlib.sha256(encoded).hexdigest()[:_UNIT_ID_CHARACTERS]


def _ratio(number: Fraction) -> bytes:
    return f"{number.numerator}/{number.denominator}".encode()


@dataclass(frozen=True)
class Column:
    """A column that the policy lists.

    Attributes:
        name: The name of the column.
        type: The type of its values.
        group_by: Whether questions may group by it.
        operators: Which conditions questions may set on it.
        domain: The values that may be shown, in element order; None: unknown.
        delta: With how many of the column's values one member can appear, including those outside the domain and a kept
            NULL; None: any number.
        nulls: What happens to rows whose value is NULL.
        null_value: What stands for NULL; None only for a DATE column whose NULLs are dropped. For timestamps that are
            stored as integers it is such an integer.
        publication: What the domain cost everyone who may see it; None: it was not published from the data.
        timestamps: What a column of timestamps holds; None: it is of another type.
    """

    name: str
    type: ColumnType
    group_by: bool
    operators: frozenset[Operator]
    domain: tuple[Value, ...] | None
    delta: int | None
    nulls: Nulls
    null_value: Value | None
    publication: Publication | None = None
    timestamps: Timestamps | None = None

    @property
    def value_for_null(self) -> Value | None:
        """What stands for NULL in answers; None: rows with NULL are left out."""
        return self.null_value if self.nulls is Nulls.KEEP else None

    def delta_within(self, restricted: bool) -> int | None:
        """Return with how many counted values one member can appear; None: any number.

        If `restricted`, only values of the domain are counted, so its size is a bound too.
        """
        if self.delta is None or self.domain is None or not restricted:
            return self.delta
        return min(self.delta, len(self.domain))


@dataclass(frozen=True)
class OfferedMeasure:
    """What may be counted, by how much a member changes a count, and why (None: each member counts once)."""

    measure: Measure
    tau: int
    tau_is: TauIs | None


@dataclass(frozen=True)
class Table:
    """A table that the policy lists.

    Attributes:
        name: The name of the table.
        member: The column of the members.
        time: The time column; None: there is none.
        data_version: The version of the data that the policy declares; None: the engine's own counts.
        consistency: Whether a repeated question gets the same answer.
        d_bar: How many elements of an unknown domain are fetched; None: the default for the mechanism.
        distinct_members: Whether members may be counted.
        events: How events may be counted; None: they may not.
        columns: The columns that the policy lists.
        reserve_first: Whether the budget is reserved before the engine is asked, to spare it questions that the budget
            refuses.
        max_k: How many elements are shown at most by mechanisms whose price grows with k.
    """

    name: str
    member: str
    time: TimeColumn | None
    data_version: str | None
    consistency: Consistency
    d_bar: int | None
    distinct_members: bool
    events: Events | None
    columns: tuple[Column, ...]
    reserve_first: bool = False
    max_k: int = DEFAULT_MAX_K

    def column(self, name: str) -> Column:
        """Return a column that a question names.

        Raises:
            RefusedByPolicyError: The policy does not list it, or it is the member column.
        """
        if name == self.member:
            raise RefusedByPolicyError(
                Rule.MEMBER_COLUMN,
                f"{name}: the member column may be counted, but neither filtered on nor grouped by",
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
        return column.operators | ({Operator.RANGE} if is_time else frozenset())

    @property
    def usable_columns(self) -> tuple[Column, ...]:
        """The columns that questions can group by or filter on, by name."""
        usable = [column for column in self.columns if column.group_by or self.operators(column)]
        return tuple(sorted(usable, key=lambda column: column.name))

    @property
    def measures(self) -> tuple[OfferedMeasure, ...]:
        """The measures that may be counted."""
        members = [OfferedMeasure(Measure.DISTINCT_MEMBERS, 1, None)] if self.distinct_members else []
        events = self.events
        rows = [] if events is None else [OfferedMeasure(Measure.EVENTS, events.tau, events.tau_is)]
        return (*members, *rows)

    def tau(self, measure: Measure) -> int:
        """Return tau: by how much one member changes a count.

        Raises:
            RefusedByPolicyError: The table does not offer the measure.
        """
        for offered in self.measures:
            if offered.measure is measure:
                return offered.tau
        offered_counts = [_count(each.measure, self) for each in self.measures]
        raise RefusedByPolicyError(
            Rule.MEASURE,
            f"the policy does not offer {_count(measure, self)} for the table {self.name}; "
            f"it offers {' and '.join(offered_counts)}",
        )

    def clip(self, measure: Measure) -> int | None:
        """Return how many events of one member count in one element at most; None: all of them."""
        if measure is Measure.EVENTS and self.events is not None and self.events.tau_is is TauIs.CLIPPED:
            return self.events.tau
        return None

    def _listed(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        names = [column.name for column in self.usable_columns]
        raise RefusedByPolicyError(
            Rule.COLUMN,
            f"the policy lists no column {quoted(name, names)} for the table {self.name}; {instead_of(name, names)}",
        )


def _count(measure: Measure, table: Table) -> str:
    """Return a measure in the words of SQL."""
    return "COUNT(*)" if measure is Measure.EVENTS else f"COUNT(DISTINCT {table.member})"


@dataclass(frozen=True)
class Policy:
    """What may be asked in a deployment, and the currency of the price. Everything that is not listed is refused."""

    currency: Currency
    tables: tuple[Table, ...]

    @property
    def count_noise(self) -> CountNoise:
        """The noise in counts that are drawn apart from the selection, for the whole deployment."""
        return self.currency.count_noise

    @cached_property
    def publications(self) -> frozenset[Publication]:
        """The publications of all columns of all tables; every account may see all of them."""
        columns = (column for table in self.tables for column in table.columns)
        return frozenset(column.publication for column in columns if column.publication is not None)

    @cached_property
    def statement(self) -> str:
        """The policy statement of the publications, which every charge carries to the ledger; empty if none."""
        return policy_statement(self.publications)

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
