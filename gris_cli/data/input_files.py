"""Files that an owner names."""

from __future__ import annotations

import re
from pathlib import Path

from gris_cli.data.errors import InputError

# `Path` makes one slash of two.
_ADDRESS = re.compile(r"[a-z][a-z0-9+.]+:/")


def require_file(path: Path) -> None:
    """Raise InputError if there is no file of this name."""
    _require_here(path)
    if path.is_dir():
        raise InputError(f"expected a file, and {path} is a directory")
    if not path.is_file():
        raise InputError(f"there is no file {path}")


def _require_here(path: Path) -> None:
    if _ADDRESS.match(str(path)):
        address = str(path).replace(":/", "://", 1)
        raise InputError(
            f"{address} is on another machine: copy it here first, with the command of its store, or have "
            "Spark or Pinot read it"
        )


def require_table_file(path: Path) -> None:
    """Raise InputError if there is no file of this name, or no Parquet file in a folder or pattern of it."""
    # Commands print help without the connector.
    from pinot_connector.engines.parquet_files import files_of, is_many
    from pinot_connector.errors import EngineError

    if not is_many(path):
        require_file(path)
        return
    _require_here(path)
    try:
        files_of(path)
    except EngineError as error:
        raise InputError(f"{path}: {error}") from None
