"""Member-level data from files, as the arrays that private domain discovery works on; DuckDB does the work.

Pairs are made distinct, members and elements become codes, and each member's elements are put in the order in which
they are kept (docs/domains.md). Where a pipeline needs more memory than there is, DuckDB spills to a directory of its
own, which is removed.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from dp_service.bounding.contributions import Contributions
from dp_service.noise.encoding import length_prefixed
from dp_service.partitions.element_noise import Keys
from dp_service.queries.structured import MAXIMUM_TEXT_LENGTH
from dp_service.terms import ColumnType
from gris_data.errors import InputError
from pinot_connector.engines.duckdb_files import attach_database
from pinot_connector.engines.file_versions import unreadable
from pinot_connector.engines.parquet import BREAKABLE_ADVICE, list_unreadable, readable, unread_columns
from pinot_connector.errors import EngineError

# What a column of the file is called by DuckDB, and the type of its elements.
_TYPES = {
    "VARCHAR": ColumnType.STRING,
    "BOOLEAN": ColumnType.BOOL,
    "DATE": ColumnType.DATE,
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), ColumnType.INT64
    ),
}
_MEMBER_TYPES = frozenset(_TYPES) | {"UBIGINT", "HUGEINT", "UUID"}
_KEY_WORDS = 4


@dataclass(frozen=True)
class Source:
    """Where the pairs are.

    `data` is a Parquet or CSV file, a DuckDB database (then `table` names a table of it), or anything that
    DuckDB reads in memory, such as an Arrow table or NumPy arrays by name. `drops_nulls`: rows without member or
    element are left out; else they are refused.
    """

    data: object
    member: str
    column: str
    table: str = ""
    drops_nulls: bool = False


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
def read_pairs(source: Source, *, delta_0: int, salt: bytes, by_frequency: bool = False) -> Iterator[Pairs]:
    """Give the pairs of a source for as long as the block runs.

    Members stand in the order of their ids. Members with more than `delta_0` elements have these in hash order; the
    others keep them all, whatever their order. With `by_frequency`, a member's more frequent elements come first.

    Raises InputError: there is no such file, table or column, a column has another type than expected, or rows
    without member or element are there and not dropped.
    """
    with tempfile.TemporaryDirectory(prefix="gris-domain-") as spill, duckdb.connect() as connection:
        connection.execute("SET temp_directory = ?", [spill])
        connection.execute("SET preserve_insertion_order = false")
        relation = _relation(connection, source)
        kind = _checked_types(relation, source)
        try:
            _load(connection, relation, source, kind)
        except duckdb.Error:
            raise InputError("expected data that can be read to their end") from None
        yield _coded(connection, kind, delta_0, salt, by_frequency=by_frequency)


def _relation(connection: duckdb.DuckDBPyConnection, source: Source) -> duckdb.DuckDBPyRelation:
    try:
        if not isinstance(source.data, Path):
            return connection.register("given", source.data).table("given")
        return _file(connection, source.data, source)
    except EngineError as error:
        raise InputError(str(error)) from None
    except (duckdb.Error, OSError):
        # What DuckDB says may quote the file's content.
        if isinstance(source.data, Path) and source.data.suffix.lower() == ".parquet":
            raise InputError(str(unreadable(source.data))) from None
        raise InputError(f"expected data that can be read{_of_table(source)}") from None


def _file(connection: duckdb.DuckDBPyConnection, path: Path, source: Source) -> duckdb.DuckDBPyRelation:
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    match path.suffix.lower():
        case ".parquet":
            return _parquet(connection, path, source)
        case ".csv":
            return _separated(connection, path, ",")
        case ".tsv":
            return _separated(connection, path, "\t")
        case ".duckdb" | ".db":
            attach_database(connection, source.table, path)
            return connection.table(f"source.{_quoted(source.table)}")
    raise InputError(f"expected a file named .parquet, .csv, .tsv, .duckdb or .db, got {path.name}")


def _parquet(connection: duckdb.DuckDBPyConnection, path: Path, source: Source) -> duckdb.DuckDBPyRelation:
    """Return the rows and columns that questions can see: no value of one row stops the publication."""
    unread = unread_columns(connection, path)
    for name in (source.member, source.column):
        if name in unread:
            raise InputError(f"{name}: expected texts or integers, and not {BREAKABLE_ADVICE}")
    list_unreadable(connection, path, "unreadable")
    return connection.sql(readable(path, "unreadable", unread))


def _separated(connection: duckdb.DuckDBPyConnection, path: Path, separator: str) -> duckdb.DuckDBPyRelation:
    """Return the rows of a CSV file, all columns being texts.

    Nothing is sniffed: what is guessed from the rows, such as the quotes or the sign of a comment, one member's row can
    change, and with it what everyone else's rows mean.
    """
    return connection.read_csv(
        escape(str(path)),
        auto_detect=False,
        header=True,
        columns=dict.fromkeys(_header(path, separator), "VARCHAR"),
        sep=separator,
        quotechar='"',
        escapechar='"',
        strict_mode=True,
    )


def _header(path: Path, separator: str) -> list[str]:
    """Return the names of a CSV file's columns."""
    try:
        # What is read ahead of the first line's end is none of this function's: DuckDB refuses what is not UTF-8.
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            names = next(csv.reader(lines, delimiter=separator, strict=True), [])
    except csv.Error:
        names = []
    if not names or len(set(names)) != len(names):
        raise InputError("expected a first line with the names of the columns, each once")
    return names


def _of_table(source: Source) -> str:
    return f" with a table {source.table}" if source.table else ""


def _checked_types(relation: duckdb.DuckDBPyRelation, source: Source) -> ColumnType:
    """Return the type of the elements, or refuse columns that cannot be members or elements."""
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    for name in (source.member, source.column):
        if name not in types:
            raise InputError(f"there is no column {name}")
    if types[source.member] not in _MEMBER_TYPES:
        raise InputError(f"{source.member}: expected members that are texts or integers")
    if types[source.column] not in _TYPES:
        raise InputError(f"{source.column}: expected elements that are texts, integers, truth values or days")
    return _TYPES[types[source.column]]


def _load(
    connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation, source: Source, kind: ColumnType
) -> None:
    """Make the table of distinct pairs as canonical texts, each with how often it was there."""
    member, column = _quoted(source.member), _quoted(source.column)
    relation.create_view("rows", replace=True)
    if not source.drops_nulls:
        found = connection.execute(f"SELECT 1 FROM rows WHERE {member} IS NULL OR {column} IS NULL LIMIT 1")  # noqa: S608 - both are quoted
        if found.fetchone():
            raise InputError(f"expected no row without {source.member} or {source.column}, or --drop-nulls")
    # What no answer can carry, no policy can list: longer texts, and days outside the years 1 to 9999.
    days = ""
    if kind is ColumnType.DATE:
        days = f"AND {column} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
    connection.execute(
        f"CREATE TEMP TABLE texts AS SELECT {member}::VARCHAR AS member, {column}::VARCHAR AS element, "  # noqa: S608
        f"count(*) AS frequency FROM rows WHERE {member} IS NOT NULL AND {column} IS NOT NULL "
        f"AND length({column}::VARCHAR) <= {MAXIMUM_TEXT_LENGTH} AND NOT contains({column}::VARCHAR, chr(0)) {days} "
        "GROUP BY ALL"
    )


def _coded(
    connection: duckdb.DuckDBPyConnection, kind: ColumnType, delta_0: int, salt: bytes, *, by_frequency: bool
) -> Pairs:
    """Replace texts by codes, in the order of the texts, and put each member's elements in their order."""
    for noun in ("member", "element"):
        connection.execute(
            f"CREATE TEMP TABLE {noun}s AS SELECT {noun}, (row_number() OVER (ORDER BY {noun}) - 1)::INTEGER AS code, "  # noqa: S608
            f"count(*) AS size FROM texts GROUP BY {noun}"
        )
    frequent = "frequency DESC," if by_frequency else ""
    needs_order = "TRUE" if by_frequency else f"members.size > {delta_0}"
    rows = connection.execute(
        "SELECT members.code AS member, elements.code AS element FROM texts "  # noqa: S608 - the salt is in hexadecimal
        "JOIN members USING (member) JOIN elements USING (element) "
        f"ORDER BY members.code, {frequent} CASE WHEN {needs_order} THEN {_order_hash(salt)} END, elements.code"
    ).fetchnumpy()
    connection.execute("DROP TABLE texts")
    elements = np.ascontiguousarray(rows["element"], dtype=np.int32)
    sizes = np.bincount(rows["member"]) if elements.size else np.zeros(0, dtype=np.int64)
    offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)))
    keys = _keys(connection)
    return Pairs(Contributions(offsets, elements, len(keys)), keys, kind, NameTable(connection))


def _order_hash(salt: bytes) -> str:
    """Return SQL for the hash of `dp_service.bounding.order`; hexadecimal texts are ordered as their bytes are."""
    parts = " || ".join(
        f"unhex(printf('%016x', octet_length(encode({name})))) || encode({name})"
        for name in ("member", "element")
    )
    return f"sha256(unhex('{length_prefixed(salt).hex()}') || {parts})"


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


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
