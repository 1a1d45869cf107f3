"""A small instrumented service in the test's own process: it answers, refuses, fails or waits, as a request asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.wrappers_pb2 import StringValue
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from gris_serving.instrumentation import Instrumentation

SERVICE = "gris.test.Echo"
SECRET = "secret-of-a-caller"  # noqa: S105 - a marker that must not turn up


async def _answer(request: StringValue, context: grpc.aio.ServicerContext[Any, Any]) -> StringValue:
    match request.value:
        case "refuse":
            await _refuse(context)
        case "fail":
            raise ValueError(SECRET)
        case "wait":
            await asyncio.sleep(60)
    return request


async def _refuse(context: grpc.aio.ServicerContext[Any, Any]) -> None:
    detail = AnyMessage()
    detail.Pack(ErrorInfo(reason="NOT_TODAY", domain="gris.test", metadata={"who": SECRET}))
    status = Status(code=grpc.StatusCode.FAILED_PRECONDITION.value[0], message=SECRET, details=[detail])
    trailing = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(grpc.StatusCode.FAILED_PRECONDITION, SECRET, trailing)


async def _stream(
    requests: AsyncIterator[StringValue], context: grpc.aio.ServicerContext[Any, Any]
) -> AsyncIterator[StringValue]:
    async for request in requests:
        yield await _answer(request, context)


class EchoStub:
    """Calls the service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        codecs: dict[str, Any] = {
            "request_serializer": StringValue.SerializeToString,
            "response_deserializer": StringValue.FromString,
        }
        self._one: Any = channel.unary_unary(f"/{SERVICE}/One", **codecs)
        self._many: Any = channel.stream_stream(f"/{SERVICE}/Many", **codecs)

        raw: dict[str, Any] = {"response_deserializer": StringValue.FromString}
        self._raw_one: Any = channel.unary_unary(f"/{SERVICE}/One", **raw)
        self._raw_many: Any = channel.stream_stream(f"/{SERVICE}/Many", **raw)

    async def raw_one(self, message: bytes) -> None:
        """Send bytes in the place of a message."""
        await self._raw_one(message)

    async def raw_many(self, *messages: bytes) -> None:
        """Send bytes in the place of the messages of a stream."""
        async for _ in self._raw_many(iter(messages)):
            pass

    async def one(self, text: str, **options: Any) -> str:
        """Send one message; returns what comes back."""
        return str((await self._one(StringValue(value=text), **options)).value)

    async def many(self, *texts: str) -> list[str]:
        """Send messages in one stream; returns what comes back."""
        call = self._many(iter([StringValue(value=text) for text in texts]))
        return [each.value async for each in call]


@asynccontextmanager
async def observed_echo(instrumentation: Instrumentation) -> AsyncIterator[EchoStub]:
    """Serve it on a free port and give a stub."""
    server = grpc.aio.server()
    add_echo(instrumentation.before(server))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield EchoStub(channel)
    finally:
        # Its clients have their answers; what it counts, logs and traces of them comes a moment later.
        await server.stop(10)


def add_echo(server: Any) -> None:
    """Add it to a server as generated code does: once by a generic handler, once by its methods' names."""
    codecs: dict[str, Any] = {
        "request_deserializer": StringValue.FromString,
        "response_serializer": StringValue.SerializeToString,
    }
    handlers = {
        "One": grpc.unary_unary_rpc_method_handler(_answer, **codecs),
        "Many": grpc.stream_stream_rpc_method_handler(_stream, **codecs),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_registered_method_handlers(SERVICE, handlers)
