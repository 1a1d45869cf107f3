"""The content of a policy as values: the currency, and for each table what may be asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.errors import RefusedByPolicyError, Rule
from dp_service.queries.lookups import Entries
from dp_service.queries.pairs_manifest import PairsManifest
from dp_service.queries.publications import Publication, policy_statement
from dp_service.queries.structured import HistogramQuery, Measure, Value
from dp_service.queries.suggestions import instead_of, quoted
from dp_service.queries.times import Refresh, TimeColumn, Timestamps
from dp_service.terms import (
    Answering,
    BoundedBy,
    ColumnType,
    Consistency,
    CountNoise,
    GridSpec,
    MemberValue,
    ValueType,
)
from dp_service.values.bounds import ValueBounds

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


class ValueNulls(StrEnum):
    """What happens to a row whose value is not usable, in questions that sum the column.

    DROP: it is left out. KEEP: it counts with the column's null value. OWN_COUNT: it counts, and only the column's own
    sums and averages leave it out, which have a count of their own for that.
    """

    DROP = "drop"
    KEEP = "keep"
    OWN_COUNT = "own_count"


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
class Lookup:
    """A public function from the values of another column to texts.

    Attributes:
        key: The column whose values are looked up.
        entries: Each key with its text, ascending by key.
        hash: Names the file that says so, by its content.
    """

    key: Column
    entries: Entries = field(compare=False, repr=False)
    hash: str

    @property
    def values(self) -> frozenset[str]:
        """The texts that some key has."""
        return frozenset(value for _, value in self.entries)


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
        attribute: Whether every member has one value of the column, in all rows.
        lookup: How its values follow from those of another column; a key without a text then stands for NULL. None: the
            table has the column.
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
    attribute: bool = False
    lookup: Lookup | None = None

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
class Names:
    """The first of two looks at an unknown domain, which names the elements that the second one counts.

    Attributes:
        delta_1: In how many elements a member counts at most in the first look.
        share: The part of the units that the first look takes, between 0 and 1.
        max_names: How many elements it names at most.
    """

    delta_1: int
    share: Fraction
    max_names: int


@dataclass(frozen=True)
class ExpectedCounts:
    """What the policy's author expects of the counts of one column, in questions without conditions.

    `by_rank` has pairs of a rank and the count of distinct members of the element at this rank, before bounding, by
    ascending rank and falling count. They come from another period or from elsewhere, never from the data that
    questions are about; if they are wrong, less is found than expected, and nothing else changes.
    """

    column: str
    by_rank: tuple[tuple[int, int], ...]

    def at_least(self, rank: int) -> int:
        """Return the count that the elements up to this rank reach: that of the next rank that is stated, else 0."""
        return next((count for stated, count in self.by_rank if stated >= rank), 0)

    def at_most(self, rank: int) -> int | None:
        """Return the count that the elements from this rank on do not exceed; None: nothing is stated of them."""
        return next((count for stated, count in reversed(self.by_rank) if stated <= rank), None)


@dataclass(frozen=True)
class Choice:
    """Between which ways of answering the service chooses the cheapest that is expected to find all k elements.

    Attributes:
        among: The ways; of equal prices the first is chosen.
        units: How many information units a question of bounded contributions may cost, ascending.
        kept: The part of a count that bounding to `delta_0` is expected to leave.
        kept_names: The same of the first of two looks; None: it has the bound of the second, or there is none.
        expected: What is expected of counts, for each column of which something is.
    """

    among: tuple[Answering, ...]
    units: tuple[int, ...]
    kept: Fraction
    kept_names: Fraction | None
    expected: tuple[ExpectedCounts, ...]


@dataclass(frozen=True)
class ValueColumn:
    """A column whose values are summed.

    Attributes:
        name: The name of the column.
        type: The type of its values.
        bounds: How rows and members' totals are rounded and clamped.
        weight: Its part of what the sums of a question pay, beside those of the other columns.
        nulls: What happens to rows whose value is not usable: NULL, NaN or infinite.
        null_value: What stands for NULL: what an engine without NULL stores, and what such rows count with if they are
            kept. None: the engine stores an infinity or no number.
        publication: What the upper bound cost everyone who may see it; None: it was not published from the data.
    """

    name: str
    type: ValueType
    bounds: ValueBounds
    weight: int
    nulls: ValueNulls
    null_value: Fraction | None
    publication: Publication | None = None


@dataclass(frozen=True)
class QuantileColumn:
    """A column whose quantiles may be asked for.

    Attributes:
        name: The name of the column.
        type: The type of its values.
        bounds: How rows and members' values are rounded and clamped; the latter to the grid.
        grid: The public grid that a value is chosen from.
        rule: Which value of a member counts.
        max_rows: How many rows the table has at most, where they are added up; None: they are not.
        nulls: As for a `ValueColumn`.
        null_value: As for a `ValueColumn`.
    """

    name: str
    type: ValueType
    bounds: ValueBounds
    grid: GridSpec
    rule: MemberValue
    nulls: Nulls
    null_value: Fraction | None
    max_rows: int | None


@dataclass(frozen=True)
class Sums:
    """What questions for sums rest on, besides the bound of contributions.

    Attributes:
        max_members: How many members the table has at most.
        max_rows: How many rows it has at most.
        share: The part of the units that counts take.
    """

    max_members: int
    max_rows: int
    share: Fraction


@dataclass(frozen=True)
class Totals:
    """What totals beside a list by two columns rest on, besides the bound of contributions.

    Attributes:
        share: The part of the units that totals take.
        one_value: The columns of which a member has one value, as the author of the policy promises.
    """

    share: Fraction
    one_value: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contributions:
    """In how many elements a member counts, and what a release of such counts costs.

    Attributes:
        bounded_by: Why a member counts in no more elements.
        delta_0: In how many elements a member counts at most: of a question, or of a period of a prepared copy.
        units: How many information units a question costs.
        min_count: The smallest count that is considered over an unknown domain.
        elements: By which columns a prepared copy is bounded; empty: it is no such copy.
        period: The column of a prepared copy with the periods in each of which members are bounded; None: there is one
            period.
        periods: How many periods the data have; with a calendar, how long a period is. A question's range then decides
            how many there are.
        names: The first of two looks; `delta_0` then bounds the second, within the names. None: there is one look.
        shift: Whether counts of small known domains are released relative to their total, where that helps.
        choice: What the service may choose instead; None: everything is answered as stated here.
        sums: What sums rest on; None: there are none.
        sharpening: How many units a sharpening of counts may take at most; None: there is none.
        buckets: In how many buckets of time a member counts at most, in questions by them alone; None: `delta_0`.
        totals: What totals rest on; None: there are none.
    """

    bounded_by: BoundedBy
    delta_0: int
    units: int
    min_count: int = 1
    elements: tuple[str, ...] = ()
    period: str | None = None
    periods: int | Refresh = 1
    names: Names | None = None
    shift: bool = False
    choice: Choice | None = None
    sums: Sums | None = None
    sharpening: int | None = None
    buckets: int | None = None
    totals: Totals | None = None


@dataclass(frozen=True)
class PreparedPairs:
    """A pairs copy of a table: its name for the engine, its manifest, and the file that holds the manifest."""

    table: str
    manifest: PairsManifest
    path: Path


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
        contributions: How contributions are bounded; None: they are not.
        values: The columns that may be summed, by name.
        prepared: A pairs copy of the table, which answers what can be asked of it; None: there is none.
        quantiles: The columns whose quantiles may be asked for, by name.
        buckets: Into which buckets of time questions may divide the time column; empty: into none.
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
    contributions: Contributions | None = None
    values: tuple[ValueColumn, ...] = ()
    prepared: PreparedPairs | None = None
    quantiles: tuple[QuantileColumn, ...] = ()
    buckets: tuple[BucketLength, ...] = ()

    @property
    def stated_rows(self) -> tuple[tuple[str, int], ...]:
        """The columns whose quantiles rest on the largest number of rows of the table, each with this number."""
        return tuple((each.name, each.max_rows) for each in self.quantiles if each.max_rows is not None)

    def quantile(self, name: str) -> QuantileColumn:
        """Return a column whose quantiles a question asks for.

        Raises:
            RefusedByPolicyError: The policy lists no grid for it.
        """
        for column in self.quantiles:
            if column.name == name:
                return column
        names = [column.name for column in self.quantiles]
        raise RefusedByPolicyError(
            Rule.COLUMN,
            f"the policy lists no quantiles of a column {quoted(name, names)} for the table {self.name}; "
            f"{instead_of(name, names)}",
        )

    def value(self, name: str) -> ValueColumn:
        """Return a column whose values a question sums.

        Raises:
            RefusedByPolicyError: The policy does not list its values.
        """
        for column in self.values:
            if column.name == name:
                return column
        names = [column.name for column in self.values]
        raise RefusedByPolicyError(
            Rule.COLUMN,
            f"the policy lists no values of a column {quoted(name, names)} for the table {self.name}; "
            f"{instead_of(name, names)}",
        )

    @property
    def choice(self) -> Choice | None:
        """Between what the service chooses for a question; None: the policy says how it is answered."""
        return None if self.contributions is None else self.contributions.choice

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
    def own_columns(self) -> tuple[Column, ...]:
        """The columns that the table has itself, and not by looking them up."""
        return tuple(column for column in self.columns if column.lookup is None)

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

    def require_total(self, measure: Measure) -> None:
        """Check that tau bounds how much one member changes a total, and not only a group.

        An assumed tau is promised of the rows that a member has in one element of a column. In a total all rows of a
        member are in one element, and nothing is promised of them. A query that clips enforces tau there as well.

        Raises:
            RefusedByPolicyError: It does not.
        """
        if measure is Measure.EVENTS and self.clip(measure) is None:
            raise RefusedByPolicyError(
                Rule.MEASURE,
                f"COUNT(*) without GROUP BY is not offered for the table {self.name}: the policy assumes how many rows "
                "a member has in one element of a column (tau_is: assumed), which bounds no total. It is offered "
                f"where the policy clips (tau_is: clipped){self._other_total}",
            )

    @property
    def _other_total(self) -> str:
        members = _count(Measure.DISTINCT_MEMBERS, self)
        return f"; {members} has no such limit" if self.distinct_members else ""

    def clip(self, measure: Measure) -> int | None:
        """Return how many events of one member count in one element at most; None: all of them."""
        if measure is Measure.EVENTS and self.events is not None and self.events.tau_is is TauIs.CLIPPED:
            return self.events.tau
        return None

    def clip_of(self, query: HistogramQuery) -> int | None:
        """Return the same for a question. Where rows are summed, the query clips whatever the policy assumes."""
        return self.tau(query.measure) if query.sums_rows else self.clip(query.measure)

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
        """The publications of all columns of all tables, domains and bounds; every account may see all of them."""
        domains = (column.publication for table in self.tables for column in table.columns)
        bounds = (value.publication for table in self.tables for value in table.values)
        return frozenset(each for each in (*domains, *bounds) if each is not None)

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
