"""One connection's messages: read whole, up to a limit and in time, and written in the protocol's order.

Nothing is read ahead of TLS: what came with the request for it would else count as if it had come inside.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from dataclasses import dataclass

from pygwire.connection import BackendConnection
from pygwire.constants import StartupRequestCode
from pygwire.exceptions import PygwireError
from pygwire.messages import BackendMessage, PGMessage, StartupMessage

from gris_gateway.faces.postgres.errors import NOT_SUPPORTED, PROTOCOL, PostgresError
from gris_serving.tls import verified_certificate

MAX_BEGINNING_BYTES = 10_000
"""The most that PostgreSQL itself reads of a connection's first packet."""
MAX_PASSWORD_BYTES = 65_536
NEWEST_VERSION: int = StartupRequestCode.V3_0
_REQUESTS = (
    StartupRequestCode.SSL_REQUEST,
    StartupRequestCode.GSSENC_REQUEST,
    StartupRequestCode.CANCEL_REQUEST,
)
_LENGTH = struct.Struct("!I")
_SIGNED_LENGTH, _COUNT = struct.Struct("!i"), struct.Struct("!H")
_NULL = -1
_BYTES_AT_ONCE = 8192


class ConnectionOver(Exception):  # noqa: N818 - it is no error
    """The client has left."""


class Malformed(PostgresError):  # noqa: N818 - what is wrong is the client's message
    """What was sent is no message that this state of a connection has."""

    def __init__(self, message: str) -> None:
        super().__init__(PROTOCOL, message)


@dataclass(frozen=True)
class WireRules:
    """What connections may hold, and how long they may take.

    Attributes:
        message_bytes: The largest message of a caller who is known.
        connections: How many connections there may be at a time; further ones are refused.
        account_connections: How many of them each account may have.
        login_seconds: How long a connection has until its caller is known.
        message_seconds: How long a client may take to send the rest of a message, or to read an answer.
        grace_seconds: How long what has begun may go on when the server stops.
    """

    message_bytes: int
    connections: int
    account_connections: int
    login_seconds: float
    message_seconds: float
    grace_seconds: float


class Wire:
    """A connection by its messages; `certificate` is the client's own (PEM), once TLS has verified one.

    Args:
        peer: The accepted connection, which does not block.
    """

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._protocol = BackendConnection()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._unwritten = bytearray()
        self.certificate: bytes | None = None

    async def beginning(self) -> PGMessage:
        """Read the next of the packets that a connection begins with.

        Raises:
            ConnectionOver: There is none.
            Malformed: It is none of the protocol's.
            PostgresError: It is of another major version.
        """
        header = await self._exactly(_LENGTH.size)
        (length,) = _LENGTH.unpack(header)
        if not 2 * _LENGTH.size <= length <= MAX_BEGINNING_BYTES:
            raise Malformed("expected a packet of PostgreSQL's protocol, version 3")
        packet = await self._exactly(length - _LENGTH.size)
        (version,) = _LENGTH.unpack_from(packet)
        major, minor = divmod(version, 2**16)
        if version in _REQUESTS:
            return self.taken(header + packet)
        if major != NEWEST_VERSION >> 16:
            said = f"unsupported frontend protocol {major}.{minor}: server supports 3.0"
            raise PostgresError(NOT_SUPPORTED, said)
        # pygwire knows few of the minor versions.
        message = self.taken(header + _LENGTH.pack(NEWEST_VERSION) + packet[_LENGTH.size :])
        if isinstance(message, StartupMessage):
            message.protocol_version = version
        return message

    async def frame(self, most: int, seconds: float) -> bytes:
        """Wait for a message, and read it without looking into it.

        Args:
            most: The most bytes that it may have.
            seconds: How long the client may take to send the rest of a message that it has begun.

        Raises:
            ConnectionOver: The client has left, or does not send the rest in time.
            Malformed: The message is larger, or its length is impossible.
        """
        header = await self._exactly(1 + _LENGTH.size)
        (length,) = _LENGTH.unpack_from(header, 1)
        if not _LENGTH.size <= length <= most:
            raise Malformed(f"expected a message of at most {most:,} bytes")
        try:
            async with asyncio.timeout(seconds):
                return header + await self._exactly(length - _LENGTH.size)
        except TimeoutError:
            raise ConnectionOver from None

    def taken(self, frame: bytes) -> PGMessage:
        """Return the message that was read.

        Raises:
            Malformed: It is none that this state of the connection has.
        """
        try:
            _require_lengths(frame)
            messages = list(self._protocol.receive(frame))
        except (PygwireError, ValueError, IndexError, struct.error):
            raise Malformed("expected a message of PostgreSQL's protocol, in its order") from None
        if len(messages) != 1:
            raise Malformed("expected a whole message of PostgreSQL's protocol")
        return messages[0]

    async def answer_beginning(self, message: BackendMessage) -> None:
        """Answer a packet that asks for encryption, before anything else is sent.

        Raises:
            ConnectionOver: The client has left.
        """
        try:
            await asyncio.get_running_loop().sock_sendall(self._peer, self._protocol.send(message))
        except OSError:
            raise ConnectionOver from None

    async def open(self, tls: ssl.SSLContext | None, seconds: float) -> None:
        """Go on with TLS, or in plain text.

        Raises:
            ConnectionOver: The client and this server agree on no TLS.
        """
        loop = asyncio.get_running_loop()
        self._reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(self._reader)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                self._peer,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else seconds,
            )
        except OSError:
            raise ConnectionOver from None
        self._writer = asyncio.StreamWriter(transport, protocol, self._reader, loop)
        self.certificate = verified_certificate(transport)

    @property
    def is_open(self) -> bool:
        """Whether messages can be written."""
        return self._writer is not None

    @property
    def unread(self) -> int:
        """How many bytes of messages have not been sent."""
        return self._open_writer.transport.get_write_buffer_size() + len(self._unwritten)

    def send(self, *messages: BackendMessage) -> None:
        """Take messages to be written, without waiting for who reads them: together, and at the latest by `sent`."""
        for each in messages:
            self._unwritten += self._protocol.send(each)
        if len(self._unwritten) >= _BYTES_AT_ONCE:
            self._write()

    def _write(self) -> None:
        self._open_writer.write(bytes(self._unwritten))
        self._unwritten.clear()

    async def sent(self, seconds: float) -> None:
        """Write all messages, and wait until little of them is unread.

        Raises:
            ConnectionOver: The client has left, or does not read.
        """
        self._write()
        try:
            async with asyncio.timeout(seconds):
                await self._open_writer.drain()
        except (OSError, TimeoutError):
            raise ConnectionOver from None

    @property
    def _open_writer(self) -> asyncio.StreamWriter:
        if self._writer is None:
            raise AssertionError("messages are written once it is settled how")
        return self._writer

    def close(self) -> None:
        """Close it, without waiting for what is unread."""
        if self._writer is None:
            self._peer.close()
            return
        self._write()
        # What was refused is read yet by who waits for it; a client that reads nothing is not waited for.
        asyncio.get_running_loop().call_later(1, self._writer.transport.abort)
        self._writer.close()

    async def _exactly(self, count: int) -> bytes:
        try:
            if self._reader is not None:
                return await self._reader.readexactly(count)
            return await self._first(count)
        except (OSError, asyncio.IncompleteReadError):
            raise ConnectionOver from None

    async def _first(self, count: int) -> bytes:
        loop, read = asyncio.get_running_loop(), b""
        while len(read) < count:
            more = await loop.sock_recv(self._peer, count - len(read))
            if not more:
                raise ConnectionOver
            read += more
        return read


def _require_lengths(frame: bytes) -> None:
    """Refuse a message whose values have other lengths than they say.

    pygwire takes a length below that of NULL for a step back: it reads what it has read, as often as the message says.

    Raises:
        ValueError: It has; or `struct.error`: it is too short.
    """
    header = 1 + _LENGTH.size
    match frame[:1]:
        case b"B":
            place = frame.index(0, frame.index(0, header) + 1) + 1
        case b"F":
            place = header + _LENGTH.size
        case _:
            return
    (forms,) = _COUNT.unpack_from(frame, place)
    place += _COUNT.size * (1 + forms)
    (values,) = _COUNT.unpack_from(frame, place)
    place += _COUNT.size
    for _ in range(values):
        (length,) = _SIGNED_LENGTH.unpack_from(frame, place)
        if length < _NULL:
            raise ValueError("a length below that of NULL")
        place += _SIGNED_LENGTH.size + max(length, 0)
    if place + _COUNT.size > len(frame):
        raise ValueError("a value beyond the message")
