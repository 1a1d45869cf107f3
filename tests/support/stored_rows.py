"""Stores the rows of the conformance tests in files that engines read."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

from pathlib import Path

import duckdb

from tests.support.engine_conformance import Rows

_SCHEMA = "member_id VARCHAR, page VARCHAR, nickname VARCHAR, score INTEGER, regular BOOLEAN, visited DATE"


def write_parquet(path: Path, rows: Rows) -> None:
    """Writes the rows to a Parquet file in one step: a reader sees the old file or the new one."""
    new = path.with_suffix(".new")
    with duckdb.connect() as connection:
        _create(connection, "visits", rows)
        connection.execute(f"COPY visits TO '{new}' (FORMAT parquet)")
    new.replace(path)


def write_database(path: Path, table: str, rows: Rows) -> None:
    """Writes a DuckDB database with one table, in one step."""
    new = path.with_suffix(".new")
    with duckdb.connect(new) as connection:
        _create(connection, table, rows)
    new.replace(path)


def _create(connection: duckdb.DuckDBPyConnection, table: str, rows: Rows) -> None:
    connection.execute(f"CREATE TABLE {table} ({_SCHEMA})")
    connection.executemany(
        f"INSERT INTO {table} VALUES ($member_id, $page, $nickname, $score, $regular, DATE '1970-01-01' + $visited)",
        [dict(row) for row in rows],
    )
