"""`gris check --data` for columns that are summed: what is left out, what bounds change, and stated sizes."""

from __future__ import annotations

import datetime
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.queries.policy import parse_policy
from gris_cli.__main__ import main
from gris_cli.data.errors import InputError
from gris_cli.data.policy.data import require_kept
from gris_cli.data.policy.promises import counted
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.command_line import run_json

POLICY = """
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  spending:
    member: m
    contributions:
      {bound: in_query, units: 10, sums: {max_members: 3, max_rows: 9}}
    measures: {distinct_members: true}
    columns:
      m: {type: string}
      shop: {type: string, group_by: true, typical: 2}
    values:
      amount: {type: decimal, quantum: 0.5, lower: 0, upper: 10, row_lower: -2, row_upper: 8}
      pieces: {type: int64, lower: 0, upper: 5, nulls: keep, null_value: 1}
"""
# Of ada the total in a is 8 + 8 = 16, and in b -2: rows are clamped first. 8.2 is rounded to 8, and 8.25 to 8.5.
ROWS = [
    ("ada", "a", 30.0, 1),
    ("ada", "a", 8.25, 1),
    ("ada", "b", -9.0, 9),
    ("bob", "a", 8.2, None),
    ("bob", "a", None, 2),
    ("bob", "b", float("nan"), 2),
    ("eve", None, 3.0, 2),
    (None, "a", 99.0, 99),
]


def _check(
    folder: Path, capsys: pytest.CaptureFixture[str], rows: list[tuple[Any, ...]]
) -> tuple[int, Any, str]:
    """Check the policy on rows; return the exit code, the report as JSON, and as text."""
    policy, data = folder / "policy.yaml", folder / "spending.parquet"
    policy.write_text(POLICY)
    columns = dict(zip(("m", "shop", "amount", "pieces"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), data)
    command = ["check", str(policy), "--data", f"spending={data}"]
    code = main([*command, "--json"])
    (reported,) = json.loads(capsys.readouterr().out)["data"]
    assert main(command) == code
    return code, reported, " ".join(capsys.readouterr().out.split())


def test_the_owner_is_told_what_bounds_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of rows and of totals, by each column; rows of nobody and without a number count in neither."""
    code, reported, text = _check(tmp_path, capsys, ROWS)
    assert code == 0
    found = {
        (each["column"], each["by"]): (each["counted"], each["below"], each["above"])
        for each in reported["clamped"]
    }
    assert found == {
        ("amount", None): (5, 1, 2),
        ("amount", ""): (3, 0, 1),
        ("amount", "shop"): (3, 1, 1),
        # A missing number counts as 1.
        ("pieces", None): (7, 0, 1),
        ("pieces", ""): (3, 0, 1),
        ("pieces", "shop"): (4, 0, 0),
    }
    left_out = {
        each["column"]: each["rows"] for each in reported["left_out"] if each["of"] == "questions that sum it"
    }
    assert left_out == {"amount": 2}
    assert (
        "3 of 5 rows (60 %) count with an end of the bounds of amount: 1 with the lower, 2 with the upper; of what "
        "these rows add up to, signs aside, the lower changes 12 %, the upper 38.1 %"
    ) in text
    assert "2 of 3 member totals by shop (66.7 %)" in text
    assert (
        "of what these member totals add up to, signs aside, the lower changes 7.69 %, the upper 23.1 %"
        in text
    )
    of_rows, _, by_shop, *_ = reported["clamped"]
    amounts = [tuple(each[key] for key in ("size", "raised_by", "lowered_by")) for each in (of_rows, by_shop)]
    assert amounts == [pytest.approx((58.45, 7.0, 22.25)), (26.0, 2.0, 6.0)]


def test_a_column_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a file is damaged, for example; nothing of what DuckDB says is shown."""
    _check(tmp_path, capsys, ROWS)
    data = tmp_path / "spending.parquet"
    held = pq.ParquetFile(data).metadata.row_group(0).column(3)
    content = bytearray(data.read_bytes())
    begins = held.dictionary_page_offset or held.data_page_offset
    content[begins : begins + held.total_compressed_size] = b"\xff" * held.total_compressed_size
    data.write_bytes(content)
    assert main(["check", str(tmp_path / "policy.yaml"), "--data", f"spending={data}"]) == 2
    said = capsys.readouterr().err
    assert "--data spending: expected values of the column pieces that can be read and compared" in said


def test_few_heads_may_hold_much_of_the_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both shares are stated: 3 of 100 members, and the part of the sum that they lose."""
    rows = [(f"m{number}", "a", 14.0 if number < 3 else 1.0, 1) for number in range(100)]
    _, _, text = _check(tmp_path, capsys, rows)
    assert (
        "3 of 100 rows (3 %) count with an end of the bounds of amount: 0 with the lower, 3 with the upper; "
        in text
    )
    assert "these rows add up to, signs aside, the lower changes 0 %, the upper 12.9 %" in text


@pytest.mark.parametrize("amount", [1e308, 0.0])
def test_numbers_without_a_sum_that_can_be_shared_have_no_shares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], amount: float
) -> None:
    """Beyond all doubles, or nothing at all: the heads are counted all the same."""
    rows = [(f"m{number}", "a", amount, 0) for number in range(3)]
    _, _, text = _check(tmp_path, capsys, rows)
    assert "of 3 rows" in text
    assert "of what these rows add up to" not in text


@pytest.mark.slow
def test_a_table_that_is_larger_than_stated_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, and such a file is not served: sums could be inexact."""
    code, reported, text = _check(tmp_path, capsys, ROWS)
    sizes = {each["key"]: (each["found"], each["is_kept"]) for each in reported["promises"]}
    assert (code, sizes) == (
        0,
        {"contributions.sums.max_members": (3, True), "contributions.sums.max_rows": (8, True)},
    )
    assert "contributions.sums.max_rows 9: the table has 8 rows; kept by these data" in text
    code, reported, text = _check(tmp_path, capsys, [*ROWS, ("zoe", "a", 1.0, 1), ("zoe", "b", 1.0, 1)])
    assert (code, [each["is_kept"] for each in reported["promises"]]) == (1, [False, False])
    assert "BROKEN, contributions.sums.max_members 3: the table has 4 members" in text
    policy = parse_policy(POLICY)
    (table,) = policy.tables
    with closing(DuckDBEngine({"spending": tmp_path / "spending.parquet"})) as engine:
        assert [each.found for each in counted(engine, table, policy.currency).promises] == [4, 10]
    with pytest.raises(InputError, match="larger than the policy promises"):
        require_kept(table, tmp_path / "spending.parquet")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"m": ["a"], "shop": ["a"], "amount": [1.0]}, "expected a column pieces in the data"),
        (
            {"m": ["a"], "shop": ["a"], "amount": ["1"], "pieces": [1]},
            "the column amount to be of the policy's type, decimal, to be summed; the data have VARCHAR",
        ),
    ],
)
def test_a_value_column_that_cannot_be_summed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: dict[str, list[object]], expected: str
) -> None:
    """One that is missing, and one of another type: wrong usage, as of other columns."""
    policy, data = tmp_path / "policy.yaml", tmp_path / "spending.parquet"
    policy.write_text(POLICY)
    pq.write_table(pa.table(columns), data)
    assert main(["check", str(policy), "--data", f"spending={data}"]) == 2
    assert expected in " ".join(capsys.readouterr().err.split())


QUANTILES = """
epsilon_per: 0.15
delta: 1e-10
tables:
  spending:
    member: m
    measures: {distinct_members: true}
    columns:
      m: {type: string}
      shop: {type: string, group_by: true}
    values:
      amount: {type: decimal, quantum: 0.5, grid: {scale: linear, from: 0, to: 10, cells: 5},
               row_lower: -2, row_upper: 8}
"""


def test_the_owner_sees_what_a_grid_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How many rows, and how many members' totals, count with an end: of all, and by column."""
    policy, data = tmp_path / "policy.yaml", tmp_path / "spending.parquet"
    policy.write_text(QUANTILES)
    columns = dict(zip(("m", "shop", "amount", "pieces"), map(list, zip(*ROWS, strict=True)), strict=True))
    pq.write_table(pa.table(columns), data)
    stated = run_json(capsys, "check", policy, "--data", f"spending={data}")
    assert stated["tables"][0]["quantiles"][0]["cells"] == 5
    (reported,) = stated["data"]
    found = [tuple(each[key] for key in ("by", "counted", "below", "above")) for each in reported["clamped"]]
    # Of ada 8 + 8 - 2, of bob 8, of eve 3: one is beyond the last value of the grid, 9.5.
    assert found == [(None, 5, 1, 2), ("", 3, 0, 1), ("shop", 3, 1, 1)]
    wrong = policy.read_text().replace("type: decimal, quantum: 0.5", "type: int64")
    (table,) = parse_policy(wrong).tables
    with pytest.raises(InputError, match="the column amount to be of the policy's type, int64"):
        require_kept(table, data)


GRID = "grid: {scale: linear, from: 0, to: 8, cells: 4}"
BOTH = f"""{POLICY.replace("row_upper: 8}", f"row_upper: 8, {GRID}}}")}
      seen: {{type: date, grid: {{scale: dates, from: 2025-01-01, to: 2025-01-15, step: 7}}}}
"""


def test_days_are_shown_as_days_and_what_bounds_are_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column of both blocks is reported twice, and days are not summed."""
    policy, data = tmp_path / "policy.yaml", tmp_path / "spending.parquet"
    policy.write_text(BOTH)
    days = [datetime.date(2024, 12, 31), datetime.date(2025, 2, 1), None]
    columns = {
        "m": ["a", "b", "c"],
        "shop": ["a"] * 3,
        "amount": [1.0, 2.0, 30.0],
        "pieces": [1] * 3,
        "seen": days,
    }
    pq.write_table(pa.table(columns), data)
    command = ["check", str(policy), "--data", f"spending={data}"]
    assert main(command) == 0
    text = " ".join(capsys.readouterr().out.split())
    for line in (
        "seen: among 2 public cells from 2025-01-01 to 2025-01-14; ",
        "seen │ 1 │ no day that can be in a cell │ questions for its quantiles",
        "1 of 3 member totals of all rows (33.3 %) count with an end of the bounds of amount in quantiles",
        "1 of 3 rows (33.3 %) count with an end of the bounds of amount: 0 with the lower, 1 with the upper; of what",
        "count with an end of the bounds of amount in quantiles: 0 with the lower, 1 with the upper clamped",
        "0 of 3 member totals of all rows (0 %) count with an end of the bounds of amount: 0",
    ):
        assert line in text, line
    seen = run_json(capsys, *command)["tables"][0]["quantiles"][1]
    assert (seen["lower"], seen["upper"]) == ("2025-01-01", "2025-01-14")
