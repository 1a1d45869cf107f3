"""How many calls of one caller are let in, in which order the others wait, and which are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from gris_gateway.configuration import LimitSettings
from gris_gateway.limits import GatewayLimits
from gris_gateway.rate_limits import AdmittedCall, CallerLimits, Limiter, TooManyError
from tests.support.some import some


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return seconds."""
        return self.now


def of_a_caller(
    *, per_second: float = 2, burst: int = 3, concurrent: int = 100, waiting: int = 0
) -> CallerLimits:
    """Return the limits of one caller."""
    return CallerLimits(per_second, burst, concurrent, waiting)


def limiter(clock: Clock | None = None, *, own: CallerLimits | None = None, **limits: int) -> Limiter:
    """Return a limiter, by default of two calls a second, three at once, and no call that waits."""
    return Limiter(own or of_a_caller(), clock=clock or Clock(), limits=GatewayLimits(**limits))


@asynccontextmanager
async def turn(limits: Limiter, name: str = "ana") -> AsyncIterator[AdmittedCall]:
    """Have a turn while the block runs."""
    async with limits.entered(name) as call:
        await call.turn()
        yield call


async def entered(limits: Limiter, name: str = "ana") -> str:
    """Return how one call fares that ends once it had its turn."""
    try:
        async with turn(limits, name):
            return "in"
    except TooManyError as error:
        return f"{error.reason} {error.wait_milliseconds}"


async def test_beyond_what_the_gateway_can_hold_everybody_is_told_to_come_back() -> None:
    """This holds for every caller, and a refused call counts against nobody's limit."""
    limits = limiter(own=of_a_caller(concurrent=3), running_calls=2)
    async with turn(limits, "ana"), turn(limits, "bob"):
        assert "OVERLOADED 1000" == await entered(limits, "ana")
        assert ["OVERLOADED 1000"] * 4 == [await entered(limits, "cleo") for _ in range(4)]
    assert ["in"] * 3 == [await entered(limits, "cleo") for _ in range(3)]


async def test_a_burst_is_let_in_and_then_so_many_a_second() -> None:
    """The reported wait is the time until the next call is let in."""
    clock = Clock()
    limits = limiter(clock)
    assert ["in", "in", "in", "RATE_LIMITED 500"] == [await entered(limits) for _ in range(4)]
    assert "in" == await entered(limits, "bob")
    clock.now += 0.5
    assert ["in", "RATE_LIMITED 500"] == [await entered(limits) for _ in range(2)]
    clock.now += 3600
    assert ["in"] * 3 + ["RATE_LIMITED 500"] == [await entered(limits) for _ in range(4)]


async def test_refused_calls_are_told_one_moment_each() -> None:
    """After equal waits they would all come back together, and one would be let in; waits have an upper limit."""
    clock = Clock()
    limits = limiter(clock)
    for _ in range(3):
        assert "in" == await entered(limits)
    assert ["RATE_LIMITED 500", "RATE_LIMITED 1000", "RATE_LIMITED 1500"] == [
        await entered(limits) for _ in range(3)
    ]
    assert "RATE_LIMITED 5000" == [await entered(limits) for _ in range(20)][-1]
    clock.now += 60
    assert "in" == await entered(limits)


async def test_calls_that_come_too_fast_wait_if_they_may() -> None:
    """Each for a token of its own, in order; none is refused, and none is early."""
    limits = limiter(own=of_a_caller(waiting=10, per_second=100))
    loop = asyncio.get_running_loop()
    began = loop.time()
    done: list[tuple[int, float]] = []

    async def call(number: int) -> None:
        async with turn(limits):
            done.append((number, loop.time() - began))

    await asyncio.gather(*map(call, range(8)))
    assert list(range(8)) == [number for number, _ in done]
    for number, seconds in some(done[3:]):
        assert seconds >= (number - 2) / 100 - 0.002


async def test_a_call_whose_deadline_is_sooner_than_its_token_is_refused() -> None:
    """It would be given up in vain; the next one with more time is let in."""
    limits = limiter(own=of_a_caller(waiting=10))
    for _ in range(3):
        assert "in" == await entered(limits)
    with pytest.raises(TooManyError, match="in a short time") as refused:
        async with limits.entered("ana", seconds_left=0.4):
            pass
    assert ("RATE_LIMITED", 500) == (refused.value.reason, refused.value.wait_milliseconds)
    async with limits.entered("ana", seconds_left=0.6):
        pass


async def test_calls_under_way_are_counted_until_they_end() -> None:
    """One that is refused leaves nothing behind."""
    limits = limiter(own=of_a_caller(concurrent=1))
    async with turn(limits, "ana"):
        assert "TOO_MANY_AT_ONCE 1000" == await entered(limits)
        assert "in" == await entered(limits, "bob")
    assert "in" == await entered(limits)


async def test_calls_have_their_turn_in_the_order_in_which_they_came() -> None:
    """Two at a time, and all that may wait are answered; the one more is refused."""
    limits = limiter(own=of_a_caller(burst=100, concurrent=2, waiting=6))
    running, most, order = 0, 0, list[int]()

    async def call(number: int) -> str:
        nonlocal running, most
        try:
            async with turn(limits):
                order.append(number)
                running += 1
                most = max(most, running)
                await asyncio.sleep(0.01)
                running -= 1
        except TooManyError as error:
            return error.reason
        return "in"

    outcomes = await asyncio.gather(*map(call, range(9)))
    assert ["in"] * 8 + ["TOO_MANY_AT_ONCE"] == outcomes
    assert (2, list(range(8))) == (most, order)


async def test_whoever_leaves_while_it_waits_takes_nothing_from_those_behind_it() -> None:
    """Its place in the line is closed up, and every place is free again at the end."""
    limits = limiter(own=of_a_caller(burst=100, concurrent=1, waiting=2))
    async with turn(limits):
        leaving, staying = (asyncio.create_task(entered(limits)) for _ in range(2))
        await asyncio.sleep(0.01)
        assert "TOO_MANY_AT_ONCE 1000" == await entered(limits)
        leaving.cancel()
        await asyncio.sleep(0.01)
        behind = asyncio.create_task(entered(limits))
        await asyncio.sleep(0.01)
    assert ["in", "in"] == [await staying, await behind]
    assert ["in"] * 3 == [await entered(limits) for _ in range(3)]


async def test_an_answer_from_what_is_kept_waits_for_no_turn_and_costs_no_token() -> None:
    """While the caller's only turn is taken, and with two tokens left, it is answered a hundred times."""
    limits = limiter(own=of_a_caller(concurrent=1))
    async with turn(limits), asyncio.timeout(5):
        for _ in range(100):
            async with limits.entered("ana") as call:
                assert not call.has_turn
    assert ["in", "in", "RATE_LIMITED 500"] == [await entered(limits) for _ in range(3)]


async def test_a_call_that_fails_without_a_turn_keeps_its_token() -> None:
    """Malformed questions cost the gateway work: they count against the rate."""
    limits = limiter()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with limits.entered("ana"):
                raise ZeroDivisionError
    assert "RATE_LIMITED 500" == await entered(limits)


async def test_a_large_request_is_not_held_while_it_waits() -> None:
    """What waits is small, however many wait; with a turn at once the size is no matter."""
    limits = limiter(own=of_a_caller(concurrent=1, waiting=5), waiting_request_bytes=100)
    async with limits.entered("ana") as first:
        await first.turn(101)
        async with limits.entered("ana") as second:
            with pytest.raises(TooManyError, match="over 100 bytes does not wait"):
                await second.turn(101)


async def test_all_callers_together_may_wait_so_many() -> None:
    """Beyond that the gateway is at its limit, no matter who calls."""
    limits = limiter(own=of_a_caller(concurrent=1, waiting=5), waiting_calls=1)
    async with turn(limits, "ana"), turn(limits, "bob"):
        waiting = asyncio.create_task(entered(limits, "ana"))
        await asyncio.sleep(0.01)
        assert "OVERLOADED 1000" == await entered(limits, "bob")
    assert "in" == await waiting


async def test_what_waits_leaves_its_place_among_all_callers() -> None:
    """Calls that wait for one caller's turn keep nobody out, and have a place again before they go on."""
    limits = limiter(own=of_a_caller(concurrent=1, waiting=5), running_calls=2)
    async with AsyncExitStack() as first:
        await first.enter_async_context(turn(limits, "ana"))
        waiting = asyncio.create_task(entered(limits, "ana"))
        await asyncio.sleep(0.01)
        assert "in" == await entered(limits, "bob")
        async with turn(limits, "bob"):
            await first.aclose()
            assert "in" == await waiting


async def test_many_callers_take_no_more_memory_and_none_under_way_is_forgotten() -> None:
    """Beyond so many the one who called least lately is forgotten."""
    limits = limiter(own=of_a_caller(concurrent=1), remembered_callers=100)
    async with turn(limits, "busy"):
        for number in range(110):
            assert "in" == await entered(limits, str(number))
        assert "TOO_MANY_AT_ONCE 1000" == await entered(limits, "busy")


async def test_a_dashboard_of_twelve_panels_is_reloaded_a_hundred_times() -> None:
    """With the limits that a gateway has by default no panel is refused, as fast as it asks."""
    limits = Limiter(LimitSettings().of_a_caller(), clock=asyncio.get_running_loop().time)

    async def panel() -> str:
        async with limits.entered("ana", seconds_left=30) as call:
            await asyncio.sleep(0)
            assert call
        return "in"

    async def first_load() -> list[str]:
        return await asyncio.gather(*(entered(limits) for _ in range(12)))

    assert ["in"] * 12 == await first_load()
    for _ in range(100):
        assert ["in"] * 12 == await asyncio.gather(*(panel() for _ in range(12)))
