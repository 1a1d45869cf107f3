"""What `gris catalog` prints."""

from __future__ import annotations

import datetime

from gris_cli.formatting import format_currency, format_published
from gris_cli.terminal import grid, print_json, say, show
from pinot_connector import formats
from pinot_connector.catalog import (
    Catalog,
    CatalogContributions,
    CatalogValue,
    ColumnEntry,
    MeasureEntry,
    TableEntry,
    TimeEntry,
)
from pinot_connector.engines.base import ColumnType, TimeUnit
from pinot_connector.parameters import BoundedBy, Consistency
from pinot_connector.shown_values import ShownScalar, shown_values
from pinot_connector.value_parameters import QuantileColumn

MAX_VALUES = 8


def print_catalog(catalog: Catalog, *, as_json: bool) -> None:
    """Print what may be asked; of long domains only the first values, unless as JSON."""
    if as_json:
        print_json(catalog.to_dict())
        return
    say("currency", format_currency(catalog.epsilon_per, catalog.delta, catalog.unit_id))
    say("policy", catalog.policy_id)
    if (blocks := catalog.blocks) is not None:
        say(
            "blocks",
            f"by {blocks.name}, each paying for itself: {_format_domain(blocks.values)}"
            f"{', and all others' * bool(blocks.rest)}",
        )
    for table in catalog.tables:
        print_table(table)


def print_table(table: TableEntry) -> None:
    """Print what may be asked of a table."""
    show()
    say("table", f"{table.name}; its members are {table.member}")
    say("counts", "; ".join(map(_format_measure, table.measures)))
    if table.contributions is not None:
        say("bounded", _format_contributions(table.contributions))
    if table.block_column is not None:
        say("block", f"a row's, by {table.block_column}")
    for value in table.values:
        say("sums", _format_value(value))
    for quantile in table.quantiles:
        say("quantiles", _format_quantiles(quantile))
    if table.time is not None:
        say("time", _format_time(table.time))
    for function in table.functions:
        say(f"by {function.code.replace('_', ' ')}", f"{function.meaning} {function.sql}")
    is_keyed = table.consistency is Consistency.KEYED
    say("asked again", "the same answer" if is_keyed else "other noise, paid again")
    show(grid(("column", "type", "group by", "filter", "values"), map(_cells, table.columns)))


def _cells(column: ColumnEntry) -> tuple[str, ...]:
    mechanism = "-" if column.mechanism is None else column.mechanism.value
    filters = ", ".join(operator.value for operator in column.filters) or "-"
    values = _format_domain(column.domain)
    if column.published is not None:
        values += f"; {format_published(column.published.rho, column.published.delta)}"
    if column.looked_up_by is not None:
        values += f"; looked up by {column.looked_up_by}"
    if column.typical is not None:
        values += f"; a member typically has {column.typical}"
    return column.name, column.type.value, mechanism, filters, values


def _format_domain(domain: tuple[ShownScalar, ...] | None) -> str:
    if domain is None:
        return "not known"
    values = ", ".join(str(value) for value in domain[:MAX_VALUES])
    return values if len(domain) <= MAX_VALUES else f"{values}, ... {len(domain)} in all"


def _format_contributions(contributions: CatalogContributions) -> str:
    longest = contributions.longest_list
    looks = (
        ""
        if longest is None
        else f"; over columns of unknown values a first look names at most {longest} elements"
    )
    return (
        f"{_bounded(contributions)}; a question costs {_price(contributions)}, and looks at elements that "
        f"count at least {contributions.min_count}{looks}{formats.largest_cut(contributions.largest_cut)}"
    )


def _price(contributions: CatalogContributions) -> str:
    least, most = contributions.least_units, contributions.most_units
    stated = f"{contributions.units} information"
    return stated if least == most else f"{stated}, or {least} to {most} if it says how exact it has to be"


def _format_value(value: CatalogValue) -> str:
    lower, upper = formats.exact(value.lower), formats.exact(value.upper)
    rows = f"; a row counts with {formats.exact(value.row_lower)} to {formats.exact(value.row_upper)}"
    return (
        f"{value.name}: a member's total in an element counts with {lower} to {upper}, in steps of "
        f"{formats.exact(value.quantum)}{rows}"
    )


def _format_quantiles(column: QuantileColumn) -> str:
    lower, upper = formats.exact(column.lower), formats.exact(column.upper)
    return (
        f"{column.name}: among {column.cells} public cells from {lower} to {upper}; 1 quantile costs 1 information for "
        "each element of a member, 3 cost 2, 9 cost 4"
    )


def _format_measure(entry: MeasureEntry) -> str:
    clipped = ", by clipping" if entry.clipped else ""
    return f"{entry.text}, a member changes a count by at most {entry.tau}{clipped}"


def _format_time(time: TimeEntry) -> str:
    text = f"{time.column}, in {time.unit.value}, zone {time.zone}{_format_buckets(time)}"
    if time.parts:
        text += f"; also by {', '.join(time.parts)}"
    if time.closed_before is None or time.refresh is None:
        return text
    return (
        f"{text}; closed each {time.refresh.value}, now before {_format_end(time.closed_before, time.unit)}"
    )


def _format_buckets(time: TimeEntry) -> str:
    if not time.buckets:
        return ""
    return f"; in buckets of a {', '.join(time.buckets)}"


def _format_end(value: int, unit: TimeUnit) -> str:
    match unit:
        case TimeUnit.DAYS:
            return str(shown_values(ColumnType.DATE, [value])[0])
        case TimeUnit.MICROSECONDS:
            timestamp = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(
                microseconds=value
            )
            return timestamp.isoformat()
        case _:
            return str(value)


_BECAUSE = {
    BoundedBy.IN_QUERY: "as the query sees to",
    BoundedBy.PREPARED: "and in more with less than 1 in each, as the table was prepared",
    BoundedBy.ASSUMED: "as the policy promises and nothing checks",
}


def _bounded(contributions: CatalogContributions) -> str:
    """Return in how many elements a member counts, of a question whose range decides how many periods there are."""
    most, is_prepared = contributions.delta, contributions.bounded_by is BoundedBy.PREPARED
    reach = (
        "in full in as many elements as are typical of a question's columns, and with less than 1 in each of more"
        if most is None
        else f"{'in full ' * is_prepared}in at most {formats.counted(most, 'element')}"
    )
    if contributions.longest_list is not None:
        reach += " of those that a first look names"
    if contributions.periods is None:
        reach += " in each period"
    elif contributions.periods > 1:
        reach += f" in each of {contributions.periods} periods"
    return (
        f"counts are of bounded contributions: a member counts {reach}, {_BECAUSE[contributions.bounded_by]}"
    )
