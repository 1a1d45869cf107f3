"""What was logged, by its stable names: events and their fields."""

from __future__ import annotations

from typing import Any

import pytest


def logged_events(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """Return the events that were logged, each with its fields, in order."""
    return [
        (record.__dict__["event"], record.__dict__.get("fields", {}))
        for record in caplog.records
        if "event" in record.__dict__
    ]


def everything_logged(caplog: pytest.LogCaptureFixture) -> str:
    """Return all messages and all fields as one text, to search it for what must not be there."""
    return f"{caplog.text} {[record.__dict__.get('fields') for record in caplog.records]}"
