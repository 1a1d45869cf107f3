"""Pairs copies, made by DuckDB in limited memory: each period is a file of its own."""

# ruff: noqa: S608  (names and texts are quoted)
from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from dp_service.queries.pairs_manifest import CopiedPeriod, PairsManifest
from gris_data.bound.pairs_copies import ADDED, append, order_of_rows, period_rows
from gris_data.bound.pairs_folder import PairsMade, copied, day_of, file_of
from gris_data.bound.pairs_rows import PeriodContent
from gris_data.bound.pairs_source import GIVEN, PRESENT, PairsCopyRequest, require_unbounded, since_day
from gris_data.bound.source import Columns, open_rows, without_breakable
from gris_data.bound.spilling import DuckDBTables, Work, read_to_the_end, spilling
from gris_data.bound.whole_files import complete_or_nothing, stamp
from gris_data.dialects import DUCKDB
from gris_data.errors import InputError
from gris_data.input_files import require_file
from pinot_connector.engines.parquet import literal


def pairs_copy(source: Path, folder: Path, asked: PairsCopyRequest, *, work: Work) -> PairsMade:
    """Make the pairs copy of a file, or append to it what has closed since; see `append`."""
    folder.mkdir(parents=True, exist_ok=True)
    with spilling(folder, asked.memory) as connection:
        engine = _DuckDBPairs(connection, work, source=source, folder=folder, begun=stamp(source))
        return read_to_the_end(lambda: append(engine, folder, asked), asked.memory)


@dataclass(frozen=True, kw_only=True)
class _DuckDBPairs(DuckDBTables):
    """See `PairsEngine`."""

    source: Path
    folder: Path
    begun: tuple[int, ...] | None

    def open(self, columns: Columns, since: datetime.date | None) -> dict[str, str]:
        """See `PairsEngine.open`."""
        require_file(self.source)
        if self.source.suffix.lower() != ".parquet":
            raise InputError("expected a Parquet file: the days of a CSV file are texts")

        def which(types: dict[str, str]) -> str:
            return since_day(DUCKDB, types, f"rows.{DUCKDB.quoted(columns.period)}", columns, since)

        types = open_rows(self.connection, self.source, columns, which)
        require_unbounded(self.source)
        read = (
            f"read_parquet({_listed([str(self.source)])}, hive_partitioning = false, file_row_number = true)"
        )
        rows = f"SELECT rows.* {without_breakable(types)} FROM {read} AS rows WHERE {which(types)}"
        self.connection.execute(f"CREATE TEMP VIEW {GIVEN} AS {rows}")
        return types

    def show_present(self, files: Sequence[str], columns: Sequence[str]) -> None:
        """See `PairsEngine.show_present`."""
        rows = (
            f"SELECT {DUCKDB.listed(columns)} FROM read_parquet({_listed(files)}, hive_partitioning = false)"
        )
        self.connection.execute(f"CREATE TEMP VIEW {PRESENT} AS {rows}")

    def add(self, query: str) -> None:
        """See `PairsEngine.add`."""
        if stamp(self.source) != self.begun:
            raise InputError("the input changed while it was read")
        self.table(ADDED, query, "finding earlier periods")

    def write(self, manifest: PairsManifest, content: PeriodContent) -> CopiedPeriod:
        """See `PairsEngine.write`."""
        start = day_of(content.period)
        rows = f"{period_rows(DUCKDB, manifest, content)} ORDER BY {order_of_rows(DUCKDB, manifest)}"
        with complete_or_nothing(self.folder / file_of(start)) as unfinished:
            target = literal(str(unfinished))
            statement = f"COPY ({rows}) TO {target} (FORMAT parquet, COMPRESSION zstd)"
            self.work(self.connection, statement, f"writing {start}")
        return copied(self.folder, manifest, content)

    def finish(self, added: Sequence[CopiedPeriod]) -> None:
        """See `PairsEngine.finish`: the files are in their place."""


def _listed(files: Sequence[str]) -> str:
    return f"[{', '.join(literal(escape(each)) for each in files)}]"
