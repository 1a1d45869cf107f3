"""Several replicas behind one name: calls go to each in turn, and to none that says nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pinot_connector.channels import Timeouts
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.errors import GrisError
from tests.support.rings import needs
from tests.support.world import POLICY

IN_A_ROW = 10
TIMEOUT_SECONDS = 30.0


@contextmanager
def replica(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run dp_service and give the process and its address."""
    options = ["--policy", str(folder / "policy.yaml"), "--key-file", str(folder / "noise.key")]
    command = [sys.executable, "-m", "dp_service", *options, "--listen", "127.0.0.1:0"]
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())["address"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
@needs("process")
def replicas(tmp_path: Path) -> Iterator[tuple[list[subprocess.Popen[str]], str]]:
    """Run two replicas and give them, with one address for both."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "noise.key").write_bytes(os.urandom(32))
    (tmp_path / "noise.key").chmod(0o400)
    with replica(tmp_path) as (one, first), replica(tmp_path) as (other, second):
        yield [one, other], f"ipv4:{first},{second}"


@pytest.fixture
async def calls(replicas: tuple[list[subprocess.Popen[str]], str]) -> AsyncIterator[DpServiceClient]:
    """Connect to both."""
    opened = DpServiceClient(replicas[1], Timeouts(dp=2))
    yield opened
    await opened.close()


async def answered_in_a_row(calls: DpServiceClient) -> None:
    """Return as soon as so many calls were answered, one after another."""
    end, row = time.monotonic() + TIMEOUT_SECONDS, 0
    while row < IN_A_ROW:
        assert time.monotonic() < end, "calls go on being lost"
        try:
            await calls.catalog("")
            row += 1
        except GrisError:
            row = 0


async def test_a_replica_that_says_nothing_is_left(
    replicas: tuple[list[subprocess.Popen[str]], str], calls: DpServiceClient
) -> None:
    """Its connection stays open, as that of a machine which is gone; calls that go there fail for seconds only."""
    await answered_in_a_row(calls)
    replicas[0][0].send_signal(signal.SIGSTOP)
    await answered_in_a_row(calls)


async def test_a_killed_replica_costs_no_call(
    replicas: tuple[list[subprocess.Popen[str]], str], calls: DpServiceClient
) -> None:
    """What it was asked when it died is asked of the other one."""
    await answered_in_a_row(calls)
    replicas[0][0].kill()
    for _ in range(IN_A_ROW):
        assert (await calls.catalog("")).tables
