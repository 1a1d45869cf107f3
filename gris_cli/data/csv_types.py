"""Which type each column of a CSV file could have, for the draft of a policy: the owner decides."""

from __future__ import annotations

from pathlib import Path

import duckdb

from gris_cli.data.errors import InputError
from pinot_connector.engines.csv_files import csv_rows, text_as
from pinot_connector.engines.file_versions import unreadable
from pinot_connector.engines.parquet import quoted
from pinot_connector.errors import EngineError

_TEXT = "VARCHAR"
_LIKELY = ("BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "BOOLEAN")


def csv_types(path: Path) -> dict[str, str]:
    """Return the type that all values of each column have, by DuckDB's name.

    A number that begins with 0 is a code, and of words `true` and `false` alone are truth values.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE rows AS FROM {csv_rows(path)}")
            return {name: _type(connection, name) for name in connection.table("rows").columns}
    except EngineError as error:
        problem = str(error)
    except duckdb.Error:
        problem = str(unreadable(path))
    raise InputError(f"{path}: {problem}")


def _type(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    text = quoted(name)
    fits = ", ".join(f"count({text_as(name, kind)}) = count({text})" for kind in _LIKELY)
    is_code = f"coalesce(bool_or(regexp_matches({text}, '(?i)^(0[0-9]|t$|f$|yes$|no$)')), false)"
    found = connection.execute(f"SELECT count({text}) > 0 AND NOT {is_code}, {fits} FROM rows").fetchone()  # noqa: S608
    is_typed, *are_fit = found or (False,)
    return next((kind for kind, is_fit in zip(_LIKELY, are_fit, strict=False) if is_typed and is_fit), _TEXT)
