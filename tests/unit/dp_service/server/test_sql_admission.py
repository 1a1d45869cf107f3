"""The bytes of SQL that are read at a time: one caller's flood is refused by name, and others get their answers."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2
from grpc_status import rpc_status

from dp_service.queries.sql.places import MAXIMUM_LENGTH
from dp_service.server.sql_admission import MAX_BYTES_OF_ALL, SqlAdmission, TooMuchSqlError
from pinot_connector import structured_question
from tests.support.dp_questions import POLICY
from tests.support.dp_server import servicer_of, serving

SMALL = "SELECT app, COUNT(DISTINCT member_id) FROM engagement GROUP BY app LIMIT {}"
VALUES = ", ".join(f"'{number:06}'" for number in range(9_000))
LARGE = SMALL.replace(" GROUP", f" WHERE article IN ({VALUES}) GROUP").replace("app", "article")


def large(number: int) -> str:
    """Return a text of some 90,000 bytes that takes long to read."""
    return LARGE.format(number)


def request(sql: str) -> dp_pb2.TranslateQueryRequest:
    """Return a question in SQL."""
    return dp_pb2.TranslateQueryRequest(question=question_pb2.Question(sql=sql), data_version="1")


def conditional(number: int) -> dp_pb2.TranslateQueryRequest:
    """Return a structured question whose condition is as long."""
    asked = structured_question("engagement", "article", k=number, where=f"article IN ({VALUES}){' ' * 94}")
    return dp_pb2.TranslateQueryRequest(question=asked, data_version="1")


async def outcome(call: Any) -> str:
    """Return how a call ended: with an answer, or by the reason of its refusal, which says the limit."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return reason_of(error)
    return "answered"


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """Return the reason of a refusal that says all there is to know, and nothing of the text."""
    status, said = rpc_status.from_call(error), error.details() or ""  # type: ignore[arg-type]  # the same methods
    assert status is not None
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(retry)
    assert (error.code(), retry.retry_delay.seconds) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 1)
    assert re.search(
        f"got 90,1[0-9][0-9] bytes beside .* expected at most {MAXIMUM_LENGTH:,} at a time", said
    )
    assert "000001" not in said
    return str(info.reason)


def named(caller: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata by which a gateway tells a caller apart."""
    return (("gris-caller", caller),)


async def test_a_caller_who_floods_does_not_starve_another() -> None:
    """Of one who sends 60 long texts at once, two are read and the rest refused; another one is answered meanwhile."""
    async with serving(servicer_of(POLICY)) as dp:
        flood = [
            asyncio.ensure_future(outcome(dp.TranslateQuery(request(large(k)), metadata=named("a" * 32))))
            for k in range(1, 61)
        ]
        await asyncio.sleep(0)
        began = time.perf_counter()
        for k in range(1, 11):
            await dp.TranslateQuery(request(SMALL.format(k)), metadata=named("b" * 32))
        assert await outcome(dp.TranslateQuery(request(large(99)), metadata=named("b" * 32))) == "answered"
        waited = time.perf_counter() - began
        ended = Counter(await asyncio.gather(*flood))
        assert set(ended) == {"answered", "TOO_MUCH_SQL"}
        # A quick machine reads a text before the last ones arrive.
        assert 2 <= ended["answered"] <= 20
        assert waited < 20
        assert await outcome(dp.EstimateCost(dp_pb2.EstimateCostRequest(question=request(large(7)).question)))


async def test_a_name_that_is_no_digest_is_ignored() -> None:
    """Else each call could come from somebody else. A condition of a structured question counts as a text does."""
    async with serving(servicer_of(POLICY)) as dp:
        asked = [request(large(k)) if k % 2 else conditional(k) for k in range(1, 31)]
        calls = [outcome(dp.TranslateQuery(each, metadata=named(f"x{i}"))) for i, each in enumerate(asked)]
        assert Counter(await asyncio.gather(*calls))["TOO_MUCH_SQL"] >= 10


@contextmanager
def reader_that_waits() -> Iterator[threading.Event]:
    """Give what lets the readers of a block go on, and let them go at its end: they would keep the run from ending."""
    ends = threading.Event()
    try:
        yield ends
    finally:
        ends.set()


async def test_all_callers_together_have_a_limit() -> None:
    """And each may have the longest text read, in bytes and not in characters; what is longer is not read at all."""
    admission, longest = SqlAdmission(), "é" * (MAXIMUM_LENGTH // 2)
    with reader_that_waits() as ends:
        reading = [
            asyncio.ensure_future(admission.read(f"caller {each}", longest, ends.wait)) for each in range(4)
        ]
        await asyncio.sleep(0)
        with pytest.raises(TooMuchSqlError, match=r"got 1 bytes beside 262,144 of this caller"):
            await admission.read("caller 0", "x", bool)
        with pytest.raises(TooMuchSqlError, match=f"more than {MAX_BYTES_OF_ALL:,} would be read"):
            await admission.read("caller 5", "x", bool)
        too_long = await admission.read("caller 0", longest + "x", lambda: "refused by its length")
        assert too_long == "refused by its length"
    assert await asyncio.gather(*reading) == [True] * 4
    assert await admission.read("caller 0", longest, lambda: 5) == 5


async def test_what_a_caller_has_left_behind_counts_until_it_is_read() -> None:
    """A thread goes on: to cancel and to send again must not fill all of them."""
    admission, text, reads = SqlAdmission(), "x" * MAXIMUM_LENGTH, threading.Event()
    with reader_that_waits() as ends:

        def read() -> bool:
            reads.set()
            return ends.wait()

        left = asyncio.ensure_future(admission.read("caller", text, read))
        assert await asyncio.to_thread(reads.wait, 20)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        with pytest.raises(TooMuchSqlError):
            await admission.read("caller", text, bool)
    async with asyncio.timeout(20):
        while True:
            try:
                assert await admission.read("caller", text, lambda: 7) == 7
                break
            except TooMuchSqlError:
                await asyncio.sleep(0.01)
    with pytest.raises(ZeroDivisionError):
        await admission.read("caller", text, lambda: 1 // 0)
    assert await admission.read("caller", text, lambda: 8) == 8
