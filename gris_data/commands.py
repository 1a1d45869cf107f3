"""The command to type where data have to be converted first, for messages to their owner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote

_PARQUET = ".parquet"


def conversion(source: str, out: Path, types: Mapping[str, str] | None = None) -> str:
    """Return the command that makes one Parquet file with types."""
    stated = "".join(f" --type {quote(f'{name}={kind}')}" for name, kind in (types or {}).items())
    return f"gris convert --input {quote(source)} --out {quote(str(out))}{stated}"


def conversion_beside(path: Path) -> str:
    """Return the command that makes a Parquet file of another one, beside it."""
    return conversion(str(path), path.with_suffix(_PARQUET))


def conversion_with_types(location: str, types: Mapping[str, str]) -> str:
    """Return the command that gives columns of a table's Parquet files other types.

    Args:
        location: Where the table is; anything but Parquet files stands for a file that is to be named.
        types: The types.
    """
    # Commands print help without the connector.
    from pinot_connector.engines.parquet_files import is_parquet, table_path  # noqa: PLC0415

    is_known = bool(location) and is_parquet(Path(location))
    source = location if is_known else f"FILE{_PARQUET}"
    typed = table_path(Path(source))
    return conversion(source, typed.with_name(f"{typed.stem}-typed{_PARQUET}"), types)
