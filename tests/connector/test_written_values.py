"""Numbers as tables, notebooks, lines and JSON show them."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_connector.formats import written
from pinot_connector.json_values import to_json

NUMBERS = st.fractions(min_value=-(10**18), max_value=10**18, max_denominator=10**12)


@given(NUMBERS, NUMBERS, st.fractions(0, 1))
def test_what_is_written_holds_the_interval_and_the_value(
    one: Fraction, other: Fraction, part: Fraction
) -> None:
    """However large, small or narrow they are."""
    lower, upper = min(one, other), max(one, other)
    value = lower + part * (upper - lower)
    number, below, above = map(Fraction, written(value, (lower, upper)))
    assert below <= lower <= upper <= above
    assert below <= number <= above
    # Not much wider than it is.
    assert above - below <= upper - lower + max(Fraction(1, 50), (upper - lower) / 5)


@pytest.mark.parametrize(
    ("value", "lower", "upper", "shown"),
    [
        ("900004.9971", "900004.9947", "900004.9995", ("900004.9971", "900004.9947", "900004.9995")),
        ("0.0029", "0.00281", "0.00299", ("0.00290", "0.00281", "0.00299")),
        ("17/3", "16/3", "6", ("5.67", "5.33", "6")),
        ("-17/3", "-6", "-16/3", ("-5.67", "-6", "-5.33")),
        ("12", "12", "12", ("12", "12", "12")),
        ("1234567.5", "1234560", "1234575", ("1234567.50", "1234560", "1234575")),
        ("0.0099", "0.0099", "0.0099", ("0.0099", "0.0099", "0.0099")),
    ],
)
def test_numbers_have_the_decimals_that_show_their_interval(
    value: str, lower: str, upper: str, shown: tuple[str, str, str]
) -> None:
    """Two at least, unless there is nothing behind the point."""
    assert written(Fraction(value), (Fraction(lower), Fraction(upper))) == shown


def test_days_are_written_as_days() -> None:
    """A quantile of days has a cell of days."""
    first, last = datetime.date(2024, 1, 1), datetime.date(2024, 1, 31)
    assert written(first, (first, last)) == ("2024-01-01", "2024-01-01", "2024-01-31")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53 - 1, 2**53 - 1),
        (1 - 2**53, 1 - 2**53),
        (2**53, "9007199254740992"),
        (-(2**63), "-9223372036854775808"),
        (True, True),
        (Fraction(1, 3), "1/3"),
    ],
)
def test_integers_that_a_double_changes_are_texts(value: object, expected: object) -> None:
    """A program that reads numbers as doubles would ask for another element afterwards."""
    assert to_json(value) == expected
    assert type(to_json(value)) is type(expected)
