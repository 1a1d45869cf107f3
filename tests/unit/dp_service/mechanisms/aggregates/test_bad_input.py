"""Parameters out of range are refused by name, before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.aggregates import BoundMoments, ColumnSums, SumShare
from dp_service.mechanisms.bounded import ContributionBound
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.values.bounds import Clamp
from tests.unit.dp_service.mechanisms.aggregates.member_rows import column_sums

CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
ONE = SumShare(Clamp(0, 9), HALF)


def asked(
    columns: tuple[SumShare, ...] = (ONE,), share: Fraction = HALF, units: Fraction = Fraction(5)
) -> BoundMoments:
    """Return a release of which only these parameters vary."""
    return BoundMoments(CURRENCY, units, ContributionBound(2), 1, share, columns)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: asked(()), "columns"),
        (lambda: asked(share=QUARTER), "shares must add up to 1, got 3/4"),
        (lambda: asked((ONE, ONE)), "shares must add up to 1, got 3/2"),
        (lambda: asked(share=Fraction(0)), "share must be a positive"),
        (
            lambda: asked(share=Fraction(3, 2), columns=(SumShare(Clamp(0, 9), -HALF),)),
            "share must be a positive",
        ),
        (lambda: asked(share=0.5), "share must be a positive Fraction"),  # type: ignore[arg-type]
        (lambda: asked((SumShare(Clamp(0, 9), HALF, Fraction(0)),)), "share must be a positive"),
        (lambda: asked(units=Fraction(0)), "units"),
        (lambda: asked((SumShare(Clamp(0, 2**40), HALF),)), "low, high, share and units"),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(make: Callable[[], object], message: str) -> None:
    """The message says which."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("sums", "message"),
    [
        ((), "of 1 columns"),
        ((column_sums([1]),), "one entry for each of 2"),
        ((column_sums([1, 2], [1, 2]),), "count_share"),
        ((ColumnSums(np.zeros((2, 1), dtype=np.int64)),), "one entry for each of 2"),
    ],
)
def test_sums_fit_the_groups_and_the_columns(sums: tuple[ColumnSums, ...], message: str) -> None:
    """As many as there are, and counts where there is a share for them."""
    with pytest.raises(ValueError, match=message):
        asked().run(Histogram.from_element_order([1, 2]), sums, KeyedNoise(KeyedStream(bytes(32))))


def test_a_column_with_a_share_for_its_count_must_come_with_it() -> None:
    """Otherwise what was paid for would be missing."""
    mechanism = asked((SumShare(Clamp(0, 9), QUARTER, QUARTER),))
    with pytest.raises(ValueError, match="count_share"):
        mechanism.run(
            Histogram.from_element_order([1]),
            (column_sums([1]),),
            KeyedNoise(KeyedStream(bytes(32))),
        )
