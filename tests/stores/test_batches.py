"""Requests that share a commit are decided as if one had come after the other."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from budget_service.ledger.act import Act
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import Answer, Charged, LimitsSet, Reason, Refused
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.windows import Period
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.stores.turns import Turns
from budget_service.tuning import Tuning
from tests.support.budget_samples import (
    ANALYST,
    COMPANY,
    NOON,
    Asked,
    SteppedClock,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.examples import examples
from tests.support.ledger_stores import UNHURRIED, closing
from tests.support.some import some
from tests.unit.budget_service.histories import HISTORIES, ON_ONE_STORE, Player, Step
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.root_acts import AccountAct

roots = itertools.count()


ON_EVERY_ENGINE = pytest.mark.parametrize("any_store", ["sqlite", "postgres"], indirect=True)
# With the last one, a batch ends early because more has lapsed than one request ends.
TUNINGS = pytest.mark.parametrize(
    "tuning", [UNHURRIED, replace(UNHURRIED, expired_at_once=1)], ids=["", "one expires"]
)


@pytest.mark.slow
@TUNINGS
@ON_EVERY_ENGINE
@settings(max_examples=examples(30), **ON_ONE_STORE)
@given(HISTORIES)
async def test_a_commit_of_many_answers_as_the_pure_rules(
    any_store: Store, clock: SteppedClock, tuning: Tuning, history: list[Step]
) -> None:
    """All that is asked between two moments is asked at once, repeats and what was paid for before among it."""
    player = Player(f"batch {next(roots)}", clock, rewindows=True)
    rules = MemoryStore(clock, expired_at_once=tuning.expired_at_once)
    together: list[Asked[Act]] = []
    for step in history:
        before = clock.now
        request = player.play(step)
        if clock.now != before:
            moved, clock.now = clock.now, before
            await answers_agree(rules, any_store, together)
            clock.now = moved
        if request is not None:
            if isinstance(request.request, SetLimits | AccountAct):
                # Its turn may come before those of accounts below, which were asked by the limits before it.
                await answers_agree(rules, any_store, together)
            together.append(request)
        if request is not None and isinstance(request.request, SetLimits | AccountAct):
            # What is asked next is decided by it, and needs the version that it gave.
            player.note(request, (await answers_agree(rules, any_store, together))[-1])
    await answers_agree(rules, any_store, together)
    for store in (rules, any_store):
        found = Verification()
        await verify(store, player.root, found)
        assert (len(rules.entries), []) == (found.entries, found.differences)


async def answers_agree(rules: MemoryStore, store: Store, together: list[Asked[Act]]) -> list[Answer]:
    """Ask both, forget what was asked, and return the answers."""
    wanted = {number: await rules.apply(*together[number]) for number in in_turn(together)}
    answers = await asyncio.gather(*(store.apply(*each) for each in together))
    assert dict(sorted(wanted.items())) == dict(enumerate(answers))
    together.clear()
    return answers


def in_turn(together: list[Asked[Act]]) -> list[int]:
    """Return the order in which requests that come together are decided."""
    turns: Turns[int] = Turns()
    for number, (request, _) in enumerate(together):
        turns.add(request.account, asyncio.get_running_loop().create_future(), number)
    return [number for _, number in turns.take(len(together))]


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
    assert all(answer.replayed for answer in some(free))
    assert [Cost(2 * number + 3, 2) for number in range(20)] == [
        answer.outcome.levels[-1].spent for answer in again if isinstance(answer.outcome, Charged)
    ]


@ON_EVERY_ENGINE
async def test_the_journal_has_the_charges_of_a_commit_in_their_order(any_store: Store) -> None:
    """However many there are."""
    asked = [charge(f"c{number}", Cost(1, 1), on=levels(own=limit(100, 100))) for number in range(27)]
    await asyncio.gather(*(any_store.apply(*each) for each in asked))
    entries = await any_store.journal("acme", "", "", 100)
    assert [each.request.request_id for each in asked] == [entry.request_id for _, entry in entries]


@ON_EVERY_ENGINE
async def test_a_batch_may_settle_what_it_has_reserved(any_store: Store) -> None:
    """Also by other limits than those it was reserved by, whose payments nobody has looked up yet."""
    company = levels(ANALYST.level(1), own=limit(20, 10))
    await any_store.apply(*charge("before", Cost(1, 1), release_id="rel", query_id="q", on=company))
    asked: list[Asked[Act]] = [
        reserve("r", query_id="q"),
        charge("c", settles="r", release_id="other", on=company),
        charge("d", settles="r", release_id="rel", on=company),
        charge("e", settles="r", release_id="rel"),
    ]
    answers = await asyncio.gather(*(any_store.apply(*each) for each in asked))
    assert Refused(Reason.RELEASE_MISMATCH) == answers[1].outcome
    assert isinstance(answers[2].outcome, Charged)
    assert answers[2].outcome.already_paid
    assert Refused(Reason.RESERVATION_OVER) == answers[3].outcome


@ON_EVERY_ENGINE
async def test_limits_that_are_set_in_one_batch_are_all_counted(any_store: Store) -> None:
    """Three at once, each of which adds one, where two are allowed."""
    at_most_two = AppliedLimits(most_stored=2)
    asked = [
        SetLimits(
            actor="ops", account=COMPANY, request_id=name, changes=((Account(("acme", name)), limit(1, 1)),)
        )
        for name in "abc"
    ]
    answers = await asyncio.gather(*(any_store.apply(each, at_most_two) for each in asked))
    made = [LimitsSet(NOON), LimitsSet(NOON + 1), Refused(Reason.TOO_MANY_LIMITS)]
    assert made == [each.outcome for each in answers]


@ON_EVERY_ENGINE
async def test_two_new_reservations_of_one_id_are_not_both_made(any_store: Store) -> None:
    """The second one is at fault, and what it would hold is held by nobody."""
    on = levels(own=limit(100, 100))
    asked = [reserve(str(number), Cost(1, 1), on=on).but(reservation_id="same") for number in range(3)]
    answers = await asyncio.gather(*(any_store.apply(*each) for each in asked), return_exceptions=True)
    assert [False, True, True] == [isinstance(each, Exception) for each in answers]
    assert Cost(1, 1) == (await any_store.read(ANALYST, on)).levels[-1].reserved


async def test_another_window_counts_what_is_reserved_in_the_same_commit(any_store: Store) -> None:
    """The level above is built twice, from the journal and from what is open, what the batch has opened included."""
    alone, both, longer = (
        levels(own=limit(9, 9), above=above)
        for above in (None, limit(20, 20), limit(20, 20, period=Period.NEVER))
    )
    # The first one goes alone.
    await asyncio.gather(
        any_store.apply(*charge("first", Cost(1, 1), on=alone)),
        any_store.apply(*charge("a", Cost(1, 1), on=both)),
        any_store.apply(*reserve("r", Cost(2, 2), on=both)),
        any_store.apply(*charge("b", Cost(1, 1), on=longer)),
    )
    status = (await any_store.read(ANALYST, longer)).levels[0]
    assert (Cost(3, 3), Cost(2, 2)) == (status.spent, status.reserved)
