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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_service.accounting.adaptive import (
    RESOLUTION,
    Grid,
    LowerTable,
    UpperTable,
    lower_tables,
    upper_tables,
)
from dp_service.accounting.checks import require_probability, require_units

Short = NDArray[np.float32]

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

_MOST_POINTS = 2**21

# Half a dozen float operations lose less.
_MARGIN = 2.0**-40

_NEAREST = np.array([float(each) for each in SLACKS])


class TableError(ValueError):
    """Bytes that are no table of this version; the text says why."""


@dataclass(frozen=True)
class _Rows:
    """The epsilon of 0, 1, 2, ... units at each of `SLACKS`, shape (units + 1, number of slacks).

    `enough` is rounded up: so much is enough. `needed` is rounded down: some mechanisms need as much.
    """

    enough: Short
    needed: Short


@dataclass(frozen=True)
class EpsilonTable:
    """The epsilon of 0 to `units` units at each of `SLACKS`, and the bounds from which the table can be extended."""

    epsilon_per: Fraction
    rows: _Rows
    upper: UpperTable
    lower: LowerTable

    @property
    def units(self) -> int:
        """The largest number of units in the table."""
        return len(self.rows.enough) - 1

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
        row = self.rows.enough[information].astype(np.float64)
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

    def needed(self, information: int, slack: Fraction) -> float:
        """Return an epsilon that some strategy of so many units needs, rounded down; 0 if the table holds none.

        Raises:
            ValueError: `information` is negative, or not 0 < slack < 1.
        """
        require_units("information", information)
        require_probability("slack", slack)
        at_or_above = bisect.bisect_left(SLACKS, slack)
        if information > self.units or at_or_above == len(SLACKS):
            return 0.0
        return float(self.rows.needed[information, at_or_above])

    def to_bytes(self) -> bytes:
        """Return the table as bytes; they hold nothing but what follows from its currency."""
        file = io.BytesIO()
        np.savez_compressed(
            file,
            format=np.array([_FORMAT]),
            epsilon_per=np.array([str(self.epsilon_per)]),
            slacks=_NEAREST,
            enough=self.rows.enough,
            needed=self.rows.needed,
            steps=np.array([self.upper.grid.step, self.lower.grid.step]),
            grids=np.array([[grid.unit, grid.first] for grid in (self.upper.grid, self.lower.grid)]),
            upper=self.upper.values,
            rest=np.array([self.upper.rest]),
            lower=self.lower.values,
        )
        return file.getvalue()


def file_name(epsilon_per: Fraction) -> str:
    """Return how the file with a currency's table is called."""
    return f"adaptive-{epsilon_per.numerator}-{epsilon_per.denominator}.npz"


def new_table(epsilon_per: Fraction, *, resolution: int = RESOLUTION) -> EpsilonTable:
    """Return the table of a currency with no unit yet.

    Raises:
        ValueError: Not 0 < epsilon_per <= 10.
    """
    upper = next(upper_tables(epsilon_per, resolution=resolution))
    lower = next(lower_tables(epsilon_per, resolution=resolution))
    return EpsilonTable(epsilon_per, _rows([upper], [lower]), upper, lower)


def extended(table: EpsilonTable, units: int, advance: Callable[[], None] = lambda: None) -> EpsilonTable:
    """Return a table with at least so many units; `advance` is called after each unit that is added."""
    upper, lower = [table.upper], [table.lower]
    found = [table.rows]
    for _ in range(units - table.units):
        upper, lower = [upper[-1].with_another_unit()], [lower[-1].with_another_unit()]
        found.append(_rows(upper, lower))
        advance()
    rows = _Rows(
        np.concatenate([each.enough for each in found]), np.concatenate([each.needed for each in found])
    )
    return table if len(found) == 1 else EpsilonTable(table.epsilon_per, rows, upper[-1], lower[-1])


def work_of(epsilon_per: Fraction, units: int) -> float:
    """Return about how many points of the grid a table of so many units works out; 4 million take a second.

    It is infinite if one row has too many to be held in memory: an epsilon_per of less than 0.0003, or very many units.
    """
    rho = units * float(epsilon_per) ** 2 / 8
    # The table goes from exp(-8) to where delta is 2^-73.
    span = 8 + min(units * float(epsilon_per), rho + 2 * math.sqrt(rho * 73 * math.log(2)))
    points = RESOLUTION * span / float(epsilon_per)
    return units * points if points <= _MOST_POINTS else math.inf


def table_from(content: bytes) -> EpsilonTable:
    """Return the table in bytes that `to_bytes` returned.

    Raises:
        TableError: They are damaged, no table, or one of another version.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            parts = {name: file[name] for name in file.files}
        if parts["format"].tolist() != [_FORMAT] or not np.array_equal(parts["slacks"], _NEAREST):
            raise TableError("it is the table of another version")
        table = _assembled(parts)
    except TableError:
        raise
    except (OSError, EOFError, KeyError, IndexError, TypeError, ValueError) as error:
        raise TableError("it is damaged, or no table") from error
    except (zipfile.BadZipFile, zlib.error) as error:
        raise TableError("it is damaged, or no table") from error
    if not _is_sound(table):
        raise TableError("it holds numbers that cannot be right")
    return table


def _assembled(parts: Mapping[str, NDArray[Any]]) -> EpsilonTable:
    upper, lower = (
        Grid(step, *grid) for step, grid in zip(parts["steps"].tolist(), parts["grids"].tolist(), strict=True)
    )
    return EpsilonTable(
        Fraction(str(parts["epsilon_per"][0])),
        _Rows(parts["enough"], parts["needed"]),
        UpperTable(upper, parts["upper"], float(parts["rest"][0])),
        LowerTable(lower, parts["lower"]),
    )


def _rows(upper: list[UpperTable], lower: list[LowerTable]) -> _Rows:
    """Return rows in half the space, rounded up and down."""
    enough = np.array([each.epsilons(np.nextafter(_NEAREST, 0)) for each in upper])
    needed = np.array([each.epsilons(np.nextafter(_NEAREST, 1)) for each in lower])
    short = enough.astype(np.float32), needed.astype(np.float32)
    return _Rows(
        np.where(short[0] < enough, np.nextafter(short[0], np.float32(np.inf)), short[0]),
        np.where(short[1] > needed, np.nextafter(short[1], np.float32(0)), short[1]),
    )


def _is_sound(table: EpsilonTable) -> bool:
    """Return whether a table has the form of one: epsilon falls with slack, and grows with units from 0 on."""
    e = float(table.epsilon_per)
    spans = (table.upper.grid.e, table.lower.grid.e)
    is_of_currency = all(math.isclose(span, e, rel_tol=1e-12) for span in spans)
    is_ordered = table.rows.enough.shape == table.rows.needed.shape and bool(
        (table.rows.needed <= table.rows.enough).all()
    )
    return (
        is_of_currency and is_ordered and _is_monotone(table.rows.enough) and _is_monotone(table.rows.needed)
    )


def _is_monotone(rows: Short) -> bool:
    if rows.dtype != np.float32 or rows.ndim != 2 or rows.shape[1] != len(SLACKS) or not len(rows):
        return False
    # With units up to rounding only.
    falls, grows = (np.diff(rows, axis=1) <= 0).all(), (np.diff(rows, axis=0) >= -1e-2).all()
    return bool((rows[0] == 0).all() and falls and grows)
