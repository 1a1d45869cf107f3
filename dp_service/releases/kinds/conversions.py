"""Which part of a funnel's members came on: of those at the step before, and of those at the first one.

Counts of steps are sums of what was released of the deepest ones (`reached`), so those at a later step are a part of
those at an earlier one with all of their noise: with m draws in the part and m + d in what it is a part of, A - r X has
m draws with weight 1 - r and d with -r. Intervals are those of shares (`mechanisms.aggregates.shares`), and nothing
here has a price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_service.mechanisms.aggregates.shares import Draws, least_divisor, part_interval
from dp_service.releases.kinds.kind import Fields, Value
from dp_service.releases.kinds.views import Answer, ShownAverages
from dp_service.releases.statements import Statement

SAID = Statement(
    "counts.conversions",
    "Beside the count of a step stands which part it is of that of the step before, and of that of the first one. Each "
    "interval is that of the quotient, with the noise that both counts share; none is shown of the first step, and "
    "where the count that is divided by may be 0.",
)
TITLES = ("part_of_step_before", "part_of_first_step")
AGGREGATES_SAID: list[Fields] = [
    {"title": title, "quantum": Fraction(1), "may_be_missing": True} for title in TITLES
]


@dataclass(frozen=True)
class Conversions:
    """The steps of funnels with noisy counts.

    Attributes:
        reached: The noisy count of each element, by its place in the domain.
        chains: For each funnel the places of its steps, from the first on.
        variance: That of the noise in the count of a deepest step.
    """

    reached: Sequence[int]
    chains: Sequence[Sequence[int]]
    variance: Fraction

    def shown(self, elements: Sequence[int], alpha: Fraction) -> tuple[ShownAverages, ...]:
        """Return for each of `TITLES` the parts of some elements, with intervals at alpha each."""
        steps = {place: (chain, step) for chain in self.chains for step, place in enumerate(chain)}
        return tuple(
            ShownAverages(tuple(self._part(*steps[each], back, alpha) for each in elements))
            for back in (1, None)
        )

    def values(self, elements: Sequence[int], alpha: Fraction) -> tuple[Value, ...]:
        """Return for each of `TITLES` what gives the part of the element in a place."""

        def of(parts: ShownAverages) -> Value:
            values = [None if each is None else each.value for each in parts.answers]
            return lambda row: values[row]

        return tuple(map(of, self.shown(elements, alpha)))

    def _part(self, chain: Sequence[int], step: int, back: int | None, alpha: Fraction) -> Answer | None:
        """Return the part of a step: of the one that is `back` steps before, None: of the first."""
        earlier = 0 if back is None else step - back
        if step == 0:
            return None
        divided, divisor = (2 * self.reached[chain[each]] for each in (step, earlier))
        variance, later = float(self.variance), len(chain) - step
        draws = (Draws(2, 2, variance, later), Draws(0, 2, variance, step - earlier))
        if divisor < least_divisor(draws, alpha):
            return None
        lower, upper = part_interval(divided, divisor, draws, alpha=alpha)
        value, *ends = (
            min(max(each, Fraction(0)), Fraction(1)) for each in (Fraction(divided, divisor), lower, upper)
        )
        return Answer(value, min(ends[0], value), max(ends[1], value))
