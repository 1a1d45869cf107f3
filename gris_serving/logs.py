"""The log of a process: lines of text or JSON on standard error, with the request id of the call that they belong to.

A log call names its event, noun.verb, and passes what varies as fields:

    log.info("The store's health changed.", extra={"event": "store.health_changed", "fields": {"answers": True}})

The names and fields are stable; docs/monitoring.md lists them. The sentences are for people, and may change.

The text of an exception is never written, for it may hold an account, an element or a count: only what type of
exception it was, and where it was raised.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypeAlias

from gris_serving.internal_errors import location_of
from gris_serving.options import LogFormat, LogLevel

REQUEST_ID_KEY = "x-request-id"
"""The metadata under which a client names its request."""

OWN_LOGGERS = (
    "dp_service",
    "budget_service",
    "pinot_connector",
    "gris_gateway",
    "gris_gateway.faces.broker",
    "gris_gateway.faces.page",
    "gris_gateway.faces.mcp",
    "gris_gateway.faces.postgres",
    "gris_serving",
)

Metadata: TypeAlias = "Iterable[tuple[str, str | bytes]]"

METADATA: ContextVar[Callable[[], Metadata | None]] = ContextVar("metadata", default=tuple)
"""Returns the metadata of the call that is being served. It is asked only when something is logged."""

# Without blanks and quotation marks, so that an id cannot pretend to be more than one field of a line.
_REQUEST_ID = re.compile(r"[!#-~]{1,128}")
# What a field of a text line may hold without quotation marks.
_PLAIN_VALUE = re.compile(r"[!#-~]+")


def configure(log_format: LogFormat, level: LogLevel) -> None:
    """Write the log of this process to standard error; only the project's own loggers may log below INFO."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format is LogFormat.JSON else _Text())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())


def request_id() -> str | None:
    """Return the id of the request that is being served.

    Returns:
        The id, or None if the client gave none that is 1 to 128 printable ASCII characters without blanks and
        quotation marks.
    """
    for key, value in METADATA.get()() or ():
        if key == REQUEST_ID_KEY:
            return value if isinstance(value, str) and _REQUEST_ID.fullmatch(value) else None
    return None


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return one line: time, level, logger and message, then `name=value` for each field."""
        values = _values(record)
        head = " ".join(values.pop(name) for name in ("time", "level", "logger"))
        message = values.pop("message").replace("\n", "\\n")
        return " ".join((head, message, *(f"{name}={_field_text(value)}" for name, value in values.items())))


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return one line with one object."""
        return json.dumps(_values(record))


def _field_text(value: object) -> str:
    """Return a value so that it cannot pretend to be more than one field, or more than one line."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if _PLAIN_VALUE.fullmatch(text) else json.dumps(text)


def _values(record: logging.LogRecord) -> dict[str, Any]:
    values: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname,
        "logger": record.name,
        "message": _message(record),
    }
    # Lines of other libraries have no event.
    if (event := getattr(record, "event", None)) is not None:
        values["event"] = event
    values |= getattr(record, "fields", {})
    if (named := request_id()) is not None:
        values["request_id"] = named
    if record.exc_info:
        values["exception"] = _exception(*record.exc_info)
    return values


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    # In the lines after its first, asyncio repeats the exception that nobody waited for.
    return message.partition("\n")[0] if record.name == "asyncio" else message


def _exception(
    kind: type[BaseException] | None, _: BaseException | None, traceback: TracebackType | None
) -> str:
    if kind is None or traceback is None:
        return "unknown"
    return f"{kind.__name__} at {location_of(traceback)}"
