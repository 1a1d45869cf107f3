"""Requests that share a commit are decided as if one had come after the other."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings

from budget_service.ledger.outcomes import Charged
from budget_service.ledger.requests import Charge, Request
from budget_service.ledger.values import Account, Cost
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from budget_service.stores.sqlite.store import SqliteStore
from tests.budget.conftest import closing
from tests.budget.histories import HISTORIES, ON_ONE_STORE, Player, Step
from tests.budget.memory_store import MemoryStore
from tests.support.budget_samples import Asked, SteppedClock, charge, levels, limit

roots = itertools.count()


@pytest.mark.slow
@pytest.mark.parametrize("any_store", ["sqlite"], indirect=True)
@settings(max_examples=150, **ON_ONE_STORE)
@given(HISTORIES)
async def test_a_commit_of_many_answers_as_the_pure_rules(
    any_store: Store, clock: SteppedClock, history: list[Step]
) -> None:
    """All that is asked between two moments is asked at once, repeats and what was paid for before among it."""
    player, rules = Player(f"batch {next(roots)}", clock, rewindows=True), MemoryStore(clock)
    together: list[Asked[Request]] = []
    for step in history:
        before = clock.now
        request = player.play(step)
        if clock.now != before:
            moved, clock.now = clock.now, before
            await answers_agree(rules, any_store, together)
            clock.now = moved
        if request is not None:
            together.append(request)
    await answers_agree(rules, any_store, together)
    for store in (rules, any_store):
        found = Verification()
        await verify(store, player.root, found)
        assert (len(rules.entries), []) == (found.entries, found.differences)


async def answers_agree(rules: MemoryStore, store: Store, together: list[Asked[Request]]) -> None:
    """Ask both, and forget what was asked."""
    wanted = [await rules.apply(*request) for request in together]
    assert wanted == list(await asyncio.gather(*(store.apply(*each) for each in together)))
    together.clear()


async def test_what_a_commit_of_many_needs_is_read_from_the_file(tmp_path: Path, clock: SteppedClock) -> None:
    """Each of twenty analysts has spent another amount, which a ledger that was just opened has to find."""
    analysts = [Account(("acme", f"analyst {number}")) for number in range(20)]
    on = {each: levels(each, own=limit(100, 100)) for each in analysts}

    def asked(name: str, *, more: int) -> list[Asked[Charge]]:
        return [
            charge(f"{name} {number}", Cost(number + more, 1), account=each, on=on[each], release_id=name)
            for number, each in enumerate(analysts)
        ]

    async with closing(SqliteStore.open(tmp_path / "ledger.db", clock)) as store:
        await asyncio.gather(*(store.apply(*each) for each in asked("first", more=1)))
    async with closing(SqliteStore.open(tmp_path / "ledger.db", clock)) as store:
        free = await asyncio.gather(*(store.apply(*each) for each in asked("first", more=1)))
        again = await asyncio.gather(*(store.apply(*each) for each in asked("second", more=2)))
    assert all(answer.replayed for answer in free)
    assert [Cost(2 * number + 3, 2) for number in range(20)] == [
        answer.outcome.levels[-1].spent for answer in again if isinstance(answer.outcome, Charged)
    ]


async def test_the_journal_has_the_charges_of_a_commit_in_their_order(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """As many as three statements write."""
    asked = [charge(f"c{number}", Cost(1, 1), on=levels(own=limit(100, 100))) for number in range(27)]
    async with closing(SqliteStore.open(tmp_path / "ledger.db", clock)) as store:
        await asyncio.gather(*(store.apply(*each) for each in asked))
        entries = await store.journal("acme", "", "", 100)
    assert [each.request.request_id for each in asked] == [entry.request_id for _, entry in entries]
