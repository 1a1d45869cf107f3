"""The instrumentation of every call of a server: it is counted, traced and logged.

Recorded are the method, how the call ended and how long it took. A request and its answer are seen only by the
`CallRecorder` of a service, which knows what of them may be counted.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from gris_serving.call_outcome import CallOutcome
from gris_serving.decoding import UnusableRequest, UnusableRequestError, marking, raising
from gris_serving.logs import METADATA, Metadata

if TYPE_CHECKING:
    from gris_serving.metrics import CallMetrics, Readiness
    from gris_serving.tracing import ServerTraces, Span

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Behaviour: TypeAlias = Callable[[Any, Any], Any]

_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}
_FAULTS = frozenset(("UNKNOWN", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"))
_DETAILS_KEY = "grpc-status-details-bin"
_REASON = re.compile(r"[A-Z][A-Z0-9_]{0,62}")

_VERSION_AND_NAME = re.compile(r"(\.v\d+)?\.\w+$")
_NO_LIMITS: Mapping[str, int] = MappingProxyType({})
_BY_CODE: Mapping[str, int] = MappingProxyType({})

log = logging.getLogger(__name__)


class CallRecorder(Protocol):
    """Counts what the calls of one method did."""

    def answered(self, request: Any, response: Any) -> None:
        """Count a request that was answered."""

    def refused(self, request: Any, reason: str) -> None:
        """Count a request that was refused, or failed, for the service's own reason (or an empty one)."""


@dataclass(frozen=True)
class Instrumentation:
    """What records a process and its calls; by default only the log."""

    metrics: CallMetrics | None = None
    readiness: Readiness | None = None
    traces: ServerTraces | None = None

    def before(
        self,
        server: grpc.aio.Server,
        recorders: Mapping[str, CallRecorder] = MappingProxyType({}),
        request_bytes: Mapping[str, int] = _NO_LIMITS,
        levels: Mapping[str, int] = _BY_CODE,
    ) -> Any:
        """Return what a service is to be added to instead of the server.

        It has the two methods of a server that the generated code uses, which the types of that code do not say.

        Args:
            server: The server.
            recorders: What counts the calls of a method, by the method's name.
            request_bytes: The largest message that is decoded, by the method's name; for others the server's own limit.
            levels: The level at which refusals of a reason are logged, where their code does not say it.
        """
        return InstrumentedServer(server, self, recorders, request_bytes, levels)

    def not_admitted(self, method: str, error: BaseException, context: _Context, seconds: float) -> None:
        """Record a call of a method that is served ("/package.Service/Method") but was not admitted."""
        _, service, name = method.split("/")
        _Method(service, name, self, None).not_admitted(_outcome(error, context, seconds), context)

    def in_process(
        self, service: str, method: str, metadata: Metadata, levels: Mapping[str, int] = _BY_CODE
    ) -> AbstractContextManager[None]:
        """Record the block as a call that no connection carries. It ends by grpc.aio.AioRpcError if it is refused.

        The block has a task of its own, whose logs and spans belong to the call.
        """
        return _Method(service, method, self, None, levels).in_process(metadata)

    def report(self, component: str, *, serving: bool) -> None:
        """Report whether a component of the process can serve."""
        if self.readiness is not None:
            self.readiness.report(component, serving=serving)


NOTHING = Instrumentation()
"""Only logs how calls end."""


class InstrumentedServer:
    """Stands for a server while a service is added to it, so that the calls of that service are instrumented.

    The generated `add_..._to_server` takes it for the server. It is not an interceptor: those run at every call, and
    see neither request nor answer without wrapping the method all the same.
    """

    def __init__(
        self,
        server: grpc.aio.Server,
        instrumentation: Instrumentation,
        recorders: Mapping[str, CallRecorder],
        request_bytes: Mapping[str, int] = _NO_LIMITS,
        levels: Mapping[str, int] = _BY_CODE,
    ) -> None:
        self._server = server
        self._instrumentation = instrumentation
        self._recorders = recorders
        self._request_bytes = request_bytes
        self._levels = levels

    def add_generic_rpc_handlers(self, _: Sequence[grpc.GenericRpcHandler]) -> None:
        """Do nothing: what is added here is added by its names, too."""

    def add_registered_method_handlers(
        self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]
    ) -> None:
        """Add the methods of a service to the server."""
        observed = {name: self._observed(service, name, handler) for name, handler in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, observed),))
        self._server.add_registered_method_handlers(service, observed)

    def _observed(
        self, service: str, name: str, handler: grpc.RpcMethodHandler[Any, Any]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        recorder = self._recorders.get(name)
        method = _Method(service, name, self._instrumentation, recorder, self._levels)
        # A method that takes bytes has nothing to decode.
        decoder, encoder = handler.request_deserializer or bytes, handler.response_serializer
        most_bytes = self._request_bytes.get(name)
        if handler.unary_unary is not None:
            return grpc.unary_unary_rpc_method_handler(
                method.unary(handler.unary_unary), marking(decoder, most_bytes), encoder
            )
        if handler.unary_stream is not None:
            return grpc.unary_stream_rpc_method_handler(
                method.stream(handler.unary_stream), marking(decoder, most_bytes), encoder
            )
        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(
                method.stream(handler.stream_stream), raising(decoder, most_bytes), encoder
            )
        raise TypeError(f"{service}/{name} answers a stream with one message, which is not supported")


class _Method:
    def __init__(
        self,
        service: str,
        name: str,
        instrumentation: Instrumentation,
        recorder: CallRecorder | None,
        levels: Mapping[str, int] = _BY_CODE,
    ) -> None:
        self._service = service
        self._name = name
        self._rpc = f"{service}/{name}"
        self._counted = None if instrumentation.metrics is None else instrumentation.metrics.of(service, name)
        self._traces = instrumentation.traces
        self._recorder = recorder
        self._levels = levels

    def unary(self, behaviour: _Behaviour) -> Callable[[Any, _Context], Awaitable[Any]]:
        """Return the behaviour that answers one message with one message, instrumented."""

        async def observed(request: Any, context: _Context) -> Any:
            span = self._begin(context.invocation_metadata)
            began = perf_counter()
            try:
                if isinstance(request, UnusableRequest):
                    await self._refuse(request, context)
                response = await behaviour(request, context)
            except BaseException as error:
                self._failed(request, _outcome(error, context, perf_counter() - began), span)
                raise
            self._answered(request, response, perf_counter() - began, span)
            return response

        return observed

    def stream(self, behaviour: _Behaviour) -> Callable[[Any, _Context], AsyncIterator[Any]]:
        """Return the behaviour that answers with a stream, instrumented as one call."""

        async def observed(requests: Any, context: _Context) -> AsyncIterator[Any]:
            span = self._begin(context.invocation_metadata)
            began = perf_counter()
            try:
                if isinstance(requests, UnusableRequest):
                    await self._refuse(requests, context)
                try:
                    async with aclosing(behaviour(requests, context)) as responses:
                        async for response in responses:
                            yield response
                except UnusableRequestError as error:
                    await self._refuse(error.request, context)
            except BaseException as error:
                self._failed(None, _outcome(error, context, perf_counter() - began), span)
                raise
            self._answered(None, None, perf_counter() - began, span)

        return observed

    @contextmanager
    def in_process(self, metadata: Metadata) -> Iterator[None]:
        """Record the block as a call."""
        span = self._begin(lambda: metadata)
        began = perf_counter()
        try:
            yield
        except BaseException as error:
            self._failed(None, _outcome_in_process(error, perf_counter() - began), span)
            raise
        self._answered(None, None, perf_counter() - began, span)

    def not_admitted(self, outcome: CallOutcome, context: _Context) -> None:
        """Record a call that was not admitted."""
        self._failed(None, outcome, self._begin(context.invocation_metadata))

    async def _refuse(self, request: UnusableRequest, context: _Context) -> NoReturn:
        detail = Packed()
        domain = _VERSION_AND_NAME.sub("", self._service)
        detail.Pack(ErrorInfo(reason=request.reason, domain=domain))
        code = grpc.StatusCode.INVALID_ARGUMENT
        status = Status(code=code.value[0], message=request.message, details=[detail])
        await context.abort(code, request.message, ((_DETAILS_KEY, status.SerializeToString()),))
        raise AssertionError("abort does not return")

    def _begin(self, metadata: Callable[[], Metadata | None]) -> Span | None:
        # Each call has a task of its own, so this need not be reset.
        METADATA.set(metadata)
        return (
            None if self._traces is None else self._traces.begin(self._service, self._name, metadata() or ())
        )

    def _answered(self, request: Any, response: Any, seconds: float, span: Span | None) -> None:
        try:
            if self._counted is not None:
                self._counted.answered(seconds)
            if self._recorder is not None:
                self._recorder.answered(request, response)
            if self._traces is not None and span is not None:
                self._traces.end(span, CallOutcome("OK", "", seconds))
            if log.isEnabledFor(logging.DEBUG):
                self._log(logging.DEBUG, CallOutcome("OK", "", seconds))
        except Exception as error:
            # Whatever is wrong with the instrumentation, the call was answered.
            self._log_failure(error)

    def _failed(self, request: Any, outcome: CallOutcome, span: Span | None) -> None:
        try:
            if self._counted is not None:
                self._counted.failed(outcome)
            if self._recorder is not None and not isinstance(request, UnusableRequest):
                self._recorder.refused(request, outcome.reason)
            if self._traces is not None and span is not None:
                self._traces.end(span, outcome)
            by_code = logging.WARNING if outcome.code in _FAULTS else logging.INFO
            self._log(self._levels.get(outcome.reason, by_code), outcome)
        except Exception as error:
            self._log_failure(error)

    def _log(self, level: int, outcome: CallOutcome) -> None:
        fields: dict[str, object] = {"rpc": self._rpc, "code": outcome.code}
        if outcome.reason:
            fields["reason"] = outcome.reason
        fields["milliseconds"] = round(1000 * outcome.seconds, 3)
        log.log(level, "A call ended.", extra={"event": "rpc.finished", "fields": fields})

    def _log_failure(self, error: Exception) -> None:
        fields = {"rpc": self._rpc, "error": type(error).__name__}
        log.error(
            "A call could not be recorded.", extra={"event": "instrumentation.failed", "fields": fields}
        )


def _outcome(error: BaseException, context: _Context, seconds: float) -> CallOutcome:
    if isinstance(error, grpc.aio.AbortError):
        code = _NAMES.get(_number(context.code()), "UNKNOWN")
        return CallOutcome(code, _reason(context.trailing_metadata()), seconds)
    return _unanswered(error, seconds)


def _outcome_in_process(error: BaseException, seconds: float) -> CallOutcome:
    if isinstance(error, grpc.aio.AioRpcError):
        return CallOutcome(error.code().name, _reason(error.trailing_metadata()), seconds)
    return _unanswered(error, seconds)


def _unanswered(error: BaseException, seconds: float) -> CallOutcome:
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        # The client has left or its deadline has passed: a server cannot tell the two apart.
        return CallOutcome("CANCELLED", "", seconds)
    return CallOutcome("UNKNOWN", "", seconds)


def _number(code: Any) -> int:
    return int(code.value[0]) if isinstance(code, grpc.StatusCode) else int(code)


def _reason(trailing: Metadata | None) -> str:
    """Return the reason in the status that a call ended with: one of the constants in the service's own code."""
    for key, value in trailing or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            info = ErrorInfo()
            for detail in Status.FromString(value).details:
                if detail.Unpack(info):
                    return info.reason if _REASON.fullmatch(info.reason) else ""
    return ""
