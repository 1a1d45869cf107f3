"""Services of tests start by a fork of a process that has imported them, in a tenth of the time.

A service takes a second of a processor to import what it needs, and a run of all tests starts a thousand of them. So
the workers of a run share a fork server (tests/support/fork_server.py), a process that imports each service once and
waits. A caller of `subprocess.Popen([sys.executable, "-m", "dp_service", ...])` is given a fork of it that goes on as
that command would: with its arguments, environment, folder and open files, as a process of its own that can be killed.
A command that asks for more starts as ever, and so does every one where GRIS_TEST_EXEC is set.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXEC = "GRIS_TEST_EXEC"
# What pytest-xdist calls a run, in each of its workers.
RUN = "PYTEST_XDIST_TESTRUNUID"
# In no folder, so that nothing is left behind; it is free again once its fork server has ended.
ADDRESS = "\0gris fork server {}"
SERVICES = frozenset({"budget_service", "dp_service", "gris_gateway"})
# What an interpreter or a library reads before the first line of a service runs.
_EARLY = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC", "GRPC_", "OTEL_")
_Popen: Any = subprocess.Popen
_one_at_a_time = threading.Lock()
# As it is now: a test may name another program.
_PYTHON = sys.executable


def install() -> None:
    """Start services so from now on, in this process, where the system can tell when another one has ended."""
    if hasattr(os, "pidfd_open"):
        subprocess.Popen = _ServicePopen  # type: ignore[misc]


@cache
def _connection() -> socket.socket:
    """Return a connection to the fork server, which runs until every connection is closed."""
    run = os.environ.get(RUN) or f"{os.getpid()} {secrets.token_hex(8)}"
    address = ADDRESS.format(run)
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            is_first = _takes(listener, address)
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                connection.connect(address)
            except ConnectionRefusedError:
                # Another worker is about to listen, or its fork server to end.
                connection.close()
                time.sleep(0.01)
                continue
            if is_first:
                _start(listener)
            return connection


def _takes(listener: socket.socket, address: str) -> bool:
    try:
        listener.bind(address)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    listener.listen()
    return True


def _start(listener: socket.socket) -> None:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # NumPy's own threads would not be there after a fork.
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    command = [_PYTHON, "-P", "-m", "tests.support.fork_server", str(listener.fileno())]
    process = _Popen(command, pass_fds=[listener.fileno()], env=environment, stdin=subprocess.DEVNULL)
    # Nobody waits for it.
    process.returncode = 0


def _early(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_EARLY)}


def _order(args: Any, environment: Mapping[str, str] | None, cwd: Any) -> dict[str, Any] | None:
    """Return what the fork server is asked for, None if this is no start of a service or asks for more than that."""
    words = [os.fspath(each) for each in args] if isinstance(args, Sequence) else []
    safe = words[1:2] == ["-P"]
    rest = words[2 if safe else 1 :]
    if EXEC in os.environ or words[:1] != [_PYTHON] or rest[:1] != ["-m"] or not {*rest[1:2]} & SERVICES:
        return None
    if environment is not None and _early(environment) != _early(os.environ):
        return None
    return {
        "service": rest[1],
        "words": rest[2:],
        "safe_path": safe,
        "environment": dict(os.environ if environment is None else environment),
        "folder": os.fspath(Path.cwd() if cwd is None else cwd),
    }


class _ServicePopen(_Popen):  # type: ignore[misc]
    """A process of `subprocess`, started by the fork server if it is a service."""

    _status = -1
    """Where the fork server writes how the service has ended."""

    def _execute_child(self, args: Any, *more: Any) -> None:
        (
            executable, preexec, _, pass_fds, cwd, environment, _, _, shell, p2cread, p2cwrite, c2pread, c2pwrite,
            errread, errwrite, _, gid, gids, uid, umask, new_session, group,
        ) = more  # fmt: skip
        unusual = (
            executable or preexec or pass_fds or shell or gid or gids or uid or umask != -1 or group != -1
        )
        # asyncio waits for its own children only.
        unusual = unusual or sys._getframe(2).f_globals.get("__name__", "").startswith("asyncio.")
        order = None if unusual else _order(args, environment, cwd)
        if order is None:
            super()._execute_child(args, *more)
            return
        sys.audit("subprocess.Popen", sys.executable, args, cwd, environment)
        order["new_session"] = bool(new_session)
        files = [own if given == -1 else given for own, given in enumerate((p2cread, c2pwrite, errwrite))]
        self._status, theirs = os.pipe()
        with _one_at_a_time:
            socket.send_fds(_connection(), [json.dumps(order).encode()], [*files, theirs])
            self.pid = int(_connection().recv(32))
        os.close(theirs)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._status == -1:
            return super()._try_wait(wait_flags)  # type: ignore[no-any-return]
        waiting = select.poll()
        waiting.register(self._status, select.POLLIN)
        if not waiting.poll(0 if wait_flags else None):
            return 0, 0
        status = int(os.read(self._status, 32))
        os.close(self._status)
        return self.pid, status

    def _internal_poll(self, _deadstate: int | None = None, *more: Any) -> int | None:
        if self._status == -1:
            return super()._internal_poll(_deadstate, *more)  # type: ignore[no-any-return]
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                pid, status = self._try_wait(os.WNOHANG) if self.returncode is None else (0, 0)
                if pid:
                    self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode  # type: ignore[no-any-return]
