"""`gris convert`: one Parquet file of CSV, or of a folder of Parquet, with stated types and nothing guessed."""

from __future__ import annotations

import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gris_cli.__main__ import main
from tests.support.command_line import run_json, run_text

LINES = "Customer No.,Day,Pieces,Amount,seen,Größe\n7,2026-01-01,3,1.5,2026-01-01T10:00:00Z,M\n8,2026-01-02,,2e1,,\n"


def convert(source: Path | str, out: Path, *types: str) -> tuple[str, ...]:
    """Return the words of the command."""
    stated = [word for each in types for word in ("--type", each)]
    return ("convert", "--input", str(source), "--out", str(out), *stated)


def rows_of(path: Path) -> list[tuple[object, ...]]:
    """Return the rows of a Parquet file."""
    with duckdb.connect() as connection:
        return connection.read_parquet(str(path)).fetchall()


def test_csv_has_the_types_that_are_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Others are texts, what is empty is missing, and names become those that a policy can have."""
    (tmp_path / "a.csv").write_text(LINES)
    types = ("Day=date", "Pieces=int64", "Amount=decimal", "seen=timestamp")
    report = run_json(capsys, *convert(tmp_path / "a.csv", tmp_path / "a.parquet", *types))
    columns = {each["name"]: (each["type"], each["empty"]) for each in report["columns"]}
    assert {
        "customer_no": ("VARCHAR", 0),
        "Day": ("DATE", 0),
        "Pieces": ("BIGINT", 1),
        "Amount": ("DOUBLE", 0),
        "seen": ("TIMESTAMP", 1),
        "grosse": ("VARCHAR", 1),
    } == columns
    assert (2, 1) == (report["rows"], report["files"])
    first, second = rows_of(tmp_path / "a.parquet")
    assert ("7", datetime.date(2026, 1, 1), 3, 1.5, datetime.datetime(2026, 1, 1, 10), "M") == first
    assert ("8", datetime.date(2026, 1, 2), None, 20.0, None, None) == second


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_first_line_says_what_separates_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], separator: str
) -> None:
    """The line is the owner's; what members' rows hold is a part of a text, or too many columns."""
    source, out = tmp_path / "a.csv", tmp_path / "a.parquet"
    other = "," if separator != "," else ";"
    source.write_text(f"user{separator}page\n1{separator}x{other}y\n")
    run_json(capsys, *convert(source, out))
    assert [("1", f"x{other}y")] == rows_of(out)
    source.write_text(f"user{separator}page\n1{separator}x{separator}y\n")
    assert main(convert(source, tmp_path / "b.parquet")) == 2
    assert "too many columns" in capsys.readouterr().err


def test_texts_that_could_have_types_come_with_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the conversion, and by a draft of what it wrote; codes, keys and mixed texts stay texts."""
    lines = [
        f"{i % 40},{i / 4},2026-01-0{1 + i % 9} 10:00:00,2026-01-0{1 + i % 9},0{i % 7},{i % 5 or 'x'},{i % 3}"
        for i in range(200)
    ]
    source = tmp_path / "a.csv"
    source.write_text("\n".join(["customer_id,Amount,ordered_at,day,code,mixed,pieces", *lines, ""]))
    types = "--type Amount=decimal --type ordered_at=timestamp --type day=date --type pieces=int64"
    said = run_text(capsys, *convert(source, tmp_path / "a.parquet"))
    assert f"gris convert --input {source} --out {tmp_path}/a-typed.parquet {types}" in said
    policy = tmp_path / "policy.yaml"
    said = run_text(capsys, "policy", "draft", "--data", str(tmp_path / "a.parquet"), "--out", str(policy))
    command = f"gris convert --input {tmp_path}/a.parquet --out {tmp_path}/a-typed.parquet {types}"
    assert command in said
    assert command in policy.read_text()
    assert main(command.split()[1:]) == 0
    # Rows, and comments that tell of them, are for the owner alone.
    assert {0o600} == {
        (tmp_path / name).stat().st_mode & 0o777 for name in ("a-typed.parquet", "policy.yaml")
    }
    assert "gris convert" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "kind", "expected"),
    [
        ("a,b\n1,x\n2,1.5\n", "b=int64", "row 1, column b: expected int64; 2 rows of something else"),
        ("a,b\n1,2026-02-30\n", "b=date", "row 1, column b: expected date"),
        ("a,b\n1,99999999999999999999\n", "b=int64", "row 1, column b: expected int64"),
        ("a,b\n1,1735689600000\n", "b=timestamp", "such as 2026-01-31 or"),
        ("a,b\n1,1735689600000\n", "b=timestamp", "are of type int64, and a policy has their unit"),
        ("a,b\n1,nan\n", "b=decimal", "row 1, column b: expected decimal"),
        ('a,b\n1,"secret\n2,y\n', "a=string", "line 2, column b: the row has a quote where none may be"),
        ("a,b\n1\n", "a=string", "the row has too few columns"),
        ("a,b\n1,2\n", "c=string", "there is no column c; there are a, b"),
        ("a,b\n1,2\n", "a=number", "--type expects COLUMN=TYPE with one of string, int64"),
        ("A b,a_b\n1,2\n", "a_b=string", "two columns would be called a_b"),
    ],
)
def test_what_is_not_as_stated_ends_the_conversion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str, kind: str, expected: str
) -> None:
    """With row or line and column, without the value; and nothing is written."""
    (tmp_path / "a.csv").write_text(lines)
    assert main([*convert(tmp_path / "a.csv", tmp_path / "out.parquet", kind)]) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert "secret" not in said
    assert ["a.csv"] == [each.name for each in tmp_path.iterdir()]


def test_a_folder_of_parquet_becomes_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what the names of folders say as a column, and timestamps in microseconds, which engines read."""
    for country in ("DE", "FR"):
        folder = tmp_path / "part" / f"country={country}"
        folder.mkdir(parents=True)
        stamps = pa.array([datetime.datetime(2026, 1, 1)], pa.timestamp("ms"))
        pq.write_table(pa.table({"user_id": [1], "size": [2.0], "ts": stamps}), folder / "a.parquet")
    for number, source in enumerate((tmp_path / "part", tmp_path / "part" / "*" / "*.parquet")):
        out = tmp_path / f"{number}.parquet"
        assert "2 rows of 2 files" in run_text(capsys, *convert(source, out, "size=int64"))
        stamp = datetime.datetime(2026, 1, 1)
        assert [(1, 2, stamp, "DE"), (1, 2, stamp, "FR")] == sorted(rows_of(out))
    one = tmp_path / "part" / "country=FR" / "a.parquet"
    (unread,) = run_json(capsys, "policy", "draft", "--data", f"visits={one}")["tables"][0]["columns"][2:]
    assert "a timestamp in milliseconds" in unread["reason"]
    assert f"`gris convert --input {one} --out {one.with_stem('a-typed')}`" in unread["reason"]
    drafted = run_json(capsys, "policy", "draft", "--data", f"visits={tmp_path / '0.parquet'}")
    assert "ts" == drafted["tables"][0]["time"]


def test_files_that_differ_are_not_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By columns or types, or where a folder's name says what a column does; and a folder without Parquet is none."""
    (tmp_path / "d" / "a=1").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "d" / "x.parquet")
    pq.write_table(pa.table({"a": ["1"]}), tmp_path / "d" / "y.parquet")
    assert main([*convert(tmp_path / "d", tmp_path / "out.parquet")]) == 2
    assert f"{tmp_path}/d/y.parquet has other columns, or other types" in capsys.readouterr().err
    pq.write_table(pa.table({"a": [1]}), tmp_path / "d" / "a=1" / "y.parquet")
    (tmp_path / "d" / "y.parquet").unlink()
    assert main([*convert(tmp_path / "d", tmp_path / "out.parquet")]) == 2
    assert "folders say other columns" in capsys.readouterr().err
    (tmp_path / "d" / "x.parquet").unlink()
    assert main([*convert(tmp_path / "d", tmp_path / "out.parquet")]) == 2
    assert "have a column a, which is what their folders" in capsys.readouterr().err
    assert main([*convert(tmp_path / "empty", tmp_path / "out.parquet")]) == 2
    assert "has no file named .parquet" in capsys.readouterr().err
    assert not (tmp_path / "out.parquet").exists()
