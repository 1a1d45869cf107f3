"""An engine that remembers what it was asked."""

from __future__ import annotations

from pathlib import Path

from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine


class Watched(DuckDBEngine):
    """DuckDB that counts what it is asked."""

    def __init__(self, tables: dict[str, Path | str]) -> None:
        super().__init__(tables)
        self.asked: list[str] = []

    def data_version(self, table: str) -> str:
        """Counts, and answers."""
        self.asked.append("version")
        return super().data_version(table)

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Counts, and answers."""
        self.asked.append("run")
        return super().run(query, data_version)
