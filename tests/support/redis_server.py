"""A private redis-server for tests, on a free port."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.programs import found

DURABLE = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
START_SECONDS = 10
CLUSTER_NODES = 3


@dataclass
class RedisServer:
    """A process that can be killed, frozen and started again on its files."""

    folder: Path
    port: int
    options: tuple[str, ...] = DURABLE
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def address(self) -> str:
        """The address of its store."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        self.process = subprocess.Popen([*command, *self.options], stdout=subprocess.DEVNULL)
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            assert time.monotonic() < end, "redis-server did not start"
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill it as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it accept bytes and answer nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def skip_without_redis() -> None:
    """Skip the test where there is no Redis to run; a test whose own processes run one has to ask before."""
    if found("redis-server") is None:
        pytest.skip("redis-server is missing: deploy/test-servers")


@contextmanager
def redis_server(folder: Path, options: tuple[str, ...] = DURABLE) -> Iterator[RedisServer]:
    """Run a private server, or skip the test where there is none to run."""
    skip_without_redis()
    server = RedisServer(folder, free_port(), options)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def redis_cluster(folder: Path) -> Iterator[list[RedisServer]]:
    """Run three servers that share the keys of one Redis Cluster."""
    with ExitStack() as stack:
        nodes = []
        for number in range(CLUSTER_NODES):
            home = folder / str(number)
            home.mkdir()
            options = (*DURABLE, "--cluster-enabled", "yes", "--cluster-port", str(free_port()))
            nodes.append(stack.enter_context(redis_server(home, options)))
        places = [f"127.0.0.1:{node.port}" for node in nodes]
        command = ["redis-cli", "--cluster", "create", *places, "--cluster-yes"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
        yield nodes
