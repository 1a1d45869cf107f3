"""Forked services end with the worker that asked for them and with no other; other users cannot ask for any."""

from __future__ import annotations

import os
import secrets
import select
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.forked_services import ADDRESS, EXEC, ROOT, RUN

WORKER = """
import sys
from pathlib import Path
from tests.support import forked_services
from tests.support.processes import budget_command, process
forked_services.install()
folder = Path(sys.argv[1])
with process("budget_service", budget_command(folder), folder / "log") as running:
    print(running["pid"], flush=True)
    sys.stdin.read()
"""
STRANGER = """
import os, socket, sys
os.setuid(65534)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
    connection.connect(chr(0) + sys.argv[1])
    print(connection.recv(100))
"""
SECONDS = 30


def worker(folder: Path, run: str) -> tuple[subprocess.Popen[str], int]:
    """Start what stands for a worker of a run of tests; return it and the number of the service that it has started."""
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != EXEC} | {RUN: run}
    started = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
    )  # fmt: skip
    assert started.stdout is not None
    return started, int(started.stdout.readline())


def parent_of(process: int) -> int:
    """Return the number of a process's parent."""
    return psutil.Process(process).ppid()


def ends(watched: int, seconds: float) -> bool:
    """Tell whether a process ends within some seconds."""
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="services are forked on Linux only")
def test_a_worker_that_is_killed_takes_its_own_services_with_it(tmp_path: Path) -> None:
    """The workers of a run share a fork server, which outlives each of them, and ends with the last."""
    run = secrets.token_hex(8)
    (first, of_first), (second, of_second) = (worker(tmp_path / name, run) for name in ("a", "b"))
    fork_server = parent_of(of_first)
    assert fork_server == parent_of(of_second)
    assert fork_server not in (first.pid, second.pid)
    watched = [os.pidfd_open(each) for each in (of_first, of_second, fork_server)]
    # Leaving a worker closes what it reads, which ends it.
    with second:
        with first:
            first.kill()
        assert ends(watched[0], SECONDS)
        assert not ends(watched[1], 0)
    assert second.returncode == 0
    assert all(ends(each, SECONDS) for each in watched)
    for each in watched:
        os.close(each)


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="services are forked on Linux only")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_fork_server_takes_no_orders_of_other_users(tmp_path: Path) -> None:
    """An order is run with the rights of who runs the tests."""
    run = secrets.token_hex(8)
    started, _ = worker(tmp_path / "a", run)
    command = [sys.executable, "-c", STRANGER, ADDRESS.format(run)[1:]]
    with started:
        stranger = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert stranger.stdout == "b''\n"
