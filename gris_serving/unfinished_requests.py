"""How many calls may wait for the rest of their request, and for how long.

What has come of a request is kept for as long as its connection lives, whatever deadline its caller has set. gRPC tells
a server of a call when its headers have come, but a method that takes one message is run only when that is whole, and
until then nothing can end its call. Served as a stream, which is the same on the wire, it can be ended; but that costs
every call some fifty microseconds. So calls are served as they are while few of them wait, and as streams beyond that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter
from typing import Any

import grpc

from gris_serving.admission import Handler, behaviour_of
from gris_serving.identity import Context
from gris_serving.instrumentation import Instrumentation
from gris_serving.slow_callers import SlowCallerError, SlowCallerLimit, refuse_slow, with_timeout

# Messages mostly come with their headers, so that few honest calls wait at a time.
PART_AT_EASE = 4


class UnfinishedRequests(grpc.aio.ServerInterceptor):
    """Bounds how many calls wait for the rest of their request.

    A quarter of them may wait for as long as their connection lives; the others are ended in time, and the oldest of
    them when there are too many. A call whose request is there is not concerned; of a stream, the first message.

    Args:
        domain: The domain of errors.
        instrumentation: Records calls whose request does not come.
        most: How many calls may wait.
        seconds: How long a call may wait that can be ended.
    """

    def __init__(self, domain: str, instrumentation: Instrumentation, *, most: int, seconds: float) -> None:
        self._domain = domain
        self._instrumentation = instrumentation
        self._seconds = seconds
        self._most_at_ease = most // PART_AT_EASE
        self._at_ease: set[asyncio.Task[Any]] = set()
        self._readers = SlowCallerLimit(most - self._most_at_ease)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the method's handler."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        # gRPC runs the interceptors and the method of a call in one task.
        task = asyncio.current_task()
        if task is None or len(self._at_ease) >= self._most_at_ease:
            surrounding = partial(self._refusing, handler_call_details.method)
            return with_timeout(handler, surrounding, self._seconds, self._readers)
        self._at_ease.add(task)
        task.add_done_callback(self._at_ease.discard)
        return self._noting(task, handler)

    def _noting(self, task: asyncio.Task[Any], handler: Handler) -> Handler:
        """Return the handler, whose decoder notes that the request has come."""
        decode: Callable[[bytes], Any] = handler.request_deserializer or bytes

        def decoded(message: bytes) -> Any:
            self._at_ease.discard(task)
            return decode(message)

        return with_decoder(handler, decoded)

    @asynccontextmanager
    async def _refusing(self, method: str, context: Context) -> AsyncIterator[None]:
        began = perf_counter()
        try:
            yield
        except SlowCallerError as error:
            try:
                await refuse_slow(context, error, self._domain)
            except grpc.aio.AbortError as refusal:
                self._instrumentation.not_admitted(method, refusal, context, perf_counter() - began)
                raise


def with_decoder(handler: Handler, decode: Callable[[bytes], Any]) -> Handler:
    """Return a handler that decodes requests in another way."""
    kinds = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }
    made: Handler = kinds[handler.request_streaming, handler.response_streaming](
        behaviour_of(handler), decode, handler.response_serializer
    )
    return made
