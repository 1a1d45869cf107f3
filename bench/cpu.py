"""CPU time by process, of one and of all that it started; empty where there is no /proc."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

_PROC = Path("/proc")
_SCHEDULED = 2
_NAMES = {
    "dp_service": "dp_service",
    "budget_service": "budget_service",
    "bench.stub_gateway": "gateway",
    "bench.empty_server": "empty server",
}
_NAMED = re.compile("|".join(_NAMES))
CLIENT = "client"


def cpu_seconds(root: int | None = None) -> dict[str, float]:
    """Return how many seconds of CPU each kind of process has taken so far, user and system together.

    Args:
        root: The process whose children count, and which is the client; None: this one.
    """
    client = os.getpid() if root is None else root
    found = dict(filter(None, map(_process, _PROC.glob("[0-9]*"))))
    seconds: dict[str, float] = {}
    for pid in found:
        if _descends(pid, client, found):
            name = CLIENT if pid == client else _name(pid)
            seconds[name] = seconds.get(name, 0.0) + found[pid][1]
    return seconds


def _process(folder: Path) -> tuple[int, tuple[int, float]] | None:
    """Return a process's number with its parent's and its seconds, or None if it has ended meanwhile."""
    try:
        # The name stands in brackets and may hold anything, brackets too.
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        # In nanoseconds, where /proc counts in hundredths of a second: the clock that clock_getcpuclockid(3) names.
        seconds = time.clock_gettime(~int(folder.name) << 3 | _SCHEDULED)
    except OSError:
        return None
    return int(folder.name), (int(fields[1]), seconds)


def _descends(pid: int, root: int, processes: dict[int, tuple[int, float]]) -> bool:
    while pid in processes and pid != root:
        pid = processes[pid][0]
    return pid == root


def _name(pid: int) -> str:
    try:
        named = _NAMED.search((_PROC / str(pid) / "cmdline").read_text())
    except OSError:
        named = None
    return _NAMES[named[0]] if named else "other"
