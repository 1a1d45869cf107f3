"""The exact argument for looks at weighted members, over small member-level data sets and over members of any size.

A pair of neighbours is checked without sampling a law: a discrete Gaussian draw that moves by c has a Renyi divergence
of order a of exactly at most a c^2 / (2 sigma^2), so the elements that both neighbours look at are within rho if and
only if their squared distance is within D; what only one of them looks at is shown with a probability that is enclosed
in interval arithmetic. Every number is an integer, a fraction or an interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from math import isqrt

from dp_service.bounding.weights import least_kept
from dp_service.mechanisms import Currency
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, Counted
from dp_service.noise.distribution import exact_bound, gaussian_tail
from dp_service.terms import GRID

Cells = tuple[int, ...]
"""How many rows a member has in each element; 0: it has none."""

Member = tuple[Cells, ...]
"""The cells of each period."""

Weigh = Callable[[int, int], int]
"""From D of one period and Q to W."""


LEAST = least_kept(GRID)


def rounded_down(distance: int, square: int) -> int:
    """Return the weight of the rule."""
    return min(GRID, isqrt(distance // square))


def those_left(every: Cells, left: Cells) -> Cells:
    """Return the cells that the question leaves."""
    return left


@dataclass(frozen=True)
class Rule:
    """How members are weighted and counted; each field has what the rule says, and a wrong form has something else.

    Attributes:
        weigh: W from D and Q; None: no weights.
        least: The least contribution that counts over an unknown domain.
        seen: From all cells of a member and those that the question leaves, the cells that Q is of.
        adds_up: Whether a member of several periods adds the sum of their weights, and not the largest.
    """

    weigh: Weigh | None = rounded_down
    least: int = LEAST
    seen: Callable[[Cells, Cells], Cells] = those_left
    adds_up: bool = False

    def added(
        self, member: Member, bound: ContributionBound, *, within: Sequence[int] | None, cuts: bool
    ) -> Cells:
        """Return what a member adds to each element, on the grid.

        Args:
            member: Its rows.
            bound: That of the look.
            within: The elements that a filter, a domain or names leave; None: all.
            cuts: Whether the domain is unknown, so that small contributions do not count.
        """
        of_periods = [self._of_period(cells, bound, within, cuts=cuts) for cells in member]
        together = max if bound.counted is Counted.MEMBERS and not self.adds_up else sum
        return tuple(map(together, zip(*of_periods, strict=True)))

    def _of_period(
        self, rows: Cells, bound: ContributionBound, within: Sequence[int] | None, *, cuts: bool
    ) -> Cells:
        every = tuple(min(row, bound.tau) for row in rows)
        left = tuple(cell if within is None or e in within else 0 for e, cell in enumerate(every))
        square = sum(cell * cell for cell in self.seen(every, left))
        distance = bound.typical * bound.tau**2 * GRID**2
        by = GRID if self.weigh is None or not square else self.weigh(distance, square)
        least = self.least if cuts else 1
        return tuple(by * cell if by * cell >= least else 0 for cell in left)


RULE = Rule()


def look(
    typical: int,
    min_count: int | None,
    *,
    tau: int = 1,
    periods: int = 1,
    units: Fraction = Fraction(1),
    delta: Fraction = Fraction(1, 20),
    epsilon: int = 2,
) -> BoundGauss:
    """Return a look at weighted members; one unit is rho = 1/2."""
    counted = Counted.MEMBERS if tau == 1 else Counted.EVENTS
    bound = ContributionBound(typical, tau, periods, counted, GRID)
    return BoundGauss(Currency(Fraction(epsilon), delta), units, bound, min_count)


def members(elements: int, *, periods: int = 1, most_rows: int = 1) -> list[Member]:
    """Return every member there can be, the one without rows too."""
    return list(product(product(range(most_rows + 1), repeat=elements), repeat=periods))


@dataclass(frozen=True)
class Broken:
    """What a pair of neighbours does to a promise: by how much of D, and how often a newcomer is shown."""

    relative_distance: Fraction = Fraction(0)
    shown: float = 0.0

    @classmethod
    def worst(cls, found: Iterable[Broken]) -> Broken:
        """Return the worst of all, each for itself."""
        listed = list(found)
        return cls(max(each.relative_distance for each in listed), max(each.shown for each in listed))

    def is_kept(self, asked: BoundGauss) -> bool:
        """Return whether the promise holds."""
        return self.relative_distance <= 1 and self.shown <= float(asked.currency.delta)


def compared(
    asked: BoundGauss,
    others: Iterable[int],
    added: Iterable[int],
    *,
    threshold: int | None = None,
) -> Broken:
    """Compare a histogram on the grid with that of one member more.

    Args:
        asked: The look.
        others: The counts without the member.
        added: What the member adds to each.
        threshold: T, if it is another one than the look's.
    """
    return _compared(asked, Counter(each for each in zip(others, added, strict=True) if each[1]), threshold)


def _compared(asked: BoundGauss, pairs: Mapping[tuple[int, int], int], threshold: int | None) -> Broken:
    """Compare elements with a member and without it; of equal ones there may be many."""
    limit = 0 if asked.min_count is None else asked.min_count * GRID
    hides_above = asked.threshold if threshold is None else threshold
    distance, shown = 0, 0.0
    for (before, more), often in pairs.items():
        if before >= limit:
            distance += often * more**2
        elif before + more >= limit:
            assert hides_above is not None
            shown += often * tail(asked.variance, hides_above - before - more)
    return Broken(Fraction(distance, asked.bound.squared_distance), shown)


@cache
def tail(variance: Fraction, n: int) -> float:
    """Return the lower end of Pr[N > n], so that no wrong form is found by rounding alone."""
    return float((gaussian_tail(variance, n + 1) * exact_bound(Fraction(1))).a)


def neighbours(
    asked: BoundGauss,
    elements: int,
    *,
    rule: Rule = RULE,
    most_rows: int = 1,
    base: Sequence[Cells] = (),
    within: Sequence[int] | None = None,
    threshold: int | None = None,
) -> Iterator[Broken]:
    """Compare every data set of at most one member, on top of each base of counts, with that of one member more."""
    cuts = asked.min_count is not None
    possible = members(elements, periods=asked.bound.periods, most_rows=most_rows)
    contributions = {rule.added(member, asked.bound, within=within, cuts=cuts) for member in possible}
    for start in base or [(0,) * elements]:
        for other in contributions:
            others = [count + more for count, more in zip(start, other, strict=True)]
            for more in contributions:
                yield compared(asked, others, more, threshold=threshold)


@dataclass(frozen=True)
class Profile:
    """A member of so many elements of each number of rows: `elements[x]` of x rows."""

    elements: Mapping[int, int]

    def square(self, tau: int) -> int:
        """Return Q."""
        return sum(often * min(rows, tau) ** 2 for rows, often in self.elements.items())

    def compared(self, asked: BoundGauss, rule: Rule, before: int, threshold: int | None = None) -> Broken:
        """Compare a data set where each of its elements has a count with that of the member more, in one period."""
        bound = asked.bound
        distance = bound.typical * bound.tau**2 * GRID**2
        by = GRID if rule.weigh is None else rule.weigh(distance, self.square(bound.tau))
        least = rule.least if asked.min_count is not None else 1
        pairs: Counter[tuple[int, int]] = Counter()
        for rows, often in self.elements.items():
            more = by * min(rows, bound.tau)
            if more >= least:
                pairs[before, more] += often
        return _compared(asked, pairs, threshold)
