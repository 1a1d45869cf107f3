"""Scales and weights are those of the published formulas, evaluated directly."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.mechanisms import Currency, Histogram, KnownGumb, KnownLap, UnkGumb, UnkLap
from dp_service.mechanisms.unk_gumb import selection_weights, threshold_weights
from dp_service.noise import KeyedNoise, KeyedStream, LogWeights

from .enumeration import log_weights

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
MECHANISM = UnkGumb(CURRENCY, k=2, d_bar=5, tau=3)
RATE = 0.15 / 3
COUNTS = np.array([900, 700, 700, 40, 2, 0], dtype=np.int64)


@pytest.mark.slow
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
    logs = log_weights(threshold_weights(MECHANISM, COUNTS, np.arange(2, 6)))
    expected = [-h_bottom(i) * RATE for i in range(2, 6)]
    assert np.diff(expected).tolist() == pytest.approx(np.diff(logs).tolist())


@pytest.mark.parametrize(("k_bar", "candidates"), [(2, 1), (3, 3), (5, 5)])
def test_candidates_weigh_their_counts_and_bottom_its_threshold(k_bar: int, candidates: int) -> None:
    """Candidates are the counts strictly above h_(k_bar+1); bottom comes last, with k_bar inside the logarithm."""
    weights = selection_weights(MECHANISM, COUNTS, k_bar, int(COUNTS[k_bar]))
    assert [*(COUNTS * RATE).tolist(), h_bottom(k_bar) * RATE] == pytest.approx(log_weights(weights))
    eligible = [weights.is_eligible(index) for index in range(len(weights))]
    assert [*(place < candidates for place in range(COUNTS.size)), True] == eligible


class RecordingNoise:
    """Writes down what is drawn; every draw of counts is 1, 2, 3, ..., so that shared noise shows."""

    def __init__(self) -> None:
        self.laplace: list[tuple[Fraction, int, str]] = []
        self.orders: list[tuple[LogWeights, int, str]] = []

    def discrete_laplace(self, inverse_scale: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Return 1 to `size`."""
        self.laplace.append((inverse_scale, size, label))
        return np.arange(1, size + 1, dtype=np.int64)

    def discrete_gaussian(self, variance: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Fail: nobody asks for it here."""
        raise AssertionError("no mechanism here draws Gaussian noise")

    def gumbel_order(self, weights: LogWeights, count: int, label: str) -> NDArray[np.int64]:
        """Return the first entries."""
        self.orders.append((weights, count, label))
        return np.arange(count, dtype=np.int64)

    def random_order(self, size: int, label: str) -> NDArray[np.int64]:
        """Return the rows as they are."""
        return np.arange(size)


def test_known_gumb_selects_at_full_rate_and_every_count_has_noise_of_its_own() -> None:
    """Keys are h_i e / tau with Gumbel noise; k counts take k draws of scale 2 tau / e under another label."""
    noise = RecordingNoise()
    counts = [900, 700, 40, 2]
    released = KnownGumb(CURRENCY, k=3, tau=3).run(Histogram.from_element_order(counts), noise)
    ((weights, count, selection_label),) = noise.orders
    ((inverse_scale, size, counts_label),) = noise.laplace
    assert [each * RATE for each in counts] == pytest.approx(log_weights(weights))
    assert (3, 3) == (count, size)
    assert Fraction("0.15") / 6 == inverse_scale
    assert selection_label != counts_label
    assert released.noisy_counts is not None
    assert [901, 702, 43] == released.noisy_counts.tolist()


def test_unk_gumb_gives_every_count_noise_of_its_own() -> None:
    """Two choices and one draw for each count, all under labels of their own."""
    noise = RecordingNoise()
    mechanism = UnkGumb(CURRENCY, k=2, d_bar=3, tau=3)
    released = mechanism.run(Histogram.from_element_order([900, 700, 40, 2]), noise)
    labels = [label for *_, label in noise.orders] + [label for *_, label in noise.laplace]
    assert 3 == len(set(labels)) == len(labels)
    assert released.noisy_counts is not None
    assert [901, 702] == released.noisy_counts.tolist()
