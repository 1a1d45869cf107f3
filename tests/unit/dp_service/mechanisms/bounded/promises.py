"""The promises of all variants over small member-level data sets, and the worst that is found of each.

A variant gives, for a pair of neighbours, the laws to compare; what it promises is delta-approximate rho-zCDP. Two
things are computed: the hockey-stick divergence of everything that is released, and, given that no newcomer is shown,
the Renyi divergences, which must not exceed alpha rho.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from dp_service.mechanisms import Currency
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, Counted, Shift, TwoLooks

from .laws import (
    ORDERS,
    Floats,
    Grid,
    Names,
    joint,
    log_mgf,
    marginal,
    names_law,
    worst_excess,
    worst_rho,
)
from .member_data import (
    Counts,
    DataSet,
    Member,
    Valued,
    distinct_counts,
    histogram,
    members,
    neighbours,
    valued_members,
)

CURRENCY = Currency(Fraction(2), Fraction(1, 20))
"""One unit is rho = 1/2, so that noise is of a few units."""

Pair = tuple[DataSet, DataSet]
Bounding = Callable[[DataSet], Counts]


@dataclass(frozen=True)
class Worst:
    """The most by which delta is exceeded (at most 0 if the promise holds), and the largest rho, relative to it."""

    excess: float
    relative_rho: float

    @classmethod
    def of(cls, found: Iterable[Worst]) -> Worst:
        """Return the worst of all."""
        listed = list(found)
        return cls(max(each.excess for each in listed), max(each.relative_rho for each in listed))


@dataclass(frozen=True)
class OneLook:
    """A look at `elements` elements of all data sets up to `most_members` members, on top of `base` counts.

    `counted` makes the histogram of a data set; by default it bounds contributions as the look's bound says.
    `looked` gives the look for a histogram: a data-dependent parameter is a mutation that needs it.
    """

    look: BoundGauss
    elements: int
    most_members: int
    base: Counts = ()
    most_rows: int = 1
    counted: Bounding | None = None
    looked: Callable[[Counts], BoundGauss] | None = None

    def __str__(self) -> str:
        bound = self.look.bound
        domain = "known" if self.look.min_count is None else f"m={self.look.min_count}"
        return (
            f"one look, {domain} Delta={bound.typical} tau={bound.tau} P={bound.periods} {bound.counted.value} "
            f"elements={self.elements} base={self.base or 0}"
        )

    def pairs(self) -> Iterator[tuple[Counts, Counts]]:
        """Yield the different pairs of histograms of neighbours."""
        bound = self.look.bound
        possible = members(self.elements, periods=bound.periods, most_rows=self.most_rows)
        found = dict.fromkeys(
            (self._histogram(first), self._histogram(second))
            for first, second in neighbours(possible, self.most_members)
        )
        yield from (pair for pair in found if pair[0] != pair[1])

    def _histogram(self, data: DataSet) -> Counts:
        counts = (self.counted or self._bounded)(data)
        base = self.base or (0,) * self.elements
        return tuple(count + more for count, more in zip(counts, base, strict=True))

    def _bounded(self, data: DataSet) -> Counts:
        return histogram(data, self.look.bound, self.elements)

    def worst(self) -> Worst:
        """Return the worst over all pairs."""
        return Worst.of(self.divergences(*pair) for pair in self.pairs())

    def divergences(self, first: Counts, second: Counts) -> Worst:
        """Compare the laws of two histograms."""
        grid = Grid.of(self.look.variance, 0, max(second) + 1)
        laws = [[marginal(self._look(counts), count, grid) for count in counts] for counts in (first, second)]
        look = self.look
        delta = Fraction(0) if look.min_count is None else look.currency.delta
        excess = worst_excess(joint(laws[0]), joint(laws[1]), look.rho, delta)
        common = [
            place for place, (one, other) in enumerate(zip(*laws, strict=True)) if one[0] < 1 and other[0] < 1
        ]
        shown = [[law[place] for place in common] for law in laws]
        return Worst(excess, worst_rho(*shown) / float(look.rho) if common else 0.0)

    def _look(self, counts: Counts) -> BoundGauss:
        return self.looked(counts) if self.looked else self.look


@dataclass(frozen=True)
class DistinctLook(OneLook):
    """A look at distinct values, of `values` that there are, on top of `base` values that no other member has.

    `united` makes the histogram of a data set; by default it keeps values as the look's bound says.
    """

    values: int = 2
    united: Callable[[Sequence[Valued]], Counts] | None = None

    def __str__(self) -> str:
        return f"{super().__str__()} distinct values={self.values}"

    def pairs(self) -> Iterator[tuple[Counts, Counts]]:
        """Yield the different pairs of histograms of neighbours."""
        found = dict.fromkeys(
            (self._counts(first), self._counts(second))
            for first, second in neighbours(valued_members(self.elements, self.values), self.most_members)
        )
        yield from (pair for pair in found if pair[0] != pair[1])

    def _counts(self, data: Sequence[Valued]) -> Counts:
        united = self.united or (lambda data: distinct_counts(data, self.look.bound, self.elements))
        base = self.base or (0,) * self.elements
        return tuple(count + more for count, more in zip(united(data), base, strict=True))


@dataclass(frozen=True)
class BothLooks:
    """Names and counts together, over data sets of `most_members` small members on top of a `base` of members.

    `counts_of` makes the histogram of the second look within the names; by default it bounds within them.
    `most_names_of` is a mutation: M from the data.
    """

    looks: TwoLooks
    elements: int
    most_members: int
    base: DataSet = ()
    counts_of: Callable[[DataSet, Names], Counts] | None = None
    most_names_of: Callable[[DataSet], int] | None = None
    added: Sequence[Member] | None = None
    _laws: dict[object, dict[Names, float]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    _histograms: dict[object, Counts] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __str__(self) -> str:
        looks = self.looks
        return (
            f"two looks, m={looks.min_count} Delta_1={looks.names_bound.typical} "
            f"Delta_2={looks.counts_bound.typical} M={looks.most_names} elements={self.elements} "
            f"base={len(self.base)} members"
        )

    @cached_property
    def rho(self) -> Fraction:
        """What all looks together are promised to cost."""
        return sum((look.rho for look in self._counting), self.looks.names_look.rho)

    @property
    def _counting(self) -> tuple[BoundGauss, ...]:
        return (self.looks.counts_look,)

    def worst(self) -> Worst:
        """Return the worst over all pairs of neighbours whose histograms differ."""
        possible = members(self.elements) if self.added is None else list(self.added)
        found: dict[object, Pair] = {}
        for first, second in neighbours(possible, self.most_members):
            pair = (self.base + first, self.base + second)
            found.setdefault(tuple(map(self._seen, pair)), pair)
        return Worst.of(self.divergences(*pair) for pair in found.values())

    def _seen(self, data: DataSet) -> object:
        """Return all that the two looks can see of a data set."""
        orders = [names for names in self._all_names() if len(names) > 1]
        return (
            self._names_histogram(data),
            *(self._counts(data, names) for names in orders),
            self._most_names(data),
        )

    def _all_names(self) -> list[Names]:
        return [
            tuple(e for e in range(self.elements) if chosen >> e & 1) for chosen in range(2**self.elements)
        ]

    def divergences(self, first: DataSet, second: DataSet) -> Worst:
        """Compare the joint laws of two data sets; hockey-sticks only where there are few enough outcomes."""
        excess = self._excess(first, second) if self.looks.most_names <= 3 else float("-inf")
        return Worst(excess, self._conditional_rho(first, second) / float(self.rho))

    def _excess(self, first: DataSet, second: DataSet) -> float:
        laws = [self._names(data, frozenset()) for data in (first, second)]
        outcomes = sorted(set(laws[0]) | set(laws[1]))
        stacked: list[list[Floats]] = [[], []]
        for names in outcomes:
            for law, data, out in zip(laws, (first, second), stacked, strict=True):
                out.append(law.get(names, 0.0) * joint(self._marginals(data, names, (first, second))))
        joined = [np.concatenate(out) for out in stacked]
        return worst_excess(joined[0], joined[1], self.rho, self.looks.currency.delta)

    def _conditional_rho(self, first: DataSet, second: DataSet) -> float:
        """Return the Renyi divergences over their order, given that the second data set shows no newcomer."""
        look = self.looks.names_look
        before, after = self._names_histogram(first), self._names_histogram(second)
        assert look.min_count is not None
        newcomers = frozenset(
            place
            for place, counts in enumerate(zip(before, after, strict=True))
            if counts[0] < look.min_count <= counts[1]
        )
        laws = [self._names(first, newcomers), self._names(second, newcomers)]
        if set(laws[0]) != set(laws[1]):
            return float("inf")
        return max(
            self._exponential_mean(laws[way], laws[1 - way], (first, second)[:: 1 - 2 * way], order)
            / (order - 1)
            / order
            for order in ORDERS
            for way in (0, 1)
        )

    def _exponential_mean(
        self, first: dict[Names, float], second: dict[Names, float], data: tuple[DataSet, ...], order: float
    ) -> float:
        logs = []
        for names, mass in first.items():
            counts = sum(
                log_mgf(p, q, order)
                for p, q in zip(
                    self._marginals(data[0], names, data), self._marginals(data[1], names, data), strict=True
                )
            )
            logs.append(order * np.log(mass) + (1 - order) * np.log(second[names]) + counts)
        return float(np.logaddexp.reduce(logs))

    def _names(self, data: DataSet, hidden: frozenset[int]) -> dict[Names, float]:
        counts, most = self._names_histogram(data), self._most_names(data)
        key = (counts, most, hidden)
        if key not in self._laws:
            look = self.looks.names_look
            grid = Grid.of(look.variance, 0, max(counts))
            laws = [
                marginal(look, 0 if place in hidden else count, grid) for place, count in enumerate(counts)
            ]
            self._laws[key] = dict(names_law(laws, most))
        return self._laws[key]

    def _marginals(self, data: DataSet, names: Names, pair: tuple[DataSet, ...]) -> list[Floats]:
        largest = max((count for each in pair for count in self._counts(each, names)), default=0)
        return [
            marginal(look, count, Grid.of(look.variance, 0, largest))
            for look in self._counting
            for count in self._counts(data, names)
        ]

    def _names_histogram(self, data: DataSet) -> Counts:
        if data not in self._histograms:
            self._histograms[data] = histogram(data, self.looks.names_bound, self.elements)
        return self._histograms[data]

    def _counts(self, data: DataSet, names: Names) -> Counts:
        key = (data, names)
        if key not in self._histograms:
            self._histograms[key] = (self.counts_of or self._bounded_within)(data, names)
        return self._histograms[key]

    def _bounded_within(self, data: DataSet, names: Names) -> Counts:
        counts = histogram(data, self.looks.counts_bound, self.elements, within=names)
        return tuple(counts[name] for name in names)

    def _most_names(self, data: DataSet) -> int:
        return self.most_names_of(data) if self.most_names_of else self.looks.most_names


@dataclass(frozen=True)
class Shifted:
    """The shift over all data sets up to `most_members` members.

    `total_of` counts n; by default the members that count in some element. `hides_total`: n gets its own noise.
    """

    shift: Shift
    most_members: int
    most_rows: int = 1
    total_of: Callable[[DataSet], int] | None = None
    hides_total: bool = True

    def __str__(self) -> str:
        a, b = self.shift.factors
        bound = self.shift.bound
        return (
            f"shift, d={self.shift.domain_size} Delta={bound.typical} tau={bound.tau} {bound.counted.value} "
            f"a/b={a}/{b}"
        )

    def worst(self) -> Worst:
        """Return the worst over all pairs whose counts differ; hockey-sticks only where they are small enough."""
        size = self.shift.domain_size
        pairs = dict.fromkeys(
            (self._seen(first), self._seen(second))
            for first, second in neighbours(members(size, most_rows=self.most_rows), self.most_members)
        )
        return Worst.of(self.divergences(*pair) for pair in pairs if pair[0] != pair[1])

    def _seen(self, data: DataSet) -> tuple[Counts, int]:
        counts = histogram(data, self.shift.bound, self.shift.domain_size)
        return counts, (self.total_of or _counted_members)(data)

    def divergences(self, first: tuple[Counts, int], second: tuple[Counts, int]) -> Worst:
        """Compare the laws for two histograms with their totals."""
        laws = [self._marginals(seen, (first, second)) for seen in (first, second)]
        excess = float("-inf")
        if self.shift.domain_size <= 2:
            excess = worst_excess(joint(laws[0]), joint(laws[1]), self.shift.rho, Fraction(0))
        return Worst(excess, worst_rho(*laws) / float(self.shift.rho))

    def _marginals(self, seen: tuple[Counts, int], pair: Sequence[tuple[Counts, int]]) -> list[Floats]:
        a, b = self.shift.factors
        moved = [[b * count - a * total for count in counts] for counts, total in pair]
        centres = [value for values in moved for value in values]
        grid = Grid.of(self.shift.count_variance, min(centres), max(centres))
        counts, total = seen
        laws = [grid.law(self.shift.count_variance, b * count - a * total) for count in counts]
        totals = [total for _, total in pair]
        of_total = Grid.of(self.shift.total_variance, min(totals), max(totals))
        law = of_total.law(self.shift.total_variance, total)
        if not self.hides_total:
            law = np.zeros(of_total.size)
            law[total - of_total.lowest] = 1.0
        return [*laws, law]


def _counted_members(data: DataSet) -> int:
    return sum(any(of_period for of_period in member) for member in data)


def one_look(
    typical: int,
    min_count: int | None,
    *,
    units: int = 1,
    tau: int = 1,
    periods: int = 1,
    events: bool = False,
) -> BoundGauss:
    """Return a look in the currency of the tests."""
    counted = Counted.EVENTS if events else Counted.MEMBERS
    bound = ContributionBound(typical, tau, periods, counted)
    return BoundGauss(CURRENCY, Fraction(units), bound, min_count)


def two_looks(
    typical: int,
    last_typical: int,
    most_names: int,
    *,
    min_count: int = 1,
    units: int = 2,
    names: str = "1/2",
) -> TwoLooks:
    """Return two looks in the currency of the tests; `names` is the share of the first one."""
    return TwoLooks(
        CURRENCY,
        units,
        Fraction(names) * units,
        ContributionBound(typical),
        ContributionBound(last_typical),
        min_count,
        most_names,
    )


def shift(typical: int, domain_size: int, *, tau: int = 1, units: int = 1) -> Shift:
    """Return a shift in the currency of the tests; over events if tau is above 1."""
    counted = Counted.MEMBERS if tau == 1 else Counted.EVENTS
    return Shift(CURRENCY, Fraction(units), ContributionBound(typical, tau, 1, counted), domain_size)


def everyone(elements: int, count: int) -> DataSet:
    """Return `count` members of whom each holds every element, each in another order."""
    orders = [tuple((element, 1) for element in _rotated(elements, turn)) for turn in range(elements)]
    return tuple((orders[number % elements],) for number in range(count))


def _rotated(elements: int, turn: int) -> list[int]:
    return [(element + turn) % elements for element in range(elements)]


Promise = OneLook | BothLooks | Shifted

FAST: list[Promise] = [
    OneLook(one_look(1, 1), 2, 3),
    OneLook(one_look(2, 1), 2, 3),
    OneLook(one_look(2, 1), 3, 2),
    OneLook(one_look(1, 3), 2, 3, base=(2, 1)),
    OneLook(one_look(2, 3, units=2), 3, 2, base=(2, 2, 1)),
    OneLook(one_look(2, 1), 2, 2, base=(9, 6)),
    OneLook(one_look(2, 1), 2, 1, base=(40, 41)),
    OneLook(one_look(2, None), 3, 2),
    OneLook(one_look(1, 1, tau=2, events=True), 2, 2, most_rows=3),
    OneLook(one_look(1, 4, tau=2, events=True), 2, 2, base=(3, 2), most_rows=3),
    OneLook(one_look(1, 1, periods=2), 2, 1),
    OneLook(one_look(1, 2, periods=2), 2, 2, base=(1, 1)),
    OneLook(one_look(1, 2, periods=2, tau=2, events=True), 2, 1, base=(1, 0), most_rows=2),
    DistinctLook(one_look(1, 1, tau=2, events=True), 2, 2, values=3),
    DistinctLook(one_look(2, 1, tau=1, events=True), 2, 3, values=2),
    DistinctLook(one_look(1, 4, tau=2, events=True), 2, 2, base=(3, 2), values=3),
    DistinctLook(one_look(2, None, tau=2, events=True), 2, 2, values=3),
    DistinctLook(one_look(1, None, tau=3, events=True), 1, 3, values=3),
    BothLooks(two_looks(1, 1, 2), 2, 2),
    BothLooks(two_looks(1, 2, 2), 2, 2, base=everyone(2, 3)),
    BothLooks(two_looks(1, 2, 1, min_count=2), 2, 2, base=everyone(2, 2)),
    BothLooks(two_looks(1, 1, 4), 4, 1, base=everyone(4, 20), added=[*everyone(4, 4), (((2, 1),),)]),
    Shifted(shift(2, 2), 3),
    Shifted(shift(1, 1), 3),
    Shifted(shift(4, 4), 1),
    Shifted(shift(5, 5), 1),
    Shifted(shift(2, 2, tau=3), 1, most_rows=4),
]

LONG: list[Promise] = [
    *FAST,
    BothLooks(two_looks(1, 1, 4), 4, 1, base=everyone(4, 20)),
    OneLook(one_look(1, 1), 3, 4),
    OneLook(one_look(2, 2), 3, 4, base=(1, 1, 0)),
    OneLook(one_look(3, 1), 3, 3),
    OneLook(one_look(2, 2, periods=2), 3, 1, base=(1, 1, 1)),
    OneLook(one_look(1, 3, periods=3), 2, 1, base=(2, 1)),
    OneLook(one_look(1, 2, periods=3, tau=2, events=True), 2, 1, base=(1, 1), most_rows=2),
    BothLooks(two_looks(1, 2, 2), 3, 2, base=everyone(3, 3)),
    BothLooks(two_looks(2, 2, 2, names="7/20"), 3, 2, base=everyone(3, 4)),
    BothLooks(two_looks(1, 2, 3, min_count=2), 3, 2, base=everyone(3, 2)),
    Shifted(shift(4, 4), 2),
]
