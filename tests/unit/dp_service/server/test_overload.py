"""More calls than dp_service can do at a time: refused at once, in words that a client can act on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from gris_api.dp.v1 import dp_pb2
from grpc_status import rpc_status

from dp_service.releases.keys import KeySet
from dp_service.server.admission import Admission
from dp_service.server.served_policy import ServedPolicy, usable_policy
from dp_service.server.service import DpServicer, Environment
from tests.support.dp_questions import KEY, POLICY, Entropy, answer_of, header, question, translated
from tests.support.dp_server import serving


class HeldClock:
    """A clock that keeps other threads waiting while it is held."""

    def __init__(self) -> None:
        self.held = False
        self.asked = threading.Event()
        self.released = threading.Event()

    def __call__(self) -> float:
        """Return a time, sooner or later."""
        if self.held and threading.current_thread() is not threading.main_thread():
            self.asked.set()
            assert self.released.wait(20)
        return 1_000_000.0


def admitting(most: int, clock: HeldClock) -> DpServicer:
    """Return a servicer that lets so many calls in."""
    served = ServedPolicy(usable_policy(POLICY.encode(), "policy", KEY))
    return DpServicer(served, KeySet(KEY), Environment(clock, Entropy()), Admission(most))


async def overloaded(call: Any) -> error_details_pb2.RetryInfo:
    """Return when to try again, as the refusal of an overloaded service says."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    status = rpc_status.from_call(caught.value)  # type: ignore[arg-type]  # the same methods
    assert status is not None
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(retry)
    assert (caught.value.code(), info.domain, info.reason) == (
        grpc.StatusCode.UNAVAILABLE,
        "gris.dp",
        "OVERLOADED",
    )
    return retry


async def test_more_calls_than_may_run_are_refused_and_the_next_is_not() -> None:
    """UNAVAILABLE with RetryInfo, for single messages and streams; once there is room, calls are served again."""
    clock = HeldClock()
    estimate = dp_pb2.EstimateCostRequest(question=question())
    async with serving(admitting(1, clock)) as dp:
        plan, answer = await translated(dp, question()), answer_of("article")
        clock.held = True
        running = asyncio.ensure_future(dp.EstimateCost(estimate))
        assert await asyncio.to_thread(clock.asked.wait, 20)
        assert (await overloaded(dp.EstimateCost(estimate))).retry_delay.seconds == 1
        unary = dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=answer)
        assert (await overloaded(dp.AddNoiseUnary(unary))).retry_delay.seconds == 1
        stream = dp.AddNoise(iter([dp_pb2.AddNoiseRequest(header=header(plan))]))
        assert (await overloaded(stream.read())).retry_delay.seconds == 1
        clock.held = False
        clock.released.set()
        assert await running == await dp.EstimateCost(estimate)


async def test_a_call_whose_client_has_left_makes_room() -> None:
    """Or a service would be overloaded for ever by clients in a hurry."""
    clock = HeldClock()
    clock.released.set()
    estimate = dp_pb2.EstimateCostRequest(question=question())
    async with serving(admitting(1, clock)) as dp:
        clock.released.clear()
        clock.held = True
        call = dp.EstimateCost(estimate)
        running = asyncio.ensure_future(call)
        assert await asyncio.to_thread(clock.asked.wait, 20)
        running.cancel()
        await asyncio.wait((running,))
        clock.held = False
        clock.released.set()
        async with asyncio.timeout(10):
            while True:
                try:
                    assert (await dp.EstimateCost(estimate)).estimate.worst_case_cost.calls == 1
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.01)
                else:
                    return
