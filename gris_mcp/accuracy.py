"""How far a count will be off, from the public parameters of its noise: what a model may plan with."""

from __future__ import annotations

import math

from pinot_connector.parameters import CountNoise, Parameters

PROBABILITY = 0.95
_DEVIATIONS = 1.96


def half_width(parameters: Parameters) -> int | None:
    """Return by how much a count is off at most with 95 %, by its noise alone; None without counts.

    Intervals of elements that are shown because of their noise are wider.
    """
    if parameters.noise_scale is None:
        return None
    scale = float(parameters.noise_scale)
    if parameters.count_noise is CountNoise.DISCRETE_GAUSSIAN:
        return math.ceil(_DEVIATIONS * scale)
    # Pr[|Z| > w] = 2 r^(w + 1) / (1 + r) of discrete Laplace noise, with r = exp(-1 / scale).
    ratio = math.exp(-1 / scale)
    return max(0, math.ceil(math.log((1 - PROBABILITY) * (1 + ratio) / 2) / math.log(ratio)) - 1)
