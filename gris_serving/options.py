"""The command-line options that all services share."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from enum import StrEnum

LARGEST_PORT = 65535
"""gRPC would take a larger one for another port, and listen there."""
MAX_DRAIN_SECONDS = 600.0


class OperatingError(Exception):
    """Metrics or another operating option cannot be provided."""


class LogFormat(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The lowest level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"


@dataclass(frozen=True)
class OperatingOptions:
    """How a process is monitored and ended.

    Attributes:
        metrics_listen: HOST:PORT of the metrics, None for none.
        log_format: The format of log lines.
        log_level: The lowest level that is logged.
        drain_seconds: How long the process goes on serving after it was asked to end.
    """

    metrics_listen: str | None = None
    log_format: LogFormat = LogFormat.TEXT
    log_level: LogLevel = LogLevel.INFO
    drain_seconds: float = 0.0


def is_port(text: str) -> bool:
    """Whether a text is the number of a port, 0 included."""
    return text.isascii() and text.isdecimal() and int(text) <= LARGEST_PORT


def checked_address(text: str) -> str:
    """Return an address to listen on, HOST:PORT, unchanged.

    Raises:
        ValueError: It is not such an address.
    """
    host, _, port = text.rpartition(":")
    if not (host and is_port(port)):
        raise ValueError(f"expected HOST:PORT with a port from 0 to {LARGEST_PORT}")
    return text


def address_option(text: str) -> str:
    """Return an address to listen on from the command line.

    Raises:
        ArgumentTypeError: It is not such an address.
    """
    try:
        return checked_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_operating_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `operating_of` reads."""
    parser.add_argument(
        "--metrics-listen",
        type=address_option,
        help="HOST:PORT for Prometheus, port 0 for any free port; without it nothing is counted",
    )
    parser.add_argument("--log-format", type=LogFormat, choices=tuple(LogFormat), default=LogFormat.TEXT)
    parser.add_argument(
        "--log-level",
        type=LogLevel,
        choices=tuple(LogLevel),
        default=LogLevel.INFO,
        help="debug: every call; info: those that failed or were refused",
    )
    parser.add_argument(
        "--drain-seconds",
        type=_seconds,
        default=0.0,
        help="how long to go on serving, as NOT_SERVING, before the server ends; "
        "connections live half as long, so that all clients have left by then",
    )


def operating_of(parsed: argparse.Namespace) -> OperatingOptions:
    """Return the options of a parsed command line."""
    return OperatingOptions(parsed.metrics_listen, parsed.log_format, parsed.log_level, parsed.drain_seconds)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MAX_DRAIN_SECONDS:
        raise argparse.ArgumentTypeError(f"expected seconds from 0 to {MAX_DRAIN_SECONDS:g}")
    return seconds
