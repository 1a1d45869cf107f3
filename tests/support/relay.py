"""Proxies between the client and the services that record, change or lose messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from .world import World


@dataclass
class Relay:
    """Stands before both services, writes down which calls come, and can change what is said.

    `replies` maps a method to a reply that is sent instead of the service's; `refusals` to a status that is sent
    without asking the service; `delays` holds a call up for so many seconds; a method in `faults` ends as one does in
    which its service fails.
    """

    address: str = ""
    calls: list[tuple[str, bytes]] = field(default_factory=list)
    replies: dict[str, bytes] = field(default_factory=dict)
    refusals: dict[str, grpc.StatusCode] = field(default_factory=dict)
    delays: dict[str, float] = field(default_factory=dict)
    faults: set[str] = field(default_factory=set)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def methods(self) -> list[str]:
        """The names of the calls, in their order; whether the service lives is asked at any time and left out."""
        return [method for method, _ in self.calls if method != "Check"]

    async def called(self, method: str, times: int = 1) -> None:
        """Waits until a method was called so many times."""
        async with self.news:
            await self.news.wait_for(lambda: self.methods.count(method) >= times)

    async def note(self, method: str, message: bytes) -> None:
        """Writes a call down."""
        async with self.news:
            self.calls.append((method, message))
            self.news.notify_all()

    def requests(self, method: str) -> list[bytes]:
        """The messages that were sent to one method."""
        return [message for name, message in self.calls if name == method]


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, relay: Relay, channels: dict[str, grpc.aio.Channel]) -> None:
        self._relay = relay
        self._channels = channels

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        _, service, method = details.method.split("/")

        async def forward(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            sent = [request async for request in requests]
            await self._relay.note(method, sent[0])
            await asyncio.sleep(self._relay.delays.get(method, 0))
            if method in self._relay.refusals:
                await context.abort(self._relay.refusals[method], "")
            if method in self._relay.faults:
                await context.abort_with_status(_fault_of(service))
            try:
                call: Any = self._channels[service].stream_stream(details.method)
                async for reply in call(iter(sent)):
                    if method in self._relay.replies:
                        yield self._relay.replies[method]
                        return
                    yield reply
            except grpc.aio.AioRpcError as error:
                await context.abort(error.code(), error.details() or "", tuple(error.trailing_metadata()))

        return grpc.stream_stream_rpc_method_handler(forward)


def _fault_of(service: str) -> grpc.Status:
    """Returns what a service says when it has failed; `service` is its full name."""
    status = status_pb2.Status(code=code_pb2.INTERNAL, message="failed")
    detail = status.details.add()
    detail.Pack(error_details_pb2.ErrorInfo(domain=service.rpartition(".v1.")[0], reason="INTERNAL"))
    return rpc_status.to_status(status)


@asynccontextmanager
async def relayed(world: World) -> AsyncIterator[Relay]:
    """Runs a relay; its one address stands for both services."""
    relay = Relay()
    options = [("grpc.max_receive_message_length", -1)]
    channels = {
        "gris.dp.v1.DpService": grpc.aio.insecure_channel(world.dp, options=options),
        "gris.budget.v1.BudgetService": grpc.aio.insecure_channel(world.budget, options=options),
        "grpc.health.v1.Health": grpc.aio.insecure_channel(world.budget, options=options),
    }
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((_Handler(relay, channels),))
    relay.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield relay
    finally:
        await server.stop(None)
        for channel in channels.values():
            await channel.close()


class Swallower:
    """A TCP proxy that can lose a reply: the other side has answered, and the connection breaks before it arrives."""

    # Whatever is smaller is HTTP/2 talking to itself.
    REPLY_BYTES = 150

    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._armed = 0
        self.address = ""
        self.swallowed = 0

    def swallow(self, replies: int) -> None:
        """Loses the next replies."""
        self._armed = replies

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(self._host, self._port)
        forth = asyncio.create_task(self._forward(reader, upstream_writer))
        try:
            await self._back(upstream_reader, writer)
        finally:
            forth.cancel()
            for end in (writer, upstream_writer):
                end.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self._armed and len(data) >= self.REPLY_BYTES:
                self._armed -= 1
                self.swallowed += 1
                return
            writer.write(data)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Swallower]:
        """Listens on a free port."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
