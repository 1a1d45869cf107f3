"""Published alternatives to the mechanisms that are served, so that they can be compared on one histogram.

**Nothing here can be reached by a policy**: resolution names the mechanisms of the package above and no
others, and an import rule keeps this package out of everything that serves. It is for whoever wants to
see what the choice of mechanism is worth, and for the tests of equalities between them.

Every alternative, and each of the served mechanisms in an adapter, is a `ComparedMechanism`: it takes a
whole histogram, cuts it itself to what it may see, releases elements without counts, and says what it
promises. A comparison is a loop over `catalogue`.
"""

from dp_service.mechanisms.comparison.catalogue import catalogue
from dp_service.mechanisms.comparison.fixed_threshold import FixedThreshold
from dp_service.mechanisms.comparison.interface import ComparedMechanism, Guarantee
from dp_service.mechanisms.comparison.limited_domain import LimitDom, StrictLimitDom
from dp_service.mechanisms.comparison.limited_domain_laplace import LaplaceLimitDom
from dp_service.mechanisms.comparison.one_shot_laplace import OneShotLaplace
from dp_service.mechanisms.comparison.peeling import Peeling
from dp_service.mechanisms.comparison.permute_and_flip import PermuteAndFlip
from dp_service.mechanisms.comparison.served import Served

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
