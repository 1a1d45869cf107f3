"""The file of a high-water mark: how it is replaced, and what to do about a ledger that is behind it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

WHAT_TO_DO = (
    "if it is a backup that was restored, start once with --confirm-restored: every budget that is open counts as "
    "spent until its window ends, because nobody knows what was charged since the backup"
)


def fresh_path(path: Path) -> Path:
    """Return this process's own path for a file's replacement: workers and replicas share a mark.

    In containers, all replicas have the same process id.
    """
    return path.with_name(f"{path.name}.{socket.gethostname()}.{os.getpid()}.new")


def write_whole(path: Path, text: str) -> None:
    """Replace a file on the disk atomically, also when other processes do the same. Raises OSError."""
    fresh = fresh_path(path)
    descriptor = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, text.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    fresh.replace(path)
