"""The rules under random histories, with waits, lapses, refreshes, repeats and a clock that goes back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from budget_service.ledger.act import Act
from budget_service.ledger.outcomes import Answer, Charged, Exhausted, Held, Outcome, Refused, Reserved
from budget_service.ledger.state import EntryKind
from budget_service.server.audit import Verification, verify
from tests.support.budget_samples import Asked, SteppedClock
from tests.support.examples import examples
from tests.unit.budget_service.histories import HISTORIES, Player, Step
from tests.unit.budget_service.memory_store import MemoryStore


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(HISTORIES)
async def test_nothing_acknowledged_is_lost_and_every_repeat_is_identical(history: list[Step]) -> None:
    """After any history, each acknowledged charge is in the journal once, and asking again changes nothing."""
    clock = SteppedClock()
    player, store = Player("acme", clock), MemoryStore(clock)
    granted: dict[str, tuple[Asked[Act], Outcome]] = {}
    for step in history:
        request = player.play(step)
        if request is not None:
            answer = await store.apply(*request)
            player.note(request, answer)
            if not isinstance(answer.outcome, Refused | Exhausted | Held | Reserved):
                granted.setdefault(request.request.request_id, (request, answer.outcome))
    journal = list(store.entries)
    # What took no budget is forgotten after an hour.
    lasting = {entry.request_id for entry in journal if entry.kind is not EntryKind.FORFEITED}
    granted = {id_: each for id_, each in granted.items() if id_ in lasting}
    for request, outcome in granted.values():
        assert await store.apply(*request) == Answer(outcome, replayed=True)
    assert store.entries == journal
    charged = {id_: each.charged for id_, (_, each) in granted.items() if isinstance(each, Charged)}
    journaled = {entry.request_id: entry.cost for entry in journal if entry.request_id in charged}
    assert {id_: cost for id_, cost in charged.items() if cost.information or cost.calls} == {
        id_: cost for id_, cost in journaled.items() if cost.information or cost.calls
    }
    found = Verification()
    await verify(store, "acme", found)
    assert found.differences == []
