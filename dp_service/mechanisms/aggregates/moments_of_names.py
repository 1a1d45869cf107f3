"""Sums in two looks: a first look names elements, and `BoundMoments` counts and sums within the names.

Why it is private. The first look is that of `TwoLooks`: delta-approximate rho_1-zCDP. It counts and draws nothing of
the values. Given its names, the second look is `BoundMoments` over a known domain whose members were bounded within
the names: rho_2-zCDP for counts and sums together, since their shares add up to 1 and rho_2 is what u - u_1 units
stand for. So adaptive composition (Bun and Steinke 2016, section 8) gives delta-approximate (rho_1 + rho_2)-zCDP as it
does for counts, and the price is the same u units and one call.

The B of an element that was not named is never shown: the second look knows the names alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from dp_service.mechanisms.aggregates.bound_moments import BoundMoments, ColumnSums, SumShare
from dp_service.mechanisms.aggregates.released import ReleasedMoments
from dp_service.mechanisms.bounded.two_looks import TwoLooks
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import Cost
from dp_service.noise.source import NoiseSource
from dp_service.terms import MechanismName


@dataclass(frozen=True)
class MomentsOfNames:
    """At most M elements by the first of `looks`, with N and every B of each from the units of the second one.

    Guarantee: delta-approximate (u epsilon_per^2 / 8)-zCDP for member-level neighbours, under the conditions of
    `TwoLooks` and of `BoundMoments`. Cost: information u, calls 1, fixed in advance, also if no name is found.

    Raises:
        ValueError: Shares do not add up to 1, or the noise of the second look cannot be drawn; the message names it.
    """

    name: ClassVar[MechanismName] = MechanismName.BOUND_MOMENTS
    version: ClassVar[int] = 2

    looks: TwoLooks
    share: Fraction
    columns: tuple[SumShare, ...]

    def __post_init__(self) -> None:
        _ = self.moments

    @cached_property
    def moments(self) -> BoundMoments:
        """The second look: counts and sums over the names, a known domain by then."""
        second = self.looks.counts_look
        return BoundMoments(second.currency, second.units, second.bound, None, self.share, self.columns)

    def worst_case_cost(self) -> Cost:
        """Return all units and the call: what has to be reserved before the first look."""
        return self.looks.worst_case_cost()

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the same, whatever was released."""
        return self.looks.cost(released, ended_in_bottom)

    def draw_moments(
        self, histogram: Histogram, sums: tuple[ColumnSums, ...], noise: NoiseSource
    ) -> ReleasedMoments:
        """Return N and every B of the names, by descending N.

        Args:
            histogram: The counts of members that were bounded within the names; see `TwoLooks.draw_counts`.
            sums: The sums of each column over the same members, by name in the same order.
            noise: Where the randomness of this look comes from: none of it was used for the names.

        Raises:
            ValueError: There are more names than there can be, or counts and sums do not belong together.
        """
        if len(histogram) > self.looks.most_names:
            raise ValueError(
                f"histogram must have at most {self.looks.most_names} names, got {len(histogram)}"
            )
        return self.moments.run(histogram, sums, noise)
