"""The table of totals beside a list, and of what the list leaves of each."""

from __future__ import annotations

from rich.table import Table

from gris_cli.formatting import format_aggregate, value_cells
from gris_cli.terminal import grid
from pinot_connector import formats
from pinot_connector.results import PrivateResult
from pinot_connector.totals import TotalRow


def totals_table(result: PrivateResult, most: int) -> Table | None:
    """Return the table of at most so many totals; None: there are none."""
    stated = result.parameters.totals
    if stated is None or result.totals is None:
        return None
    title = next(column.title for column in result.columns if column.name == stated.column)
    counted = [f"noisy count of {stated.counted.value}", *map(format_aggregate, result.parameters.aggregates)]
    heads = [f"total of {title}"]
    for each in counted:
        heads += [each, "interval", "other", "interval"]
    return grid(heads, map(_cells, result.totals[:most]), numbers=range(1, len(heads)))


def _cells(total: TotalRow) -> list[str]:
    cells = [
        *(str(total.value), str(total.noisy_count), formats.interval(total.interval)),
        *(str(total.other_count), formats.interval(total.other_interval)),
    ]
    for whole, other in zip(total.sums, total.other_sums, strict=True):
        cells += [*value_cells(whole), *value_cells(other)]
    return cells
