"""The keyed source that mechanisms draw from."""

from fractions import Fraction

import numpy as np
import pytest

from dp_service.noise import KeyedNoise, KeyedStream, LogWeights

ONE = Fraction(1)
WEIGHTS = LogWeights(ONE, np.zeros(50, dtype=np.int64))


def keyed_noise(seed: bytes = bytes(32)) -> KeyedNoise:
    """Return a fresh source for a seed."""
    return KeyedNoise(KeyedStream(seed))


def test_draws_of_one_label_do_not_depend_on_those_of_another() -> None:
    """The counts are the same whether or not something was selected before."""
    alone, after_selection = keyed_noise(), keyed_noise()
    after_selection.gumbel_order(WEIGHTS, 3, "selection")
    expected = alone.discrete_laplace(ONE, 50, "counts").tolist()
    assert expected == after_selection.discrete_laplace(ONE, 50, "counts").tolist()


def test_other_seeds_and_labels_give_other_draws() -> None:
    """Nothing is shared between two releases, nor between two parts of one."""
    base = keyed_noise().discrete_laplace(ONE, 50, "a").tolist()
    assert base != keyed_noise(bytes(range(32))).discrete_laplace(ONE, 50, "a").tolist()
    assert base != keyed_noise().discrete_laplace(ONE, 50, "b").tolist()


def test_a_label_can_be_drawn_from_only_once() -> None:
    """Drawing twice under one label would reuse its random words, so it is refused by name."""
    noise = keyed_noise()
    noise.discrete_laplace(ONE, 1, "counts")
    with pytest.raises(ValueError, match="label 'counts' has been drawn from already"):
        noise.gumbel_order(WEIGHTS, 1, "counts")
    with pytest.raises(ValueError, match="label 'counts' has been drawn from already"):
        noise.discrete_gaussian(ONE, 1, "counts")
