"""Reading pairs: the arrays are those of the definitions, whatever the file."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import csv
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.terms import ColumnType
from gris_cli.data.domain.canonical_pairs import Source
from gris_cli.data.domain.member_data import Pairs, read_pairs
from gris_cli.data.errors import InputError
from tests.support.bounding import kept
from tests.support.element_keys import element_keys
from tests.support.texts import NOT_UTF8, write_rows

SALT = b"salt"


def write(path: Path, select: str) -> Path:
    """Write the rows of a SELECT into a file of the format that its name says."""
    with duckdb.connect() as connection:
        if path.suffix == ".duckdb":
            connection.execute(f"ATTACH '{path}' AS target")
            connection.execute(f"CREATE TABLE target.pairs AS {select}")
        else:
            connection.execute(f"COPY ({select}) TO '{path}'")
    return path


def as_lists(pairs: Pairs) -> list[list[int]]:
    """Return each member's element codes."""
    bounds = pairs.contributions.offsets.tolist()
    codes = pairs.contributions.elements.tolist()
    return [codes[start:stop] for start, stop in pairwise(bounds)]


ROWS = (
    "SELECT * FROM (VALUES ('ben', 'b'), ('ada', 'ä'), ('ada', 'b'), ('ada', 'b'), ('ada', '😀'), ('ada', 'a'), "
    "('007', 'a')) AS t(who, what)"
)


@pytest.mark.parametrize("name", ["pairs.parquet", "pairs.csv", "pairs.duckdb"])
def test_every_format_gives_the_same_arrays(tmp_path: Path, name: str) -> None:
    """Distinct pairs, members by id, elements by code point, those of large members in the order of the reference."""
    path = write(tmp_path / name, ROWS)
    with read_pairs(Source(path, "who", "what", table="pairs"), typical=2, salt=SALT) as pairs:
        names = ["a", "b", "ä", "😀"]
        ordered = [names.index(each) for each in kept(SALT, "ada", names, 4)]
        assert [[0], ordered, [1]] == as_lists(pairs)
        assert element_keys(names).tolist() == pairs.keys.tolist()
        assert pairs.type is ColumnType.STRING
        assert ["b", "😀"] == pairs.named(np.array([3, 1]))


@pytest.mark.parametrize(
    ("value", "kind", "texts"),
    [
        ("v::BIGINT", ColumnType.INT64, ["-1", "10", "9"]),
        ("v::UTINYINT", ColumnType.INT64, ["10", "9"]),
        ("v > 9", ColumnType.BOOL, ["false", "true"]),
        ("DATE '2019-04-01' + v::INTEGER", ColumnType.DATE, ["2019-03-31", "2019-04-10", "2019-04-11"]),
    ],
)
def test_elements_that_are_no_texts_have_canonical_ones(
    tmp_path: Path, value: str, kind: ColumnType, texts: list[str]
) -> None:
    """Integers, truth values and days are read with their type and named by one text each."""
    least = 0 if "UTINYINT" in value else -1
    rows = f"SELECT 1 AS who, {value} AS what FROM (VALUES (-1), (9), (10)) AS t(v) WHERE v >= {least}"
    with read_pairs(
        Source(write(tmp_path / "p.parquet", rows), "who", "what"), typical=9, salt=SALT
    ) as pairs:
        assert kind is pairs.type
        assert texts == pairs.named(np.arange(len(texts)))


def test_an_arrow_table_is_read_as_it_lies_in_memory() -> None:
    """No file is needed."""
    arrow = pytest.importorskip("pyarrow", reason="pip install pyarrow")
    table = arrow.table({"who": ["a", "b"], "what": [3, 4]})
    with read_pairs(Source(table, "who", "what"), typical=9, salt=SALT) as pairs:
        assert [[0], [1]] == as_lists(pairs)


@pytest.mark.parametrize("null", ["(NULL, 'x')", "('ada', NULL)"])
def test_rows_without_member_or_element_are_refused_or_dropped_as_said(tmp_path: Path, null: str) -> None:
    """Nothing is dropped silently."""
    path = write(tmp_path / "p.parquet", f"SELECT * FROM (VALUES ('ben', 'b'), {null}) AS t(who, what)")
    with (
        pytest.raises(InputError, match="that such rows are left out"),
        read_pairs(Source(path, "who", "what"), typical=9, salt=SALT),
    ):
        pass
    with read_pairs(Source(path, "who", "what", drops_nulls=True), typical=9, salt=SALT) as pairs:
        assert [[0]] == as_lists(pairs)


@pytest.mark.parametrize("last", [0, 2**63 - 2, -(2**63)])
def test_no_value_of_another_column_stops_a_publication(tmp_path: Path, last: int) -> None:
    """DuckDB fails at what the footer says of milliseconds far away; questions do without that column, so do pairs."""
    path = tmp_path / "pairs.parquet"
    at = pa.array([0, last], pa.int64()).view(pa.timestamp("ms"))
    pq.write_table(pa.table({"who": ["ada", "ben"], "what": ["x", "x"], "at": at}), path, version="2.6")
    assert {("ada", "x"), ("ben", "x")} == pairs_of(path)


@pytest.mark.parametrize("names", [("at", "what"), ("who", "at")])
def test_pairs_of_a_column_that_one_value_can_break_are_refused_by_name(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    """Whatever its rows hold, as questions about it are."""
    path = tmp_path / "pairs.parquet"
    at = pa.array([0, 1], pa.int64()).view(pa.timestamp("ms"))
    pq.write_table(pa.table({"who": ["ada", "ben"], "what": ["x", "x"], "at": at}), path, version="2.6")
    with (
        pytest.raises(InputError, match=r"at: .*a type that one row can break"),
        read_pairs(Source(path, *names), typical=9, salt=SALT),
    ):
        pass


def pairs_of(path: Path) -> set[tuple[str, str]]:
    """Return the pairs of a file as texts."""
    with read_pairs(Source(path, "who", "what", drops_nulls=True), typical=9, salt=SALT) as pairs:
        found = pairs.names.connection.execute("SELECT member FROM members ORDER BY code").fetchall()
        return {
            (member, pairs.named(np.array([code]))[0])
            for (member,), codes in zip(found, as_lists(pairs), strict=True)
            for code in codes
        }


OTHERS = [("#ann", "'x'"), ("ben", "y#r"), ("cid", "'x'"), ("dan", "'it;s'"), ("eve", "007")]


def pairs_of_rows(path: Path, rows: list[tuple[str, str]], end: str) -> set[tuple[str, str]]:
    """Return the pairs of a file in which Python's csv module has written these rows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        separator = {".csv": ",", ".tsv": "\t"}[path.suffix]
        writer = csv.writer(file, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_MINIMAL)
        writer.writerow(("who", "what"))
        writer.writerows(rows)
    return pairs_of(path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_text_file_is_read_as_it_was_written(tmp_path: Path, suffix: str, end: str) -> None:
    """Quotes of another kind, signs of comments and other separators are characters."""
    assert set(OTHERS) == pairs_of_rows(tmp_path / f"p{suffix}", OTHERS, end)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("text", ["a", "a,b", "a;b\tc", "'a'", "#a", "\\", 'a"b', "", "x\r\ny,z", "| \t|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_one_members_row_never_changes_what_other_rows_mean(
    tmp_path: Path, suffix: str, text: str, end: str
) -> None:
    """Whatever a member has, before the rows of others or after them, these are read as they are without it."""
    for rows in ([*OTHERS, ("zoe", text)], [("zoe", text), *OTHERS]):
        # An empty text is NULL.
        assert {row for row in rows if row[1]} == pairs_of_rows(tmp_path / f"p{suffix}", rows, end)


@pytest.mark.parametrize("rows", [b"ada\n", b"ada,a,b\n", b"ada,\xff\n", b'ada,"a\n'])
def test_a_csv_file_with_rows_of_another_form_is_refused(tmp_path: Path, rows: bytes) -> None:
    """No row is skipped, filled up or read as well as it goes."""
    path = tmp_path / "p.csv"
    path.write_bytes(b"who,what\nben,b\n" + rows)
    with pytest.raises(InputError, match="expected data that can be read to their end"):
        pairs_of(path)


@pytest.mark.parametrize("content", [b"", b"who,who\na,b\n", b'"who,what\n'])
def test_a_csv_file_without_names_of_columns_is_refused(tmp_path: Path, content: bytes) -> None:
    """Which line names the columns is not guessed."""
    path = tmp_path / "p.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match="line 1: expected the names"):
        pairs_of(path)


def test_a_name_is_no_pattern(tmp_path: Path) -> None:
    """A file whose name has brackets or an asterisk is read, and no other."""
    write(tmp_path / "p1.parquet", "SELECT 'ada' AS who, 'other' AS what")
    for name in ("p[1].parquet", "p*.parquet", "p[1].csv"):
        path = write(tmp_path / name, "SELECT 'ada' AS who, 'this' AS what")
        assert {("ada", "this")} == pairs_of(path)


def test_no_rows_are_no_members(tmp_path: Path) -> None:
    """An empty file has neither members nor elements."""
    path = write(tmp_path / "p.parquet", f"{ROWS} LIMIT 0")
    with read_pairs(Source(path, "who", "what"), typical=9, salt=SALT) as pairs:
        assert 0 == pairs.contributions.member_count == pairs.contributions.element_count


def test_texts_that_no_answer_can_carry_are_left_out(tmp_path: Path) -> None:
    """1,025 characters are too many."""
    rows = "SELECT 'ada' AS who, repeat('x', n) AS what FROM (VALUES (1024), (1025)) AS t(n)"
    with read_pairs(
        Source(write(tmp_path / "p.parquet", rows), "who", "what"), typical=9, salt=SALT
    ) as pairs:
        assert ["x" * 1024] == pairs.named(np.array([0]))


def test_the_most_frequent_element_comes_first_where_asked(tmp_path: Path) -> None:
    """GW reads a member's elements in the order of their frequencies."""
    path = write(tmp_path / "p.parquet", ROWS)
    with read_pairs(Source(path, "who", "what"), typical=9, salt=SALT, by_frequency=True) as pairs:
        assert 1 == as_lists(pairs)[1][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (Source(Path("/nowhere/p.parquet"), "who", "what"), "there is no file"),
        (Source(Path(__file__), "who", "what"), "expected a file named"),
        (Source(Path("{file}"), "nobody", "what"), "there is no column nobody"),
        (Source(Path("{file}"), "who", "ratio"), "ratio: expected elements"),
        (Source(Path("{file}"), "ratio", "what"), "ratio: expected members"),
        (Source(Path("{garbage}"), "who", "what"), "the data file g.parquet is no Parquet file"),
    ],
)
def test_what_cannot_be_read_is_said_by_name(tmp_path: Path, source: Source, said: str) -> None:
    """Each fault names the file or the column and what was expected."""
    file = write(tmp_path / "p.parquet", "SELECT 'a' AS who, 'b' AS what, 0.5::DOUBLE AS ratio")
    garbage = tmp_path / "g.parquet"
    garbage.write_bytes(b"no parquet")
    path = Path(str(source.data).format(file=file, garbage=garbage))
    with pytest.raises(InputError, match=said), read_pairs(replace(source, data=path), typical=9, salt=SALT):
        pass


@pytest.mark.parametrize("column", ["who", "what", "note"])
def test_a_row_that_questions_leave_out_publishes_nothing_either(tmp_path: Path, column: str) -> None:
    """A text that is not UTF-8, of the member, the element or neither, does not stop a publication."""
    rows: list[dict[str, str | bytes]] = [
        {"who": "ada", "what": "a", "note": ""},
        {"who": "ben", "what": "b", "note": "", column: NOT_UTF8},
    ]
    write_rows(tmp_path / "pairs.parquet", rows)
    with read_pairs(Source(tmp_path / "pairs.parquet", "who", "what"), typical=2, salt=SALT) as pairs:
        assert [[0]] == as_lists(pairs)
        assert ["a"] == pairs.named(np.array([0]))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("ALTER TABLE pairs RENAME TO held; CREATE VIEW pairs AS FROM held", "pairs .* is a view"),
        (
            "ALTER TABLE pairs RENAME TO held; CREATE VIEW seen AS FROM held; CREATE VIEW pairs AS FROM seen",
            "pairs .* is a view",
        ),
        (
            "DROP TABLE pairs; CREATE TABLE pairs (who VARCHAR, what VARCHAR AS (upper(who)))",
            "pairs .* has a generated column",
        ),
        ("PRAGMA disable_checkpoint_on_shutdown; INSERT INTO pairs VALUES ('eve', 'z')", "write-ahead log"),
    ],
)
def test_rows_that_are_not_all_in_a_database_publish_nothing(tmp_path: Path, changed: str, said: str) -> None:
    """As no question is answered from them: they may be of another version than the file."""
    path = write(tmp_path / "pairs.duckdb", ROWS)
    with duckdb.connect(path) as connection:
        connection.execute(changed)
    with (
        pytest.raises(InputError, match=said),
        read_pairs(Source(path, "who", "what", table="pairs"), typical=2, salt=SALT),
    ):
        raise AssertionError("the pairs were read")
