"""What `gris catalog` prints."""

from __future__ import annotations

import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gris_cli.printing import console_of_width, print_json, printable, say
from pinot_connector.catalog import Catalog, ColumnEntry, MeasureEntry, TableEntry, TimeEntry
from pinot_connector.engines.base import ColumnType, TimeUnit
from pinot_connector.results import Consistency, Shown, shown_values

MAX_VALUES = 8


def print_catalog(catalog: Catalog, *, as_json: bool) -> None:
    """Print what may be asked; of long domains only the first values, unless as JSON."""
    if as_json:
        print_json(catalog.to_dict())
        return
    console = console_of_width()
    epsilon, delta = float(catalog.epsilon_per), float(catalog.delta)
    say(console, "currency", f"epsilon_per {epsilon:g}, delta {delta:g}; unit {catalog.unit_id}")
    say(console, "policy", catalog.policy_id)
    for table in catalog.tables:
        _print_table(console, table)


def _print_table(console: Console, table: TableEntry) -> None:
    console.print()
    say(console, "table", f"{table.name}; its members are {table.member}")
    say(console, "counts", "; ".join(map(_format_measure, table.measures)))
    if table.time is not None:
        say(console, "time", _format_time(table.time))
    is_keyed = table.consistency is Consistency.KEYED
    say(console, "asked again", "the same answer" if is_keyed else "other noise, paid again")
    grid = Table(show_edge=False, header_style="bold")
    for head in ("column", "type", "group by", "filter", "values"):
        grid.add_column(head)
    for column in table.columns:
        grid.add_row(*(Text(printable(cell)) for cell in _cells(column)))
    console.print(grid)


def _cells(column: ColumnEntry) -> tuple[str, ...]:
    mechanism = "-" if column.mechanism is None else column.mechanism.value
    filters = ", ".join(operator.value for operator in column.filters) or "-"
    values = _format_domain(column.domain)
    if column.published is not None:
        rho, delta = float(column.published.rho), float(column.published.delta)
        values += f"; published at rho {rho:g}, delta {delta:g}"
    return column.name, column.type.value, mechanism, filters, values


def _format_domain(domain: tuple[Shown, ...] | None) -> str:
    if domain is None:
        return "not known"
    values = ", ".join(str(value) for value in domain[:MAX_VALUES])
    return values if len(domain) <= MAX_VALUES else f"{values}, ... {len(domain)} in all"


def _format_measure(entry: MeasureEntry) -> str:
    clipped = ", by clipping" if entry.clipped else ""
    return f"{entry.measure.value}, a member changes a count by at most {entry.tau}{clipped}"


def _format_time(time: TimeEntry) -> str:
    text = f"{time.column}, in {time.unit.value}, zone {time.zone}"
    if time.closed_before is None or time.refresh is None:
        return text
    return (
        f"{text}; closed each {time.refresh.value}, now before {_format_end(time.closed_before, time.unit)}"
    )


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
