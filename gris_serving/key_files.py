"""Reads keys from their files. No message shows what a file holds."""

from __future__ import annotations

import stat
from pathlib import Path

KEY_BYTES = 32


class KeyFileError(Exception):
    """A key file that cannot be used."""


def read_key(path: Path) -> bytes:
    """Read 32 bytes, raw or as 64 hexadecimal characters.

    Raises:
        KeyFileError: The file is missing, has another length, can be read by others than owner and group, or can be
            written by the group.
    """
    try:
        mode = path.stat().st_mode
        content = path.read_bytes()
    except OSError as error:
        raise KeyFileError(f"key file {path}: {error.strerror}") from None
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise KeyFileError(
            f"key file {path}: others may read it or the group may write it; use mode 0400 or 0440"
        )
    return _secret(path, content)


def _secret(path: Path, content: bytes) -> bytes:
    if len(content) == KEY_BYTES:
        return content
    try:
        secret = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise KeyFileError(
            f"key file {path}: expected {KEY_BYTES} bytes, or {2 * KEY_BYTES} hexadecimal characters"
        )
    return secret
