"""Waiting for a cluster that comes round in its own time."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Return when the condition holds; fail if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
