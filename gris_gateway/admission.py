"""Letting calls in: who calls is found out, counted, and remembered for the method."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter
from typing import NoReturn

import grpc

from gris_gateway.accounts import Caller
from gris_gateway.callers import Callers, NoAccountError, UnknownCallerError, current_caller
from gris_gateway.rate_limits import Limiter, TooManyError
from gris_gateway.rpc_errors import DOMAIN, too_many
from gris_gateway.slow_callers import (
    CALLER_TIMEOUT_SECONDS,
    SlowCallerLimit,
    UnreadError,
    UnsentError,
    with_timeout,
)
from gris_serving.admission import Admission, Handler, Surrounding, refuse
from gris_serving.identity import Context
from gris_serving.instrumentation import Instrumentation
from gris_serving.tokens import TokenError

PUSHBACK = "grpc-retry-pushback-ms"

# Whoever reaches the gateway may ask whether it lives, and watch that; each program that does so watches once.
MAX_OPEN_CALLS = 2000
# Of those calls, how many may be sending a request of up to 2 MiB.
MAX_OPEN_READERS = 64

_refused = partial(refuse, domain=DOMAIN)


class GatewayAdmission(Admission):
    """Runs a method only for a known caller who stays within the limits, and waits for nobody without end.

    Args:
        callers: tells who calls.
        limiter: tells how much one caller may ask at a time.
        sight: looks at calls that are not let in.
        patience_seconds: how long all of one call may wait for its caller.
    """

    def __init__(
        self,
        callers: Callers,
        limiter: Limiter,
        instrumentation: Instrumentation,
        caller_timeout_seconds: float = CALLER_TIMEOUT_SECONDS,
    ) -> None:
        super().__init__(instrumentation)
        self._caller_timeout_seconds = caller_timeout_seconds
        self._callers = callers
        self._limiter = limiter
        self._open_calls, self._open_readers = (
            SlowCallerLimit(MAX_OPEN_CALLS),
            SlowCallerLimit(MAX_OPEN_READERS),
        )

    def surrounded(self, handler: Handler, admitted: Surrounding) -> Handler:
        """Return a handler that does the same inside `admitted`, and reads nothing before."""
        return with_timeout(handler, admitted, self._caller_timeout_seconds)

    def opened(self, handler: Handler) -> Handler:
        """Return the handler of an open method, for as many as there is room for."""
        return with_timeout(handler, self._open_to_all, self._caller_timeout_seconds, self._open_readers)

    @asynccontextmanager
    async def admitted(self, method: str, context: Context) -> AsyncIterator[None]:
        """Surround a call; ends it with UNAUTHENTICATED, PERMISSION_DENIED or UNAVAILABLE if it may not be."""
        caller = await self._known(context)
        began = perf_counter()
        try:
            with self._limiter.entered(caller.name) as leave_the_others:
                # Each call has a context of its own, so nothing has to be taken back.
                current_caller.set(caller)
                try:
                    yield
                except UnreadError:
                    # The end of the call has to wait until the answer is read, or the connection ends.
                    leave_the_others()
                    await _refuse_unread(context)
        except TooManyError as error:
            status = too_many(error)
            pushback = (PUSHBACK, str(error.wait_milliseconds))
            await context.abort(status.code, status.details, (*status.trailing_metadata, pushback))
        except UnsentError:
            try:
                await _refuse_unsent(context)
            except grpc.aio.AbortError as ended:
                self._never_begun(method, ended, context, began)
                raise
            except Exception:
                # Nobody is there any more to be told.
                self._never_begun(method, asyncio.CancelledError(), context, began)
                raise

    def _never_begun(self, method: str, error: BaseException, context: Context, began: float) -> None:
        """Look at a call that ended before its request was there: the method, which is looked at, never heard of it."""
        self._instrumentation.not_admitted(method, error, context, perf_counter() - began)

    async def _known(self, context: Context) -> Caller:
        try:
            return self._callers.caller(context)
        except TokenError as error:
            await _refused(context, grpc.StatusCode.UNAUTHENTICATED, str(error), reason="TOKEN_REFUSED")
        except UnknownCallerError as error:
            await _refused(context, grpc.StatusCode.UNAUTHENTICATED, str(error), reason="CALLER_UNKNOWN")
        except NoAccountError:
            message = "no account belongs to this caller"
            await _refused(
                context, grpc.StatusCode.PERMISSION_DENIED, message, reason="CALLER_WITHOUT_ACCOUNT"
            )

    @asynccontextmanager
    async def _open_to_all(self, context: Context) -> AsyncIterator[None]:
        """Surround an open call; ends it if it takes too long, or others want its place."""
        try:
            async with asyncio.timeout(None) as stay:
                with self._open_calls.entered(stay):
                    yield
        except TimeoutError:
            message = "too many calls at once; this one began first"
            await _refused(context, grpc.StatusCode.UNAVAILABLE, message, reason="OVERLOADED")
        except UnsentError:
            await _refuse_unsent(context)
        except UnreadError:
            await _refuse_unread(context)


async def _refuse_unsent(context: Context) -> NoReturn:
    message = "expected one whole request, sent in time"
    await _refused(context, grpc.StatusCode.INVALID_ARGUMENT, message, reason="REQUEST_UNFINISHED")


async def _refuse_unread(context: Context) -> NoReturn:
    message = "the answer was not read in time"
    await _refused(context, grpc.StatusCode.DEADLINE_EXCEEDED, message, reason="ANSWER_UNREAD")
