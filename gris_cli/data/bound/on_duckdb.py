"""Prepared copies, made by DuckDB in limited memory, with their statement in the file's footer."""

from __future__ import annotations

from pathlib import Path

import duckdb

from gris_cli.data.bound.bounded_copies import (
    COPY,
    Bounded,
    BoundedCopyRequest,
    counted,
    counts_of_copy,
    row_counts,
    weighted_rows,
)
from gris_cli.data.bound.source import first_missing, open_rows, require_all_read
from gris_cli.data.bound.spilling import Work, read_to_the_end, spilling
from gris_cli.data.bound.whole_files import complete_or_nothing, stamp
from gris_cli.data.dialects import DUCKDB
from gris_cli.data.errors import InputError
from gris_cli.data.input_files import require_file
from pinot_connector.engines.bounded_copy import METADATA_KEY
from pinot_connector.engines.parquet import literal


def bounded_copy(source: Path, out: Path, asked: BoundedCopyRequest, *, work: Work) -> Bounded:
    """Write the prepared copy of a file; `out` appears when it is complete, or not at all.

    Raises:
        InputError: The input cannot be read or bounded, changed meanwhile, or is the output itself.
        OSError: The output cannot be written.
    """
    require_file(source)
    if out.exists() and source.exists() and out.samefile(source):
        raise InputError("the output must not be the input")
    begun = stamp(source)
    with spilling(out.parent, asked.memory) as connection, complete_or_nothing(out) as unfinished:
        open_rows(connection, source, asked.columns)
        made = read_to_the_end(lambda: _made(connection, work, source, unfinished, asked), asked.memory)
        if stamp(source) != begun:
            raise InputError("the input changed while it was read")
    return made


def _made(
    connection: duckdb.DuckDBPyConnection,
    work: Work,
    source: Path,
    unfinished: Path,
    asked: BoundedCopyRequest,
) -> Bounded:
    columns = asked.columns
    work(connection, f"CREATE TEMP TABLE {COPY} AS {weighted_rows(DUCKDB, asked)}", "weighting members")
    require_all_read(connection, source)
    ((rows, complete),) = connection.execute(row_counts(DUCKDB, columns)).fetchall()
    if rows > complete and not asked.drops_nulls:
        where = first_missing(connection, source, columns)
        raise InputError(f"{where}: expected a value, or that such rows are left out", remedy="drop_nulls")
    (of_copy,) = connection.execute(counts_of_copy(DUCKDB, columns)).fetchall()
    made = counted(rows, complete, of_copy)
    work(
        connection,
        f"COPY {COPY} TO {literal(str(unfinished))} (FORMAT parquet, COMPRESSION zstd, "
        f"KV_METADATA {{{METADATA_KEY}: {literal(asked.statement(made).to_json())}}})",
        "writing",
    )
    return made
