"""Published alternatives to the mechanisms that are served, so that they can be compared on one histogram.

**Nothing here can be reached by a policy**: resolution names the mechanisms of the package above and no
others, and an import rule keeps this package out of everything that serves. It shows what the
choice of mechanism is worth, and serves tests of equalities between mechanisms.

Every alternative, and each of the served mechanisms in an adapter, is a `ComparedMechanism`: it takes a
whole histogram, cuts it itself to what it may see, releases elements without counts, and says what it
promises. A comparison is a loop over `catalogue`.

Papers, as the modules name them: Ding et al. 2021 (arXiv:2105.07260); Durfee and Rogers 2019
(arXiv:1905.04273); McKenna and Sheldon 2020 (arXiv:2010.12603); Qiao, Su and Zhang 2021 (arXiv:2105.08233).
"""

from research.lab.mechanisms.catalogue import catalogue
from research.lab.mechanisms.fixed_threshold import FixedThreshold
from research.lab.mechanisms.interface import ComparedMechanism, Guarantee
from research.lab.mechanisms.limited_domain import LimitDom, StrictLimitDom
from research.lab.mechanisms.limited_domain_laplace import LaplaceLimitDom
from research.lab.mechanisms.one_shot_laplace import OneShotLaplace
from research.lab.mechanisms.peeling import Peeling
from research.lab.mechanisms.permute_and_flip import PermuteAndFlip
from research.lab.mechanisms.served import Served

__all__ = [
    "ComparedMechanism",
    "FixedThreshold",
    "Guarantee",
    "LaplaceLimitDom",
    "LimitDom",
    "OneShotLaplace",
    "Peeling",
    "PermuteAndFlip",
    "Served",
    "StrictLimitDom",
    "catalogue",
]
