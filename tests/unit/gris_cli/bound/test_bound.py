"""`gris bound`: copies are those of the pure reference, complete or not there at all, and bad input is refused."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import contextlib
import csv
import datetime
import json
import os
import pty
import random
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pytest

from dp_service.terms import GRID
from gris_cli.__main__ import main
from gris_cli.data.bound.bounded_copies import Bounded, BoundedCopyRequest
from gris_cli.data.bound.on_duckdb import bounded_copy
from gris_cli.data.bound.source import Columns
from gris_cli.data.errors import InputError
from pinot_connector.engines.bounded_copy import read_bounded_copy
from tests.support.bounding import weight
from tests.support.texts import NOT_UTF8, write_rows, write_times
from tests.support.zones import unknown_zone

Row = tuple[str, ...]
HEADER = ("who", "what", "where", "month", "note")


def run_statement(connection: duckdb.DuckDBPyConnection, statement: str, _what: str) -> None:
    """Run without progress."""
    connection.execute(statement)


def answer(query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def write_answer(path: Path, query: str) -> None:
    """Write the rows of a query as a Parquet file."""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def random_rows(count: int, seed: int) -> list[Row]:
    """Return rows of members with few and with many elements, with texts of every kind."""
    chosen = random.Random(seed)
    odd = ["", "a,b", 'say "x"', "two\nlines", "ä", "😀", "\N{LATIN SMALL LETTER E WITH ACUTE}", " "]
    return [
        (
            f"member {int(chosen.paretovariate(0.7)) % 60}",
            f"{chosen.randrange(40)}{chosen.choice(odd)}",
            chosen.choice(["FR", "DE", "é"]),
            f"2024-{chosen.randrange(1, 4):02}",
            str(number),
        )
        for number in range(count)
    ]


def write_csv(path: Path, rows: Sequence[Row], header: Row = HEADER) -> Path:
    """Write rows as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


def write(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows as a file of the format that its name says."""
    if path.suffix == ".parquet":
        write_rows(path, [dict(zip(HEADER, row, strict=True)) for row in rows])
        return path
    return write_csv(path, rows)


def read(path: Path) -> list[tuple[Any, ...]]:
    """Return the rows of a copy, in an order of their own."""
    return sorted(answer(f"SELECT * FROM read_parquet('{path}')"))


def reference(rows: Sequence[tuple[Any, ...]], typical: int) -> list[tuple[Any, ...]]:
    """Return the rows of a copy, by the pure definition, of rows of a member, a period and values of an element."""
    held: dict[tuple[Any, Any], set[tuple[Any, ...]]] = defaultdict(set)
    for member, period, *element in rows:
        held[member, period].add(tuple(element))
    return sorted(
        (member, period, *element, weight(typical * GRID**2, len(elements)))
        for (member, period), elements in held.items()
        for element in elements
    )


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("typical", [1, 3, 1000])
@pytest.mark.parametrize(
    "columns",
    [
        Columns("who", ("what",)),
        Columns("who", ("what", "where")),
        Columns("who", ("where", "what"), "month"),
    ],
    ids=str,
)
def test_a_copy_has_the_rows_of_the_reference(
    tmp_path: Path, suffix: str, typical: int, columns: Columns
) -> None:
    """One for each member and element, with the member's weight in each period, whatever the file's format."""
    rows = random_rows(2000, seed=typical)
    source, out = write(tmp_path / f"rows{suffix}", rows), tmp_path / "copy.parquet"
    made = bounded_copy(source, out, BoundedCopyRequest("visits", columns, typical), work=run_statement)
    places = [HEADER.index(name) for name in columns.elements]
    month = HEADER.index("month")
    given = [
        (row[0], row[month] if columns.period else "", *(row[place] for place in places)) for row in rows
    ]
    wanted = reference(given, typical)
    period = "month" if columns.period else "''"
    assert (
        sorted(answer(f"SELECT who, {period}, {', '.join(_quoted(columns.elements))}, weight FROM '{out}'"))
        == wanted
    )
    assert (made.rows, made.pairs) == (len(rows), len(wanted))
    assert made.members == len({row[0] for row in rows})
    assert made.members_bounded == len({row[0] for row in wanted if row[-1] < GRID})
    assert (made.members_bounded == 0) is (typical == 1000)


def _quoted(names: Sequence[str]) -> list[str]:
    return [f'"{name}"' for name in names]


_INSTANTS = """
    SELECT i % 3 AS who, 'x' || i % 50 AS what, {instant} AS at FROM range(600) t(i)
"""


@pytest.mark.slow
def test_no_zone_of_an_engine_decides_where_a_period_begins(tmp_path: Path) -> None:
    """Questions have Python's days: by others, a member of a copy could add twice as much in one."""
    source, out = (tmp_path / name for name in ("rows.parquet", "out.parquet"))
    starts = "unnest([TIMESTAMP '1960-03-01', TIMESTAMP '2023-10-20', TIMESTAMP '2024-03-01'])"
    write_answer(source, _INSTANTS.format(instant=f"{starts} + INTERVAL (i * 30) MINUTE"))
    with unknown_zone(tmp_path) as zone:
        columns = Columns("who", ("what",), "at", "day", zone)
        bounded_copy(source, out, BoundedCopyRequest("t", columns, 1), work=run_statement)
        rows = answer(f"SELECT who, \"at\", what FROM read_parquet('{source}')")
        wanted = reference([(who, _first_day(at, zone, "day"), what) for who, at, what in rows], 1)
        left = answer(f"SELECT who, \"at\", what, weight FROM read_parquet('{out}')")
        assert sorted((who, _first_day(at, zone, "day"), *rest) for who, at, *rest in left) == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instant", "zone"),
    [
        ("DATE '2024-02-20' + (i % 60)::INTEGER", ""),
        ("TIMESTAMP '2024-02-20 22:30:00' + INTERVAL (i * 145) MINUTE", "Europe/Berlin"),
        ("TIMESTAMPTZ '2024-02-20 22:30:00+00' + INTERVAL (i * 145) MINUTE", "America/New_York"),
        # The last of the day's nanoseconds, for the first row and some later ones.
        (
            "make_timestamp_ns(epoch_ns(TIMESTAMP '2024-02-20 23:00:00') - 300 + i * 145 * 60000000000)",
            "Europe/Berlin",
        ),
    ],
)
@pytest.mark.parametrize("calendar", ["day", "week", "month"])
def test_periods_of_a_calendar_begin_where_its_zone_says(
    tmp_path: Path, instant: str, zone: str, calendar: str
) -> None:
    """Every period of the column's days has weights of its own, and the copy says so."""
    source, out = tmp_path / "rows.parquet", tmp_path / "copy.parquet"
    write_answer(source, _INSTANTS.format(instant=instant))
    columns = Columns("who", ("what",), "at", calendar, zone)
    bounded_copy(source, out, BoundedCopyRequest("t", columns, 1), work=run_statement)
    rows = answer(f"SELECT who, \"at\", what FROM read_parquet('{source}')")
    wanted = reference([(who, _first_day(at, zone, calendar), what) for who, at, what in rows], 1)
    left = answer(f"SELECT who, \"at\", what, weight FROM read_parquet('{out}')")
    assert sorted((who, _first_day(at, zone, calendar), *rest) for who, at, *rest in left) == wanted
    assert read_bounded_copy(out).period == f"{calendar}(at{f', {zone}' if zone else ''})"
    assert read_bounded_copy(out).columns == ("who", "what", "at", "weight")


def _first_day(at: Any, zone: str, calendar: str) -> str:
    """Return the first day of the period, by Python's own calendar."""
    day = at
    if isinstance(at, datetime.datetime):
        aware = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
        day = aware.astimezone(ZoneInfo(zone)).date()
    if calendar == "week":
        day -= datetime.timedelta(day.weekday())
    return str(day.replace(day=1) if calendar == "month" else day)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (Columns("who", ("what",), "what", "month"), "different columns"),
        (Columns("who", ("where",), "what", "month"), "expected days or timestamps"),
        (Columns("who", ("where",), "at", "month"), "column at holds timestamps"),
        (Columns("who", ("where",), "day", "month", "UTC"), "column day holds days: expected no zone"),
        (Columns("who", ("where",), "a day", "month"), "letters, digits and underscores"),
        (Columns("who", ("where",), "month(day)"), "not as a calendar's periods are"),
    ],
)
def test_a_calendar_of_what_is_no_day_is_refused(tmp_path: Path, columns: Columns, expected: str) -> None:
    """So is a period column whose name a copy could not state without being read otherwise."""
    source = tmp_path / "rows.parquet"
    write_answer(
        source,
        "SELECT 'a' AS who, 'b' AS what, 'c' AS \"where\", TIMESTAMP '2024-01-01' AS at, DATE '2024-01-01' AS day, "
        "DATE '2024-01-01' AS \"a day\", 'x' AS \"month(day)\"",
    )
    with pytest.raises(InputError, match=re.escape(expected)):
        bounded_copy(
            source, tmp_path / "copy.parquet", BoundedCopyRequest("t", columns, 4), work=run_statement
        )


def test_columns_may_have_any_names(tmp_path: Path) -> None:
    """Those that the tool gives to tables and columns of its own too, and names that SQL would read otherwise."""
    source, out = tmp_path / "rows.parquet", tmp_path / "copy.parquet"
    columns = Columns("member", ("held", "value_0", 'the "salt"'), "period")
    write_answer(
        source,
        "SELECT 'ada' AS member, 'x' || i AS held, i AS value_0, 'y' AS \"the \"\"salt\"\"\", 'may' AS period, "
        "i AS pairs, i AS weight, i AS source_rows FROM range(9) t(i)",
    )
    made = bounded_copy(source, out, BoundedCopyRequest("t", columns, 4), work=run_statement)
    assert made.pairs == 9
    assert {(row[0], row[-1]) for row in read(out)} == {("ada", 66)}


def test_members_and_elements_may_be_numbers_and_days(tmp_path: Path) -> None:
    """They keep their types."""
    source, out = tmp_path / "rows.parquet", tmp_path / "copy.parquet"
    write_answer(
        source,
        "SELECT i % 3 AS who, DATE '2024-02-27' + (i % 20)::INTEGER AS day, i AS n FROM range(200) t(i)",
    )
    bounded_copy(source, out, BoundedCopyRequest("t", Columns("who", ("day",)), 4), work=run_statement)
    days = [datetime.date(2024, 2, 27) + datetime.timedelta(number) for number in range(20)]
    assert sorted(answer(f"SELECT who, day, weight FROM '{out}'")) == [
        (who, day, 44) for who in range(3) for day in days
    ]


def test_rows_of_a_later_period_change_no_earlier_row(tmp_path: Path) -> None:
    """A copy is appended to by the rows of new periods alone."""
    rows = random_rows(500, seed=4)
    columns, found = Columns("who", ("what",), "month"), []
    for months in (("2024-01", "2024-02"), ("2024-01", "2024-02", "2024-03")):
        source = write(tmp_path / "rows.parquet", [row for row in rows if row[3] in months])
        out = tmp_path / "copy.parquet"
        bounded_copy(source, out, BoundedCopyRequest("t", columns, 2), work=run_statement)
        found.append({row for row in read(out) if row[2] != "2024-03"})
    assert found[0] == found[1] != set()


def test_rows_of_a_member_change_no_row_of_another(tmp_path: Path) -> None:
    """So what a member changes in a copy are its own rows."""
    rows = random_rows(500, seed=5)
    one, columns, found = rows[0][0], Columns("who", ("what",), "month"), []
    for given in (rows, [row for row in rows if row[0] != one]):
        source, out = write(tmp_path / "rows.parquet", given), tmp_path / "copy.parquet"
        bounded_copy(source, out, BoundedCopyRequest("t", columns, 2), work=run_statement)
        found.append(read(out))
    assert [row for row in found[0] if row[0] != one] == found[1] != found[0]


def test_the_copy_says_how_it_was_bounded(tmp_path: Path) -> None:
    """In the metadata of the file, under one key."""
    source, out = write(tmp_path / "rows.csv", random_rows(20, 1)), tmp_path / "copy.parquet"
    with source.open("a") as stream:
        stream.write(",x,FR,2024-01,\r\nada,,FR,2024-01,\r\n")
    asked = BoundedCopyRequest("visits", Columns("who", ("what", "where"), "month"), 7, drops_nulls=True)
    made = bounded_copy(source, out, asked, work=run_statement)
    held = dict(answer(f"SELECT key, value FROM parquet_kv_metadata('{out}')"))
    assert json.loads(held[b"gris_bound"]) == {
        "table": "visits",
        "member": "who",
        "elements": ["what", "where"],
        "typical": 7,
        "period": "month",
        "rule": "weights/v1",
        "rows": made.pairs,
    }
    assert made.rows_without_values == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "columns", [Columns("who", ("what",)), Columns("who", ("what", "where"), "month")], ids=str
)
@pytest.mark.parametrize("typical", [1, 2, 1000])
def test_what_a_copy_says_is_read_again(tmp_path: Path, columns: Columns, typical: int) -> None:
    """With the number of rows that it has."""
    source, out = write(tmp_path / "rows.parquet", random_rows(300, 5)), tmp_path / "copy.parquet"
    asked = BoundedCopyRequest("visits", columns, typical)
    made = bounded_copy(source, out, asked, work=run_statement)
    read_again = read_bounded_copy(out)
    assert read_again == asked.statement(made)
    assert read_again.rows == len(read(out))
    assert read_again.columns == (*columns.needed, "weight")


@pytest.mark.slow
def test_two_million_pairs_are_bounded_in_little_memory(tmp_path: Path) -> None:
    """What does not fit goes to the disk and is removed."""
    source, out = tmp_path / "rows.parquet", tmp_path / "copy.parquet"
    write_answer(
        source,
        "SELECT 'member ' || (i % 9973) AS who, 'element ' || (i * 7919 % 20011) AS what FROM range(2000000) t(i)",
    )
    asked = BoundedCopyRequest("t", Columns("who", ("what",)), 20, memory="300MB")
    made = bounded_copy(source, out, asked, work=run_statement)
    assert made == Bounded(2_000_000, 0, 2_000_000, 9973, 9973)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []
    # Members have 200 or 201 elements.
    assert answer(f"SELECT DISTINCT weight FROM '{out}'") == [(31,)]


GOOD = b"who,what\nada,x\n"
WHAT = Columns("who", ("what",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", GOOD + b"ben\n", r"^line 3, column what: the row has too few columns$"),
        ("a.csv", GOOD + b"ben,y,secret\n", r"^line 3.*: the row has too many columns$"),
        ("a.csv", GOOD + b'"two\nlines",y\nben,\xff\xfe\n', r"^line 5, column what: the row holds a text"),
        ("a.csv", GOOD + b'ben,"secret"y\n', r"^line 3, column what: the row has a quote"),
        ("a.csv", GOOD + b'"two\nlines",y\n,secret\n', r"^line 5, column who: expected a value"),
        (
            "a.csv",
            GOOD + b"ben,\n",
            r"^line 3, column what: expected a value, or that such rows are left out$",
        ),
        ("a.csv", b"", r"^line 1: expected the names"),
        ("a.csv", b"who,who\n", r"^line 1: expected the names"),
        ("a.csv", b"who,that\nada,x\n", r"^there is no column what$"),
        ("a.parquet", b"no Parquet", r"^the data file a.parquet is no Parquet file$"),
        ("a.txt", GOOD, r"^expected a file named .parquet, .csv or .tsv"),
    ],
)
def test_bad_input_is_refused_where_it_is(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """By line and column, without a value; nothing is written, and what was there before stays."""
    source, out = tmp_path / name, tmp_path / "copy.parquet"
    source.write_bytes(content)
    out.write_bytes(b"before")
    with pytest.raises(InputError, match=message) as caught:
        bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2), work=run_statement)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    assert out.read_bytes() == b"before"
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([name, "copy.parquet"])


def test_rows_of_parquet_files_are_refused_by_number(tmp_path: Path) -> None:
    """Missing values by row and column, texts that are not UTF-8 by column."""
    source, out = tmp_path / "rows.parquet", tmp_path / "copy.parquet"
    write_answer(source, "SELECT * FROM (VALUES ('ada', 1), ('ben', NULL), (NULL, 3)) AS t(who, what)")
    with pytest.raises(
        InputError, match=r"^row 2, column what: expected a value, or that such rows are left out$"
    ):
        bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2), work=run_statement)
    write_rows(source, [{"who": "ada", "what": "x"}, {"who": NOT_UTF8, "what": "x"}])
    with pytest.raises(InputError, match=r"^column who: 1 rows hold a text that is not UTF-8$"):
        bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2), work=run_statement)
    write_answer(source, "SELECT 1.5::DOUBLE AS who, 'x' AS what")
    with pytest.raises(InputError, match=r"^column who: expected members"):
        bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2), work=run_statement)
    write_answer(source, "SELECT 'ada' AS who, 1.5::DOUBLE AS what")
    with pytest.raises(InputError, match=r"^column what: expected texts"):
        bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2), work=run_statement)
    assert not out.exists()


@pytest.mark.parametrize("stored", ["ms", "int96"])
@pytest.mark.parametrize("latest", [1_711_584_000_000, -(2**63)])
def test_a_type_that_one_row_can_break_is_refused_by_the_schema(
    tmp_path: Path, stored: str, latest: int
) -> None:
    """Where it is needed, whatever the rows hold; a column that the copy does not have is not read."""
    source, out = tmp_path / "rows.parquet", tmp_path / "copy.parquet"
    write_times(source, latest, stored)
    with pytest.raises(InputError, match=r"^column at: .* one row can break, .*TIMESTAMP\(MICROS\)$"):
        bounded_copy(
            source,
            out,
            BoundedCopyRequest("t", Columns("who", ("what",), "at", "day", "UTC"), 2),
            work=run_statement,
        )
    assert not out.exists()
    bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2), work=run_statement)
    assert read_bounded_copy(out).columns == ("who", "what", "weight")


@pytest.mark.parametrize("text", ["repeat('é', 257)", "'a' || chr(0) || 'b'"], ids=["long", "code 0"])
def test_an_element_that_pinot_would_cut_is_refused(tmp_path: Path, text: str) -> None:
    """Several elements of a member would become one, to which all their weights add up."""
    source, out = tmp_path / "rows.parquet", tmp_path / "copy.parquet"
    write_answer(source, f"SELECT 'ada' AS who, {text} AS what UNION ALL SELECT 'ada', repeat('é', 256)")
    with pytest.raises(InputError, match=r"^1 pairs have an element of more than 512 bytes"):
        bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2), work=run_statement)
    assert not out.exists()


@pytest.mark.parametrize("name", ["weight", "Weight"])
def test_a_column_that_is_called_as_the_weights_are_is_refused(tmp_path: Path, name: str) -> None:
    """A copy would have two of them; engines ignore case."""
    source = tmp_path / "rows.parquet"
    write_answer(source, f"SELECT 'ada' AS who, 1 AS {name}")
    with pytest.raises(InputError, match="a copy has a column weight of its own"):
        bounded_copy(
            source,
            tmp_path / "copy.parquet",
            BoundedCopyRequest("t", Columns("who", (name,)), 2),
            work=run_statement,
        )


def test_rows_without_values_are_dropped_if_asked(tmp_path: Path) -> None:
    """And counted."""
    source, out = tmp_path / "rows.csv", tmp_path / "copy.parquet"
    source.write_bytes(GOOD + b",y\nben,\nben,z\n")
    made = bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2, drops_nulls=True), work=run_statement)
    assert made == Bounded(4, 2, 2, 2, 0)
    assert read(out) == [("ada", "x", 100), ("ben", "z", 100)]


def test_a_file_without_rows_gives_a_copy_without_rows(tmp_path: Path) -> None:
    """With its columns."""
    source, out = write_csv(tmp_path / "rows.csv", []), tmp_path / "copy.parquet"
    made = bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2), work=run_statement)
    assert made == Bounded(0, 0, 0, 0, 0)
    assert read(out) == []


@pytest.mark.parametrize("at", ["weighting members", "writing"])
def test_an_input_that_changes_meanwhile_is_refused(tmp_path: Path, at: str) -> None:
    """The copy would be of neither version."""
    source, out = write(tmp_path / "rows.parquet", random_rows(50, 1)), tmp_path / "copy.parquet"
    other = write(tmp_path / "other.parquet", random_rows(60, 2))

    def replacing(connection: duckdb.DuckDBPyConnection, statement: str, what: str) -> None:
        if what == at:
            source.unlink()
            other.rename(source)
        connection.execute(statement)

    with pytest.raises(InputError, match=r"changed while it was read|read to its end"):
        bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2), work=replacing)
    assert not out.exists()


@pytest.mark.parametrize("at", ["weighting members", "writing"])
def test_what_is_interrupted_leaves_nothing(tmp_path: Path, at: str) -> None:
    """No half copy, and no files beside it."""
    source, out = write(tmp_path / "rows.parquet", random_rows(50, 1)), tmp_path / "copy.parquet"

    def interrupted(connection: duckdb.DuckDBPyConnection, statement: str, what: str) -> None:
        connection.execute(statement)
        if what == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bounded_copy(source, out, BoundedCopyRequest("t", WHAT, 2), work=interrupted)
    assert [each.name for each in tmp_path.iterdir()] == ["rows.parquet"]


def test_the_output_is_not_the_input(tmp_path: Path) -> None:
    """The owner's file is never replaced by its copy."""
    source = write(tmp_path / "rows.parquet", random_rows(50, 1))
    before = source.read_bytes()
    with pytest.raises(InputError, match="must not be the input"):
        bounded_copy(source, source, BoundedCopyRequest("t", WHAT, 2), work=run_statement)
    assert source.read_bytes() == before


def arguments(source: Path, out: Path, *more: str) -> list[str]:
    """Return a command line."""
    given = ["bound", "--input", str(source), "--member", "who", "--elements", "what,where", "--table", "t"]
    return [*given, "--typical", "2", "--out", str(out), *more]


def test_the_command_prints_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For people and as one JSON object; a pipe sees no progress."""
    source, out = write(tmp_path / "rows.csv", random_rows(500, 3)), tmp_path / "copy.parquet"
    assert main(arguments(source, out)) == 0
    printed = capsys.readouterr()
    assert "for the owner of the data, never for analysts" in printed.out
    assert printed.err == ""
    assert main(arguments(source, out, "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 500
    assert found["pairs"] == len(read(out))
    assert 0 < found["members_bounded"] < found["members"]


@pytest.mark.slow
@pytest.mark.usefixtures("starts_processes")
def test_a_terminal_sees_progress_on_standard_error(tmp_path: Path) -> None:
    """And standard output has the result alone."""
    source, out = tmp_path / "rows.parquet", tmp_path / "copy.parquet"
    write_answer(source, "SELECT i % 5000 AS who, 'x' || i AS what, 'y' AS where FROM range(600000) t(i)")
    terminal, side = pty.openpty()
    command = [sys.executable, "-m", "gris_cli", *arguments(source, out, "--json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=side) as process:
        os.close(side)
        shown = b""
        with contextlib.suppress(OSError):
            while block := os.read(terminal, 4096):
                shown += block
        assert process.stdout is not None
        printed = process.stdout.read()
    os.close(terminal)
    assert json.loads(printed)["pairs"] == 600_000
    for what in (b"weighting members", b"writing", b"100%"):
        assert what in shown


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--typical", "0"], "typical"),
        (["--typical", "-1"], "typical"),
        (["--out", "copy.csv"], "named .parquet"),
        (["--member", "nobody"], "--member: there is no column nobody"),
        (["--elements", "what,nowhere"], "--elements: there is no column nowhere"),
        (["--period", "nowhen"], "--period: there is no column nowhen"),
        (["--period", "who"], "--member, --elements, --period: expected different columns"),
        (["--elements", "who"], "--member, --elements: expected different columns"),
        (
            ["--table", "a b"],
            "--table: a policy names tables by ASCII letters, digits and underscores, not 'a b'",
        ),
        (["--input", "."], "--input: expected a file, and . is a directory"),
        (["--period", "all"], "must not be called all"),
        (["--table", ""], "expected a name"),
        (["--memory", "much"], "--memory: expected a size"),
        (["--input", "absent.csv"], "there is no file absent.csv"),
        (["--out", "no/such/folder/copy.parquet"], "No such file or directory"),
    ],
)
def test_wrong_usage_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    """With exit code 2."""
    source = write(tmp_path / "rows.csv", random_rows(20, 3))
    assert main([*arguments(source, tmp_path / "copy.parquet"), *more]) == 2
    assert message in capsys.readouterr().err
