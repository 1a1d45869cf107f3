"""A rolling restart of both services under load loses nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.redis_server import skip_without_redis

KINDS = {"question", "EstimateCost", "UpdateBudget", "GetBudget"}


@pytest.mark.usefixtures("starts_redis")
def test_a_rolling_restart_under_load_loses_no_call() -> None:
    """Four processes are replaced one after the other; the campaign `rolling` does it again and again.

    The callers run in a process of their own, so that one that crashes is seen.
    """
    skip_without_redis()
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.campaigns.rolling", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--drain-seconds", "1"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    table = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert 0 == done.returncode, done.stdout + done.stderr
    assert ("4", "0") == (table["restarts"], table["lost"])
    assert all(int(table[f"answered: {kind}"].replace(",", "")) > 0 for kind in KINDS)
    assert int(table["answered"].replace(",", "")) > 500
