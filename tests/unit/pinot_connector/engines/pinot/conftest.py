"""Pinot's engine before fake Pinots: nothing here starts a process."""

import pytest

from tests.support.fake_pinot_fixtures import clock, opened, pinot, servers
from tests.support.skipped_time import SkippedTime

__all__ = ("clock", "opened", "pinot", "servers")


@pytest.fixture(autouse=True)
def waits_take_no_time(clock: SkippedTime) -> None:
    """Let no test wait for a version."""
