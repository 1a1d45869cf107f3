"""The command to type where data have to be converted first, for messages to their owner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote


def conversion(source: str, out: Path, types: Mapping[str, str] | None = None) -> str:
    """Return the command that makes one Parquet file with types."""
    stated = "".join(f" --type {quote(f'{name}={kind}')}" for name, kind in (types or {}).items())
    return f"gris convert --input {quote(source)} --out {quote(str(out))}{stated}"


def conversion_beside(path: Path) -> str:
    """Return the command that makes one Parquet file of a file, folder or pattern, beside it."""
    named = path.parent if "*" in path.name else path
    out = named if named.name else named.resolve()
    return conversion(str(path), out.with_name(f"{out.stem}.parquet"))
