"""Member-level data from files, as the arrays that private domain discovery works on; DuckDB does the work.

Pairs are made distinct, members and elements become codes, and each member's elements are put in the order in which
they are kept (docs/domains.md). Where a pipeline needs more memory than there is, DuckDB spills to a directory of its
own, which is removed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from dp_service.bounding.contributions import Contributions
from dp_service.partitions.element_noise import Keys
from dp_service.terms import ColumnType
from gris_cli.data.dialects import DUCKDB
from gris_cli.data.domain.canonical_pairs import ROWS, Source
from gris_cli.data.errors import InputError
from gris_cli.data.input_files import require_table_file
from pinot_connector.engines.csv_files import csv_rows
from pinot_connector.engines.duckdb_files import attach_database
from pinot_connector.engines.file_versions import unreadable
from pinot_connector.engines.parquet import (
    BREAKABLE_ADVICE,
    list_unreadable,
    readable,
    require_alike,
    unread_columns,
)
from pinot_connector.engines.parquet_files import files_of, is_parquet
from pinot_connector.errors import EngineError

_KEY_WORDS = 4


@dataclass(frozen=True, eq=False)
class Pairs:
    """What discovery needs: contributions, the elements' keys of shape (elements, 32), and their type."""

    contributions: Contributions
    keys: Keys
    type: ColumnType
    names: NameTable

    def named(self, codes: NDArray[np.int64]) -> list[str]:
        """Return the canonical texts of elements."""
        return self.names.texts(codes)


@dataclass(frozen=True)
class NameTable:
    """The elements' texts, left where they are until some are released."""

    connection: duckdb.DuckDBPyConnection

    def texts(self, codes: NDArray[np.int64]) -> list[str]:
        """Return the canonical texts of elements with these codes, in code-point order."""
        rows = self.connection.execute(
            "SELECT element FROM elements WHERE code IN (SELECT unnest(?)) ORDER BY code", [codes.tolist()]
        ).fetchall()
        return [text for (text,) in rows]


@contextmanager
def read_pairs(source: Source, *, typical: int, salt: bytes, by_frequency: bool = False) -> Iterator[Pairs]:
    """Give the pairs of a source for as long as the block runs.

    Members stand in the order of their ids. Members with more than `typical` elements have these in hash order; the
    others keep them all, whatever their order. With `by_frequency`, a member's more frequent elements come first.

    Raises InputError: there is no such file, table or column, a column has another type than expected, or rows
    without member or element are there and not dropped.
    """
    with tempfile.TemporaryDirectory(prefix="gris-domain-") as spill, duckdb.connect() as connection:
        connection.execute("SET temp_directory = ?", [spill])
        connection.execute("SET preserve_insertion_order = false")
        relation = _relation(connection, source)
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        kind = source.element_type(DUCKDB, types)
        try:
            _load(connection, relation, source, kind)
        except duckdb.Error:
            raise InputError("expected data that can be read to their end") from None
        yield _coded(connection, kind, typical, salt, by_frequency=by_frequency)


def _relation(connection: duckdb.DuckDBPyConnection, source: Source) -> duckdb.DuckDBPyRelation:
    try:
        if not isinstance(source.data, Path):
            return connection.register("given", source.data).table("given")
        return _file(connection, source.data, source)
    except EngineError as error:
        raise InputError(str(error)) from None
    except (duckdb.Error, OSError):
        # What DuckDB says may quote the file's content.
        if isinstance(source.data, Path) and is_parquet(source.data):
            raise InputError(str(unreadable(source.data))) from None
        raise InputError(f"expected data that can be read{_of_table(source)}") from None


def _file(connection: duckdb.DuckDBPyConnection, path: Path, source: Source) -> duckdb.DuckDBPyRelation:
    require_table_file(path)
    if is_parquet(path):
        return _parquet(connection, path, source)
    match path.suffix.lower():
        case ".csv" | ".tsv":
            return connection.sql(f"FROM {csv_rows(path)}")
        case ".duckdb" | ".db":
            attach_database(connection, source.table, path)
            return connection.table(f"source.{DUCKDB.quoted(source.table)}")
    raise InputError(f"expected a file named .parquet, .csv, .tsv, .duckdb or .db, got {path.name}")


def _parquet(connection: duckdb.DuckDBPyConnection, path: Path, source: Source) -> duckdb.DuckDBPyRelation:
    """Return the rows and columns that questions can see: no value of one row stops the publication."""
    files = files_of(path)
    require_alike(connection, files, str)
    unread = unread_columns(connection, files)
    for name in (source.member, source.column):
        if name in unread:
            raise InputError(f"{name}: expected texts or integers, and not {BREAKABLE_ADVICE}")
    list_unreadable(connection, files, "unreadable")
    return connection.sql(readable(files, "unreadable", unread))


def _of_table(source: Source) -> str:
    return f" with a table {source.table}" if source.table else ""


def _load(
    connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation, source: Source, kind: ColumnType
) -> None:
    """Make the table of distinct pairs as canonical texts, each with how often it was there."""
    relation.create_view(ROWS, replace=True)
    source.require_whole(len(connection.execute(source.missing_rows(DUCKDB)).fetchall()))
    connection.execute(
        "CREATE TEMP TABLE texts AS SELECT member, element, count(*) AS frequency "  # noqa: S608 - names are quoted
        f"FROM ({source.pairs(DUCKDB, kind)}) GROUP BY ALL"
    )


def _coded(
    connection: duckdb.DuckDBPyConnection, kind: ColumnType, typical: int, salt: bytes, *, by_frequency: bool
) -> Pairs:
    """Replace texts by codes, in the order of the texts, and put each member's elements in their order."""
    for noun in ("member", "element"):
        connection.execute(
            f"CREATE TEMP TABLE {noun}s AS SELECT {noun}, (row_number() OVER (ORDER BY {noun}) - 1)::INTEGER AS code, "  # noqa: S608
            f"count(*) AS size FROM texts GROUP BY {noun}"
        )
    frequent = "frequency DESC," if by_frequency else ""
    needs_order = "TRUE" if by_frequency else f"members.size > {typical}"
    order_hash = DUCKDB.of_questions.order_hash(salt, ("member", "element"))
    rows = connection.execute(
        "SELECT members.code AS member, elements.code AS element FROM texts "  # noqa: S608 - the salt is in hexadecimal
        "JOIN members USING (member) JOIN elements USING (element) "
        f"ORDER BY members.code, {frequent} CASE WHEN {needs_order} THEN {order_hash} END, elements.code"
    ).fetchnumpy()
    connection.execute("DROP TABLE texts")
    elements = np.ascontiguousarray(rows["element"], dtype=np.int32)
    sizes = np.bincount(rows["member"]) if elements.size else np.zeros(0, dtype=np.int64)
    offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)))
    keys = _keys(connection)
    return Pairs(Contributions(offsets, elements, len(keys)), keys, kind, NameTable(connection))


def _keys(connection: duckdb.DuckDBPyConnection) -> Keys:
    """Return SHA-256 of every element, shape (elements, 32), by DuckDB."""
    expressions = ", ".join(
        f"('0x' || substr(hash, {1 + 16 * i}, 16))::UBIGINT AS word{i}" for i in range(_KEY_WORDS)
    )
    found = connection.execute(
        f"SELECT {expressions} FROM (SELECT code, sha256(element) AS hash FROM elements) ORDER BY code"  # noqa: S608
    ).fetchnumpy()
    columns = [np.asarray(found[f"word{i}"], dtype=np.uint64) for i in range(_KEY_WORDS)]
    return np.stack(columns, axis=1).astype(">u8").view(np.uint8)
