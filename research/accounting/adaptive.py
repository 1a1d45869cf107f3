"""The smallest epsilon of units that are chosen one after the other: the value iteration.

V_K(exp(epsilon)) is the largest delta of any strategy that spends at most K units, each on a mechanism of range e:

    V_0(x) = max(0, 1 - x),
    V_k(x) = max over 0 <= t <= e of p_t V_(k-1)(x exp(-t)) + (1 - p_t) V_(k-1)(x exp(e - t)),
    p_t    = (exp(e) - exp(t)) / (exp(e) - 1).

`research/docs/adaptive-accounting.md` proves this, section by section: why the tables made here bound V_k from above
and from below (7), and what calls add (8). Where Gaussian noise takes part, V_k is the larger of this and
E V_(k-1)(x exp(h Z - h^2 / 2)), h = e / 2: see `gaussian_steps`.

A table holds values at x_i = exp(i h), h = e / resolution, so that one unit leads from cells of the grid to cells.
Float errors are bounded next to the code, and added (from above) or subtracted (from below).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.accounting.checks import MAX_EPSILON_PER, require_epsilon, require_probability
from research.accounting.gaussian_steps import gaussian_step

Floats = NDArray[np.float64]

RESOLUTION = 64
"""Grid points for one e. Epsilon from above is too large by a part in about 4 RESOLUTION^2."""

GAUSSIAN_RESOLUTION = 72
"""The same where Gaussian noise takes part, which makes epsilon too large by a part in about RESOLUTION^2."""

# The grid begins below exp(-8). Further down V_k lies between 1 - x and a straight line to (0, 1).
_LOW_END = 8.0

# Values below are given up: a value is too large by at most k times this.
_NEGLIGIBLE = 2.0**-73

# Of a sum of products of non-negative factors: four functions and five operations, each right to one part in 2^52, of
# exponents that are themselves right to one part in 2^52 and at most 10.
_RELATIVE_ERROR = 2.0**-46

# See `_errors`.
_ABSOLUTE_ERROR = 2.0**-43

# What `certificate` rounds, which checks tables in whole numbers: weights of 30 bits, some of them twice.
_CHECKED_ERROR = 2.0**-28

_CHECKED_RANGE = 1.001

# The same of the first table, of which it computes the points more exactly.
_FIRST_ERROR = 2.0**-40

# Of a logarithm of a point: it is a product, and the logarithm of a sum, each right to one part in 2^52.
_MARGIN = 2.0**-48


@dataclass(frozen=True)
class PrivacyLossGrid:
    """The points exp(i `step`), i from `first` on; `unit` steps make up one e, rounded up or down.

    `gaussian` says whether a unit may also be one of Gaussian noise.
    """

    step: float
    unit: int
    first: int
    gaussian: bool = False

    @classmethod
    def of(cls, epsilon_per: Fraction, resolution: int, *, towards: float, gaussian: bool) -> PrivacyLossGrid:
        """Return a grid for an e rounded up (`towards` inf) or down (`towards` 0)."""
        require_epsilon("epsilon_per", epsilon_per, at_most=MAX_EPSILON_PER)
        if not isinstance(resolution, int) or resolution < 1:
            raise ValueError(f"resolution must be a positive integer, got {resolution!r}")
        step = float(epsilon_per / resolution)
        excess = Fraction(step) * resolution - epsilon_per
        step = math.nextafter(step, towards) if (excess < 0 if towards else excess > 0) else step
        return cls(step, resolution, -math.ceil(_LOW_END / step), gaussian)

    @property
    def e(self) -> float:
        """The range of one unit."""
        return self.step * self.unit

    def logs(self, start: int, stop: int) -> Floats:
        """Return ln x_i of the positions from `start` to `stop` of a table; position 0 is its first point."""
        positions = np.arange(self.first + start, self.first + stop, dtype=np.float64)
        return positions * self.step

    def first_chances(self) -> tuple[Floats, Floats]:
        """Return p_t and 1 - p_t for t = 0, h, ..., e, shape (unit + 1,), without cancellation."""
        t = np.arange(self.unit + 1) * self.step
        scale = math.expm1(self.e)
        return np.exp(t) * np.expm1(t[::-1]) / scale, np.expm1(t) / scale


@dataclass(frozen=True)
class UpperTable:
    """Upper bounds of one V_k: `values` at the points of the grid, never rising, and `rest` at all further points."""

    grid: PrivacyLossGrid
    values: Floats
    rest: float

    @property
    def units(self) -> float:
        """What k is, from `rest`: each unit adds the same to it."""
        return self.rest / _NEGLIGIBLE

    def epsilon(self, slack: Fraction) -> float:
        """Return an epsilon >= 0 with V_k(exp(epsilon)) <= slack, rounded up, or inf if this table has none.

        Raises:
            ValueError: Not 0 < slack < 1.
        """
        require_probability("slack", slack)
        return float(self.epsilons(np.array([math.nextafter(float(slack), 0)]))[0])

    def epsilons(self, allowed: Floats) -> Floats:
        """Return the epsilon of each delta in `allowed`, shape (n,), as `epsilon` does; 0 < delta < 1."""
        step, ends = self.grid.step, np.append(self.values, self.rest)
        # How many points have more than is allowed: values never rise.
        above = np.searchsorted(-self.values, -allowed)
        last = np.maximum(above - 1, 0)
        high, low = ends[last], ends[last + 1]
        # V_k is convex: between two points it is at most the line, here the line to the first value that is allowed.
        share = (high - allowed) / np.maximum(high - low, np.finfo(np.float64).tiny)
        log_x = (self.grid.first + last) * step + np.log1p(np.clip(share, 0, 1) * math.expm1(step))
        found = np.maximum(0, log_x + _MARGIN * (1 + np.abs(log_x)))
        return np.where(self.rest > allowed, math.inf, np.where(above > 0, found, 0.0))

    def delta(self, epsilon: float) -> float:
        """Return a bound of V_k(exp(epsilon)), epsilon >= 0, rounded up, on the line between two points."""
        lower = epsilon - _MARGIN * epsilon
        position = math.floor(lower / self.grid.step) - self.grid.first
        if position >= self.values.size:
            return self.rest
        high, low = np.append(self.values, self.rest)[position : position + 2]
        past = math.expm1(lower - (position + self.grid.first) * self.grid.step)
        share = min(1.0, max(0.0, past / math.expm1(self.grid.step)))
        return float((high + (low - high) * share) * (1 + _RELATIVE_ERROR))

    def with_another_unit(self) -> UpperTable:
        """Return the table of V_(k+1)."""
        grid = self.grid
        drawn = gaussian_step(grid.step, grid.unit, above=True) if grid.gaussian else None
        reach = grid.unit if drawn is None else drawn.reach
        # The line from (0, 1) through the first value.
        below = 1 - (1 - self.values[0]) * np.exp(np.arange(-reach, 0) * grid.step) * (1 - _RELATIVE_ERROR)
        wide = np.concatenate([below, self.values, np.full(2 * reach, self.rest)])
        padded = wide[reach - grid.unit : wide.size - (reach - grid.unit)]
        best = _best_on_grid(grid, padded)
        _raise_to_best_in_cells(grid, padded, best)
        best += _errors(grid, padded)
        if drawn is not None:
            np.maximum(best, drawn.from_above(wide), out=best)
        # V_k falls in x, so what bounds it at a point bounds it further on. Rounding may have left a step upwards.
        np.minimum.accumulate(best, out=best)
        rest = self.rest + _NEGLIGIBLE
        kept = np.flatnonzero(best > rest)
        return UpperTable(grid, np.minimum(best[: kept[-1] + 1], 1.0), rest)


@dataclass(frozen=True)
class LowerTable:
    """Lower bounds of one V_k: `values` at the points of the grid, 0 after the last."""

    grid: PrivacyLossGrid
    values: Floats

    def epsilon(self, slack: Fraction) -> float:
        """Return an epsilon >= 0 such that no smaller one has V_k(exp(epsilon)) <= slack, rounded down.

        Raises:
            ValueError: Not 0 < slack < 1.
        """
        require_probability("slack", slack)
        return float(self.epsilons(np.array([math.nextafter(float(slack), 1)]))[0])

    def epsilons(self, exceeded: Floats) -> Floats:
        """Return the epsilon of each delta in `exceeded`, shape (n,), as `epsilon` does; 0 < delta < 1."""
        # Values never rise, up to rounding; the first that is small enough ends the search, however it goes on.
        falling = np.minimum.accumulate(self.values)
        above = np.searchsorted(-falling, -exceeded)
        log_x = (self.grid.first + above - 1) * self.grid.step
        return np.where(above > 0, np.maximum(0, log_x - _MARGIN * (1 + np.abs(log_x))), 0.0)

    def delta(self, epsilon: float) -> float:
        """Return a bound of V_k(exp(epsilon)), epsilon >= 0, rounded down: that of the nearest point above."""
        position = math.ceil((epsilon + _MARGIN * epsilon) / self.grid.step) - self.grid.first
        return float(self.values[position]) if position < self.values.size else 0.0

    def with_another_unit(self) -> LowerTable:
        """Return the table of V_(k+1)."""
        grid = self.grid
        drawn = gaussian_step(grid.step, grid.unit, above=False) if grid.gaussian else None
        reach = grid.unit if drawn is None else drawn.reach
        below = -np.expm1(grid.logs(-reach, 0)) * (1 - _RELATIVE_ERROR)
        wide = np.concatenate([below, self.values, np.zeros(2 * reach)])
        values = _best_on_grid(grid, wide[reach - grid.unit : wide.size - (reach - grid.unit)]) * (
            1 - _RELATIVE_ERROR
        )
        if drawn is not None:
            np.maximum(values, drawn.from_below(wide), out=values)
        return LowerTable(grid, values[: np.count_nonzero(values > _NEGLIGIBLE)])


def upper_tables(
    epsilon_per: Fraction, *, resolution: int = RESOLUTION, gaussian: bool = False
) -> Iterator[UpperTable]:
    """Yield upper bounds of V_0, V_1, V_2 and so on without end.

    Args:
        epsilon_per: e; one unit pays for one e-bounded-range mechanism.
        resolution: Grid points for one e.
        gaussian: Whether one unit may also pay for Gaussian noise of mu = e / 2.

    Raises:
        ValueError: Not 0 < epsilon_per <= 10, or `resolution` is not positive.
    """
    grid = PrivacyLossGrid.of(epsilon_per, resolution, towards=math.inf, gaussian=gaussian)
    table = UpperTable(grid, -np.expm1(grid.logs(0, -grid.first)) * (1 + _FIRST_ERROR), 0.0)
    while True:
        yield table
        table = table.with_another_unit()


def lower_tables(
    epsilon_per: Fraction, *, resolution: int = RESOLUTION, gaussian: bool = False
) -> Iterator[LowerTable]:
    """Yield lower bounds of V_0, V_1, V_2 and so on: what a strategy reaches that uses t = 0, h, 2h, ..., e only.

    Arguments and errors are those of `upper_tables`.
    """
    grid = PrivacyLossGrid.of(epsilon_per, resolution, towards=0.0, gaussian=gaussian)
    table = LowerTable(grid, -np.expm1(grid.logs(0, -grid.first)) * (1 - _RELATIVE_ERROR))
    while True:
        yield table
        table = table.with_another_unit()


def _best_on_grid(grid: PrivacyLossGrid, padded: Floats) -> Floats:
    """Return the maximum over t = 0, h, ..., e at each point.

    `padded` has `unit` values before those of the table, and `unit` more after them than are returned.
    """
    unit, size = grid.unit, padded.size - 2 * grid.unit
    best = padded[unit : unit + size].copy()
    first, second = np.empty(size), np.empty(size)
    for back, (low, high) in enumerate(zip(*grid.first_chances(), strict=True)):
        np.multiply(padded[unit - back : unit - back + size], low, out=first)
        np.multiply(padded[2 * unit - back : 2 * unit - back + size], high, out=second)
        np.add(first, second, out=first)
        np.maximum(best, first, out=best)
    return best


def _raise_to_best_in_cells(grid: PrivacyLossGrid, padded: Floats, best: Floats) -> None:
    """Raise each value to the maximum over all t for which x exp(-t) lies inside of a cell, not at its ends.

    Let the cell begin at x_j, and y = r x_j be the point that is reached with p_t. With the table linear in each cell,
    a - d (r - 1) there and a' - d' (r - 1) in the cell one e further, the value is, up to a constant, -B r - C / r with

        B = (E d - d') / (E - 1),   C = q ((a + d) - (a' + d')) / (E - 1),   q = x_i / x_j .

    It is stationary at r = sqrt(C / B) only, which lies in the cell for at most two points x_i of the grid: those with
    s < i - j < s + 2, s = -ln(C / (q B)) / h.
    """
    unit, step, e = grid.unit, grid.step, grid.e
    grown, width = math.exp(e), math.expm1(step)
    falls = -np.diff(padded) / width
    start, fall, start_up, fall_up = padded[:-1][:-unit], falls[:-unit], padded[:-1][unit:], falls[unit:]
    curved = grown * fall - fall_up
    risen = start + fall - start_up - fall_up
    cells = np.flatnonzero((curved > 0) & (risen > 0))
    ratio = risen[cells] / curved[cells]
    nearest = np.floor(-np.log(ratio) / step).astype(np.int64) + 1
    for ahead in (nearest, nearest + 1):
        at = cells + ahead - unit
        inside = (ahead >= 1) & (ahead <= unit) & (at >= 0) & (at < best.size)
        cell, q = cells[inside], np.exp(ahead[inside] * step)
        # x / E <= y <= x, and y in the cell.
        r = np.clip(np.sqrt(q * ratio[inside]), np.maximum(1, q / grown), np.minimum(1 + width, q))
        low = (r * grown - q) / (r * (grown - 1))
        value = low * (start[cell] - fall[cell] * (r - 1)) + (1 - low) * (
            start_up[cell] - fall_up[cell] * (r - 1)
        )
        np.maximum.at(best, at[inside], value)


def _errors(grid: PrivacyLossGrid, padded: Floats) -> Floats:
    """Return a bound on what float errors have taken from the maximum at each point.

    Let u = 2^-53 and M the value at x / E, the largest that takes part. E and q are right to 12 u, so both weights are
    to 40 u E / (E - 1) absolutely; values between grid points are to 5 u M, as d (r - 1) is at most the fall within the
    cell. B and C are wrong by amounts that move the value of any r in the cell by at most 55 u E / (E - 1) M, so the
    best r of the wrong ones loses at most twice that. Together less than 200 u (1 + 1/e) M; five times that is added.
    Tables of small e, which are checked in whole numbers, leave room for the roundings of that too.
    """
    largest = padded[: padded.size - 2 * grid.unit]
    checked = _CHECKED_ERROR if grid.e <= _CHECKED_RANGE else 0.0
    return largest * (_ABSOLUTE_ERROR * (1 + 1 / grid.e) + checked)
