"""The numbers of proofs/coarse.v: a coarse table that the solver makes, in parts of 2^32 and rounded up.

`python -m research.tests.proofs.coarse_table` writes them. Coq checks what is written; nothing rests on this module.
"""

from __future__ import annotations

import math
import re
import textwrap
from fractions import Fraction
from pathlib import Path

import numpy as np

from research.accounting.adaptive import PrivacyLossGrid, UpperTable

COARSE = Path(__file__).parents[2] / "proofs" / "coarse.v"
UP, DOWN = 25, 23
"""Their quotient is that of two points; its third power is a little above exp(1 / 4)."""

UNIT, ONE, UNITS, WHOLE = 3, 27, 30, 2**32

_NUMBERS = re.compile(r"(?<=Definition numbers : list \(list Z\) := \[\n)[^.]*(?=\]\.)")
_WIDTH = 114


def rows() -> list[list[int]]:
    """Return the rows as they are made."""
    return [_row(table, units) for units, table in enumerate(tables())]


def tables() -> list[UpperTable]:
    """Return the tables of the solver, whose points begin `UNIT` behind those of the rows."""
    step = math.nextafter(math.log(UP / DOWN), math.inf)
    grid = PrivacyLossGrid(step, UNIT, UNIT - ONE)
    made = [UpperTable(grid, -np.expm1(grid.logs(0, ONE - UNIT)), 0.0)]
    while len(made) <= UNITS:
        made.append(made[-1].with_another_unit())
    return made


def written() -> list[list[int]]:
    """Return the rows that the file holds."""
    (found,) = _NUMBERS.findall(COARSE.read_text())
    return [[int(each) for each in re.findall(r"\d+", row)] for row in re.findall(r"\[([^\]]*)", found)]


def _row(table: UpperTable, units: int) -> list[int]:
    # Each row leaves room for what the one before was rounded up.
    rest = units + 2
    values = [math.ceil(Fraction(each) * WHOLE) + units + 1 for each in table.values.tolist()]
    kept = next(count for count in range(len(values), 0, -1) if values[count - 1] > rest)
    # On the line from (0, 1), as in the solver.
    below = [
        WHOLE - math.floor((WHOLE - values[0]) * Fraction(DOWN, UP) ** before)
        for before in range(UNIT, 0, -1)
    ]
    return [*below, *values[:kept], rest]


def _text(table: list[list[int]]) -> str:
    lines = [textwrap.fill("; ".join(map(str, row)), _WIDTH).replace("\n", "\n   ") for row in table]
    return ";\n".join(f"  [{each}]" for each in lines)


if __name__ == "__main__":
    COARSE.write_text(_NUMBERS.sub(_text(rows()), COARSE.read_text()))
