"""The differentially private algorithms, as pure functions of a histogram and a source of noise.

Neighbouring histograms belong to one data set with and without one member, who changes each count by at
most tau, all in the same direction, in at most Delta elements (restricted) or in any number of them
(unrestricted).

Each mechanism is a frozen description (`known_lap`, `known_gumb`, `unk_lap`, `unk_gumb`) that satisfies the
interface in `mechanism`, with the proof of its privacy next to its code. `intervals` adds error bars to
what has been released. The package imports `dp_service.noise`, `dp_service.values`,
`dp_service.terms` and nothing else of the project.

Papers, as the modules name them: Bun and Steinke 2016 (arXiv:1605.02065); Canonne, Kamath and Steinke 2020
(arXiv:2004.00010); Durfee and Rogers 2019 (arXiv:1905.04273); Rogers et al. 2020 (arXiv:2002.05839).
"""

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.known_gumb import KnownGumb
from dp_service.mechanisms.known_lap import KnownLap
from dp_service.mechanisms.mechanism import Mechanism
from dp_service.mechanisms.parameters import Cost, Currency
from dp_service.mechanisms.selection import Selection
from dp_service.mechanisms.unk_gumb import UnkGumb
from dp_service.mechanisms.unk_lap import UnkLap
from dp_service.terms import CountNoise, MechanismName

__all__ = [
    "Cost",
    "CountNoise",
    "Currency",
    "Histogram",
    "KnownGumb",
    "KnownLap",
    "Mechanism",
    "MechanismName",
    "Selection",
    "UnkGumb",
    "UnkLap",
]
