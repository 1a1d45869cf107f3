"""Admits what a gateway is asked in another protocol than gRPC."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from gris_gateway.accounts import AccountError, Caller, OutOfReachError
from gris_gateway.callers import Callers, NoAccountError, UnknownCallerError
from gris_gateway.own_calls import CallsOfCaller, OwnCalls
from gris_gateway.rate_limits import Limiter, TooManyError
from gris_serving.admitting import Sender
from gris_serving.refusals import HttpRefusalError
from gris_serving.tokens import TokenError
from pinot_connector.gateway_client import AsyncGatewayClient

_CHALLENGE = {"WWW-Authenticate": "Bearer"}

log = logging.getLogger(__name__)


class FaceAdmission:
    """Admits requests as the gateway admits its callers: by the same tokens, certificates and rules.

    The sender of a request is identified here, before it is read. Where it calls the gateway's RPCs, it takes its turn
    with all calls of its caller. Requests have limits of their own besides, for most of them, such as those that list
    tools or tables, call no RPC.

    Args:
        name: What the log calls the server whose requests these are.
        callers: Identifies callers.
        requests: Limits the requests of each caller.
        calls: The gateway's functions, for calls of this process.
    """

    def __init__(
        self,
        name: str,
        callers: Callers,
        requests: Limiter,
        calls: OwnCalls,
    ) -> None:
        self._name = name
        self._callers = callers
        self._requests = requests
        self._calls = calls

    @asynccontextmanager
    async def admitted(self, sender: Sender, account: str | None = None) -> AsyncIterator[AsyncGatewayClient]:
        """Admit a request while the block runs, and yield the client by which its sender asks.

        Args:
            sender: Shows at most one token, or a certificate.
            account: Whose budget pays; None: the caller's own account.

        Raises:
            HttpRefusalError: The sender is not known, has no account, or asks too much.
        """
        caller = self.require_known(sender)
        paying = self._within_reach(caller, account)
        try:
            async with self._requests.entered(caller.name) as request:
                # Every request counts against the rate.
                await request.turn()
                yield AsyncGatewayClient(CallsOfCaller(self._calls, caller), account=paying)
        except TooManyError as error:
            seconds = math.ceil(error.wait_milliseconds / 1000)
            raise self._refused(
                HTTPStatus.TOO_MANY_REQUESTS, error.reason, str(error), {"Retry-After": str(seconds)}
            ) from None

    def _within_reach(self, caller: Caller, account: str | None) -> tuple[str, ...]:
        try:
            return caller.account([] if account is None else account.split("/"))
        except (AccountError, OutOfReachError):
            message = (
                "expected the caller's own account, or one below it where the gateway's rules allow that"
            )
            raise self._refused(HTTPStatus.FORBIDDEN, "ACCOUNT_OUT_OF_REACH", message) from None

    def require_known(self, sender: Sender) -> Caller:
        """Return who sends a request.

        Raises:
            HttpRefusalError: The sender is not known, or has no account.
        """
        try:
            return self._callers.caller(sender)
        except TokenError as error:
            raise self._refused(HTTPStatus.UNAUTHORIZED, "TOKEN_REFUSED", str(error), _CHALLENGE) from None
        except UnknownCallerError:
            message = "expected a token or a certificate that says who calls"
            raise self._refused(HTTPStatus.UNAUTHORIZED, "CALLER_UNKNOWN", message, _CHALLENGE) from None
        except NoAccountError:
            message = "no account, or no audience of the policy, belongs to this caller"
            raise self._refused(HTTPStatus.FORBIDDEN, "CALLER_WITHOUT_ACCOUNT", message) from None

    def _refused(
        self, status: HTTPStatus, reason: str, message: str, headers: dict[str, str] | None = None
    ) -> HttpRefusalError:
        fields = {"server": self._name, "status": int(status), "reason": reason}
        log.info("A request was refused.", extra={"event": "request.refused", "fields": fields})
        return HttpRefusalError(status, message, headers or {})
