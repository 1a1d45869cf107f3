"""Intervals for COUNT, SUM and AVG of the groups that are shown, each true given that it is shown.

COUNT. A group is shown because of its N: given N >= t, the law of N is inverted (`selected_intervals`). Over a known
domain from which nothing is cut off, N was not selected, and the interval is plain.

SUM. With c = low + high and beta the true B, 2 SUM = beta + c n and the released B + c N is off by Z_b + c Z_n. B had
no part in what is shown, but given N >= t the law of Z_n is that given Z_n >= t - n, which depends on n. So n is first
confined to an interval at a hundredth of alpha. The larger t - n, the larger Z_n in law: each tail is largest at one
end of that interval, and is taken there (Berger and Boos 1994).

AVG. An average of mu means beta = r n with r = 2 mu - c, |r| <= W. If that is so, B - r N = Z_b - r Z_n, and whether
this is too small or too large is tested for each r: the interval holds every mu that is not rejected, as in Fieller
1954, by the exact law. Pr[Z_b - r Z_n <= B - r N] is bounded by Pr[Z_n >= N or Z_b <= B - r (N - Z_n)], which falls
with r, so what is not rejected is an interval; if N is barely above 0, that may be all of [low, high]. For a given r
the bound is a falling function of Z_n that jumps to 1 at N, or a rising one. So over all n it is largest at an end.

AVG is shown where N's lower end is above 0, that is, where N reaches a number that follows from t and alpha. Its
interval is given that, too.

Where a list is cut or filtered by SUM or AVG, these decided what is shown, and all intervals are at alpha divided by
the number of released groups: together they cover at least as often as they say, whichever groups are shown.

COUNT covers with probability 1 - alpha. SUM and AVG are at alpha / 2 each, so that both of one column
and group cover together; what is said of several groups holds for each column by itself.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dp_service.mechanisms.aggregates.noise_pairs import (
    Bins,
    NoisePair,
    bins_of,
    first_rare,
    largest_rarely_undercut,
    least_rarely_reached,
    upper_tails,
)
from dp_service.mechanisms.aggregates.released import ReleasedColumn, ReleasedMoments
from dp_service.mechanisms.bounded.selected_intervals import selected_gaussian_interval
from dp_service.mechanisms.intervals import gaussian_half_width

SLACK = 1e-6
"""Covers what floats do to a tail; the interval grows by it."""
# The part of alpha that confines n where it matters.
_CONFINING = Fraction(1, 100)
# Ends of an average are multiples of W / 2^20, rounded outwards.
_STEPS = 2**20


class SumInterval(NamedTuple):
    """Bounds of a count or a sum in steps of the quantum on the grid of the counts, both inclusive."""

    lower: int
    upper: int


class AverageInterval(NamedTuple):
    """Bounds of an average in steps of the quantum, both inclusive."""

    lower: Fraction
    upper: Fraction


@dataclass(frozen=True)
class ShownRows:
    """Which rows of a release are shown, and what decided it.

    Attributes:
        rows: The rows, in the order in which they are shown.
        thresholds: For each the t that its N had to reach; None where N had no part in it.
        simultaneous: Over how many intervals alpha is divided; 1 unless SUM or AVG decided.
    """

    rows: tuple[int, ...]
    thresholds: tuple[int | None, ...]
    simultaneous: int = 1


def shown_by_count(release: ReleasedMoments, *, most: int | None = None) -> ShownRows:
    """Return the first `most` rows by N.

    Raises:
        ValueError: `most` is negative.
    """
    if most is not None and most < 0:
        raise ValueError(f"most must not be negative, got {most}")
    rows = tuple(range(release.groups.size))
    kept, left_out = rows[:most], rows[len(rows[:most]) :]
    cut_off, floor = next(iter(left_out), None), released_from(release)
    return ShownRows(kept, tuple(_count_to_reach(release, row, cut_off, floor) for row in kept))


def shown_by_sum(release: ReleasedMoments, column: int, *, most: int | None = None) -> ShownRows:
    """Return the `most` rows with the largest SUM of a column, in its order."""
    return _in_order(release, release.rows_by_sum(column), most)


def shown_by_average(
    release: ReleasedMoments, column: int, *, alpha: Fraction, most: int | None = None
) -> ShownRows:
    """Return the `most` rows with the largest AVG of a column, in its order; those that show none come last, by N.

    Args:
        release: What was released.
        column: The place of the column.
        alpha: That of `average_intervals`, on which it depends whether an average is shown.
        most: How many rows are shown; None: all.
    """
    of_column, rows = release.columns[column], release.rows_by_average(column)
    every = _in_order(release, rows, most)
    least = least_certain_count(release, column, alpha=alpha / every.simultaneous)
    with_average = [row for row in rows if int(of_column.counts[row]) >= least]
    return _in_order(release, [*with_average, *sorted(set(rows) - set(with_average))], most)


def shown_in_order(
    release: ReleasedMoments, value: Callable[[int], Fraction | None], most: int | None = None
) -> ShownRows:
    """Return the `most` rows with the largest value, in its order; those that have none come last."""
    return _in_order(release, release.rows_by(value), most)


def least_certain_count(release: ReleasedMoments, column: int, *, alpha: Fraction) -> int:
    """Return the smallest N with which an average of a column is shown, where all that was released is."""
    of_column = release.columns[column]
    t = None if of_column.has_own_count else released_from(release)
    minimum = 0 if of_column.has_own_count else release.minimum
    return _least_certain(of_column.count_variance, t, alpha, minimum)


def _in_order(release: ReleasedMoments, rows: Sequence[int], most: int | None) -> ShownRows:
    if most is not None and most < len(rows):
        return shown_by_value(release, rows[:most])
    # Whatever the order, all that was released is shown.
    return ShownRows(tuple(rows), (released_from(release),) * len(rows))


def shown_by_value(release: ReleasedMoments, rows: Sequence[int]) -> ShownRows:
    """Return rows that SUM or AVG chose or put in an order that was cut off."""
    floor = released_from(release)
    return ShownRows(tuple(rows), (floor,) * len(rows), max(release.groups.size, 1))


def released_from(release: ReleasedMoments) -> int | None:
    """Return the t that every row of a release had to reach; None: N had no part in it."""
    return None if release.threshold is None else release.threshold + 1


def _count_to_reach(release: ReleasedMoments, row: int, cut_off: int | None, floor: int | None) -> int | None:
    """Return t of a row: that of the first row that is cut off, of which the earlier group wins a tie."""
    if cut_off is None:
        return floor
    wins_ties = int(release.groups[row]) < int(release.groups[cut_off])
    to_reach = int(release.counts[cut_off]) + (not wins_ties)
    return to_reach if floor is None else max(to_reach, floor)


def count_intervals(release: ReleasedMoments, shown: ShownRows, *, alpha: Fraction) -> list[SumInterval]:
    """Return the interval of n of every row that is shown.

    Raises:
        ValueError: alpha is out of range.
    """
    level = alpha / shown.simultaneous
    rows = zip(shown.rows, shown.thresholds, strict=True)
    return [
        _count_interval(release.count_variance, int(release.counts[row]), t, level, release.minimum)
        for row, t in rows
    ]


def sum_intervals(
    release: ReleasedMoments, column: int, shown: ShownRows, *, alpha: Fraction
) -> list[SumInterval]:
    """Return the interval of a column's SUM for every row that is shown, at alpha / 2.

    Raises:
        ValueError: alpha is out of range.
    """
    level = alpha / 2 / shown.simultaneous
    of_column = release.columns[column]
    return [
        _sum_interval(of_column, row, t, minimum, level)
        for row, t, minimum in _rows_of(release, of_column, shown)
    ]


def average_intervals(
    release: ReleasedMoments, column: int, shown: ShownRows, *, alpha: Fraction
) -> list[AverageInterval | None]:
    """Return the interval of a column's AVG for every row that is shown, at alpha / 2.

    It is None, and neither value nor interval is shown, where the lower end of N's interval at alpha is not above 0.

    Raises:
        ValueError: alpha is out of range.
    """
    level = alpha / shown.simultaneous
    of_column = release.columns[column]
    return [
        _average_interval(of_column, row, t, minimum, level)
        for row, t, minimum in _rows_of(release, of_column, shown)
    ]


def _rows_of(
    release: ReleasedMoments, column: ReleasedColumn, shown: ShownRows
) -> list[tuple[int, int | None, int]]:
    """Return every row with its t and the smallest n it can have: a count of its own was not selected."""
    if column.has_own_count:
        return [(row, None, 0) for row in shown.rows]
    return [(row, t, release.minimum) for row, t in zip(shown.rows, shown.thresholds, strict=True)]


def _count_interval(
    variance: Fraction, count: int, to_reach: int | None, alpha: Fraction, minimum: int
) -> SumInterval:
    if to_reach is None:
        half_width = gaussian_half_width(variance, alpha)
        lower = max(count - half_width, minimum)
        return SumInterval(lower, max(count + half_width, lower))
    found = selected_gaussian_interval(
        np.array([count]), np.array([to_reach]), variance, alpha=alpha, minimum=minimum
    )
    return SumInterval(int(found.lower[0]), int(found.upper[0]))


class Confined(NamedTuple):
    """The smallest and the largest a with Z_n >= a that n allows for, and what is left of alpha for each tail."""

    least: int | None
    largest: int | None
    level: float


def confined(variance: Fraction, count: int, to_reach: int | None, alpha: Fraction, minimum: int) -> Confined:
    """Return which Z_n are possible given that N reached t, but for a hundredth of alpha."""
    if to_reach is None:
        return Confined(None, None, float(alpha) / 2 * (1 - SLACK))
    n = _count_interval(variance, count, to_reach, alpha * _CONFINING, minimum)
    level = float(alpha * (1 - _CONFINING)) / 2 * (1 - SLACK)
    # Rounded outwards to a 64th of a standard deviation, so that rows have laws in common.
    step = max(math.isqrt(math.floor(variance)) // 64, 1)
    ends = ((to_reach - n.upper) // step * step, -((n.lower - to_reach) // step) * step)
    return Confined(_at_least(ends[0], variance), _at_least(ends[1], variance), level)


def _at_least(least: int, variance: Fraction) -> int | None:
    """Return the same, None where it is so far below that Z_n is hardly ever less."""
    return None if least < 0 and least**2 > 100 * variance else least


def _sum_interval(
    column: ReleasedColumn, row: int, to_reach: int | None, minimum: int, alpha: Fraction
) -> SumInterval:
    count, centre = int(column.counts[row]), column.clamp.centre
    within = confined(column.count_variance, count, to_reach, alpha, minimum)
    # Z_n, and with it centre Z_n, is largest for the largest a if centre > 0.
    ends = (within.least, within.largest) if centre > 0 else (within.largest, within.least)
    noise = NoisePair(float(column.sum_variance), float(column.count_variance), centre, column.scale)
    most = least_rarely_reached(noise, ends[1], within.level) - 1
    least = largest_rarely_undercut(noise, ends[0], within.level) + 1
    doubled = column.doubled_sum(row)
    low, high = doubled - most, doubled - least
    if column.scale > 1:
        # Such a sum can lie in the middle of two steps.
        return within_signs(column, low // 2, -(-high // 2))
    return within_signs(column, -(-low // 2), high // 2)


def within_signs(column: ReleasedColumn, lower: int, upper: int) -> SumInterval:
    """Return the part of an interval of sums that has a possible sign; 0 to 0 if none of it has.

    It covers as often: the true sum has a possible sign, so wherever it was in the interval it still is. Where no step
    lies between the ends, as noise is less than one, it is from the step below to the one above.
    """
    lower, upper = min(lower, upper), max(lower, upper)
    if column.clamp.low >= 0:
        lower, upper = max(lower, 0), max(upper, 0)
    if column.clamp.high <= 0:
        lower, upper = min(lower, 0), min(upper, 0)
    return SumInterval(lower, upper)


@lru_cache(maxsize=1024)
def _least_certain(variance: Fraction, to_reach: int | None, alpha: Fraction, minimum: int) -> int:
    """Return the smallest N that can be shown for which the interval of n is above 0."""
    half_width = gaussian_half_width(variance, alpha)
    if to_reach is None:
        return half_width + 1

    def is_certain(count: int) -> bool:
        return _count_interval(variance, count, to_reach, alpha, minimum).lower > 0

    # That far above t and 0 an interval is about as wide as one of a count that nothing selected.
    highest = max(to_reach, 0) + 4 * half_width + 16 * (math.isqrt(math.ceil(variance)) + 1)
    return to_reach + bisect_left(range(to_reach, highest), True, key=is_certain)


def _average_interval(
    column: ReleasedColumn, row: int, to_reach: int | None, minimum: int, alpha: Fraction
) -> AverageInterval | None:
    count = int(column.counts[row])
    least_certain = _least_certain(column.count_variance, to_reach, alpha, minimum)
    if count < least_certain:
        return None
    within = confined(column.count_variance, count, least_certain, alpha / 2, max(minimum, 1))
    laws = [bins_of(float(column.count_variance), least) for least in {within.least, within.largest}]
    found = _RatioTest(column, int(column.centred[row]), count, laws).interval(within.level)
    # A wider interval covers as often, and people read one that leaves out the value beside it as a mistake.
    value = column.average_of(row)
    return found if value is None else AverageInterval(min(found.lower, value), max(found.upper, value))


class _RatioTest:
    """Which r = W j / 2^20 are not rejected as beta / n, given B and N."""

    def __init__(self, column: ReleasedColumn, centred: int, count: int, laws: Sequence[Bins]) -> None:
        self._clamp = column.clamp
        # In steps of B for one of N.
        self._width = column.clamp.width / column.scale
        self._variance, self._count_variance = float(column.sum_variance), float(column.count_variance)
        self._centred, self._count = centred, count
        self._laws = laws
        self._impossible = [float(law.mass[law.high >= count].sum()) for law in laws]

    def interval(self, level: float) -> AverageInterval:
        """Return the averages that are not rejected, rounded outwards."""
        middle = self._step_of(self._centred / self._count)
        deviation = math.sqrt(self._variance + (self._width * middle / _STEPS) ** 2 * self._count_variance)
        width = max(1, self._step_of(deviation / self._count))
        # The largest j that is too small, and the smallest that is too large; beyond all of them both are certain.
        step, within = 2 * width, (-_STEPS - 1, _STEPS + 1)
        low = -first_rare(
            lambda n: self._rejected(-n, upper=True), level, near=-middle, step=step, within=within
        )
        high = first_rare(
            lambda n: self._rejected(n, upper=False), level, near=middle, step=step, within=within
        )
        ends = [min(max(end, -_STEPS), _STEPS) for end in (low, high)]
        return AverageInterval(self._average(min(ends)), self._average(max(ends)))

    def _step_of(self, r: float) -> int:
        """Return the j of an r, or that of the nearest possible one."""
        return round(min(max(r / self._width, -1.0), 1.0) * _STEPS)

    def _rejected(self, j: int, *, upper: bool) -> float:
        if abs(j) > _STEPS:
            return float((j > 0) == upper)
        return self._chance(j, upper=upper)

    def _average(self, j: int) -> Fraction:
        return (self._clamp.centre + Fraction(self._clamp.width * j, _STEPS)) / 2

    def _chance(self, j: int, *, upper: bool) -> float:
        """Return the largest chance of a B - r N that is as large, or as small; it rises, or falls, with j."""
        return max(
            impossible + self._chance_given(law, j, upper=upper)
            for impossible, law in zip(self._impossible, self._laws, strict=True)
        )

    def _chance_given(self, law: Bins, j: int, *, upper: bool) -> float:
        """Return the chance that Z_b is at least, or at most, B - r (N - Z_n), where Z_n < N."""
        r = self._width * j / _STEPS
        possible = law.high < self._count
        # Of a bin the end that makes the event more likely.
        worse = law.low if (r > 0) == upper else law.high
        edge = self._centred - r * (self._count - worse[possible])
        distance = np.ceil(edge) if upper else -np.floor(edge)
        return float(law.mass[possible] @ upper_tails(self._variance, distance))
