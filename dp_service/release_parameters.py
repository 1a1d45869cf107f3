"""The parameters of a release, and the two forms in which they are written down.

Policy and question fix them together (`queries.resolution`), and all that is drawn and paid follows from them
(`releases`). A new parameter is a field here with its place in both forms:

- The **release specification** names a release: seed and ids are functions of it. It has what changes what is drawn or
  paid.
- A **plan** carries every parameter from translation to noise, as JSON.

Both are stored or sent. A parameter that is added goes to the end, and a plan without it must still be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dp_service.terms import Consistency, CountNoise, Element, MechanismName, Scalar


@dataclass(frozen=True)
class ReleaseParameters:
    """All numbers of a release.

    Attributes:
        mechanism: Follows from what the policy says of the columns.
        epsilon_per: What one information unit pays for.
        delta: What one call pays for.
        tau: By how much one member changes a count.
        delta_l0: How many elements one member can change; None: any number (unrestricted).
        d_bar: How many elements of an unknown domain are fetched; None: the domain is known.
        k: How many elements are shown; None: all.
        with_counts: Whether their noisy counts are shown.
        count_noise: The noise in counts; LAPLACE where that noise is the mechanism itself (KNOWN_LAP, UNK_LAP).
        consistency: Whether the same question on the same data gets the same answer.
        domain: The elements of a known domain in ascending order; None: the domain is unknown.
        within: The values that count in each column of an unknown domain, None: all; empty: all in every column.
            What an engine answers outside them is left out.
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
        mechanisms). The Laplace mechanisms release one list, whatever part of it is shown, so any k is the same
        release.

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
        ]

    def to_json(self) -> dict[str, Any]:
        """Return what a plan says of the parameters, as values of JSON."""
        return {
            "mechanism": self.mechanism.name,
            "epsilon_per": str(self.epsilon_per),
            "delta": str(self.delta),
            "tau": self.tau,
            "delta_l0": self.delta_l0,
            "d_bar": self.d_bar,
            "k": self.k,
            "with_counts": self.with_counts,
            "count_noise": self.count_noise.name,
            "consistency": self.consistency.name,
            "domain": self.domain,
            "within": self.within,
        }

    @classmethod
    def from_json(cls, plan: dict[str, Any]) -> ReleaseParameters:
        """Return the parameters that a verified plan states."""
        domain: list[list[Any]] | None = plan["domain"]
        return cls(
            mechanism=MechanismName[plan["mechanism"]],
            epsilon_per=Fraction(plan["epsilon_per"]),
            delta=Fraction(plan["delta"]),
            tau=plan["tau"],
            delta_l0=plan["delta_l0"],
            d_bar=plan["d_bar"],
            k=plan["k"],
            with_counts=plan["with_counts"],
            count_noise=CountNoise[plan["count_noise"]],
            consistency=Consistency[plan["consistency"]],
            domain=None if domain is None else tuple(map(tuple, domain)),
            # A plan that an older replica made has none; it lives for ten minutes.
            within=tuple(None if values is None else tuple(values) for values in plan.get("within", ())),
        )
