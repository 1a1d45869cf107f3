"""What is said of a question or of an answer: sentences that every surface lays out, and none makes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

_LARGEST_DENOMINATOR = 1000


@dataclass(frozen=True)
class Statement:
    """One sentence, true of the release that it stands beside.

    It holds numbers of the policy, of the question and of what was released, and names of tables and columns; no
    element, no value that a condition compares with, no alias, no account.

    Attributes:
        code: What it says, for programs: its subject and what is said of that, such as `counts.bounded`. Codes that
            begin with `method` say how numbers are made, all others what they mean.
        text: The sentence, for people.
        column: The column of the policy that it is of; empty: it is of no single one.
        values: The numbers in it, as texts.
    """

    code: str
    text: str
    column: str = ""
    values: tuple[str, ...] = ()


def written(number: Fraction) -> str:
    """Return a number of a policy: exactly where it is short, else with six decimal places."""
    return str(number) if number.denominator <= _LARGEST_DENOMINATOR else f"{float(number):.6f}"


def short(number: Fraction) -> str:
    """Return a number of a column: exactly where it is whole, else with twelve digits."""
    return str(number) if number.denominator == 1 else f"{float(number):.12g}"


def brief(number: Fraction) -> str:
    """Return a number of a grid: exactly where it is whole, else with six digits."""
    return str(number) if number.denominator == 1 else f"{float(number):.6g}"


def percent(part: Fraction) -> str:
    """Return a part of all, exactly: a confidence is a decimal number strictly below 1, and is not rounded to it."""
    hundredfold = 100 * part
    return f"{Decimal(hundredfold.numerator) / Decimal(hundredfold.denominator):f} %"


def units(number: Fraction) -> str:
    """Return a number of units."""
    return f"{written(number)} units"


def calls(number: int) -> str:
    """Return a number of calls."""
    return "1 call" if number == 1 else f"{number} calls"


def elements(number: int) -> str:
    """Return a number of elements."""
    return "1 element" if number == 1 else f"{number} elements"
