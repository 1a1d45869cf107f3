"""Two replicas of each service as processes that are ended and started again at the same address."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.ports import free_port
from tests.support.redis_server import redis_server
from tests.support.world import POLICY, write_small

# Two roots, for each counts in one currency.
LIMITS = """
accounts:
  - {path: [asking], limit: {information: 1000000000000, calls: 1000000000000}}
  - {path: [calling], limit: {information: 1000000000000, calls: 1000000000000}}
  - {path: [asking, "*"], limit: {information: 1000000000, calls: 1000000000}}
  - {path: [calling, "*"], limit: {information: 1000000000, calls: 1000000000}}
"""
END_SECONDS = 60


@dataclass
class Replica:
    """One process of a service."""

    command: list[str]
    address: str
    log: Path
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        with self.log.open("a") as log:
            command = [sys.executable, *self.command, "--listen", self.address]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline())["address"] == self.address

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to end and wait until it has; returns its exit code."""
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.send_signal(how)
        code = self.process.wait(END_SECONDS)
        self.process.stdout.close()
        self.process = None
        return code

    async def restart(self) -> int:
        """End it as a rolling restart does, and start the next one; returns the first one's exit code."""
        code = await asyncio.to_thread(self.end)
        await asyncio.to_thread(self.start)
        return code


@dataclass(frozen=True)
class Replicas:
    """Two of each service, on one Redis and one table."""

    dp: tuple[Replica, ...]
    budget: tuple[Replica, ...]
    table: Path

    @property
    def all(self) -> tuple[Replica, ...]:
        """Every process, in the order of a restart."""
        return (*self.dp, *self.budget)


def target(replicas: tuple[Replica, ...]) -> str:
    """Return the address of them together."""
    return f"ipv4:{','.join(each.address for each in replicas)}"


@contextmanager
def running_replicas(folder: Path, drain_seconds: float) -> Iterator[Replicas]:
    """Run Redis and two replicas of each service."""
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "budget.yaml").write_text(LIMITS)
    key = folder / "noise.key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o400)
    write_small(folder / "small.parquet", 1000)
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server(folder))
        drain = ["--drain-seconds", str(drain_seconds)]
        dp = ["-m", "dp_service", "--policy", f"{folder}/policy.yaml", "--key-file", str(key), *drain]
        budget = [
            "-m",
            "budget_service",
            "--config",
            f"{folder}/budget.yaml",
            "--store",
            redis.address,
            *drain,
        ]
        replicas = Replicas(_two(dp, folder), _two(budget, folder), folder / "small.parquet")
        for each in replicas.all:
            each.start()
            stack.callback(_kill, each)
        yield replicas


def _two(command: list[str], folder: Path) -> tuple[Replica, ...]:
    return tuple(Replica(command, f"127.0.0.1:{free_port()}", folder / "log") for _ in range(2))


def _kill(replica: Replica) -> None:
    if replica.process is not None:
        replica.end(signal.SIGKILL)
