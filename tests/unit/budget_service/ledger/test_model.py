"""The rules against the model: random histories, with waits, lapses, refreshes, repeats and a clock that goes back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from budget_service.ledger.currency import Currency
from budget_service.ledger.outcomes import (
    Answer,
    Cancelled,
    Charged,
    ClockResumed,
    Exhausted,
    Held,
    LevelStatus,
    LimitsSet,
    Outcome,
    Refused,
    Reserved,
    RootOutcome,
)
from budget_service.ledger.requests import Request
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Account, Cost, Mode, Unit
from budget_service.ledger.windows import WindowRule
from budget_service.server.audit import Verification, verify
from tests.support.budget_samples import Asked, SteppedClock
from tests.support.examples import examples
from tests.support.some import some
from tests.unit.budget_service.histories import HISTORIES, PAYING, RULES, Act, Player, Step
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.model import Model, Reported

# A day of one zone is in two of another, and then counts in both: the model knows no zones.
ZONES = ("UTC", "Asia/Kolkata")
# What is written off counts for every block as if all was left to it.
NEW_LIMITS = (Act.RELEVEL, Act.REWINDOW, Act.RELIMIT, Act.LOSE)


def reported(answer: Answer) -> Reported:
    """Say an answer in the model's words."""
    match answer.outcome:
        case Reserved() as found:
            return ("reserved", found.held, found.already_paid)
        case Charged() as found:
            return ("charged", found.charged, found.already_paid)
        case Cancelled() as found:
            return ("cancelled", found.returned, found.unit_id)
        case Exhausted() | Held() as found:
            return (type(found).__name__.lower(),)
        case Refused() as found:
            return (found.reason.value,)
        case found:
            return reported_of_a_root(found)


def reported_of_a_root(found: RootOutcome) -> Reported:
    """Say an answer to an administrator in the model's words."""
    if isinstance(found, LimitsSet):
        return ("limits", found.version)
    if isinstance(found, ClockResumed):
        return ("clock", found.ahead)
    return ("currency", found.unit_id, found.begins_at)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(HISTORIES, st.tuples(st.sampled_from(RULES), st.sampled_from(RULES)), st.sampled_from(ZONES))
async def test_the_rules_do_what_the_model_does(
    history: list[Step], rules: tuple[WindowRule, WindowRule], zone: str
) -> None:
    """Every answer and every balance is the model's, though limits come and go, and change their windows.

    So it is where two processes have different files: each step may be another one's.
    """
    clock = SteppedClock()
    in_zone = (replace(rules[0], zone=zone), replace(rules[1], zone=zone))
    player = Player("acme", clock, in_zone, rewindows=True, zone=zone)
    store, model = MemoryStore(clock), Model()
    used: dict[Account, Cost] = {}
    for step in some(history):
        request = player.play(step)
        if request is not None:
            answer = await store.apply(*request)
            assert model.tell(*request, clock.now) == reported(answer)
            player.note(request, answer)
        if step.act in NEW_LIMITS:
            used.clear()
        await _assert_same_balances(player, store, model.at(clock.now), used)
    found = Verification()
    await verify(store, "acme", found)
    assert found.differences == []


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(HISTORIES)
async def test_nothing_acknowledged_is_lost_and_every_repeat_is_identical(history: list[Step]) -> None:
    """After any history, each acknowledged charge is in the journal once, and asking again changes nothing."""
    clock = SteppedClock()
    player, store = Player("acme", clock), MemoryStore(clock)
    granted: dict[str, tuple[Asked[Request], Outcome]] = {}
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


async def _assert_same_balances(
    player: Player, store: MemoryStore, model: Model, used: dict[Account, Cost]
) -> None:
    for account in player.accounts():
        levels = player.levels(account)
        found = await store.read(account, levels)
        assert Currency(*model.currency, *model.planned) == found.currency
        for blocks in PAYING:
            for each, status in zip(levels, found.seen_by(blocks).levels, strict=True):
                spent, held = model.sums(each, blocks)
                expected = replace(status, spent=Cost(*spent), reserved=Cost(*held))
                # Where one of two waits for what it has spent in another currency, nothing is left to both.
                assert (expected.remaining, expected.unspent) == (status.remaining, status.unspent)
        for each, status in zip(levels, found.levels, strict=True):
            assert model.sums(each) == _sums(status)
            # A level that tracks may be above, and one whose limit was lowered, but that one gets no further; the
            # company enforces, also what its tracked analyst spends.
            now = status.spent + status.reserved
            before = used.get(each.level, now)
            grown = [unit for unit in Unit if now.of(unit) > before.of(unit)]
            within = all(now.of(unit) <= status.maximum.of(unit) for unit in grown)
            assert status.mode is Mode.TRACK or within
            used[each.level] = now


def _sums(status: LevelStatus) -> tuple[tuple[int, int], tuple[int, int]]:
    spent, reserved = status.spent, status.reserved
    return (spent.information, spent.calls), (reserved.information, reserved.calls)
