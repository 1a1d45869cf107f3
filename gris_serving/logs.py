"""The log of a process: lines of text or JSON on standard error, with the request id of the call that they belong to.

Nothing that an exception says is ever written, for its text may hold an account, an element or a count: only what kind
of exception it was, and where it came from.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import grpc

from gris_serving.options import LogFormat, LogLevel

REQUEST_ID_KEY = "x-request-id"
"""The metadata under which a client names its request."""

OWN_LOGGERS = ("dp_service", "budget_service", "pinot_connector", "gris_gateway", "gris_serving")
FIELDS = "fields"
"""What a line is about besides its message: `extra={FIELDS: {...}}`."""

CALL: ContextVar[grpc.aio.ServicerContext[Any, Any] | None] = ContextVar("call", default=None)
"""The call that is being served. Its metadata is read only where something is logged."""

# Without blanks and quotation marks, so that an id cannot pretend to be more than one field of a line.
_REQUEST_ID = re.compile(r"[!#-~]{1,128}")


def configure(log_format: LogFormat, level: LogLevel) -> None:
    """Write the log of this process to standard error; only the project's own lines go below INFO."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format is LogFormat.JSON else _Text())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())


def request_id() -> str | None:
    """Return the id of the request that is being served, if its client gave one that is 1 to 128 printable letters."""
    call = CALL.get()
    if call is None:
        return None
    for key, value in call.invocation_metadata() or ():
        if key == REQUEST_ID_KEY:
            return value if isinstance(value, str) and _REQUEST_ID.fullmatch(value) else None
    return None


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        said = _said(record)
        head = " ".join(said.pop(name) for name in ("time", "level", "logger"))
        message = said.pop("message").replace("\n", "\\n")
        return " ".join((head, message, *(f"{name}={value}" for name, value in said.items())))


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return one line with one object."""
        return json.dumps(_said(record))


def _said(record: logging.LogRecord) -> dict[str, Any]:
    said: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname,
        "logger": record.name,
        "message": _message(record),
        **getattr(record, FIELDS, {}),
    }
    if (named := request_id()) is not None:
        said["request_id"] = named
    if record.exc_info:
        said["exception"] = _exception(*record.exc_info)
    return said


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    # In the lines after its first, asyncio repeats the exception that nobody waited for.
    return message.partition("\n")[0] if record.name == "asyncio" else message


def _exception(
    kind: type[BaseException] | None, _: BaseException | None, traceback: TracebackType | None
) -> str:
    if kind is None or traceback is None:
        return "unknown"
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{kind.__name__} at {traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
