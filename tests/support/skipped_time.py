"""The time by which engines of Pinot wait, without waiting."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest


class SkippedTime:
    """Stands for the module `time` where an engine waits: only waiting moves the clock, and it takes no time."""

    def __init__(self) -> None:
        self.passed = 0.0
        self._began = time.time()
        self._due: list[tuple[float, Callable[[], object]]] = []

    def monotonic(self) -> float:
        """Tell the seconds that passed."""
        return self.passed

    def time(self) -> float:
        """Tell the seconds since 1970."""
        return self._began + self.passed

    def sleep(self, seconds: float) -> None:
        """Let time pass, and what is due happen."""
        self.passed += seconds
        for due in [each for each in self._due if each[0] <= self.passed]:
            self._due.remove(due)
            due[1]()

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something once so many seconds have passed."""
        self._due.append((self.passed + seconds, action))


@contextmanager
def skipped_time() -> Iterator[SkippedTime]:
    """Let engines of Pinot wait by such a clock."""
    skipped = SkippedTime()
    with pytest.MonkeyPatch.context() as patch:
        for module in ("controller", "limit_in_force", "real_time", "version_readiness"):
            patch.setattr(f"pinot_connector.engines.pinot.{module}.time", skipped)
        yield skipped
