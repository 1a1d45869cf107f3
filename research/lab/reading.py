"""A file of the owner's, read by DuckDB as questions see it: true rows, for them alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb

from gris_cli.data.errors import InputError
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import EngineError

TABLE = "data"
"""What the file's table is called on the connection."""


@contextmanager
def reading(path: Path, columns: dict[str, str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection on which `TABLE` has the rows and columns that questions see.

    Args:
        path: The file, folder or pattern.
        columns: The columns that it must have, each with the name of the argument that asks for it.

    Raises:
        InputError: It cannot be read to its end, or has no such column.
    """
    try:
        with closing(DuckDBEngine({TABLE: path})) as engine, engine.reading(TABLE) as connection:
            has = connection.table(TABLE).columns
            for name, argument in columns.items():
                if name.casefold() not in map(str.casefold, has):
                    raise InputError(f"there is no column {name}; there are {', '.join(has)}", argument)
            yield connection
            return
    except EngineError as error:
        problem = str(error)
    except duckdb.Error:
        # What DuckDB says may quote the data.
        problem = f"{path} cannot be read to its end"
    raise InputError(problem, "data")
