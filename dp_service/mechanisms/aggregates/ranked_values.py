"""Quantiles with the smallest and the largest value: what a question for them releases, as one mechanism.

Why it is private: `quantile_gumb`, for each part. The quantiles, about the smallest and about the largest value of a
group are chosen one after the other, each part with noise of its own; so for neighbours in which a member has at most
tau values in each of at most Delta groups there are Delta (ceil(log2(m + 1)) + extremes) e-bounded-range choices
that differ.

Which rank about the smallest and the largest have, the spare values, follows from public numbers: the price of a unit
and the number of cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates.quantile_gumb import (
    CellsOfGroups,
    QuantileGumb,
)
from dp_service.mechanisms.aggregates.rank_errors import RankError, rank_error, rank_errors, spare_values
from dp_service.mechanisms.aggregates.rank_scores import Largest, Smallest
from dp_service.mechanisms.parameters import Cost, Currency, require_outcome
from dp_service.noise.source import NoiseSource
from dp_service.terms import MechanismName

Integers = NDArray[np.int64]

SPARE_ALPHA = Fraction(1, 20)
"""With which probability about the largest value may lie above the true one, and about the smallest below it."""


@dataclass(frozen=True)
class RankedValues:
    """Choose a cell for each quantile of each group, and for about the smallest and the largest value if asked.

    Guarantee: Delta (ceil(log2(m + 1)) + extremes) e-BR choices one after the other, for member-level neighbours in
    which each member has at most tau values in each of at most Delta groups. Cost: as many units of information,
    calls 0.

    >>> from dp_service.mechanisms.bounded import ContributionBound
    >>> currency = Currency(Fraction("0.15"), Fraction("1e-10"))
    >>> quartiles = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    >>> among = CellsOfGroups(37, 500, ContributionBound(2))
    >>> RankedValues(currency, among, quartiles, smallest=False, largest=True).worst_case_cost()
    Cost(information=6, calls=0)

    Raises:
        ValueError: Nothing is asked for, or as for `QuantileGumb`.
    """

    name: ClassVar[MechanismName] = MechanismName.QUANTILE_GUMB
    version: ClassVar[int] = 1

    currency: Currency
    among: CellsOfGroups
    quantiles: tuple[Fraction, ...]
    smallest: bool
    largest: bool

    def __post_init__(self) -> None:
        if not self.size:
            raise ValueError("a quantile, the smallest or the largest value must be asked for")
        # It checks the quantiles.
        _ = self.asked

    @property
    def size(self) -> int:
        """How many values are chosen in each group."""
        return len(self.quantiles) + self.smallest + self.largest

    @property
    def asked(self) -> QuantileGumb | None:
        """The choice of the quantiles; None: there are none."""
        return QuantileGumb(self.currency, self.among, self.quantiles) if self.quantiles else None

    @property
    def spare(self) -> int:
        """c: from which rank on, counted from the end, about the smallest and the largest value are."""
        return spare_values(self.currency, self.among, alpha=SPARE_ALPHA)

    @property
    def _extremes(self) -> tuple[Smallest | Largest, ...]:
        spare = self.spare
        return (
            *((Smallest(spare),) if self.smallest else ()),
            *((Largest(spare),) if self.largest else ()),
        )

    def worst_case_cost(self) -> Cost:
        """Return the units of all levels and groups of a member."""
        levels = len(self.quantiles).bit_length() + self.smallest + self.largest
        return Cost(information=levels * self.among.most_groups_of_member, calls=0)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the same: every group is released, or ValueError."""
        require_outcome(released == self.among.groups and not ended_in_bottom)
        return self.worst_case_cost()

    def run(self, counts: Integers, noise: NoiseSource) -> Integers:
        """Return a cell for each group and value, shape (groups, size): quantiles ascending, smallest, largest.

        Args:
            counts: How many values are in each cell of each group, int64 of shape (groups, cells).
            noise: Where all randomness comes from.

        Raises:
            ValueError: `counts` has another shape, or is out of range.
        """
        self.among.require_fitting(counts)
        asked, extremes = self.asked, self._extremes
        found = np.empty((self.among.groups, self.size), dtype=np.int64)
        if asked is not None:
            found[:, : len(self.quantiles)] = asked.run(counts, noise)
        for group, of_group in enumerate(counts):
            for place, wanted in enumerate(extremes, start=len(self.quantiles)):
                label = f"group {group} {type(wanted).__name__.lower()}"
                found[group, place] = self.among.chosen_cell(self.currency, wanted, of_group, noise, label)
        return found

    def errors(self, *, alpha: Fraction) -> list[RankError]:
        """Return the errors of all values of one group in the order of `run`, which hold together but for alpha.

        That of the smallest and the largest is c at least: in a group of n < c values rank c is beyond them all. No
        cell is then further from it than c, and often one is chosen that is as far (`Largest`: c less the values from
        it on).

        Raises:
            ValueError: Unless alpha lies strictly between 0 and 1.
        """
        each, asked = alpha / self.size, self.asked
        found = [] if asked is None else rank_errors(asked, alpha=each * len(self.quantiles))
        of_extremes = (
            max(rank_error(self.currency, wanted, self.among, alpha=each), Fraction(wanted.spare))
            for wanted in self._extremes
        )
        return [*found, *(RankError(error, {}) for error in of_extremes)]
