"""Proxies between the members of an etcd cluster, which can cut one member off from all others.

Each member is found by the others behind a proxy of its own. Who is at the other end stands in the first request of
each connection (`X-Server-From`), so that a member that is cut off neither hears nor is heard, while clients reach it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

import grpc
from aetcd.rpc import rpc_pb2, rpc_pb2_grpc

CHUNK_BYTES = 65536
_FROM = re.compile(rb"^X-Server-From: ([0-9a-f]+)\r$", re.MULTILINE | re.IGNORECASE)


@dataclass(eq=False)
class _Connection:
    ends: frozenset[str]
    writers: Sequence[asyncio.StreamWriter]

    def cut(self) -> None:
        for each in self.writers:
            each.transport.abort()


@dataclass
class PeerProxies:
    """The proxies of one cluster; members are named by where they listen for the others, as HOST:PORT."""

    addresses: dict[str, str] = field(default_factory=dict)
    isolations: int = 0
    _names: dict[str, str] = field(default_factory=dict)
    _isolated: set[str] = field(default_factory=set)
    _connections: set[_Connection] = field(default_factory=set)

    async def learn(self, client: str) -> None:
        """Ask a member, where it takes clients, for the ids of all."""
        behind = {address: name for name, address in self.addresses.items()}
        async with grpc.aio.insecure_channel(client) as channel:
            answer = await rpc_pb2_grpc.ClusterStub(channel).MemberList(rpc_pb2.MemberListRequest())
        for member in answer.members:
            (url,) = member.peerURLs
            self._names[f"{member.ID:x}"] = behind[url.removeprefix("http://")]

    @asynccontextmanager
    async def isolated(self, name: str) -> AsyncIterator[None]:
        """Cut a member off from all others during the block."""
        assert name in self._names.values(), "its id is known"
        self._isolated.add(name)
        for each in list(self._connections):
            if name in each.ends:
                each.cut()
        self.isolations += 1
        try:
            yield
        finally:
            self._isolated.discard(name)

    async def joined(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on one connection to a member."""
        try:
            first = await reader.readuntil(b"\r\n\r\n")
            found = _FROM.search(first)
            ends = frozenset({name, self._names.get(found[1].decode(), "") if found else ""})
            if ends & self._isolated:
                writer.transport.abort()
                return
            host, _, port = name.rpartition(":")
            up_reader, up_writer = await asyncio.open_connection(host, int(port))
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
            return
        connection = _Connection(ends, (writer, up_writer))
        self._connections.add(connection)
        up_writer.write(first)
        try:
            await asyncio.gather(
                _pumped(reader, up_writer, connection), _pumped(up_reader, writer, connection)
            )
        finally:
            self._connections.discard(connection)
            connection.cut()


async def _pumped(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _Connection
) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
    connection.cut()


@asynccontextmanager
async def peer_proxies(names: Sequence[str]) -> AsyncIterator[PeerProxies]:
    """Listen before each of these members."""
    proxies = PeerProxies()
    tasks: set[asyncio.Task[None]] = set()

    async def listen(name: str) -> asyncio.Server:
        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(proxies.joined(name, reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        return await asyncio.start_server(connected, "127.0.0.1", 0)

    async with AsyncExitStack() as stack:
        for name in names:
            server = await listen(name)
            stack.callback(server.close)
            proxies.addresses[name] = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield proxies
        finally:
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
