"""The ledger engine on transactions in memory: what it does if others are quicker, and if a store fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import HealthCheck, given, settings

from budget_service.ledger.act import Act
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.outcomes import Answer, Charged, Exhausted
from budget_service.ledger.values import Account, Cost
from budget_service.stores.interface import OutcomeUnknownError, StoreUnavailableError, uncounted
from budget_service.stores.ledger_engine import MAX_ATTEMPTS, LedgerEngine
from budget_service.stores.transactions import Changes, Loaded, Transaction, Wanted
from tests.support.budget_samples import Asked, SteppedClock, cancel, charge, levels, limit, reserve
from tests.support.examples import examples
from tests.support.some import some
from tests.unit.budget_service.histories import HISTORIES, Player, Step
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.memory_transactions import MemoryTransactions
from tests.unit.budget_service.root_acts import AccountAct

MOST = 64


def engine_on(store: MemoryTransactions, *, most: int = MOST) -> LedgerEngine:
    """Return an engine with batches for each root."""
    return LedgerEngine(store, by_root=True, most=most, committed=uncounted)


@pytest.mark.slow
@settings(
    max_examples=examples(75),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(HISTORIES)
async def test_two_engines_on_one_store_answer_as_if_one_request_had_come_after_the_other(
    clock: SteppedClock, history: list[Step]
) -> None:
    """The same history at both at once: each request is decided once, replayed once, and the journal is the rules'."""
    store, rules = MemoryTransactions(clock, expired_at_once=2), MemoryStore(clock, expired_at_once=2)
    engines = [engine_on(store, most=3), engine_on(store)]
    player = Player("acme", clock, rewindows=True)
    for step in some(history):
        asked = player.play(step)
        if asked is None or isinstance(asked.request, SetLimits | AccountAct) or asked.limits.version:
            continue
        wanted = await rules.apply(*asked)
        again = await rules.apply(*asked)
        answers = await asyncio.gather(*(engine.apply(*asked) for engine in engines))
        assert sorted([wanted, again], key=str) == sorted(answers, key=str)
    assert rules.entries == store.journal
    assert rules.kept == store.balances
    assert set(rules.reservations.values()) == set(store.reservations.values())


async def test_of_many_at_two_engines_who_want_the_last_unit_exactly_one_wins(clock: SteppedClock) -> None:
    """An engine that loaded what the other one has changed since begins again."""
    store = MemoryTransactions(clock)
    engines = [engine_on(store), engine_on(store)]
    on = levels(own=limit(1, 50))
    asked = [charge(str(index), Cost(1, 1), on=on) for index in range(40)]
    answers = await asyncio.gather(*(engines[index % 2].apply(*each) for index, each in enumerate(asked)))
    assert {Charged: 1, Exhausted: 39} == {
        kind: sum(isinstance(each.outcome, kind) for each in answers) for kind in (Charged, Exhausted)
    }
    assert len(store.journal) == 1


async def test_a_batch_that_others_are_always_quicker_than_is_given_up(clock: SteppedClock) -> None:
    """After so many attempts; nothing of it was written, and it goes as soon as the others are gone."""
    store = MemoryTransactions(clock)
    attempts = 0

    async def quicker() -> None:
        nonlocal attempts
        attempts += 1
        store.revision += attempts % 2 == 0

    store.trip = quicker
    engine = engine_on(store)
    with pytest.raises(StoreUnavailableError, match="quicker"):
        await engine.apply(*charge("c"))
    assert (2 * MAX_ATTEMPTS, []) == (attempts, store.journal)
    store.trip = MemoryTransactions(clock).trip
    assert not (await engine.apply(*charge("c"))).replayed


async def test_each_batch_takes_two_round_trips(clock: SteppedClock) -> None:
    """However many requests it has, of whatever kind."""
    trips = 0

    async def counted() -> None:
        nonlocal trips
        trips += 1

    engine = engine_on(MemoryTransactions(clock, trip=counted))
    on = levels(own=limit(100, 100), above=limit(100, 100))
    await engine.apply(*reserve("r", Cost(1, 1), on=on))
    trips = 0
    asked: list[Asked[Act]] = [
        charge("c", Cost(1, 1), on=on, settles="r", release_id="rel"),
        *(charge(f"c{index}", Cost(1, 1), on=on, release_id="rel2", query_id="q") for index in range(20)),
        *(reserve(f"r{index}", Cost(1, 1), on=on) for index in range(20)),
        cancel("x", ends="r3", on=on),
    ]
    await asyncio.gather(*(engine.apply(*each) for each in asked))
    assert trips == 2


async def test_more_has_lapsed_than_one_request_ends(clock: SteppedClock) -> None:
    """They are ended in steps before the first of a batch is refused, and none decides on what was not loaded.

    The steps are more than the attempts of those for whom others are too quick.
    """
    store = MemoryTransactions(clock, expired_at_once=2)
    engine = engine_on(store)
    on = levels(own=limit(41, 410))
    held = [reserve(f"r{index}", Cost(1, 1), on=on).but(forfeits=index == 0) for index in range(41)]
    await asyncio.gather(*(engine.apply(*each) for each in held))
    clock.step(seconds=61)
    asked = [charge(f"c{index}", Cost(35, 1), on=on) for index in range(4)]
    answers = await asyncio.gather(*(engine.apply(*each) for each in asked))
    assert [Charged, Exhausted, Exhausted, Exhausted] == [type(each.outcome) for each in answers]
    assert {} == store.reservations
    assert Cost(36, 2) == (await engine.read(Account(("acme", "ann")), on)).levels[-1].spent


class FailingTransactions(MemoryTransactions):
    """Fails with the given error, before anything is written or after."""

    failure: Exception | None = None
    is_written: bool = False

    @asynccontextmanager
    async def transaction(self, wanted: Wanted) -> AsyncIterator[Transaction]:
        """Load, and then fail."""
        loaded = await self.load(wanted)
        yield _Failing(self, loaded)


class _Failing:
    def __init__(self, store: FailingTransactions, loaded: Loaded) -> None:
        self.store = store
        self.loaded = loaded

    async def commit(self, changes: Changes, committed: Callable[[], None]) -> bool:
        if self.store.is_written or self.store.failure is None:
            await self.store.write(changes, self.store.revision)
        if self.store.failure is not None:
            raise self.store.failure
        committed()
        return True


@pytest.mark.parametrize(
    ("failure", "is_written"), [(StoreUnavailableError("gone"), False), (OutcomeUnknownError("gone"), True)]
)
async def test_who_waits_behind_a_store_that_fails_is_told_that_nothing_was_begun(
    clock: SteppedClock, failure: Exception, is_written: bool
) -> None:
    """The error of those in the batch says what is known of it; retries have an effect once."""
    store = FailingTransactions(clock)
    store.failure, store.is_written = failure, is_written
    engine = engine_on(store, most=2)
    asked = [charge(str(index), Cost(1, 1)) for index in range(4)]
    reported = await asyncio.gather(*(engine.apply(*each) for each in asked), return_exceptions=True)
    assert [type(failure)] * 2 + [StoreUnavailableError] * 2 == [type(each) for each in reported]
    store.failure = None
    answers = await asyncio.gather(*(engine.apply(*each) for each in asked))
    assert [is_written] * 2 + [False] * 2 == [each.replayed for each in answers]
    assert len(store.journal) == 4


async def test_a_caller_that_leaves_takes_nothing_from_the_others(clock: SteppedClock) -> None:
    """What had begun is finished; what waited has no effect."""
    may_go_on, has_begun = asyncio.Event(), asyncio.Event()

    async def held_up() -> None:
        has_begun.set()
        await may_go_on.wait()

    store = MemoryTransactions(clock, trip=held_up)
    engine = engine_on(store, most=1)
    tasks: list[asyncio.Task[Answer]] = [
        asyncio.create_task(engine.apply(*charge(name, Cost(1, 1)))) for name in ("begun", "waits", "stays")
    ]
    await has_begun.wait()
    for leaving in tasks[:2]:
        leaving.cancel()
    await asyncio.wait(tasks[:2])
    may_go_on.set()
    await tasks[2]
    await engine.finish()
    assert ["begun", "stays"] == [entry.request_id for entry in store.journal]


async def test_a_caller_that_leaves_before_another_attempt_is_not_charged(clock: SteppedClock) -> None:
    """Others were quicker, so nothing is written yet; the attempt after it is for those that still wait."""
    store = MemoryTransactions(clock)
    asking: list[asyncio.Task[Answer]] = []
    trips = 0

    async def quicker_once() -> None:
        nonlocal trips
        trips += 1
        if trips == 2:
            store.revision += 1
            asking[0].cancel()
            await asyncio.wait(asking[:1])

    store.trip = quicker_once
    engine = engine_on(store)
    asking += [asyncio.create_task(engine.apply(*charge(name, Cost(1, 1)))) for name in ("leaves", "stays")]
    await asking[1]
    assert ["stays"] == [entry.request_id for entry in store.journal]
