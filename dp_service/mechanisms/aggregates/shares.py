"""Intervals of a number of one row as a share of the sum of a number over all rows of a known domain.

All rows of a known domain are released, so their sum is a function of what was released, whichever of them are shown.
Over an unknown domain it is not: what passed the threshold is not all that there is, and is no share of it.

Twice what is divided is A, of a row whose numbers are part of X, twice the sum over all m rows. Each row has draws of
its own, so A - r X has the draws of its row, with weights w_a - r w_b, and (m - 1) draws of the other rows with -r w_b.
Where a and b are one number these are (1 - r) w and -r w: what noise adds to a row it adds to the sum. r is tested as
in `compared`, also given that X >= x0, where nothing selects the sum.

THE LAW of the other rows' draws. m - 1 independent discrete Gaussian draws of parameter v >= 4 add up to a number that
has the mass of one of parameter (m - 1) v at each value but for a factor of 1 +- (m - 1) 10^-16: each that is added has
a harmonic mean of at least v / 2 with those before, and then so says Poisson's formula (Micciancio and Regev 2007,
lemma 3.3; arXiv:2004.00010 has draws of integer parameters). Below 4 their sum is taken as sub-Gaussian, as a draw that
is so small is in `compared`.

Which rows of a list that is cut are shown depends on the noise of all of them. Then intervals are at alpha divided by
m: together they cover at least as often as they say, whichever rows are shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dp_service.mechanisms.aggregates.compared import Noise, RatioTest, Weighted, doubled_total, upper_tails
from dp_service.mechanisms.aggregates.intervals import SLACK, AverageInterval, Confined, ShownRows
from dp_service.mechanisms.aggregates.noise_pairs import first_rare
from dp_service.mechanisms.aggregates.released import ReleasedMoments

_EXACT = 4
_CONFINING = Fraction(1, 100)
_SMALL = 0.25


@dataclass(frozen=True)
class _Draw:
    """A draw of each row: its weights in the number that is divided and in the one that is added up."""

    above: int
    below: int
    variance: float


@dataclass(frozen=True)
class Shares:
    """The shares of all rows of a known domain.

    Attributes:
        release: What was released: all rows of the domain.
        above: The place of the column that is divided; None: the count is.
        below: That of the column whose sum over all rows it is divided by; None: it is the count.
    """

    release: ReleasedMoments
    above: int | None
    below: int | None

    def __post_init__(self) -> None:
        if self.release.threshold is not None:
            raise ValueError("expected a known domain, all rows of which are released")

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.release.groups.size)

    @property
    def doubled_sum(self) -> int:
        """X: twice the sum over all rows."""
        counts = sum(self.release.counts.tolist())
        if self.below is None:
            return 2 * counts
        column = self.release.columns[self.below]
        return sum(column.centred.tolist()) + column.clamp.centre * counts

    def doubled(self, row: int) -> int:
        """Return A: twice what is divided; what cannot be negative is brought to 0."""
        found = self._doubled(self.above, row)
        return max(found, 0) if self._never_negative else found

    def value(self, row: int, doubled_sum: int) -> Fraction:
        """Return the share of a row; a part of a sum that cannot be negative is no more than all of it."""
        return self._possible(Fraction(self.doubled(row), doubled_sum))

    def least_sum(self, alpha: Fraction) -> int:
        """Return x0, the smallest X with which shares are shown: then the interval of the sum is above 0."""
        return _least_sum(self._of_sum, float(alpha / 2 * (1 - _CONFINING)) / 2 * (1 - SLACK))

    def intervals(self, shown: ShownRows, level: Fraction) -> list[AverageInterval | None]:
        """Return the interval of the share of every row that is shown, in steps; None: the sum may be 0."""
        doubled_sum, least = self.doubled_sum, self.least_sum(level)
        if doubled_sum < least:
            return [None] * len(shown.rows)
        return [self._interval(row, doubled_sum, least, level) for row in shown.rows]

    def _interval(self, row: int, doubled_sum: int, least: int, alpha: Fraction) -> AverageInterval:
        within = Confined(None, None, float(alpha) / 2 * (1 - SLACK))
        test = _ShareTest(
            float(self._doubled(self.above, row)), doubled_sum, within, least, alpha, self._draws, self.rows
        )
        lower, upper = map(self._possible, test.interval())
        value = self.value(row, doubled_sum)
        # A wider interval covers as often, and people read one that leaves out the value beside it as a mistake.
        return AverageInterval(min(lower, value), max(upper, value))

    def _possible(self, share: Fraction) -> Fraction:
        if not self._never_negative:
            return share
        return max(min(share, Fraction(1)) if self.above == self.below else share, Fraction(0))

    @property
    def _never_negative(self) -> bool:
        places = (each for each in (self.above, self.below) if each is not None)
        return all(self.release.columns[each].clamp.low >= 0 for each in places)

    def _doubled(self, place: int | None, row: int) -> int:
        return int(doubled_total(self.release, [Weighted(place, Fraction(1))], row))

    @property
    def _of_sum(self) -> tuple[tuple[int, float, int], ...]:
        return tuple((each.below, each.variance, self.rows) for each in self._draws if each.below)

    @property
    def _draws(self) -> tuple[_Draw, ...]:
        columns = self.release.columns
        found = [
            _Draw(int(place == self.above), int(place == self.below), float(columns[place].sum_variance))
            for place in sorted({each for each in (self.above, self.below) if each is not None})
        ]
        of_count = (self._of_count(self.above), self._of_count(self.below))
        return (*found, _Draw(*of_count, float(self.release.count_variance)))

    def _of_count(self, place: int | None) -> int:
        """Return the weight of a row's count in twice one of its numbers."""
        return 2 if place is None else self.release.columns[place].clamp.centre


@dataclass(frozen=True, eq=False)
class _ShareTest(RatioTest):
    """Of a number of one row and the sum over all: no draw of it is selected, so Z_n is one as any other."""

    draws: tuple[_Draw, ...]
    rows: int

    @property
    def variance(self) -> float:
        return 0.0

    @property
    def divisor_of_count(self) -> int:
        return 0

    @property
    def divisor_variance(self) -> float:
        return self.rows * sum(each.below**2 * each.variance for each in self.draws)

    def noise(self, r: float) -> Noise:
        own = ((each.above - r * each.below, each.variance, 1) for each in self.draws)
        others = ((r * each.below, each.variance, self.rows - 1) for each in self.draws)
        return tuple(_added((*own, *others)))

    def of_count(self, r: float) -> float:
        return 0.0

    def divisor_noise(self, y: int, at_least: int | None, *, sign: int = 1) -> float:
        # The law is symmetric.
        return tail(tuple((each.below, each.variance, self.rows) for each in self.draws), y)


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
def _least_sum(draws: tuple[tuple[int, float, int], ...], level: float) -> int:
    """Return the smallest y with Pr[W >= y] <= level."""
    variance = sum(weight**2 * each * number for weight, each, number in draws)
    return first_rare(lambda y: tail(draws, y), level, near=0, step=math.ceil(math.sqrt(variance)))
