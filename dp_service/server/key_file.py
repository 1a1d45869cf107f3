"""Reads the noise keys from their files. They are the only secret input of dp_service."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dp_service.releases.keys import KeySet, NoiseKey
from gris_serving.key_files import KeyFileError, read_key


def read_key_file(path: Path) -> NoiseKey:
    """Read a noise key.

    Raises:
        KeyFileError: As `read_key`.
    """
    return NoiseKey(read_key(path))


def read_key_files(current: Path, previous: Sequence[Path]) -> KeySet:
    """Read the current key and the other live ones.

    Raises:
        KeyFileError: As `read_key`, or if a key is given twice or too many are given.
    """
    keys = [read_key_file(path) for path in (current, *previous)]
    try:
        return KeySet(keys[0], tuple(keys[1:]))
    except ValueError as error:
        raise KeyFileError(f"previous key files: {error}") from error
