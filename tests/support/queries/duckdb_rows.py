"""Rows in a table of DuckDB, for tests that store some hundred times."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb


def store(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[object]]) -> None:
    """Give a table these rows in place of those that it has.

    One statement stores them all; one for each row takes most of what a test takes.
    """
    connection.execute(f"DELETE FROM {table}")  # noqa: S608 - the test's own
    if rows:
        columns = [list(each) for each in zip(*rows, strict=True)]
        values = ", ".join("unnest(?)" for _ in columns)
        connection.execute(f"INSERT INTO {table} SELECT {values}", columns)
