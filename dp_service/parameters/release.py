"""The parameters of a release, and the form in which they name it.

Policy and question fix them together (`queries.resolution`), and all that is drawn and paid follows from them
(`releases`). A plan carries all of them, by the fields of these classes (`releases.plan`).

The **release specification** names a release: seed and ids are functions of it. It has what changes what is drawn or
paid, and a parameter that is added goes to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_service.parameters.aggregates import QuantilesReleased, SumsReleased
from dp_service.parameters.contributions import BoundedContributions
from dp_service.terms import Comparison, Consistency, CountNoise, Element, MechanismName, Scalar


@dataclass(frozen=True)
class HavingCondition:
    """A condition on a number that was released of an element.

    Attributes:
        aggregate: Which number: the place of a sum or an average among those that the question asks for; None: the
            count.
        comparison: How it is compared.
        bound: With what, exactly, in the units of the number.
    """

    aggregate: int | None
    comparison: Comparison
    bound: Fraction


@dataclass(frozen=True)
class Listing:
    """What a question shows of a release other than its first elements; no part of the release.

    Attributes:
        in_element_order: Whether the list is in ascending order of its elements, as a series in time; k then shows the
            first of them.
        having: Conditions on what was released; elements that do not meet all of them are not shown.
        smallest_first: Whether a list that is ranked begins with the smallest number.
    """

    in_element_order: bool
    having: tuple[HavingCondition, ...] = ()
    smallest_first: bool = False


@dataclass(frozen=True)
class ReleaseParameters:
    """All numbers of a release.

    Attributes:
        mechanism: Follows from what the policy says of the columns.
        epsilon_per: What one information unit pays for.
        delta: What one call pays for.
        tau: By how much one member changes a count.
        delta_l0: How many elements one member can change; None: any number (unrestricted).
        d_bar: How many elements of an unknown domain are fetched; None: the domain is known, or all are fetched.
        k: How many elements are shown; None: all.
        with_counts: Whether their noisy counts are shown.
        count_noise: The noise in counts; LAPLACE where that noise is the mechanism itself (KNOWN_LAP, UNK_LAP), and
            GAUSSIAN for BOUND_GAUSS and BOUND_MOMENTS.
        consistency: Whether the same question on the same data gets the same answer.
        domain: The elements of a known domain in ascending order; None: the domain is unknown.
        within: The values that count in each column of an unknown domain, None: all; empty: all in every column.
            What an engine answers outside them is left out.
        contributions: How contributions are bounded; None: they are not, for every mechanism but BOUND_GAUSS and
            BOUND_MOMENTS.
        clips: Whether rows are counted, at most tau of a member in each element. Results state it; the query
            that does it is part of what the release is of.
        sums: What is summed beside the counts; None: nothing is, for every mechanism but BOUND_MOMENTS.
        quantiles: Of what quantiles are released; None: of nothing, for every mechanism but QUANTILE_GUMB, which
            releases no counts.
        listing: Which elements the question shows, and in which order; None: the first ones, in the order of the
            release or of a sum. No part of the release.
        funnel: Where the step of a funnel is in an element: counts are then of those who reach it, or a deeper one.
            Empty: there is none.
    """

    mechanism: MechanismName
    epsilon_per: Fraction
    delta: Fraction
    tau: int
    delta_l0: int | None
    d_bar: int | None
    k: int | None
    with_counts: bool
    count_noise: CountNoise
    consistency: Consistency
    domain: tuple[Element, ...] | None
    within: tuple[tuple[Scalar, ...] | None, ...] = ()
    contributions: BoundedContributions | None = None
    clips: bool = False
    sums: SumsReleased | None = None
    quantiles: QuantilesReleased | None = None
    listing: Listing | None = None
    funnel: tuple[int, ...] = ()

    @property
    def can_cut(self) -> bool:
        """Whether a member can count with less than it has: because of policy and question, whatever the data are."""
        return self.clips or (self.contributions is not None and self.contributions.can_cut)

    @property
    def largest_cut(self) -> Fraction | None:
        """The largest part of a number that is cut, as the owner states it; None: nothing is stated."""
        return None if self.contributions is None else self.contributions.largest_cut

    @property
    def counts_first_elements(self) -> bool:
        """Whether the engine is asked of how many members each element is the first."""
        return self.contributions is not None and self.contributions.shifted

    @property
    def counts_cells(self) -> bool:
        """Whether the engine is asked for the cells of a grid, behind each element."""
        return self.quantiles is not None

    @property
    def k_changes_the_release(self) -> bool:
        """Whether k and counts change what is drawn and paid; elsewhere they only cut one list."""
        return self.mechanism.is_gumbel

    @property
    def shown_at_most(self) -> int | None:
        """How many elements of the release to show; None for all of them."""
        return None if self.k_changes_the_release else self.k

    def specified(self, *, drawn_by: tuple[int, int]) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order, without the domain.

        k and whether counts are wanted belong to it only where they change what is drawn or paid (the Gumbel
        mechanisms). The others release one list, whatever part of it is shown, so any k is the same release.

        Args:
            drawn_by: The versions of the mechanism and of the sampler.
        """
        drawn = self.k_changes_the_release
        return [
            ("mechanism", self.mechanism.name),
            ("mechanism_version", drawn_by[0]),
            ("sampler_version", drawn_by[1]),
            ("epsilon_per", self.epsilon_per),
            ("delta", self.delta),
            ("tau", self.tau),
            ("delta_l0", self.delta_l0),
            ("d_bar", self.d_bar),
            ("count_noise", self.count_noise.name),
            ("consistency", self.consistency.name),
            ("k", self.k if drawn else None),
            ("with_counts", self.with_counts if drawn else None),
            *(() if self.contributions is None else self.contributions.specified()),
            *(() if self.sums is None else self.sums.specified()),
            *(() if self.quantiles is None else self.quantiles.specified()),
        ]
