"""Numbers as tables, notebooks, lines and JSON show them."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_connector.coverage import AtLeast, Cell, Interval, Least, LeastAndMost, Noise, written
from pinot_connector.formats import decimals
from pinot_connector.guarantees import Guarantee
from pinot_connector.json_values import to_json

NUMBERS = st.fractions(min_value=-(10**18), max_value=10**18, max_denominator=10**12)


@given(NUMBERS, NUMBERS, st.fractions(0, 1))
def test_what_is_written_holds_the_interval_and_the_value(
    one: Fraction, other: Fraction, part: Fraction
) -> None:
    """However large, small or narrow they are."""
    lower, upper = min(one, other), max(one, other)
    value = lower + part * (upper - lower)
    shown, ends = written(value, Interval(lower, upper))
    number, below, above = (Fraction(each.replace(",", "")) for each in (shown, *ends.split(" to ")))
    assert below <= lower <= upper <= above
    assert below <= number <= above
    # Not much wider than it is.
    assert above - below <= upper - lower + max(Fraction(1, 50), (upper - lower) / 5)


@pytest.mark.parametrize(
    ("value", "lower", "upper", "shown"),
    [
        ("900004.9971", "900004.9947", "900004.9995", ("900,004.9971", "900,004.9947", "900,004.9995")),
        ("0.0029", "0.00281", "0.00299", ("0.00290", "0.00281", "0.00299")),
        ("17/3", "16/3", "6", ("5.67", "5.33", "6.00")),
        ("-17/3", "-6", "-16/3", ("-5.67", "-6.00", "-5.33")),
        ("12", "12", "12", ("12.00", "12.00", "12.00")),
        ("1234567.5", "1234560", "1234575", ("1,234,567.50", "1,234,560.00", "1,234,575.00")),
        ("0.0099", "0.0099", "0.0099", ("0.0099", "0.0099", "0.0099")),
    ],
)
def test_numbers_have_the_decimals_that_show_their_interval(
    value: str, lower: str, upper: str, shown: tuple[str, str, str]
) -> None:
    """Two at least, of all three as many."""
    found = written(Fraction(value), Interval(Fraction(lower), Fraction(upper)))
    assert found == (shown[0], f"{shown[1]} to {shown[2]}")


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (Least(Fraction("77411.04")), "at least 77,411.04"),
        (LeastAndMost(Fraction("77411.046"), Fraction("82624.001")), "at least 77,411.04, at most 82,624.01"),
        (Noise(Fraction("77411.046"), Fraction("82624.001")), "77,411.04 to 82,624.01"),
    ],
)
def test_bounds_are_rounded_outwards_and_say_what_they_are(
    ends: Least[Fraction] | LeastAndMost[Fraction] | Noise[Fraction], expected: str
) -> None:
    """A lower one is rounded down, whatever stands beside it."""
    assert written(Fraction("77504.5"), ends) == ("77,504.50", expected)


def test_counts_have_whole_ends() -> None:
    """A bound that the owner's largest cut allows for is rounded up."""
    assert written(77504, AtLeast(Fraction(1, 16)).ends(77411, 77597)) == (
        "77,504",
        "at least 77,411, at most 82,771",
    )
    assert written(77504, AtLeast().ends(77411, 77597)) == ("77,504", "at least 77,411")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1200", ("1,200", "1,150", "1,260")),
        ("1200.5", ("1,200", "1,150", "1,260")),
        ("-1200", ("-1,200", "-1,250", "-1,140")),
    ],
)
def test_numbers_of_a_column_of_whole_numbers_have_no_decimals(value: str, shown: tuple[str, ...]) -> None:
    """Where the interval is wide: half a step of a sum says nothing there."""
    ends = (round(Fraction(value)) - 50, round(Fraction(value)) + 60)
    found = written(Fraction(value), Interval(Fraction(ends[0]), Fraction(ends[1])), 0)
    assert found == (shown[0], f"{shown[1]} to {shown[2]}")
    narrow = Interval(Fraction(value) - 1, Fraction(value) + 1)
    assert ("." in written(Fraction(value), narrow, 0)[0]) is (Fraction(value).denominator > 1)


def test_a_column_has_the_decimals_of_its_quantum() -> None:
    """Cents have two, and so have quarters; whole numbers have none."""
    assert list(map(decimals, map(Fraction, ("1/100", "1/4", "1", "5", "1/2")))) == [2, 2, 0, 0, 1]


def test_days_are_written_as_days() -> None:
    """A quantile of days has a cell of days."""
    first, last = datetime.date(2024, 1, 1), datetime.date(2024, 1, 31)
    assert written(first, Cell(first, last)) == ("2024-01-01", "2024-01-01 to 2024-01-31")


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


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (1.0, 1e-9, "is wrong at least 26 % of the time; who only guesses, 50 %."),
        (0.0, 0.0, "is wrong at least 50 % of the time"),
        (5.0, 7e-9, "is wrong at least 0.66 % of the time"),
        (33.8, 7e-9, "rules out little"),
        (1e6, 0.5, "rules out little"),
        (0.1, 1.0, "rules out little"),
    ],
)
def test_a_guarantee_is_explained_by_how_often_a_guess_is_wrong(
    epsilon: float, delta: float, said: str
) -> None:
    """At least (1 - delta) / (1 + e^epsilon), never said to be more."""
    assert said in Guarantee(epsilon, delta).meaning
