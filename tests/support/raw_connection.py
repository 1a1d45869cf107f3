"""Calls as no gRPC client makes them: half sent, or never read, as many on one connection as one likes."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ResponseReceived, StreamReset, TrailersReceived
from h2.settings import SettingCodes

Headers = Sequence[tuple[str, str]]
DEFAULT_WINDOW = 2**16 - 1
TIMEOUT_SECONDS = 30.0


@dataclass
class RawConnection:
    """One connection, HTTP/2 in plain text.

    `answered` has the calls whose answer has begun, `ended` the headers that each call ended with, none for a reset.
    """

    socket: socket.socket
    http: H2Connection
    answered: set[int] = field(default_factory=set)
    ended: dict[int, dict[str, str]] = field(default_factory=dict)

    def greet(self) -> None:
        """Tell the server how this side reads, and hear how it does; before that it takes more than it says."""
        self._flush()
        assert self.listen(TIMEOUT_SECONDS), "nobody speaks HTTP/2 here"

    def begin(self, method: str, metadata: Headers = ()) -> int:
        """Begin a call of a method ("/package.Service/Method") and return its number."""
        stream = self.http.get_next_available_stream_id()
        named = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "gateway"}
        self.http.send_headers(
            stream, [*named.items(), ("te", "trailers"), ("content-type", "application/grpc"), *metadata]
        )
        self._flush()
        return stream

    def send(
        self, streams: Sequence[int], message: bytes, *, withheld: int = 0, quiet_seconds: float = 1.0
    ) -> int:
        """Send a message on each call, all but the last bytes of it, and return how many bytes the server has taken.

        What it does not take is given up once it has been quiet for so long.
        """
        framed = memoryview(b"\0" + len(message).to_bytes(4, "big") + message)
        left = dict.fromkeys(streams, framed[: len(framed) - withheld])
        sent = 0
        while left:
            before = sent
            for stream in tuple(left):
                if not self.http.outbound_flow_control_window:
                    # No call has room then, however much it may have of its own.
                    break
                sent += (went := self._send_some(stream, left[stream]))
                left[stream] = left[stream][went:]
                if not left[stream] or stream in self.ended:
                    del left[stream]
            if sent == before and not self.listen(quiet_seconds):
                break
        return sent

    def reset(self, stream: int) -> None:
        """Take a call back."""
        self.http.reset_stream(stream, ErrorCodes.CANCEL)
        self._flush()

    def listen(self, seconds: float) -> bool:
        """Take in what the server says next; whether it was anything within so long."""
        self.socket.settimeout(seconds)
        try:
            content = self.socket.recv(2**16)
        except TimeoutError:
            return False
        for event in self.http.receive_data(content):
            if isinstance(event, ResponseReceived) and event.stream_id is not None:
                self.answered.add(event.stream_id)
            if isinstance(event, ResponseReceived | TrailersReceived) and event.stream_ended is not None:
                self.ended[event.stream_id] = _text(event.headers)
            elif isinstance(event, StreamReset):
                self.ended.setdefault(event.stream_id, {})
        self._flush()
        return bool(content)

    def hear(self, stream: int) -> None:
        """Wait until a call's answer has begun, if only by a refusal."""
        self._listen_until(lambda: stream in self.answered, "the call is not answered")

    def status(self, stream: int) -> str:
        """Return the number of the status that a call ends with."""
        self._listen_until(lambda: stream in self.ended, "the call has not ended")
        return self.ended[stream]["grpc-status"]

    def is_closed(self) -> bool:
        """Hear no more of what the server says, and wait until it closes the connection; False if it never does."""
        self.socket.settimeout(TIMEOUT_SECONDS)
        try:
            while self.socket.recv(2**16):
                pass
        except TimeoutError:
            return False
        return True

    def _listen_until(self, happened: Callable[[], bool], otherwise: str) -> None:
        # A server that asks from time to time whether this side lives is never quiet for long.
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not happened():
            assert (left := deadline - time.monotonic()) > 0, otherwise
            assert self.listen(left), otherwise

    def _send_some(self, stream: int, content: memoryview) -> int:
        if stream in self.ended:
            return 0
        room = min(self.http.local_flow_control_window(stream), self.http.max_outbound_frame_size)
        if room and content:
            self.http.send_data(stream, bytes(content[:room]))
            self._flush()
        return min(room, len(content))

    def _flush(self) -> None:
        self.socket.settimeout(TIMEOUT_SECONDS)
        self.socket.sendall(self.http.data_to_send())


@contextmanager
def raw_connection(
    address: str,
    window: int = DEFAULT_WINDOW,
    buffered: int | None = None,
    trusted: Path | None = None,
) -> Iterator[RawConnection]:
    """Open a connection on which of each answer so many bytes are taken, and no more.

    `buffered` is how many bytes the system takes that nobody has asked for. With `trusted`, a file of authorities, the
    connection has TLS, and shows no certificate.
    """
    host, _, port = address.rpartition(":")
    with ExitStack() as stack:
        opened = stack.enter_context(socket.create_connection((host, int(port)), TIMEOUT_SECONDS))
        if trusted is not None:
            context = ssl.create_default_context(cafile=trusted)
            context.set_alpn_protocols(["h2"])
            opened = stack.enter_context(context.wrap_socket(opened, server_hostname=host))
        # What is sent goes at once: a call is several small pieces.
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if buffered is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffered)
        http = H2Connection(H2Configuration(header_encoding=None))
        http.initiate_connection()
        http.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
        if window > DEFAULT_WINDOW:
            http.increment_flow_control_window(window - DEFAULT_WINDOW)
        connection = RawConnection(opened, http)
        connection.greet()
        yield connection


def _text(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode(): value.decode(errors="replace") for name, value in headers}
