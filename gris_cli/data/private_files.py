"""Files that only their owner may read, which are written whole or not at all, and never over another one."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gris_cli.data.errors import InputError

PRIVATE = 0o600
PRIVATE_DIRECTORY = 0o700


def private_directory(path: Path) -> bool:
    """Make a directory that only its owner may enter, or check one that is there; return whether it was made.

    Raises:
        InputError: It is no directory, somebody else's, or others may write there and so replace its keys.
    """
    is_new = True
    try:
        path.mkdir(mode=PRIVATE_DIRECTORY, parents=True)
    except FileExistsError:
        is_new = False
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    found = path.stat() if path.exists() else None
    if found is None or not stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path} is there and no directory")
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InputError(
            f"{path}: others may write there, and replace keys; chmod go-w {path}, if it is yours"
        )
    return is_new


def write_new(path: Path, content: str | bytes) -> bool:
    """Write a file that is not there, with mode 0600; return whether it was not there.

    Raises:
        InputError: It cannot be written.
    """
    with _temporary(path, content) as written:
        try:
            # A link replaces nothing, not even a link that leads nowhere.
            os.link(written, path, follow_symlinks=False)
        except FileExistsError:
            return False
    return True


def replace(path: Path, content: str | bytes) -> None:
    """Write a file, also in place of one that is there; what it was a link to stays as it is.

    Raises:
        InputError: It cannot be written.
    """
    with _temporary(path, content) as written:
        written.replace(path)


def require_private(path: Path) -> None:
    """Check a file with a secret that is there.

    Raises:
        InputError: It is a link, somebody else's, or others may read or write it.
    """
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise InputError(f"{path}: expected a file of your own, and no link")
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            f"{path}: others may have read it; remove it, and it is made anew, or chmod 600 it if nobody has"
        )


def flush(path: Path) -> None:
    """Write a file, or what names are in a folder, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _temporary(path: Path, content: str | bytes) -> Iterator[Path]:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content.encode() if isinstance(content, str) else content)
            yield beside
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
