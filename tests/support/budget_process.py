"""A budget_service as a process, and its health."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

CONFIGURATION = """
accounts:
  - path: [acme]
    limit: {information: 2000000000000, calls: 2000000000000}
  - path: [acme, "*"]
    limit: {information: 1000000, calls: 1000000}
"""
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@dataclass
class Service:
    """A running service."""

    process: subprocess.Popen[str]
    address: str
    admin_address: str | None

    def end(self, how: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(how)
        return self.process.wait(timeout=20)


def command(folder: Path, store: str | None, *more: str, configuration: str = CONFIGURATION) -> list[str]:
    """Return the command line of a service."""
    config = folder / "budget.yaml"
    config.write_text(configuration)
    command = [sys.executable, "-m", "budget_service", "--config", str(config)]
    return [
        *command,
        *(() if store is None else ("--store", store)),
        *(() if "--listen" in more else ("--listen", "127.0.0.1:0")),
        *more,
    ]


@contextmanager
def service(
    folder: Path, store: str | None, *more: str, configuration: str = CONFIGURATION
) -> Iterator[Service]:
    """Run a service and wait until it says that it is ready."""
    with starting(folder, store, *more, configuration=configuration) as process:
        ready = said_ready(process)
        assert ready["service"] == "budget_service"
        yield Service(process, ready["address"], ready.get("admin_address"))


@contextmanager
def starting(
    folder: Path, store: str | None, *more: str, configuration: str = CONFIGURATION
) -> Iterator[subprocess.Popen[str]]:
    """Run a service that may not be ready for a while; its log is in the folder."""
    arguments = command(folder, store, *more, configuration=configuration)
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def said_ready(process: subprocess.Popen[str]) -> dict[str, str]:
    """Wait for the line in which a service says that it is ready, and return what it says."""
    assert process.stdout is not None
    ready: dict[str, str] = json.loads(process.stdout.readline())
    return ready


def refused(
    folder: Path, store: str | None, *more: str, configuration: str = CONFIGURATION
) -> tuple[int, str]:
    """Run a service that must not start; return its exit code and what it says."""
    arguments = command(folder, store, *more, configuration=configuration)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


async def health(address: str, name: str = "") -> int:
    """Ask the standard health service."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
        return int(answer.status)


async def listens(address: str) -> None:
    """Wait until somebody listens on an address."""
    async with grpc.aio.insecure_channel(address) as channel, asyncio.timeout(20):
        await channel.channel_ready()


async def health_becomes(address: str, wanted: int, name: str = "") -> None:
    """Wait until the health is as wanted."""
    end = time.monotonic() + 10
    while await health(address, name) != wanted:
        assert time.monotonic() < end, "the health did not change"
        await asyncio.sleep(0.1)
