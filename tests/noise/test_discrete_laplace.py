"""The exact discrete Laplace sampler."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.noise import KeyedStream
from dp_service.noise import discrete_laplace as module
from dp_service.noise.bernoulli import BernoulliLaw, success_probability
from dp_service.noise.discrete_laplace import discrete_laplace, low_digits
from dp_service.noise.distribution import laplace_mass
from dp_service.noise.exact import interval_context
from dp_service.noise.stream import RandomWords

from .statistics import chi_squared_p_value

ONE = Fraction(1)
REACH = 12


class ForcedTrials:
    """Takes the place of exact trials: outcomes are given, and their probabilities are multiplied up."""

    def __init__(self, outcomes: tuple[bool, ...]) -> None:
        self._outcomes = list(outcomes)
        self.probability = 1.0

    def __call__(
        self,
        stream: RandomWords,
        law: BernoulliLaw,
        exponent: Fraction,
        size: int,
    ) -> NDArray[np.bool_]:
        """Return the next `size` outcomes, or failures once they have run out."""
        success = float(success_probability(law, exponent, interval_context(64)).mid)
        taken = [self._outcomes.pop(0) if self._outcomes else False for _ in range(size)]
        for outcome in taken:
            self.probability *= success if outcome else 1 - success
        return np.array(taken, dtype=np.bool_)

    @property
    def used_up(self) -> bool:
        """Whether the run asked for every given outcome."""
        return not self._outcomes


def enumerated_law(monkeypatch: pytest.MonkeyPatch, inverse_scale: Fraction) -> dict[int, float]:
    """Return the law of one draw over the tree of its trials, up to six high-part trials each way."""
    law: dict[int, float] = {}
    for outcomes in trial_sequences(low_digits(inverse_scale)):
        trials = ForcedTrials(outcomes)
        monkeypatch.setattr(module, "bernoulli", trials)
        value = int(discrete_laplace(KeyedStream(bytes(32)).substream("unused"), inverse_scale, 1)[0])
        assert trials.used_up
        law[value] = law.get(value, 0.0) + trials.probability
    return law


def trial_sequences(digits: int) -> Iterator[tuple[bool, ...]]:
    """Yield the outcomes of all trials of one draw in the order in which the sampler asks for them."""
    for low in product((False, True), repeat=2 * digits):
        for minuend, subtrahend in product(range(7), repeat=2):
            rounds = max(minuend, subtrahend) + 1
            high = [
                trial < successes
                for trial in range(rounds)
                for successes in (minuend, subtrahend)
                if trial <= successes
            ]
            yield (*low, *high)


@pytest.mark.parametrize("inverse_scale", [Fraction(1, 2), ONE, Fraction(4)])
def test_the_law_is_exact_by_enumeration_of_all_trials(
    monkeypatch: pytest.MonkeyPatch, inverse_scale: Fraction
) -> None:
    """Digits and high part, put together by the real code, have the closed-form mass at every z near 0."""
    law = enumerated_law(monkeypatch, inverse_scale)
    # Six more high-part successes have probability below exp(-18), which bounds what the tree leaves out.
    for z in range(-4, 5):
        assert float(laplace_mass(inverse_scale, z).mid) == pytest.approx(law[z], abs=2e-8)


def draws(inverse_scale: Fraction, size: int) -> NDArray[np.int64]:
    """Return draws from a fixed seed."""
    return discrete_laplace(KeyedStream(bytes(range(32))).substream("counts"), inverse_scale, size)


def p_value_against(inverse_scale: Fraction, sample: NDArray[np.int64]) -> float:
    """Compare a sample with the closed form, values beyond the reach pooled at each end."""
    clipped = np.clip(sample, -REACH, REACH)
    inner = [float(laplace_mass(inverse_scale, z).mid) for z in range(-REACH + 1, REACH)]
    end = (1 - math.fsum(inner)) / 2
    return chi_squared_p_value(
        np.bincount(clipped + REACH, minlength=2 * REACH + 1).tolist(), [end, *inner, end]
    )


def test_a_sample_fits_the_closed_form() -> None:
    """100 000 draws pass chi-squared at level 1e-6; the seed is fixed, so the test never flickers."""
    assert p_value_against(Fraction(1, 4), draws(Fraction(1, 4), 100_000)) > 1e-6


@pytest.mark.parametrize("factor", [Fraction(10, 13), Fraction(13, 10)])
def test_the_same_test_rejects_a_scale_that_is_30_percent_off(factor: Fraction) -> None:
    """The test has power: a wrong scale falls below the same level."""
    assert p_value_against(Fraction(1, 4) * factor, draws(Fraction(1, 4), 100_000)) < 1e-6


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


def test_draws_match_their_test_vector() -> None:
    """The same seed gives the same noise in every version with this sampler version."""
    assert draws(Fraction(3, 40), 8).tolist() == [-5, 2, 28, -18, 10, 7, -9, -5]


def test_no_draws_are_an_empty_array() -> None:
    """A release without elements needs no noise."""
    assert draws(ONE, 0).shape == (0,)


def test_a_draw_that_would_wrap_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of successes that leaves the 64-bit integers raises; it never wraps to a small number."""
    monkeypatch.setattr(module, "MAX_MAGNITUDE", 2**34)
    monkeypatch.setattr(module, "bernoulli", ForcedTrials((True,) * 200))
    with pytest.raises(OverflowError, match="exceeded"):
        draws(Fraction(1, 10**9), 1)


@pytest.mark.parametrize("inverse_scale", [Fraction(0), Fraction(-1), Fraction(1, 10**9) / 2, Fraction(1001)])
def test_a_scale_that_cannot_be_drawn_is_refused(inverse_scale: Fraction) -> None:
    """The error names the argument and its range."""
    with pytest.raises(ValueError, match="inverse_scale must be from"):
        draws(inverse_scale, 1)


def test_a_negative_size_is_refused() -> None:
    """The error names the argument."""
    with pytest.raises(ValueError, match="size must not be negative"):
        draws(ONE, -1)
