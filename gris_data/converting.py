"""CSV and folders of Parquet as one Parquet file with stated types, for the owner of the data.

Questions are asked of no CSV: its rows would decide what its columns are, and one quote that is not closed takes in
the rows of others. Here nothing is guessed: a column is a text unless its type is stated, and a value that is not of it
ends the conversion, with its row and column and without the value.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

import duckdb

from dp_service.terms import ColumnType
from gris_data.bound.source import require_all_read, separated_rows
from gris_data.bound.spilling import OWN_MISTAKES, spilling
from gris_data.bound.whole_files import complete_or_nothing
from gris_data.errors import InputError
from gris_data.input_files import require_table_file
from gris_data.names import plain_name
from gris_data.policy.draft_names import finding_of_name, is_key
from gris_data.table_schema import SEPARATED_FILES
from pinot_connector import formats
from pinot_connector.engines.parquet import all_rows, literal, quoted, require_alike
from pinot_connector.engines.parquet_files import files_of, is_parquet
from pinot_connector.errors import EngineError

DECIMAL = "decimal"
TYPES = (*(kind.value for kind in ColumnType), DECIMAL)
"""The types that can be stated: those of a policy's columns, and numbers that are summed."""

_HELD = {
    "string": "VARCHAR",
    "int64": "BIGINT",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    DECIMAL: "DOUBLE",
}
# What DuckDB would round, or read in more than one way, is none of the type.
_FORMS = {
    "int64": r"[+-]?\d+(\.0+)?",
    "bool": r"(?i)true|false|t|f|yes|no|1|0",
    "date": r"\d{4}-\d\d-\d\d",
    "timestamp": r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?",
    DECIMAL: r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?",
}
_SUCH_AS = {
    "timestamp": ", such as 2026-01-31 or 2026-01-31T10:30:00Z (numbers since 1970 are of type int64, and a policy has "
    "their unit, as in `unit: milliseconds`)"
}
_LIKELY = ("int64", DECIMAL, "date", "timestamp")
_ROWS = "converted_rows"


@dataclass(frozen=True)
class ConvertedColumn:
    """A column.

    Attributes:
        given: Its name before.
        name: Its name after.
        type: Its type as DuckDB calls it.
        empty: How many rows have no value in it.
        likely_type: Which type its texts could all have, though none was stated; empty: none, or it is no text.
    """

    given: str
    name: str
    type: str
    empty: int
    likely_type: str


@dataclass(frozen=True)
class Conversion:
    """What was written: how many files became how many rows, and the columns. True counts, for the owner alone."""

    files: int
    rows: int
    columns: tuple[ConvertedColumn, ...]


def convert(source: str, out: Path, types: Mapping[str, str], memory: str) -> Conversion:
    """Write one Parquet file that engines read.

    Args:
        source: A CSV or TSV file, a Parquet file, a folder, or a pattern of Parquet files. What folders called
            `country=FR` say becomes columns of texts.
        out: The file to write, which must not exist.
        types: The types of columns, by the names that the input has; others of CSV are texts, of Parquet as they are.
        memory: How much memory this may use, about.

    Raises:
        InputError: There are no such files, they differ, a column is not there, or a value is not of its type.
    """
    if out.exists():
        raise InputError(f"{out} is there already", "out")
    failure = InputError("expected files that can be read to their end")
    try:
        with spilling(Path(tempfile.gettempdir()), memory) as connection:
            files = _opened(connection, source)
            return _written(connection, files, out, types)
    except OWN_MISTAKES:
        raise
    except duckdb.Error:
        # What DuckDB says may quote the data.
        pass
    raise failure


def _opened(connection: duckdb.DuckDBPyConnection, source: str) -> tuple[Path, ...]:
    """Make the view of all rows; return the files that they are in."""
    path = Path(source)
    if path.suffix.lower() in SEPARATED_FILES:
        separated_rows(connection, path, _ROWS)
        return (path,)
    require_table_file(path)
    if not is_parquet(path):
        raise InputError(f"expected files named .parquet, .csv or .tsv, got {path.name}")
    try:
        files = files_of(path)
        require_alike(connection, files, str)
    except EngineError as error:
        raise InputError(str(error)) from None
    connection.execute(f"CREATE TEMP VIEW {_ROWS} AS {all_rows(files)}")
    return files.paths


def _written(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], out: Path, types: Mapping[str, str]
) -> Conversion:
    held = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {_ROWS}").fetchall()}
    if unknown := [name for name in types if name not in held]:
        raise InputError(f"there is no column {unknown[0]}; there are {', '.join(held)}", "type")
    names = _names(held)
    selected = ", ".join(f"{_value(name, types.get(name))} AS {quoted(names[name])}" for name in held)
    # These are rows of members, for their owner alone.
    with complete_or_nothing(out, 0o600) as unfinished:
        query = f"SELECT {selected} FROM {_ROWS}"  # noqa: S608 - names are quoted
        connection.execute(f"COPY ({query}) TO {literal(str(unfinished))} (FORMAT parquet)")
        if files[0].suffix.lower() in SEPARATED_FILES:
            require_all_read(connection, files[0])
        _require_types(connection, types)
        return _report(connection, unfinished, names, len(files), types)


def _names(held: Mapping[str, str]) -> dict[str, str]:
    """Return names that a policy can have, by those that were given."""
    names = {name: plain_name(name) for name in held}
    taken: set[str] = set()
    for name, plain in names.items():
        if plain.casefold() in taken:
            raise InputError(f"two columns would be called {plain}; rename {name}")
        taken.add(plain.casefold())
    return names


def _value(name: str, kind: str | None) -> str:
    """Write a value in a type; NULL where it is empty, or none of the type."""
    given = f"nullif(trim({quoted(name)}::VARCHAR), '')"
    match kind:
        case None:
            return quoted(name)
        case "string":
            return f"nullif({quoted(name)}::VARCHAR, '')"
        case "int64":
            return f"CASE WHEN {_fits(name, kind)} THEN TRY_CAST(split_part({given}, '.', 1) AS BIGINT) END"
        case _:
            return f"CASE WHEN {_fits(name, kind)} THEN TRY_CAST({given} AS {_HELD[kind]}) END"


def _fits(name: str, kind: str) -> str:
    return f"regexp_full_match(trim({quoted(name)}::VARCHAR), {literal(_FORMS[kind])})"


def _require_types(connection: duckdb.DuckDBPyConnection, types: Mapping[str, str]) -> None:
    """Raise InputError at the first value that is not of the type that was stated."""
    for name, kind in types.items():
        if kind == "string":
            continue
        bad = f"nullif(trim({quoted(name)}::VARCHAR), '') IS NOT NULL AND ({_value(name, kind)}) IS NULL"
        found = connection.execute(
            f"SELECT min(place), count(*) FROM (SELECT row_number() OVER () AS place, {bad} AS is_bad FROM {_ROWS}) "  # noqa: S608
            "WHERE is_bad"
        ).fetchone()
        if found and found[1]:
            others = f"{formats.counted(found[1], 'row')} of something else"
            expected = f"expected {kind}{_SUCH_AS.get(kind, '')}"
            raise InputError(f"row {found[0]}, column {name}: {expected}; {others}", "type")


def types_of_texts(
    connection: duckdb.DuckDBPyConnection, source: str, names: Sequence[str]
) -> dict[str, str]:
    """Return the types that the texts of columns could all have: numbers, days, timestamps; others are left out.

    So are columns whose names say that they tell people apart, or are keys: nobody sums these. A number that begins
    with 0 is a code.

    Args:
        source: What the rows are in, as SQL.
        names: The columns of texts.
    """
    found = {}
    for name in names:
        if finding_of_name(name, ColumnType.STRING):
            continue
        text = f"nullif(trim({quoted(name)}), '')"
        tests = ", ".join(f"count({_value(name, kind)}) = count({text})" for kind in _LIKELY)
        is_code = f"coalesce(bool_or(regexp_matches({text}, '^0[0-9]')), false)"
        sql = f"SELECT count({text}) > 0 AND NOT {is_code}, {tests} FROM {source}"  # noqa: S608 - names are quoted
        is_some, *fits = connection.execute(sql).fetchone() or (False,)
        likely = [kind for kind, is_fit in zip(_LIKELY, fits, strict=False) if is_some and is_fit]
        if likely and not (likely[0] == "int64" and is_key(name)):
            found[name] = likely[0]
    return found


def _report(
    connection: duckdb.DuckDBPyConnection,
    written: Path,
    names: Mapping[str, str],
    files: int,
    stated: Mapping[str, str],
) -> Conversion:
    source = f"read_parquet({literal(escape(str(written)))}, hive_partitioning = false)"
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608 - a path
    types = {name: kind for name, kind, *_ in described}
    counts = ", ".join(f"count(*) - count({quoted(name)})" for name in types)
    rows, *empty = connection.execute(f"SELECT count(*), {counts} FROM {source}").fetchone() or (0,)  # noqa: S608
    texts = [name for given, name in names.items() if types[name] == "VARCHAR" and given not in stated]
    likely = types_of_texts(connection, source, texts)
    columns = (
        ConvertedColumn(given, name, types[name], missing, likely.get(name, ""))
        for (given, name), missing in zip(names.items(), empty, strict=True)
    )
    return Conversion(files, rows, tuple(columns))
