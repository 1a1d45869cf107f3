"""Letting calls in: who calls is found out, counted, and remembered for the method."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import grpc

from pinot_connector.gateway.callers import Callers, NoAccountError, UnknownCallerError, current_caller
from pinot_connector.gateway.limits import Limiter, TooManyError
from pinot_connector.gateway.statuses import DOMAIN, too_many
from serving.admission import Admission, refuse
from serving.identity import Context
from serving.observing import Sight
from serving.tokens import TokenError

PUSHBACK = "grpc-retry-pushback-ms"


class GatewayAdmission(Admission):
    """Runs a method only for a known caller who stays within the limits."""

    def __init__(self, callers: Callers, limiter: Limiter, sight: Sight) -> None:
        super().__init__(sight)
        self._callers = callers
        self._limiter = limiter

    @asynccontextmanager
    async def admitted(self, method: str, context: Context) -> AsyncIterator[None]:
        """Surround a call; ends it with UNAUTHENTICATED, PERMISSION_DENIED or UNAVAILABLE if it may not be."""
        refused = partial(refuse, context, domain=DOMAIN)
        try:
            caller = self._callers.caller(context)
        except TokenError as error:
            await refused(grpc.StatusCode.UNAUTHENTICATED, str(error), reason="TOKEN_REFUSED")
        except UnknownCallerError as error:
            await refused(grpc.StatusCode.UNAUTHENTICATED, str(error), reason="CALLER_UNKNOWN")
        except NoAccountError:
            message = "no account belongs to this caller"
            await refused(grpc.StatusCode.PERMISSION_DENIED, message, reason="CALLER_WITHOUT_ACCOUNT")
        try:
            with self._limiter.entered(caller.name):
                # Each call has a context of its own, so nothing has to be taken back.
                current_caller.set(caller)
                yield
        except TooManyError as error:
            status = too_many(error)
            pushback = (PUSHBACK, str(error.wait_milliseconds))
            await context.abort(status.code, status.details, (*status.trailing_metadata, pushback))
