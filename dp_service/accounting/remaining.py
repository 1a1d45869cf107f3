"""How many more questions a budget pays for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.checks import require_units


@dataclass(frozen=True)
class Units:
    """An amount of both units of a budget: what is left, or what a question costs."""

    information: int
    calls: int

    def __post_init__(self) -> None:
        require_units("information", self.information)
        require_units("calls", self.calls)


def questions_left(remaining: Units, price: Units) -> int:
    """Return how many questions of this price can certainly still be asked, whatever they cost in the end.

    A question is refused unless its worst case fits, so `price` is its worst-case cost for a promise. Raises ValueError
    for a price of nothing, which pays for endlessly many.
    """
    return _how_many(remaining, Fraction(price.information), Fraction(price.calls))


def questions_expected(remaining: Units, past: Sequence[Units]) -> int:
    """Return how many more questions the budget pays for if they cost what the account's past ones did on average.

    Raises ValueError if nothing was ever paid.
    """
    information = sum(each.information for each in past)
    calls = sum(each.calls for each in past)
    number = max(1, len(past))
    return _how_many(remaining, Fraction(information, number), Fraction(calls, number))


def _how_many(remaining: Units, information: Fraction, calls: Fraction) -> int:
    pairs = ((remaining.information, information), (remaining.calls, calls))
    lasting = [left // price for left, price in pairs if price > 0]
    if not lasting:
        raise ValueError("price must be above zero in one of the units")
    return min(lasting)
