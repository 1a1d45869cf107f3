"""Stores the rows of the conformance tests in files that engines read."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import duckdb

from tests.support.engine_conformance import Rows

_Frozen: TypeAlias = tuple[tuple[tuple[str, Any], ...], ...]

_SCHEMA = (
    "member_id VARCHAR, page VARCHAR, nickname VARCHAR, score INTEGER, regular BOOLEAN, visited DATE, "
    "seen {timestamp}, seen_s INTEGER, seen_ms BIGINT, seen_us BIGINT"
)


def write_parquet(path: Path, rows: Rows, timestamp: str = "TIMESTAMP") -> None:
    """Writes the rows to a Parquet file in one step: a reader sees the old file or the new one.

    `timestamp` is the type of the timestamps, in the words of DuckDB.
    """
    _replace(path, _parquet(_frozen(rows), timestamp))


def write_database(path: Path, table: str, rows: Rows, timestamp: str = "TIMESTAMP WITH TIME ZONE") -> None:
    """Writes a DuckDB database with one table, in one step."""
    _replace(path, _database(table, _frozen(rows), timestamp))


def _replace(path: Path, file: bytes) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(file)
    new.replace(path)


def _frozen(rows: Rows) -> _Frozen:
    return tuple(tuple(row.items()) for row in rows)


# Nearly every test of an engine begins with the same rows.
@cache
def _parquet(rows: _Frozen, timestamp: str) -> bytes:
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "rows.parquet"
        _create(connection, "visits", rows, timestamp)
        connection.execute(f"COPY visits TO '{path}' (FORMAT parquet)")
        return path.read_bytes()


@cache
def _database(table: str, rows: _Frozen, timestamp: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.duckdb"
        with duckdb.connect(path) as connection:
            _create(connection, table, rows, timestamp)
        return path.read_bytes()


def _create(connection: duckdb.DuckDBPyConnection, table: str, rows: _Frozen, timestamp: str) -> None:
    # Somewhere else than the engines' own zone, so that a zone that takes part shows.
    connection.execute("SET TimeZone = 'America/New_York'")
    connection.execute(f"CREATE TABLE {table} ({_SCHEMA.format(timestamp=timestamp)})")
    instant = "make_timestamp_ns($seen * 1000)" if timestamp == "TIMESTAMP_NS" else "make_timestamp($seen)"
    if timestamp == "TIMESTAMP WITH TIME ZONE":
        instant = f"{instant} AT TIME ZONE 'UTC'"
    connection.executemany(
        f"INSERT INTO {table} VALUES ($member_id, $page, $nickname, $score, $regular, DATE '1970-01-01' + $visited, "
        f"{instant}, $seen_s, $seen_ms, $seen_us)",
        [dict(row) for row in rows],
    )
