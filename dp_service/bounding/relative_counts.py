"""Where counts of a small known domain are released relative to their total.

Instead of counts x_i, 2 x_i - tau n is released, with n the number of members that count in any element
(`dp_service.mechanisms.bounded.shift`). It needs less noise where a member may count in every element. All of that
follows from public numbers.
"""

from __future__ import annotations

LARGEST_DOMAIN = 1000
"""Domains with more elements are not small: no policy that bounds members gains anything there."""

LARGEST_TAU = 256
"""Beyond it, tau n could exceed 64 bits."""


def helps(domain_size: int, *, tau: int) -> bool:
    """Return whether counts are released relative to their total.

    Args:
        domain_size: d, the number of elements, in all of which a member may count.
        tau: By how much a member changes a count.
    """
    return 1 < domain_size <= LARGEST_DOMAIN and tau <= LARGEST_TAU
