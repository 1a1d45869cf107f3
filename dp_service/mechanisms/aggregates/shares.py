"""Intervals of a number of one row as a share of the sum of a number over all rows.

All rows of a known domain are released, so their sum is a function of what was released, whichever of them are shown.
Over an unknown domain it is not: what passed the threshold is not all that there is. There a total is released beside
the rows, with noise of its own, which no row has: A - r X has the draws of its row, of which Z_n is taken given that
the row is shown, and those of the total with -r.

Over a known domain twice what is divided is A, of a row whose numbers are part of X, twice the sum over all m rows.
Each row has draws of its own, so A - r X has the draws of its row, with weights w_a - r w_b, and (m - 1) draws of the
other rows with -r w_b. Where a and b are one number these are (1 - r) w and -r w: what noise adds to a row it adds to
the sum. r is tested as in `compared`, also given that X >= x0, where nothing selects the sum.

THE LAW of the other rows' draws. m - 1 independent discrete Gaussian draws of parameter v >= 4 add up to a number that
has the mass of one of parameter (m - 1) v at each value but for a factor of 1 +- (m - 1) 10^-16: each that is added has
a harmonic mean of at least v / 2 with those before, and then so says Poisson's formula (Micciancio and Regev 2007,
lemma 3.3; arXiv:2004.00010 has draws of integer parameters). Below 4 their sum is taken as sub-Gaussian, as a draw that
is so small is in `compared`.

Which rows of a known domain's list that is cut are shown depends on the noise of all of them, which is in the sum. Then
intervals are at alpha divided by m: together they cover at least as often as they say, whichever rows are shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dp_service.mechanisms.aggregates.compared import Noise, RatioTest, Weighted, doubled_total, upper_tails
from dp_service.mechanisms.aggregates.intervals import SLACK, AverageInterval, Confined, ShownRows, confined
from dp_service.mechanisms.aggregates.noise_pairs import first_rare
from dp_service.mechanisms.aggregates.released import ReleasedMoments

_EXACT = 4
_CONFINING = Fraction(1, 100)
_SMALL = 0.25


@dataclass(frozen=True)
class Draws:
    """Equal draws: their weights in twice what is divided and in X, and how many of them there are."""

    above: int
    below: int
    variance: float
    number: int


def least_divisor(draws: tuple[Draws, ...], alpha: Fraction) -> int:
    """Return x0, the smallest X that is divided by: then its interval is above 0."""
    return _least(_below(draws), float(alpha / 2 * (1 - _CONFINING)) / 2 * (1 - SLACK))


@dataclass(frozen=True)
class Selected:
    """The draw for which a row is shown: its weight in what is divided, its variance, and which are possible."""

    above: int
    variance: float
    within: Confined


def part_interval(
    divided: int,
    divisor: int,
    draws: tuple[Draws, ...],
    *,
    alpha: Fraction,
    selected: tuple[Selected, ...] = (),
) -> tuple[Fraction, Fraction]:
    """Return the interval of a quotient, in steps, given that it is shown.

    Args:
        divided: Twice what is divided.
        divisor: X, twice what it is divided by: at least x0.
        draws: Their noise, none of which is selected.
        alpha: With which chance the interval may miss.
        selected: The draw that is, if one is.
    """
    (of_count,) = selected or (Selected(0, 0.0, Confined(None, None, float(alpha) / 2 * (1 - SLACK))),)
    least = least_divisor(draws, alpha)
    return _PartTest(float(divided), divisor, of_count.within, least, alpha, draws, of_count).interval()


@dataclass(frozen=True)
class Shares:
    """The shares of all rows of a known domain, or of the rows that are released beside a total.

    Attributes:
        release: What was released: all rows of the domain, or a total beside them; one row or more.
        divided: The number that is divided, as it is.
        added_up: The one whose sum over all rows it is divided by.
    """

    release: ReleasedMoments
    divided: Weighted
    added_up: Weighted

    def __post_init__(self) -> None:
        if self.release.threshold is not None and not self.release.wholes:
            raise ValueError("expected a known domain, all rows of which are released, or a total")

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.release.groups.size)

    @property
    def doubled_sum(self) -> int:
        """X: twice the sum over all rows."""
        if self.release.wholes:
            return int(doubled_total(self.release.wholes[0], [self.added_up], 0))
        counts: int = sum(self.release.counts.tolist())
        if self.added_up.column is None:
            return 2 * counts
        column = self.release.columns[self.added_up.column]
        centred: int = sum(column.centred.tolist())
        return centred + column.clamp.centre * counts

    def doubled(self, row: int) -> int:
        """Return A: twice what is divided; what cannot be negative is brought to 0."""
        found = self._doubled(row)
        return max(found, 0) if self._never_negative else found

    def value(self, row: int, doubled_sum: int) -> Fraction:
        """Return the share of a row; a part of a sum that cannot be negative is no more than all of it."""
        return self._possible(Fraction(self.doubled(row), doubled_sum))

    def least_sum(self, alpha: Fraction) -> int:
        """Return x0, the smallest X with which shares are shown: then the interval of the sum is above 0."""
        return least_divisor(self._draws, alpha)

    def intervals(self, shown: ShownRows, alpha: Fraction) -> list[AverageInterval | None]:
        """Return the interval of the share of every row that is shown, in steps; None: the sum may be 0."""
        # Over a known domain only a list that its counts cut has numbers that they had to reach.
        is_cut = not self.release.wholes and any(each is not None for each in shown.thresholds)
        level = alpha / (self.rows if is_cut else shown.simultaneous)
        doubled_sum = self.doubled_sum
        if doubled_sum < self.least_sum(level):
            return [None] * len(shown.rows)
        rows = zip(shown.rows, shown.thresholds, strict=True)
        return [self._interval(row, t, doubled_sum, level) for row, t in rows]

    def _interval(self, row: int, to_reach: int | None, doubled_sum: int, alpha: Fraction) -> AverageInterval:
        selected = self._selected(row, to_reach, alpha) if self.release.wholes else ()
        found = part_interval(self._doubled(row), doubled_sum, self._draws, alpha=alpha, selected=selected)
        lower, upper = map(self._possible, found)
        value = self.value(row, doubled_sum)
        # A wider interval covers as often, and people read one that leaves out the value beside it as a mistake.
        return AverageInterval(min(lower, value), max(upper, value))

    def _possible(self, share: Fraction) -> Fraction:
        if not self._never_negative:
            return share
        return max(min(share, Fraction(1)) if self.divided == self.added_up else share, Fraction(0))

    @property
    def _never_negative(self) -> bool:
        places = (each.column for each in (self.divided, self.added_up))
        return all(each is None or self.release.columns[each].clamp.low >= 0 for each in places)

    def _doubled(self, row: int) -> int:
        return int(doubled_total(self.release, [self.divided], row))

    def _selected(self, row: int, to_reach: int | None, alpha: Fraction) -> tuple[Selected, ...]:
        release, place = self.release, self.divided.column
        within = confined(release.count_variance, int(release.counts[row]), to_reach, alpha, release.minimum)
        above = 2 if place is None else release.columns[place].clamp.centre
        return (Selected(above, float(release.count_variance), within),)

    @property
    def _draws_beside_a_total(self) -> Iterator[Draws]:
        """The draws of a row but for its count, and those of the total."""
        (whole,), divided, added = self.release.wholes, self.divided.column, self.added_up.column
        if divided is not None:
            yield Draws(1, 0, float(self.release.columns[divided].sum_variance), 1)
        of_count = 2
        if added is not None:
            yield Draws(0, 1, float(whole.columns[added].sum_variance), 1)
            of_count = whole.columns[added].clamp.centre
        yield Draws(0, of_count, float(whole.count_variance), 1)

    @property
    def _draws(self) -> tuple[Draws, ...]:
        """The draws of a row, and those of the others, which are in the sum alone."""
        if self.release.wholes:
            return tuple(self._draws_beside_a_total)
        columns, numbers = self.release.columns, (self.divided.column, self.added_up.column)
        found = [
            (int(place == numbers[0]), int(place == numbers[1]), columns[place].sum_variance)
            for place in sorted({each for each in numbers if each is not None})
        ]
        # The weight of a row's count in twice one of its numbers.
        above, below = (2 if each is None else columns[each].clamp.centre for each in numbers)
        found.append((above, below, self.release.count_variance))
        own = (Draws(above, below, float(variance), 1) for above, below, variance in found)
        others = (Draws(0, below, float(variance), self.rows - 1) for _, below, variance in found)
        return (*own, *others)


@dataclass(frozen=True, eq=False)
class _PartTest(RatioTest):
    """Of a number and one that it is a part of. Z_n is a draw as any other, unless it is the one that is selected."""

    draws: tuple[Draws, ...]
    selected: Selected

    @property
    def variance(self) -> float:
        return self.selected.variance

    @property
    def divisor_of_count(self) -> int:
        return 0

    @property
    def divisor_variance(self) -> float:
        return sum(each.below**2 * each.variance * each.number for each in self.draws)

    def noise(self, r: float) -> Noise:
        return tuple(_added((each.above - r * each.below, each.variance, each.number) for each in self.draws))

    def of_count(self, r: float) -> float:
        return float(self.selected.above)

    def divisor_noise(self, y: int, at_least: int | None, *, sign: int = 1) -> float:
        # The law is symmetric.
        return tail(_below(self.draws), y)


def _below(draws: tuple[Draws, ...]) -> tuple[tuple[int, float, int], ...]:
    """Return the noise of what is divided by: equal draws as one."""
    found: dict[tuple[int, float], int] = {}
    for each in draws:
        found[each.below, each.variance] = found.get((each.below, each.variance), 0) + each.number
    return tuple((weight, variance, number) for (weight, variance), number in found.items() if weight)


def _added(draws: Iterable[tuple[float, float, int]]) -> Iterator[tuple[float, float]]:
    """Yield weights and variances that as many draws of each weight and variance come to."""
    for weight, variance, number in draws:
        if not weight or not number:
            continue
        if number == 1 or variance >= _EXACT:
            yield weight, variance * number
        else:
            # In steps so large beside its variance that only the bound is taken.
            yield weight * math.sqrt(variance * number / _SMALL), _SMALL


def tail(draws: tuple[tuple[int, float, int], ...], y: int) -> float:
    """Return at least Pr[W >= y]."""
    return float(upper_tails(tuple(_added(draws)), np.asarray(float(y))))


@lru_cache(maxsize=256)
def _least(draws: tuple[tuple[int, float, int], ...], level: float) -> int:
    """Return the smallest y with Pr[W >= y] <= level."""
    variance = sum(weight**2 * each * number for weight, each, number in draws)
    return first_rare(lambda y: tail(draws, y), level, near=0, step=math.ceil(math.sqrt(variance)))
