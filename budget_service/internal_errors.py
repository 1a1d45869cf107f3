"""How internal errors are reported: by type and location. Their texts may name an account."""

from __future__ import annotations

import logging
import traceback

log = logging.getLogger(__name__)


def describe_error(error: Exception) -> str:
    """Return the type and the location of an internal error."""
    return f"a fault of the service: {type(error).__name__} at {_location(error)}"


def log_internal_error(error: Exception) -> None:
    """Log an internal error by type and location."""
    fields = {"error": type(error).__name__, "location": _location(error)}
    log.error("The service failed.", extra={"event": "internal_error", "fields": fields})


def _location(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown location"
