"""Values in terms of JSON."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pinot_connector.json_values import to_json


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
