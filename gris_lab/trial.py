"""One answer of each query on its owner's data, as everybody would get it, with noise that is thrown away."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from gris_lab.workload import Answered
from pinot_connector.audiences import Audience
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import Engine
from pinot_connector.errors import GrisError
from pinot_connector.questions import sql_question
from pinot_connector.results import PrivateResult
from pinot_connector.shown_values import AggregateValue
from pinot_connector.sync_client import PrivateClient

# More than all queries of a file can cost.
_BUDGET = (
    "accounts: [{path: [trial], limit: {information: 1000000000000, calls: 1000000000000}, window: never}]\n"
)


@dataclass(frozen=True)
class Trial:
    """How good one answer was.

    Attributes:
        found: How many elements it has; 1 of a total.
        asked: How many elements were asked for; 0: all of them.
        within: The middle one of its numbers is within so large a part of itself, with 95 %; NaN: it has no numbers.
        problem: Why there is no answer; empty: there is one.
    """

    found: int
    asked: int
    within: float
    problem: str = ""


def trials(
    found: Sequence[Answered], policy: Path, engine: Engine, audience: Audience | None
) -> dict[int, Trial]:
    """Return how good an answer of each paid query is, by its line; the services run as long as that takes.

    Key, ledger and releases are in a folder that is removed: no answer can be asked for again.

    Raises:
        GrisError: A service does not start.
    """
    with tempfile.TemporaryDirectory(prefix="gris-trial-") as folder:
        budget = Path(folder, "budget.yaml")
        budget.write_text(_BUDGET, encoding="ascii")
        with (
            EmbeddedServices(policy=policy, budget_config=budget, directory=Path(folder, "kept")) as services,
            PrivateClient(
                dp=services.dp_address,
                budget=services.budget_address,
                account="trial",
                engine=engine,
                audience=audience,
            ) as client,
        ):
            return {each.query.line: _tried(client, each) for each in found if each.cost is not None}


def _tried(client: PrivateClient, each: Answered) -> Trial:
    try:
        return _trial_of(client.ask(sql_question(each.query.text)))
    except GrisError as error:
        return Trial(0, 0, math.nan, str(error))


def _trial_of(result: PrivateResult) -> Trial:
    parts = sorted(_parts(result))
    asked = result.requested_k or result.parameters.k or 0
    return Trial(len(result.rows), asked, statistics.median(parts) if parts else math.nan)


def _parts(result: PrivateResult) -> Iterator[float]:
    """Yield how far each number may be off, as a part of it."""
    # The interval of a quantile is a cell, and says nothing of noise.
    has_values = result.parameters.quantiles is None
    for row in result.rows:
        if row.interval is not None and row.noisy_count:
            yield _part(row.noisy_count, *row.interval)
        for each in row.values:
            if has_values and isinstance(each, AggregateValue) and each.value:
                yield _part(each.value, *each.interval)


def _part(number: float | Fraction, lower: float | Fraction, upper: float | Fraction) -> float:
    return float(upper - lower) / 2 / abs(float(number))
