"""The promises of `BoundMoments` over small member-level data sets, and the worst that is found of each.

What is released of a group - whether it is shown, its N, every B and every own count - is one law; groups are
independent given the data. The promise is delta-approximate rho-zCDP: hockey-sticks of everything that is released,
and, given that no newcomer is shown, Renyi divergences of at most alpha rho.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dp_service.mechanisms import Currency
from dp_service.mechanisms.aggregates import BoundMoments, SumShare
from dp_service.mechanisms.bounded import ContributionBound, Counted
from dp_service.values.bounds import Clamp, ValueBounds
from dp_service.values.quantum import Quantum, Value
from tests.support.member_sums import ColumnSum, GroupSums, Row, SummedColumn
from tests.unit.dp_service.mechanisms.bounded.laws import Floats, Grid, joint, worst_excess, worst_rho
from tests.unit.dp_service.mechanisms.bounded.promises import Worst

from .member_rows import Member, Summing, derived, members, neighbours, reference, sums_of

CURRENCY = Currency(Fraction(2), Fraction(1, 20))
"""One unit is rho = 1/2, so that noise is of a few units."""

HALF = Fraction(1, 2)
MOST_OUTCOMES = 4 * 10**6
"""Of laws with more outcomes than this, only Renyi divergences are computed."""

Seen = tuple[GroupSums, ...]


@dataclass(frozen=True)
class Moments:
    """A release over all data sets up to `most_members` of the `possible` members, on top of `base` counts and sums.

    `hides_sums` is false for a release that shows B also of hidden groups.
    """

    asked: BoundMoments
    possible: tuple[Member, ...]
    most_members: int
    summing: Summing
    base: tuple[tuple[int, int], ...]
    hides_sums: bool = True

    def __str__(self) -> str:
        asked, bound = self.asked, self.asked.bound
        domain = "known" if asked.min_count is None else f"m={asked.min_count}"
        clamps = ", ".join(f"{column.clamp.low}..{column.clamp.high}" for column in asked.columns)
        return (
            f"moments, {domain} Delta={bound.typical} tau={bound.tau} {bound.counted.value} clamps={clamps} "
            f"theta={asked.share} units={asked.units} own={asked.columns[0].count_share} base={self.base}"
        )

    def worst(self) -> Worst:
        """Return the worst over all pairs of neighbours that look different."""
        return Worst.of(self.divergences(*pair) for pair in self.pairs())

    def pairs(self) -> Iterator[tuple[Seen, Seen]]:
        """Yield the different pairs of what is seen of neighbours."""
        groups = len(self.base)
        found = dict.fromkeys(
            tuple(self._with_base(sums_of(data, groups, self.summing)) for data in pair)
            for pair in neighbours(self.possible, self.most_members)
        )
        yield from ((first, second) for first, second in found if first != second)

    def _with_base(self, seen: Seen) -> Seen:
        return tuple(
            GroupSums(
                group.count + count,
                tuple(
                    ColumnSum(
                        column.centred + centred, None if column.count is None else column.count + count
                    )
                    for column in group.columns
                ),
            )
            for group, (count, centred) in zip(seen, self.base, strict=True)
        )

    def divergences(self, first: Seen, second: Seen) -> Worst:
        """Compare the laws of what is released of two data sets."""
        laws = [
            [self.law(group, pair) for group, pair in zip(seen, zip(first, second, strict=True), strict=True)]
            for seen in (first, second)
        ]
        changed = [place for place, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]]
        laws = [[law[place] for place in changed] for law in laws]
        delta = Fraction(0) if self.asked.min_count is None else self.asked.currency.delta
        excess = float("-inf")
        if np.prod([law.size for law in laws[0]]) <= MOST_OUTCOMES:
            excess = worst_excess(joint(laws[0]), joint(laws[1]), self.asked.rho, delta)
        common = [
            place for place, (one, other) in enumerate(zip(*laws, strict=True)) if one[0] < 1 and other[0] < 1
        ]
        shown = [[law[place] for place in common] for law in laws]
        return Worst(excess, worst_rho(*shown) / float(self.asked.rho) if common else 0.0)

    def law(self, group: GroupSums, pair: Sequence[GroupSums]) -> Floats:
        """Return the law of what is released of a group: at 0 that it is hidden, then N, every B and own count."""
        counts = self._law_of_count(group, pair)
        others = joint(list(self._laws_of_columns(group, pair)))
        threshold, min_count = self.asked.threshold, self.asked.min_count
        if min_count is None or threshold is None:
            return np.concatenate(([0.0], joint([counts, others])))
        grid = self._grid(self.asked.count_variance, [each.count for each in pair])
        is_shown = (np.arange(grid.size) + grid.lowest > threshold) & (group.count >= min_count)
        shown = joint([counts * is_shown, others])
        # Exactly, also where masses add up to a little less.
        hidden = float((counts * ~is_shown).sum()) if is_shown.any() else 1.0
        if self.hides_sums:
            return np.concatenate(([hidden], shown))
        # A hidden group without members has no row, so no B comes of it.
        exists = group.count > 0
        return np.concatenate(([0.0 if exists else hidden], hidden * exists * others, shown))

    def _law_of_count(self, group: GroupSums, pair: Sequence[GroupSums]) -> Floats:
        grid = self._grid(self.asked.count_variance, [each.count for each in pair])
        return grid.law(self.asked.count_variance, group.count)

    def _laws_of_columns(self, group: GroupSums, pair: Sequence[GroupSums]) -> Iterator[Floats]:
        for place, column in enumerate(group.columns):
            variance = self.asked.sum_variance(place)
            yield self._grid(variance, [each.columns[place].centred for each in pair]).law(
                variance, column.centred
            )
            own = self.asked.own_count_variance(place)
            if own is not None and column.count is not None:
                counts = [each.columns[place].count or 0 for each in pair]
                yield self._grid(own, counts).law(own, column.count)

    @staticmethod
    def _grid(variance: Fraction, values: Sequence[int]) -> Grid:
        return Grid.of(variance, min(values), max(values))


def column(
    totals: tuple[int, int],
    rows: tuple[int, int],
    *,
    stands_for_missing: int | None = None,
    own_count: bool = False,
) -> SummedColumn:
    """Return a column of whole numbers."""
    return SummedColumn(
        ValueBounds(Quantum(Fraction(1)), Clamp(*rows), Clamp(*totals)),
        stands_for_missing,
        own_count,
        # The law is that of any step, and of these few all can be added up.
        parts=1,
    )


def moments(
    summed: SummedColumn,
    *,
    values: Sequence[Value],
    base: tuple[tuple[int, int], ...],
    min_count: int | None = 1,
    typical: int = 1,
    tau: int | None = None,
    units: int = 2,
    share: Fraction = HALF,
    count_share: Fraction | None = None,
    most_rows: int = 2,
    most_members: int = 2,
) -> Moments:
    """Return the promise of a release of one column; over rows if `tau` is given."""
    counted = Counted.MEMBERS if tau is None else Counted.EVENTS
    clamp = summed.bounds.totals if tau is None else summed.bounds.rows
    rest = 1 - share - (count_share or 0)
    asked = BoundMoments(
        CURRENCY,
        Fraction(units),
        ContributionBound(typical, tau or 1, 1, counted),
        min_count,
        share,
        (SumShare(clamp, rest, count_share),),
    )
    possible = tuple(members(values, len(base), most_rows=most_rows, typical=typical))
    return Moments(asked, possible, most_members, reference(summed, tau), base)


def where_positive(
    *columns: SummedColumn,
    of_row: Callable[[Value], Row],
    values: Sequence[Value],
    base: tuple[tuple[int, int], ...],
    min_count: int | None = 1,
    typical: int = 1,
    tau: int | None = None,
    units: int = 2,
    most_rows: int = 2,
    most_members: int = 1,
) -> Moments:
    """Return the promise of a release of several numbers of the same rows, each with an equal share."""
    counted = Counted.MEMBERS if tau is None else Counted.EVENTS
    clamps = [each.bounds.totals if tau is None else each.bounds.rows for each in columns]
    part = Fraction(1, 2 * len(columns))
    asked = BoundMoments(
        CURRENCY,
        Fraction(units),
        ContributionBound(typical, tau or 1, 1, counted),
        min_count,
        HALF,
        tuple(SumShare(clamp, part) for clamp in clamps),
    )
    possible = tuple(members(values, len(base), most_rows=most_rows, typical=typical))
    return Moments(asked, possible, most_members, derived(columns, of_row, tau), base)


def is_positive(value: Value) -> Row:
    """Return whether a row meets the condition, as 1 or 0."""
    return (int(isinstance(value, int) and value > 0),)


def positive(value: Value) -> Row:
    """Return whether a row meets the condition, and its value where it does."""
    return (*is_positive(value), value if isinstance(value, int) and value > 0 else 0)


VALUES: tuple[Value, ...] = (None, -4, 1, 9)
NAN = float("nan")

FAST = [
    moments(column((0, 2), (-1, 2)), values=VALUES, base=((0, 0),), most_members=3),
    moments(column((0, 2), (-1, 2)), values=VALUES, base=((3, 2),), most_members=3),
    moments(column((0, 2), (-1, 2)), values=VALUES, base=((30, -9),)),
    moments(column((-1, 2), (-3, 3)), values=VALUES, base=((4, 0),), min_count=3, share=Fraction(1, 3)),
    moments(column((3, 4), (3, 4)), values=(None, NAN, 3, 7), base=((0, 0),), min_count=None),
    moments(column((0, 1), (0, 1)), values=(0, 1), base=((0, 0), (0, 0)), typical=2, units=8, most_members=1),
    moments(column((0, 2), (0, 2)), values=(None, 5), base=((5, 1), (0, 0)), typical=2, most_members=1),
    moments(column((0, 2), (0, 2)), values=VALUES, base=((2, 0),), tau=2, most_rows=3, most_members=1),
    moments(column((0, 9), (-1, 1)), values=VALUES, base=((40, 9),), tau=3, most_rows=4, most_members=1),
    moments(
        column((0, 1), (0, 1), own_count=True),
        values=VALUES,
        base=((2, 0),),
        count_share=Fraction(1, 4),
        share=Fraction(1, 4),
        most_members=1,
        most_rows=1,
        units=4,
    ),
    moments(column((0, 2), (0, 2), stands_for_missing=1), values=VALUES, base=((2, 1),)),
    # Members with a row that meets a condition, in one group and in two; their rows, at most two; both with a sum.
    where_positive(column((0, 1), (0, 1)), of_row=is_positive, values=VALUES, base=((0, 0),), most_members=3),
    where_positive(
        column((0, 1), (0, 1)), of_row=is_positive, values=VALUES, base=((30, -4),), most_members=2
    ),
    where_positive(
        column((0, 1), (0, 1)), of_row=is_positive, values=(-4, 1), base=((3, 1), (0, 0)), typical=2, units=8
    ),
    where_positive(
        column((0, 2), (0, 1)), of_row=is_positive, values=VALUES, base=((2, 0),), most_rows=3, min_count=None
    ),
    where_positive(
        column((0, 1), (0, 1)),
        column((0, 2), (0, 2)),
        of_row=positive,
        values=VALUES,
        base=((2, 0),),
        units=16,
    ),
    # Over rows, of a member at most two of three.
    where_positive(
        column((0, 1), (0, 1)),
        of_row=is_positive,
        values=(-4, 1),
        base=((4, 1),),
        tau=2,
        most_rows=3,
        units=4,
    ),
]
