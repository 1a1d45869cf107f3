"""Embedded services end with the program that has started them, in whatever way that ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from pinot_connector.embedded import EmbeddedServices
from tests.support.rings import needs
from tests.support.world import BUDGET, POLICY

PROGRAM = """
import fcntl, json, os, signal, subprocess, sys, termios, time
from pinot_connector.embedded import EmbeddedServices
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
# The program that runs the tests may ignore it, as nohup does, and what is ignored is inherited.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
services = EmbeddedServices(policy="policy.yaml", budget_config="budget.yaml", directory="state")
services.__enter__()
print(json.dumps([services.dp_address, services.budget_address]), flush=True)
"""
WAIT = "time.sleep(60)"
SECONDS = 20.0


@pytest.fixture
@needs("process")
def folder(tmp_path: Path) -> Path:
    """Where the program is run, with what the services are configured by."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "budget.yaml").write_text(BUDGET)
    return tmp_path


def _kill(number: int) -> Callable[[subprocess.Popen[bytes], IO[bytes]], None]:
    return lambda program, _: program.send_signal(number)


def _close_terminal(_: subprocess.Popen[bytes], terminal: IO[bytes]) -> None:
    terminal.close()


def _nothing(_: subprocess.Popen[bytes], __: IO[bytes]) -> None:
    """The program ends by itself."""


@pytest.mark.parametrize(
    ("last_line", "end"),
    [
        pytest.param(WAIT, _kill(signal.SIGKILL), id="SIGKILL"),
        pytest.param(WAIT, _kill(signal.SIGTERM), id="SIGTERM", marks=pytest.mark.nightly),
        pytest.param(WAIT, _close_terminal, id="closed terminal", marks=pytest.mark.nightly),
        pytest.param("os._exit(0)", _nothing, id="os._exit", marks=pytest.mark.nightly),
        pytest.param("raise ValueError", _nothing, id="uncaught exception", marks=pytest.mark.nightly),
        pytest.param("", _nothing, id="last line"),
        pytest.param(
            f"if os.fork() == 0: {WAIT}; os._exit(0)\nos._exit(0)", _nothing, id="a fork that lives longer"
        ),
        pytest.param(
            "subprocess.Popen(['sleep', '60'], close_fds=False)\nos._exit(0)",
            _nothing,
            id="a program that lives longer",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_services_end_with_their_program_and_the_next_one_starts_them_again(
    folder: Path, last_line: str, end: Callable[[subprocess.Popen[bytes], IO[bytes]], None]
) -> None:
    """Nobody listens any more, and nothing is in the way of services with the same ledger."""
    with _program(folder, PROGRAM + last_line) as (program, terminal, addresses):
        end(program, terminal)
        _wait_until(lambda: program.poll() is not None)
        _wait_until(lambda: not any(map(_listens, addresses)))
    with EmbeddedServices(
        policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder / "state"
    ) as services:
        services.ensure_running()


def test_a_fork_that_ends_leaves_the_services_running(folder: Path) -> None:
    """Only the program itself stops them, also where the fork ends as a program does."""
    lines = f"if os.fork() == 0: sys.exit()\nos.wait()\nservices.ensure_running()\nprint('running', flush=True)\n{WAIT}"
    with _program(folder, PROGRAM + lines) as (program, _, addresses):
        assert program.stdout is not None
        assert b"running\n" == program.stdout.readline()
        assert all(map(_listens, addresses))


@contextmanager
def _program(folder: Path, text: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], list[str]]]:
    """Run a program in a terminal of its own; gives it, its terminal, and the addresses that it prints."""
    ours, theirs = pty.openpty()
    terminal = os.fdopen(ours, "rb", buffering=0)

    program = subprocess.Popen(
        [sys.executable, "-c", text],
        cwd=folder,
        stdin=theirs,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        assert program.stdout is not None
        yield program, terminal, json.loads(program.stdout.readline())
    finally:
        # With what it has forked.
        _end_group(program.pid)
        program.wait()
        assert program.stdout is not None
        program.stdout.close()
        terminal.close()


def _end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "the services outlive their program"
        time.sleep(0.02)
