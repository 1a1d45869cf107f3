"""How long, and for how many, a server waits for its callers: for the rest of a request, for an answer to be read.

By itself gRPC reads a whole request before anything asks who sends it, and keeps an answer until it is read, however
many answers there are. So such calls are served as streams, which is the same on the wire: a message is read
when something waits for it and not before, and whatever is not waited for stays with its sender.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from typing import Any, ClassVar, TypeVar

import grpc

from gris_serving.admission import Handler, Surrounding, behaviour_of, refuse
from gris_serving.identity import Context

_Waited = TypeVar("_Waited")


HANDSHAKE_SECONDS = 10.0


def handshake_options(seconds: float = HANDSHAKE_SECONDS) -> tuple[tuple[str, int], ...]:
    """Return the options of a server that closes connections which have not finished their handshake in time.

    The handshake is TLS, if there is any, and the first frame of HTTP/2. By default gRPC waits two minutes for it, and
    anyone who connects holds memory and a file descriptor meanwhile.
    """
    return (("grpc.server_handshake_timeout_ms", int(1000 * seconds)),)


def keepalive_options(seconds: float) -> tuple[tuple[str, int], ...]:
    """Return the options of a server that closes connections which have calls and accept nothing for `seconds`.

    On such a connection neither the beginning of an answer nor a refusal can be sent, so `with_timeout` ends no call.
    """
    # One half until the other side is pinged, one half for its answer.
    half = int(500 * seconds)
    return (("grpc.keepalive_time_ms", half), ("grpc.keepalive_timeout_ms", half))


class SlowCallerError(Exception):
    """A caller keeps its call waiting too long; the call ends with this status."""

    code: ClassVar[grpc.StatusCode]
    reason: ClassVar[str]
    message: ClassVar[str]


class UnsentError(SlowCallerError):
    """A caller does not send one whole request."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "REQUEST_UNFINISHED"
    message = "expected one whole request, sent in time"


class UnreadError(SlowCallerError):
    """A caller does not read its answer."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED
    reason = "ANSWER_UNREAD"
    message = "the answer was not read in time"


async def refuse_slow(context: Context, error: SlowCallerError, domain: str) -> None:
    """End the call of a caller who keeps it waiting."""
    await refuse(context, error.code, error.message, domain=domain, reason=error.reason)


class SlowCallerLimit:
    """Holds at most so many callers at a time: when it is full, a new one replaces the one that came first.

    These callers are not identified, so long calls cannot be distinguished from short ones:
    the oldest has to give way.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside: dict[asyncio.Timeout, None] = {}

    @contextmanager
    def entered(self, stay: asyncio.Timeout) -> Iterator[None]:
        """Count a caller while the block runs, which is inside `stay`; `stay` ends when a newer caller replaces it."""
        while len(self._inside) >= self._most:
            first = next(iter(self._inside))
            del self._inside[first]
            if not first.expired():
                first.reschedule(asyncio.get_running_loop().time())
        self._inside[stay] = None
        try:
            yield
        finally:
            self._inside.pop(stay, None)


class _CallTimeout:
    """How long one call may still wait for its caller, in seconds; reading also counts in `readers` if given."""

    def __init__(self, seconds: float, readers: SlowCallerLimit | None) -> None:
        self._seconds = seconds
        self._readers = readers
        self._has_begun = False

    async def reading(self, requests: AsyncIterator[Any]) -> Any:
        """Return the next request.

        Raises:
            StopAsyncIteration: There is none.
            UnsentError: It did not arrive in time.
        """
        try:
            return await self._waiting(anext(requests), self._readers)
        except TimeoutError:
            raise UnsentError from None

    async def writing(self, context: Context, response: Any) -> None:
        """Send a message.

        Raises:
            UnreadError: It was not read in time.
        """
        if not self._has_begun:
            # Sent with a message that is given up, the beginning would be sent again with the end.
            await context.send_initial_metadata(())
            self._has_begun = True
        try:
            await self._waiting(context.write(response))
        except TimeoutError:
            raise UnreadError from None

    async def _waiting(self, waited: Awaitable[_Waited], limit: SlowCallerLimit | None = None) -> _Waited:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._seconds) as stay:
                with nullcontext() if limit is None else limit.entered(stay):
                    return await waited
        finally:
            self._seconds -= loop.time() - began


def with_timeout(
    handler: Handler,
    surrounding: Surrounding,
    seconds: float,
    readers: SlowCallerLimit | None = None,
) -> Handler:
    """Return a handler that does the same inside `surrounding`, and reads nothing before that has been entered.

    Inside `surrounding`, where answers are also sent, UnsentError or UnreadError is raised if the caller keeps the call
    waiting too long.

    Args:
        handler: What is to be run.
        surrounding: What surrounds each call.
        seconds: How long all of one call may wait for its caller.
        readers: Limits how many calls may be reading a request; a call that is replaced raises UnsentError.
    """
    behaviour = behaviour_of(handler)

    async def served(requests: AsyncIterator[Any], context: Context) -> None:
        async with surrounding(context):
            call_timeout = _CallTimeout(seconds, readers)
            given = (
                _all(requests, call_timeout)
                if handler.request_streaming
                else await _one(requests, call_timeout)
            )
            answer = behaviour(given, context)
            all_answers: AsyncGenerator[Any, None] = answer if handler.response_streaming else _once(answer)
            async with aclosing(all_answers) as responses:
                async for response in responses:
                    await call_timeout.writing(context, response)

    streamed: Handler = grpc.stream_stream_rpc_method_handler(
        served, handler.request_deserializer, handler.response_serializer
    )
    return streamed


async def _one(requests: AsyncIterator[Any], call_timeout: _CallTimeout) -> Any:
    try:
        return await call_timeout.reading(requests)
    except StopAsyncIteration:
        raise UnsentError from None


async def _all(requests: AsyncIterator[Any], call_timeout: _CallTimeout) -> AsyncIterator[Any]:
    while True:
        try:
            yield await call_timeout.reading(requests)
        except StopAsyncIteration:
            return


async def _once(answer: Awaitable[Any]) -> AsyncGenerator[Any, None]:
    yield await answer
