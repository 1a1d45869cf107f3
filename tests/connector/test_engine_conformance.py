"""DuckDB keeps the promises of an engine, over Parquet and over a database file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.engine_conformance import OTHER_ROWS, ROWS, EngineConformance, HeldTable
from tests.support.stored_rows import write_database, write_parquet


class TestDuckDBOverParquet(EngineConformance):
    """One Parquet file, replaced by another."""

    @pytest.fixture
    def held(self, tmp_path: Path) -> Iterator[HeldTable]:
        """The rows in a Parquet file."""
        path = tmp_path / "visits.parquet"
        write_parquet(path, ROWS)
        with closing(DuckDBEngine({"visits": path})) as engine:
            yield HeldTable(engine, "visits", lambda: write_parquet(path, OTHER_ROWS))


class TestDuckDBOverParquetOfPandas(EngineConformance):
    """One Parquet file with timestamps in nanoseconds, as pandas writes them."""

    @pytest.fixture
    def held(self, tmp_path: Path) -> Iterator[HeldTable]:
        """The rows in a Parquet file."""
        path = tmp_path / "visits.parquet"
        write_parquet(path, ROWS, "TIMESTAMP_NS")
        with closing(DuckDBEngine({"visits": path})) as engine:
            yield HeldTable(engine, "visits", lambda: write_parquet(path, OTHER_ROWS, "TIMESTAMP_NS"))


class TestDuckDBOverADatabase(EngineConformance):
    """One DuckDB database, replaced by another."""

    @pytest.fixture
    def held(self, tmp_path: Path) -> Iterator[HeldTable]:
        """The rows in a table of a database file."""
        path = tmp_path / "data.duckdb"
        write_database(path, "visits", ROWS)
        with closing(DuckDBEngine({"visits": path})) as engine:
            yield HeldTable(engine, "visits", lambda: write_database(path, "visits", OTHER_ROWS))
