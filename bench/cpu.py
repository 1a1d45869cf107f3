"""CPU time by process, of this one and of all that it started; empty where there is no /proc."""

from __future__ import annotations

import os
import re
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_NAMES = {
    "StartZookeeper": "zookeeper",
    "StartController": "controller",
    "StartBroker": "broker",
    "StartServer": "servers",
    "dp_service": "dp_service",
    "budget_service": "budget_service",
    "bench.at_once": "gateway",
    "bench.empty_server": "empty server",
}
_NAMED = re.compile("|".join(_NAMES))
CLIENT = "client"


def cpu_seconds() -> dict[str, float]:
    """Return how many seconds of CPU each kind of process has taken so far, user and system together."""
    found = dict(filter(None, map(_process, _PROC.glob("[0-9]*"))))
    seconds: dict[str, float] = {}
    for pid in found:
        if _is_ours(pid, found):
            name = CLIENT if pid == os.getpid() else _name(pid)
            seconds[name] = seconds.get(name, 0.0) + found[pid][1]
    return seconds


def _process(folder: Path) -> tuple[int, tuple[int, float]] | None:
    """Return a process's number with its parent's and its seconds, or None if it has ended meanwhile."""
    try:
        # The name stands in brackets and may hold anything, brackets too.
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(folder.name), (int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND)


def _is_ours(pid: int, processes: dict[int, tuple[int, float]]) -> bool:
    while pid in processes and pid != os.getpid():
        pid = processes[pid][0]
    return pid == os.getpid()


def _name(pid: int) -> str:
    try:
        named = _NAMED.search((_PROC / str(pid) / "cmdline").read_text())
    except OSError:
        named = None
    return _NAMES[named[0]] if named else "other"
