"""Files that an owner names."""

from __future__ import annotations

import re
from pathlib import Path

from gris_data.commands import conversion_beside
from gris_data.errors import InputError

# `Path` makes one slash of two.
_ADDRESS = re.compile(r"[a-z][a-z0-9+.]+:/")


def require_file(path: Path) -> None:
    """Raise InputError if there is no file of this name."""
    if _ADDRESS.match(str(path)):
        address = str(path).replace(":/", "://", 1)
        raise InputError(
            f"{address} is on another machine: copy it here first, with the command of its store, or have "
            "Spark or Pinot read it"
        )
    if path.is_dir():
        raise InputError(f"expected a file, and {path} is a directory")
    if not path.is_file():
        raise InputError(f"there is no file {path}")


def require_table_file(path: Path) -> None:
    """Raise InputError if there is no file of this name, and say how a folder or pattern becomes one."""
    if path.is_dir() or "*" in path.name:
        raise InputError(
            f"{path}: a table is one file; `{conversion_beside(path)}` makes one of all Parquet files there"
        )
    require_file(path)
