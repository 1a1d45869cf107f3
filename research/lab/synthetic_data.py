"""Synthetic member-level data whose shape is known: heavy-tailed members and heavy-tailed elements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PARETO_SCALE, PARETO_SHAPE = 10, 1.16
ZETA = 1.1
MOST_PER_MEMBER = 10**6
LARGEST_ELEMENT = 2**31 - 1


def synthetic(members: int, seed: int) -> dict[str, NDArray[np.int64]]:
    """Return rows of `member` and `element`, with repeats, as columns.

    How many rows a member has is Pareto with scale 10 and shape 1.16, at most 10^6; which elements they hold is zeta
    with parameter 1.1, cut at 2^31. Source: section 5.1 of Swanberg et al. 2023.
    """
    random = np.random.default_rng(seed)
    sizes = np.minimum((random.pareto(PARETO_SHAPE, members) + 1) * PARETO_SCALE, MOST_PER_MEMBER).astype(
        np.int64
    )
    elements = np.minimum(random.zipf(ZETA, int(sizes.sum())), LARGEST_ELEMENT)
    return {"member": np.repeat(np.arange(members), sizes), "element": elements}
