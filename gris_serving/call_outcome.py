"""How a call ended, in the words that logs, metrics and traces share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call ended: gRPC's name of the code, the service's own reason (or empty), and how long it took."""

    code: str
    reason: str
    seconds: float
