"""DuckDB in limited memory: what does not fit goes to a directory that is removed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from gris_data.errors import InputError

OWN_MISTAKES = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
"""No input gives these: they are reported as internal errors."""


@contextmanager
def spilling(folder: Path, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection that uses so much memory, and a directory in `folder` for the rest, which is removed.

    Raises:
        InputError: `memory` is no size.
        OSError: Nothing can be written in `folder`.
    """
    with (
        tempfile.TemporaryDirectory(prefix=".gris-bound-", dir=folder) as spill,
        duckdb.connect() as connection,
    ):
        connection.execute("SET temp_directory = ?", [spill])
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET TimeZone = 'UTC'")
        # It knows its progress then, and does not draw it among the results.
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")
        try:
            connection.execute("SET memory_limit = ?", [memory])
        except duckdb.Error:
            memory = ""
        if not memory:
            raise InputError("--memory: expected a size such as 2GB")
        yield connection
