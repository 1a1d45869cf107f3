"""Sums in two looks: the joint law of names, N and B is within its price, over all small data sets with values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest

from dp_service.mechanisms import Histogram
from dp_service.mechanisms.aggregates import BoundMoments, MomentsOfNames, SumShare
from dp_service.mechanisms.bounded import ContributionBound, Counted
from dp_service.values.bounds import Clamp
from tests.unit.dp_service.mechanisms.aggregates.member_rows import column_sums
from tests.unit.dp_service.mechanisms.bounded.laws import ROUNDING_ERROR, Floats, Grid, Names
from tests.unit.dp_service.mechanisms.bounded.member_data import Counts, DataSet, histogram, members
from tests.unit.dp_service.mechanisms.bounded.promises import BothLooks, everyone, two_looks
from tests.unit.dp_service.mechanisms.enumeration import output_law

HALF = Fraction(1, 2)
CLAMP = Clamp(1, 2)
"""A member's total in an element is the number of its rows, one or two: it moves B by -1 or by 1."""


@dataclass(frozen=True)
class SumsOfNames(BothLooks):
    """Names, N and B together; `totals_of` adds up the totals of the members that count within the names."""

    totals_of: Callable[[SumsOfNames, DataSet, Names], Counts] | None = None
    _all_centred: dict[object, Counts] = field(default_factory=dict, init=False, compare=False, repr=False)

    @cached_property
    def moments(self) -> BoundMoments:
        """The second look as it is served."""
        return MomentsOfNames(self.looks, HALF, (SumShare(CLAMP, HALF),)).moments

    @cached_property
    def _variances(self) -> tuple[Fraction, Fraction]:
        return self.moments.count_variance, self.moments.sum_variance(0)

    def _seen(self, data: DataSet) -> object:
        return super()._seen(data), *(self._centred(data, names) for names in self._all_names())

    def _centred(self, data: DataSet, names: Names) -> Counts:
        key = (data, names)
        if key not in self._all_centred:
            totals = (self.totals_of or within_names)(self, data, names)
            counts = self._counts(data, names)
            self._all_centred[key] = tuple(
                2 * s - CLAMP.centre * n for s, n in zip(totals, counts, strict=True)
            )
        return self._all_centred[key]

    def _marginals(self, data: DataSet, names: Names, pair: tuple[DataSet, ...]) -> list[Floats]:
        laws: list[Floats] = []
        for variance, of in zip(self._variances, (self._counts, self._centred), strict=True):
            values = [value for each in pair for value in of(each, names)]
            grid = Grid.of(variance, min(values, default=0), max(values, default=0))
            laws += [grid.law(variance, value) for value in of(data, names)]
        return laws


def within_names(promise: SumsOfNames, data: DataSet, names: Names) -> Counts:
    """Return the totals of members who were bounded within the names."""
    bound = ContributionBound(promise.looks.counts_bound.typical, 2, 1, Counted.EVENTS)
    found = histogram(data, bound, promise.elements, within=names)
    return tuple(found[name] for name in names)


def of_everything(promise: SumsOfNames, data: DataSet, names: Names) -> Counts:
    """Return the totals of members whom nobody has bounded, in the names."""
    bound = ContributionBound(promise.elements, 2, 1, Counted.EVENTS)
    found = histogram(data, bound, promise.elements)
    return tuple(found[name] for name in names)


def promise(delta_2: int, most_names: int, *, min_count: int = 1, most_members: int = 1) -> SumsOfNames:
    """Return the promise of sums over two elements, on top of members with one row in each of both."""
    looks = two_looks(1, delta_2, most_names, min_count=min_count, units=4)
    return SumsOfNames(looks, 2, most_members, everyone(2, 4), added=members(2, most_rows=2))


def is_kept(promise: SumsOfNames) -> bool:
    """Return whether a promise is kept."""
    worst = promise.worst()
    return worst.excess <= ROUNDING_ERROR and worst.relative_rho <= 1 + ROUNDING_ERROR


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [promise(1, 1, most_members=2), promise(1, 2), promise(2, 2), promise(2, 1, min_count=3)],
    ids=str,
)
def test_names_counts_and_sums_together_are_within_their_price(asked: SumsOfNames) -> None:
    """Both directions; the looks' units add up to those of the question."""
    assert asked.moments.rho == asked.looks.counts_look.rho
    assert is_kept(asked)


@pytest.mark.slow
def test_sums_of_members_who_are_not_bounded_within_the_names_break_their_promise() -> None:
    """A member then adds to B of a name in which it does not count."""
    asked = promise(1, 2)
    assert replace(asked, totals_of=of_everything).worst().relative_rho > 1.5


def test_the_second_look_draws_what_one_look_over_the_names_draws() -> None:
    """With its own part of the units, and without a threshold: a name that nobody holds is shown."""
    looks = two_looks(1, 1, 3, units=4000)
    asked = MomentsOfNames(looks, HALF, (SumShare(CLAMP, HALF),))
    assert (asked.moments.units, asked.moments.threshold) == (looks.units - looks.names_units, None)
    law = output_law(
        lambda noise: (
            (found := asked.draw_moments(Histogram.from_element_order([3, 0]), (column_sums([1, 0]),), noise))
            and (
                tuple(found.groups.tolist()),
                tuple(found.counts.tolist()),
                tuple(found.columns[0].centred.tolist()),
            )
        ),
        radius=0,
        row_order=np.arange,
    )
    assert list(law.mass) == [((0, 1), (3, 0), (1, 0))]
    with pytest.raises(ValueError, match="at most 3 names"):
        asked.draw_moments(
            Histogram.from_element_order([1] * 4),
            (column_sums([0] * 4),),
            noise=None,  # type: ignore[arg-type]
        )
