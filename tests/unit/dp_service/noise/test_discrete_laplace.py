"""The exact discrete Laplace sampler."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.noise import KeyedStream
from dp_service.noise.discrete_laplace import digit_widths, discrete_laplace
from dp_service.noise.distribution import laplace_tail

from .statistics import chi_squared_p_value

ONE = Fraction(1)
SCALES = [ONE, Fraction(40, 3), Fraction(33), Fraction(1000), Fraction(10**6)]
SIZE = 100_000
LEVEL = 1e-6
"""A right sampler fails a chi-squared test with this probability, over all seeds; the seed here is fixed."""


def draws(inverse_scale: Fraction, size: int, **blocks: int) -> NDArray[np.int64]:
    """Return draws from a fixed seed."""
    return discrete_laplace(KeyedStream(bytes(range(32))), ("counts",), inverse_scale, size, **blocks)


def p_value_against(inverse_scale: Fraction, sample: NDArray[np.int64]) -> float:
    """Compare a sample with the closed form in cells of about a third of the scale, out to four scales."""
    width = max(1, round(1 / inverse_scale / 3))
    edges = [width * step for step in range(-12, 13)]
    tails = [float(laplace_tail(inverse_scale, edge).mid) for edge in edges]
    masses = [
        1 - tails[0],
        *(first - second for first, second in pairwise(tails)),
        tails[-1],
    ]
    cells = np.bincount(np.searchsorted(edges, sample, side="right"), minlength=len(masses)).tolist()
    # Cells that expect fewer than ten draws are counted with the middle one.
    rare = {cell for cell in range(len(masses)) if masses[cell] * sample.size < 10}
    middle = edges.index(0) + 1
    for cell in rare:
        cells[middle] += cells[cell]
        masses[middle] += masses[cell]
    kept = [cell for cell in range(len(masses)) if cell not in rare]
    return chi_squared_p_value([cells[cell] for cell in kept], [masses[cell] for cell in kept])


@pytest.mark.parametrize("scale", SCALES)
def test_a_sample_fits_the_closed_form(scale: Fraction) -> None:
    """100 000 draws pass chi-squared at level 1e-6; the seed is fixed, so the test never flickers."""
    assert p_value_against(1 / scale, draws(1 / scale, SIZE)) > LEVEL


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("factor", [Fraction(10, 13), Fraction(13, 10)])
def test_the_same_test_rejects_a_scale_that_is_30_percent_off(scale: Fraction, factor: Fraction) -> None:
    """The test has power: a wrong scale falls below the same level."""
    assert p_value_against(1 / scale, draws(factor / scale, SIZE)) < LEVEL


@pytest.mark.parametrize("scale", [Fraction(33), Fraction(10**6), Fraction(10**9)])
def test_the_last_bits_of_wide_noise_fit_the_closed_form(scale: Fraction) -> None:
    """The digits below the head are joined right: remainders modulo 16, of which each sign has its own law."""
    sample = draws(1 / scale, SIZE)
    q16 = math.exp(-16 / scale)
    for side in (sample[sample >= 0], ~sample[sample < 0]):
        masses = [math.exp(-d / scale) * -math.expm1(-1 / scale) / (1 - q16) for d in range(16)]
        assert chi_squared_p_value(np.bincount(side % 16, minlength=16).tolist(), masses) > LEVEL


@pytest.mark.parametrize("inverse_scale", [Fraction(1, 10**9), Fraction(1, 10**6), Fraction(3, 40)])
def test_wide_noise_has_the_right_mean_and_variance(inverse_scale: Fraction) -> None:
    """Mean 0 and variance 2q/(1-q)^2 within five standard errors of 20 000 draws."""
    size = 20_000
    q = math.exp(-inverse_scale)
    variance = 2 * q / math.expm1(-inverse_scale) ** 2
    sample = draws(inverse_scale, size).astype(np.float64)
    assert abs(sample.mean()) < 5 * math.sqrt(variance / size)
    # The fourth moment of Laplace noise is 6 times the squared variance, so the variance has error sqrt(5 /
    # n).
    assert abs(sample.var() / variance - 1) < 5 * math.sqrt(5 / size)


def test_noise_narrower_than_one_step_is_zero() -> None:
    """At inverse scale 1000 another value than 0 has probability e^-1000."""
    assert draws(Fraction(1000), 100).tolist() == [0] * 100


@pytest.mark.parametrize("inverse_scale", [Fraction(3, 40), Fraction(1, 10**6)])
def test_draws_do_not_depend_on_how_many_are_drawn_together(inverse_scale: Fraction) -> None:
    """A few draws, looked up one way, are the beginning of many, looked up in another."""
    assert draws(inverse_scale, 100).tolist() == draws(inverse_scale, 40_000)[:100].tolist()


@pytest.mark.parametrize(
    ("scale", "widths"),
    [
        (Fraction(32), []),
        (Fraction(33), [1]),
        (Fraction(1000), [5]),
        (Fraction(10**6), [8, 7]),
        (Fraction(10**9), [9, 8, 8]),
    ],
)
def test_digits_below_the_head_are_as_documented(scale: Fraction, widths: list[int]) -> None:
    """How many words make a draw is part of the definition of the stream."""
    assert widths == digit_widths(1 / scale)


def test_no_draws_are_an_empty_array() -> None:
    """A release without elements needs no noise."""
    assert draws(ONE, 0).shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("at_a_time", [1, 7, 999, 1024])
@pytest.mark.parametrize("scale", [ONE, Fraction(10**6)])
def test_draws_do_not_depend_on_how_they_are_cut_into_blocks(scale: Fraction, at_a_time: int) -> None:
    """Draw i is made from numbers i, whichever block it is in."""
    assert draws(1 / scale, 1000).tolist() == draws(1 / scale, 1000, at_a_time=at_a_time).tolist()


@pytest.mark.parametrize("inverse_scale", [Fraction(0), Fraction(-1), Fraction(1, 10**9) / 2, Fraction(1001)])
def test_a_scale_that_cannot_be_drawn_is_refused(inverse_scale: Fraction) -> None:
    """The error names the argument and its range."""
    with pytest.raises(ValueError, match="inverse_scale must be from"):
        draws(inverse_scale, 1)


def test_a_negative_size_is_refused() -> None:
    """The error names the argument."""
    with pytest.raises(ValueError, match="size must not be negative"):
        draws(ONE, -1)
