"""The mechanisms that are served, as alternatives to be compared."""

from dataclasses import dataclass

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.known_gumb import KnownGumb
from dp_service.mechanisms.known_lap import KnownLap
from dp_service.mechanisms.selection import Selection
from dp_service.mechanisms.unk_gumb import UnkGumb
from dp_service.mechanisms.unk_lap import UnkLap
from dp_service.noise.source import NoiseSource
from research.lab.mechanisms.interface import Guarantee, largest_rows, rounded_up


@dataclass(frozen=True)
class Served:
    """One of the four mechanisms on a whole histogram.

    UnkGumb without counts is algorithm 6 of Durfee and Rogers 2019. Guarantee: that of the mechanism.
    """

    mechanism: KnownLap | KnownGumb | UnkLap | UnkGumb

    @property
    def label(self) -> str:
        """The published name."""
        return self.mechanism.name.value

    def guarantee(self) -> Guarantee:
        """Return the worst case in units of epsilon_per, of which a Laplace mechanism's are worth half in epsilon."""
        worst, currency = self.mechanism.worst_case_cost(), self.mechanism.currency
        epsilon = worst.information * currency.epsilon_per
        if isinstance(self.mechanism, KnownLap | UnkLap):
            epsilon /= 2
        delta = rounded_up(currency.delta) if worst.calls else 0.0
        choices = None if isinstance(self.mechanism, UnkLap) else worst.information
        return Guarantee(rounded_up(epsilon), delta, choices)

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Return what the mechanism releases of the rows that it may see."""
        if isinstance(self.mechanism, KnownLap | KnownGumb):
            return self.mechanism.run(histogram, noise)
        rows, elements = largest_rows(histogram, self.mechanism.d_bar + 1)
        found = self.mechanism.run(rows, noise)
        return Selection(elements[found.indices], found.noisy_counts, found.ended_in_bottom, found.bottom)
