"""An explanation as rows of two texts: what programs show before a question is asked."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from pinot_connector.budgets import Mode, Share
from pinot_connector.results import Explanation


def explanation_rows(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """Yields what is said and what it says: mechanism, worst-case cost, its shares of the budget, and sentences."""
    cost = explanation.worst_case_cost
    yield "mechanism", explanation.parameters.mechanism.value
    yield "information units, at most", str(cost.information)
    yield "calls, at most", str(cost.calls)
    for share in explanation.shares:
        yield f"{share.unit} of {'/'.join(share.path)}", _share(share)
    for sentence in explanation.sentences:
        yield "explanation", sentence


def _share(share: Share) -> str:
    part = "" if share.of_limit is None else f" ({_percent(share.of_limit)} of the limit {share.limit})"
    tracked = ", which is recorded and refuses nothing" if share.mode is Mode.TRACK else ""
    return f"{share.cost} of {share.remaining} that are left{part}{tracked}"


def _percent(part: Fraction) -> str:
    return f"{float(100 * part):.3g} %"
