"""Servers as processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.support.world import BUDGET, POLICY


class StoreProcess(Protocol):
    """A database process that can be killed, frozen and started again on its files."""

    @property
    def address(self) -> str:
        """The address of its store."""

    def start(self) -> None:
        """Start it and wait until it answers."""

    def kill(self) -> None:
        """Kill it as a crash would."""

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it accept bytes and answer nothing."""
        yield


@contextmanager
def process(module: str, words: Sequence[object], log: Path) -> Iterator[dict[str, str]]:
    """Run a server until the block is left and give what it says when it is ready, and its `pid`.

    Its stderr goes to `log`.
    """
    command = [sys.executable, "-P", "-m", module, *map(str, words)]
    with (
        log.open("ab") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as running,
    ):
        assert running.stdout is not None
        try:
            line = running.stdout.readline()
            assert line, log.read_text()
            yield {**json.loads(line), "pid": str(running.pid)}
        finally:
            running.terminate()
            running.wait(timeout=30)


def dp_command(folder: Path) -> list[object]:
    """Write what dp_service needs; return its command line."""
    (folder / "policy.yaml").write_text(POLICY)
    key = folder / "noise.key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o400)
    return ["--policy", folder / "policy.yaml", "--key-file", key, "--listen", "127.0.0.1:0"]


def budget_command(folder: Path) -> list[object]:
    """Write what budget_service needs; return its command line."""
    (folder / "budget.yaml").write_text(BUDGET)
    store = f"sqlite:{folder / 'ledger.db'}"
    return ["--config", folder / "budget.yaml", "--store", store, "--listen", "127.0.0.1:0"]
