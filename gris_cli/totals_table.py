"""The table of totals beside a list, and of what the list leaves of each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from gris_cli.formatting import format_aggregate
from pinot_connector.formats import written
from pinot_connector.notebooks.cells import isolated, visible
from pinot_connector.results import PrivateResult
from pinot_connector.shown_values import AggregateValue
from pinot_connector.totals import TotalRow


def totals_table(result: PrivateResult, most: int) -> Table | None:
    """Return the table of at most so many totals; None: there are none."""
    stated = result.parameters.totals
    if stated is None or result.totals is None:
        return None
    table = Table(show_edge=False, header_style="bold")
    title = next(column.title for column in result.columns if column.name == stated.column)
    table.add_column(Text(_printable(f"total of {title}")))
    heads = [f"noisy count of {stated.counted.value}", *map(format_aggregate, result.parameters.aggregates)]
    for head in heads:
        for each in (head, "interval", "other", "interval"):
            table.add_column(Text(_printable(each)), justify="right")
    for total in result.totals[:most]:
        table.add_row(*(Text(_printable(cell)) for cell in _cells(total)))
    return table


def _cells(total: TotalRow) -> Sequence[str]:
    cells = [str(total.value)]
    for count, (lower, upper) in (
        (total.noisy_count, total.interval),
        (total.other_count, total.other_interval),
    ):
        cells += [str(count), f"{lower} to {upper}"]
    for whole, other in zip(total.sums, total.other_sums, strict=True):
        cells += [*_value_cells(whole), *_value_cells(other)]
    return cells


def _value_cells(value: AggregateValue) -> list[str]:
    number, lower, upper = written(value.value, value.interval)
    return [number, f"{lower} to {upper}"]


def _printable(text: str) -> str:
    return isolated(visible(text))
