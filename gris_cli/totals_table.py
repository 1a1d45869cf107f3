"""The table of totals beside a list, and of what the list leaves of each."""

from __future__ import annotations

from rich.table import Table

from gris_cli.terminal import grid
from pinot_connector.notebooks.cells import total_cells
from pinot_connector.results import PrivateResult


def totals_table(result: PrivateResult, most: int) -> Table | None:
    """Return the table of at most so many totals; None: there are none."""
    stated = result.parameters.totals
    if stated is None or result.totals is None:
        return None
    title = next(column.title for column in result.columns if column.name == stated.column)
    counted = [
        f"noisy count of {stated.counted.value}",
        *(each.title for each in result.parameters.aggregates),
    ]
    heads = [f"total of {title}"]
    for each in counted:
        heads += [each, "interval", "other", "interval"]
    rows = (total_cells(each, result.parameters.decimals) for each in result.totals[:most])
    return grid(heads, rows, numbers=range(1, len(heads)))
