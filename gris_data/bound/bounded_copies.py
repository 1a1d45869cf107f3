"""Bounded copies, made by DuckDB in limited memory.

Of each member and period, the pairs of member and element are ordered by `dp_service.bounding.order`, and rows of
pairs beyond the first Delta_0 are left out. Only members with more than Delta_0 elements are ordered at all. What does
not fit into memory goes to a directory beside the output, which is removed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from dp_service.bounding.order import salt_id, table_salt
from dp_service.noise.encoding import length_prefixed
from gris_data.bound.local_times import duckdb_local_time
from gris_data.bound.source import (
    READ_TIME,
    ROWS,
    Columns,
    first_missing,
    open_rows,
    require_all_read,
    require_unbreakable,
)
from gris_data.bound.spilling import OWN_MISTAKES, spilling
from gris_data.errors import InputError
from pinot_connector.engines.bounded_copy import METADATA_KEY, ONE_PERIOD, RULE, CopyStatement
from pinot_connector.engines.parquet import literal, quoted

Work = Callable[[duckdb.DuckDBPyConnection, str, str], None]
"""Runs a statement on a connection; the last argument says what it does, for people."""


@dataclass(frozen=True)
class BoundedCopyRequest:
    """What is to be made.

    Attributes:
        table: The name of the table in the policy; with the period it makes the public salt.
        columns: Who is a member, what is an element, what is a period.
        delta_0: How many elements of a member are kept in each period.
        drops_nulls: Rows without member, element or period are left out and counted; else they are refused.
        memory: How much memory DuckDB may use, as it writes sizes: 2GB.
    """

    table: str
    columns: Columns
    delta_0: int
    drops_nulls: bool = False
    memory: str = "2GB"

    def statement(self, rows: int, rows_without_values: int) -> CopyStatement:
        """Return what a copy with so many rows says of itself."""
        return CopyStatement(
            table=self.table,
            member=self.columns.member,
            elements=self.columns.elements,
            delta_0=self.delta_0,
            period=self.columns.stated_period,
            rule=RULE,
            salt=salt_id(self.table),
            drops_nulls=self.drops_nulls,
            rows_without_values=rows_without_values,
            rows=rows,
        )


@dataclass(frozen=True)
class Bounded:
    """What was read and kept. These are true counts, for the owner of the data."""

    rows: int
    rows_without_values: int
    rows_kept: int
    pairs: int
    pairs_kept: int
    members: int
    members_bounded: int


def bounded_copy(source: Path, out: Path, asked: BoundedCopyRequest, *, work: Work) -> Bounded:
    """Write the bounded copy of a file; `out` appears when it is complete, or not at all.

    Raises:
        InputError: The input cannot be read or bounded, changed meanwhile, or is the output itself.
        OSError: The output cannot be written.
    """
    if out.exists() and source.exists() and out.samefile(source):
        raise InputError("the output must not be the input")
    stamp = _stamp(source)
    with spilling(out.parent, asked.memory) as connection, complete_or_nothing(out) as unfinished:
        types = open_rows(connection, source, asked.columns)
        # Every column is copied.
        require_unbreakable(types, types)
        failure = None
        try:
            made = _made(connection, source, unfinished, asked, work)
        except duckdb.OutOfMemoryException:
            failure = InputError(f"--memory {asked.memory} is too little for this input")
        except OWN_MISTAKES:
            raise
        except duckdb.Error:
            failure = InputError("expected a file that can be read to its end")
        if failure:
            raise failure
        if _stamp(source) != stamp:
            raise InputError("the input changed while it was read")
    return made


def _made(
    connection: duckdb.DuckDBPyConnection,
    source: Path,
    unfinished: Path,
    asked: BoundedCopyRequest,
    work: Work,
) -> Bounded:
    needed = " AND ".join(f"given.{quoted(name)} IS NOT NULL" for name in asked.columns.needed)
    work(connection, _pairs(asked.columns, needed), "reading pairs")
    require_all_read(connection, source)
    rows, complete = _row_counts(connection, needed)
    if rows > complete and not asked.drops_nulls:
        raise InputError(
            f"{first_missing(connection, source, asked.columns)}: expected a value, or --drop-nulls"
        )
    _salts(connection, asked.table)
    work(connection, _left_out(asked), "choosing elements")
    kept = complete - _rows_left_out(connection)
    statement = asked.statement(kept, rows - complete).to_json()
    copied = f"SELECT given.* FROM {ROWS} AS given {_without(asked.columns)} WHERE {needed}"  # noqa: S608
    work(
        connection,
        f"COPY ({copied}) TO {literal(str(unfinished))} (FORMAT parquet, COMPRESSION zstd, "
        f"KV_METADATA {{{METADATA_KEY}: {literal(statement)}}})",
        "writing",
    )
    made = _summary(connection, unfinished, rows, complete)
    if made.rows_kept != kept:
        # The copy would state another number of rows than it has.
        raise InputError("the input changed while it was read")
    return made


def _texts(columns: Columns) -> dict[str, str]:
    """Return SQL for the canonical texts of a row of `given`: period, member and each value of the element."""
    named = {"member": columns.member}
    named |= {f"element_{place}": name for place, name in enumerate(columns.elements)}
    return {"period": _period(columns)} | {
        own: f"given.{quoted(name)}::VARCHAR" for own, name in named.items()
    }


def _period(columns: Columns) -> str:
    """Return SQL for a row's period; one of a calendar is called by its first day."""
    if not columns.period:
        return literal(ONE_PERIOD)
    column = f"given.{quoted(columns.period)}"
    if not columns.calendar:
        return f"{column}::VARCHAR"
    column = f"{READ_TIME}({column})"
    if columns.zone:
        column = duckdb_local_time(column, columns.zone)
    return f"date_trunc({literal(columns.calendar)}, {column})::DATE::VARCHAR"


def _pairs(columns: Columns, needed: str) -> str:
    named = ", ".join(f"{text} AS {name}" for name, text in _texts(columns).items())
    counted = f"SELECT {named}, count(*) AS row_count FROM {ROWS} AS given WHERE {needed} GROUP BY ALL"  # noqa: S608
    return f"CREATE TEMP TABLE pairs AS {counted}"


def _row_counts(connection: duckdb.DuckDBPyConnection, needed: str) -> tuple[int, int]:
    counts = f"SELECT count(*), count(*) FILTER (WHERE {needed}) FROM {ROWS} AS given"  # noqa: S608
    rows, complete = _one(connection, counts)
    return rows, complete


def _salts(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Make the table of periods with their salts, each preceded by its length."""
    connection.execute("CREATE TEMP TABLE salts (period VARCHAR, salt BLOB)")
    periods = connection.execute("SELECT DISTINCT period FROM pairs").fetchall()
    if periods:
        connection.executemany(
            "INSERT INTO salts VALUES (?, ?)",
            [(period, length_prefixed(table_salt(table, period))) for (period,) in periods],
        )


def _left_out(asked: BoundedCopyRequest) -> str:
    """Return SQL that makes the table of pairs that are left out."""
    names = [name for name in _texts(asked.columns) if name not in ("period", "member")]
    hashed = " || ".join(
        [
            "salts.salt",
            *(f"{_length(f'pairs.{name}')} || encode(pairs.{name})" for name in ("member", *names)),
        ]
    )
    order = ", ".join([f"sha256({hashed})", *(f"pairs.{name}" for name in names)])
    return (
        "CREATE TEMP TABLE left_out AS SELECT * EXCLUDE (place) FROM (SELECT pairs.*, "  # noqa: S608
        f"row_number() OVER (PARTITION BY pairs.period, pairs.member ORDER BY {order}) AS place FROM pairs "
        "JOIN salts USING (period) SEMI JOIN (SELECT period, member FROM pairs GROUP BY period, member "
        f"HAVING count(*) > {asked.delta_0}) AS heavy USING (period, member)) WHERE place > {asked.delta_0}"
    )


def _rows_left_out(connection: duckdb.DuckDBPyConnection) -> int:
    (rows,) = _one(connection, "SELECT coalesce(sum(row_count), 0)::BIGINT FROM left_out")
    return rows


def _length(name: str) -> str:
    """Return SQL for the length of a text in bytes, as eight bytes."""
    return f"unhex(printf('%016x', octet_length(encode({name}))))"


def _without(columns: Columns) -> str:
    return "ANTI JOIN left_out ON " + " AND ".join(
        f"left_out.{name} = {text}" for name, text in _texts(columns).items()
    )


def _summary(connection: duckdb.DuckDBPyConnection, copy: Path, rows: int, complete: int) -> Bounded:
    (rows_kept,) = _one(connection, f"SELECT count(*) FROM read_parquet({literal(str(copy))})")  # noqa: S608
    pairs, members = _one(connection, "SELECT count(*), count(DISTINCT member) FROM pairs")
    left_out, heavy = _one(connection, "SELECT count(*), count(DISTINCT member) FROM left_out")
    return Bounded(rows, rows - complete, rows_kept, pairs, pairs - left_out, members, heavy)


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[int, ...]:
    found = connection.execute(query).fetchone()
    if found is None:
        raise InputError("expected a file that can be read to its end")
    return found


@contextmanager
def complete_or_nothing(out: Path) -> Iterator[Path]:
    """Give the path of a file that takes the place of `out` if the block ends well, and is removed if not."""
    descriptor, name = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
    os.close(descriptor)
    unfinished = Path(name)
    try:
        yield unfinished
        with unfinished.open("rb") as stream:
            os.fsync(stream.fileno())
        unfinished.chmod(0o666 & ~_umask())
        unfinished.replace(out)
        _flush(out.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _stamp(path: Path) -> tuple[int, ...] | None:
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
