"""DuckDB over files: whole answers on one version of the data, or an error that tells nothing."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinot_connector.engines.base import ColumnType, EngineAnswer, EngineQuery, ExpectedColumn, ReadColumn
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import (
    DataChanged,
    DataUnreadable,
    EngineError,
    EngineGone,
    EngineRefused,
    EngineUnavailable,
    IncompleteAnswer,
)
from tests.support.world import copy, write_small

SQL = "SELECT element, COUNT(DISTINCT member_id) AS gris_count FROM small GROUP BY element ORDER BY 2 DESC"
ELEMENT = ExpectedColumn("element", ColumnType.STRING)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A Parquet file in which 40 members have the element "a"."""
    write_small(tmp_path / "small.parquet", 40)
    return tmp_path / "small.parquet"


@pytest.fixture
def engine(path: Path) -> Iterator[DuckDBEngine]:
    """An engine over that file."""
    engine = DuckDBEngine({"small": path})
    yield engine
    engine.close()


def _query(
    sql: str = SQL, *, columns: tuple[ExpectedColumn, ...] = (ELEMENT,), row_limit: int = 10
) -> EngineQuery:
    return EngineQuery("small", sql, columns, row_limit)


def _run(engine: DuckDBEngine, query: EngineQuery) -> EngineAnswer:
    return engine.run(query, engine.data_version("small"))


def test_the_version_follows_the_content(engine: DuckDBEngine, path: Path) -> None:
    """Touching a file changes nothing; other bytes do, even under the old size and time."""
    before = engine.data_version("small")
    os.utime(path, (1, 1))
    assert before == engine.data_version("small")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, (1, 1))
    assert before != engine.data_version("small")


def test_a_version_that_is_gone_is_refused_by_the_query_itself(engine: DuckDBEngine, path: Path) -> None:
    """The file was replaced between translation and query: `run` says so, before anything is confirmed."""
    before = engine.data_version("small")
    write_small(path, 41)
    with pytest.raises(DataChanged):
        engine.run(_query(), before)


def test_a_file_that_vanishes_is_unavailable(engine: DuckDBEngine, path: Path) -> None:
    """The error names neither the file nor the system's words."""
    path.unlink()
    with pytest.raises(EngineUnavailable) as raised:
        engine.data_version("small")
    assert str(path) not in str(raised.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'a' AS element, 1::BIGINT AS other",
        "SELECT NULL::VARCHAR AS element, 1::BIGINT AS gris_count",
        "SELECT 'a' AS element, NULL::BIGINT AS gris_count",
        "SELECT 'a' AS element, 1::BIGINT AS gris_count FROM range(11)",
        "SELECT 1::BIGINT AS gris_count",
    ],
)
def test_an_answer_of_another_shape_is_incomplete(engine: DuckDBEngine, sql: str) -> None:
    """Other names, NULL, too many rows, a column too few."""
    with pytest.raises(IncompleteAnswer):
        _run(engine, _query(sql))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (ColumnType.INT64, "HUGEINT"),
        (ColumnType.INT64, "UHUGEINT"),
        (ColumnType.INT64, "UBIGINT"),
        (ColumnType.INT64, "VARCHAR"),
        (ColumnType.STRING, "INTEGER"),
        (ColumnType.DATE, "TIMESTAMP"),
        (ColumnType.BOOL, "INTEGER"),
    ],
)
def test_a_column_of_another_type_is_refused_whatever_its_rows(
    engine: DuckDBEngine, kind: ColumnType, type_: str, rows: int
) -> None:
    """A type that could hold more than the policy's is refused as a type: no member's row makes the difference."""
    sql = f"SELECT NULL::{type_} AS element, 1::BIGINT AS gris_count FROM range({rows})"
    with pytest.raises(EngineRefused, match="the type that the policy gives"):
        _run(engine, _query(sql, columns=(ExpectedColumn("element", kind),)))


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "UINTEGER"])
def test_integers_of_at_most_64_signed_bits_are_integers(engine: DuckDBEngine, type_: str) -> None:
    """Each of them fits whatever row comes."""
    sql = f"SELECT 7::{type_} AS element, 1::BIGINT AS gris_count"
    answer = _run(engine, _query(sql, columns=(ExpectedColumn("element", ColumnType.INT64),)))
    assert answer.elements == ([7],)


@pytest.mark.parametrize("day", ["DATE '20000-01-01'", "DATE '0044-03-15 (BC)'"])
def test_a_day_that_python_does_not_know_is_incomplete_and_not_repeated(
    engine: DuckDBEngine, day: str
) -> None:
    """DuckDB gives a text in its place, which nobody is shown."""
    sql = f"SELECT {day} AS element, 1::BIGINT AS gris_count"
    with pytest.raises(IncompleteAnswer, match="a day outside the years 1 to 9999"):
        _run(engine, _query(sql, columns=(ExpectedColumn("element", ColumnType.DATE),)))


def test_an_unexpected_error_is_neutral(engine: DuckDBEngine) -> None:
    """A number of rows that DuckDB cannot hold is Python's error, not DuckDB's; its text would repeat arguments."""
    query = _query("SELECT 'a' AS element, 1::BIGINT AS gris_count", row_limit=2**70)
    with pytest.raises(EngineError) as raised:
        _run(engine, query)
    assert "the engine's answer cannot be read" == str(raised.value)
    assert raised.value.__context__ is None


def test_half_a_surrogate_pair_is_an_error_that_does_not_repeat_it(engine: DuckDBEngine) -> None:
    """DuckDB 2.0.0 fails with an error of C++, 2.0.1 with one of its own that shows where the text breaks."""
    with pytest.raises(EngineError) as raised:
        _run(engine, _query("SELECT '\ud800' AS element, 1::BIGINT AS gris_count"))
    assert str(raised.value) in ("the engine's answer cannot be read", "the engine refused the query")
    assert raised.value.__context__ is None


def test_a_refused_query_tells_nothing_of_itself(engine: DuckDBEngine) -> None:
    """DuckDB's own message would repeat the query and values of the data."""
    with pytest.raises(EngineRefused) as raised:
        _run(engine, _query("SELECT element::INTEGER AS element, 1 AS gris_count FROM small -- secret"))
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None


@pytest.mark.parametrize("seconds", [0.1, 1e-9])
def test_a_query_that_takes_too_long_is_interrupted(path: Path, seconds: float) -> None:
    """The time-out ends the query in DuckDB, not only the waiting for it; also one that passes before it begins."""
    engine = DuckDBEngine({"small": path}, timeout_seconds=seconds)
    endless = "SELECT 'a' AS element, COUNT(*) AS gris_count FROM range(10000000) a, range(10000000) b"
    with pytest.raises(EngineUnavailable):
        _run(engine, _query(endless))
    engine.close()


def test_a_database_file_is_read_anew_when_it_is_replaced(tmp_path: Path) -> None:
    """An attached database would go on answering from the file that is gone."""
    path = tmp_path / "data.duckdb"
    _write_database(path, 3)
    engine = DuckDBEngine({"small": path})
    assert _run(engine, _query()).counts == [3]
    path.unlink()
    _write_database(path, 4)
    assert _run(engine, _query()).counts == [4]
    engine.close()


@pytest.mark.parametrize("seen", [1_711_584_000_000_000, -(2**63)])
def test_int96_is_refused_by_the_schema_and_only_where_it_is_named(tmp_path: Path, seen: int) -> None:
    """Whether or not a row holds a value that DuckDB cannot read, the answer is the same."""
    path = tmp_path / "small.parquet"
    times = pa.array([seen], pa.int64()).cast(pa.timestamp("us"))
    rows = pa.table({"member_id": ["m"], "element": ["a"], "seen": times})
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    engine = DuckDBEngine({"small": path})
    assert _run(engine, _query()).counts == [1]
    reads = (ReadColumn("seen", ColumnType.TIMESTAMP, None),)
    sql = SQL.replace("GROUP", "WHERE seen >= TIMESTAMP '2024-01-01 00:00:00' GROUP")
    with pytest.raises(EngineRefused, match=r"column seen .* INT96 .* TIMESTAMP\(MICROS\)"):
        _run(engine, EngineQuery("small", sql, (ELEMENT,), 10, reads=reads))
    engine.close()


def _change_without_checkpoint(path: Path, sql: str) -> None:
    """Leaves a change in the write-ahead log, as a writer does that is still open or ended by force."""
    with duckdb.connect(path) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute(sql)


@pytest.mark.parametrize("log", [".wal", ".wal.checkpoint", ".wal.recovery"])
def test_a_database_with_a_log_beside_it_has_no_version_and_no_answer(tmp_path: Path, log: str) -> None:
    """A log that appears at any point ends the question until there is none; also the making of an engine."""
    path = tmp_path / "data.duckdb"
    _write_database(path, 3)
    engine = DuckDBEngine({"small": path})
    version = engine.data_version("small")
    answer = engine.run(_query(), version)
    beside = path.with_name(path.name + log)
    beside.touch()
    for asked in (
        lambda: engine.data_version("small"),
        lambda: engine.run(_query(), version),
        lambda: engine.confirm(_query(), answer),
        lambda: DuckDBEngine({"small": path}),
    ):
        with pytest.raises(EngineUnavailable, match=r"write-ahead log .* run CHECKPOINT"):
            asked()
    beside.unlink()
    engine.confirm(_query(), answer)
    engine.close()


def test_rows_in_the_log_are_seen_only_once_they_are_in_the_file_and_in_its_version(tmp_path: Path) -> None:
    """A member that is deleted in the log neither changes an answer under the old version nor passes for no change."""
    path = tmp_path / "data.duckdb"
    _write_database(path, 3)
    engine = DuckDBEngine({"small": path})
    version = engine.data_version("small")
    answer = engine.run(_query(), version)
    _change_without_checkpoint(path, "DELETE FROM small WHERE member_id = 1")
    with pytest.raises(EngineUnavailable):
        engine.run(_query(), version)
    with pytest.raises(EngineUnavailable):
        engine.confirm(_query(), answer)
    with duckdb.connect(path) as connection:
        connection.execute("CHECKPOINT")
    assert engine.data_version("small") != version
    assert _run(engine, _query()).counts == [2]
    engine.close()


_COMPUTED = {
    "is a view": "CREATE VIEW small AS SELECT '1' AS member_id, 'a' AS element",
    "has a generated column": "CREATE TABLE Small (member_id VARCHAR, element VARCHAR AS (lower(member_id)))",
}


@pytest.mark.parametrize("what", _COMPUTED)
def test_a_table_of_a_database_whose_rows_are_computed_is_refused(tmp_path: Path, what: str) -> None:
    """When the engine is made, and by the query if the file is replaced later; the text names a way."""
    path = tmp_path / "data.duckdb"
    _write_database(path, 3)
    engine = DuckDBEngine({"small": path})
    path.unlink()
    with duckdb.connect(path) as connection:
        connection.execute(_COMPUTED[what])
    for asked in (lambda: DuckDBEngine({"small": path}), lambda: _run(engine, _query())):
        with pytest.raises(EngineRefused, match=f"small .* {what}.* CREATE TABLE .. AS .* Parquet file"):
            asked()
    engine.close()


def test_other_objects_of_a_database_are_in_nobodys_way(tmp_path: Path) -> None:
    """Views of other names, macros, enumerations, defaults and indexes are not read, or are stored in the file."""
    path = tmp_path / "data.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TYPE kind AS ENUM ('a', 'b')")
        connection.execute("CREATE TABLE small (member_id BIGINT DEFAULT 7, element VARCHAR, kind kind)")
        connection.execute("CREATE VIEW other AS SELECT * FROM small")
        connection.execute("CREATE MACRO small() AS TABLE SELECT 1 AS member_id, 'z' AS element")
        connection.execute("CREATE INDEX by_element ON small (element)")
        connection.execute("INSERT INTO small (element) VALUES ('a')")
    engine = DuckDBEngine({"small": path})
    assert _run(engine, _query()).counts == [1]
    engine.close()


def test_a_file_of_sqlite_is_refused(tmp_path: Path) -> None:
    """DuckDB would read it by an extension, if there is one; there, rows have types of their own."""
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE small (member_id TEXT, element TEXT)")
        connection.commit()
    with pytest.raises(DataUnreadable, match=r"^the data file data\.db is no DuckDB database$"):
        DuckDBEngine({"small": path})


def _whole_files(folder: Path) -> dict[str, bytes]:
    write_small(folder / "whole.parquet", 3)
    _write_database(folder / "whole.duckdb", 3)
    return {suffix: (folder / f"whole.{suffix}").read_bytes() for suffix in ("parquet", "duckdb")}


_BROKEN: dict[str, tuple[str, Callable[[dict[str, bytes]], bytes], str]] = {
    "empty": ("parquet", lambda _: b"", "is empty"),
    "text": ("parquet", lambda _: b"member_id,element\nsecret,a\n", "is no Parquet file"),
    "cut": ("parquet", lambda whole: whole["parquet"][:100], "is a Parquet file that ends early"),
    "footer": ("parquet", lambda whole: b"PAR1 secret PAR1", "is a Parquet file that is damaged"),
    "database": ("parquet", lambda whole: whole["duckdb"], "is no Parquet file"),
    "empty database": ("duckdb", lambda _: b"", "is empty"),
    "parquet": ("db", lambda whole: whole["parquet"], "is no DuckDB database"),
    "cut database": (
        "duckdb",
        lambda whole: whole["duckdb"][:5000],
        "is a DuckDB database that ends early, .*",
    ),
}


@pytest.mark.parametrize(("suffix", "content", "message"), _BROKEN.values(), ids=_BROKEN)
def test_a_file_that_is_not_what_its_name_says_is_named_as_bad_input(
    tmp_path: Path, suffix: str, content: Callable[[dict[str, bytes]], bytes], message: str
) -> None:
    """It is no engine that might answer later, also where such a file takes the place of a sound one."""
    whole = _whole_files(tmp_path)
    broken = content(whole)
    path = tmp_path / f"small.{suffix}"
    said = rf"^the data file small\.{suffix} {message}$"
    path.write_bytes(broken)
    with pytest.raises(DataUnreadable, match=said) as raised:
        DuckDBEngine({"small": path}).data_version("small")
    assert "secret" not in str(raised.value)
    if suffix == "json":
        return
    path.write_bytes(whole["parquet" if suffix == "parquet" else "duckdb"])
    with closing(DuckDBEngine({"small": path})) as engine:
        assert _run(engine, _query()).counts == [3]
        path.write_bytes(broken)
        with pytest.raises(DataUnreadable, match=said):
            _run(engine, _query())
        path.unlink()
        with pytest.raises(EngineGone, match=rf"small\.{suffix} cannot be read: it is not there"):
            _run(engine, _query())


def test_a_table_that_its_database_lacks_is_named(tmp_path: Path) -> None:
    """The file can be read; its name and the table's are said."""
    _write_database(tmp_path / "data.duckdb", 3)
    with pytest.raises(DataUnreadable, match=r"^the data file data\.duckdb has no table visits$"):
        DuckDBEngine({"visits": tmp_path / "data.duckdb"})


@pytest.mark.slow
@pytest.mark.parametrize("collated", ["member_id", "element", "app"])
def test_a_column_with_a_collation_is_refused_by_name(tmp_path: Path, collated: str) -> None:
    """`x` and `X` would be one element, spelled as the first row spells it; and so in a filter, or of members."""
    path = tmp_path / "data.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE plain (member_id VARCHAR, element VARCHAR, app VARCHAR, day DATE)")
        connection.execute(
            f"CREATE TABLE small AS SELECT * REPLACE ({collated} COLLATE nocase AS {collated}) FROM plain"
        )
        connection.execute("INSERT INTO small VALUES ('m', 'x', 'a', NULL), ('M', 'X', 'A', NULL)")
    sql = f"{SQL.split('FROM', maxsplit=1)[0]} FROM small WHERE app = 'a' GROUP BY element ORDER BY 2 DESC"
    kinds = {
        "app": ColumnType.STRING,
        "day": ColumnType.DATE,
        "element": ColumnType.STRING,
        "member_id": None,
    }
    reads = tuple(ReadColumn(name, kind, None) for name, kind in kinds.items())
    engine = DuckDBEngine({"small": path})
    with pytest.raises(
        EngineRefused, match=f"the column {collated} of the table compares texts by a collation"
    ):
        _run(engine, EngineQuery("small", sql, (ELEMENT,), 10, reads=reads))
    others = tuple(read for read in reads if read.name != collated)
    assert _run(engine, EngineQuery("small", sql, (ELEMENT,), 10, reads=others)).elements
    engine.close()


def _write_database(path: Path, members: int) -> None:
    with duckdb.connect(path) as connection:
        connection.execute(
            f"CREATE TABLE small AS SELECT range AS member_id, 'a' AS element FROM range({members})"
        )


@pytest.mark.parametrize(
    "sql", ["SELECT 'canary' AS element, error('canary')::BIGINT AS gris_count", "SELECT canary FROM small"]
)
def test_an_error_does_not_carry_the_engines_own(engine: DuckDBEngine, sql: str) -> None:
    """Neither as its cause nor as its context: a log of those would show the query and values of the data."""
    with pytest.raises(EngineError) as raised:
        _run(engine, _query(sql))
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@pytest.mark.parametrize("name", ["data.xlsx", "missing.parquet"])
def test_a_file_that_is_none_of_these_is_refused_at_once(tmp_path: Path, name: str) -> None:
    """A wrong configuration is reported before the first question."""
    with pytest.raises(EngineError):
        DuckDBEngine({"small": tmp_path / name})


@pytest.mark.parametrize("name", ["data[1].parquet", "element=other/data.parquet"])
def test_the_file_that_is_named_is_the_one_that_is_read(tmp_path: Path, name: str) -> None:
    """A name that DuckDB would take for a pattern, or for a column, is a name."""
    named, plain = tmp_path / name, tmp_path / "data1.parquet"
    named.parent.mkdir(exist_ok=True)
    copy("SELECT 'other' AS element", plain)
    copy("SELECT 'own' AS element", tmp_path / "new.parquet")
    (tmp_path / "new.parquet").rename(named)
    engine = DuckDBEngine({"t": named})
    sql = 'SELECT "element", COUNT(*) AS "gris_count" FROM "t" GROUP BY "element" LIMIT 2'
    query = EngineQuery("t", sql, (ExpectedColumn("element", ColumnType.STRING),), row_limit=2)
    assert (["own"],) == engine.run(query, engine.data_version("t")).elements
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("held", "declared", "where"),
    [
        ("TIMESTAMP '2024-01-01 08:00:00'", ColumnType.DATE, "c = DATE '2024-01-01'"),
        ("2.5::DOUBLE", ColumnType.INT64, "c >= 2"),
        ("'7'", ColumnType.INT64, "c >= 6"),
        ("5::HUGEINT", ColumnType.INT64, "c >= 6"),
        ("true", ColumnType.STRING, "c = 'true'"),
    ],
)
def test_a_column_of_another_type_is_refused_by_name_where_it_is_only_filtered_on(
    tmp_path: Path, held: str, declared: ColumnType, where: str
) -> None:
    """DuckDB would convert and answer something else; the error names the policy's type, and no literal."""
    path = tmp_path / "t.parquet"
    copy(f"SELECT 'a' AS element, {held} AS c", path)
    sql = f"SELECT element, COUNT(*) AS gris_count FROM t WHERE {where} GROUP BY element"
    query = EngineQuery("t", sql, (ELEMENT,), 10, reads=(ReadColumn("C", declared, None),))
    engine = DuckDBEngine({"t": path})
    with pytest.raises(EngineRefused, match=rf"column C .* policy's type, {declared.value}$"):
        engine.run(query, engine.data_version("t"))
    missing = EngineQuery("t", sql, (ELEMENT,), 10, reads=(ReadColumn("nothing", None, None),))
    with pytest.raises(EngineRefused, match=r"no column nothing, which the policy lists$"):
        engine.run(missing, engine.data_version("t"))
    engine.close()


def test_columns_of_the_policys_types_are_asked(path: Path, engine: DuckDBEngine) -> None:
    """A member column of which the policy says nothing may be an integer."""
    reads = (ReadColumn("element", ColumnType.STRING, "null"), ReadColumn("member_id", None, "null"))
    query = EngineQuery("small", SQL, (ELEMENT,), 10, reads=reads)
    assert [40] == _run(engine, query).counts


def test_a_closed_engine_is_unavailable(path: Path) -> None:
    """Asking afterwards is an error like any other."""
    engine = DuckDBEngine({"small": path})
    engine.close()
    with pytest.raises(EngineUnavailable):
        _run(engine, _query())
