"""How far a count will be off, as agents are shown it before they ask."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import cast

import pytest

from dp_service.mechanisms.intervals import gaussian_half_width, noise_half_width
from gris_mcp.accuracy import half_width
from pinot_connector.parameters import Consistency, CountNoise, Mechanism, Parameters

ALPHA = Fraction(1, 20)
COUNTED = Parameters(
    Mechanism.KNOWN_LAP,
    Fraction(1),
    None,
    1,
    1,
    None,
    None,
    4,
    CountNoise.DISCRETE_LAPLACE,
    Fraction(2),
    Consistency.KEYED,
)


@pytest.mark.parametrize(
    "scale", [Fraction(1, 4), Fraction(2, 3), Fraction(2), Fraction(40, 3), Fraction(1000)]
)
def test_the_typical_error_is_that_of_the_intervals(scale: Fraction) -> None:
    """As wide as the service's own intervals at 95 %: of Laplace noise exactly, of Gaussian noise within two."""
    assert noise_half_width(1 / scale, ALPHA) == half_width(replace(COUNTED, noise_scale=scale))
    gaussian = half_width(replace(COUNTED, noise_scale=scale, count_noise=CountNoise.DISCRETE_GAUSSIAN))
    assert abs(gaussian_half_width(scale**2, ALPHA) - cast(int, gaussian)) <= 2


def test_without_counts_nothing_is_off() -> None:
    """A ranking has no counts."""
    assert half_width(replace(COUNTED, noise_scale=None)) is None
