"""Quantiles in two looks: the joint law of names and cells is within its price, over all small data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dp_service.mechanisms import Cost
from dp_service.mechanisms.aggregates import CellsOfGroups, QuantilesOfNames, RankedValues
from dp_service.mechanisms.bounded import ContributionBound, Counted, TwoLooks
from dp_service.noise import KeyedNoise, KeyedStream
from tests.mechanisms.bounded.laws import ROUNDING_ERROR, Floats, Names
from tests.mechanisms.bounded.member_data import Counts, DataSet, Member, histogram, members
from tests.mechanisms.bounded.promises import CURRENCY, BothLooks, two_looks
from tests.mechanisms.enumeration import output_law

HALF = (Fraction(1, 2),)
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
CELLS = 2
"""A member's value in an element is the number of its rows, one or two: its cell is the first or the second."""

Cells = tuple[tuple[int, ...], ...]


def of_names(looks: TwoLooks, quantiles: tuple[Fraction, ...], *, largest: bool = False) -> QuantilesOfNames:
    """Return what is served: as many groups as names, under the bound of the second look."""
    among = CellsOfGroups(looks.most_names, CELLS, looks.counts_bound)
    values = RankedValues(looks.currency, among, quantiles, smallest=False, largest=largest)
    return QuantilesOfNames(looks, values)


@dataclass(frozen=True)
class CellsOfNames(BothLooks):
    """Names and cells together; `cells_of` gives the members in each cell of each name."""

    mechanism: QuantilesOfNames = field(kw_only=True)
    cells_of: Callable[[CellsOfNames, DataSet, Names], Cells] | None = None
    _of_cells: dict[Cells, Floats] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def rho(self) -> Fraction:
        """What the question costs, as it is paid."""
        return self.mechanism.worst_case_cost().information * CURRENCY.epsilon_per**2 / 8

    def _seen(self, data: DataSet) -> object:
        return super()._seen(data), *(self._cells(data, names) for names in self._all_names())

    def _cells(self, data: DataSet, names: Names) -> Cells:
        return (self.cells_of or within_names)(self, data, names)

    def _marginals(self, data: DataSet, names: Names, pair: tuple[DataSet, ...]) -> list[Floats]:
        cells = self._cells(data, names)
        if cells not in self._of_cells:
            self._of_cells[cells] = self._law(cells)
        return [self._of_cells[cells]]

    def _law(self, cells: Cells) -> Floats:
        counts = np.array(cells, dtype=np.int64).reshape(-1, CELLS)
        law = output_law(
            lambda noise: tuple(self.mechanism.draw_values(counts, noise).ravel().tolist()), radius=0
        ).mass
        chosen = counts.shape[0] * self.mechanism.values.size
        return np.array([law.get(outcome, 0.0) for outcome in product(range(CELLS), repeat=chosen)])


def in_cells(data: DataSet, delta_0: int, elements: int, within: Names | None) -> tuple[Counts, Counts]:
    """Return how many members have one row, and how many two, in each element."""
    rows = [
        histogram(data, ContributionBound(delta_0, tau, 1, Counted.EVENTS), elements, within=within)
        for tau in (1, 2)
    ]
    of_two = tuple(two - one for one, two in zip(*rows, strict=True))
    return tuple(one - two for one, two in zip(rows[0], of_two, strict=True)), of_two


def within_names(promise: CellsOfNames, data: DataSet, names: Names) -> Cells:
    """Return the cells of members who were bounded within the names."""
    found = in_cells(data, promise.looks.counts_bound.delta_0, promise.elements, names)
    return tuple((found[0][name], found[1][name]) for name in names)


def of_everything(promise: CellsOfNames, data: DataSet, names: Names) -> Cells:
    """Return the cells of members whom nobody has bounded, in the names."""
    found = in_cells(data, promise.elements, promise.elements, None)
    return tuple((found[0][name], found[1][name]) for name in names)


def promise(
    delta_2: int,
    most_names: int,
    quantiles: tuple[Fraction, ...] = HALF,
    *,
    units: int,
    names: str,
    min_count: int = 1,
    most_members: int = 1,
    largest: bool = False,
    elements: int = 2,
) -> CellsOfNames:
    """Return the promise of values over some elements, on top of members who are as often in either cell of each."""
    looks = two_looks(1, delta_2, most_names, min_count=min_count, units=units, names=names)
    mechanism = of_names(looks, quantiles, largest=largest)
    base = tuple((tuple((element, rows) for element in range(elements)),) for rows in (1, 2, 1, 2))
    return CellsOfNames(
        looks, elements, most_members, base, added=members(elements, most_rows=2), mechanism=mechanism
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        promise(1, 1, units=2, names="1/2", most_members=2),
        promise(1, 2, units=2, names="1/2"),
        promise(2, 2, units=3, names="1/3"),
        promise(2, 1, units=2, names="1/2", min_count=3),
        promise(1, 2, QUARTILES, units=3, names="1/3"),
        promise(1, 2, units=3, names="1/3", largest=True),
    ],
    ids=str,
)
def test_names_and_cells_together_are_within_their_price(asked: CellsOfNames) -> None:
    """Both directions; the looks' units add up to those of the question."""
    worst = asked.worst()
    assert worst.excess <= ROUNDING_ERROR
    assert worst.relative_rho <= 1 + ROUNDING_ERROR


def test_values_of_members_who_are_not_bounded_within_the_names_break_their_promise() -> None:
    """A member has a value in all three names then: what that changes is more than the range of one unit, e."""
    asked, names = promise(1, 3, units=2, names="1/2", elements=3), (0, 1, 2)
    in_all: Member = (tuple((element, 2) for element in names),)

    def widest(asked: CellsOfNames) -> float:
        laws = [asked._marginals(data, names, ())[0] for data in (asked.base, (*asked.base, in_all))]
        ratios = np.log(laws[0] / laws[1])
        return float(ratios.max() - ratios.min())

    assert widest(asked) <= float(CURRENCY.epsilon_per) + ROUNDING_ERROR
    assert widest(replace(asked, cells_of=of_everything)) > 1.4 * float(CURRENCY.epsilon_per)


def test_the_price_is_that_of_all_names_however_few_there_are() -> None:
    """Two units for the names, and two levels in each of three elements of a member; no name draws nothing."""
    looks = two_looks(1, 3, 5, units=8, names="1/4")
    mechanism = of_names(looks, QUARTILES)
    noise = KeyedNoise(KeyedStream(bytes(32)))
    assert mechanism.worst_case_cost() == mechanism.cost(0, ended_in_bottom=False) == Cost(8, 1)
    assert looks.cost_of_names() == Cost(2, 1)
    assert mechanism.draw_values(np.empty((0, CELLS), dtype=np.int64), noise).shape == (0, 3)
    assert mechanism.draw_values(np.ones((1, CELLS), dtype=np.int64), noise).shape == (1, 3)
    with pytest.raises(ValueError, match="at most 5 names, got 6"):
        mechanism.draw_values(np.ones((6, CELLS), dtype=np.int64), noise)


def test_looks_that_do_not_add_up_are_refused() -> None:
    """A second look at another price, or of other groups, than the first one leaves."""
    with pytest.raises(ValueError, match="the units that the first look leaves"):
        of_names(two_looks(1, 3, 5, units=9, names="1/4"), QUARTILES)
    looks = two_looks(1, 1, 5, units=2)
    other = RankedValues(CURRENCY, CellsOfGroups(5, CELLS, ContributionBound(2)), HALF, False, False)
    with pytest.raises(ValueError, match="as many groups as names"):
        QuantilesOfNames(looks, other)
