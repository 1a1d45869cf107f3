"""Checks each table of the adaptive bound against the one before, in whole numbers: who made them need not be trusted.

This module shares no code with `adaptive`, which makes tables in floats. It holds a table V_k as multiples of 2^-61 at
the points g^i, i from `first` on, for a rational g with g^unit >= exp(e). V_k is linear between them, on the line from
(0, 1) below them, and `rest` beyond them. At every point x of the grid it checks V_0(x) >= max(0, 1 - x) and

    V_(k+1)(x) >= V_k(x) >= V_k(y)  for y > x,
    V_(k+1)(x) >= p_t V_k(x exp(-t)) + (1 - p_t) V_k(x exp(e - t))  for every t, not only those of the grid.

`research/docs/machine-checked.md` says why that suffices, although tables are convex up to rounding only. Products of
30 and 61 bits are taken in two halves, so that none leaves 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Pair = tuple[Whole, Whole]

BITS = 61
"""Values are multiples of 2^-61."""

MAX_RANGE = 1
"""The largest e: weights have 30 bits, which are too few where a table falls much within one e."""

BEND_ERROR = 6
"""Two for a weight of 60 bits, which a value of 61 bits multiplies, two for what is cut off, and what is added."""

_ONE = 1 << BITS
_HALF = 30
_FINE = 56
_LOW = (1 << _HALF) - 1
# Inside of a cell, points are multiples of its width / 2^24.
_PARTS = 24
# Of positions between points.
_SHARE = 40


class CertificateError(ValueError):
    """A table that is too small somewhere; the text says of how many units, and which inequality fails."""


@dataclass(frozen=True)
class Certificate:
    """The grid of the tables of one e: `unit` points for one e, the first of them g^`first`."""

    e: Fraction
    unit: int
    first: int

    def __post_init__(self) -> None:
        if not 0 < self.e <= MAX_RANGE or self.unit < 1 or self.first >= 0:
            raise CertificateError(f"e must be more than 0 and at most {MAX_RANGE}, got {self.e}")

    def margin(self, drop: Whole) -> Whole:
        """Return by how much tables have to be larger than lines between points at which v falls by so much.

        It is the margin of the fall by 2^-55, and two more than what is cut off here and from lines.
        """
        found: Whole = 3 + ((drop >> _HALF) * margin_of(self.e) >> (_FINE - 1 - _HALF))
        return found

    @property
    def covered(self) -> int:
        """The largest B, times the factor of its cell, where no line exceeds the better end by the margin or more."""
        return 3 * self.unit * margin_of(self.e)

    @cached_property
    def g(self) -> Fraction:
        """The quotient of two points, at least exp(e / unit): the series, whose rest is less than its last term."""
        terms = [Fraction(1)]
        for each in range(1, 40):
            terms.append(terms[-1] * self.e / self.unit / each)
        return _ceiling(sum(terms) + terms[-1], 80) * Fraction(1, 2**80)

    @cached_property
    def _powers(self) -> list[Fraction]:
        """1, g, g^2 and so on, up to a few more than g^unit."""
        return [self.g**each for each in range(self.unit + 6)]

    @cached_property
    def _inverses(self) -> list[int]:
        return [_floor(1 / each, BITS) for each in self._powers[self.unit : 0 : -1]]

    def require_start(self, start: Whole, rest: int) -> None:
        """Check V_0, beyond whose last point x >= 1.

        Raises:
            CertificateError: It is below max(0, 1 - x) somewhere.
        """
        # Rounded down at each point, which makes 1 - x larger.
        points = [_floor(1 / self.g**-self.first, 2 * BITS)]
        points.extend(_multiplied(points[0], self.g, start.size))
        least = _ONE - np.array([each >> BITS for each in points[:-1]], dtype=np.int64)
        if self.first + start.size < 0 or rest < 0 or (start < np.maximum(least, 0)).any():
            raise CertificateError("the table of no unit is below max(0, 1 - x)")

    def require_step(self, old: Whole, new: Whole, *, rests: tuple[int, int], units: int) -> None:
        """Check the table `new` of so many units by the one before, with the values `rests` beyond their points.

        Raises:
            CertificateError: An inequality fails.
        """
        size = max(old.size, new.size) + self.unit
        # Points of v begin `unit` before the first of w, and end so many behind the last.
        v = self._extended(old, size, rests[0])
        w = np.concatenate([new, np.full(size - new.size, rests[1], dtype=np.int64)])
        if w.max() > _ONE or v.max() > _ONE or w.min() < 0 or v.min() < 0 or (v[1:] > v[:-1]).any():
            raise CertificateError(f"the table of {units - 1} units rises, or one is not in [0, 1]")
        margin = self.margin(v[: -self.unit] - v[self.unit :])
        # At the ends of cells, lines from j to j + unit reach v itself at j + unit and at j + 1.
        least = v[self.unit : self.unit + size]
        least = least + np.maximum(margin[:size], margin[self.unit - 1 : self.unit - 1 + size])
        if (w < np.minimum(least, _ONE)).any():
            raise CertificateError(f"the table of {units} units is below that of one unit less")
        self._require_on_grid(v, w, units)
        self._require_in_cells(v, w, units)

    def _extended(self, table: Whole, size: int, rest: int) -> Whole:
        missing = _ONE - int(table[0])
        below = [_ONE - (missing * each >> BITS) for each in self._inverses]
        beyond = np.full(size + self.unit + 1 - table.size, rest, dtype=np.int64)
        return np.concatenate([np.array(below, dtype=np.int64), table, beyond])

    @cached_property
    def _weights_on_grid(self) -> list[int]:
        grown = self._powers[self.unit]
        return [_ceiling((grown - each) / (grown - 1), _HALF) for each in self._powers[: self.unit]]

    def _require_on_grid(self, v: Whole, w: Whole, units: int) -> None:
        """Check the lines from v_j to v_(j + unit) at all points between them."""
        size = v.size - self.unit
        end = v[self.unit :]
        fall = v[:size] - end
        high, low = fall >> _HALF, fall & _LOW
        end = end + self.margin(fall)
        lines, lower = np.empty_like(w), np.empty_like(w)
        for ahead in range(1, self.unit):
            # Point j + ahead of v is point j + ahead - unit of w.
            skip = self.unit - ahead
            use = slice(skip, min(size, skip + w.size))
            line, part = lines[: use.stop - skip], lower[: use.stop - skip]
            np.multiply(high[use], self._weights_on_grid[ahead], out=line)
            np.multiply(low[use], self._weights_on_grid[ahead], out=part)
            np.right_shift(part, _HALF, out=part)
            np.add(line, part, out=line)
            np.add(line, end[use], out=line)
            # Rounded down by less than one. No line is above 1, nor above v where nothing falls.
            is_below = w[: line.size] < np.minimum(line, _ONE)
            if is_below.any() and (is_below & (fall[use] > 0)).any():
                raise CertificateError(f"the table of {units} units is below the recursion on the grid")

    def _require_in_cells(self, v: Whole, w: Whole, units: int) -> None:
        """Check the lines from inside of cell j to inside of cell j + unit, where the worst is not at an end.

        At x_i = q x_j, the line that begins at r x_j has the value of a constant - (B r + q C / r) / ((G - 1) (g - 1)),
        G = g^unit. The largest of these is inside of the cell only if B, C > 0 and 1 < q C / B < g^2: for three points
        at most, with some to spare. It is larger than at the better end of the cell by B (g - 1) / 4 (G - 1) at most,
        which is B / 4 `unit` or less: where B is at most `covered`, the margin is more. There rounding would not tell
        where in the cell it is.
        """
        cells = v.size - self.unit - 1
        falls = v[:-1] - v[1:]
        fall, fall_up, drop = falls[:cells], falls[self.unit :], v[:cells] - v[self.unit : self.unit + cells]
        # Times a factor by which v drops by about 2^56. Where the upper cell falls by much more, B < 0 all the same.
        factor = 1 << np.maximum(_FINE - np.frexp(drop.astype(np.float64))[1], 0).astype(np.int64)
        fall_up = np.minimum(fall_up, 4 * np.minimum(drop, _ONE >> 2))
        fall, fall_up, drop = fall * factor, fall_up * factor, drop * factor
        b, c = self.bends(fall, fall_up, drop)
        bent = np.flatnonzero((c > 0) & (b > self.covered) & (fall > 0))
        b, c = b[bent], c[bent]
        step = float(self.e) / self.unit
        # Where in its cell a line is worst, from floats: a wrong guess can only refuse.
        guess = (math.expm1(step) * drop + (fall - fall_up)) / np.maximum(
            math.expm1(self.e) * fall + (fall - fall_up), 1
        )
        guess = guess[bent]
        nearest = np.clip(np.rint(np.log(b / c) / step), -2, self.unit + 1).astype(np.int64)
        self._require_elsewhere(b, c, nearest, units)
        for ahead in (nearest, nearest + 1, nearest + 2):
            at = bent + ahead - self.unit
            inside = (ahead >= 1) & (ahead <= self.unit) & (at >= 0) & (at < w.size)
            worst = np.sqrt(np.exp(ahead[inside] * step) * np.maximum(guess[inside], 0))
            worst = (worst - 1) / math.expm1(step)
            part = np.clip(np.rint(worst * 2**_PARTS), 0, 2**_PARTS).astype(np.int64)
            if not self._is_above(v, w[at[inside]], bent[inside], ahead[inside], part).all():
                raise CertificateError(f"the table of {units} units is below the recursion within a cell")

    def bends(self, fall: Whole, fall_up: Whole, drop: Whole) -> Pair:
        """Return B, rounded down, and C, rounded up, both by less than `BEND_ERROR`.

        Args:
            fall: How much v falls in the lower cell: from x_j to x_(j + 1).
            fall_up: How much it falls in the upper one: from x_(j + unit) to x_(j + unit + 1).
            drop: How much it falls between the two: from x_j to x_(j + unit).
        """
        bent = fall - fall_up
        b = _times_fine(_floor(self._powers[self.unit] - 1, 2 * _HALF), fall) + bent
        return b, _times_fine(_ceiling(self.g - 1, 2 * _HALF), drop) + 2 + bent

    @cached_property
    def _bounds_elsewhere(self) -> tuple[Whole, Whole]:
        powers = [self.g**each for each in range(-3, self.unit + 5)]
        return (
            np.array([_ceiling(each, _HALF - 2) for each in powers]),
            np.array([_floor(each / self.g**2, _HALF - 2) for each in powers]),
        )

    def _require_elsewhere(self, b: Whole, c: Whole, nearest: Whole, units: int) -> None:
        """Check that q C <= B one point before the three from `nearest` on, and q C >= g^2 B one behind."""
        before, behind = (
            each[nearest + 3 + shift] for each, shift in zip(self._bounds_elsewhere, (-1, 3), strict=True)
        )
        quarter = 2 ** (_HALF - 2)
        is_before = (nearest <= 1) | (_times(before, c) < _times(quarter, b))
        is_behind = (nearest + 3 > self.unit) | (
            _times(behind, c - BEND_ERROR) > _times(quarter, b + BEND_ERROR)
        )
        if not (is_before & is_behind).all():
            raise CertificateError(f"the table of {units} units bends where none does")

    def _is_above(self, v: Whole, w: Whole, j: Whole, ahead: Whole, part: Whole) -> NDArray[np.bool_]:
        """Return whether w is above all lines from cell j: the square polynomial in r, by which it is, is not negative.

        It is not between two points if its three Bernstein coefficients are not: between the ends of the cell, where it
        is not by what was checked on the grid, or between either end and `part`.
        """
        values = ((w - v[j], w - v[j + self.unit]), (w - v[j + 1], w - v[j + self.unit + 1]))
        weights = tuple((first[ahead], second[ahead]) for first, second in self._weights_at_ends)
        found: NDArray[np.bool_] = _coefficient(*zip(weights, reversed(values), strict=True)) >= 0
        if (left := np.flatnonzero(~found)).size:
            j, at, w = j[left], part[left], w[left]
            inner = (w - _along(v, j, at), w - _along(v, j + self.unit, at))
            between = self._weights(ahead[left], at)
            found[left] = _coefficient((between, inner), (between, inner)) >= 0
            for weight, value in zip(weights, values, strict=True):
                end, outer = (weight[0][left], weight[1][left]), (value[0][left], value[1][left])
                found[left] &= _coefficient((between, outer), (end, inner)) >= 0
        return found

    @cached_property
    def _weights_at_ends(self) -> tuple[Pair, Pair]:
        ahead = np.arange(self.unit + 1)
        start, end = (self._weights(ahead, np.full_like(ahead, part)) for part in (0, 2**_PARTS))
        return start, end

    @cached_property
    def _weights_in_cells(self) -> tuple[Whole, Whole, int, int]:
        grown, bits = self._powers[self.unit], _HALF + _PARTS
        return (
            np.array([_ceiling((grown - each) / (grown - 1), bits) for each in self._powers]),
            np.array([_floor((each - 1) / (grown - 1), bits) for each in self._powers]),
            _ceiling((self.g - 1) * grown / (grown - 1), _HALF),
            _ceiling((self.g - 1) / (grown - 1), _HALF),
        )

    def _weights(self, ahead: Whole, part: Whole) -> tuple[Whole, Whole]:
        """Return (r G - q) / (G - 1), rounded up, and (q - r) / (G - 1), rounded down, G = g^unit, by 2^-30."""
        first, second, rise, sink = self._weights_in_cells
        return -(-(first[ahead] + part * rise) >> _PARTS), (second[ahead] - part * sink) >> _PARTS

    def require_epsilons(self, table: Whole, rest: int, steps: Whole, *, of: Fraction, slacks: Whole) -> None:
        """Check V(exp(epsilon)) <= slack for each epsilon, so many `steps` of the length `of`, and its slack by 2^-61.

        Raises:
            CertificateError: One is not known to be enough.
        """
        # ln(1 + y) <= y - y^2 / 2 + y^3 / 3, and exp(z) - 1 >= z + z^2 / 2.
        y = self.g - 1
        log = y - y**2 / 2 + y**3 / 3
        positions = steps.astype(np.int64) * _floor(of / log, _SHARE)
        past = (positions & ((1 << _SHARE) - 1)) >> (_SHARE - _HALF)
        share = _times(_floor(log / y, _HALF), past) + _times(
            _floor(log**2 / y / 2, _HALF), past * past >> _HALF
        )
        ends = np.append(table, [rest, rest])
        at = np.minimum((positions >> _SHARE) - self.first, table.size)
        if (ends[at] - _times(share, ends[at] - ends[at + 1]) > slacks).any():
            raise CertificateError("an epsilon is not enough for its slack")


def margin_of(e: Fraction) -> int:
    """Return the margin of tables of one e for a fall of 2^55: the rounding of a B is nothing if it does not cover it.

    Twice `BEND_ERROR` and what `_times` cuts off on both sides, 8, are less than a half of g - 1 of a B above
    48 `unit` / e, for g - 1 is at least e / `unit`.
    """
    return math.ceil(16 / e) + 16


def _ceiling(number: Fraction, bits: int) -> int:
    return math.ceil(number * (1 << bits))


def _floor(number: Fraction, bits: int) -> int:
    return math.floor(number * (1 << bits))


def _multiplied(point: int, factor: Fraction, times: int) -> Iterator[int]:
    """Yield a whole number times the factor, its square and so on, each rounded down."""
    for _ in range(times):
        point = math.floor(point * factor)
        yield point


def _times(weight: Whole | int, value: Whole) -> Whole:
    """Return floor(weight value / 2^30), |weight| <= 2^31 and |value| <= 2^61."""
    found: Whole = weight * (value >> _HALF) + ((weight * (value & _LOW)) >> _HALF)
    return found


def _times_fine(weight: int, value: Whole) -> Whole:
    """Return weight value / 2^60, rounded down by less than 2, 0 <= weight < 2^61 and 0 <= value <= 2^61."""
    high, low = weight >> _HALF, weight & _LOW
    above, below = value >> _HALF, value & _LOW
    found: Whole = high * above + ((high * below + low * above + (low * below >> _HALF)) >> _HALF)
    return found


def _coefficient(*terms: tuple[Pair, Pair]) -> Whole:
    """Return the sum of weights times values, rounded down, each weight to where it makes its product smaller."""
    high = low = np.zeros_like(terms[0][1][0])
    for (first, second), (near, far) in terms:
        for weight, value in ((first - (near > 0), near), (second + (far < 0), far)):
            high = weight * (value >> _HALF) + high
            low = weight * (value & _LOW) + low
    found: Whole = high + (low >> _HALF)
    return found


def _along(v: Whole, j: Whole, part: Whole) -> Whole:
    """Return v at `part` of the way from j to j + 1, rounded up."""
    fall = v[j] - v[j + 1]
    return v[j] - ((fall >> _PARTS) * part + ((fall & ((1 << _PARTS) - 1)) * part >> _PARTS))
