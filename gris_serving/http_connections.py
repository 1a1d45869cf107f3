"""Connections of HTTP servers that say nothing or read nothing: uvicorn would wait for them without end."""

from __future__ import annotations

import asyncio
import re

import h11
from starlette.datastructures import Headers
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from gris_serving.admitting import Sender
from gris_serving.tls import verified_certificate

_CERTIFICATE = "gris.certificate"
# What a header block must not hold: a line that ends in a line feed alone, or one that goes on in the next.
_LENIENT = re.compile(rb"(?<!\r)\n|\r\n[ \t]")
_MOST_HEADERS = 2**16
_END_OF_HEADERS = b"\r\n\r\n"


def sender_of(scope: Scope) -> Sender:
    """Return how the sender of a request on such a connection identifies itself."""
    authorization = tuple(Headers(scope=scope).getlist("authorization"))
    return Sender(authorization, scope.get("state", {}).get(_CERTIFICATE))


class _StrictConnection(h11.Connection):
    """Refuses requests that h11 reads and that a proxy may divide at another place into requests."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        if self.their_state is h11.IDLE:
            head, _, _ = self.trailing_data[0].partition(_END_OF_HEADERS)
            if _LENIENT.search(head):
                raise h11.RemoteProtocolError("expected lines that end in CR and LF")
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            is_old = event.http_version < b"1.1"
            if b"transfer-encoding" in names and (b"content-length" in names or is_old):
                raise h11.RemoteProtocolError("expected one length")
        return event


def timed_protocol(seconds: float) -> type[H11Protocol]:
    """Return uvicorn's protocol with a time for the headers of each request, and for a peer to read what it is sent.

    A request whose rest is no HTTP ends as if its sender had left, where uvicorn would let it be answered and fail.

    Args:
        seconds: A connection is closed when the headers of a request take longer, and aborted when the peer has read
            nothing for so long: to close it would wait until the peer reads.
    """

    class TimedProtocol(H11Protocol):
        _closing: asyncio.TimerHandle | None = None
        _watching: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.conn = _StrictConnection(h11.SERVER, _MOST_HEADERS)
            # What is put here is in the state of each request's scope.
            self.app_state = {**self.app_state, _CERTIFICATE: verified_certificate(transport)}
            self._wait_for_headers()
            self._watch(unread=0)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait_for_headers()

        def send_400_response(self, msg: str) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                # What is being answered will never be whole: to its application its sender has left.
                self.cycle.disconnected = True
                self.cycle.message_event.set()
            try:
                super().send_400_response(msg)
            except h11.LocalProtocolError:
                # An answer has begun, or has no body, as to HEAD.
                self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            if self._watching is not None:
                self._watching.cancel()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wait_for_headers()

        def _wait_for_headers(self) -> None:
            # What is left of a request that was refused before it was read counts too.
            is_expected = self.conn.their_state is h11.IDLE or self.conn.our_state is h11.DONE
            if not is_expected:
                self._stop_waiting()
            elif self._closing is None:
                self._closing = self.loop.call_later(seconds, self.transport.close)

        def _watch(self, *, unread: int) -> None:
            self._watching = self.loop.call_later(seconds, self._abort_if_unread, unread)

        def _abort_if_unread(self, before: int) -> None:
            unread = self.transport.get_write_buffer_size()
            if 0 < before <= unread:
                self.transport.abort()
            else:
                self._watch(unread=unread)

        def _stop_waiting(self) -> None:
            if self._closing is not None:
                self._closing.cancel()
                self._closing = None

    return TimedProtocol
