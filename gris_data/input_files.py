"""Files that an owner names."""

from __future__ import annotations

from pathlib import Path

from gris_data.errors import InputError


def require_file(path: Path) -> None:
    """Raise InputError if there is no file of this name."""
    if path.is_dir():
        raise InputError(f"expected a file, and {path} is a directory")
    if not path.is_file():
        raise InputError(f"there is no file {path}")
