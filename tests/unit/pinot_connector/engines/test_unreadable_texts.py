"""A row with a text that is not UTF-8 is in no question: it never decides whether there is an answer."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinot_connector import PrivateResult
from pinot_connector.engines.base import ColumnType, Element, EngineQuery, ExpectedColumn, ReadColumn
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.parquet import ROW_NUMBER, count_unreadable, list_unreadable, readable
from pinot_connector.errors import EngineRefused, GrisError
from tests.support.clients import blocking_client_of
from tests.support.embedded import embedded
from tests.support.rings import needs
from tests.support.some import some
from tests.support.texts import NOT_UTF8, as_texts, state_type, write_rows, write_texts
from tests.support.world import copy

POLICY = """
epsilon_per: 8
delta: 1e-10
tables:
  visits:
    member: m
    data_version: the same with and without the one row
    measures: {distinct_members: true, events: {tau: 2, tau_is: clipped}}
    columns:
      m: {type: string}
      page: {type: string, group_by: true, delta: 1, filter: [in, not_in]}
      country: {type: string, group_by: true, filter: [in, not_in], domain: [de, fr], delta: 1}
      kind: {type: string, group_by: true, delta: 1}
"""
COUNT = "SELECT {by}, COUNT({what}) FROM visits {where} GROUP BY {by}"
QUESTIONS = [
    COUNT.format(by="page", what="DISTINCT m", where=""),
    COUNT.format(by="page", what="*", where=""),
    COUNT.format(by="kind", what="DISTINCT m", where="WHERE page = 'p1'"),
    COUNT.format(by="kind", what="DISTINCT m", where="WHERE page <> 'p1' AND country <> 'fr'"),
    COUNT.format(by="country", what="DISTINCT m", where=""),
    COUNT.format(by="kind", what="*", where="WHERE country IN ('de', 'fr')"),
]
ROWS = [
    {
        "m": f"m{i}",
        "page": f"p{i % 3}",
        "country": ("de", "fr")[i % 2],
        "kind": f"k{i % 2}",
        "note": f"what? {i}",
    }
    for i in range(400)
]
COLUMNS = list(ROWS[0])


@dataclass(frozen=True)
class _Services:
    dp: str
    budget: str


@pytest.fixture(scope="module")
@needs("process")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Services]:
    """Both services as processes."""
    directory = tmp_path_factory.mktemp("texts")
    with embedded(directory, POLICY) as running:
        yield _Services(running.dp_address, running.budget_address)


def _released(services: _Services, path: Path) -> list[PrivateResult]:
    """Returns the answers to all questions, asked by somebody who has asked nothing before."""
    with blocking_client_of(services, DuckDBEngine({"visits": path})) as client:
        return [replace(client.sql(sql), remaining=()) for sql in QUESTIONS]


@pytest.mark.parametrize("column", COLUMNS)
def test_one_row_changes_neither_outcome_nor_charge(services: _Services, tmp_path: Path, column: str) -> None:
    """Grouped by, filtered on, the member, or not in the policy at all: the same releases for the same price."""
    odd: dict[str, str | bytes] = {**ROWS[0], "m": "somebody", column: NOT_UTF8}
    write_rows(tmp_path / "without.parquet", ROWS)
    write_rows(tmp_path / "with.parquet", [*ROWS, odd])
    assert _released(services, tmp_path / "without.parquet") == _released(services, tmp_path / "with.parquet")


ENCODINGS: list[dict[str, object]] = [
    {},
    {"compression": "zstd", "data_page_version": "2.0", "row_group_size": 100},
    {"use_dictionary": False, "write_statistics": False},
    {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
    {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},
]
# Cut short, overlong, halves of surrogate pairs, beyond Unicode; and sound ones that look like a replacement.
PIECES = (
    b"\xe2\x82",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xff",
    b"?",
    b"\xef\xbf\xbd",
    "é€😀".encode(),
)


@pytest.mark.slow
@pytest.mark.parametrize("options", ENCODINGS)
def test_every_question_sees_the_same_rows(tmp_path: Path, options: dict[str, object]) -> None:
    """Whatever bytes are in the texts and however they are stored: the rows that Python can read, and no others."""
    rng = random.Random(17)
    columns = {name: [_odd_text(rng) for _ in range(700)] for name in ("page", "kind", "note")}
    readable = [row for row in zip(*columns.values(), strict=True) if all(map(_is_utf8, row))]
    assert 100 < len(readable) < 600
    write_texts(tmp_path / "visits.parquet", columns, **options)
    for place, name in enumerate(columns):
        expected = Counter(row[place].decode() for row in readable if row[place] is not None)
        assert expected == _counted(tmp_path / "visits.parquet", name)


def _odd_text(rng: random.Random) -> bytes | None:
    """Returns a text that is UTF-8 in nine of ten cases."""
    sound = rng.choice([b"a", b"b?", "é€😀".encode(), b"", None])
    if sound is None or rng.random() < 0.7:
        return sound
    return b"".join(rng.choices(PIECES, k=2))


def _is_utf8(text: bytes | None) -> bool:
    return text is None or text.decode(errors="replace").encode() == text


def _counted(path: Path, column: str) -> dict[object, int]:
    """Returns how many rows each value of a column has, as the engine counts them."""
    where = f"{column} IS NOT NULL AND length({column}) <= 1024 AND {column} <> 'nothing'"
    sql = f"SELECT {column}, COUNT(*) AS gris_count FROM visits WHERE {where} GROUP BY {column}"  # noqa: S608
    query = EngineQuery("visits", sql, (ExpectedColumn(column, ColumnType.STRING),), row_limit=1000)
    engine = DuckDBEngine({"visits": path})
    answer = engine.run(query, engine.data_version("visits"))
    engine.close()
    return dict(zip(answer.elements[0], answer.counts, strict=True))


def test_a_word_of_the_dictionary_that_no_row_uses_changes_nothing(tmp_path: Path) -> None:
    """Parquet keeps the words of a column beside its rows; DuckDB reads them all, and alone it fails at this one."""
    words = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1], pa.int32()), as_texts([b"a", b"b", NOT_UTF8]))
    pq.write_table(pa.table({"page": words}), tmp_path / "visits.parquet", store_schema=False)
    with pytest.raises(duckdb.Error, match="not valid UTF8"), duckdb.connect() as connection:
        connection.execute(f"SELECT DISTINCT page FROM '{tmp_path}/visits.parquet'")  # noqa: S608
    assert _counted(tmp_path / "visits.parquet", "page") == {"a": 2, "b": 1}


def test_each_version_of_a_file_has_its_own_rows_left_out(tmp_path: Path) -> None:
    """A row that is left out of one version is not left out of the next, where another stands in its place."""
    path = tmp_path / "visits.parquet"
    write_texts(path, {"page": [b"a", NOT_UTF8, b"c"]})
    engine = DuckDBEngine({"visits": path})
    assert ["a", "c"] == _pages(engine)
    write_texts(path, {"page": [b"a", b"b", b"c"]})
    assert ["a", "b", "c"] == _pages(engine)
    write_texts(path, {"page": [NOT_UTF8, b"b", b"c"]})
    assert ["b", "c"] == _pages(engine)
    engine.close()


def _pages(engine: DuckDBEngine) -> list[Element]:
    sql = "SELECT page, COUNT(*) AS gris_count FROM visits GROUP BY page ORDER BY page"
    query = EngineQuery("visits", sql, (ExpectedColumn("page", ColumnType.STRING),), row_limit=9)
    return engine.run(query, engine.data_version("visits")).elements[0]


@pytest.mark.parametrize("name", ["file_row_number", "FILE_ROW_NUMBER"])
def test_a_column_with_the_name_of_the_rows_number_is_refused_at_once(tmp_path: Path, name: str) -> None:
    """The engine could not tell which rows to leave out; it says so before the first question."""
    copy(f"SELECT 1 AS {name}, 'a' AS page", tmp_path / "visits.parquet")
    with pytest.raises(EngineRefused, match="no column file_row_number"):
        DuckDBEngine({"visits": tmp_path / "visits.parquet"})


@pytest.mark.parametrize("far", [[], [2**62]])
def test_a_member_of_a_type_that_one_row_can_break_is_refused_whatever_the_rows(
    tmp_path: Path, far: Sequence[int]
) -> None:
    """A moment too far away makes DuckDB fail; that a member is a moment is refused, not the row."""
    timestamps = pa.array([0, 1, *far], pa.int64()).cast(pa.timestamp("ms"))
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"m": timestamps, "page": as_texts([b"a"] * len(timestamps))}), path)
    sql = "SELECT page, COUNT(DISTINCT m) AS gris_count FROM visits GROUP BY page"
    page = ExpectedColumn("page", ColumnType.STRING)
    query = EngineQuery("visits", sql, (page,), row_limit=9, reads=(ReadColumn("M", None, None),))
    engine = DuckDBEngine({"visits": path})
    with pytest.raises(
        EngineRefused, match="the column M of the table is not of a type that members can have"
    ):
        engine.run(query, engine.data_version("visits"))
    engine.close()


class _Heard:
    """A connection that keeps what is said on it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.statements: list[str] = []

    def cursor(self) -> Any:
        return nullcontext(self)

    def execute(self, statement: str) -> Any:
        self.statements.append(statement)
        return self.connection.execute(statement)


def _words_of_the_statements(path: Path) -> list[str]:
    """Returns every word that the engine says about a file with a text that is not UTF-8, its own names among them."""
    write_texts(path, {"page": [b"a", NOT_UTF8]})
    with duckdb.connect() as connection:
        heard: Any = _Heard(connection)
        list_unreadable(heard, path, "unreadable")
    said = " ".join([*heard.statements, readable(path, "unreadable")])
    words = {word.casefold() for word in re.findall(r"[A-Za-z_]\w*", said)} - {ROW_NUMBER, "page"}
    assert {"stretch", "number", "rows", "length0", "is_odd0", "odd_stretches", "unreadable"} <= words
    return sorted(words)


@pytest.mark.slow
@pytest.mark.parametrize("as_spelled", [str.lower, str.upper])
@pytest.mark.parametrize("kind", ["text", "number", "struct"])
def test_columns_called_like_the_engines_own_names_change_nothing(
    tmp_path: Path, kind: str, as_spelled: Any
) -> None:
    """Each word of the engine's own statements as a column: the row is left out as if there were no such columns."""
    words = _words_of_the_statements(tmp_path / "plain.parquet")
    values: Any = {
        "text": as_texts([b"1", b"22", b"3"]),
        "number": pa.array([7, 8, 9]),
        "struct": pa.array([dict.fromkeys([*words, "page", ROW_NUMBER], 0)] * 3),
    }[kind]
    for name, page in ("without", [b"a", b"b", b"c"]), ("with", [b"a", NOT_UTF8, b"c"]):
        table = pa.table({"page": as_texts(page)} | {as_spelled(word): values for word in words})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    for name, expected in ("without", ["a", "b", "c"]), ("with", ["a", "c"]):
        engine = DuckDBEngine({"visits": tmp_path / f"{name}.parquet"})
        assert expected == _pages(engine)
        engine.close()


@pytest.mark.slow
@pytest.mark.parametrize(("page", "unseen"), [(b"b", 0), (NOT_UTF8, 1)])
@pytest.mark.parametrize("table", ["longer", "shorter", "odd_rows", "odd_stretches", "unreadable", "rows"])
def test_a_table_called_like_the_engines_own_is_asked_and_counted(
    tmp_path: Path, table: str, page: bytes, unseen: int
) -> None:
    """Neither what the engine makes is in the way of the table, nor the table in the way of the owner's count."""
    path = tmp_path / "t.parquet"
    write_texts(path, {"page": [b"a", page]})
    engine = DuckDBEngine({table: path})
    with engine.reading(table) as connection:
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(2 - unseen,)]  # noqa: S608
        assert count_unreadable(connection, path) == (unseen, {"page": unseen})
    engine.close()


# What the footer says of a column of bytes, and the bytes of one row that DuckDB then fails at.
JSON = bytes([0x25, 38])
BREAKABLE = {
    "not JSON": (JSON, b"not json"),
    "JSON that is not UTF-8": (JSON, b'"\xff secret"'),
    "a DECIMAL of too many bytes": (bytes([0x25, 10, 0x15, 4, 0x15, 60]), b"\x01secret" * 9),
}


def _write_breakable(path: Path, said: bytes, last: bytes) -> None:
    first = b"1"
    table = pa.table(
        {"page": as_texts([b"a"] * 3), "extra": pa.array([first, first, last], pa.binary())},
    )
    pq.write_table(table, path, store_schema=False, write_statistics=False)
    state_type(path, "extra", said)


@pytest.mark.slow
@pytest.mark.parametrize("case", BREAKABLE)
def test_a_column_that_one_row_can_break_is_not_read_unless_it_is_named(tmp_path: Path, case: str) -> None:
    """Not even to look for texts that are no UTF-8: no question that names other columns depends on it."""
    said, odd = BREAKABLE[case]
    path = tmp_path / "visits.parquet"
    for last in (b"1", odd):
        _write_breakable(path, said, last)
        engine = DuckDBEngine({"visits": path})
        assert _pages(engine) == ["a"]
        with engine.reading("visits") as connection:
            assert count_unreadable(connection, path) == (0, {"page": 0})
            assert connection.execute("SELECT count(*) FROM visits").fetchall() == [(3,)]
        engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("type_", [None, ColumnType.STRING])
@pytest.mark.parametrize("case", BREAKABLE)
def test_a_question_that_names_a_column_that_one_row_can_break_is_refused_whatever_the_rows(
    tmp_path: Path, case: str, type_: ColumnType | None
) -> None:
    """As the member or as a text: the file's schema decides, and the refusal carries nothing of DuckDB's."""
    said, odd = BREAKABLE[case]
    path = tmp_path / "visits.parquet"
    sql = "SELECT page, COUNT(DISTINCT extra) AS gris_count FROM visits GROUP BY page"
    page = ExpectedColumn("page", ColumnType.STRING)
    query = EngineQuery("visits", sql, (page,), row_limit=9, reads=(ReadColumn("extra", type_, None),))
    for last in (b"1", odd):
        _write_breakable(path, said, last)
        engine = DuckDBEngine({"visits": path})
        with pytest.raises(EngineRefused, match="the column extra of the table") as refused:
            engine.run(query, engine.data_version("visits"))
        assert (refused.value.__context__, refused.value.__cause__) == (None, None)
        engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["VARCHAR[]", "JSON[]", "STRUCT(a VARCHAR)", "JSON", "DECIMAL(4,2)[2]"])
def test_a_list_or_struct_or_json_is_no_member(tmp_path: Path, type_: str) -> None:
    """A list of a type that members can have is none itself."""
    path = tmp_path / "visits.parquet"
    copy(f"SELECT 'a' AS page, NULL::{type_} AS m", path)
    sql = "SELECT page, COUNT(DISTINCT m) AS gris_count FROM visits GROUP BY page"
    page = ExpectedColumn("page", ColumnType.STRING)
    query = EngineQuery("visits", sql, (page,), row_limit=9, reads=(ReadColumn("m", None, None),))
    engine = DuckDBEngine({"visits": path})
    with pytest.raises(EngineRefused, match="not of a type that members can have"):
        engine.run(query, engine.data_version("visits"))
    engine.close()


@pytest.mark.parametrize("stage", ["opening", "listing", "answering"])
def test_an_error_that_is_none_of_duckdbs_own_is_ours_and_carries_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """Python from 3.11.3 on fails to decode what DuckDB says of a row that is not UTF-8; the error holds the row."""
    path = tmp_path / "visits.parquet"
    write_texts(path, {"page": [b"a"]})
    _, row = BREAKABLE["JSON that is not UTF-8"]

    def decode_row(*_: object) -> None:
        row.decode()

    place = {
        "opening": "duckdb_files.require_alike",
        "listing": "duckdb_files.list_unreadable",
        "answering": "duckdb.require_readable",
    }[stage]
    engine = None if stage == "opening" else DuckDBEngine({"visits": path})
    monkeypatch.setattr(f"pinot_connector.engines.{place}", decode_row)
    with pytest.raises(GrisError) as raised:
        _pages(engine or DuckDBEngine({"visits": path}))
    assert (raised.value.__context__, raised.value.__cause__) == (None, None)


# The largest numbers that a file can hold; DuckDB fails to make microseconds of such a number of milliseconds.
ENDS = (0, 2**63 - 2, -(2**63))
IN_2026 = "\"at\" >= TIMESTAMP '2026-01-01 00:00:00' AND \"at\" < TIMESTAMP '2027-01-01 00:00:00'"


def _write_timestamps(path: Path, unit: str, last: int, *, with_statistics: bool) -> None:
    """Write two rows with timestamps in a unit, the first of them in 2026."""
    first = 1_774_778_400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    at = pa.array([first, last], pa.int64()).view(pa.timestamp(unit))
    table = pa.table({"page": pa.array(["a", "a"]), "at": at})
    pq.write_table(table, path, version="2.6", write_statistics=with_statistics)


def _in_2026(engine: DuckDBEngine) -> list[int]:
    """Return the count of the rows of 2026."""
    sql = f"SELECT page, COUNT(*) AS gris_count FROM visits WHERE {IN_2026} GROUP BY page"  # noqa: S608 - its own
    page = ExpectedColumn("page", ColumnType.STRING)
    reads = (ReadColumn("at", ColumnType.TIMESTAMP, 0),)
    query = EngineQuery("visits", sql, (page,), row_limit=9, reads=reads)
    return engine.run(query, engine.data_version("visits")).counts


@pytest.mark.slow
@pytest.mark.parametrize("with_statistics", [False, True])
@pytest.mark.parametrize("last", ENDS)
def test_timestamps_in_milliseconds_are_not_read_whatever_the_rows(
    tmp_path: Path, last: int, *, with_statistics: bool
) -> None:
    """One row's timestamp could fail every question that names the column; the file's schema decides instead."""
    path = tmp_path / "visits.parquet"
    _write_timestamps(path, "ms", last, with_statistics=with_statistics)
    engine = DuckDBEngine({"visits": path})
    assert _pages(engine) == ["a"]
    with pytest.raises(EngineRefused, match="column at of the table holds a type that one row can break"):
        _in_2026(engine)
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("last", ENDS)
def test_no_timestamp_in_a_finer_unit_fails_a_question(tmp_path: Path, unit: str, last: int) -> None:
    """Infinity, which DuckDB takes the largest numbers for, and times that no calendar has are rows like others."""
    path = tmp_path / "visits.parquet"
    _write_timestamps(path, unit, last, with_statistics=True)
    engine = DuckDBEngine({"visits": path})
    assert [1] == _in_2026(engine)
    engine.close()


@pytest.mark.parametrize("units", [("us", "ms", "us"), ("ms", "us", "ms")])
def test_each_version_of_a_file_has_its_own_columns_that_one_row_can_break(
    tmp_path: Path, units: Sequence[str]
) -> None:
    """An engine refuses timestamps in milliseconds where a version has them, and answers of those before and after."""
    path = tmp_path / "visits.parquet"
    _write_timestamps(path, units[0], ENDS[1], with_statistics=True)
    engine = DuckDBEngine({"visits": path})
    for unit in some(units):
        _write_timestamps(path, unit, ENDS[1], with_statistics=True)
        assert _pages(engine) == ["a"]
        if unit == "ms":
            with pytest.raises(EngineRefused, match="at of the table holds a type that one row can break"):
                _in_2026(engine)
        else:
            assert [1] == _in_2026(engine)
    engine.close()
