"""Every public function refuses bad input by name and takes the edges of good input: one table for all mechanisms."""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dp_service.mechanisms import Currency, Histogram, KnownGumb, KnownLap, Selection, UnkGumb, UnkLap
from dp_service.mechanisms.intervals import (
    fresh_noise_interval,
    gaussian_half_width,
    gaussian_noise_interval,
    noise_half_width,
    thresholded_interval,
)
from dp_service.mechanisms.selection import selection_thresholds
from dp_service.noise import KeyedNoise, KeyedStream
from tests.support.some import some

USUAL: dict[str, Any] = {
    "currency": Currency(Fraction("0.15"), Fraction("1e-10")),
    "parameters": Currency(Fraction("0.15"), Fraction("1e-10")),
    "k": 2,
    "d_bar": 3,
    "delta_l0": 1,
    "tau": 1,
}
MECHANISMS: list[type[Any]] = [
    KnownLap,
    KnownGumb,
    UnkLap,
    UnkGumb,
]
NUMBERS = ("k", "d_bar", "delta_l0", "tau")
NO_NUMBERS = [0, -1, True, 1.0, math.nan, "2", None, 2**53 + 1, Fraction(1)]


def fields_of(mechanism: type[Any]) -> set[str]:
    """Return the usual parameters that a mechanism has."""
    return {field.name for field in dataclasses.fields(mechanism)} & set(USUAL)


def built(mechanism: type[Any], **changes: Any) -> Any:
    """Return a mechanism with usual parameters but for some."""
    return mechanism(**{name: USUAL[name] for name in fields_of(mechanism)} | changes)


def noise() -> KeyedNoise:
    """Return a fresh source."""
    return KeyedNoise(KeyedStream(bytes(32)))


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_number_is_checked_by_name(mechanism: type[Any], value: object) -> None:
    """Zero, negative, a bool, a float, NaN, text, nothing, beyond 2^53, a Fraction: none is a number of anything."""
    for name in some(fields_of(mechanism) & set(NUMBERS)):
        with pytest.raises(ValueError, match=f"{name} must be a positive integer of at most"):
            built(mechanism, **{name: value})


@pytest.mark.parametrize("mechanism", [each for each in MECHANISMS if "d_bar" in fields_of(each)])
def test_d_bar_is_limited_by_memory(mechanism: type[Any]) -> None:
    """Ten million rows are the most, and may be asked for."""
    with pytest.raises(
        ValueError, match="d_bar must be a positive integer of at most 10000000, got 10000001"
    ):
        built(mechanism, d_bar=10**7 + 1)
    assert built(mechanism, d_bar=10**7).d_bar == 10**7


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**12), Fraction(1, 10**100), Fraction(10**6)])
def test_an_epsilon_without_a_drawable_scale_is_refused(mechanism: type[Any], epsilon: Fraction) -> None:
    """Noise beyond a scale of 10^9, or below 10^-3, is refused when the mechanism is made or first needs it."""
    currency = Currency(epsilon, Fraction("1e-10"))
    name = "currency" if "currency" in fields_of(mechanism) else "parameters"
    with pytest.raises(
        ValueError,
        match=r"epsilon_per( must be below 1/5"
        r"|, tau and delta_l0 must give a noise scale from 1/1000 to 1000000000, got ([1-9]|an infinite one))",
    ):
        built(mechanism, **{name: currency}).run(Histogram.from_element_order([5, 4, 3, 2]), noise())


@pytest.mark.parametrize(
    ("epsilon_per", "delta", "message"),
    [
        (Fraction(0), Fraction(1, 2), "epsilon_per must be a positive Fraction"),
        (Fraction(-1, 2), Fraction(1, 2), "epsilon_per must be a positive Fraction"),
        (0.15, Fraction(1, 2), "epsilon_per must be a positive Fraction"),
        (math.nan, Fraction(1, 2), "epsilon_per must be a positive Fraction"),
        (1, Fraction(1, 2), "epsilon_per must be a positive Fraction"),
        (Fraction(2**513), Fraction(1, 2), "epsilon_per must have a numerator and a denominator"),
        (Fraction(1), Fraction(1, 2**600), "delta must have a numerator and a denominator"),
        (Fraction(1), Fraction(0), "delta must be a positive Fraction"),
        (Fraction(1), 1e-10, "delta must be a positive Fraction"),
        (Fraction(1), Fraction(1), "delta must be below 1"),
        (Fraction(1), Fraction(3, 2), "delta must be below 1"),
    ],
)
def test_a_currency_is_exact_and_in_range(epsilon_per: Any, delta: Any, message: str) -> None:
    """Floats are refused too: 0.15 is not 15 hundredths."""
    with pytest.raises(ValueError, match=message):
        Currency(epsilon_per, delta)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([2**53 + 1], "counts must be from 0 to 2"),
        ([2**64], "counts must be"),
        ([10**30], "counts must be"),
        ([-1], "counts must be from 0 to 2"),
        ([math.nan], "counts must be integers"),
        ([math.inf], "counts must be integers"),
        ([1.5], "counts must be integers"),
        ([1.0], "counts must be integers"),
        ([True], "counts must be integers"),
        (["1"], "counts must be integers"),
        ([None], "counts must be integers"),
        (np.array([2**64 - 1], dtype=np.uint64), "counts must be from 0 to 2"),
        ([[1]], "counts must be one-dimensional"),
        (7, "counts must be one-dimensional"),
    ],
)
def test_counts_that_are_none_never_reach_a_mechanism(counts: Any, message: str) -> None:
    """The one door of histograms refuses them by name."""
    with pytest.raises(ValueError, match=message):
        Histogram.from_element_order(counts)


EDGES: dict[str, list[int]] = {
    "all counts equal": [7, 7, 7, 7],
    "all zero": [0, 0, 0, 0],
    "largest counts": [2**53, 2**53, 2**53 - 1, 2**53],
    "one element beyond the rest": [2**53, 0, 0, 0],
}


@pytest.mark.parametrize("counts", EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_edges_are_histograms_like_any_other(mechanism: type[Any], counts: list[int]) -> None:
    """Every mechanism releases each element at most once, with as many counts as elements or none."""
    selection = built(mechanism).run(Histogram.from_element_order(counts), noise())
    assert np.unique(selection.indices).size == selection.indices.size <= len(counts)
    assert selection.noisy_counts is None or selection.noisy_counts.shape == selection.indices.shape


@pytest.mark.parametrize("mechanism", [KnownLap, UnkLap, UnkGumb])
def test_an_empty_histogram_releases_nothing(mechanism: type[Any]) -> None:
    """Nobody there: no element, and bottom where there is one."""
    assert built(mechanism).run(Histogram.from_element_order([]), noise()).indices.tolist() == []


def test_k_may_be_the_whole_domain_and_no_more() -> None:
    """k = d is a ranking of everything; an empty domain has no top k."""
    whole = built(KnownGumb, k=4).run(Histogram.from_element_order([5, 0, 5, 1]), noise())
    assert sorted(whole.indices.tolist()) == [0, 1, 2, 3]
    for counts in ([], [1]):
        with pytest.raises(
            ValueError, match=f"k must be at most the size of the domain, {len(counts)}, got 2"
        ):
            built(KnownGumb).run(Histogram.from_element_order(counts), noise())


def test_k_is_at_most_d_bar() -> None:
    """More elements than are looked at cannot be asked for."""
    with pytest.raises(ValueError, match="k must be at most d_bar = 3, got 4"):
        built(UnkGumb, k=4)


RATE, ALPHA = Fraction(3, 40), Fraction(1, 20)
ONE = np.array([5])
LEVELS: list[Callable[[Fraction], object]] = [
    lambda alpha: noise_half_width(RATE, alpha),
    lambda alpha: gaussian_half_width(Fraction(4), alpha),
    lambda alpha: fresh_noise_interval(ONE, RATE, alpha=alpha, minimum=0),
    lambda alpha: gaussian_noise_interval(ONE, Fraction(4), alpha=alpha, minimum=0),
    lambda alpha: thresholded_interval(ONE, ONE, RATE, alpha=alpha, minimum=0),
]


@pytest.mark.parametrize("alpha", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(3, 2)])
@pytest.mark.parametrize("interval", LEVELS)
def test_a_level_lies_strictly_between_0_and_1(
    interval: Callable[[Fraction], object], alpha: Fraction
) -> None:
    """A caller that asks for certainty gets an error and not an endless search."""
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1"):
        interval(alpha)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1), Fraction(10**4), Fraction(1, 10**10)])
def test_intervals_are_for_noise_that_can_be_drawn(rate: Fraction) -> None:
    """A scale that no mechanism has is refused."""
    for ask in (
        lambda: noise_half_width(rate, ALPHA),
        lambda: fresh_noise_interval(ONE, rate, alpha=ALPHA, minimum=0),
        lambda: thresholded_interval(ONE, ONE, rate, alpha=ALPHA, minimum=0),
    ):
        with pytest.raises(ValueError, match="noise scale"):
            ask()


@pytest.mark.parametrize("released", [0, 2])
def test_thresholds_of_nothing_are_nothing(released: int) -> None:
    """An empty release has no thresholds, and neither has one that is cut to none."""
    counts = np.arange(released, 0, -1, dtype=np.int64)
    thresholds = selection_thresholds(
        Selection(counts.copy(), counts, True, bottom=5), 3 if not released else 0
    )
    assert thresholds is not None
    assert thresholds.size == 0


@pytest.mark.parametrize(
    ("mechanism", "released", "ended_in_bottom"),
    [
        (KnownLap, -1, False),
        (KnownLap, 1, True),
        (KnownGumb, 1, False),
        (KnownGumb, 2, True),
        (UnkLap, -1, True),
        (UnkLap, 4, True),
        (UnkGumb, -1, True),
        (UnkGumb, 3, False),
        (UnkGumb, 2, True),
        (UnkGumb, 1, False),
    ],
)
def test_what_cannot_come_out_has_no_price(
    mechanism: type[Any], released: int, ended_in_bottom: bool
) -> None:
    """Cost is a function of outcomes, and these are none."""
    with pytest.raises(ValueError, match="released and ended_in_bottom must be an outcome"):
        built(mechanism).cost(released, ended_in_bottom)


@pytest.mark.parametrize("mechanism", [UnkLap, UnkGumb])
def test_more_rows_than_the_limit_are_refused(mechanism: type[Any]) -> None:
    """They are another query's."""
    rows = Histogram.from_element_order([9, 8, 7, 6, 5])
    with pytest.raises(ValueError, match=r"counts must have at most d_bar \+ 1 = 4 rows, got 5"):
        built(mechanism).run(rows, noise())
