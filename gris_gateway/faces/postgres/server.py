"""The listener for clients of PostgreSQL: connections, TLS and log-in."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import count
from pathlib import Path

from pygwire import messages

from gris_gateway.faces.postgres import errors
from gris_gateway.faces.postgres.catalogue import Catalogue
from gris_gateway.faces.postgres.conversation import Conversation
from gris_gateway.faces.postgres.errors import PostgresError, error_of
from gris_gateway.faces.postgres.session import Admitted, Session
from gris_gateway.faces.postgres.settings import DATABASE, settings_in
from gris_gateway.faces.postgres.wire import (
    MAX_PASSWORD_BYTES,
    NEWEST_VERSION,
    ConnectionOver,
    Malformed,
    Wire,
    WireRules,
)
from gris_serving.admitting import Admitting, Sender
from gris_serving.internal_errors import log_internal_error
from gris_serving.listening import bound_socket
from gris_serving.refusals import HttpRefusalError
from gris_serving.security import warn_of_missing_protection
from gris_serving.tls import is_loopback
from pinot_connector.gateway_client import AsyncGatewayClient

log = logging.getLogger(__name__)

# Databases that clients name by themselves.
_DATABASES = (DATABASE, "postgres", "")
_MOST_BEGINNINGS = 4
# What options of the protocol begin with.
_OPTION = "_pq_."
MOST_UNKNOWN = 500
"""How many connections may be of nobody who is known yet; a further one ends the oldest."""


@dataclass(frozen=True)
class _LoggedIn:
    """A connection whose caller is known; `secret` is what a request to cancel shows."""

    secret: bytes
    account: tuple[str, ...]
    conversation: Conversation
    task: asyncio.Task[None]


class PostgresServer:
    """A server for clients of PostgreSQL, ready to listen.

    Args:
        name: The key of the configuration that it is described by.
        listen: HOST:PORT.
        tls: The TLS of the address; None: plain text.
        admitting: Knows who asks.
        rules: What connections may hold.
        programs: The folder of PostgreSQL's programs, for the catalogue; None: there is no catalogue.
    """

    def __init__(
        self,
        name: str,
        listen: str,
        tls: ssl.SSLContext | None,
        admitting: Admitting[AsyncGatewayClient],
        rules: WireRules,
        *,
        programs: Path | None = None,
    ) -> None:
        self._name = name
        self._listen = listen
        self._tls = tls
        self._admitting = admitting
        self._rules = rules
        self._catalogue = Catalogue(programs)
        self._connections: set[asyncio.Task[None]] = set()
        self._unknown: dict[asyncio.Task[None], None] = {}
        self._conversations: dict[int, _LoggedIn] = {}
        self._numbers = count(1)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve while the block runs, and yield the address; then what has begun gets the grace period.

        Raises:
            SecurityError: It cannot listen.
        """
        listening = bound_socket(self._name, self._listen)
        listening.setblocking(False)
        if self._tls is None and not is_loopback(self._listen):
            warn_of_missing_protection(self._listen, ["tls"])
        async with AsyncExitStack() as stack:
            stack.callback(listening.close)
            stack.push_async_callback(self._catalogue.close)
            accepting = asyncio.create_task(self._accept(listening))
            try:
                yield f"{self._listen.rpartition(':')[0]}:{listening.getsockname()[1]}"
            finally:
                accepting.cancel()
                await asyncio.gather(accepting, return_exceptions=True)
                await self._finish()

    async def _finish(self) -> None:
        """Let what is being answered end, for a while; nothing waits for connections that ask nothing."""
        busy = [each for each in self._conversations.values() if not each.conversation.is_idle]
        for each in busy:
            each.conversation.stop()
        for task in self._connections.difference(each.task for each in busy):
            task.cancel()
        if busy:
            await asyncio.wait([each.task for each in busy], timeout=self._rules.grace_seconds)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                peer, _ = await loop.sock_accept(listening)
            except OSError:
                # No more descriptors: others end.
                await asyncio.sleep(0.1)
                continue
            peer.setblocking(False)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            with suppress(OSError):
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = asyncio.create_task(self._connected(peer))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            if len(self._unknown) >= MOST_UNKNOWN:
                # One that logs in does so at once.
                oldest = next(iter(self._unknown))
                del self._unknown[oldest]
                oldest.cancel()
            self._unknown[task] = None
            task.add_done_callback(self._no_longer_unknown)

    def _no_longer_unknown(self, task: asyncio.Task[None]) -> None:
        """Take down that a connection is known, or over."""
        self._unknown.pop(task, None)

    async def _connected(self, peer: socket.socket) -> None:
        wire = Wire(peer)
        try:
            async with asyncio.timeout(self._rules.login_seconds):
                known = await self._logged_in(wire)
            if known is not None:
                await self._converse(wire, *known)
        except (ConnectionOver, TimeoutError):
            pass
        except PostgresError as error:
            await self._refuse(wire, error)
        except Exception as error:
            log_internal_error(log, "A connection of a client of PostgreSQL failed.", error)
        finally:
            wire.close()

    async def _refuse(self, wire: Wire, error: PostgresError) -> None:
        with suppress(Exception):
            if not wire.is_open:
                await wire.open(None, self._rules.login_seconds)
            wire.send(error.response("FATAL"))

    async def _converse(self, wire: Wire, session: Session, account: tuple[str, ...]) -> None:
        most = self._rules.account_connections
        if sum(each.account == account for each in self._conversations.values()) >= most:
            message = (
                f"expected at most {most} connections of this account at a time: close some, or use a pool"
            )
            raise PostgresError(errors.TOO_MANY_CONNECTIONS, message)
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("a connection is served in a task")
        self._no_longer_unknown(task)
        conversation = Conversation(wire, session, self._rules)
        number, secret = next(self._numbers), secrets.token_bytes(4)
        self._conversations[number] = _LoggedIn(secret, account, conversation, task)
        try:
            wire.send(
                messages.AuthenticationOk(),
                *(messages.ParameterStatus(*each) for each in session.settings.reported().items()),
                messages.BackendKeyData(number, secret),
                messages.ReadyForQuery(),
            )
            await conversation.run()
        finally:
            del self._conversations[number]

    async def _logged_in(self, wire: Wire) -> tuple[Session, tuple[str, ...]] | None:
        """Return the session of a caller who is known, and whose budget pays; None: nobody wants to log in."""
        beginning = await self._begun(wire)
        if isinstance(beginning, messages.CancelRequest):
            self._cancel(beginning)
            return None
        if not isinstance(beginning, messages.StartupMessage):
            raise Malformed("expected the start of a session")
        unknown_options = [name for name in beginning.params if name.startswith(_OPTION)]
        if beginning.protocol_version != NEWEST_VERSION or unknown_options:
            wire.send(messages.NegotiateProtocolVersion(NEWEST_VERSION, unknown_options))
        if len(self._connections) > self._rules.connections:
            raise PostgresError(errors.TOO_MANY_CONNECTIONS, "too many connections")
        user, database = beginning.params.get("user", ""), beginning.params.get("database", "")
        if database not in (*_DATABASES, user):
            raise PostgresError(errors.NO_DATABASE, f"expected {DATABASE} as the database")
        admitted, paying = await self._admitted(wire, None if user in ("", "-") else user)
        session = Session(admitted, user, self._catalogue)
        _take_options(session, beginning.params)
        return session, paying

    async def _admitted(self, wire: Wire, account: str | None) -> tuple[Admitted, tuple[str, ...]]:
        """Return what admits the statements of a caller who is known, and whose budget pays.

        A certificate speaks for its own account, if that is named beside it. For any other one, and without a name, the
        password says who asks: an application with its own certificate may pass its analysts' tokens, and each of these
        is verified.
        """
        if account is not None and wire.certificate is not None:
            admitted = partial(self._admitting.admitted, Sender(certificate=wire.certificate))
            try:
                if "/".join(own := await _paying(admitted)) == account:
                    return admitted, own
            except HttpRefusalError as error:
                if error.status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                    raise error_of(error) from None
        wire.send(messages.AuthenticationCleartextPassword())
        await wire.sent(self._rules.login_seconds)
        password = wire.taken(await wire.frame(MAX_PASSWORD_BYTES, self._rules.login_seconds))
        if not isinstance(password, messages.PasswordMessage) or not isinstance(password.password, str):
            raise Malformed("expected a password")
        shown = Sender((f"Bearer {password.password}",), wire.certificate)
        admitted = partial(self._admitting.admitted, shown, account)
        try:
            return admitted, await _paying(admitted)
        except HttpRefusalError as error:
            raise error_of(error) from None

    async def _begun(self, wire: Wire) -> messages.PGMessage:
        """Return the first packet that asks for no encryption, once that is settled."""
        is_encrypted = False
        for _ in range(_MOST_BEGINNINGS):
            packet = await wire.beginning()
            if isinstance(packet, messages.GSSEncRequest) and not wire.is_open:
                await wire.answer_beginning(messages.GSSResponse(accepted=False))
            elif isinstance(packet, messages.SSLRequest) and not wire.is_open:
                await wire.answer_beginning(messages.SSLResponse(accepted=self._tls is not None))
                if self._tls is not None:
                    await wire.open(self._tls, self._rules.login_seconds)
                    is_encrypted = True
            else:
                if not wire.is_open:
                    await wire.open(None, self._rules.login_seconds)
                is_request = isinstance(packet, messages.CancelRequest)
                if self._tls is not None and not is_encrypted and not is_request:
                    raise PostgresError(errors.LOGIN, "expected TLS: sslmode=require, or verify-full")
                return packet
        raise Malformed("expected the start of a session")

    def _cancel(self, request: messages.CancelRequest) -> None:
        known = self._conversations.get(request.process_id)
        if known is not None and hmac.compare_digest(known.secret, request.secret_key):
            known.conversation.cancel()


async def _paying(admitted: Admitted) -> tuple[str, ...]:
    """Return whose budget pays.

    Raises:
        HttpRefusalError: The caller is not known, or has no such account.
    """
    async with admitted() as client:
        return client.account


def _take_options(session: Session, params: dict[str, str]) -> None:
    """Take the settings that a client states when it connects."""
    for name, value in params.items():
        if name == "options":
            for key, given in settings_in(value):
                session.settings.state(key, given)
        # Texts are UTF-8, whatever a client's own encoding is, and say so.
        elif name not in ("user", "database", "replication", "client_encoding") and not name.startswith(
            _OPTION
        ):
            session.settings.state(name, value)
    session.settings.connected()
