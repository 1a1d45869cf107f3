"""KnownGumb: the k largest of a known domain under unrestricted sensitivity.

Source: McSherry and Talwar 2007; Durfee and Rogers 2019, lemma 4.2; Rogers et al. 2020, algorithm 2.

Why it is private. Precondition: the domain is fixed without looking at the data; one member moves every
count by 0 to tau, all in the same direction. Released: k elements in order, then their counts with fresh
noise. Adding Gumbel noise and keeping the k largest in order has the law of k exponential mechanisms, each
over the elements that are left, with utility h_i e / tau. A member moves the utilities by 0 to e, so each
choice is e-BR. Each count is moved by at most tau against a noise of scale 2 tau / e, so each is (e / 2)-DP
and hence e-BR. The noise of the selection itself is never released: selected elements are those whose noise
was large, and a count that reused it would be biased and would pay for a release of its own.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dp_service.mechanisms.count_noise import draw_count_noise, require_drawable_counts
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import (
    Cost,
    Currency,
    require_outcome,
    require_positive_integer,
    require_within_domain,
)
from dp_service.mechanisms.rows import Rows
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import NoiseSource
from dp_service.noise.weights import LogWeights
from dp_service.terms import CountNoise, MechanismName


@dataclass(frozen=True)
class KnownGumb:
    """Release the k largest h_i + Gumbel(tau / e) in order, with fresh noisy counts if asked.

    Guarantee: 2k e-BR choices one after the other with counts, k without, each chosen by those before it;
    hence 2k e-DP and (2k e^2 / 8)-zCDP, or half of it, for neighbours under unrestricted sensitivity, e =
    epsilon_per. (The choices together are not 2k e-BR: ranges do not add up when later choices depend on
    earlier ones.) Cost: information 2k or k, calls 0. Counts get Pr[Z = z] proportional to exp(-e |z| / (2
    tau)); with `count_noise` Gaussian each unit is worth its zCDP and GDP, and nothing in e-DP.

    Raises:
        ValueError: A parameter is no positive integer, or the scale cannot be drawn.
    """

    name: ClassVar[MechanismName] = MechanismName.KNOWN_GUMB
    version: ClassVar[int] = 2

    currency: Currency
    k: int
    tau: int
    with_counts: bool = True
    count_noise: CountNoise = CountNoise.LAPLACE

    def __post_init__(self) -> None:
        require_positive_integer("k", self.k)
        require_positive_integer("tau", self.tau)
        require_drawable_counts(self.count_noise, self.count_inverse_scale)

    @property
    def count_inverse_scale(self) -> Fraction:
        """One over the scale of Laplace noise in the counts; Gaussian noise has its square + 1/11 as variance."""
        return self.currency.epsilon_per / (2 * self.tau)

    def worst_case_cost(self) -> Cost:
        """Return k units for the choices and k more for the counts."""
        return Cost(information=2 * self.k if self.with_counts else self.k, calls=0)

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return the worst case: exactly k elements are released every time, or ValueError."""
        require_outcome(released == self.k and not ended_in_bottom)
        return self.worst_case_cost()

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return k elements.

        Raises:
            ValueError: If k exceeds the domain, which includes its zeros.
        """
        require_within_domain(self.k, len(histogram))
        rows = Rows.shuffled(histogram, len(histogram), noise)
        weights = LogWeights(self.currency.epsilon_per / self.tau, rows.counts)
        found = noise.gumbel_order(weights, self.k, "selection")
        noisy_counts = None
        if self.with_counts:
            fresh = draw_count_noise(self.count_noise, self.count_inverse_scale, self.k, noise)
            noisy_counts = rows.counts[found] + fresh
        return Selection(rows.elements[found], noisy_counts, ended_in_bottom=False)
