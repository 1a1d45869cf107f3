"""`gris bound --engine spark`: the copy that one machine makes, complete or not at all."""

from __future__ import annotations

import datetime
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pytest
from pyspark.sql import SparkSession

from dp_service.queries.elements import microseconds_of, timestamp_of
from dp_service.queries.intervals import END_OF_TIMESTAMPS, FIRST_TIMESTAMP
from dp_service.queries.zone_offsets import zone_offsets
from gris_cli.__main__ import main
from gris_cli.data.bound.bounded_copies import Bounded, BoundedCopyRequest
from gris_cli.data.bound.local_times import local_time
from gris_cli.data.bound.on_duckdb import bounded_copy
from gris_cli.data.bound.on_spark import copied
from gris_cli.data.bound.source import Columns
from gris_cli.data.dialects import DUCKDB, SPARK, DataDialect
from gris_cli.data.errors import InputError
from pinot_connector.engines.bounded_copy import BoundedCopyError, read_bounded_copy
from pinot_connector.engines.spark.sessions import own_session
from tests.engines.spark.conftest import QUICK_JVM
from tests.support.texts import NOT_UTF8, write_rows
from tests.support.world import copy
from tests.support.zones import UNKNOWN, unknown_zone


def run_statement(connection: duckdb.DuckDBPyConnection, statement: str, _what: str) -> None:
    """Run without progress."""
    connection.execute(statement)


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    """Return the rows of a file, or of all files of a directory, in an order of their own; NaN is equal to NaN."""
    files = path / "*.parquet" if path.is_dir() else path
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT * FROM read_parquet('{files}')").fetchall()  # noqa: S608
    return sorted(found, key=repr)


def copied_by_both(
    spark: SparkSession, source: Path, asked: BoundedCopyRequest, folder: Path
) -> list[tuple[Bounded, list[str]]]:
    """Return what both copies kept: the counts, and all rows as texts. Their statements are the same."""
    first, second = folder / "first.parquet", folder / "second"
    made = bounded_copy(source, first, asked, work=run_statement)
    with own_session(spark) as own:
        made_on_spark = copied(own, str(source), str(second), asked)
    assert read_bounded_copy(first) == read_bounded_copy(second)
    return [
        (counts, list(map(repr, rows_of(path)))) for counts, path in ((made, first), (made_on_spark, second))
    ]


ODD = [
    "",
    " ",
    "a,b",
    "a\tb",
    "é",
    "e\u0301",
    "😀",
    "\uffff",
    "NaN",
    "null",
    "A",
    "a",
    "0",
    "00",
    "two\nlines",
]


def write_odd_rows(path: Path, count: int, seed: int) -> None:
    """Write rows of members with few and with many elements, with texts of every kind and missing values."""
    chosen = random.Random(seed)
    columns = [
        [chosen.choice([*ODD, None, *(f"m{each % 9}" for each in range(40))]) for _ in range(count)],
        [chosen.choice([*ODD, None, *(f"x{each}" for each in range(40))]) for _ in range(count)],
        [chosen.choice(["FR", "DE", "é", None]) for _ in range(count)],
        [f"2024-{chosen.randrange(1, 4):02}" for _ in range(count)],
        [chosen.choice(["", None, str(chosen.random())]) for _ in range(count)],
    ]
    with duckdb.connect() as connection:
        connection.execute(
            'CREATE TABLE rows AS SELECT unnest($1) AS who, unnest($2) AS what, unnest($3) AS "where", '
            "unnest($4) AS month, unnest($5) AS note",
            columns,
        )
        connection.execute(f"COPY rows TO '{path}' (FORMAT parquet)")


@pytest.mark.parametrize(
    ("columns", "typical"),
    [
        (Columns("who", ("what",)), 1),
        (Columns("who", ("where", "what"), "month"), 4),
        pytest.param(Columns("who", ("what",)), 4, marks=pytest.mark.nightly),
        pytest.param(Columns("who", ("where", "what"), "month"), 1, marks=pytest.mark.nightly),
    ],
    ids=str,
)
def test_both_make_the_same_copy(spark: SparkSession, tmp_path: Path, columns: Columns, typical: int) -> None:
    """The same rows of random data with odd texts and missing values, the same counts, the same statement."""
    source = tmp_path / "rows.parquet"
    write_odd_rows(source, 1500, typical)
    asked = BoundedCopyRequest("visits", columns, typical, drops_nulls=True)
    (made, rows), (made_on_spark, rows_on_spark) = copied_by_both(spark, source, asked, tmp_path)
    assert made_on_spark == made
    assert rows_on_spark == rows
    assert made.members_bounded
    assert made.rows_without_values


_TYPED = """
    SELECT (i % 7)::INTEGER AS who, DATE '1500-02-27' + (i % 20)::INTEGER AS day, i % 3 = 0 AS flag,
           i % 9 - 4 AS number,
           CASE WHEN i % 2 = 0 THEN 'nan'::DOUBLE ELSE -0.0 END AS price,
           TIMESTAMP '1500-01-01 00:00:00' + INTERVAL (i) HOUR AS at, i AS gris_rank, i AS member, 'x' AS "the `name`"
    FROM range(400) t(i)
"""


@pytest.mark.parametrize(
    "columns",
    [
        Columns("who", ("number",), "day", "week"),
        Columns("who", ("number",), "at", "month", UNKNOWN),
    ],
    ids=str,
)
def test_both_make_the_same_periods_of_a_calendar(
    spark: SparkSession, tmp_path: Path, columns: Columns
) -> None:
    """Of days, and of timestamps in a zone that neither engine needs to know."""
    modern = _TYPED.replace("1500-02-27", "2024-02-27").replace("1500-01-01", "2024-01-01")
    copy(modern.replace("(i) HOUR", "(i * 7) HOUR"), tmp_path / "rows.parquet")
    asked = BoundedCopyRequest("t", columns, 2)
    with unknown_zone(tmp_path):
        (made, rows), (made_on_spark, rows_on_spark) = copied_by_both(
            spark, tmp_path / "rows.parquet", asked, tmp_path
        )
    assert made_on_spark == made
    assert rows_on_spark == rows
    assert 0 < made.pairs < made.rows
    assert made.members_bounded


def test_clocks_show_on_both_what_they_show_in_python(spark: SparkSession) -> None:
    """At every change of the clocks of a zone where they change twice within weeks, and just before it."""
    name = "Africa/Casablanca"
    offsets = zone_offsets(FIRST_TIMESTAMP, END_OF_TIMESTAMPS, name)
    changes = [microseconds_of(each.until) for each in offsets if each.until is not None]
    times = [change + just for change in changes for just in (-1, 0)]
    times += [microseconds_of(FIRST_TIMESTAMP), microseconds_of(END_OF_TIMESTAMPS) - 1]
    beyond = [2**63 - 2, microseconds_of(FIRST_TIMESTAMP) - 1]
    ahead = {each: timestamp_of(each).astimezone(ZoneInfo(name)).utcoffset() for each in times}
    expected = {each: each + microseconds(ahead.get(each)) for each in times + beyond}
    with own_session(spark) as own:
        own.createDataFrame([(each,) for each in times + beyond], "time long").createOrReplaceTempView(
            "asked"
        )
        assert dict(map(tuple, own.sql(shown_of(SPARK, name)).collect())) == expected
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE asked AS SELECT unnest(?) AS time", [times + beyond])
        assert dict(connection.execute(shown_of(DUCKDB, name)).fetchall()) == expected


def shown_of(dialect: DataDialect, zone: str) -> str:
    """Return the query for what clocks show at the times of `asked`, all in microseconds."""
    shown = local_time(dialect, dialect.timestamp("time"), zone)
    return f"SELECT time, {dialect.microseconds(shown)} AS shown FROM asked"  # noqa: S608 - its own


def microseconds(ahead: datetime.timedelta | None) -> int:
    """Return how long it is, 0 for None."""
    return 0 if ahead is None else ahead // datetime.timedelta.resolution


@pytest.mark.parametrize("elements", [("day",), ("flag", "number"), ("number", "the `name`")])
def test_every_type_is_bounded_as_on_one_machine(
    spark: SparkSession, tmp_path: Path, elements: tuple[str, ...]
) -> None:
    """Numbers, days and truth values keep their types, and columns their names."""
    copy(_TYPED, tmp_path / "rows.parquet")
    asked = BoundedCopyRequest("t", Columns("who", elements), 3)
    (made, rows), (made_on_spark, rows_on_spark) = copied_by_both(
        spark, tmp_path / "rows.parquet", asked, tmp_path
    )
    assert made_on_spark == made
    assert rows_on_spark == rows
    assert made.members_bounded == 7


def test_a_table_without_rows_gives_a_copy_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    """With its columns and its statement."""
    copy("SELECT 'a' AS who, 'x' AS what WHERE false", tmp_path / "rows.parquet")
    asked = BoundedCopyRequest("t", Columns("who", ("what",)), 3)
    (made, rows), (made_on_spark, rows_on_spark) = copied_by_both(
        spark, tmp_path / "rows.parquet", asked, tmp_path
    )
    assert (made_on_spark, rows_on_spark) == (made, rows) == (Bounded(0, 0, 0, 0, 0), [])


@pytest.mark.parametrize("text", ["repeat('é', 257)", "'a' || chr(0) || 'b'"], ids=["long", "code 0"])
def test_an_element_that_pinot_would_cut_is_refused(spark: SparkSession, tmp_path: Path, text: str) -> None:
    """As on one machine."""
    copy(f"SELECT 1 AS who, {text} AS what UNION ALL SELECT 1, repeat('é', 256)", tmp_path / "rows.parquet")
    asked = BoundedCopyRequest("t", Columns("who", ("what",)), 2)
    with own_session(spark) as own, pytest.raises(InputError, match=r"^1 pairs have an element of more than"):
        copied(own, str(tmp_path / "rows.parquet"), str(tmp_path / "copy"), asked)


def test_what_spark_makes_of_a_copy_is_none(spark: SparkSession, tmp_path: Path) -> None:
    """Spark carries the statement along with the column, to more rows and to fewer; their number gives it away."""
    copy("SELECT i % 5 AS who, i AS what FROM range(99) t(i)", tmp_path / "rows.parquet")
    asked = BoundedCopyRequest("t", Columns("who", ("what",)), 3)
    with own_session(spark) as own:
        copied(own, str(tmp_path / "rows.parquet"), str(tmp_path / "copy"), asked)
        bounded = own.read.parquet(str(tmp_path / "copy"))
        others = own.read.parquet(str(tmp_path / "rows.parquet")).selectExpr("*", "100 AS weight")
        bounded.unionAll(others).write.parquet(str(tmp_path / "more"))
        bounded.where("who = 1").write.parquet(str(tmp_path / "fewer"))
    for name in ("more", "fewer"):
        with pytest.raises(BoundedCopyError, match="states 99 rows and has"):
            read_bounded_copy(tmp_path / name)


def test_a_copy_of_a_copy_states_its_own_bound(spark: SparkSession, tmp_path: Path) -> None:
    """Whichever column the first one was made for."""
    copy("SELECT i % 5 AS who, i % 20 AS what FROM range(400) t(i)", tmp_path / "rows.parquet")
    with own_session(spark) as own:
        first = BoundedCopyRequest("t", Columns("what", ("who",)), 15)
        copied(own, str(tmp_path / "rows.parquet"), str(tmp_path / "first"), first)
        second = BoundedCopyRequest("t", Columns("who", ("what",)), 2)
        copied(own, str(tmp_path / "first"), str(tmp_path / "second"), second)
    assert (
        read_bounded_copy(tmp_path / "second").member,
        read_bounded_copy(tmp_path / "second").typical,
    ) == ("who", 2)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 'a' AS who, unnest(['x', NULL, NULL]) AS what", "column what: 2 rows have no value"),
        ("SELECT 1.5::DOUBLE AS who, 'x' AS what", "column who: expected members"),
        ("SELECT 'a' AS who, DATE '9999-12-31' + 1 AS what", "column what: 1 rows hold a day outside"),
    ],
)
def test_bad_input_is_refused_by_column(
    spark: SparkSession, tmp_path: Path, query: str, message: str
) -> None:
    """Nothing is written."""
    copy(query, tmp_path / "rows.parquet")
    asked = BoundedCopyRequest("t", Columns("who", ("what",)), 2)
    with own_session(spark) as own, pytest.raises(InputError, match=message):
        copied(own, str(tmp_path / "rows.parquet"), str(tmp_path / "copy"), asked)
    assert [each.name for each in tmp_path.iterdir()] == ["rows.parquet"]


def test_texts_that_are_no_utf8_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """In any column, as on one machine."""
    write_rows(tmp_path / "rows.parquet", [{"who": "a", "what": "x", "note": NOT_UTF8}])
    asked = BoundedCopyRequest("t", Columns("who", ("what",)), 2)
    with (
        own_session(spark) as own,
        pytest.raises(InputError, match="column note: 1 rows hold a text that is not"),
    ):
        copied(own, str(tmp_path / "rows.parquet"), str(tmp_path / "copy"), asked)


def test_wrong_places_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """CSV, nothing at all, an output that is there already; what is there stays."""
    copy("SELECT 'a' AS who, 'x' AS what", tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("who,what\na,x\n")
    (tmp_path / "copy").mkdir()
    asked = BoundedCopyRequest("t", Columns("who", ("what",)), 2)
    with own_session(spark) as own:
        for source, out, message in (
            ("rows.csv", "new", "CSV is read on one machine only"),
            ("absent.parquet", "new", "nothing to read at"),
            ("rows.parquet", "copy", "there is something at the output already"),
        ):
            with pytest.raises(InputError, match=message):
                copied(own, str(tmp_path / source), str(tmp_path / out), asked)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy", "rows.csv", "rows.parquet"]


@pytest.mark.usefixtures("starts_processes")
def test_the_command_starts_a_spark_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """From the flags to the directory; `spark` only says that there is Java."""
    copy("SELECT i % 5 AS who, i AS what FROM range(99) t(i)", tmp_path / "rows.parquet")
    named = [
        "--input",
        str(tmp_path / "rows.parquet"),
        "--member",
        "who",
        "--elements",
        "what",
        "--table",
        "t",
    ]
    asked = ["--typical", "3", "--out", str(tmp_path / "copy"), "--engine", "spark", "--spark", "local[1]"]
    # As an administrator may have set them: the usual 200 partitions would take a minute.
    settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"} | QUICK_JVM
    (tmp_path / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in settings.items())
    )
    done = subprocess.run(
        [sys.executable, "-m", "gris_cli", "bound", *named, *asked, "--json"],
        env={**os.environ, "SPARK_CONF_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, "" if done.returncode == 0 else done.stderr)
    assert json.loads(done.stdout)["pairs"] == 99
    assert read_bounded_copy(tmp_path / "copy").typical == 3
    assert spark.range(1).count() == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--spark", "sc://localhost"], "Spark Connect cannot put a finished copy"),
        (["--memory", "3GB"], "--memory is of --engine duckdb"),
    ],
)
def test_flags_that_spark_cannot_have_are_refused(
    capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    """Before any Spark is started."""
    named = [
        "--input",
        "rows.parquet",
        "--member",
        "who",
        "--elements",
        "what",
        "--table",
        "t",
        "--typical",
        "3",
    ]
    assert main(["bound", *named, "--out", "copy", "--engine", "spark", *more]) == 2
    assert message in capsys.readouterr().err
