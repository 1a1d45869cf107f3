"""Histograms that simulations run on: a file of counts, or a table whose members are counted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dp_service.mechanisms import Histogram


@dataclass(frozen=True)
class NamedHistogram:
    """Elements and their histogram, in the order of the elements; `source` is what a plot calls the data."""

    elements: tuple[str, ...]
    histogram: Histogram
    source: str

    def largest(self, rows: int) -> NamedHistogram:
        """Return the `rows` largest, ties broken by the element: what an engine would be asked for."""
        kept = np.sort(self.histogram.canonical_order[:rows])
        counts = self.histogram.counts_by_element[kept]
        return NamedHistogram(
            tuple(self.elements[index] for index in kept), Histogram.from_element_order(counts), self.source
        )


def histogram_of_members(path: Path, by: str, member: str) -> NamedHistogram:
    """Return how many members each element of a column has in a file.

    Raises:
        InputError: It cannot be read, or has no such column.
    """
    import duckdb  # noqa: PLC0415 - an extra of its own

    from research.lab.reading import TABLE, reading  # noqa: PLC0415

    element, person = (duckdb.ColumnExpression(name) for name in (by, member))
    with reading(path, {by: "by", member: "member"}) as connection:
        table = connection.table(TABLE)
        pairs = table.select(element.cast("VARCHAR").alias("element"), person.alias("member")).distinct()
        rows = pairs.filter("element IS NOT NULL AND member IS NOT NULL").aggregate(
            "element, count(*) AS members", "element"
        )
        found = rows.order("element").fetchall()
    return NamedHistogram(
        tuple(name for name, _ in found),
        Histogram.from_element_order(np.array([n for _, n in found], dtype=np.int64)),
        f"{by} of {path.name}",
    )
