"""Admission of calls by gRPC: the caller is identified, counted, and remembered for the method."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from time import perf_counter

import grpc

from gris_gateway.accounts import Caller
from gris_gateway.callers import Callers, NoAccountError, UnknownCallerError
from gris_gateway.limits import DEFAULT_LIMITS, GatewayLimits
from gris_gateway.rate_limits import AdmittedCall, Limiter, TooManyError
from gris_gateway.rpc_errors import DOMAIN, end_call, too_many
from gris_serving.admission import Admission, Handler, Surrounding, refuse
from gris_serving.identity import Context, sender_of
from gris_serving.instrumentation import Instrumentation
from gris_serving.slow_callers import (
    SlowCallerError,
    SlowCallerLimit,
    UnreadError,
    UnsentError,
    refuse_slow,
    with_timeout,
)
from gris_serving.tokens import TokenError

current_caller: ContextVar[Caller] = ContextVar("current_caller")
current_call: ContextVar[AdmittedCall] = ContextVar("current_call")
"""Who calls by gRPC, and the call within its limits; set before a method of the service runs."""

_refused = partial(refuse, domain=DOMAIN)


class GatewayAdmission(Admission):
    """Runs a method only for a known caller who stays within the limits, and waits for no caller for ever.

    Args:
        callers: Identifies callers.
        limiter: Limits the calls of each caller and of all together.
        instrumentation: Records calls that are not admitted.
        limits: How long a call may wait for its caller, and how many calls of health and reflection may be open.
    """

    def __init__(
        self,
        callers: Callers,
        limiter: Limiter,
        instrumentation: Instrumentation,
        limits: GatewayLimits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(instrumentation)
        self._caller_timeout_seconds = limits.caller_timeout_seconds
        self._callers = callers
        self._limiter = limiter
        self._open_calls = SlowCallerLimit(limits.open_calls)
        self._open_readers = SlowCallerLimit(limits.open_readers)

    def surrounded(self, handler: Handler, admitted: Surrounding) -> Handler:
        """Return a handler that does the same inside `admitted`, and reads nothing before that is entered."""
        return with_timeout(handler, admitted, self._caller_timeout_seconds)

    def opened(self, handler: Handler) -> Handler:
        """Return the handler of an open method, limited in time and number."""
        return with_timeout(handler, self._open_to_all, self._caller_timeout_seconds, self._open_readers)

    @asynccontextmanager
    async def admitted(self, method: str, context: Context) -> AsyncIterator[None]:
        """Surround a call; end it with UNAUTHENTICATED, PERMISSION_DENIED or UNAVAILABLE if it is not admitted."""
        caller = await self._known(context)
        began = perf_counter()
        try:
            async with self._limiter.entered(caller.name, context.time_remaining()) as call:
                # Each call has a context of its own, so nothing has to be taken back.
                current_caller.set(caller)
                current_call.set(call)
                try:
                    yield
                except UnreadError as error:
                    # The end of the call has to wait until the answer is read, or the connection ends.
                    call.stop_counting()
                    await refuse_slow(context, error, DOMAIN)
        except TooManyError as error:
            await end_call(context, too_many(error))
        except UnsentError as unsent:
            try:
                await refuse_slow(context, unsent, DOMAIN)
            except grpc.aio.AbortError as ended:
                self._never_begun(method, ended, context, began)
                raise
            except Exception:
                # The caller has left.
                self._never_begun(method, asyncio.CancelledError(), context, began)
                raise

    def _never_begun(self, method: str, error: BaseException, context: Context, began: float) -> None:
        """Record a call that ended before its request had arrived; the instrumented method was never called."""
        self._instrumentation.not_admitted(method, error, context, perf_counter() - began)

    async def _known(self, context: Context) -> Caller:
        try:
            return self._callers.caller(sender_of(context))
        except TokenError as error:
            await _refused(context, grpc.StatusCode.UNAUTHENTICATED, str(error), reason="TOKEN_REFUSED")
        except UnknownCallerError as error:
            await _refused(context, grpc.StatusCode.UNAUTHENTICATED, str(error), reason="CALLER_UNKNOWN")
        except NoAccountError:
            message = "no account, or no audience of the policy, belongs to this caller"
            await _refused(
                context, grpc.StatusCode.PERMISSION_DENIED, message, reason="CALLER_WITHOUT_ACCOUNT"
            )

    @asynccontextmanager
    async def _open_to_all(self, context: Context) -> AsyncIterator[None]:
        """Surround an open call; end it if it takes too long, or if newer calls need its slot."""
        try:
            async with asyncio.timeout(None) as stay:
                with self._open_calls.entered(stay):
                    yield
        except TimeoutError:
            message = "too many calls at once; this one began first"
            await _refused(context, grpc.StatusCode.UNAVAILABLE, message, reason="OVERLOADED")
        except SlowCallerError as error:
            await refuse_slow(context, error, DOMAIN)
