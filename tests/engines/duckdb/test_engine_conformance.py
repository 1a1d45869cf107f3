"""DuckDB keeps the promises of an engine, over Parquet and over a database file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.engine_conformance import OTHER_ROWS, ROWS, EngineConformance, HeldTable
from tests.support.stored_rows import write_database, write_parquet


class OverDuckDB(EngineConformance):
    """One file, replaced by another; to start DuckDB takes longer than most questions, so they share one."""

    file: ClassVar[str]
    write: ClassVar[Callable[..., None]]

    @pytest.fixture(scope="class")
    @classmethod
    def held(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeldTable]:
        """The rows in a file that stays."""
        yield from cls._stored(tmp_path_factory.mktemp("held"))

    @pytest.fixture
    def own(self, tmp_path: Path) -> Iterator[HeldTable]:
        """The rows in a file of one test."""
        yield from self._stored(tmp_path)

    @classmethod
    def _stored(cls, folder: Path) -> Iterator[HeldTable]:
        cls.write(folder / cls.file, rows=ROWS)
        with closing(DuckDBEngine({"visits": folder / cls.file})) as engine:
            yield HeldTable(engine, "visits", partial(cls.write, folder / cls.file, rows=OTHER_ROWS))


class TestDuckDBOverParquet(OverDuckDB):
    """One Parquet file."""

    file, write = "visits.parquet", staticmethod(write_parquet)


class TestDuckDBOverParquetOfPandas(OverDuckDB):
    """One Parquet file with timestamps in nanoseconds, as pandas writes them."""

    file, write = "visits.parquet", staticmethod(partial(write_parquet, timestamp="TIMESTAMP_NS"))


class TestDuckDBOverADatabase(OverDuckDB):
    """One DuckDB database."""

    file, write = "data.duckdb", staticmethod(partial(write_database, table="visits"))
