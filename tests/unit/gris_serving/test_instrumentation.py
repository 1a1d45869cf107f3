"""Instrumented calls: counted by how they end, logged by name, unchanged for their callers."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from prometheus_client import CollectorRegistry

from gris_serving.call_outcome import CallOutcome
from gris_serving.instrumentation import Instrumentation, InstrumentedServer
from gris_serving.logs import configure
from gris_serving.metrics import CallMetrics
from gris_serving.options import LogFormat, LogLevel
from tests.support.echo import SECRET, SERVICE, EchoStub, add_echo, observed_echo
from tests.support.log_events import everything_logged, logged_events

# Says that a field of 127 bytes follows, and ends.
UNDECODABLE = b"\x0a\x7f"
ECHOED = StringValue(value="a").SerializeToString()


@pytest.fixture
def registry() -> CollectorRegistry:
    """What is counted."""
    return CollectorRegistry()


@pytest.fixture
def instrumentation(registry: CollectorRegistry) -> Instrumentation:
    """Instrumentation that counts."""
    return Instrumentation(CallMetrics(registry))


def ended(registry: CollectorRegistry, method: str) -> float:
    """Return how many calls of a method have ended."""
    labels = {"grpc_service": SERVICE, "grpc_method": method}
    return registry.get_sample_value("gris_rpc_duration_seconds_count", labels) or 0


def failed(registry: CollectorRegistry, method: str, code: str, reason: str = "") -> float:
    """Return how many of them failed so."""
    labels = {"grpc_service": SERVICE, "grpc_method": method, "code": code, "reason": reason}
    return registry.get_sample_value("gris_rpc_failures_total", labels) or 0


async def code_of(call: Any) -> grpc.StatusCode:
    """Return the code that a call ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code()


async def wait_until(holds: Any) -> None:
    """Wait for something that a server does a moment after its client has gone on."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - a number tells nobody
            await asyncio.sleep(0.01)


async def logged_line(capfd: pytest.CaptureFixture[str]) -> Any:
    """Return the only line of JSON that is logged; gRPC's own library writes there, too, and not in our format."""
    said = ""

    def is_there() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return any(line.startswith("{") for line in said.splitlines(keepends=True) if line.endswith("\n"))

    await wait_until(is_there)
    (line,) = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return line


async def test_every_way_to_end_is_counted_and_none_is_changed(
    instrumentation: Instrumentation, registry: CollectorRegistry
) -> None:
    """An answer, a refusal with its reason, a fault, and a caller who left."""
    async with observed_echo(instrumentation) as echo:
        assert await echo.one("a") == "a"
        assert await code_of(echo.one("refuse")) is grpc.StatusCode.FAILED_PRECONDITION
        assert await code_of(echo.one("fail")) is grpc.StatusCode.UNKNOWN
        assert await code_of(echo.one("wait", timeout=0.2)) is grpc.StatusCode.DEADLINE_EXCEEDED
        await wait_until(lambda: ended(registry, "One") == 4)
    assert failed(registry, "One", "FAILED_PRECONDITION", "NOT_TODAY") == 1
    assert failed(registry, "One", "UNKNOWN") == 1
    assert failed(registry, "One", "CANCELLED") == 1


async def test_a_stream_is_one_call(instrumentation: Instrumentation, registry: CollectorRegistry) -> None:
    """However many messages it has; and one that is refused in the middle is one refusal."""
    async with observed_echo(instrumentation) as echo:
        assert await echo.many("a", "b", "c") == ["a", "b", "c"]
        assert await code_of(echo.many("a", "refuse")) is grpc.StatusCode.FAILED_PRECONDITION
        await wait_until(lambda: ended(registry, "Many") == 2)
    assert failed(registry, "Many", "FAILED_PRECONDITION", "NOT_TODAY") == 1


async def test_what_cannot_be_decoded_is_the_callers_fault(
    instrumentation: Instrumentation, registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    """It is refused and counted as that, it is no fault of the service, and the log says nothing of it."""
    async with observed_echo(instrumentation) as echo:
        for call in (echo.raw_one(UNDECODABLE), echo.raw_many(ECHOED, UNDECODABLE)):
            assert await code_of(call) is grpc.StatusCode.INVALID_ARGUMENT
        await wait_until(lambda: ended(registry, "One") + ended(registry, "Many") == 2)
        assert await echo.one("a") == "a"
    for method in ("One", "Many"):
        assert failed(registry, method, "INVALID_ARGUMENT", "UNDECODABLE") == 1
    assert not [each for each in caplog.records if each.levelno > logging.INFO]


class Blind:
    """An effect that fails."""

    def answered(self, request: Any, response: Any) -> None:
        """Fail."""
        raise RuntimeError(SECRET)

    def refused(self, request: Any, reason: str) -> None:
        """Fail."""
        raise RuntimeError(SECRET)


async def test_a_fault_of_the_sight_changes_no_call(caplog: pytest.LogCaptureFixture) -> None:
    """What was answered stays answered, what was refused stays refused, and the log says no more than the kind."""
    server = grpc.aio.server()
    add_echo(InstrumentedServer(server, Instrumentation(), {"One": Blind()}))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        echo = EchoStub(channel)
        assert await echo.one("a") == "a"
        assert await code_of(echo.one("refuse")) is grpc.StatusCode.FAILED_PRECONDITION
    await server.stop(10)
    fields = {"rpc": f"{SERVICE}/One", "error": "RuntimeError"}
    assert [("instrumentation.failed", fields)] * 2 == [
        each for each in logged_events(caplog) if each[0] != "rpc.finished"
    ]
    assert SECRET not in everything_logged(caplog)


@pytest.mark.parametrize(
    ("given", "logged"),
    [
        ((("x-request-id", "r-1"),), "r-1"),
        ((("x-request-id", "~" * 128),), "~" * 128),
        ((), None),
        ((("x-request-id", "~" * 129),), None),
        ((("x-request-id", 'a"b'),), None),
        ((("x-request-id", "level=ERROR two words"),), None),
    ],
)
async def test_a_line_has_the_id_of_its_request_if_it_is_one(
    given: tuple[tuple[str, str], ...],
    logged: str | None,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """1 to 128 printable letters; anything else is left out, and the call is served all the same."""
    configure(LogFormat.JSON, LogLevel.INFO)
    async with observed_echo(Instrumentation()) as echo:
        await code_of(echo.one("refuse", metadata=given))
        line = await logged_line(capfd)
    assert line.get("request_id") == logged
    assert (line["rpc"], line["code"], line["reason"]) == (
        f"{SERVICE}/One",
        "FAILED_PRECONDITION",
        "NOT_TODAY",
    )


@pytest.mark.parametrize("log_format", list(LogFormat))
async def test_the_log_repeats_no_exception(log_format: LogFormat, capfd: pytest.CaptureFixture[str]) -> None:
    """Not of a handler that failed, not of a task that nobody waited for: only kind and place."""

    async def lost() -> None:
        raise ValueError(SECRET)

    configure(log_format, LogLevel.DEBUG)
    async with observed_echo(Instrumentation()) as echo:
        await code_of(echo.one("fail"))
        await code_of(echo.one("refuse"))
        task = asyncio.create_task(lost())
        await asyncio.wait((task,))
        del task
    said = capfd.readouterr().err
    assert said.count("ValueError at ") == 2
    assert "Task exception was never retrieved" in said
    assert SECRET not in said


async def test_answers_are_logged_only_if_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    """At DEBUG every call, at INFO those that did not end well, at WARNING the faults."""
    lines = {}
    for level in LogLevel:
        configure(LogFormat.TEXT, level)
        async with observed_echo(Instrumentation()) as echo:
            await echo.one("a")
            await code_of(echo.one("refuse"))
            await code_of(echo.one("fail"))
        said = capfd.readouterr().err.splitlines()
        lines[level] = [line.partition("code=")[2].split()[0] for line in said if "code=" in line]
    everything = ["OK", "FAILED_PRECONDITION", "UNKNOWN"]
    assert lines == {
        LogLevel.DEBUG: everything,
        LogLevel.INFO: everything[1:],
        LogLevel.WARNING: everything[2:],
    }


def test_a_line_of_text_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever is in a message."""
    configure(LogFormat.TEXT, LogLevel.INFO)
    logging.getLogger("gris_serving").info("one\ntwo")
    said = capfd.readouterr().err
    assert said.endswith(" INFO gris_serving one\\ntwo\n")
    assert said.count("\n") == 1


def test_a_field_of_a_text_line_cannot_pretend_to_be_another(capfd: pytest.CaptureFixture[str]) -> None:
    """What has blanks, quotation marks or line breaks stands in quotation marks, escaped."""
    configure(LogFormat.TEXT, LogLevel.INFO)
    fields = {"problem": 'no "key"\nevent=x', "answers": True, "empty": "", "path": "a.yaml:3"}
    logging.getLogger("gris_serving").info("A test.", extra={"event": "test.ran", "fields": fields})
    line = capfd.readouterr().err
    assert line.endswith(
        r' A test. event=test.ran problem="no \"key\"\nevent=x" answers=true empty="" path=a.yaml:3' + "\n"
    )


def test_an_ending_without_its_reason_is_counted(registry: CollectorRegistry) -> None:
    """gRPC's own refusals have none."""
    CallMetrics(registry).of(SERVICE, "One").failed(CallOutcome("UNAVAILABLE", "", 0.5))
    assert failed(registry, "One", "UNAVAILABLE") == 1
