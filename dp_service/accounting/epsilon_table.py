"""The epsilon of every number of units of one currency, by the adaptive bound: made once, then read.

A table is of units in bounded range, or of those and Gaussian ones. Making one of thousands of units, and checking it,
takes a minute or two, so a table can be kept as bytes, and extended later. Who reads one waits for nothing.
"""

from __future__ import annotations

import bisect
import hashlib
import io
import math
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dp_service.accounting.adaptive import (
    GAUSSIAN_RESOLUTION,
    RESOLUTION,
    LowerTable,
    PrivacyLossGrid,
    UpperTable,
    lower_tables,
    upper_tables,
)
from dp_service.accounting.checked_steps import StepCheck, allowed
from dp_service.accounting.checks import require_probability, require_units
from dp_service.noise.gaussian_price import rho_of_units

Steps = NDArray[np.int32]

# Raised whenever the same currency would get other numbers, they are written in another way, or their check changes.
_FORMAT = 4
_LOW = (100, 112, 125, 140, 160, 180, 200, 224, 250, 280)
_MANTISSAS = (*_LOW, 315, 350, 400, 450, 500, 560, 630, 710, 800, 900)

SLACKS = tuple(Fraction(f"{each}e{power}") for power in range(-15, -5) for each in _MANTISSAS)
"""The slacks that a table holds, rising, from 10^-13 to just below 10^-3; epsilon is interpolated between them."""

_MOST_POINTS = 2**21

# Half a dozen float operations lose less.
_MARGIN = 2.0**-40

# An epsilon is kept as a whole number of steps, one of which is e divided by this.
STEPS_PER_E = 4096

# So many steps and more are kept as this: there is no epsilon.
_NO_EPSILON = 2**31 - 1

# So much less may stand for one unit more, or more beyond e: what is needed is rounded down to the grid.
_SLIP = STEPS_PER_E // 16

_NEAREST = np.array([float(each) for each in SLACKS])

# A SHA-256 of all that is before it ends a file.
_DIGEST = 32


class TableError(ValueError):
    """Bytes that are no table of this version; the text says why."""


@dataclass(frozen=True)
class _Rows:
    """The epsilon of 0, 1, 2, ... units at each of `SLACKS`, in steps, shape (units + 1, number of slacks).

    `enough` is rounded up: so much is enough. `needed` is rounded down: some mechanisms need as much.
    """

    enough: Steps
    needed: Steps


class AdaptiveEpsilons(Protocol):
    """The epsilons of one currency by the adaptive bound, of as many units as were worked out."""

    @property
    def epsilon_per(self) -> Fraction:
        """What one unit buys."""

    @property
    def gaussian(self) -> bool:
        """Whether units may also be of Gaussian noise."""

    def epsilon(self, information: int, slack: Fraction) -> float:
        """Return the epsilon of so many units, rounded up; inf if it was not worked out."""


@dataclass(frozen=True)
class BudgetEpsilons:
    """The epsilons of one budget, as a table of its currency has them; made in half the time, and kept by nobody."""

    epsilon_per: Fraction
    units: int
    row: Steps
    gaussian: bool = False

    @classmethod
    def of(
        cls,
        epsilon_per: Fraction,
        units: int,
        *,
        gaussian: bool = False,
        resolution: int | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> BudgetEpsilons:
        """Work them out; `advance` is called after each unit.

        Raises:
            ValueError: Not 0 < epsilon_per <= 10.
        """
        points = resolution or _resolution(gaussian=gaussian)
        upper = next(upper_tables(epsilon_per, resolution=points, gaussian=gaussian))
        for _ in range(units):
            upper = upper.with_another_unit()
            advance()
        return cls(epsilon_per, units, _steps_up(epsilon_per, upper, units), gaussian)

    def epsilon(self, information: int, slack: Fraction) -> float:
        """Return the epsilon of the budget, rounded up, which is enough for fewer units too; inf for more."""
        require_units("information", information)
        return math.inf if information > self.units else _epsilon_in(self.row, self.epsilon_per, slack)


@dataclass(frozen=True)
class EpsilonTable:
    """The epsilon of 0 to `units` units at each of `SLACKS`, and the bounds from which the table can be extended."""

    epsilon_per: Fraction
    rows: _Rows
    upper: UpperTable
    lower: LowerTable

    @property
    def gaussian(self) -> bool:
        """Whether units may also be of Gaussian noise."""
        return self.upper.grid.gaussian

    @property
    def is_checked(self) -> bool:
        """Whether every table on the way to it, and every epsilon in it, is checked in whole numbers as it is made.

        Of a table that was read, who made it has: here the last row was checked, and that the others do not contradict
        each other.
        """
        return _check_of(self.epsilon_per, self.upper) is not None

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
        if information > self.units:
            return math.inf
        return _epsilon_in(self.rows.enough[information], self.epsilon_per, slack)

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
        return float(self.rows.needed[information, at_or_above] * _step_of(self.epsilon_per) * (1 - _MARGIN))

    def to_bytes(self) -> bytes:
        """Return the table as bytes; they hold nothing but what follows from its currency."""
        file = io.BytesIO()
        np.savez_compressed(
            file,
            format=np.array([_FORMAT]),
            epsilon_per=np.array([str(self.epsilon_per)]),
            slacks=_NEAREST,
            enough=_packed(self.rows.enough),
            needed=_packed(self.rows.needed),
            steps=np.array([self.upper.grid.step, self.lower.grid.step]),
            # A third number says that Gaussian noise takes part.
            grids=np.array(
                [
                    [grid.unit, grid.first, *([1] if grid.gaussian else [])]
                    for grid in (self.upper.grid, self.lower.grid)
                ]
            ),
            upper=self.upper.values,
            rest=np.array([self.upper.rest]),
            lower=self.lower.values,
        )
        return file.getvalue() + hashlib.sha256(file.getvalue()).digest()


def is_held(slack: Fraction) -> bool:
    """Return whether the epsilon of a slack is one that tables hold; between two of them, floats interpolate."""
    return slack in SLACKS or slack > SLACKS[-1]


def file_name(epsilon_per: Fraction, *, gaussian: bool = False) -> str:
    """Return how the file with a currency's table is called."""
    return f"adaptive-{'gaussian-' if gaussian else ''}{epsilon_per.numerator}-{epsilon_per.denominator}.npz"


def new_table(
    epsilon_per: Fraction, *, gaussian: bool = False, resolution: int | None = None
) -> EpsilonTable:
    """Return the table of a currency with no unit yet.

    Raises:
        ValueError: Not 0 < epsilon_per <= 10.
    """
    points = resolution or _resolution(gaussian=gaussian)
    upper = next(upper_tables(epsilon_per, resolution=points, gaussian=gaussian))
    lower = next(lower_tables(epsilon_per, resolution=points, gaussian=gaussian))
    rows = _rows(epsilon_per, upper, lower, 0)
    if (check := _check_of(epsilon_per, upper)) is not None:
        check.require(None, upper, rows.enough[0], units=0, most=_NO_EPSILON)
    return EpsilonTable(epsilon_per, rows, upper, lower)


def extended(table: EpsilonTable, units: int, advance: Callable[[], None] = lambda: None) -> EpsilonTable:
    """Return a table with at least so many units; `advance` is called after each unit that is added.

    Raises:
        CertificateError: A value that was made is too small.
    """
    upper, lower, found = table.upper, table.lower, [table.rows]
    check = _check_of(table.epsilon_per, upper)
    for unit in range(table.units + 1, units + 1):
        before = upper
        upper, lower = upper.with_another_unit(), lower.with_another_unit()
        found.append(_rows(table.epsilon_per, upper, lower, unit))
        if check is not None:
            check.require(before, upper, found[-1].enough[0], units=unit, most=_NO_EPSILON)
        advance()
    if len(found) == 1:
        return table
    enough, needed = [each.enough for each in found], [each.needed for each in found]
    rows = _Rows(np.concatenate(enough), np.concatenate(needed))
    return EpsilonTable(table.epsilon_per, rows, upper, lower)


def _check_of(epsilon_per: Fraction, table: UpperTable) -> StepCheck | None:
    return StepCheck.of(epsilon_per, table, step=epsilon_per / STEPS_PER_E, slacks=SLACKS)


def work_of(epsilon_per: Fraction, units: int, *, gaussian: bool = False) -> float:
    """Return about how many points of the grid a table of so many units works out; a million and more take a second.

    It is infinite if one row has too many to be held in memory: an epsilon_per of less than 0.0003, or very many units.
    A point takes about three times as long where Gaussian noise takes part.
    """
    rho = float(rho_of_units(epsilon_per, units))
    # The table goes from exp(-8) to where delta is 2^-73.
    span = 8 + min(
        math.inf if gaussian else units * float(epsilon_per), rho + 2 * math.sqrt(rho * 73 * math.log(2))
    )
    points = _resolution(gaussian=gaussian) * span / float(epsilon_per)
    return units * points * (3 if gaussian else 1) if points <= _MOST_POINTS else math.inf


def _resolution(*, gaussian: bool) -> int:
    return GAUSSIAN_RESOLUTION if gaussian else RESOLUTION


def table_from(content: bytes) -> EpsilonTable:
    """Return the table in bytes that `to_bytes` returned.

    Raises:
        TableError: They are damaged, no table, or one of another version.
    """
    arrays, digest = content[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(arrays).digest() != digest:
        raise TableError("it is damaged, or no table of this version")
    try:
        with np.load(io.BytesIO(arrays), allow_pickle=False) as file:
            parts = {name: file[name] for name in file.files}
        if parts["format"].tolist() != [_FORMAT] or not np.array_equal(parts["slacks"], _NEAREST):
            raise TableError("it is the table of another version")
        table = _assembled(parts)
        if not _is_sound(table):
            raise TableError("it holds numbers that cannot be right")
    except TableError:
        raise
    except (OSError, EOFError, KeyError, IndexError, TypeError, ValueError) as error:
        raise TableError("it is damaged, or no table") from error
    except (zipfile.BadZipFile, zlib.error) as error:
        raise TableError("it is damaged, or no table") from error
    _require_last_row(table)
    return table


def _require_last_row(table: EpsilonTable) -> None:
    """Check the epsilons of the largest budget again: to check every row takes as long as to make the table."""
    last = table.rows.enough[-1]
    try:
        if (check := _check_of(table.epsilon_per, table.upper)) is not None:
            check.require_epsilons(table.upper, last, units=table.units, most=_NO_EPSILON)
    except ValueError as error:
        raise TableError("it holds epsilons that are not enough") from error
    again = _rows(table.epsilon_per, table.upper, table.lower, table.units)
    # Another processor may round by a step.
    if (abs(again.enough - last) > 1).any() or (abs(again.needed - table.rows.needed[-1]) > 1).any():
        raise TableError("its last row is none of the bounds that it is extended from")


def _assembled(parts: Mapping[str, NDArray[Any]]) -> EpsilonTable:
    upper, lower = (
        PrivacyLossGrid(step, *grid)
        for step, grid in zip(parts["steps"].tolist(), parts["grids"].tolist(), strict=True)
    )
    return EpsilonTable(
        Fraction(str(parts["epsilon_per"][0])),
        _Rows(_unpacked(parts["enough"]), _unpacked(parts["needed"])),
        UpperTable(upper, parts["upper"], float(parts["rest"][0])),
        LowerTable(lower, parts["lower"]),
    )


def _rows(epsilon_per: Fraction, upper: UpperTable, lower: LowerTable, units: int) -> _Rows:
    """Return the row of one number of units, rounded up and down to whole steps."""
    needed = lower.epsilons(np.nextafter(_NEAREST, 1)) / _step_of(epsilon_per)
    down = np.minimum(np.floor(needed * (1 - _MARGIN)), _NO_EPSILON)
    return _Rows(_steps_up(epsilon_per, upper, units)[None], down[None].astype(np.int32))


def _steps_up(epsilon_per: Fraction, upper: UpperTable, units: int) -> Steps:
    steps = upper.epsilons(allowed(_NEAREST, epsilon_per, units)) / _step_of(epsilon_per)
    # One more than the whole steps of a quotient that may be wrong by its last bit, one for the series of the check.
    up = np.where(steps > 0, np.floor(steps * (1 + _MARGIN)) + 2, 0)
    return np.minimum(up, _NO_EPSILON).astype(np.int32)


def _epsilon_in(steps: Steps, epsilon_per: Fraction, slack: Fraction) -> float:
    """Return the epsilon of a row at a slack, interpolated between those that it holds."""
    require_probability("slack", slack)
    if slack < SLACKS[0]:
        return math.inf
    # A step is itself rounded to one part in 2^53, far less than the margin.
    row = np.where(steps < _NO_EPSILON, steps * (_step_of(epsilon_per) * (1 + _MARGIN)), math.inf)
    at_or_above = bisect.bisect_left(SLACKS, slack)
    if at_or_above == len(SLACKS):
        # An epsilon for less slack is one for more.
        return float(row[-1])
    least, most = row[at_or_above], row[at_or_above - 1]
    if SLACKS[at_or_above] == slack or most == math.inf:
        return float(least if SLACKS[at_or_above] == slack else most)
    # V_k is convex, so between two points of its graph it is below the line.
    high, low = SLACKS[at_or_above], SLACKS[at_or_above - 1]
    share = float((high - slack) / (high - low))
    return float((least + math.log1p(share * math.expm1(most - least))) * (1 + _MARGIN))


def _step_of(epsilon_per: Fraction) -> float:
    return float(epsilon_per / STEPS_PER_E)


def _packed(rows: Steps) -> Steps:
    """Return rows as their second differences over units, differenced over slacks: small numbers, of few bytes."""
    changes = np.diff(rows, axis=0, prepend=np.int32(0))
    bends = np.diff(changes, axis=0, prepend=np.int32(0))
    packed: Steps = np.diff(bends, axis=1, prepend=np.int32(0))
    return packed


def _unpacked(packed: NDArray[Any]) -> Steps:
    """Return the rows that `_packed` was given; both compute modulo 2^32."""
    if packed.dtype != np.int32 or packed.ndim != 2:
        raise TableError("it holds numbers that cannot be right")
    bends = packed.cumsum(axis=1, dtype=np.int32)
    changes = bends.cumsum(axis=0, dtype=np.int32)
    return changes.cumsum(axis=0, dtype=np.int32)


def _is_sound(table: EpsilonTable) -> bool:
    """Return whether a table has the form of one: its grids and its units are those of its rows, which are regular."""
    enough, needed, gaussian = table.rows.enough, table.rows.needed, table.gaussian
    is_of_currency = all(
        grid == PrivacyLossGrid.of(table.epsilon_per, grid.unit, towards=towards, gaussian=gaussian)
        for grid, towards in ((table.upper.grid, math.inf), (table.lower.grid, 0.0))
    )
    # An upper table of fewer units would be extended to one that is too small.
    is_complete = enough.shape == needed.shape and table.upper.units == table.units
    are_regular = _is_regular(enough, 1, gaussian=gaussian) and _is_regular(needed, _SLIP, gaussian=gaussian)
    return is_of_currency and is_complete and bool((needed <= enough).all()) and are_regular


def _is_regular(rows: Steps, slip: int, *, gaussian: bool) -> bool:
    """Return whether epsilon falls with slack, and grows with units from 0 on, by e at most where none is Gaussian.

    All that (1) weighs at E x are values of V_k at x or beyond, where it is not larger: so V_(k+1)(E x) <= V_k(x).
    """
    if rows.shape[1] != len(SLACKS) or not len(rows):
        return False
    falls, grown = (np.diff(rows, axis=1) <= 0).all(), np.diff(rows.astype(np.int64), axis=0)
    most = _NO_EPSILON if gaussian else STEPS_PER_E + _SLIP
    return bool((rows[0] == 0).all() and falls and (-slip <= grown).all() and (grown <= most).all())
