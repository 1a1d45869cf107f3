"""Admission of calls: an interceptor that decides, before a method runs, whether its caller may call it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from time import perf_counter
from typing import Any, NoReturn, TypeAlias

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from gris_serving.decoding import UNFINISHED
from gris_serving.identity import Context
from gris_serving.instrumentation import Instrumentation

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Surrounding: TypeAlias = Callable[[Context], AbstractAsyncContextManager[None]]

# Anyone who reaches a server may ask for its health and its interface.
OPEN_SERVICES = ("grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection")


class Admission(ABC, grpc.aio.ServerInterceptor):
    """Runs every method but the open ones inside `admitted`.

    A server that reads and writes in its own way overrides `surrounded` and `opened`, which make handlers of handlers.

    Args:
        instrumentation: Records calls that are not admitted.
    """

    def __init__(self, instrumentation: Instrumentation) -> None:
        self._instrumentation = instrumentation

    @abstractmethod
    def admitted(self, method: str, context: Context) -> AbstractAsyncContextManager[None]:
        """Return what surrounds a call of `method` ("/package.Service/Method"); entering it may end the call."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the method's handler, surrounded."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        # gRPC itself refuses a method that does not exist.
        if handler is None:
            return None
        if method.split("/")[1] in OPEN_SERVICES:
            return self.opened(handler)
        return self.surrounded(handler, lambda context: self._recorded(method, context))

    def surrounded(self, handler: Handler, admitted: Surrounding) -> Handler:
        """Return a handler that does the same inside `admitted`, and decodes nothing before that is entered."""
        return decoded_once_admitted(handler, admitted)

    def opened(self, handler: Handler) -> Handler:
        """Return the handler of an open method."""
        return handler

    @asynccontextmanager
    async def _recorded(self, method: str, context: Context) -> AsyncIterator[None]:
        began = perf_counter()
        async with AsyncExitStack() as surrounding:
            try:
                await surrounding.enter_async_context(self.admitted(method, context))
            except BaseException as error:
                self._instrumentation.not_admitted(method, error, context, perf_counter() - began)
                raise
            yield


async def refuse(
    context: Context, code: grpc.StatusCode, message: str, *, domain: str, reason: str
) -> NoReturn:
    """End a call with a google.rpc.Status that carries google.rpc.ErrorInfo."""
    info = ErrorInfo(reason=reason, domain=domain)
    await context.abort_with_status(status_of(code, message, info))
    raise AssertionError("abort_with_status always raises")


def status_of(code: grpc.StatusCode, message: str, *details: Message) -> grpc.Status:
    """Return a status with details, as gRPC sends it."""
    packed = [Packed() for _ in details]
    for each, detail in zip(packed, details, strict=True):
        each.Pack(detail)
    return rpc_status.to_status(Status(code=code.value[0], message=message, details=packed))


def decoded_once_admitted(handler: Handler, admitted: Surrounding) -> Handler:
    """Return a handler that does the same inside `admitted`; a request is decoded there, and a stream is read there."""
    if handler.request_streaming or handler.response_streaming:
        return read_once_admitted(handler, admitted)
    behaviour: Any = handler.unary_unary
    decode = handler.request_deserializer or bytes

    async def one(message: bytes, context: Context) -> Any:
        async with admitted(context):
            return await behaviour(decode(message), context)

    return grpc.unary_unary_rpc_method_handler(one, None, handler.response_serializer)


def behaviour_of(handler: Handler) -> Any:
    """Return what a handler does, whether or not its requests and answers are streams."""
    return handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream


def read_once_admitted(handler: Handler, admitted: Surrounding) -> Handler:
    """Return a handler that does the same inside `admitted`, and reads nothing before that is entered.

    By itself gRPC reads the whole request of a method that is no stream before anything asks who sends it. So the
    method is served as a stream, which is the same on the wire.
    """
    behaviour = behaviour_of(handler)

    async def served(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
        async with admitted(context):
            given = requests if handler.request_streaming else await anext(requests, UNFINISHED)
            answer = behaviour(given, context)
            if not handler.response_streaming:
                yield await answer
                return
            async for response in answer:
                yield response

    return grpc.stream_stream_rpc_method_handler(
        served, handler.request_deserializer, handler.response_serializer
    )
