"""A TCP proxy that can break what goes through it: cut it, hold it up, or lose the replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

CHUNK_BYTES = 65536
LAST_SECONDS = 0.05
# From accepting a connection to its handler, asyncio takes three turns of its loop.
TURNS_TO_HANDLER = 3


@dataclass(eq=False)
class _Connection:
    """One connection through the proxy."""

    client: asyncio.StreamWriter
    upstream: asyncio.StreamWriter
    lost_bytes: bool = False

    def cut(self) -> None:
        """Break both ends, without a good-bye."""
        for end in (self.client, self.upstream):
            end.transport.abort()


@dataclass
class Proxy:
    """Forwards to `upstream` (HOST:PORT), which may change; new connections go to the new one."""

    upstream: str = ""
    delay_seconds: float = 0.0
    address: str = ""
    lost_replies: int = 0
    packets_forth: int = 0
    _swallowing: bool = False
    _packets_left: int | None = None
    _connections: set[_Connection] = field(default_factory=set)
    _handlers: set[asyncio.Task[None]] = field(default_factory=set)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Proxy]:
        """Listen on a free port until the end of the block."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            # What was accepted just now has no handler yet that could close it. asyncio would never close it if the
            # server were closed first, so that the server only stops to accept until then.
            for listener in server.sockets:
                asyncio.get_running_loop().remove_reader(listener.fileno())
            for _ in range(TURNS_TO_HANDLER):
                await asyncio.sleep(0)
            server.close()
            # Not cancelled: asyncio's server of Python 3.11 complains in the log of handlers that were.
            while self._handlers:
                self.cut()
                await asyncio.wait(self._handlers, timeout=LAST_SECONDS)

    def cut(self) -> None:
        """Break every connection."""
        for connection in self._connections:
            connection.cut()

    @asynccontextmanager
    async def swallowing(self) -> AsyncIterator[None]:
        """Lose every reply during the block, and then the connections that missed one."""
        self._swallowing = True
        try:
            yield
        finally:
            self._swallowing = False
            self._cut_what_missed_something()

    @asynccontextmanager
    async def silent_after(self, packets: int) -> AsyncIterator[None]:
        """Let so many packets through, either way, and none after them until the end of the block."""
        self._packets_left = packets
        try:
            yield
        finally:
            self._packets_left = None
            self._cut_what_missed_something()

    def _cut_what_missed_something(self) -> None:
        for connection in self._connections:
            if connection.lost_bytes:
                connection.cut()

    def _is_silent(self) -> bool:
        """Tell whether the next packet is lost, whichever way it goes."""
        if self._packets_left is None:
            return False
        self._packets_left -= 1
        return self._packets_left < 0

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            host, _, port = self.upstream.rpartition(":")
            up_reader, up_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return
        else:
            await self._joined(_Connection(writer, up_writer), reader, up_reader)
        finally:
            writer.transport.abort()
            self._handlers.discard(task)

    async def _joined(
        self, connection: _Connection, client: asyncio.StreamReader, upstream: asyncio.StreamReader
    ) -> None:
        self._connections.add(connection)
        forth = asyncio.create_task(self._forth(connection, client))
        try:
            with suppress(OSError):
                await self._back(connection, upstream)
        finally:
            self._connections.discard(connection)
            connection.cut()
            forth.cancel()
            await asyncio.gather(forth, return_exceptions=True)

    async def _forth(self, connection: _Connection, client: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while data := await client.read(CHUNK_BYTES):
                self.packets_forth += 1
                await asyncio.sleep(self.delay_seconds)
                if self._is_silent():
                    connection.lost_bytes = True
                    continue
                connection.upstream.write(data)
        connection.cut()

    async def _back(self, connection: _Connection, upstream: asyncio.StreamReader) -> None:
        while data := await upstream.read(CHUNK_BYTES):
            await asyncio.sleep(self.delay_seconds)
            if self._is_silent() or self._swallowing or connection.lost_bytes:
                connection.lost_bytes = True
                self.lost_replies += 1
                continue
            connection.client.write(data)
