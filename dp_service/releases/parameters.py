"""The parameters that policy resolved for one question, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_service.queries.policy import Consistency, CountNoise
from dp_service.queries.resolution import MechanismKind, Resolution
from dp_service.releases.histogram import Element, Scalar, elements_of_domain, scalars

_GUMBEL_MECHANISMS = frozenset({MechanismKind.KNOWN_GUMB, MechanismKind.UNK_GUMB})


@dataclass(frozen=True)
class ReleaseParameters:
    """All numbers of a release: `delta_l0` is None if unrestricted, `d_bar` None and `domain` given if known.

    `within`, of an unknown domain, are the values that count in each column, None: all; empty: all in every column.
    `k` is how many elements are shown (None: all); `with_counts` whether their noisy counts are.
    """

    mechanism: MechanismKind
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
        return self.mechanism in _GUMBEL_MECHANISMS

    @property
    def shown_at_most(self) -> int | None:
        """How many elements of the release to show; None for all of them."""
        return None if self.k_changes_the_release else self.k


def parameters_of(resolution: Resolution) -> ReleaseParameters:
    """Return the numbers that a resolution fixed."""
    domain = resolution.domain
    return ReleaseParameters(
        mechanism=resolution.mechanism,
        epsilon_per=resolution.currency.epsilon_per,
        delta=resolution.currency.delta,
        tau=resolution.tau,
        delta_l0=resolution.delta_l0,
        d_bar=resolution.d_bar,
        k=resolution.k,
        with_counts=not resolution.omit_counts,
        count_noise=resolution.count_noise,
        consistency=resolution.consistency,
        domain=None if domain is None else elements_of_domain(domain),
        within=() if domain is not None else _within(resolution),
    )


def _within(resolution: Resolution) -> tuple[tuple[Scalar, ...] | None, ...]:
    if all(values is None for values in resolution.within):
        return ()
    return tuple(None if values is None else scalars(values) for values in resolution.within)
