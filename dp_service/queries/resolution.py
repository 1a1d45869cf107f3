"""Checks a question against the policy and resolves everything that its release needs.

The mechanism follows from what the policy states about the dimensions:

|                | Delta-restricted | unrestricted |
|----------------|------------------|--------------|
| known domain   | KNOWN_LAP        | KNOWN_GUMB   |
| unknown domain | UNK_LAP          | UNK_GUMB     |

Without dimensions the one element, which has no values, is a known domain in which a member has one element: KNOWN_LAP
with Delta = 1.

Where the policy bounds contributions it is BOUND_GAUSS, over known domains and unknown ones, and BOUND_MOMENTS for
questions that sum. Questions for quantiles are QUANTILE_GUMB, over a known domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dp_service.parameters.release import Listing, ReleaseParameters
from dp_service.queries.allowed_columns import (
    check_filter,
    check_patterns,
    check_shown,
    groupable,
    in_canonical_order,
    with_whole_lists,
)
from dp_service.queries.audience_terms import ALL_ROWS, ForcedRows
from dp_service.queries.blocks import PaidBy
from dp_service.queries.canonical import canonicalise
from dp_service.queries.canonical_columns import QueryColumn, QueryValue, query_column
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.columns import Column
from dp_service.queries.contributions import MAXIMUM_ROWS, PreparedCopy, bounded_contributions, prepared_copy
from dp_service.queries.coordinates import added_up
from dp_service.queries.derived_columns import Grouped, grouped_columns, with_times
from dp_service.queries.domains import grouped_domains, restricted_values
from dp_service.queries.elements import elements_of_domain, scalars
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.filters import In, Value, column_filters
from dp_service.queries.functions.first_times import possible_elements
from dp_service.queries.member_functions import (
    funnel_place,
    most_elements,
    require_of_members,
)
from dp_service.queries.policy_types import COUNT_SHARE
from dp_service.queries.promised_bounds import require_bounded_rows
from dp_service.queries.quantiles import releasing_quantiles, require_quantiles
from dp_service.queries.query_sizes import require_short
from dp_service.queries.read_columns import ReadColumn, columns_read
from dp_service.queries.row_shares import row_shares
from dp_service.queries.shown_elements import fetched_at_most, requested_k_of, shown_at_most
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.suggestions import listed
from dp_service.queries.sums import (
    UNASKED_SHARE,
    require_drawable,
    require_whole_series,
    shown_with_sums,
    sums_released,
)
from dp_service.queries.tables import Policy, Table
from dp_service.queries.times import TimeColumn
from dp_service.queries.usual_range import with_usual_range
from dp_service.terms import BoundedBy, Bounding, ColumnType, CountNoise, Element, MechanismName, Scalar
from dp_service.values.cells import Grid

NAMES_TO_COME: tuple[Element, ...] = ()
"""No names. A second look without names needs no query, so this one stands for names that are not found yet."""


@dataclass(frozen=True)
class ClosedStream:
    """What must hold of a stream: its rows are in of the values of the time column from `start` to before `end`.

    `member` is the column of the members.
    """

    time: TimeColumn
    start: int
    end: int
    member: str


@dataclass(frozen=True)
class Resolution:
    """A question that the policy allows, with everything that was resolved from the policy.

    Attributes:
        query: What the question means.
        parameters: The parameters of its release.
        paid_by: The currency that it is paid in, and the blocks of members that pay.
        fixed_data_version: The version of the data that the policy fixes: the one that it declares, the end of the
            closed periods that the question sees, or both; None: the engine's own.
        row_limit: The most rows that a whole answer has.
        window: The closed periods, as text; None: all rows count.
        reserve_first: Whether the engine is asked only after the budget has been reserved.
        reads: The columns that the query names, and what it assumes about them.
        member_type: The type of the member column; None: the policy does not list it, and any type will do.
        requested_k: The k of the question, if the policy shows fewer elements; None: it shows as many.
        copy: What the table must say of itself as a copy that was bounded beforehand; None: nothing.
        names: The elements that the second of two looks counts, in ascending order; `NAMES_TO_COME`: it will count
            some, and the query is only to be read. None: it is the only look, or the first one.
        stream: What must hold of the stream that the table takes in; None: it takes in none.
        usual_range: The range of time, as text, where some end is the policy's; empty: all of it is the question's.
        looked_up: The looked-up columns that the question names, by name, for statements. The conditions of `query`
            may be on their keys.
        forced: To which rows the audience that asks is restricted.
    """

    query: CanonicalQuery
    parameters: ReleaseParameters
    paid_by: PaidBy
    fixed_data_version: str | None
    row_limit: int
    window: str | None
    reserve_first: bool
    reads: tuple[ReadColumn, ...]
    member_type: ColumnType | None
    requested_k: int | None = None
    copy: PreparedCopy | None = None
    names: tuple[Element, ...] | None = None
    stream: ClosedStream | None = None
    usual_range: str = ""
    looked_up: tuple[QueryColumn, ...] = ()
    forced: ForcedRows = ALL_ROWS

    @property
    def columns(self) -> tuple[tuple[str, ColumnType], ...]:
        """Name and type of each column of the elements, in the question's order."""
        return tuple((dimension.name, dimension.type) for dimension in self.query.dimensions)


def second_look(resolution: Resolution, names: tuple[Element, ...]) -> Resolution:
    """Return the second of two looks at a question: the same question, about the names of the first one alone."""
    return replace(resolution, names=names, row_limit=len(names))


def _cells(parameters: ReleaseParameters) -> int:
    return 1 if parameters.quantiles is None else len(Grid.of(parameters.quantiles.grid))


def resolve(query: HistogramQuery, policy: Policy, *, now: int) -> Resolution:
    """Check a question against the policy and return all that its release needs.

    Args:
        query: The question.
        policy: The policy.
        now: Seconds since 1970 (UTC); decides which periods are closed.

    Raises:
        RefusedByPolicyError: The policy does not allow the question.
        QuestionError: No policy could answer the question; `field` names what is wrong.
    """
    table = policy.table(query.table)
    closed_before = None if table.time is None else table.time.closed_before(now)
    for name in query.plain_dimensions:
        groupable(table, name)
    # What a function can be follows from the conditions.
    conditions = in_canonical_order(query.every_filter)
    for condition in conditions:
        check_filter(table, condition)
    check_patterns(table, conditions)
    asked, query = query, with_usual_range(query, table, closed_before)
    grouped = grouped_columns(query, table, closed_before)
    dimensions = [each.column for each in grouped]
    restricted = restricted_values(dimensions)
    whole = with_whole_lists(query.filters)
    for shown in in_canonical_order(each for each in whole if isinstance(each, In)):
        check_shown(shown, restricted)
    if query.time_range is not None:
        table.time_column()
    require_quantiles(query, table, dimensions)
    canonical = canonicalise(
        query,
        table,
        closed_before=closed_before,
        grouped=[(each.column, each.in_query) for each in grouped],
    )
    canonical = with_times(canonical, query, table, closed_before)
    parameters = _parameters(query, table, dimensions, canonical, policy)
    member = table.member_column()
    parameters = _summing(
        _bounded(parameters, canonical, table),
        query,
        table,
        row_shares(query, [(each.column, each.in_query) for each in grouped], canonical.restrictions, table),
    )
    require_short(parameters, canonical)
    parameters = releasing_quantiles(parameters, query, table)
    return Resolution(
        query=canonical,
        parameters=parameters,
        paid_by=policy.currency.paid_by(canonical, table.block, is_divided=policy.is_divided),
        fixed_data_version=_fixed_data_version(table, canonical),
        row_limit=_row_limit(parameters, grouped),
        window=_window(table, closed_before),
        usual_range="" if query is asked else str(query.time_range),
        reserve_first=table.reserve_first,
        reads=columns_read(canonical, table),
        member_type=None if member is None else member.type,
        requested_k=requested_k_of(query, parameters),
        copy=prepared_copy(table),
        stream=_stream(table, canonical),
        looked_up=_looked_up(query, table),
        forced=ForcedRows.of(table.forced),
    )


def _looked_up(query: HistogramQuery, table: Table) -> tuple[QueryColumn, ...]:
    named = (each.column for one in query.every_filter for each in column_filters(one))
    columns = [table.column(name) for name in sorted({*query.plain_dimensions, *named})]
    return tuple(query_column(column) for column in columns if column.lookup is not None)


def _row_limit(parameters: ReleaseParameters, grouped: Sequence[Grouped]) -> int:
    if parameters.domain is not None:
        # Should an engine put a row beside a function's values, it must not cut off another one for it.
        beside = sum(
            2 * len(parameters.domain) // len(each.column.domain or (None,))
            for each in grouped
            if each.source is not None
        )
        return len(parameters.domain) * _cells(parameters) + beside
    return MAXIMUM_ROWS if parameters.d_bar is None else parameters.d_bar + 1


def _bounded(parameters: ReleaseParameters, query: CanonicalQuery, table: Table) -> ReleaseParameters:
    """Return the parameters with what bounding means for the question, if the policy bounds contributions."""
    if table.contributions is None:
        return parameters
    bounded = bounded_contributions(
        table.contributions,
        table,
        query,
        parameters.domain,
        typical=parameters.delta_l0,
        tau=parameters.tau,
    )
    reach = bounded.periods * bounded.typical
    domain = parameters.domain
    most: int | None = reach if domain is None else min(reach, most_elements(query, domain))
    return replace(
        parameters,
        delta_l0=None if bounded.bounding is Bounding.WEIGHTS else most,
        contributions=bounded,
    )


def _summing(
    parameters: ReleaseParameters, query: HistogramQuery, table: Table, shares: Fraction
) -> ReleaseParameters:
    """Return the parameters with what is added up beside the count, if anything is."""
    if not query.aggregates:
        return parameters
    added, bounded = added_up(query, table, shares), parameters.contributions
    stated = None if table.contributions is None else table.contributions.sums
    if stated is None and any(isinstance(each, QueryValue) for each in added.coordinates):
        raise RefusedByPolicyError(Rule.MEASURE, f"the policy offers no sums for the table {table.name}")
    if bounded is None or bounded.bounded_by is BoundedBy.PREPARED:
        raise RefusedByPolicyError(
            Rule.MEASURE,
            f"the query bounds no contributions to the table {table.name}, as a second count and numbers with a "
            "condition need: ask for each count apart, with its condition in WHERE",
        )
    is_alone = query.is_of_values and (bounded.min_count is None or bounded.names is not None)
    sums = sums_released(query, added, UNASKED_SHARE if is_alone else COUNT_SHARE, bounded)
    require_drawable(sums, bounded, unit=parameters.epsilon_per)
    elements = _most_elements(parameters)
    k = shown_with_sums(parameters.k, len(query.aggregates), elements)
    require_whole_series(query, k, elements if parameters.domain is not None else None)
    mechanism = MechanismName.BOUND_MOMENTS if added.coordinates else parameters.mechanism
    return replace(parameters, mechanism=mechanism, sums=sums, k=k)


def _most_elements(parameters: ReleaseParameters) -> int | None:
    """Return how many elements a release can have; None: an unknown domain has as many as the data say."""
    if parameters.domain is not None:
        return len(parameters.domain)
    names = None if parameters.contributions is None else parameters.contributions.names
    return None if names is None else names.most_names


def _parameters(
    query: HistogramQuery,
    table: Table,
    dimensions: Sequence[Column],
    canonical: CanonicalQuery,
    policy: Policy,
) -> ReleaseParameters:
    tau = canonical.clip or table.tau(query.measure, 1)
    if not dimensions:
        table.require_total(query.measure)
    require_bounded_rows(query, table, dimensions)
    _require_few_lookups(table, dimensions)
    domains = grouped_domains(dimensions, canonical.restrictions)
    mechanism = mechanism_for(table, dimensions)
    require_of_members(canonical, mechanism, is_known=domains.known is not None)
    # Before anything else depends on it: fingerprint, price and noise are those of the k that is shown.
    k = shown_at_most(query, table, mechanism, domains.known)
    is_cut = domains.known is None and mechanism is not MechanismName.BOUND_GAUSS
    d_bar = fetched_at_most(table, mechanism, k) if is_cut else None
    return ReleaseParameters(
        mechanism=mechanism,
        epsilon_per=policy.currency.epsilon_per,
        delta=policy.currency.delta,
        tau=tau,
        delta_l0=domains.delta_l0,
        d_bar=d_bar,
        k=k,
        with_counts=not query.omit_counts,
        count_noise=_count_noise(mechanism, policy),
        consistency=table.consistency,
        domain=None
        if domains.known is None
        else possible_elements(elements_of_domain(domains.known), canonical.dimensions),
        within=() if domains.known is not None else _within(domains.restricted, dimensions),
        clips=canonical.clip is not None,
        listing=_listing(query),
        funnel=funnel_place(canonical),
    )


def _require_few_lookups(table: Table, dimensions: Sequence[Column]) -> None:
    """Refuse a second look whose query would repeat the keys of one lookup for each value of another."""
    looked_up = [each.name for each in dimensions if each.lookup is not None]
    takes_two = table.contributions is not None and table.contributions.longest_list is not None
    if takes_two and len(looked_up) > 1 and any(each.domain is None for each in dimensions):
        raise QuestionError(
            "dimensions",
            f"expected at most one looked-up column beside one of an unknown domain, got {listed(looked_up)}",
        )


def _listing(query: HistogramQuery) -> Listing | None:
    """Return which elements are shown, and in which order, if it is not the order of the release alone."""
    if not query.in_element_order and not query.having and not query.smallest_first:
        return None
    return Listing(query.in_element_order, query.having, query.smallest_first)


def _count_noise(mechanism: MechanismName, policy: Policy) -> CountNoise:
    if mechanism is MechanismName.BOUND_GAUSS:
        return CountNoise.GAUSSIAN
    return policy.count_noise if mechanism.is_gumbel else CountNoise.LAPLACE


def _within(
    restricted: Mapping[str, tuple[Value, ...]], dimensions: Sequence[Column]
) -> tuple[tuple[Scalar, ...] | None, ...]:
    """Return the values that count in each column of an unknown domain, None: all; empty: all in every column."""
    values = [restricted.get(column.name) for column in dimensions]
    if all(each is None for each in values):
        return ()
    return tuple(None if each is None else scalars(each) for each in values)


def _fixed_data_version(table: Table, query: CanonicalQuery) -> str | None:
    """Return the version of the data that the policy fixes, or None.

    Closed periods do not change, so the end of what a question sees names its data: the start of the current period, or
    the end of the question's own time range if that is earlier. A question about last January is the same release every
    day.
    """
    if table.time is None or table.time.refresh is None:
        return table.data_version
    return f"closed:{query.end_of(table.time.name)}:{table.data_version or ''}"


def _stream(table: Table, query: CanonicalQuery) -> ClosedStream | None:
    if table.time is None or table.time.complete_by is None:
        return None
    name = table.time.name
    return ClosedStream(table.time, query.start_of(name), query.end_of(name), table.member)


def _window(table: Table, closed_before: int | None) -> str | None:
    if table.time is None or closed_before is None:
        return None
    return f"{table.time.name} before {table.time.format_value(closed_before)}"


def mechanism_for(table: Table, dimensions: Sequence[Column]) -> MechanismName:
    """Return the mechanism that follows from what the policy states about a table and the group-by columns."""
    if table.contributions is not None:
        return MechanismName.BOUND_GAUSS
    restricted = all(column.delta is not None for column in dimensions)
    if all(column.domain is not None for column in dimensions):
        return MechanismName.KNOWN_LAP if restricted else MechanismName.KNOWN_GUMB
    return MechanismName.UNK_LAP if restricted else MechanismName.UNK_GUMB
