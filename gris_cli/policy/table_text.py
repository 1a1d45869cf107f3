"""What `gris check` prints of a table of a valid policy."""

from __future__ import annotations

from dp_service.queries.columns import Column
from dp_service.queries.elements import date_of
from dp_service.queries.resolution import mechanism_for
from dp_service.queries.table_contributions import Contributions, promised
from dp_service.queries.tables import OfferedMeasure, Policy, Table, TauIs
from dp_service.queries.times import CompleteBy, Refresh, TimeColumn
from dp_service.queries.value_columns import QuantileColumn, ValueColumn, ValueNulls
from dp_service.terms import BoundedBy, ValueType
from dp_service.values.cells import Grid as PublicGrid
from gris_cli.formatting import format_published
from gris_cli.policy.worst_case import WorstCase, worst_cases
from gris_cli.terminal import grid, say, show
from pinot_connector import formats


def print_table(table: Table, policy: Policy) -> None:
    """Print what may be asked of a table, what it costs a member, and how large its noise can be."""
    show()
    say("table", f"{table.name}; its members are {table.member}")
    say("counts", "; ".join(map(_format_measure, table.measures.offered)))
    say("bounded", _format_contributions(table.contributions))
    for value in table.values:
        say("sums", _format_value(value))
    for column in table.quantiles:
        say("quantiles", _format_quantiles(column))
    parts = f"; by its {', '.join(table.parts)}" if table.parts else ""
    say("time", _format_time(table.time) + _format_buckets(table) + parts)
    say("asked again", _format_consistency(table))
    for case in worst_cases(table, policy):
        say("worst case", _format_worst(case))
    cells = [_cells(each, table) for each in table.usable_columns]
    show(grid(("column", "type", "group by", "filter"), cells))


def _format_worst(case: WorstCase) -> str:
    by = f" by {', '.join(case.columns)}" if case.columns else ""
    return (
        f"{case.measure.replace('_', ' ')}{by}: costs at most {case.information} information, and a count is off by "
        f"{case.mean_error:.3g} on average"
    )


def _cells(column: Column, table: Table) -> tuple[str, ...]:
    return (
        column.name,
        column.type,
        _format_grouping(column, table),
        ", ".join(sorted(table.operators(column))) or "-",
    )


def _format_grouping(column: Column, table: Table) -> str:
    if not column.group_by:
        return "-"
    mechanism = mechanism_for(table, [column])
    domain = "unknown domain" if column.domain is None else f"domain of {len(column.domain)}"
    if column.publication is not None:
        domain += f" ({format_published(column.publication.rho, column.publication.delta)})"
    if column.lookup is not None:
        domain += f" (looked up by {column.lookup.key.name}, of {formats.counted(len(column.lookup.entries), 'key')})"
    found = column.of_member_within
    reach = "any number" if found is None else f"{'typically' if column.typical else 'at most'} {found}"
    return f"{mechanism}: {domain}, {reach} of a member"


def _format_measure(offered: OfferedMeasure) -> str:
    how = {None: "", TauIs.ASSUMED: ", which is assumed", TauIs.CLIPPED: ", by clipping"}[offered.tau_is]
    return (
        f"{offered.measure.value.replace('_', ' ')}, a member changes a count by at most {offered.tau}{how}"
    )


def _format_contributions(stated: Contributions | None) -> str:
    """Return how contributions are bounded, empty if they are not."""
    if stated is None:
        return ""
    periods = f" in each {stated.periods}" if isinstance(stated.periods, Refresh) else ""
    if isinstance(stated.periods, int) and stated.periods > 1:
        periods = f" in each of {stated.periods} periods"
    bound = f"a member counts in at most {formats.counted(promised(stated) or 0, 'element')}{periods}"
    match stated.bounded_by:
        case BoundedBy.IN_QUERY:
            bound = "a member with more elements than are typical of a question's columns counts less than 1 in each"
        case BoundedBy.PREPARED:
            bound += f", as a copy that was prepared by {', '.join(stated.elements)}"
        case BoundedBy.ASSUMED:
            bound += ", which is assumed"
    return (
        f"{bound}; a question costs {stated.units} information; elements count from "
        f"{stated.min_count} on{_format_looks(stated.longest_list)}"
        f"{_format_expected(stated)}{formats.largest_cut(stated.largest_cut)}"
    )


def _format_expected(stated: Contributions) -> str:
    """Return of which columns counts are expected, empty if of none."""
    return f"; counts are expected of {', '.join(sorted(stated.expected))}" if stated.expected else ""


def _format_value(value: ValueColumn) -> str:
    """Return how rows and members' totals of a value column are rounded and clamped."""
    quantum, rows, totals = value.bounds.quantum.size, value.bounds.rows, value.bounds.totals
    row_lower, row_upper, lower, upper = (
        formats.exact(end * quantum) for end in (rows.low, rows.high, totals.low, totals.high)
    )
    return (
        f"{value.name}: rows count with {row_lower} to {row_upper}, and a member's total in an element with {lower} to "
        f"{upper}{_format_months_of(value)}, in steps of {formats.exact(quantum)}"
        f"{_format_value_nulls(value)}"
    )


def _format_months_of(value: ValueColumn) -> str:
    if value.months is None:
        return ""
    lower, upper = formats.exact(value.months.lower), formats.exact(value.months.upper)
    return f", by months or shorter buckets alone with {lower} to {upper}"


def _format_quantiles(column: QuantileColumn) -> str:
    """Return between which ends rows count, and among which cells values are."""
    quantum, rows, grid = column.bounds.quantum.size, column.bounds.rows, column.spec
    if column.type is ValueType.DATE:
        days = formats.counted((grid.high - grid.low) // grid.cells, "day")
        return (
            f"{column.name}: rows count with {date_of(rows.low)} to {date_of(rows.high)}, among "
            f"{formats.counted(grid.cells, 'public cell')} of {days} from {date_of(grid.low)} to before "
            f"{date_of(grid.high)}"
        )
    row_lower, row_upper, lower, upper = (
        formats.exact(end * quantum) for end in (rows.low, rows.high, grid.low, grid.high)
    )
    return (
        f"{column.name}: rows count with {row_lower} to {row_upper}, among {len(PublicGrid.of(grid))} public cells "
        f"between {lower} and {upper}, in steps of {formats.exact(quantum)}"
    )


def _format_value_nulls(value: ValueColumn) -> str:
    if value.nulls is ValueNulls.KEEP and value.null_value is not None:
        return f"; a missing value counts as {formats.exact(value.null_value)}"
    if value.nulls is ValueNulls.OWN_COUNT:
        return "; rows without a value count, and its sums and averages are of the others, with a count of their own"
    return "; rows without a value count in no question that sums it"


def _format_looks(longest_list: int | None) -> str:
    """Return what the first of two looks does, empty if there is one look."""
    if longest_list is None:
        return ""
    return f"; of columns of unknown values a first look names at most {formats.counted(longest_list, 'element')}"


def _format_buckets(table: Table) -> str:
    if not table.buckets:
        return ""
    return f"; in buckets of a {', '.join(table.buckets)}"


def _format_time(time: TimeColumn | None) -> str:
    if time is None:
        return "no time column"
    if time.refresh is None:
        return f"{time.name}, zone {time.zone}; rows count as they arrive"
    return (
        f"{time.name}, zone {time.zone}; rows count when their {time.refresh} has been over for "
        f"{formats.counted(time.delay_minutes, 'minute')}{_format_stream(time)}"
    )


def _format_stream(time: TimeColumn) -> str:
    promises = "; rows of closed periods are never replaced, by promise" if time.replaced_rows else ""
    if time.replaced_by is not None:
        promises += "; rows are replaced by those of the same member, by promise"
    if time.offline_part is not None:
        promises += "; its offline part holds whole days, by promise"
    match time.complete_by:
        case CompleteBy.OFFSETS:
            return f"; takes in a stream, complete by its offsets{promises}"
        case CompleteBy.DELAY:
            return f"; takes in a stream, complete by that time, by promise{promises}"
        case None:
            return ""


def _format_consistency(table: Table) -> str:
    version = "of the declared version" if table.data_version else "of one version"
    return f"{table.consistency}, on data {version}"
