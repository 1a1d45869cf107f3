"""Reads the noise keys from their files. They are the only secret input of dp_service."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from dp_service.releases.keys import KEY_BYTES, KeySet, NoiseKey


class KeyFileError(Exception):
    """A key file that cannot be used; the message never shows its content."""


def read_key_file(path: Path) -> NoiseKey:
    """Read 32 bytes, raw or as 64 hexadecimal characters.

    Raises:
        KeyFileError: The file is missing, has another length, can be read by others than owner and group, or can be
            written by the group.
    """
    try:
        mode = path.stat().st_mode
        content = path.read_bytes()
    except OSError as error:
        raise KeyFileError(f"key file {path}: {error.strerror}") from error
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise KeyFileError(
            f"key file {path}: others may read it or the group may write it; use mode 0400 or 0440"
        )
    return NoiseKey(_secret(path, content))


def read_key_files(current: Path, previous: Sequence[Path]) -> KeySet:
    """Read the current key and the other live ones.

    Raises:
        KeyFileError: As `read_key_file`, or if a key is given twice or too many are given.
    """
    keys = [read_key_file(path) for path in (current, *previous)]
    try:
        return KeySet(keys[0], tuple(keys[1:]))
    except ValueError as error:
        raise KeyFileError(f"previous key files: {error}") from error


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
