"""Files that are complete, or not there at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gris_cli.data.private_files import flush


@contextmanager
def complete_or_nothing(out: Path, most_mode: int = 0o666) -> Iterator[Path]:
    """Give the path of a file that takes the place of `out` if the block ends well, and is removed if not.

    Args:
        out: The file.
        most_mode: Who may read it at most, as a mode; the umask may take from that.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
    os.close(descriptor)
    unfinished = Path(name)
    try:
        yield unfinished
        with unfinished.open("rb") as stream:
            os.fsync(stream.fileno())
        unfinished.chmod(most_mode & ~_umask())
        unfinished.replace(out)
        flush(out.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def stamp(path: Path) -> tuple[int, ...] | None:
    """Return what changes whenever a file does; None: there is none."""
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
