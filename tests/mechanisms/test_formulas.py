"""Scales and weights are those of the published formulas, evaluated directly."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms import Currency, Histogram, KnownGumb, KnownLap, UnkGumb, UnkLap
from dp_service.mechanisms.unk_gumb import selection_weights, threshold_weights
from dp_service.noise import KeyedNoise, KeyedStream

from .enumeration import log_weights

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
MECHANISM = UnkGumb(CURRENCY, k=2, d_bar=5, tau=3)
RATE = 0.15 / 3
COUNTS = np.array([900, 700, 700, 40, 2, 0], dtype=np.int64)


@pytest.mark.parametrize(
    ("mechanism", "noise_scale"),
    [
        (KnownLap(CURRENCY, delta_l0=4, tau=3), 2 * 3 / 0.15),
        (KnownGumb(CURRENCY, k=2, tau=3), 2 * 3 / 0.15),
        (UnkLap(CURRENCY, delta_l0=4, d_bar=5, tau=3), 2 * 3 * 4 / 0.15),
        (MECHANISM, 2 * 3 / 0.15),
    ],
)
def test_counts_get_noise_of_the_stated_scale(
    mechanism: KnownLap | KnownGumb | UnkLap | UnkGumb, noise_scale: float
) -> None:
    """2 tau / e, and 2 tau Delta / e for UnkLap: the standard deviation of many draws is that of this scale."""
    assert noise_scale == pytest.approx(float(1 / mechanism.count_inverse_scale))
    histogram = Histogram.from_element_order([10**6] * 5 + [0])
    seeds = [seed.to_bytes(32, "big") for seed in range(1000)]
    released = [mechanism.run(histogram, KeyedNoise(KeyedStream(seed))).noisy_counts for seed in seeds]
    errors = np.concatenate(
        [counts[counts > 10**6 // 2] - 10**6 for counts in released if counts is not None]
    )
    assert float(errors.std()) == pytest.approx(math.sqrt(2) * noise_scale, rel=0.15)


def h_bottom(k_bar: int) -> float:
    """Return h_(k_bar+1) + tau (1 + ln(k_bar / delta) / e)."""
    return float(COUNTS[k_bar]) + 3 * (1 + math.log(k_bar / 1e-10) / 0.15)


def test_threshold_indices_weigh_the_exponential_of_minus_their_scores() -> None:
    """Up to a common constant, ln of the weight of i is -s_i e / tau with s_i = h_(i+1) + tau + tau ln(i/delta)/e."""
    logs = log_weights(threshold_weights(MECHANISM, COUNTS))
    expected = [-h_bottom(i) * RATE for i in range(2, 6)]
    assert np.diff(expected).tolist() == pytest.approx(np.diff(logs).tolist())


@pytest.mark.parametrize(("k_bar", "candidates"), [(2, 1), (3, 3), (5, 5)])
def test_candidates_weigh_their_counts_and_bottom_its_threshold(k_bar: int, candidates: int) -> None:
    """Candidates are the counts strictly above h_(k_bar+1); bottom comes last, with k_bar inside the logarithm."""
    logs = log_weights(selection_weights(MECHANISM, COUNTS, k_bar))
    expected = [*(COUNTS[:candidates] * RATE).tolist(), h_bottom(k_bar) * RATE]
    assert expected == pytest.approx(logs)
