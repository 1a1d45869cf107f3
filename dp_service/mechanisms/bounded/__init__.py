"""Counts of bounded contributions: each member adds no more than Delta elements would, so one release shows them all.

Neighbours are member-level data sets with and without one member. What is released is computed from histograms in
which every member was bounded **before** anything was counted: by `dp_service.bounding.weights`, or by any other rule
that looks at the member's own rows alone. The mechanisms cannot see whether that was done. If it was not, they
promise nothing.

* `contribution_bound`: what a member can change, and by how much, over one period or several;
* `bound_gauss`: one look, over an unknown domain or a known one; `threshold` hides what one member alone holds;
* `two_looks`: names by a small bound, then counts by a large one;
* `shift`: on small known domains, counts relative to their total;
* `selected_intervals`, `sum_intervals`: intervals that are true given that an element is shown.

`docs/proofs/bounded-contributions.md` proves all guarantees. A Gaussian release of u units is no sequence of u
bounded-range units, so its guarantee is accounted in zCDP.

Papers, as the modules name them: Bun and Steinke 2016 (arXiv:1605.02065); Canonne, Kamath and Steinke 2020
(arXiv:2004.00010); Korolova et al. 2009; Lebeda 2025 (arXiv:2408.06853); Swanberg et al. 2023; Wilson et al. 2020
(arXiv:1909.01917).
"""

from dp_service.mechanisms.bounded.bound_gauss import BoundGauss
from dp_service.mechanisms.bounded.contribution_bound import ContributionBound, Counted
from dp_service.mechanisms.bounded.shift import Shift, ShiftedCounts
from dp_service.mechanisms.bounded.two_looks import TwoLooks

__all__ = [
    "BoundGauss",
    "ContributionBound",
    "Counted",
    "Shift",
    "ShiftedCounts",
    "TwoLooks",
]
