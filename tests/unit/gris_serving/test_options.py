"""The options that all services share."""

from __future__ import annotations

import argparse
import socket

import pytest
from prometheus_client import CollectorRegistry

from gris_serving.draining import connection_options
from gris_serving.metrics import serving_metrics
from gris_serving.options import (
    LogFormat,
    LogLevel,
    OperatingError,
    OperatingOptions,
    add_operating_options,
    operating_of,
)


def parsed(*arguments: str) -> OperatingOptions:
    """Read a command line."""
    parser = argparse.ArgumentParser("test")
    add_operating_options(parser)
    return operating_of(parser.parse_args(arguments))


def test_by_default_nothing_is_counted_or_drained() -> None:
    """The log is text."""
    assert parsed() == OperatingOptions(None, LogFormat.TEXT, LogLevel.INFO, 0)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--metrics-listen=9090", "--metrics-listen: expected HOST:PORT"),
        ("--metrics-listen=:9090", "--metrics-listen: expected HOST:PORT"),
        ("--metrics-listen=h:65536", "port from 0 to 65535"),
        ("--metrics-listen=h:-1", "--metrics-listen: expected HOST:PORT"),
        ("--drain-seconds=-1", "--drain-seconds: expected seconds from 0 to 600"),
        ("--drain-seconds=nan", "--drain-seconds: expected seconds"),
        ("--drain-seconds=inf", "--drain-seconds: expected seconds"),
        ("--drain-seconds=soon", "--drain-seconds: expected seconds"),
        ("--log-format=xml", "--log-format"),
        ("--log-level=loud", "--log-level"),
    ],
)
def test_a_wrong_option_is_named(argument: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With what was expected; the exit code is 2."""
    with pytest.raises(SystemExit) as end:
        parsed(argument)
    assert end.value.code == 2
    assert expected in capsys.readouterr().err


def test_a_connection_is_gone_before_the_drain_is_over() -> None:
    """gRPC lets it live up to a tenth longer than its maximum age; without a drain it has no such limit."""
    ((name, milliseconds),) = connection_options(10)
    assert (name, milliseconds * 1.1 < 10_000) == ("grpc.max_connection_age_ms", True)
    assert connection_options(0) == ()


@pytest.mark.slow
def test_a_taken_address_of_metrics_is_named() -> None:
    """In one line that says what it was for."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OperatingError, match=f"cannot listen on {address} for metrics"):
            serving_metrics(CollectorRegistry(), address).__enter__()
