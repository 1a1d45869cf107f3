"""Parameters out of range are refused by name, before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.bounded import (
    BoundGauss,
    ContributionBound,
    Counted,
    Shift,
    TwoLooks,
)
from dp_service.mechanisms.bounded.selected_intervals import selected_gaussian_interval
from dp_service.mechanisms.bounded.sum_intervals import WeightedNoise, sum_interval
from dp_service.noise import KeyedNoise, KeyedStream

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
BOUND = ContributionBound(32)
LAW = WeightedNoise((1,), (Fraction(4),))
HALF = Fraction(1, 2)


def two_looks(units: int, names_units: Fraction, most_names: int = 5, min_count: int = 1) -> TwoLooks:
    """Return two looks of which only these parameters vary."""
    return TwoLooks(CURRENCY, units, names_units, BOUND, BOUND, min_count, most_names)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ContributionBound(0), "typical"),
        (lambda: ContributionBound(-1), "typical"),
        (lambda: ContributionBound(True), "typical"),
        (lambda: ContributionBound(1, tau=0), "tau"),
        (lambda: ContributionBound(1, tau=2), "tau must be 1 where distinct members"),
        (lambda: ContributionBound(1, periods=0), "periods"),
        (lambda: BoundGauss(CURRENCY, Fraction(0), BOUND, 1), "units"),
        (lambda: BoundGauss(CURRENCY, Fraction(-3), BOUND, 1), "units"),
        (lambda: BoundGauss(CURRENCY, 20, BOUND, 1), "units must be a positive Fraction"),  # type: ignore[arg-type]
        (lambda: BoundGauss(CURRENCY, Fraction(1), BOUND, 0), "min_count"),
        (lambda: BoundGauss(CURRENCY, Fraction(1), BOUND, -1), "min_count"),
        (lambda: BoundGauss(CURRENCY, Fraction(1), ContributionBound(2**53), 1), "typical, tau and periods"),
        (
            lambda: BoundGauss(CURRENCY, Fraction(1), ContributionBound(1, 2**27, 1, Counted.EVENTS), 1),
            "typical, tau and periods",
        ),
        (lambda: two_looks(0, Fraction(1)), "units"),
        (lambda: two_looks(5, Fraction(0)), "names_units"),
        (lambda: two_looks(5, Fraction(5)), "names_units must be below units"),
        (lambda: two_looks(5, Fraction(2), most_names=0), "most_names"),
        (lambda: two_looks(5, Fraction(2), min_count=0), "min_count"),
        (lambda: Shift(CURRENCY, Fraction(0), ContributionBound(4), 4), "units"),
        (lambda: Shift(CURRENCY, Fraction(1), ContributionBound(4), 0), "domain_size"),
        (
            lambda: Shift(CURRENCY, Fraction(1), ContributionBound(5), 4),
            "typical must be domain_size",
        ),
        (lambda: Shift(CURRENCY, Fraction(1), ContributionBound(4, periods=2), 4), "periods"),
        (
            lambda: Shift(CURRENCY, Fraction(1), ContributionBound(2, 3, 1, Counted.EVENTS), 4),
            "typical must be domain_size",
        ),
        (lambda: WeightedNoise((1, 2), (Fraction(1),)), "weights"),
        (lambda: WeightedNoise((0,), (Fraction(1),)), "weights"),
        (lambda: WeightedNoise((1, 10**6), (Fraction(100), Fraction(100))), "weights must give a sum"),
        (lambda: sum_interval(LAW, 3, 1, alpha=Fraction(0), minimum=0), "alpha"),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(make: Callable[[], object], message: str) -> None:
    """The message says which."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("counts", [[1, 2], [1, 2, 3, 4]])
def test_the_shift_takes_the_whole_domain(counts: list[int]) -> None:
    """Absent elements count 0, and there are no others."""
    shift = Shift(CURRENCY, Fraction(1), ContributionBound(3), 3)
    with pytest.raises(ValueError, match="histogram must have 3 elements"):
        shift.run(Histogram.from_element_order(counts), 3, KeyedNoise(KeyedStream(bytes(32))))


@pytest.mark.parametrize("total", [-1, 2**53 + 1, 1.0])
def test_the_total_is_a_count(total: int) -> None:
    """No float and nothing negative."""
    shift = Shift(CURRENCY, Fraction(1), ContributionBound(2), 2)
    with pytest.raises(ValueError, match="total must be an integer"):
        shift.run(Histogram.from_element_order([1, 2]), total, KeyedNoise(KeyedStream(bytes(32))))


@pytest.mark.parametrize(
    ("noisy", "thresholds", "message"), [([5], [6], "below"), ([5, 6], [5], "one entry for each")]
)
def test_noisy_counts_fit_their_thresholds(noisy: list[int], thresholds: list[int], message: str) -> None:
    """What is shown has reached its threshold."""
    with pytest.raises(ValueError, match=message):
        selected_gaussian_interval(
            np.array(noisy, dtype=np.int64),
            np.array(thresholds, dtype=np.int64),
            Fraction(4),
            alpha=HALF,
            minimum=0,
        )
