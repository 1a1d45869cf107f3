"""Calls of the gateway's RPCs from inside its own process, for servers that speak another protocol than gRPC.

Such a call is admitted, counted, logged and answered by the very handlers that gRPC calls, so that its caller is
limited and charged as any other.
"""

# ruff: noqa: N802, ASYNC109 - the names of the RPCs are the proto's, and their arguments those of gRPC
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import grpc
from google.protobuf.message import Message

from gris_gateway.accounts import Caller
from gris_gateway.admission import GatewayAdmission
from gris_gateway.in_process_context import InProcessContext, Metadata
from gris_gateway.upstream_health import SERVICE_NAME

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class _Details(NamedTuple):
    """What an interceptor knows of a call before it begins."""

    method: str
    invocation_metadata: Metadata


class RegisteredMethods:
    """Stands for a server while a service is added to it, and remembers the service's handlers."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server
        self._handlers: dict[str, Handler] = {}

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Add handlers to the server."""
        self._server.add_generic_rpc_handlers(tuple(handlers))

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Add handlers to the server, and remember them."""
        self._server.add_registered_method_handlers(service, handlers)
        self._handlers |= {f"/{service}/{name}": handler for name, handler in handlers.items()}

    async def handler(self, details: grpc.HandlerCallDetails) -> Handler | None:
        """Return the handler of a method."""
        return self._handlers.get(details.method)


class InProcessCalls:
    """The RPCs of the gateway for one caller in its process.

    Args:
        methods: The handlers.
        admission: What admits their calls.
        caller: The caller, who has just been identified.
    """

    def __init__(self, methods: RegisteredMethods, admission: GatewayAdmission, caller: Caller) -> None:
        self._methods = methods
        self._admission = admission
        self._caller = caller

    async def Ask(self, request: Message, *, timeout: float, metadata: Metadata) -> AsyncIterator[Any]:
        """Answer a question."""
        for answer in await self._answers("Ask", request, timeout, metadata):
            yield answer

    async def Explain(self, request: Message, *, timeout: float, metadata: Metadata) -> Any:
        """Return what a question would cost."""
        return await self._answer("Explain", request, timeout, metadata)

    async def GetRemaining(self, request: Message, *, timeout: float, metadata: Metadata) -> Any:
        """Return what is left."""
        return await self._answer("GetRemaining", request, timeout, metadata)

    async def GetGuarantee(self, request: Message, *, timeout: float, metadata: Metadata) -> Any:
        """Return the guarantee of the account."""
        return await self._answer("GetGuarantee", request, timeout, metadata)

    async def GetCatalog(self, request: Message, *, timeout: float, metadata: Metadata) -> Any:
        """Return what may be asked."""
        return await self._answer("GetCatalog", request, timeout, metadata)

    async def ListReleases(self, request: Message, *, timeout: float, metadata: Metadata) -> Any:
        """List what was paid for."""
        return await self._answer("ListReleases", request, timeout, metadata)

    async def _answer(self, name: str, request: Message, seconds: float, metadata: Metadata) -> Any:
        (answer,) = await self._answers(name, request, seconds, metadata)
        return answer

    async def _answers(self, name: str, request: Message, seconds: float, metadata: Metadata) -> list[Any]:
        """Call a method, and return its answers.

        Raises:
            AioRpcError: It ended otherwise.
        """
        context = InProcessContext(metadata, seconds, caller=self._caller)
        # As gRPC does, in a task of its own: handlers set variables of its context.
        calling = asyncio.create_task(self._called(f"/{SERVICE_NAME}/{name}", request, context))
        try:
            async with asyncio.timeout(seconds):
                await calling
        except TimeoutError:
            raise InProcessContext.out_of_time() from None
        except grpc.aio.AbortError:
            raise context.error() from None
        return context.answers

    async def _called(self, method: str, request: Message, context: InProcessContext) -> None:
        details = _Details(method, context.invocation_metadata())
        handler: Any = await self._admission.intercept_service(self._methods.handler, details)  # type: ignore[arg-type]
        await handler.stream_stream(_once(handler, request), context)


async def _once(handler: Handler, request: Message) -> AsyncIterator[Any]:
    """Yield a request as gRPC would: decoded by the handler itself, so that the caller's copy stays its own."""
    content = request.SerializeToString()
    yield content if handler.request_deserializer is None else handler.request_deserializer(content)
