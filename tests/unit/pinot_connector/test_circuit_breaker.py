"""The circuit by itself: when it opens, whom it lets try, and what closes it."""

from __future__ import annotations

import asyncio

import pytest

from pinot_connector.circuit_breaker import FIRST_CONTACT, REST_SECONDS, CircuitBreaker
from pinot_connector.errors import BudgetExhausted, GrisError, OutcomeUnknown, ServiceUnavailable
from pinot_connector.rpc_errors import Service
from tests.support.some import some

SILENCE_SECONDS = 0.1


class _Ledger:
    """Something that can be called, asked whether it lives, and made to fail or to say nothing."""

    def __init__(self) -> None:
        self.lives = True
        self.error: GrisError | None = None
        self.silent = asyncio.Event()
        self.ends = asyncio.Event()
        self.waited: list[float] = []
        self.calls = 0
        self.circuit = CircuitBreaker(self._is_alive, "ledger:1", SILENCE_SECONDS)

    async def ask(self) -> str:
        return await self.circuit.guarded(self._answer)

    async def _answer(self) -> str:
        self.calls += 1
        if self.silent.is_set():
            await self.ends.wait()
        if self.error is not None:
            raise self.error
        self.circuit.heard()
        return "answer"

    async def _is_alive(self, seconds: float) -> bool:
        self.waited.append(seconds)
        return self.lives


@pytest.mark.parametrize("error", [ServiceUnavailable, OutcomeUnknown])
async def test_a_call_without_an_answer_opens_the_circuit(
    error: type[ServiceUnavailable | OutcomeUnknown],
) -> None:
    """The next caller is refused without a call; guarded calls leave nothing unknown."""
    ledger = _Ledger()
    ledger.error = error(Service.BUDGET, "gone")
    for _ in range(3):
        with pytest.raises(ServiceUnavailable):
            await ledger.ask()
    assert ledger.calls == 1


async def test_a_call_without_an_answer_opens_nothing_while_others_are_answered() -> None:
    """One replica of several was killed in the middle of a call: the next question goes to another."""
    ledger = _Ledger()
    ledger.silent.set()
    lost = asyncio.create_task(ledger.ask())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    ledger.circuit.heard()
    ledger.error = ServiceUnavailable(Service.BUDGET, "gone")
    ledger.silent.clear()
    ledger.ends.set()
    with pytest.raises(ServiceUnavailable, match="gone"):
        await lost
    ledger.error = None
    assert await ledger.ask() == "answer"


async def test_a_refusal_is_an_answer() -> None:
    """An exhausted budget says that the ledger lives."""
    ledger = _Ledger()
    ledger.error = BudgetExhausted(())
    for _ in range(2):
        with pytest.raises(BudgetExhausted):
            await ledger.ask()
    assert ledger.calls == 2


async def test_silence_opens_the_circuit_and_ends_the_call() -> None:
    """Not even a word that it lives."""
    ledger = _Ledger()
    ledger.lives = False
    ledger.silent.set()
    with pytest.raises(ServiceUnavailable, match="no answer at ledger:1"):
        await ledger.ask()
    with pytest.raises(ServiceUnavailable, match="no answer at ledger:1"):
        await ledger.ask()
    assert ledger.calls == 1


async def test_a_service_that_was_never_heard_may_take_longer_to_be_reached() -> None:
    """A name is looked up and connections are made first; a service that was heard has no such excuse."""
    ledger = _Ledger()
    ledger.lives = False
    ledger.silent.set()
    with pytest.raises(ServiceUnavailable, match="no answer at ledger:1"):
        await ledger.ask()
    first, ledger.waited = ledger.waited, []
    ledger.circuit.heard()
    with pytest.raises(ServiceUnavailable, match="no answer at ledger:1"):
        await ledger.ask()
    assert [FIRST_CONTACT * seconds for seconds in ledger.waited] == pytest.approx(first)
    assert FIRST_CONTACT > 1


async def test_a_call_that_is_answered_in_time_needs_no_task_of_its_own() -> None:
    """Each task costs turns of the event loop, and nearly all calls are answered long before a heartbeat is due."""
    ledger = _Ledger()
    tasks = []

    async def answered() -> None:
        tasks.append(len(asyncio.all_tasks()))
        ledger.circuit.heard()

    await ledger.circuit.guarded(answered)
    assert tasks == [len(asyncio.all_tasks())]


async def test_a_slow_call_of_a_living_service_is_waited_for() -> None:
    """As long as it says that it lives."""
    ledger = _Ledger()
    ledger.silent.set()
    asking = asyncio.create_task(ledger.ask())
    await asyncio.sleep(5 * SILENCE_SECONDS)
    assert not asking.done()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.slow
async def test_one_caller_tries_after_a_rest_and_an_answer_closes_the_circuit() -> None:
    """While it tries the others are refused; a trial that fails opens anew."""
    ledger = _Ledger()
    ledger.error = ServiceUnavailable(Service.BUDGET, "gone")
    for calls in (1, 2):
        results = await asyncio.gather(
            *(ledger.ask() for _ in range(1 if calls == 1 else 9)), return_exceptions=True
        )
        assert all(isinstance(each, ServiceUnavailable) for each in some(results))
        assert ledger.calls == calls
        await asyncio.sleep(REST_SECONDS)
    ledger.error = None
    assert ["answer"] * 3 == [await ledger.ask() for _ in range(3)]


async def test_a_trial_that_is_cancelled_leaves_the_next_caller_a_trial() -> None:
    """A caller that leaves does not take the turn of another one away."""
    ledger = _Ledger()
    ledger.error = ServiceUnavailable(Service.BUDGET, "gone")
    with pytest.raises(ServiceUnavailable):
        await ledger.ask()
    await asyncio.sleep(REST_SECONDS)
    ledger.silent.set()
    trial = asyncio.create_task(ledger.ask())
    await asyncio.sleep(SILENCE_SECONDS)
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial
    ledger.silent.clear()
    ledger.error = None
    assert await ledger.ask() == "answer"


async def test_any_answer_closes_the_circuit() -> None:
    """A charge goes past the circuit, and its answer tells that the ledger is back."""
    ledger = _Ledger()
    ledger.error = ServiceUnavailable(Service.BUDGET, "gone")
    with pytest.raises(ServiceUnavailable):
        await ledger.ask()
    ledger.error = None
    ledger.circuit.heard()
    assert await ledger.ask() == "answer"
