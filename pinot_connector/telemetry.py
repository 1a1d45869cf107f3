"""Telemetry of the connector: spans and metrics by OpenTelemetry's API, and a request id for every question.

The application decides where they go, by setting up OpenTelemetry's SDK; without the package
(`pip install gris-dp[telemetry]`) there are none. Spans and metrics hold names of this module, kinds of errors and
codes of gRPC: never an account, an element, a count, SQL, or the message of an error.

Metrics:
    gris.questions           questions by `outcome`: answered, or the kind of error
    gris.question.duration   seconds, by `outcome`
    gris.engine.calls        calls to the engine by `engine`, `step` (version, check, run, confirm) and `outcome`; of a
                             Pinot whose answers are not whole, `run` and `confirm` have the outcome incomplete_answer
    gris.budget.wait         seconds that questions waited for budget that others held, by `outcome`: answered, or the
                             kind of error, such as budget_held; questions that need not wait are not in it
    gris.release.lookups     questions by what the release store has for them: given (paid for already), charged (kept,
                             and paid for now), missed (drawn anew)
"""

from __future__ import annotations

import hashlib
import re
import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Protocol, TypeAlias

import grpc
from google.protobuf.message import Message

from pinot_connector import forks
from pinot_connector.errors import GrisError, InvalidQuestion

try:
    from opentelemetry import metrics, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError:
    HAS_OPENTELEMETRY = False
else:
    HAS_OPENTELEMETRY = True

Metadata: TypeAlias = tuple[tuple[str, str], ...]

ANSWERED = "answered"
REQUEST_ID_KEY = "x-request-id"
CALLER_KEY = "gris-caller"

_SOURCE = "gris.connector"
_REQUEST_ID = re.compile(r"[!#-~]{1,128}")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")

# Nobody else can find out whose digest one is.
_DIGEST_KEY = secrets.token_bytes(32)
_caller: ContextVar[str | None] = ContextVar("gris_caller", default=None)
_named: ContextVar[str | None] = ContextVar("gris_request_id", default=None)


@contextmanager
def request_id(name: str) -> Iterator[None]:
    """Sets the request id of everything asked in the block, so that an application finds it in the services' logs.

    The services log the id as it is: it must reveal neither who asks nor what.

    Args:
        name: 1 to 128 printable ASCII characters without blanks and quotation marks.

    Raises:
        InvalidQuestion: it is something else.
    """
    if not (isinstance(name, str) and _REQUEST_ID.fullmatch(name)):
        raise InvalidQuestion(
            "request_id", "expected 1 to 128 printable ASCII characters, no blanks or quotes"
        )
    token = _named.set(name)
    try:
        yield
    finally:
        _named.reset(token)


class QuestionRecorder(Protocol):
    """Records questions and their steps."""

    def question(self, outcome: str, seconds: float) -> None:
        """Counts a question."""
        ...

    def engine_call(self, engine: str, step: str, outcome: str) -> None:
        """Counts a call to an engine."""
        ...

    def budget_wait(self, outcome: str, seconds: float) -> None:
        """Counts a question that waited for budget."""

    def release_lookup(self, outcome: str) -> None:
        """Counts a question by what the release store has for it."""
        ...


@contextmanager
def recorded_by(recorder: QuestionRecorder) -> Iterator[None]:
    """Also records with `recorder` everything that ends while the block runs.

    Args:
        recorder: gets each question and each call to an engine, with its outcome.
    """
    _RECORDERS.append(recorder)
    try:
        yield
    finally:
        _RECORDERS.remove(recorder)


@contextmanager
def question() -> Iterator[None]:
    """Records one question: its outcome and duration; gives it a request id if it has none."""
    began = perf_counter()

    def count(outcome: str) -> None:
        for each in _RECORDERS:
            each.question(outcome, perf_counter() - began)

    with _with_request_id(), _span("gris question"), _counted(count):
        yield


@contextmanager
def engine_call(engine: str, step: str) -> Iterator[None]:
    """Records one call to an engine."""

    def count(outcome: str) -> None:
        for each in _RECORDERS:
            each.engine_call(engine, step, outcome)

    with _span(f"engine {step}", {"gris.engine": engine}), _counted(count):
        yield


def release_looked_up(outcome: str) -> None:
    """Records what the release store has for a question: given, charged or missed."""
    for each in _RECORDERS:
        each.release_lookup(outcome)


@contextmanager
def release_store_call(step: str) -> Iterator[None]:
    """Records one call to the release store."""
    with _span(f"release store {step}"):
        yield


@contextmanager
def budget_wait() -> Iterator[None]:
    """Records one wait for budget that others hold: its outcome and duration."""
    began = perf_counter()

    def count(outcome: str) -> None:
        for each in _RECORDERS:
            each.budget_wait(outcome, perf_counter() - began)

    with _span("budget wait"), _counted(count):
        yield


@contextmanager
def remote_call(request: Message, method: str = "") -> Iterator[Metadata]:
    """Records one call to a service, and gives the metadata to send with it.

    Args:
        request: the request; its name names the method, unless `method` does.
        method: the method, if the request is not named after it.

    Raises:
        ForkedError: this process was forked while a connection was open.
    """
    forks.require_usable()
    package, _, kind = request.DESCRIPTOR.full_name.rpartition(".")
    attributes = {"rpc.system": "grpc", "rpc.method": method or kind.removesuffix("Request")}
    with _span(f"{package}/{attributes['rpc.method']}", attributes, is_remote=True) as span:
        try:
            yield _metadata()
        except grpc.aio.AioRpcError as error:
            if span is not None:
                span.set_attribute("rpc.grpc.status_code", error.code().value[0])
            raise


@contextmanager
def _counted(count: Callable[[str], None]) -> Iterator[None]:
    """Counts the outcome of the block: answered, or the kind of error."""
    outcome = ANSWERED
    try:
        yield
    except BaseException as error:
        outcome = _kind(error)
        raise
    finally:
        count(outcome)


@contextmanager
def asking_for(caller: str) -> Iterator[None]:
    """Lets services tell the callers of a gateway apart in the block, without saying who they are."""
    digest = hashlib.blake2b(caller.encode(errors="surrogatepass"), key=_DIGEST_KEY, digest_size=16)
    token = _caller.set(digest.hexdigest())
    try:
        yield
    finally:
        _caller.reset(token)


def _metadata() -> Metadata:
    named: Metadata = ((REQUEST_ID_KEY, _named.get() or uuid.uuid4().hex),)
    if (caller := _caller.get()) is not None:
        named = (*named, (CALLER_KEY, caller))
    if not HAS_OPENTELEMETRY:
        return named
    # Not the application's own propagator: baggage may hold anything.
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return (*named, *((key, value) for key, value in carrier.items() if key == "traceparent"))


@contextmanager
def _with_request_id() -> Iterator[None]:
    if _named.get() is None:
        with request_id(uuid.uuid4().hex):
            yield
    else:
        yield


@contextmanager
def _span(name: str, attributes: dict[str, str] | None = None, *, is_remote: bool = False) -> Iterator[Any]:
    if not (HAS_OPENTELEMETRY and _spans_are_recorded()):
        yield None
        return
    kind = trace.SpanKind.CLIENT if is_remote else trace.SpanKind.INTERNAL
    # The message of an error names accounts and amounts: OpenTelemetry must not record it.
    with _TRACER.start_as_current_span(
        name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            span.set_attribute("gris.outcome", _kind(error))
            span.set_status(trace.Status(trace.StatusCode.ERROR))
            raise


def _spans_are_recorded() -> bool:
    """Returns whether the application has set up traces; if not, spans would say nothing and still cost CPU."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _kind(error: BaseException) -> str:
    """Returns the kind of an error in small letters; of those that are not the connector's own, "failed"."""
    if isinstance(error, GrisError | grpc.aio.AioRpcError):
        return _CAPITAL.sub("_", type(error).__name__).lower()
    return "failed" if isinstance(error, Exception) else "cancelled"


class Meters:
    """The metrics, with one of OpenTelemetry's providers."""

    def __init__(self, provider: metrics.MeterProvider | None = None) -> None:
        meter = metrics.get_meter(_SOURCE, meter_provider=provider)
        self._questions = meter.create_counter("gris.questions", description="Questions by how they ended.")
        self._durations = meter.create_histogram(
            "gris.question.duration", unit="s", description="How long questions took."
        )
        self._engine_calls = meter.create_counter("gris.engine.calls", description="Calls to the engine.")
        self._budget_waits = meter.create_histogram(
            "gris.budget.wait", unit="s", description="How long questions waited for budget that others held."
        )
        self._lookups = meter.create_counter(
            "gris.release.lookups", description="Questions by what the release store has for them."
        )

    def question(self, outcome: str, seconds: float) -> None:
        """Counts a question."""
        self._questions.add(1, {"outcome": outcome})
        self._durations.record(seconds, {"outcome": outcome})

    def engine_call(self, engine: str, step: str, outcome: str) -> None:
        """Counts a call to an engine."""
        self._engine_calls.add(1, {"engine": engine, "step": step, "outcome": outcome})

    def budget_wait(self, outcome: str, seconds: float) -> None:
        """Counts a question that waited for budget."""
        self._budget_waits.record(seconds, {"outcome": outcome})

    def release_lookup(self, outcome: str) -> None:
        """Counts a question by what the release store has for it."""
        self._lookups.add(1, {"outcome": outcome})


_RECORDERS: list[QuestionRecorder] = []
if HAS_OPENTELEMETRY:
    _TRACER = trace.get_tracer(_SOURCE)
    _PROPAGATOR = TraceContextTextMapPropagator()
    _RECORDERS.append(Meters())
