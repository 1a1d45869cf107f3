"""DuckDB in limited memory: what does not fit goes to a directory that is removed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import duckdb

from gris_cli.data.errors import InputError

OWN_MISTAKES = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
"""No input gives these: they are reported as internal errors."""

Work = Callable[[duckdb.DuckDBPyConnection, str, str], None]
"""Runs a statement on a connection; the last argument says what it does, for people."""

_Done = TypeVar("_Done")


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
            raise InputError("expected a size such as 2GB", "memory")
        yield connection


def read_to_the_end(work: Callable[[], _Done], memory: str) -> _Done:
    """Do the work on a file without repeating what DuckDB says of an error: it may quote the file's content.

    Raises:
        InputError: The file cannot be read, or not in that much memory. Other errors pass unchanged.
    """
    try:
        return work()
    except duckdb.OutOfMemoryException:
        failure = InputError(f"{memory} is too little for this input", "memory")
    except OWN_MISTAKES:
        raise
    except duckdb.Error:
        failure = InputError("expected a file that can be read to its end")
    raise failure
