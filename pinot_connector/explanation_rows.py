"""An explanation as rows of two texts: what programs show before a question is asked."""

from __future__ import annotations

from collections.abc import Iterator

from pinot_connector import formats
from pinot_connector.results import Explanation


def explanation_rows(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """Yields what is said and what it says: verdict, mechanism, worst-case cost, shares of budgets, and sentences."""
    cost = explanation.worst_case_cost
    yield from (("verdict", each.text) for each in explanation.statements if each.code == "accuracy.verdict")
    yield "mechanism", explanation.parameters.mechanism.value
    yield "information units, at most", str(cost.information)
    yield "calls, at most", str(cost.calls)
    for share in explanation.shares:
        yield f"{share.unit} of {share.name}", formats.share(share)
    for each in explanation.statements:
        if each.code != "accuracy.verdict":
            yield "explanation", each.text
