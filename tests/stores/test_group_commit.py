"""How long a commit waits for more: long enough to share its cost, never while there is nothing else to do."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import pytest_asyncio

from budget_service.ledger.outcomes import Answer
from budget_service.ledger.values import NOTHING
from budget_service.stores import group_commit
from budget_service.stores.group_commit import CROWD, DENSE, FEWEST, TURNS_OF_ONE, GroupCommit
from budget_service.stores.interface import OutcomeUnknownError, Store, StoreUnavailableError
from tests.support.budget_samples import charge
from tests.support.log_events import everything_logged, logged_events

LARGE = 36
ON_EVERY_STORE = pytest.mark.parametrize("any_store", ["sqlite", "redis", "postgres"], indirect=True)

numbers = itertools.count()


class Waiting(list[int]):
    """Requests that wait, of one root unless it is said otherwise."""

    several_roots = False


class Loop:
    """What an event loop does in each step of a gathering: `work`, for so many seconds, busy with it or not.

    It has a time of its own, which no slow machine disturbs.
    """

    def __init__(self, waiting: list[int]) -> None:
        self.waiting = Waiting(waiting)
        self.work: Callable[[], None] = lambda: None
        self.seconds = group_commit.STEP_SECONDS
        self.is_busy = True
        self.group_commit = GroupCommit(
            self.waiting,
            LARGE,
            used=lambda: self._now if self.is_busy else 0.0,
            clock=lambda: self._now,
            sleep=self._step,
        )
        self._now = 0.0
        self._steps = 0

    async def steps(self, served: int) -> int:
        """Gather, and return how many steps that took."""
        self._steps = 0
        await self.group_commit.gather(served)
        return self._steps

    def commit(self) -> None:
        """Let the time of a commit pass."""
        self._now += self.seconds

    async def learn_to_wait_for_many(self) -> None:
        """Find many there again and again."""
        before = list(self.waiting)
        for _ in range(2 * LARGE):
            self.waiting[:] = range(LARGE)
            assert await self.steps(LARGE) == 0
        self.waiting[:] = before

    async def _step(self, _: float) -> None:
        self._steps += 1
        self.work()
        self._now += self.seconds


async def test_a_few_callers_wait_for_nobody() -> None:
    """Those of the last commit count too."""
    assert await Loop([1]).steps(DENSE - 2) == 0
    assert await Loop([1]).steps(DENSE - 1) > 0


async def test_a_busy_loop_gathers_until_there_are_enough() -> None:
    """To begin with, few are enough."""
    loop = Loop([])
    loop.work = lambda: loop.waiting.append(1)

    assert await loop.steps(10) == FEWEST


async def test_an_idle_loop_commits_what_there_is() -> None:
    """Nothing else goes on that the commit would hold up."""
    loop = Loop([1])
    loop.is_busy = False

    assert await loop.steps(10) == 1


async def test_some_are_always_waited_for() -> None:
    """However few there were when the loop was idle."""
    loop = Loop([1] * (FEWEST - 1))
    loop.is_busy = False
    await loop.steps(DENSE - FEWEST + 1)
    loop.is_busy = True

    assert await loop.steps(DENSE) > 0
    loop.waiting[:] = range(FEWEST)
    assert await loop.steps(DENSE) == 0


async def test_a_loop_that_sleeps_is_idle() -> None:
    """By the time that its own thread has used, whatever others do; it counts unless another one is given."""
    waiting = Waiting(range(LARGE))
    waits = GroupCommit(waiting, LARGE)
    for _ in range(2 * LARGE):
        await waits.gather(LARGE)
    waiting[:] = range(10)
    with other_threads_engine():
        await waits.gather(10)

    # Of ten who were all there, the next commit waits for six.
    waiting[:] = range(6)
    async with asyncio.timeout(0):
        await waits.gather(10)


@contextmanager
def other_threads_engine() -> Iterator[None]:
    """Keep processors busy without Python's lock."""
    have_begun, is_over = threading.Barrier(3), threading.Event()

    def work() -> None:
        content = bytes(2**20)
        have_begun.wait()
        while not is_over.is_set():
            hashlib.sha256(content)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    have_begun.wait()
    try:
        yield
    finally:
        is_over.set()
        for worker in workers:
            worker.join()


async def test_an_idle_moment_is_no_reason_to_wait_for_more() -> None:
    """However many the last commit had."""
    loop = Loop([1])
    loop.is_busy = False
    await loop.steps(20)
    loop.is_busy = True

    loop.waiting[:] = range(FEWEST)
    assert await loop.steps(20) == 0


async def test_a_loop_that_is_busy_with_something_else_is_not_waited_for_long() -> None:
    """However long its turns are; and the next commit waits for no more than were there."""
    loop = Loop([1] * 9)
    await loop.learn_to_wait_for_many()
    loop.seconds = 0.4 * group_commit.MOST_SECONDS

    assert await loop.steps(9) == 3
    assert await loop.steps(9) == 0


async def test_however_many_came_in_one_long_turn_a_large_commit_is_enough() -> None:
    """The next one does not wait for as many again."""
    loop = Loop([1])
    loop.seconds = 2 * group_commit.MOST_SECONDS
    await loop.learn_to_wait_for_many()
    loop.work = lambda: loop.waiting.extend([1] * 3 * LARGE)
    await loop.steps(10)

    loop.waiting[:] = range(LARGE)
    assert await loop.steps(10) == 0


async def test_more_are_waited_for_as_long_as_they_come_but_never_more_than_a_large_commit() -> None:
    """Ten come in each step; how many are waited for grows slowly."""
    loop = Loop([])
    loop.work = lambda: loop.waiting.extend(range(10))

    async def size_of_next() -> int:
        loop.waiting.clear()
        await loop.steps(LARGE)
        return len(loop.waiting)

    sizes = [await size_of_next() for _ in range(2 * LARGE)]

    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (10, 40)


@pytest.mark.parametrize(("served", "here"), [(20, 1), (1, 20), (20, 20)])
async def test_fewer_are_waited_for_where_all_callers_waited_for_one_commit(served: int, here: int) -> None:
    """Of twenty callers, who were there or had just got their answers, the next commit waits for twelve."""
    loop = Loop([1] * here)
    await loop.learn_to_wait_for_many()
    loop.is_busy = False
    await loop.steps(served)
    loop.is_busy = True

    loop.waiting[:] = range(11)
    assert await loop.steps(20) > 0
    loop.waiting[:] = range(12)
    assert await loop.steps(20) == 0


@pytest.mark.parametrize(("is_busy", "share"), [(True, FEWEST), (False, LARGE)])
@pytest.mark.parametrize(("several_roots", "few"), [(False, CROWD), (True, DENSE)])
async def test_of_a_crowd_few_are_taken_unless_the_loop_waits_for_the_store(
    several_roots: bool, few: int, is_busy: bool, share: int
) -> None:
    """A caller of another root waits as long as the loop works for one commit; of fewer, all are taken.

    Few are a crowd already where another root asks too.
    """
    loop = Loop([1] * (few + 1))
    loop.waiting.several_roots = several_roots
    loop.is_busy = is_busy
    for _ in range(10):
        await loop.steps(10)
        loop.commit()
    assert loop.group_commit.share == share
    loop.waiting.pop()
    assert loop.group_commit.share == CROWD


async def test_whose_turn_it_is_in_a_crowd_is_found_when_all_are_there() -> None:
    """As long as more come, but not for long."""
    loop = Loop([1] * (CROWD + 1))
    loop.seconds = 0.0
    more = iter(range(100))
    loop.work = lambda: loop.waiting.extend(itertools.islice(more, 1))
    await loop.steps(10)
    assert len(loop.waiting) == CROWD + 1 + 100
    loop.seconds, loop.work = 0.001, lambda: loop.waiting.append(1)
    assert await loop.steps(10) <= 2 * TURNS_OF_ONE


@pytest_asyncio.fixture
async def committed(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give how many requests each commit of a store has, which knows its time by an earlier one."""
    await asyncio.gather(*begun(any_store, 1))
    counted: list[int] = []
    monkeypatch.setattr(engine(any_store), "_committed", lambda requests, *_: counted.append(requests))
    return counted


@ON_EVERY_STORE
async def test_every_store_commits_what_it_has_gathered(
    any_store: Store, committed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who were there and those who came meanwhile, together; and it says how many the last commit had."""
    seen: list[tuple[int, int]] = []
    meanwhile: list[asyncio.Task[Answer]] = []

    async def gather(self: GroupCommit, served: int) -> None:
        seen.append((served, len(self._waiting)))
        if not served:
            meanwhile.extend(begun(any_store, 6))
            await asyncio.sleep(0)
            # These come when the commit is under way.
            meanwhile.extend(begun(any_store, 6))

    monkeypatch.setattr(GroupCommit, "gather", gather)
    async with asyncio.timeout(10):
        await asyncio.gather(*begun(any_store, 6))
        await asyncio.gather(*meanwhile)

    assert [12, 6] == committed
    assert [(0, 6), (12, 6)] == seen


@ON_EVERY_STORE
async def test_where_all_have_left_nothing_is_committed(
    any_store: Store, committed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they were gathered; and the next one is served."""
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def gather(_: GroupCommit, __: int) -> None:
        has_begun.set()
        await may_end.wait()

    monkeypatch.setattr(GroupCommit, "gather", gather)
    leaving = begun(any_store, 6)
    await has_begun.wait()
    for each in leaving:
        each.cancel()
    await asyncio.wait(leaving)
    may_end.set()
    await asyncio.gather(*begun(any_store, 1))

    assert [1] == committed


def internal_errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the types of the internal errors that were logged, each of which has a location."""
    logged = [fields for event, fields in logged_events(caplog) if event == "internal_error"]
    assert all(re.fullmatch(r".+\.py:\d+", fields["location"]) for fields in logged)
    return [fields["error"] for fields in logged]


@ON_EVERY_STORE
async def test_whoever_waits_when_something_unforeseen_happens_is_told(
    any_store: Store,
    committed: list[int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The error says that nothing was begun; later calls are served, and the log names only the kind of fault."""

    async def fails(_: GroupCommit, __: int) -> None:
        raise RuntimeError("acme/ann")

    with monkeypatch.context() as patched:
        patched.setattr(GroupCommit, "gather", fails)
        async with asyncio.timeout(10):
            reported = await asyncio.gather(*begun(any_store, 6), return_exceptions=True)
    await asyncio.gather(*begun(any_store, 1))

    assert [StoreUnavailableError] * 6 == [type(each) for each in reported]
    assert [1] == committed
    # asyncio tells of what nobody has looked at when it is collected.
    gc.collect()
    assert "RuntimeError" in internal_errors(caplog)
    assert "acme" not in everything_logged(caplog)


@ON_EVERY_STORE
async def test_whoever_has_its_turn_when_something_unforeseen_happens_is_told(
    any_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The error says that it may have been done, and to those behind that nothing was begun; later calls are served."""
    behind: list[asyncio.Task[Answer]] = []

    async def fails(*_: object) -> None:
        behind.extend(begun(any_store, 2))
        await asyncio.sleep(0)
        raise RuntimeError("acme/ann")

    with monkeypatch.context() as patched:
        patched.setattr(engine(any_store), "_serve", fails)
        async with asyncio.timeout(10):
            reported = await asyncio.gather(*begun(any_store, 3), return_exceptions=True)
            reported += await asyncio.gather(*behind, return_exceptions=True)
    await asyncio.gather(*begun(any_store, 1))

    assert [OutcomeUnknownError] * 3 + [StoreUnavailableError] * 2 == [type(each) for each in reported]
    assert "RuntimeError" in internal_errors(caplog)
    assert "acme" not in everything_logged(caplog)


@ON_EVERY_STORE
async def test_a_count_that_fails_takes_nobodys_answer(
    any_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither of those who were committed nor of those who wait; the log says that something was not counted."""
    behind: list[asyncio.Task[Answer]] = []

    async def gather(_: GroupCommit, __: int) -> None:
        if not behind:
            # These come when the commit is under way.
            behind.extend(begun(any_store, 6))

    def fails(*_: object) -> None:
        raise OSError("no room for metrics")

    monkeypatch.setattr(engine(any_store), "_committed", fails)
    monkeypatch.setattr(GroupCommit, "gather", gather)
    async with asyncio.timeout(10):
        answers = await asyncio.gather(*begun(any_store, 6))
        answers += await asyncio.gather(*behind)

    assert [False] * 12 == [answer.replayed for answer in answers]
    assert "OSError" in internal_errors(caplog)


def engine(store: Store) -> object:
    """Return what serves and counts."""
    return store._engine  # type: ignore[attr-defined]


def begun(store: Store, many: int) -> list[asyncio.Task[Answer]]:
    """Begin to charge nothing so many times."""
    return [asyncio.create_task(store.apply(*charge(f"c{next(numbers)}", NOTHING))) for _ in range(many)]
