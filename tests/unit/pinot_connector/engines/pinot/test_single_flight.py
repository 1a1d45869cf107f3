"""One reading serves all who wait for it, and nobody gets what was read before it asked."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Semaphore

import pytest

from pinot_connector.engines.pinot.single_flight import SingleFlight

LONG = 10.0


class _Source:
    """Something to read that changes with every reading and waits until the test lets it go on."""

    def __init__(self) -> None:
        self.readings = 0
        self.begun = Semaphore(0)
        self.may_end = Semaphore(0)

    def read(self) -> int:
        self.readings += 1
        number = self.readings
        self.begun.release()
        assert self.may_end.acquire(timeout=LONG)
        return number


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Threads that ask."""
    with ThreadPoolExecutor(8) as threads:
        yield threads


def _ask(threads: ThreadPoolExecutor, shared: SingleFlight[int]) -> Future[int]:
    """Ask in another thread; return once it is certain to have begun."""
    begun = Event()

    def asking() -> int:
        begun.set()
        return shared.value()

    asked = threads.submit(asking)
    assert begun.wait(LONG)
    return asked


def test_who_asks_during_a_reading_waits_for_the_next_and_shares_it(threads: ThreadPoolExecutor) -> None:
    """The reading under way began before they asked, so it may be older than their answers."""
    source = _Source()
    shared = SingleFlight(source.read)
    early = _ask(threads, shared)
    assert source.begun.acquire(timeout=LONG)
    late = [_ask(threads, shared) for _ in range(5)]
    time.sleep(0.1)  # until at least two of them wait
    source.may_end.release()
    assert 1 == early.result(LONG)
    assert source.begun.acquire(timeout=LONG)
    source.may_end.release(6)
    found = [each.result(LONG) for each in late]
    # A thread may ask so late that the second reading has begun as well; never does one get the first.
    assert min(found) == 2
    assert source.readings == max(found) < 1 + len(late)


def test_a_reading_that_fails_fails_for_all_who_wait_and_for_nobody_else() -> None:
    """The next one is a new attempt."""
    outcomes = iter([ValueError("first"), None])

    def read() -> str:
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome
        return "second"

    shared = SingleFlight(read)
    with pytest.raises(ValueError, match="first"):
        shared.value()
    assert shared.value() == "second"


def test_a_reading_that_hangs_does_not_hold_up_the_next(threads: ThreadPoolExecutor) -> None:
    """After a while the next one goes on beside it."""
    source = _Source()
    shared = SingleFlight(source.read, timeout_seconds=0.01)
    hanging = _ask(threads, shared)
    assert source.begun.acquire(timeout=LONG)
    following = _ask(threads, shared)
    assert source.begun.acquire(timeout=LONG)
    assert not hanging.done()
    source.may_end.release(2)
    assert {1, 2} == {hanging.result(LONG), following.result(LONG)}
