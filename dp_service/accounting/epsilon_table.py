"""The epsilon of every number of units of one currency, by the adaptive bound: made once, then read.

Making a table takes tens of seconds for thousands of units, so a table can be kept as bytes, and extended later. Who
reads one waits for nothing.
"""

from __future__ import annotations

import bisect
import io
import math
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.accounting.adaptive import RESOLUTION, Floats, Grid, UpperTable, slack_down, upper_tables
from dp_service.accounting.checks import require_probability, require_units

# Raised whenever the same currency would get other numbers.
_FORMAT = 1
_MANTISSAS = (
    100,
    112,
    125,
    140,
    160,
    180,
    200,
    224,
    250,
    280,
    315,
    350,
    400,
    450,
    500,
    560,
    630,
    710,
    800,
    900,
)

SLACKS = tuple(Fraction(f"{each}e{power}") for power in range(-15, -5) for each in _MANTISSAS)
"""The slacks that a table holds, rising, from 10^-13 to just below 10^-3; epsilon is interpolated between them."""

# Half a dozen float operations lose less.
_MARGIN = 2.0**-40

_ALLOWED = np.array([slack_down(each) for each in SLACKS])


class TableError(ValueError):
    """Bytes that are no table of this version; the text says why."""


@dataclass(frozen=True)
class EpsilonTable:
    """The epsilon of 0, 1, ..., `units` units at each of `SLACKS`, rounded up: shape (units + 1, number of slacks).

    `last` are the bounds for `units` units, from which the table can be extended.
    """

    epsilon_per: Fraction
    epsilon_by_units: NDArray[np.float32]
    last: UpperTable

    @property
    def units(self) -> int:
        """The largest number of units in the table."""
        return len(self.epsilon_by_units) - 1

    def epsilon(self, information: int, slack: Fraction) -> float:
        """Return the epsilon of so many units, rounded up; inf if the table does not hold it.

        Raises:
            ValueError: `information` is negative, or not 0 < slack < 1.
        """
        require_units("information", information)
        require_probability("slack", slack)
        at_or_above = bisect.bisect_left(SLACKS, slack)
        if information > self.units or slack < SLACKS[0]:
            return math.inf
        row = self.epsilon_by_units[information].astype(np.float64)
        if at_or_above == len(SLACKS):
            # An epsilon for less slack is one for more.
            return float(row[-1])
        if SLACKS[at_or_above] == slack:
            return float(row[at_or_above])
        # V_k is convex, so between two points of its graph it is below the line.
        high, low = SLACKS[at_or_above], SLACKS[at_or_above - 1]
        share = float((high - slack) / (high - low))
        least, most = row[at_or_above], row[at_or_above - 1]
        return float((least + math.log1p(share * math.expm1(most - least))) * (1 + _MARGIN))

    def to_bytes(self) -> bytes:
        """Return the table as bytes; they hold nothing but what follows from its currency."""
        file = io.BytesIO()
        np.savez_compressed(
            file,
            format=np.array([_FORMAT]),
            epsilon_per=np.array([str(self.epsilon_per)]),
            slacks=_ALLOWED,
            grid=np.array([self.last.grid.step]),
            unit=np.array([self.last.grid.unit, self.last.grid.first]),
            epsilons=self.epsilon_by_units,
            values=self.last.values,
            rest=np.array([self.last.rest]),
        )
        return file.getvalue()


def new_table(epsilon_per: Fraction, *, resolution: int = RESOLUTION) -> EpsilonTable:
    """Return the table of a currency with no unit yet.

    Raises:
        ValueError: Not 0 < epsilon_per <= 10.
    """
    first = next(upper_tables(epsilon_per, resolution=resolution))
    return EpsilonTable(epsilon_per, _rows([first.epsilons(_ALLOWED)]), first)


def extended(table: EpsilonTable, units: int, advance: Callable[[], None] = lambda: None) -> EpsilonTable:
    """Return a table with at least so many units; `advance` is called after each unit that is added."""
    rows, last = [], table.last
    for _ in range(units - table.units):
        last = last.with_another_unit()
        rows.append(last.epsilons(_ALLOWED))
        advance()
    if not rows:
        return table
    return EpsilonTable(table.epsilon_per, np.concatenate([table.epsilon_by_units, _rows(rows)]), last)


def table_from(content: bytes) -> EpsilonTable:
    """Return the table in bytes that `to_bytes` returned.

    Raises:
        TableError: They are damaged, no table, or one of another version.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            parts = {name: file[name] for name in file.files}
        if parts["format"].tolist() != [_FORMAT] or not np.array_equal(parts["slacks"], _ALLOWED):
            raise TableError("it is the table of another version")
        unit, first = parts["unit"].tolist()
        grid = Grid(float(parts["grid"][0]), unit, first)
        last = UpperTable(grid, parts["values"], float(parts["rest"][0]))
        table = EpsilonTable(Fraction(str(parts["epsilon_per"][0])), parts["epsilons"], last)
    except (OSError, EOFError, KeyError, IndexError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise TableError("it is damaged, or no table") from error
    except ValueError as error:
        raise TableError(
            str(error) if isinstance(error, TableError) else "it is damaged, or no table"
        ) from error
    if not _is_sound(table):
        raise TableError("it holds numbers that cannot be right")
    return table


def _rows(epsilons: list[Floats]) -> NDArray[np.float32]:
    """Return rows in half the space, rounded up."""
    short = np.array(epsilons).astype(np.float32)
    return np.nextafter(short, np.float32(np.inf), where=short < np.array(epsilons), out=short)


def _is_sound(table: EpsilonTable) -> bool:
    """Return whether a table has the form of one: epsilon falls with slack, and grows with units from 0 on."""
    found = table.epsilon_by_units
    if found.dtype != np.float32 or found.ndim != 2 or found.shape[1] != len(SLACKS) or not len(found):
        return False
    no_units = bool((found[0] == 0).all())
    falls, grows = bool((np.diff(found, axis=1) <= 0).all()), bool((np.diff(found, axis=0) >= 0).all())
    e = table.last.grid.e
    return no_units and falls and grows and math.isclose(e, float(table.epsilon_per), rel_tol=1e-12)
