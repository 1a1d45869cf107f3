"""The auditor is audited: it is quiet about noise of the right scale and finds a scale that is 30 % too small."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dp_service.noise import KeyedNoise, KeyedStream

from .estimating import Event, lower_bound, proven_delta, upper_bound

TRIALS = 3000
EVENTS = [Event(f"at least {t}", lambda value, t=t: value >= t) for t in range(-3, 5)]  # type: ignore[misc]


def noisy(count: int, rate: Fraction, seed: int) -> list[int]:
    """Return a count with fresh discrete Laplace noise, many times."""
    stream = KeyedStream(seed.to_bytes(32, "big"))
    drawn = KeyedNoise(stream).discrete_laplace(rate, TRIALS, "audit")
    return [int(count + noise) for noise in drawn]


def finding_at(scale: Fraction, seed: int) -> float:
    """Return what is proven of counts 1 and 0 with noise that is promised to be 1-DP, at this multiple of its scale."""
    with_member, without_member = noisy(1, 1 / scale, 2 * seed), noisy(0, 1 / scale, 2 * seed + 1)
    return proven_delta(with_member, without_member, EVENTS, epsilon=1.0, delta=0.0).proven_delta


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_right_scale_is_not_accused(seed: int) -> None:
    """Noise of scale 1 is 1-DP, exactly so: nothing is proven, though the promise has no slack."""
    assert finding_at(Fraction(1), seed) <= 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_scale_that_is_30_percent_off_is_rejected(seed: int) -> None:
    """At 0.7 of its scale the loss is 1.43 where 1 is promised, and 3000 answers of each table prove it."""
    assert finding_at(Fraction(7, 10), seed) > 0


def test_the_proven_epsilon_is_below_the_true_one_and_not_far() -> None:
    """Of a true loss of 1, and of 0.5 at noise of twice the scale, some 3000 answers prove most but never all."""
    for scale, true_loss in ((Fraction(1), 1.0), (Fraction(2), 0.5)):
        answers = noisy(1, 1 / scale, 8), noisy(0, 1 / scale, 9)
        proven = proven_delta(*answers, EVENTS, epsilon=1.0, delta=0.0).proven_epsilon
        assert 0.5 * true_loss < proven < true_loss


@pytest.mark.parametrize(("seen", "trials"), [(0, 10), (3, 10), (10, 10), (250, 1000)])
@pytest.mark.parametrize("error", [0.05, 1e-6])
def test_bounds_are_those_of_clopper_and_pearson(seen: int, trials: int, error: float) -> None:
    """At the lower bound so many or more, at the upper one so many or fewer, have just the stated probability."""

    def probability_of(counts: range, p: float) -> float:
        return math.fsum(math.comb(trials, n) * p**n * (1 - p) ** (trials - n) for n in counts)

    low, high = lower_bound(seen, trials, error), upper_bound(seen, trials, error)
    assert low <= seen / trials <= high
    assert seen == 0 or probability_of(range(seen, trials + 1), low) == pytest.approx(error, rel=1e-6)
    assert seen == trials or probability_of(range(seen + 1), high) == pytest.approx(error, rel=1e-6)


def test_an_impossible_answer_is_no_estimate() -> None:
    """What the smaller table cannot show is known to have probability 0 there; seeing it is a mistake of the audit."""
    shown = [Event("shown", bool, impossible_without=True)]
    assert proven_delta([True] * 90 + [False], [False] * 91, shown, epsilon=9, delta=0.0).proven_delta > 0.8
    with pytest.raises(ValueError, match="shown was seen where it was said to be impossible"):
        proven_delta([True], [True], shown, epsilon=9, delta=0.0)
