"""CSV files as tables: the same answers as from Parquet, and no row that changes what another one means."""

from __future__ import annotations

from contextlib import closing
from datetime import date, datetime
from pathlib import Path

import pytest

from pinot_connector.engines.base import (
    ColumnType,
    EngineQuery,
    ExpectedColumn,
    ReadColumn,
    ReadValue,
    ValueType,
)
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import DataChanged, DataUnreadable, EngineRefused

TYPES = {"n": "BIGINT", "d": "DATE", "t": "TIMESTAMP", "b": "BOOLEAN", "x": "DOUBLE"}
ROWS = (
    "m,n,d,t,b,x,s\n"
    '1,07,2026-01-31,2026-01-31T10:30:00Z,true,1.5,"a, b"\n'
    "2,8.0,31.01.2026,2026-01-31,no,1e3,\n"
    '3,8.5,2026-02-30,yesterday,maybe,much,"say ""hi"""\n'
)


def written(folder: Path, text: str = ROWS, name: str = "rows.csv") -> Path:
    """Write a file."""
    (folder / name).write_text(text)
    return folder / name


def grouped(column: str, kind: ColumnType, *sums: ReadValue) -> EngineQuery:
    """Return how many rows each value of a column has."""
    summed = "".join(f', CAST(SUM("{each.name}") AS BIGINT) AS gris_sum_1' for each in sums)
    return EngineQuery(
        "rows",
        f'SELECT "{column}" AS e1, COUNT(*) AS gris_count{summed} FROM "rows" WHERE "{column}" IS NOT NULL '  # noqa: S608
        "GROUP BY 1 ORDER BY 1",
        (ExpectedColumn("e1", kind),),
        100,
        reads=(ReadColumn(column, kind, None),),
        sums=sums,
    )


def test_each_value_is_of_its_columns_type_or_null(tmp_path: Path) -> None:
    """Nothing is rounded, and nothing is read in more than one way; other columns are texts."""
    with (
        closing(DuckDBEngine({"rows": written(tmp_path)})) as engine,
        engine.reading("rows", TYPES) as connection,
    ):
        assert connection.execute('FROM "rows"').fetchall() == [
            ("1", 7, date(2026, 1, 31), datetime(2026, 1, 31, 10, 30), True, 1.5, "a, b"),
            ("2", 8, None, datetime(2026, 1, 31), False, 1000.0, None),
            ("3", None, None, None, None, None, 'say "hi"'),
        ]


def test_a_question_states_the_types(tmp_path: Path) -> None:
    """Those that the policy gives to its columns, whatever another question takes them for."""
    with closing(DuckDBEngine({"rows": written(tmp_path)})) as engine:
        version = engine.data_version("rows")
        numbers = engine.run(grouped("n", ColumnType.INT64), version)
        assert (numbers.elements, numbers.counts) == (([7, 8],), [1, 1])
        texts = engine.run(grouped("n", ColumnType.STRING), version)
        assert texts.elements == (["07", "8.0", "8.5"],)


@pytest.mark.parametrize(
    "line",
    ['4,"5', "4,5", "4,5,6,7,8,9,10,11"],
    ids=["open quote", "too few", "too many"],
)
def test_a_line_that_is_no_csv_refuses_the_file(line: str, tmp_path: Path) -> None:
    """Rather than take in the rows of others; the message repeats nothing of it."""
    with closing(DuckDBEngine({"rows": written(tmp_path, ROWS + line + "\n" + ROWS)})) as engine:
        query = grouped("n", ColumnType.INT64)
        with pytest.raises(DataUnreadable, match="has a line that is not CSV"):
            engine.run(query, engine.data_version("rows"))


def test_a_text_that_is_not_utf_8_refuses_the_file(tmp_path: Path) -> None:
    """As one that is no CSV."""
    path = written(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"a, b", b"a\xff"))
    with (
        closing(DuckDBEngine({"rows": path})) as engine,
        pytest.raises(DataUnreadable, match="not CSV in UTF-8"),
    ):
        engine.run(grouped("s", ColumnType.STRING), engine.data_version("rows"))


def test_a_long_text_of_one_member_refuses_nothing(tmp_path: Path) -> None:
    """It would decide whether questions about other columns have an answer."""
    line = f"4,7,,,,,{'s' * 5_000_000}\n"
    with closing(DuckDBEngine({"rows": written(tmp_path, ROWS + line)})) as engine:
        found = engine.run(grouped("n", ColumnType.INT64), engine.data_version("rows"))
    assert (found.elements, found.counts) == (([7, 8],), [2, 1])


@pytest.mark.parametrize("text", ["", "m,m\n1,2\n", "a,A\n1,2\n"])
def test_names_of_columns_are_needed(text: str, tmp_path: Path) -> None:
    """When the engine is made."""
    with pytest.raises(DataUnreadable, match="expected the names of the columns, each once"):
        DuckDBEngine({"rows": written(tmp_path, text)})


@pytest.mark.parametrize(("name", "separator"), [("rows.csv", ";"), ("rows.csv", "\t"), ("rows.tsv", "\t")])
def test_the_first_line_says_what_separates_columns(name: str, separator: str, tmp_path: Path) -> None:
    """No row of a member does."""
    path = written(tmp_path, f"m{separator}n\n1{separator}2\n", name)
    with closing(DuckDBEngine({"rows": path})) as engine:
        assert engine.run(grouped("n", ColumnType.INT64), engine.data_version("rows")).elements == ([2],)


def test_a_file_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    """Under another version; the old one is not answered from."""
    path = written(tmp_path)
    with closing(DuckDBEngine({"rows": path})) as engine:
        old = engine.data_version("rows")
        assert engine.run(grouped("n", ColumnType.INT64), old).elements == ([7, 8],)
        written(tmp_path, "m,n\n1,9\n")
        with pytest.raises(DataChanged):
            engine.run(grouped("n", ColumnType.INT64), old)
        assert engine.run(grouped("n", ColumnType.INT64), engine.data_version("rows")).elements == ([9],)


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """As with any other file."""
    with closing(DuckDBEngine({"rows": written(tmp_path)})) as engine, pytest.raises(EngineRefused):
        engine.run(grouped("nothing", ColumnType.INT64), engine.data_version("rows"))


def test_numbers_are_summed(tmp_path: Path) -> None:
    """In the type of the policy's value column."""
    query = grouped("b", ColumnType.BOOL, ReadValue("n", ValueType.INT64, None))
    with closing(DuckDBEngine({"rows": written(tmp_path)})) as engine:
        answer = engine.run(query, engine.data_version("rows"))
        assert (answer.elements, answer.sums) == (([False, True],), ([8, 7],))
