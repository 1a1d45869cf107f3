"""The ledger engine: how requests are gathered, decided and written, whatever the store.

It takes a batch of requests, has the store begin a transaction and load what they name, decides one after the other by
the pure rules, has the store write all changes with their outcomes in that transaction, and only then answers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

from budget_service.internal_errors import log_internal_error
from budget_service.ledger.account_statement import AccountStatement, account_statement
from budget_service.ledger.act import Act
from budget_service.ledger.block_sums import BlocksNeededError
from budget_service.ledger.leases import is_lease
from budget_service.ledger.limits import AppliedLimits, LimitsChangedError
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.rules import decide
from budget_service.ledger.state import EntryKind, HistoryNeededError
from budget_service.ledger.values import Account, LevelLimit, Unit
from budget_service.stores.group_commit import GroupCommit
from budget_service.stores.interface import (
    NOT_BEGUN,
    OUTCOME_NOT_KNOWN,
    Committed,
    OutcomeUnknownError,
    StoreError,
    StoreUnavailableError,
    count,
)
from budget_service.stores.transactions import Loaded, Transactions
from budget_service.stores.turns import RecentRoots, Turns
from budget_service.stores.view import NotLoadedError, View
from budget_service.stores.wanted import Asked, wanted_by, wanted_to_read

# Beyond this, the requests of a batch are hardly cheaper together.
LARGE = 36
# How often a batch is begun again because others were quicker.
MAX_ATTEMPTS = 16
FAILED_BEFORE = "the store gave no good answer to those before"

# What regions held when their leases ended, of all that this process has committed: for its metrics alone.
RECLAIMED: Counter[Unit] = Counter()

# What a request gets, and what says that it has to be asked in another way.
Result: TypeAlias = Answer | LimitsChangedError
Waiting: TypeAlias = tuple["asyncio.Future[Answer]", Asked]


class Queue:
    """Requests that wait to be decided, and those that are being decided."""

    def __init__(self, recent: RecentRoots) -> None:
        self.waiting: Turns[Asked] = Turns(recent)
        self.batch: list[Waiting] = []
        self.group_commit = GroupCommit(self.waiting, LARGE)
        self.worker: asyncio.Task[None] | None = None

    def refuse(self, reason: str) -> None:
        """Give all that wait an error; they have had no effect."""
        fail(self.waiting.take(len(self.waiting)), StoreUnavailableError(reason))


class LedgerEngine:
    """Decides requests on a store.

    A batch that has begun is finished even if its callers are cancelled; a request that still waits then has no effect.

    Args:
        store: The store's transactions.
        by_root: The store locks one root account at a time, so each has batches of its own.
        most: The most requests of a batch.
        committed: Called after every commit.
    """

    def __init__(self, store: Transactions, *, by_root: bool, most: int, committed: Committed) -> None:
        self._store = store
        self._by_root = by_root
        self._most = most
        self._committed = committed
        self._queues: dict[str, Queue] = {}
        self._recent = RecentRoots()

    async def apply(self, act: Act, limits: AppliedLimits) -> Answer:
        """Decide a request and commit the change, together with others; see `Store`."""
        name = act.account.root if self._by_root else ""
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = Queue(self._recent)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        queue.waiting.add(act.account, answer, (act, limits))
        if queue.worker is None:
            queue.worker = loop.create_task(self._work(name, queue))
        try:
            return await answer
        finally:
            # A caller that leaves before its turn leaves nothing behind.
            queue.waiting.drop(act.account, answer)

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """Return the state of an account now; see `Store`."""
        try:
            return await self._read(account, levels, history=False)
        except HistoryNeededError:
            return await self._read(account, levels, history=True)

    def give_up(self, reason: str) -> None:
        """Fail all requests because a commit hangs. Those that still wait have had no effect."""
        for queue in self._queues.values():
            fail(queue.batch, OutcomeUnknownError(reason))
            queue.refuse(reason)

    async def finish(self) -> None:
        """Return when nothing is being decided."""
        workers = [queue.worker for queue in self._queues.values() if queue.worker is not None]
        await asyncio.gather(*workers)

    async def _read(
        self, account: Account, levels: tuple[LevelLimit, ...], *, history: bool
    ) -> AccountStatement:
        loaded = await self._store.load(wanted_to_read(account, history=history))
        view = View(loaded)
        now = view.root(account.root).now(loaded.clock)
        return await account_statement(view.reading(account), account, levels, now, lambda: asyncio.sleep(0))

    async def _work(self, name: str, queue: Queue) -> None:
        try:
            while queue.waiting:
                await queue.group_commit.gather(len(queue.batch))
                queue.batch = queue.waiting.take(self._most, queue.group_commit.share)
                if queue.batch and not await self._serve(queue.batch, queue.waiting):
                    # If each attempt were awaited in turn, no caller would get an answer in time.
                    queue.refuse(FAILED_BEFORE)
        except Exception as error:
            log_internal_error(error)
        finally:
            queue.worker = None
            if self._by_root:
                del self._queues[name]
            # Only an internal error leaves requests here: those being decided, and those still waiting.
            fail(queue.batch, OutcomeUnknownError(OUTCOME_NOT_KNOWN))
            queue.batch = []
            queue.refuse(NOT_BEGUN)

    async def _serve(self, batch: list[Waiting], waiting: Turns[Asked]) -> bool:
        """Answer each request, or let it wait for another turn; return whether the store did its part."""
        rest, attempts, attempt = batch, 0, Attempt(0)
        while rest and attempts < MAX_ATTEMPTS:
            try:
                attempt = await self._attempt(rest, attempt)
            except StoreError as error:
                fail(rest, error)
                return False
            except Exception as error:
                if len(rest) == 1:
                    fail(rest, error)
                    return True
                # Nothing was written. One request is at fault, and the others must not pay for it.
                return await self._serve_each(rest, waiting)
            # A caller that has left meanwhile is not charged.
            rest = [each for each in rest[attempt.decided :] if not each[0].done()]
            attempts = 0 if attempt.has_advanced else attempts + 1
            if attempt.reading:
                # A root with thousands of blocks lets others have their turns after each page.
                for answer, asked in reversed(rest):
                    if asked[0].account.root == attempt.reading:
                        waiting.add(asked[0].account, answer, asked, is_next=True)
                rest = [each for each in rest if each[1][0].account.root != attempt.reading]
        fail(rest, StoreUnavailableError("others were quicker each time"))
        return True

    async def _serve_each(self, batch: list[Waiting], waiting: Turns[Asked]) -> bool:
        for number, each in enumerate(batch, 1):
            if not await self._serve([each], waiting):
                fail(batch[number:], StoreUnavailableError(FAILED_BEFORE))
                return False
        return True

    async def _attempt(self, batch: list[Waiting], last: Attempt) -> Attempt:
        """Decide and commit as many as can be decided on what is loaded, with what the last attempt needs."""
        began = perf_counter()
        wanted = wanted_by([asked for _, asked in batch], history=last.needs_history, page=last.page)
        async with self._store.transaction(wanted) as transaction:
            loaded = perf_counter()
            view = View(transaction.loaded)
            results, attempt = _decide(batch, view, transaction.loaded, last.page)
            decided = perf_counter()
            if not await transaction.commit(view.changes, lambda: _resolve_all(batch, results)):
                return Attempt(0)
        for entry in view.changes.journal:
            if entry.kind is EntryKind.FORFEITED and is_lease(entry.request_id):
                RECLAIMED.update({unit: entry.cost.of(unit) for unit in Unit})
        found = transaction.loaded
        stands_still = {root: record.stands_still_for(found.clock) for root, record in found.roots.items()}
        count(self._committed, len(results), perf_counter() - decided + loaded - began, stands_still)
        return attempt


@dataclass(frozen=True, slots=True)
class Attempt:
    """How many requests of a batch were decided, and what the next one needs.

    `needs_history`: it needs the past days too, and `page`: the blocks of a level behind one of them. `has_ended`:
    lapsed reservations were ended for it, or blocks read, and there may be more of them; `reading`: the root that has
    more blocks to be read.
    """

    decided: int
    needs_history: bool = False
    page: tuple[Account, str] | None = None
    has_ended: bool = False
    reading: str = ""

    @property
    def has_advanced(self) -> bool:
        """Return whether another attempt comes further."""
        return self.decided > 0 or self.has_ended


def _decide(
    batch: Iterable[Waiting], view: View, loaded: Loaded, page: tuple[Account, str] | None
) -> tuple[list[Result], Attempt]:
    results: list[Result] = []
    for _, (act, limits) in batch:
        now = view.root(act.account.root).now(loaded.clock)
        try:
            decision = decide(view.snapshot(act, limits, now), act, limits, now)
        except LimitsChangedError as error:
            results.append(error)
            continue
        except HistoryNeededError:
            return results, Attempt(len(results), needs_history=True, page=None if results else page)
        except BlocksNeededError as needed:
            return results, Attempt(len(results), page=(needed.level, needed.after))
        except NotLoadedError:
            # The first request of a batch needs nothing but what it names itself.
            if not results:
                raise
            break
        if decision.change is not None:
            view.note(act, limits, decision.change)
        if decision.answer is None:
            is_reading = not results and loaded.page is not None and not loaded.page.is_last
            reading = act.account.root if is_reading else ""
            return results, Attempt(len(results), has_ended=True, reading=reading)
        results.append(decision.answer)
    return results, Attempt(len(results))


def fail(waiting: Iterable[Waiting], error: Exception) -> None:
    """Give an error to all of these that still wait for an answer."""
    for answer, _ in waiting:
        _resolve(answer, error)


def _resolve_all(batch: Iterable[Waiting], results: Iterable[Result]) -> None:
    for (answer, _), result in zip(batch, results, strict=False):
        _resolve(answer, result)


def _resolve(answer: asyncio.Future[Answer], result: Answer | Exception) -> None:
    # A caller that was cancelled waits no more.
    if answer.done():
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
