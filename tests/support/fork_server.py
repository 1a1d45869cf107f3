"""`python -m tests.support.fork_server FD`: imports services and forks itself into one for each order.

It has no thread, and nothing of a service has run in it but its imports. See tests/support/forked_services.py.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

_TELEMETRY = (
    "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
    "opentelemetry.sdk.trace.export",
    "opentelemetry.trace.propagation.tracecontext",
)
# The rest are what each imports at its start if its configuration asks for it, which takes longer than all else.
MODULES = {
    "budget_service": (
        "budget_service.server.process",
        "budget_service.server.metrics",
        "budget_service.server.region_metrics",
        "budget_service.stores.postgres.store",
        "budget_service.stores.redis.store",
        *_TELEMETRY,
    ),
    "dp_service": ("dp_service.server.process", *_TELEMETRY),
    "gris_gateway": (
        "gris_gateway.process",
        "gris_gateway.http_faces",
        "gris_gateway.metrics",
        "pinot_connector.engines.duckdb",
        "pinot_connector.engines.pinot",
        "pinot_connector.release_store.postgres",
        "pinot_connector.release_store.sqlite",
        *_TELEMETRY,
    ),
}
LONGEST_ORDER = 2**20
# Of the process at the other end of a connection: its number, and those of its user and group.
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True)
class _Running:
    """A service: who has asked for it, and where it is said how it has ended."""

    pid: int
    connection: int
    status: int


class _ForkServer:
    """Takes orders over connections, of which each worker of pytest opens one."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._connections: dict[int, socket.socket] = {}
        self._running: dict[int, _Running] = {}
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)

    def wait_for_order(self) -> dict[str, Any] | None:
        """Fork at each order, and return it in the child; None in the fork server, when every connection was closed."""
        # Who starts it has opened a connection before.
        while ready := self._poll.poll(None if self._connections else 0):
            for descriptor, _ in ready:
                if descriptor == self._listener.fileno():
                    self._accept()
                elif descriptor in self._running:
                    self._poll.unregister(descriptor)
                    _say_how_it_ended(descriptor, self._running.pop(descriptor))
                elif (order := self._serve(self._connections[descriptor])) is not None:
                    return order
        return None

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        # Any user of the machine can connect to an abstract socket, and an order runs with the rights of this one.
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, user, _ = _CREDENTIALS.unpack(credentials)
        if user != os.getuid():
            connection.close()
            return
        self._connections[connection.fileno()] = connection
        self._poll.register(connection, select.POLLIN)

    def _serve(self, connection: socket.socket) -> dict[str, Any] | None:
        message, files, _, _ = socket.recv_fds(connection, LONGEST_ORDER, 4)
        if not message:
            self._forget(connection)
            return None
        order: dict[str, Any] = json.loads(message)
        _import(order["service"])
        pid = os.fork()
        if pid == 0:
            self._close()
            _become(order, files)
            return order
        for each in files[:3]:
            os.close(each)
        ended = os.pidfd_open(pid)
        self._running[ended] = _Running(pid, connection.fileno(), files[3])
        self._poll.register(ended, select.POLLIN)
        connection.send(str(pid).encode())
        return None

    def _forget(self, connection: socket.socket) -> None:
        """Kill what was asked for over a connection that is closed: nobody is left who could stop it."""
        for ended, each in self._running.items():
            if each.connection == connection.fileno():
                signal.pidfd_send_signal(ended, signal.SIGKILL)
        self._poll.unregister(connection)
        del self._connections[connection.fileno()]
        connection.close()

    def _close(self) -> None:
        """Close, in a fork, what is the fork server's own."""
        self._listener.close()
        for connection in self._connections.values():
            connection.close()
        for ended, each in self._running.items():
            os.close(ended)
            os.close(each.status)


def _import(service: str) -> None:
    """Import a service, the first time that it is asked for."""
    if MODULES[service][0] in sys.modules:
        return
    for module in MODULES[service]:
        importlib.import_module(module)
    # No fork looks through what all of them share.
    gc.collect()
    gc.freeze()


def _say_how_it_ended(descriptor: int, ended: _Running) -> None:
    _, how = os.waitpid(ended.pid, 0)
    # The process that had it started may no longer read from the pipe.
    with suppress(BrokenPipeError):
        os.write(ended.status, str(how).encode())
    os.close(ended.status)
    os.close(descriptor)


def _become(order: dict[str, Any], files: list[int]) -> None:
    """Turn this fork into what the command would have started."""
    for own, given in enumerate(files[:3]):
        os.dup2(given, own)
    for each in files:
        os.close(each)
    if order["new_session"]:
        os.setsid()
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    if not order["safe_path"]:
        sys.path.insert(0, str(Path.cwd()))
    sys.argv = [order["service"], *order["words"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _run(service: str) -> NoReturn:
    """Run a service as its command would, and end as that does, but for one thing.

    An interpreter that ends clears away one by one all the modules that the fork has only borrowed. That would take
    longer than the service's whole start and stop. Threads are waited for and what is due at the end is done.
    """
    status: object = 0
    try:
        runpy.run_module(service, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code or 0
    if not isinstance(status, int):
        sys.exit(str(status))
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    # Ctrl-C is for those who wait for it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = _ForkServer(socket.socket(fileno=int(sys.argv[1]))).wait_for_order()
    if order is not None:
        _run(order["service"])
