"""What is said of something that nobody foresaw: its kind and its place, for its text may name an account."""

from __future__ import annotations

import logging
import traceback

log = logging.getLogger(__name__)


def describe_error(error: Exception) -> str:
    """Return what may be told of a fault."""
    return f"a fault of the service: {type(error).__name__} at {_place(error)}"


def log_internal_error(error: Exception) -> None:
    """Log a fault."""
    fields = {"error": type(error).__name__, "location": _place(error)}
    log.error("The service failed.", extra={"event": "internal_error", "fields": fields})


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
