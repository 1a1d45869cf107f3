"""How many more questions a budget pays for."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Return how many questions of this price can still be asked, one after the other.

    A question is refused unless its worst case fits, so the worst-case cost as `price` gives a number that is certain.
    Raises ValueError for a price of nothing, which pays for endlessly many.
    """
    pairs = ((remaining.information, price.information), (remaining.calls, price.calls))
    lasting = [left // each for left, each in pairs if each > 0]
    if not lasting:
        raise ValueError("price must be above zero in one of the units")
    return min(lasting)
