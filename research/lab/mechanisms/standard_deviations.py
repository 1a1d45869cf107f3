"""How much noise one-shot Laplace and the Gumbel mechanisms add for the same (epsilon, delta).

Source: Durfee and Rogers 2021, "One-shot DP top-k mechanisms" (section "Report noisy max for DP top-k");
Bun and Steinke 2016, lemma 3.5, for the step from zCDP to (epsilon, delta). For counts that move by at
most 1.
"""

import math
from dataclasses import dataclass

from dp_service.mechanisms.parameters import require_positive_integer


@dataclass(frozen=True)
class StandardDeviations:
    """Standard deviations in counts: of one-shot Laplace, and of KnownGumb's choices and of its counts."""

    one_shot_laplace: float
    gumbel_choices: float
    gumbel_counts: float


def epsilon_of_all_choices(epsilon: float, delta: float) -> float:
    """Return epsilon' such that epsilon'^2 / 4 zCDP, k choices and k counts together, is (epsilon, delta)-DP."""
    log = math.log(1 / delta)
    return 2 * (math.sqrt(log + epsilon) - math.sqrt(log))


def standard_deviations(*, epsilon: float, delta: float, k: int, domain_size: int) -> StandardDeviations:
    """Return the three standard deviations for a top k of `domain_size` elements.

    Raises:
        ValueError: Unless epsilon is positive, delta lies strictly between 0 and 1, and the others are
            positive integers.
    """
    require_positive_integer("k", k)
    require_positive_integer("domain_size", domain_size)
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive, got {epsilon}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
    all_choices = epsilon_of_all_choices(epsilon, delta)
    return StandardDeviations(
        one_shot_laplace=8 * math.sqrt(2 * k * math.log(domain_size / delta)) / epsilon,
        gumbel_choices=math.pi * math.sqrt(k) / (math.sqrt(6) * all_choices),
        gumbel_counts=2 * math.sqrt(2 * k) / all_choices,
    )
