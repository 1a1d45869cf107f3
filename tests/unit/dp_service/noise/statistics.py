"""Pearson's chi-squared test, for samples whose law is known in closed form."""

import math
from collections.abc import Sequence

import mpmath


def chi_squared_p_value(observed: Sequence[int], probabilities: Sequence[float]) -> float:
    """Return the probability of a deviation at least this large if the law is right.

    `probabilities` covers every cell and sums to 1; cells should expect at least about 10 observations.
    """
    total = sum(observed)
    if not math.isclose(math.fsum(probabilities), 1, abs_tol=1e-9):
        raise ValueError("probabilities must sum to 1")
    statistic = sum(
        (count - total * probability) ** 2 / (total * probability)
        for count, probability in zip(observed, probabilities, strict=True)
    )
    degrees = len(observed) - 1
    return float(mpmath.gammainc(degrees / 2, statistic / 2, regularized=True))
