"""CPU quotas for processes, by Linux control groups: a process gets so much of a core, whatever the machine has.

It needs a controller `cpu` that may be written, of version 1 or 2: root in most containers that are not locked down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_VERSION_1, _VERSION_2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
# Short, so that a process that has used its share waits milliseconds and not a tenth of a second; but the smallest
# quota that Linux takes is a millisecond.
PERIOD_MICROSECONDS = 20_000


class NoQuotasError(Exception):
    """This machine lets nobody set quotas, or not this user."""


@contextmanager
def quota(pid: int, cores: float) -> Iterator[None]:
    """Gives a process at most so much of a core while the block runs; it must have no other process by then.

    Raises:
        NoQuotasError: quotas cannot be set here.
    """
    microseconds = round(cores * PERIOD_MICROSECONDS)
    with ExitStack() as opened:
        try:
            parent = _VERSION_1 if _VERSION_1.is_mount() else _VERSION_2
            group = parent / f"gris-bench-{pid}"
            group.mkdir()
            opened.callback(_removed, group, parent)
            if parent is _VERSION_1:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
                (group / "cpu.cfs_quota_us").write_text(str(microseconds))
            else:
                (group / "cpu.max").write_text(f"{microseconds} {PERIOD_MICROSECONDS}")
            (group / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            raise NoQuotasError(f"cannot set CPU quotas here: {error.strerror}") from None
        yield


def _removed(group: Path, back: Path) -> None:
    for pid in (group / "cgroup.procs").read_text().split():
        # It may have ended meanwhile.
        with suppress(OSError):
            (back / "cgroup.procs").write_text(pid)
    group.rmdir()
