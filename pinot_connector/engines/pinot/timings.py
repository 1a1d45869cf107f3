"""How long the engine waits for Pinot, and how long it trusts what Pinot reported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PinotTimings:
    """Times in seconds that hold for every Pinot. Only tests set others.

    `version_timeout_seconds` is how long a question waits for a new version of a table; questions that come later are
    refused at once, because each one that waits holds a thread.
    `broker_delay_seconds` is how long a broker may go on with what it knew of a table: its segments, which of them
    replace others, and their times.
    `recent_seconds` is how old a reading of a table's segments may be when a question begins with it.
    `plan_memory_seconds` is how long a broker is trusted to treat a LIMIT as its last plan showed.
    """

    version_timeout_seconds: float = 5.0
    broker_delay_seconds: float = 2.0
    recent_seconds: float = 60.0
    plan_memory_seconds: float = 60.0


DEFAULT_TIMINGS = PinotTimings()
