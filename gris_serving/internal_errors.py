"""What is logged of an error that nobody expected: its type and location, never its text.

The text and the frames of such an error may hold counts, accounts or elements.
"""

from __future__ import annotations

import logging
from types import TracebackType


def log_internal_error(log: logging.Logger, message: str, error: BaseException) -> None:
    """Log an error that nobody expected, with its type and location alone.

    Args:
        log: The logger of the module that caught it.
        message: What failed, as a sentence without anything that the error says.
        error: The error.
    """
    fields = {"error": type(error).__name__, "location": location_of(error.__traceback__)}
    log.error(message, extra={"event": "internal_error", "fields": fields})


def location_of(traceback: TracebackType | None) -> str:
    """Return where an error was raised, FILE:LINE, or "unknown" if it was not raised yet."""
    if traceback is None:
        return "unknown"
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
