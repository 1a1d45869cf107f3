"""Bounded copies, made by DuckDB in limited memory, with their statement in the file's footer."""

from __future__ import annotations

from pathlib import Path

from gris_cli.data.bound.bounded_copies import (
    Bounded,
    BoundedCopyRequest,
    choose,
    kept_rows,
    read_pairs,
    row_counts,
)
from gris_cli.data.bound.source import first_missing, open_rows, require_all_read, require_unbreakable
from gris_cli.data.bound.spilling import DuckDBTables, Work, read_to_the_end, spilling
from gris_cli.data.bound.whole_files import complete_or_nothing, stamp
from gris_cli.data.dialects import DUCKDB
from gris_cli.data.errors import InputError
from gris_cli.data.input_files import require_file
from pinot_connector.engines.bounded_copy import METADATA_KEY
from pinot_connector.engines.parquet import literal


def bounded_copy(source: Path, out: Path, asked: BoundedCopyRequest, *, work: Work) -> Bounded:
    """Write the bounded copy of a file; `out` appears when it is complete, or not at all.

    Raises:
        InputError: The input cannot be read or bounded, changed meanwhile, or is the output itself.
        OSError: The output cannot be written.
    """
    require_file(source)
    if out.exists() and source.exists() and out.samefile(source):
        raise InputError("the output must not be the input")
    begun = stamp(source)
    with spilling(out.parent, asked.memory) as connection, complete_or_nothing(out) as unfinished:
        types = open_rows(connection, source, asked.columns)
        # Every column is copied.
        require_unbreakable(types, types)
        tables = DuckDBTables(connection, work)
        made = read_to_the_end(lambda: _made(tables, source, unfinished, asked), asked.memory)
        if stamp(source) != begun:
            raise InputError("the input changed while it was read")
    return made


def _made(tables: DuckDBTables, source: Path, unfinished: Path, asked: BoundedCopyRequest) -> Bounded:
    read_pairs(tables, asked.columns)
    require_all_read(tables.connection, source)
    rows, complete = row_counts(tables, asked.columns)
    if rows > complete and not asked.drops_nulls:
        where = first_missing(tables.connection, source, asked.columns)
        raise InputError(f"{where}: expected a value, or that such rows are left out", remedy="drop_nulls")
    made = choose(tables, asked, rows, complete)
    statement = asked.statement(made.rows_kept, made.rows_without_values).to_json()
    tables.work(
        tables.connection,
        f"COPY ({kept_rows(DUCKDB, asked.columns)}) TO {literal(str(unfinished))} (FORMAT parquet, COMPRESSION zstd, "
        f"KV_METADATA {{{METADATA_KEY}: {literal(statement)}}})",
        "writing",
    )
    (written,) = tables.row(f"SELECT count(*) FROM read_parquet({literal(str(unfinished))})")  # noqa: S608
    if written != made.rows_kept:
        # The copy would state another number of rows than it has.
        raise InputError("the input changed while it was read")
    return made
