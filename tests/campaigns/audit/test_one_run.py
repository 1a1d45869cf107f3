"""The audit of one run in short: 400 canaries, one release of each question; the campaign `audit` has more of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from tests.support.rings import needs

from .estimating import FALSE_ALARM, chance_of_guesses, epsilon_of_guesses
from .one_run import COUNTS, FAULTS, GAUSSIAN, LAPLACE, RUNS, Canaries, OneRun, running_canaries

CANARIES = 400
BROKEN = [pytest.param(run, fault, id=fault) for run, faults in FAULTS.items() for fault in faults]


@pytest.fixture(scope="module")
@needs("process")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[OneRun, Canaries]]:
    """Services of each policy over tables whose coins are tossed once."""
    laplace, gaussian = (tmp_path_factory.mktemp(name) for name in ("laplace", "gaussian"))
    with (
        running_canaries(laplace, LAPLACE, CANARIES) as counted,
        running_canaries(gaussian, GAUSSIAN, CANARIES) as bounded,
    ):
        yield {COUNTS: counted} | dict.fromkeys(RUNS[GAUSSIAN], bounded)


@pytest.mark.parametrize("run", FAULTS, ids=lambda run: run.name)
def test_guesses_about_canaries_keep_the_promise(canaries: dict[OneRun, Canaries], run: OneRun) -> None:
    """No more of them are right than what is promised allows but once in 10^6 runs."""
    assert not canaries[run].guessed(run).breaks_the_promise


@pytest.mark.parametrize(("run", "fault"), BROKEN)
def test_a_broken_build_is_found_by_one_release(
    canaries: dict[OneRun, Canaries], run: OneRun, fault: str
) -> None:
    """Half the noise, noise that repeats, names that nothing hides, sums as they are: one answer gives each away."""
    assert canaries[run].guessed(run, fault).breaks_the_promise


def test_the_chance_is_that_of_the_theorem() -> None:
    """Written out: a binomial tail, and what delta adds for all canaries, at the worst number of lost guesses."""
    right, guesses, canaries, delta = 17, 20, 50, 1e-3
    accuracy = math.e / (1 + math.e)

    def exactly(correct: int) -> float:
        return math.comb(guesses, correct) * accuracy**correct * (1 - accuracy) ** (guesses - correct)

    tail = math.fsum(map(exactly, range(right, guesses + 1)))
    worst = max(math.fsum(map(exactly, range(right - lost, right))) / lost for lost in range(1, right + 1))
    for each, expected in ((0.0, tail), (delta, tail + 2 * canaries * delta * worst)):
        assert chance_of_guesses(right, guesses, canaries, epsilon=1, delta=each) == pytest.approx(expected)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomised_response_is_not_accused_and_nearly_all_is_proven(epsilon: float) -> None:
    """Of 10,000 true coins that are shown with the probability that epsilon allows."""
    are_right = np.random.default_rng(7).random(10_000) < 1 / (1 + math.exp(-epsilon))
    proven = epsilon_of_guesses(int(are_right.sum()), 10_000, 10_000, delta=0.0, error=FALSE_ALARM)
    assert 0.7 * epsilon < proven < epsilon


def test_a_few_canaries_that_delta_gives_away_prove_nothing() -> None:
    """A mechanism that shows each with probability delta, and says nothing of the others, is (0, delta)-DP."""
    shown, canaries = 10, 1_000
    assert epsilon_of_guesses(shown, shown, canaries, delta=shown / canaries, error=FALSE_ALARM) == 0
    assert epsilon_of_guesses(shown, shown, canaries, delta=0.0, error=0.05) > 1
