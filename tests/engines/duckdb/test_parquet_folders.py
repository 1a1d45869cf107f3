"""A folder or pattern of Parquet files as one table: the rows of one file, and no folder that one member makes."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinot_connector.engines import parquet_files
from pinot_connector.engines.base import ColumnType, EngineQuery, ExpectedColumn
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.parquet import all_rows
from pinot_connector.engines.parquet_files import files_of, table_path
from pinot_connector.errors import DataChanged, DataUnreadable, EngineError, EngineGone
from tests.support.world import write_small

ANY_BYTES = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no names that are not UTF-8")
VISITS = [(1, "a", "DE"), (2, "b", "DE"), (1, "b", "F R"), (3, "a", None)]


def write(folder: Path, members: list[int], pages: list[str] | None = None) -> Path:
    """Write a file of visits below a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    visits = pa.table({"member": members, "page": pa.array(pages or ["a"] * len(members), pa.string())})
    with (folder / "part-0.parquet").open("wb") as file:
        pq.write_table(visits, file)
    return folder / "part-0.parquet"


@contextmanager
def one_table() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database that has the visits in one table."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE visits (member BIGINT, page VARCHAR, country VARCHAR)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", VISITS)
        yield connection


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """A folder with one for each country, as DuckDB writes it."""
    with one_table() as connection:
        connection.execute(f"COPY visits TO '{tmp_path / 'visits'}' (FORMAT parquet, PARTITION_BY (country))")
    return tmp_path / "visits"


@contextmanager
def served(path: Path) -> Iterator[DuckDBEngine]:
    """Give an engine for which this is the table `visits`."""
    engine = DuckDBEngine({"visits": path})
    try:
        yield engine
    finally:
        engine.close()


def rows(path: Path, where: str = "true") -> list[tuple[object, ...]]:
    """Return what questions see of it."""
    with served(path) as engine, engine.reading("visits") as connection:
        return sorted(connection.execute(f"SELECT * FROM visits WHERE {where}").fetchall(), key=repr)


@pytest.mark.parametrize("pattern", ["", "*", "*/*.parquet", "**/*.parquet"])
def test_a_folder_or_pattern_has_the_rows_and_what_folders_say(visits: Path, pattern: str) -> None:
    """As DuckDB wrote them, NULL and a space included; and conditions on it leave the right rows."""
    for folder in (visits / "_temporary", visits / ".staging" / "country=XX"):
        write(folder, [99])
    (visits / "_SUCCESS").touch()
    (visits / "README.txt").touch()
    assert rows(visits / pattern) == sorted(VISITS, key=repr)
    for condition in (
        "country = 'F R'",
        "country IS NULL",
        "country = 'XX'",
        "country > 'DE' AND member = 1",
    ):
        with one_table() as connection:
            expected = connection.execute(f"FROM visits WHERE {condition}").fetchall()
        assert rows(visits / pattern, condition) == sorted(expected, key=repr)


def test_the_version_is_that_of_files_and_of_what_folders_say(visits: Path, tmp_path: Path) -> None:
    """The same elsewhere and by a pattern; another with another file, content, or country."""
    versions = set()
    shutil.copytree(visits, tmp_path / "x=y" / "copy")
    with served(visits) as engine:
        versions.add(engine.data_version("visits"))
        for same in (visits / "*/*.parquet", tmp_path / "x=y" / "copy"):
            with served(same) as other:
                assert versions == {other.data_version("visits")}
        added = write(visits / "country=XX", [7])
        versions.add(engine.data_version("visits"))
        added.parent.rename(visits / "country=YY")
        versions.add(engine.data_version("visits"))
        write(visits / "country=YY", [8])
        versions.add(engine.data_version("visits"))
        assert len(versions) == 4
        shutil.rmtree(visits / "country=YY")
        assert engine.data_version("visits") in versions


def test_a_file_that_is_added_meanwhile_is_never_in_an_answer_on_the_version_before(visits: Path) -> None:
    """Neither before the query nor before its confirmation."""
    counts = (ExpectedColumn("page", ColumnType.STRING),)
    query = EngineQuery("visits", "SELECT page, count(*) AS gris_count FROM visits GROUP BY 1", counts, 10)
    with served(visits) as engine:
        version = engine.data_version("visits")
        answer = engine.run(query, version)
        assert sum(answer.counts) == 4
        write(visits / "country=XX", [7])
        with pytest.raises(DataChanged):
            engine.confirm(query, answer)
        with pytest.raises(DataChanged):
            engine.run(query, version)
        assert sum(engine.run(query, engine.data_version("visits")).counts) == 5


def test_rows_with_a_text_that_is_no_utf8_are_left_out_of_the_file_that_they_are_in(tmp_path: Path) -> None:
    """By file and number, also in questions for which DuckDB reads one file only."""
    for country, page in (("AA", b"\xff"), ("BB", b"b"), ("CC", b"\xfe")):
        (tmp_path / f"country={country}").mkdir()
        odd = pa.StringArray.from_buffers(2, *pa.array([b"a", page], pa.binary()).buffers()[1:])
        pq.write_table(pa.table({"page": odd}), tmp_path / f"country={country}" / "part-0.parquet")
    assert rows(tmp_path) == [("a", "AA"), ("a", "BB"), ("a", "CC"), ("b", "BB")]
    assert rows(tmp_path, "country = 'BB'") == [("a", "BB"), ("b", "BB")]
    assert rows(tmp_path, "country = 'CC'") == [("a", "CC")]


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("country=%zz", "%zz"),
        ("country=a=b", "a=b"),
        ("country=", ""),
        ("country=%00", "\x00"),
        ("country=a\\b", "a\\b"),
        ("country=\n'", "\n'"),
        ("country=%C3%A9", "é"),
        ("country=NULL", "NULL"),
        ("country=%5B1%5D", "[1]"),
        ("country=%FF", ...),
        pytest.param("country=\udcff", ..., marks=ANY_BYTES),
        ("country=[1]", ...),
        ("country=a?b", ...),
        ("country=*", ...),
    ],
)
def test_no_folder_that_one_member_makes_ends_or_changes_what_is_said_of_others(
    visits: Path, folder: str, said: object
) -> None:
    """A text that is not UTF-8 is left out, as in a row; so are the characters of patterns beside it."""
    write(visits / folder, [7])
    if sys.platform != "darwin":
        # Beside this one DuckDB fails to look for a name with characters of patterns.
        write(visits / "country=\udcfe", [8])
    assert rows(visits) == sorted([*VISITS, *([] if said is ... else [(7, "a", said)])], key=repr)
    assert rows(visits, "country = 'DE'") == [(1, "a", "DE"), (2, "b", "DE")]


def test_files_that_are_not_one_table_are_refused_at_once_and_when_they_come(visits: Path) -> None:
    """By names, types, or order of columns; the error names the file and not its folder, which says what a row has."""
    with served(visits) as engine:
        other = visits / "country=secret"
        other.mkdir()
        for columns in ({"member": ["1"], "page": ["a"]}, {"page": ["a"], "member": [1]}, {"member": [1]}):
            pq.write_table(pa.table(columns), other / "late.parquet")
            expected = pytest.raises(DataUnreadable, match=r"late\.parquet has other columns")
            with expected as raised, engine.reading("visits"):
                pass
            assert "secret" not in str(raised.value)
            with pytest.raises(DataUnreadable, match="other columns"):
                DuckDBEngine({"visits": visits})


@pytest.mark.parametrize(
    ("folders", "column", "expected"),
    [
        (("a=1", "b=1"), "x", "folders say other columns"),
        (("a=1", ""), "x", "folders say other columns"),
        (("a=1/A=1",), "x", "one column twice"),
        (("a=1", "a=2"), "A", "have a column a"),
        (("=1",), "x", "or =VALUE"),
        (("a=1",), "filename", "have a column filename"),
        (("",), "File_Row_Number", "no column file_row_number"),
    ],
)
def test_folders_that_say_too_little_or_what_a_column_says_are_refused(
    tmp_path: Path, folders: tuple[str, ...], column: str, expected: str
) -> None:
    """Whatever rows there are."""
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({column: [1]}), tmp_path / folder / "part-0.parquet")
    with pytest.raises(EngineError, match=expected):
        DuckDBEngine({"visits": tmp_path})


def _linked_folder(visits: Path) -> None:
    (visits / "country=ES").symlink_to(visits / "country=DE")


def _dangling(visits: Path) -> None:
    (visits / "country=DE" / "gone.parquet").symlink_to(visits / "nowhere")


def _linked_file(visits: Path) -> None:
    (visits / "country=DE" / "latest.parquet").symlink_to(next((visits / "country=DE").glob("*.parquet")))


def _folder_of_that_name(visits: Path) -> None:
    os.mkfifo(visits / "country=DE" / "x.parquet")


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_linked_folder, "a link to a folder"),
        (_dangling, r"gone\.parquet cannot be read"),
        (_linked_file, "are one file with two names"),
        (_folder_of_that_name, r"x\.parquet is no file"),
    ],
)
@pytest.mark.parametrize("pattern", ["", "*"])
def test_no_file_is_left_out_without_a_word_or_counted_twice(
    visits: Path, spoil: Callable[[Path], None], expected: str, pattern: str
) -> None:
    """An answer is of all data, or there is none."""
    spoil(visits)
    with pytest.raises(EngineError, match=expected):
        DuckDBEngine({"visits": visits / pattern})


def test_a_folder_that_cannot_be_read_is_an_error(visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one is that another user has made; its name is not said."""
    scandir = os.scandir

    def refused(path: Any) -> Any:
        if "country=DE" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(DataUnreadable, match="Permission denied") as raised:
        files_of(visits)
    assert "DE" not in str(raised.value)


def test_folders_above_and_where_a_program_runs_change_nothing(
    visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a folder above says of the same column is not of the table; and paths may be relative."""
    above = tmp_path / "country=all" / "data[1]" / "visits"
    shutil.copytree(visits, above)
    for path in (above, above / "*", above.parent / "*/*/*.parquet"):
        assert rows(path) == sorted(VISITS, key=repr)
    monkeypatch.chdir(visits)
    for relative in (".", "*", "*/*.parquet"):
        with duckdb.connect() as connection:
            found = connection.execute(all_rows(files_of(Path(relative)))).fetchall()
        assert sorted(found, key=repr) == sorted(VISITS, key=repr)


@pytest.mark.parametrize(
    ("mark", "format_"),
    [
        ("_delta_log/0.json", "Delta Lake"),
        (".hoodie/hoodie.properties", "Hudi"),
        ("metadata/version-hint.text", "Iceberg"),
        ("metadata/v1.metadata.json", "Iceberg"),
    ],
)
def test_a_table_whose_folder_may_hold_rows_that_it_has_no_more_is_refused(
    visits: Path, mark: str, format_: str
) -> None:
    """They are in files of older versions, which only the format's own library knows."""
    (visits / mark).parent.mkdir()
    (visits / mark).touch()
    for path in (visits, visits / "*/*.parquet"):
        with pytest.raises(DataUnreadable, match=f"is a table of {format_}"):
            DuckDBEngine({"visits": path})


def test_a_folder_without_a_file_or_with_a_broken_one_or_too_many_is_refused(
    visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each by its own words; what broke is looked for among all files."""
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", visits / "*.orc"):
        with pytest.raises(EngineGone, match=r"has no file named \.parquet"):
            DuckDBEngine({"visits": path})
    broken = write(visits / "country=ZZ", [1]).with_name("broken.parquet")
    broken.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataUnreadable, match=r"broken\.parquet is a Parquet file that ends early"):
        DuckDBEngine({"visits": visits})
    broken.write_bytes(b"PAR1 damaged PAR1")
    with pytest.raises(DataUnreadable, match="folder visits has a Parquet file that is damaged"):
        DuckDBEngine({"visits": visits})
    monkeypatch.setattr(parquet_files, "MAX_FILES", 4)
    with pytest.raises(DataUnreadable, match="more than 4 files"):
        DuckDBEngine({"visits": visits})


def test_a_folder_may_be_called_as_a_database_and_a_file_as_a_pattern(tmp_path: Path) -> None:
    """What is there decides: Hive calls its folders `shop.db`, and a file may be called `a*.parquet`."""
    write(tmp_path / "shop.db", [1])
    write_small(tmp_path / "a*.parquet", 1)
    write_small(tmp_path / "ab.parquet", 5)
    assert rows(tmp_path / "shop.db") == [(1, "a")]
    assert len(rows(tmp_path / "a*.parquet")) == 1


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("visits.parquet", "visits.parquet"),
        ("data/visits/", "visits"),
        ("visits/country=DE/*.parquet", "visits"),
        ("visits/*/*.parquet", "visits"),
        ("visits/country=DE/day=2026-01-01", "visits"),
    ],
)
def test_a_table_is_called_by_its_file_or_folder_and_never_by_what_folders_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, name: str
) -> None:
    """Also from within a folder."""
    assert table_path(tmp_path / path).name == name
    (tmp_path / "visits" / "country=DE").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "visits" / "country=DE")
    assert table_path(Path("*.parquet")).name == "visits"
    assert os.fspath(table_path(Path("visits.parquet"))) == "visits.parquet"
