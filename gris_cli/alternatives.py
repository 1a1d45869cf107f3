"""The ways of answering between which a policy lets the service choose, side by side."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from gris_cli.terminal import grid
from pinot_connector import formats
from pinot_connector.parameters import Parameters
from pinot_connector.results import Alternative, Explanation

_FINDS = {True: "yes", False: "no", None: "nothing is expected"}


def alternatives_table(explanation: Explanation) -> Table | None:
    """Return what each way costs at most and finds, and which one answers; None: the policy leaves no choice."""
    if not explanation.alternatives:
        return None
    heads = ("", "answered by", "at most", "found from (95 %)", "off by", "finds all")
    return grid(heads, map(_cells, explanation.alternatives))


def _cells(alternative: Alternative) -> Iterator[str]:
    expected = alternative.accuracy
    yield "chosen" if alternative.chosen else ""
    yield way_of(alternative.parameters)
    yield formats.cost(alternative.worst_case_cost)
    yield expected.found_text or "any count"
    yield "" if expected.mean_error is None else f"{expected.mean_error:.3g}"
    yield _FINDS[alternative.finds_all]


def way_of(parameters: Parameters) -> str:
    """Return a way of answering in a few words."""
    if parameters.bounded is None:
        return parameters.mechanism.value
    delta_0 = parameters.bounded.contributions.delta_0
    if parameters.names_look is not None:
        return f"two looks, Delta {parameters.names_look.delta_1} and {delta_0}"
    shifted = "" if parameters.shift is None else ", relative to the total"
    return f"one look, Delta {delta_0}{shifted}"
