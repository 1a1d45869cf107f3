"""QuantileGumb: quantiles over a public grid, several of them by splitting; and the largest or smallest value.

Sources: McSherry and Talwar 2007 (exponential mechanism), Durfee and Rogers 2019, lemma 4.2 (its exact Gumbel order),
Dong, Durfee and Rogers 2020 (bounded range), Kaplan, Schnapp and Stemmer 2022, arXiv:2110.05429 (several quantiles).

Why it is private. Precondition: every member has at most tau values, each in one cell, in each of at most Delta
groups of a known domain, chosen from its own rows, and grid and groups are public. One choice among the cells of a
group has weights exp(e score / (tau range)), where t values of a member move all scores within t ranges
(`rank_scores`): for a member with t values it is (e t / tau)-bounded range. tau is 1 where each member has one value.

*Several quantiles.* The middle one is chosen first. Values at or below its cell are the left part, which the smaller
quantiles are chosen from, over these cells; values above it are the right part, for the larger ones. Within a part
between the cuts for q_low and q_high, a quantile q is (q - q_low) / (q_high - q_low). Given all earlier choices, a
value is in one part of each level only - those in the cell of a cut go left and nowhere else - so a member's values in
the parts of one level, t_1 + t_2 + .., are at most tau. The choices of a level are independent given those before, and
the ranges of independent choices add up: e t_1 / tau + e t_2 / tau + .. is at most e. So all choices of one level
together are e-bounded range. m quantiles take ceil(log2(m + 1)) levels: quartiles 2, deciles 4, percentiles 7.

*Several groups.* Choices in different groups share the members that are in both: at most Delta of them differ. So all
groups and levels together are Delta levels e-bounded-range choices, one after the other: that many units, no call.

A part without cells answers with its cut and draws nothing; that it has none follows from the cut. A part without
values has equal scores, and is drawn from uniformly.

Three things break it: scores with a smaller range than `rank_scores` argues, also one without tau, parts that overlap,
and more than tau values of a member in a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates.rank_scores import (
    MAX_DENOMINATOR,
    MAX_VALUES,
    Largest,
    Quantile,
    Ranks,
    Smallest,
    Wanted,
)
from dp_service.mechanisms.bounded.contribution_bound import ContributionBound
from dp_service.mechanisms.parameters import Cost, Currency, require_outcome, require_positive_integer
from dp_service.noise.source import NoiseSource
from dp_service.noise.weights import LogWeights
from dp_service.values.cells import MAX_CELLS

Integers = NDArray[np.int64]

MAX_QUANTILES = 999


@dataclass(frozen=True)
class CellsOfGroups:
    """What one choice after the other is made from: the same public cells in each group of a known domain.

    Attributes:
        groups: How many groups there are.
        cells: How many cells the grid has.
        bound: In how many groups a member has values, and in each how many: its tau, in all periods together.

    Raises:
        ValueError: A number is out of range.
    """

    groups: int
    cells: int
    bound: ContributionBound

    def __post_init__(self) -> None:
        require_positive_integer("groups", self.groups, at_most=MAX_CELLS)
        require_positive_integer("cells", self.cells, at_most=MAX_CELLS)

    @property
    def most_groups_of_member(self) -> int:
        """In how many choices of one level a member has a part: P Delta, and no more than there are groups."""
        return min(self.groups, self.bound.periods * self.bound.typical)

    def require_fitting(self, counts: Integers) -> None:
        """Raise ValueError unless these are counts of values by group and cell."""
        if counts.shape != (self.groups, self.cells) or counts.dtype != np.int64:
            raise ValueError(f"counts must be int64 of {self.groups} groups and {self.cells} cells")
        if counts.size and (
            counts.min() < 0 or counts.max() > MAX_VALUES or counts.sum(axis=1).max() > MAX_VALUES
        ):
            raise ValueError("counts must not be negative, and have a sum of at most 2^38 in each group")

    def chosen_cell(
        self, currency: Currency, wanted: Wanted, counts: Integers, noise: NoiseSource, label: str
    ) -> int:
        """Choose a cell with probability proportional to exp(e score / (tau range)): e-bounded range.

        Time depends on how many cells there are, and not on who is in them.
        """
        scores = wanted.scores(Ranks.of(counts))
        weights = LogWeights(currency.epsilon_per / (self.bound.tau * wanted.score_range), scores)
        return int(noise.gumbel_order(weights, 1, label)[0])


@dataclass(frozen=True)
class QuantileGumb:
    """Choose a cell for each of several quantiles, in each group.

    `quantiles` ascend strictly between 0 and 1; their common denominator is at most 10,000.

    Guarantee: Delta ceil(log2(m + 1)) e-BR choices one after the other, for member-level neighbours in which each
    member has at most tau values in each of at most Delta groups; hence that many times e^2 / 8 zCDP. Cost: as many
    units of information, calls 0.

    >>> currency = Currency(Fraction("0.15"), Fraction("1e-10"))
    >>> deciles = tuple(Fraction(place, 10) for place in range(1, 10))
    >>> QuantileGumb(currency, CellsOfGroups(1, 500, ContributionBound(1)), deciles).worst_case_cost()
    Cost(information=4, calls=0)

    Raises:
        ValueError: There are no quantiles or more than 999, they do not ascend within (0, 1), or their denominators are
            too large.
    """

    version: ClassVar[int] = 1

    currency: Currency
    among: CellsOfGroups
    quantiles: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.quantiles) <= MAX_QUANTILES:
            raise ValueError(f"quantiles must be from 1 to {MAX_QUANTILES}, got {len(self.quantiles)}")
        for q in self.quantiles:
            Quantile(q)
        if any(low >= high for low, high in zip(self.quantiles, self.quantiles[1:], strict=False)):
            raise ValueError("quantiles must ascend, each of them once")
        if lcm(*(q.denominator for q in self.quantiles)) > MAX_DENOMINATOR:
            raise ValueError(f"quantiles must have a common denominator of at most {MAX_DENOMINATOR}")

    @property
    def levels(self) -> int:
        """ceil(log2(m + 1)): how many choices a member has a part in, in each of its groups."""
        return len(self.quantiles).bit_length()

    def worst_case_cost(self) -> Cost:
        """Return the units of all levels and groups of a member."""
        return Cost(information=self.levels * self.among.most_groups_of_member, calls=0)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the same: every quantile of every group is released, or ValueError."""
        require_outcome(released == self.among.groups * len(self.quantiles) and not ended_in_bottom)
        return self.worst_case_cost()

    def run(self, counts: Integers, noise: NoiseSource) -> Integers:
        """Return a cell for each group and quantile, shape (groups, quantiles), ascending in each group.

        Args:
            counts: How many values are in each cell of each group, int64 of shape (groups, cells).
            noise: Where all randomness comes from.

        Raises:
            ValueError: `counts` has another shape, or is out of range.
        """
        self.among.require_fitting(counts)
        found = np.empty((self.among.groups, len(self.quantiles)), dtype=np.int64)
        whole = Part(0, len(self.quantiles), 0, self.among.cells, Fraction(0), Fraction(1))
        for group, of_group in enumerate(counts):
            parts = [whole]
            while parts:
                parts += self._answer(parts.pop(), of_group, found[group], noise, f"group {group}")
        return found

    def _answer(
        self, part: Part, counts: Integers, found: Integers, noise: NoiseSource, label: str
    ) -> list[Part]:
        """Choose the middle quantile of a part, and return the two parts that it leaves."""
        if part.first == part.end:
            return []
        if part.is_without_cells:
            found[part.first : part.end] = part.low_cell - 1
            return []
        middle = part.middle
        wanted = Quantile(part.relative(self.quantiles[middle]))
        within = counts[part.low_cell : part.end_cell]
        label = f"{label} quantile {middle}"
        found[middle] = part.low_cell + self.among.chosen_cell(self.currency, wanted, within, noise, label)
        return part.split(int(found[middle]), self.quantiles[middle])


class Part(NamedTuple):
    """Quantiles `first` to before `end`, chosen from the cells from `low_cell` to before `end_cell`.

    `q_low` and `q_high` are the quantiles that the cells were cut at, or 0 and 1.
    """

    first: int
    end: int
    low_cell: int
    end_cell: int
    q_low: Fraction
    q_high: Fraction

    @property
    def is_without_cells(self) -> bool:
        """Whether the cut that it was made by is in the last cell."""
        return self.low_cell == self.end_cell

    @property
    def middle(self) -> int:
        """The quantile that is chosen first."""
        return (self.first + self.end) // 2

    def relative(self, q: Fraction) -> Fraction:
        """Return which quantile of the part's values is the q of all."""
        return (q - self.q_low) / (self.q_high - self.q_low)

    def split(self, cell: int, q: Fraction) -> list[Part]:
        """Return the part up to a cell and the one above it."""
        return [
            Part(self.first, self.middle, self.low_cell, cell + 1, self.q_low, q),
            Part(self.middle + 1, self.end, cell + 1, self.end_cell, q, self.q_high),
        ]


@dataclass(frozen=True)
class ExtremeGumb:
    """Choose a cell for the largest, or the smallest, value of each group, with some values to spare.

    The cell is at rank `wanted.spare` from the end, about: a member alone must not be found. `spare_values` gives a
    number that is large enough for it to be below the true largest value, but for a probability alpha.

    Guarantee and cost: as one quantile, Delta units and no call. (A quantile of 1 - c / n would need n, and would
    cost more than twice as much.)

    Raises:
        ValueError: `spare` is no positive integer, or above 2^38.
    """

    version: ClassVar[int] = 1

    currency: Currency
    among: CellsOfGroups
    wanted: Largest | Smallest

    def __post_init__(self) -> None:
        require_positive_integer("spare", self.wanted.spare, at_most=MAX_VALUES)

    def worst_case_cost(self) -> Cost:
        """Return one unit for each group of a member."""
        return Cost(information=self.among.most_groups_of_member, calls=0)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the same: every group has its cell, or ValueError."""
        require_outcome(released == self.among.groups and not ended_in_bottom)
        return self.worst_case_cost()

    def run(self, counts: Integers, noise: NoiseSource) -> Integers:
        """Return a cell for each group, shape (groups,); arguments and errors as for `QuantileGumb.run`."""
        self.among.require_fitting(counts)
        return np.array(
            [
                self.among.chosen_cell(self.currency, self.wanted, of_group, noise, f"group {group} extreme")
                for group, of_group in enumerate(counts)
            ],
            dtype=np.int64,
        )
