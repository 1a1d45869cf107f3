"""The short form of the campaign `pinot_stream`: a server is killed and brought back under a stream of questions."""

from __future__ import annotations

import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType, EngineAnswer, EngineQuery, ExpectedColumn
from tests.campaigns.pinot_stream import Totals, Witness, running_services, stream


@pytest.mark.nightly
async def test_a_server_killed_under_a_stream_of_questions_changes_no_answer_and_loses_no_budget(
    loaded_pinot: PinotCluster,
) -> None:
    """Answers are whole or there are none; failures have our names; the ledger holds what the answers cost."""
    with running_services() as services:
        totals = await stream(loaded_pinot, services, answers=100, kills=1)
    assert totals.is_sound
    assert totals.answered > 0
    assert totals.asked == totals.answered + sum(totals.failures.values())
    assert (
        {"IncompleteAnswer"}
        <= set(totals.failures)
        <= {"IncompleteAnswer", "EngineUnavailable", "DataChanged"}
    )


class _Wavering:
    """An engine that confirms two different answers to one query."""

    dialect = "pinot"

    def __init__(self) -> None:
        self._counts = iter([[5], [4]])

    def data_version(self, table: str) -> str:
        return table

    def check(self, query: EngineQuery) -> None:
        """Be able to do anything."""

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        return EngineAnswer((["x"],), next(self._counts), data_version)

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        """Confirm anything."""

    def close(self) -> None:
        """Have nothing to close."""


@pytest.mark.slow
def test_the_stream_notices_a_wrong_answer_and_a_ledger_that_is_off() -> None:
    """What looks for faults finds them."""
    witness = Witness(_Wavering())
    query = EngineQuery("t", "SELECT", (ExpectedColumn("d0", ColumnType.STRING),), 3)
    for _ in range(2):
        witness.confirm(query, witness.run(query, "v"))
    assert 1 == witness.wrong
    totals = Totals(asked=1, answered=1)
    totals.charged["a"] = 3
    totals.spent["a"] = 3
    assert totals.is_sound
    totals.reserved["a"] = 1
    assert not totals.is_sound
    totals.reserved["a"], totals.spent["a"] = 0, 4
    assert not totals.is_sound
    totals.spent["a"], totals.wrong = 3, 1
    assert not totals.is_sound
    totals.wrong, totals.asked = 0, 2
    assert not totals.is_sound
    totals.failures["EngineUnavailable"] += 1
    assert totals.is_sound
