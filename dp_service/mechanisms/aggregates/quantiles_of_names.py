"""Quantiles in two looks: a first look names elements, and `RankedValues` chooses cells within the names.

Why it is private. The first look is that of `TwoLooks`: delta-approximate rho_1-zCDP. It counts members and draws
nothing of their values. Given its names, the groups are public: every member has a value in at most Delta_2 of them,
because it was bounded within the names. So the second look is Delta_2 choices of one unit each for every level, one
after the other, each e-bounded range and hence e^2/8-zCDP (`quantile_gumb`). By adaptive composition (Bun and Steinke
2016, section 8) all of it is delta-approximate zCDP of u_1 + levels Delta_2 units, and delta counts once.

How many names there are may not change the price, which is that of M of them: fewer names have fewer choices, and no
member is in more of them than Delta_2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.aggregates.ranked_values import RankedValues
from dp_service.mechanisms.bounded.two_looks import TwoLooks
from dp_service.mechanisms.parameters import Cost
from dp_service.noise.source import NoiseSource
from dp_service.terms import MechanismName

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class QuantilesOfNames:
    """At most M elements by the first of `looks`, with a cell for each value of each by the units of the second one.

    `values` is the choice among M groups, under the bound of the second look.

    Guarantee: delta-approximate (u epsilon_per^2 / 8)-zCDP for member-level neighbours, under the conditions of
    `TwoLooks` and of `RankedValues`. Cost: information u, calls 1, fixed in advance, also if no name is found.

    Raises:
        ValueError: The second look has other groups, another bound or another price than the looks say.
    """

    name: ClassVar[MechanismName] = MechanismName.QUANTILE_GUMB
    version: ClassVar[int] = 2

    looks: TwoLooks
    values: RankedValues

    def __post_init__(self) -> None:
        looks, among = self.looks, self.values.among
        if (among.groups, among.bound) != (looks.most_names, looks.counts_bound):
            raise ValueError(
                "values must be chosen among as many groups as names, under the second look's bound"
            )
        if self.values.worst_case_cost().information != looks.units - looks.names_units:
            raise ValueError("values must cost the units that the first look leaves")

    def worst_case_cost(self) -> Cost:
        """Return all units and the call: what has to be reserved before the first look."""
        return self.looks.worst_case_cost()

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the same, however many names were found."""
        return self.looks.cost(released, ended_in_bottom)

    def draw_values(self, counts: Integers, noise: NoiseSource) -> Integers:
        """Return a cell for each name and value, shape (names, size), as `RankedValues.run` does.

        Args:
            counts: How many of the members who were bounded within the names are in each cell of each name, int64 of
                shape (names, cells), in an order of the names that does not depend on the counts.
            noise: Where the randomness of this look comes from: none of it was used for the names.

        Raises:
            ValueError: There are more names than there can be, or as for `RankedValues.run`.
        """
        names = counts.shape[0]
        if names > self.looks.most_names:
            raise ValueError(f"counts must have at most {self.looks.most_names} names, got {names}")
        if not names:
            return np.empty((0, self.values.size), dtype=np.int64)
        among = replace(self.values.among, groups=names)
        return replace(self.values, among=among).run(counts, noise)
