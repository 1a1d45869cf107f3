"""Waiting for a cluster that comes round in its own time."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Return when the condition holds; fail if it does not in time."""
    deadline, pause = time.monotonic() + seconds, 0.05
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(pause)
        # What takes a minute is not asked about a thousand times.
        pause = min(1.1 * pause, 0.5)
