"""An explanation as rows of two texts: what people are shown before a question is asked."""

from __future__ import annotations

from collections.abc import Iterator

from pinot_connector import formats
from pinot_connector.results import Explanation
from pinot_connector.statements import Statement

VERDICT, PRICE = "accuracy.verdict", "method.cost"
MOST_SENTENCES = 5
_FIRST = (
    "question",
    "intervals.at_least",
    "intervals.noise",
    "list.lowered",
    "rows.audience",
    "rows.usual",
    "quantiles.rank",
    "accuracy.threshold",
    "accuracy.other_prices",
    "accuracy.price",
    "accuracy.width",
)
"""What a person who asks has to know beforehand, the most important first; anything else comes after it."""


def leading(explanation: Explanation) -> list[Statement]:
    """Returns the few sentences that a person reads beside the verdict and the price, in the order that they have.

    How numbers are made, and that the price is the same in all cases, is left out.
    """
    said = [
        each
        for each in explanation.statements
        if not each.is_method and each.code != VERDICT and (each.code != "accuracy.price" or each.values)
    ]
    ranked = sorted(said, key=lambda each: _FIRST.index(each.code) if each.code in _FIRST else len(_FIRST))
    return [each for each in said if each in ranked[:MOST_SENTENCES]]


def explanation_rows(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """Yields what is said and what it says: verdict, worst-case cost, the share of the budget, a few sentences."""
    cost = explanation.worst_case_cost
    yield from (("verdict", each.text) for each in explanation.statements if each.code == VERDICT)
    yield "information units, at most", str(cost.information)
    yield "calls, at most", str(cost.calls)
    if (share := explanation.narrowest) is not None:
        yield f"{share.unit} of {share.name}", formats.share(share)
    yield from (("explanation", each.text) for each in leading(explanation))
