"""Two looks: a small bound finds the names for a few units, a large one counts honestly within them.

1. *Names*: `BoundGauss` over the unknown domain with a small Delta_1 and u_1 units. Of what it shows, at most M names
   are kept, by noisy rank; its counts are thrown away.
2. *Counts*: every member is bounded again, to Delta_2 **within the names**, and `BoundGauss` over this known domain
   releases all counts with u_2 = u - u_1 units.

Why it is private. The first look is delta-approximate rho_1-zCDP, and keeping M of its names is post-processing
because M is fixed before any noise. Given the names, the second look is rho_2-zCDP: its domain is public by then, and
each member changes at most Delta_2 counts of it because it was bounded within them. Adaptive composition of
approximate zCDP (Bun and Steinke 2016, section 8) gives delta-approximate (rho_1 + rho_2)-zCDP: delta counts once, as
the second look has none. The same holds of GDP, whose mu_1^2 and mu_2^2 add up (Dong, Roth and Su 2022). u_1 + u_2 is u
exactly, as both are rationals.

Three things break it: a second look whose members are not bounded within the names (a member may hold all M), noise
of the first look that is used again, and an M that depends on the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.bounded.bound_gauss import BoundGauss, require_drawable_variance
from dp_service.mechanisms.bounded.contribution_bound import ContributionBound
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import (
    MAX_ROWS,
    Cost,
    Currency,
    require_outcome,
    require_positive_integer,
    require_rational,
)
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import NoiseSource
from dp_service.terms import MechanismName


@dataclass(frozen=True)
class TwoLooks:
    """At most `most_names` elements by a look of `names_units` units, counted by a look of the remaining units.

    `units` is u, a whole number, and `names_units` is u_1, strictly between 0 and u. `names_bound` and `counts_bound`
    are the bounds of the two looks, `min_count` that of the first. M = `most_names` comes from the question or the
    policy, never from the data.

    Guarantee: delta-approximate (u epsilon_per^2 / 8)-zCDP for member-level neighbours, if each look's members were
    bounded as it says, those of the second one within the names, on the same version of the data and with noise of
    its own. Cost: information u, calls 1, fixed in advance, also if no name is found.

    Raises:
        ValueError: A parameter is out of range, or the noise of a look cannot be drawn; the message names it.
    """

    name: ClassVar[MechanismName] = MechanismName.BOUND_GAUSS
    version: ClassVar[int] = 3

    currency: Currency
    units: int
    names_units: Fraction
    names_bound: ContributionBound
    counts_bound: ContributionBound
    min_count: int
    most_names: int

    def __post_init__(self) -> None:
        require_positive_integer("units", self.units)
        require_rational("names_units", self.names_units)
        if self.names_units >= self.units:
            raise ValueError(f"names_units must be below units, {self.units}, got {self.names_units}")
        require_positive_integer("min_count", self.min_count)
        require_positive_integer("most_names", self.most_names, at_most=MAX_ROWS)
        for look in (self.names_look, self.counts_look):
            require_drawable_variance(look.variance)

    @cached_property
    def names_look(self) -> BoundGauss:
        """The first look, over the unknown domain."""
        return BoundGauss(self.currency, self.names_units, self.names_bound, self.min_count)

    @cached_property
    def counts_look(self) -> BoundGauss:
        """The second look, over the names."""
        return BoundGauss(self.currency, self.units - self.names_units, self.counts_bound, None)

    def worst_case_cost(self) -> Cost:
        """Return all units and the call: what has to be reserved before the first look."""
        return Cost(information=self.units, calls=1)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the same, whatever was released; no threshold ends the second look's list."""
        require_outcome(0 <= released <= self.most_names and not ended_in_bottom)
        return self.worst_case_cost()

    def draw_names(self, histogram: Histogram, noise: NoiseSource) -> NDArray[np.int64]:
        """Return the names as positions in the histogram, by noisy rank, shape (at most M,)."""
        return self.names_look.run(histogram, noise).indices[: self.most_names]

    def draw_counts(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return the noisy counts of the names, descending.

        Args:
            histogram: The counts of members that were bounded within the names, in an order of the names that does
                not depend on the counts; names that nobody holds count 0.
            noise: Where the randomness of this look comes from: none of it was used for the names.

        Raises:
            ValueError: There are more names than there can be.
        """
        if len(histogram) > self.most_names:
            raise ValueError(f"histogram must have at most {self.most_names} names, got {len(histogram)}")
        return self.counts_look.run(histogram, noise)
