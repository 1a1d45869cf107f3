"""Policy statements are read beside other calls, which do not wait for a long journal."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.ledger.limits import StoredLimits
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, Cost
from budget_service.server.ledger import Ledger
from budget_service.server.policy_statements import policy_statements_of
from budget_service.stores.interface import Store
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from tests.support.budget_client import account, failure
from tests.support.budget_samples import ANALYST, SteppedClock, charge, levels, limit, reserve, statement
from tests.support.ledger_stores import closing
from tests.support.some import some
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.policy_service import stub_on

BOTH = levels(ANALYST, own=limit(100, 50), above=limit(1000, 500))
ASKED = pb.GetBudgetRequest(account=account(), with_policy_statements=True)


async def test_others_read_between_the_pages(any_store: Store) -> None:
    """Pages leave turns for calls that wait: at least one for every four pages, even on a busy machine."""
    for number in range(20):
        stated = charge(f"n{number}", Cost(1, 0), on=BOTH, policy_statement=statement(number))
        await any_store.apply(*stated)
    # Two at a time, so that each has a connection from now on.
    found, _ = await asyncio.gather(any_store.read(ANALYST, BOTH), any_store.read(ANALYST, BOTH))
    pages = Tuning(statements_page=1)
    paced = Ledger(any_store)
    telling = asyncio.create_task(policy_statements_of(paced, ANALYST, found.levels, pages))
    reads = 0
    while not telling.done():
        await any_store.read(ANALYST, BOTH)
        await asyncio.sleep(0)
        reads += 1
    assert 20 == len((await telling)[2].statements)
    assert reads >= 5


async def test_what_many_entries_say_is_said_once(tmp_path: Path, clock: SteppedClock) -> None:
    """Of whoever counts at the level, and of nobody else."""
    async with closing(SqliteStore.open(tmp_path / "ledger.db", clock)) as store:
        # Its name begins like that of the analyst, who is another one.
        other = Account(("acme", "ann2"))
        on = levels(other, own=limit(100, 50), above=limit(1000, 500))
        for number in (1, 7):
            stated = charge(f"o{number}", account=other, on=on, policy_statement=statement(number))
            await store.apply(*stated)
        clock.step(seconds=1)
        for number in range(60):
            said = statement(number % 3)
            who = ANALYST if number % 2 else Account(("acme", f"bob{number}"))
            on = levels(who, own=limit(100, 50), above=limit(1000, 500))
            stated = charge(f"n{number}", Cost(1, 0), account=who, on=on, policy_statement=said)
            await store.apply(*stated)
        found = await store.read(ANALYST, BOTH)
        reported = await policy_statements_of(store, ANALYST, found.levels)
        assert tuple(statement(number) for number in range(3)) == reported[2].statements
        assert (*reported[2].statements, statement(7)) == reported[1].statements
        assert reported[1].has_worst_cases
        # One that tells how it ended is not lost among others like it.
        await store.apply(*reserve("r", Cost(2, 1), on=BOTH))
        await store.apply(*charge("s", Cost(1, 1), on=BOTH, settles="r", policy_statement=statement(1)))
        assert not (await policy_statements_of(store, ANALYST, found.levels))[1].has_worst_cases


class Slow(MemoryStore):
    """Its journal is read when the test says so; it counts how many have begun, and how many read at a time."""

    def __init__(self, clock: SteppedClock) -> None:
        super().__init__(clock)
        self.go_on = asyncio.Event()
        self.begun = self.reading = self.most = 0

    async def limits(self, account: Account) -> StoredLimits:
        """Note that somebody has begun."""
        self.begun += 1
        return await super().limits(account)

    async def latest(self, root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """Wait."""
        self.reading += 1
        self.most = max(self.most, self.reading)
        try:
            await self.go_on.wait()
        finally:
            self.reading -= 1
        return await super().latest(root, before, most)


async def test_few_read_at_a_time_and_the_others_do_not_wait_for_ever(clock: SteppedClock) -> None:
    """Of the few, one has a page read; the others learn after a while that nothing was begun; plain calls go on."""
    tuning = Tuning(statement_readers=2, read_wait_seconds=0.2)
    store = Slow(clock)
    async with stub_on(store, tuning) as stub:
        calls = [asyncio.ensure_future(stub.GetBudget(ASKED)) for _ in range(tuning.statement_readers)]
        await _until(store, tuning.statement_readers)
        error = await failure(stub.GetBudget(ASKED))
        assert (grpc.StatusCode.UNAVAILABLE, "OVERLOADED") == (error.code, error.info.reason)
        assert (await stub.GetBudget(pb.GetBudgetRequest(account=account()))).levels
        store.go_on.set()
        assert all(each.levels for each in some(await asyncio.gather(*calls)))
        assert (await stub.GetBudget(ASKED)).levels
    assert store.most == 1


async def _until(store: Slow, begun: int) -> None:
    for _ in range(500):
        if store.begun == begun and store.reading:
            return
        await asyncio.sleep(0.01)
    raise TimeoutError
