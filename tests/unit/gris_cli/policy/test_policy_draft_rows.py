"""`gris draft` by what rows hold: what it leaves out, and what it lets a table be asked."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dp_service.queries.policy import parse_policy
from dp_service.queries.tables import Table
from gris_cli.__main__ import main
from gris_cli.data.policy.draft import Draft, Role, draft_of, member_of
from gris_cli.data.policy.draft_contents import contents_of, reading
from gris_cli.data.policy.draft_text import draft_text
from gris_cli.data.policy.draft_text import drafted as draft_of_rows
from gris_cli.data.table_schema import file_schema
from tests.support import judged_columns
from tests.support.command_line import run_json
from tests.support.judged_columns import JudgedTable

ORDERS = (
    "1000 + hash(i) % 300 * 7 AS customer_id, DATE '2026-01-01' + (i % 90)::INTEGER AS ordered_on, "
    "'P-' || (i * i) % 17 AS product, (1 + i % 3)::INTEGER AS pieces, (5 + i % 100)::DOUBLE / 4 AS price, "
    "(i % 30)::DOUBLE AS minutes, uuid() AS reference"
)


def write(path: Path, columns: str = ORDERS, rows: int = 4000) -> str:
    """Write a Parquet file with these columns of rows numbered `i`; return its name."""
    path.parent.mkdir(exist_ok=True)
    with duckdb.connect() as connection:
        connection.sql(f"SELECT {columns} FROM range({rows}) AS given(i)").write_parquet(str(path))  # noqa: S608
    return str(path)


def drafted(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[Table, str, dict[str, Any]]:
    """Draft a policy of one table; return the table, the text, and what is reported of it."""
    reported = run_json(capsys, "draft", *flags)
    return parse_policy(reported["policy"]).tables[0], reported["policy"], reported["tables"][0]


def judged(path: Path, member: str) -> Draft:
    """Return what a draft makes of the columns of a file, without the bounds that it proposes."""
    schema = file_schema(str(path))
    who = member_of(schema, member)
    with reading(schema) as connection:
        return draft_of(schema, who, contents_of(connection, schema, who), is_member_named=True)


def left_out(table: JudgedTable) -> tuple[set[str], set[str]]:
    """Return the columns that a draft leaves out though they should be asked about, and the other way round."""
    draft = judged(table.path, table.member)
    times = {each.name for each in draft.times}
    left = {each.column.name for each in draft.columns if each.role in (Role.WITHHELD, Role.NOT_READABLE)}
    should = {name for name, verdict in table.judged.items() if verdict not in ("keep", "time")}
    return left - times - should, should - (left - times)


@pytest.mark.slow
def test_usual_names_are_judged_as_people_judge_them(tmp_path: Path) -> None:
    """Of 126 names no other person and no identifier is offered, and at most two harmless ones are left out."""
    wrongly, missed = left_out(judged_columns.usual_names(tmp_path))
    assert missed == set()
    assert len(wrongly) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", judged_columns.tables())
def test_tables_are_judged_as_people_judge_them(tmp_path: Path, name: str) -> None:
    """All that could be asked about is offered, and nothing else."""
    assert left_out(judged_columns.table(tmp_path, name)) == (set(), set())


def test_a_draft_answers_what_a_table_can_be_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lists of unknown elements, series, sums, averages and quantiles; bounds are powers of two."""
    table, text, _ = drafted(capsys, "--data", write(tmp_path / "orders.parquet"))
    assert table.time is not None
    assert ("ordered_on", "UTC") == (table.time.name, table.time.zone)
    assert {"day", "month"} <= set(table.buckets)
    bounds = table.contributions
    assert bounds is not None
    assert table.measures.rows is not None
    assert ["minutes", "pieces", "price"] == sorted(each.name for each in table.values)
    assert ["minutes", "pieces", "price"] == sorted(each.name for each in table.quantiles)
    typical = [each.typical or 0 for each in table.columns if each.group_by]
    assert None not in table.time.buckets.values()
    assert None not in table.time.parts.values()
    times = [each or 0 for each in (*table.time.buckets.values(), *table.time.parts.values())]
    for number in (*typical, *times, table.measures.rows):
        assert number & (number - 1) == 0
        assert number
    for said in (
        "Rows were read",
        "tell of them",
        "to no analyst",
        "DECIDE: upper",
        "of the sum of members' totals",
    ):
        assert said in text
    assert text.count("All its numbers are whole") == 1


@pytest.mark.parametrize("name", ["people", "held", "theirs", "ends", "members", "rows", "texts", "odd_rows"])
def test_no_name_of_a_table_changes_what_its_rows_say(tmp_path: Path, name: str) -> None:
    """What a draft makes of a table's columns is the same as under a name that no query uses."""
    columns = f"{ORDERS}, (1000 + hash(i + 1) % 300 * 7)::INTEGER AS thing"
    named, ordinary = (
        judged(Path(write(tmp_path / f"{each}.parquet", columns)), "customer_id") for each in (name, "orders")
    )
    assert named.columns == ordinary.columns


@pytest.mark.parametrize(
    ("column", "kind", "why"),
    [
        ("uuid()::VARCHAR AS thing", "identifier", "one member alone has most of its values"),
        ("(i * 7919)::BIGINT AS thing", "identifier", "one member alone has most of its values"),
        (
            "(1000 + hash(i + 1) % 300 * 7)::INTEGER AS thing",
            "other people",
            "nearly all of its values are members too",
        ),
        ("'mail' || i % 50 || '@x.example' AS thing", "identifier", "look like an address of mail"),
        ("'10.0.0.' || i % 50 AS thing", "identifier", "look like an IP address"),
        ("'+49 30 55' || 1000 + i % 50 AS thing", "identifier", "look like a telephone number"),
        ("'Dr. Kim ' || i % 30 AS thing", "other people", "look like a person with a title"),
        ("'a few words ' || i AS thing", "free text", "most of its texts are sentences"),
        (
            "'w' || i % 8 || ' x' || i // 8 % 5 || ' y' || i // 40 % 5 || ' z' || i // 200 % 6 AS thing",
            "free text",
            "many different texts of several words",
        ),
        ("'P' || i % 300 AS assignee", "other people", "its name says that it stands for people too"),
    ],
)
def test_a_column_is_left_out_by_what_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], column: str, kind: str, why: str
) -> None:
    """The draft says why, and how to have it."""
    data = write(
        tmp_path / "t.parquet", f"1000 + hash(i) % 300 * 7 AS user_id, 'P' || i % 9 AS page, {column}"
    )
    _, text, reported = drafted(capsys, "--data", data)
    name = column.rpartition(" ")[2]
    found = next(each for each in reported["columns"] if each["name"] == name)
    assert ("withheld", kind) == (found["role"], found["kind"])
    assert why in found["reason"]
    assert f"# {name}: {{type: " in text


@pytest.mark.parametrize(
    "column",
    [
        "['mobile', 'desktop'][1 + i % 2] AS device",
        "'kind ' || i % 4 AS message",
        "'a ' || i % 5 || ' of many long words' AS page_title",
        "(1 + i % 9)::INTEGER AS thing",
        "i % 5 AS event_id",
    ],
)
def test_what_many_members_share_is_offered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], column: str
) -> None:
    """A few values that are each of many members tell nobody apart, whatever the name says."""
    data = write(tmp_path / "t.parquet", f"1000 + hash(i) % 300 * 7 AS user_id, {column}")
    *_, reported = drafted(capsys, "--data", data)
    assert ["member", "asked about"] == [each["role"] for each in reported["columns"]]


@pytest.mark.parametrize(
    ("members", "columns"),
    [
        (80, "1 + i * i % 60 AS article_id"),
        (
            3000,
            "1 + (draw * 2000)::INTEGER AS article_id, 1 + (draw * 49)::INTEGER AS thing, 1950 + (draw * 75)::INTEGER "
            "AS vintage, (draw * 9999)::INTEGER AS place, round(draw * 3000, 2) AS minutes_to_answer, "
            "(draw * 3000)::INTEGER AS price_cents, (99 + exp(7 + 2 * draw))::INTEGER AS energy",
        ),
    ],
)
def test_numbers_without_gaps_are_not_taken_for_members(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], members: int, columns: str
) -> None:
    """Where members are 1, 2, 3 and so on, so may articles be, and whatever is counted or paid."""
    drawn = columns.replace("draw", "(hash(i) % 100000 / 100000)")
    data = write(tmp_path / "t.parquet", f"1 + i % {members} AS user_id, {drawn}", rows=40_000)
    *_, reported = drafted(capsys, "--data", data)
    assert {"member", "asked about", "summed"} >= {each["role"] for each in reported["columns"]}


@pytest.mark.parametrize(
    "member", ["1 + i % 3000", "(1 + i % 3000 * 2 + hash(i % 3000) % 2)::BIGINT", "'u' || i % 3000"]
)
def test_members_beside_the_member_are_left_out_of_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], member: str
) -> None:
    """Among numbers without gaps too, with missing ones and a few that are no members, and as pandas has them."""
    other = member.replace("i %", "(hash(i, 1) % 60000)::BIGINT %")
    ref = f"CASE hash(i, 2) % 10 WHEN 0 THEN {other} WHEN 1 THEN {member} END"
    columns = f"{member} AS user_id, 'p' || i % 9 AS page, {ref} AS ref"
    if "u" not in member:
        columns += f", CASE WHEN i % 2000 = 0 THEN 100000 + i ELSE ({ref})::DOUBLE END AS other_ref"
    for part in range(2):
        write(tmp_path / "folder" / f"{part}.parquet", columns, rows=60_000)
    for data in ("folder", "folder/*.parquet"):
        table, _, reported = drafted(capsys, "--data", f"t={tmp_path / data}", "--member", "user_id")
        assert ["page"] == [each.name for each in table.columns if each.name != "user_id"]
        assert () == (*table.values, *table.quantiles)
        assert {"other people"} == {each["kind"] for each in reported["columns"][2:]}


def test_integers_that_count_time_become_the_time_in_their_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The unit is the one in which they fall into this century, whatever the name says."""
    data = write(
        tmp_path / "t.parquet", "i % 50 AS user_id, 'P' || i % 9 AS page, 1767225600 + i * 60 AS created_ts"
    )
    table, text, reported = drafted(capsys, "--data", data)
    assert table.time is not None
    assert "column: created_ts, type: timestamp, unit: seconds, zone: UTC" in text
    assert "State the unit" not in text
    assert ["member", "asked about", "asked about"] == [each["role"] for each in reported["columns"]]


@pytest.mark.parametrize(("step", "is_time"), [("60", True), ("1000000", False)])
def test_integers_of_these_years_are_the_time_whatever_their_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], step: str, is_time: bool
) -> None:
    """Hardly two members share one; numbers that go on beyond these years are something else."""
    columns = f"i % 50 AS user_id, 'P' || i % 9 AS page, 1767225600 + i * {step} AS begun"
    table, *_ = drafted(capsys, "--data", write(tmp_path / "t.parquet", columns))
    assert (table.time is not None) is is_time


@pytest.mark.parametrize(
    ("values", "kind"), [("true,false", "bool"), ("yes,no", "string"), ("t,f", "string")]
)
def test_words_of_csv_are_truth_values_if_they_are_true_and_false(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], values: str, kind: str
) -> None:
    """Other words may be texts, such as the code of Norway."""
    lines = [f"{1000 + i % 300 * 7},{values.split(',')[i % 2]}" for i in range(600)]
    (tmp_path / "t.csv").write_text("\n".join(["user_id,promo", *lines]) + "\n")
    table, *_ = drafted(capsys, "--data", str(tmp_path / "t.csv"))
    assert [str(each.type) for each in table.columns if each.name == "promo"] == [kind]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_table_of_ids_alone_has_no_draft(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    """Exit code 1, with the reason of each column."""
    data = write(tmp_path / "t.parquet", "i % 50 AS user_id, uuid() AS session_id")
    assert main(["draft", "--data", data, *(["--json"] if as_json else [])]) == 1
    printed = capsys.readouterr()
    said = printed.out if as_json else printed.err
    assert "nothing of t could be asked about. session_id: its name says" in said
    assert bool(printed.out) is as_json


@pytest.mark.slow
def test_what_a_draft_offers_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], starts_processes: None
) -> None:
    """A list, a series with sums, an average of rows, a median and bins, each by the policy as it was written."""
    data = write(tmp_path / "orders.parquet", ORDERS.replace("% 300", "% 3000"), rows=30_000)
    policy = str(tmp_path / "policy.yaml")
    run_json(capsys, "draft", "--data", data, "--out", policy)
    text = " ".join(Path(policy).read_text().replace("#", "").split())
    (bins,) = re.findall(r"GROUP BY (FLOOR\(price / \d+\) \* \d+)", text)
    own = (
        "--embedded",
        "--policy",
        policy,
        "--data",
        f"orders={data}",
        "--directory",
        str(tmp_path / "state"),
    )
    by_month = (
        "SELECT DATE_TRUNC('month', ordered_on), COUNT(DISTINCT customer_id), SUM(price) FROM orders "
        "WHERE ordered_on >= '2026-01-01' AND ordered_on < '2026-04-01' GROUP BY 1"
    )
    for sql, rows in (
        (
            "SELECT product, COUNT(DISTINCT customer_id) AS n FROM orders GROUP BY product ORDER BY n DESC LIMIT 5",
            5,
        ),
        (by_month, 3),
        ("SELECT COUNT(*), AVG(minutes) FROM orders", 1),
        ("SELECT PERCENTILE(price, 50) FROM orders", 1),
    ):
        assert rows == len(run_json(capsys, "ask", *own, "--sql", sql)["rows"])
    of_bins = f"SELECT {bins} AS price, COUNT(DISTINCT customer_id) FROM orders GROUP BY {bins}"  # noqa: S608
    assert len(run_json(capsys, "ask", *own, "--sql", of_bins)["rows"]) > 1


@pytest.mark.parametrize("missing", [True, False])
def test_rows_without_a_number_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: bool
) -> None:
    """Where there are some."""
    number = "CASE WHEN i % 4 > 0 THEN (i % 9)::DOUBLE END" if missing else "(i % 9)::DOUBLE"
    data = write(tmp_path / "t.parquet", f"1000 + hash(i) % 300 * 7 AS user_id, {number} AS spent")
    _, text, _ = drafted(capsys, "--data", data)
    assert ("of rows have no value" in text) is missing


def test_rows_without_a_number_raise_no_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 5,000 members 15 pay 160, which would be the bound if missing amounts counted as large ones."""
    member = "(i % 5000) AS customer_id, 'P-' || i % 3 AS product"
    paid = "CASE WHEN i < 5000 THEN CASE WHEN i < 15 THEN 160.0 ELSE 10.0 END END::DOUBLE AS paid"
    path = write(tmp_path / "payments.parquet", f"{member}, {paid}", rows=40_000)
    assert drafted(capsys, "--data", path)[0].value("paid").upper == 16


def test_no_more_rows_count_in_sums_and_averages_than_need_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dozen members have 64 rows, whose sums reach what 32 of the largest rows do: more would be noise alone."""
    columns = "CASE WHEN i < 768 THEN i % 12 ELSE i END AS customer_id, 1.0 + i * 37 % 127 AS paid"
    (paid,) = drafted(capsys, "--data", write(tmp_path / "t.parquet", columns, rows=1768))[0].values
    assert [paid.row_upper, paid.upper] == [Fraction(128), Fraction(4096)]
    assert paid.rows == 32


@pytest.mark.parametrize(("cut", "stated"), [(0.2, "largest_cut: 1/4"), (0.4, "largest_cut: 1/2")])
def test_the_largest_cut_is_of_sums_too(tmp_path: Path, cut: float, stated: str) -> None:
    """Answers state upper bounds of sums by it, which would be false if bounds cut more of them."""
    schema = file_schema(write(tmp_path / "t.parquet"))
    found = draft_of_rows(schema, "customer_id", reads_rows=True)
    losing = replace(found.values[0], most_cut=cut)
    assert stated in draft_text([replace(found, values=(losing,))])


@pytest.mark.parametrize("largest", ["1e300", "1e12", "1e-3", "-50"])
def test_numbers_of_any_size_make_a_sound_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], largest: str
) -> None:
    """A step in which no sum is too large to be exact and noise can be drawn; what no bound holds is not summed."""
    number = (
        f"CASE i % 7 WHEN 0 THEN 'NaN'::DOUBLE WHEN 1 THEN 'inf'::DOUBLE ELSE {largest}::DOUBLE * (i % 5) END"
    )
    data = write(
        tmp_path / "t.parquet", f"1000 + hash(i) % 300 * 7 AS user_id, 'p' || i % 9 AS page, {number} AS x"
    )
    table, *_ = drafted(capsys, "--data", data)
    assert bool(table.values) is (largest != "1e300")


def test_one_row_decides_no_public_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bounds, steps and grids are what a dozen members reach."""
    columns = "1000 + hash(i) % 300 * 7 AS user_id, 'p' || i % 9 AS page, "
    amount = "(100 + i * 37 % 20000)::DOUBLE / 100"
    ordinary = write(tmp_path / "a.parquet", f"{columns}{amount} AS amount", rows=20_000)
    odd = f"CASE i WHEN 77 THEN 9876543.21 WHEN 78 THEN -7654321 WHEN 79 THEN 1.23456 ELSE {amount} END AS amount"
    table, *_ = drafted(capsys, "--data", f"t={ordinary}")
    other, *_ = drafted(capsys, "--data", f"t={write(tmp_path / 'b.parquet', columns + odd, rows=20_000)}")
    assert table.values == other.values
    assert table.quantiles == other.quantiles


def test_steps_are_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A usual number has 64 steps or more; the comment says what a bound of rows cuts."""
    columns = (
        "1000 + i % 20000 // 2 * 7 AS user_id, DATE '2024-01-01' + (i // 20000 * 30 + 3)::INTEGER AS day, "
        "'p' || i % 9 AS page, CASE i % 5 WHEN 0 THEN 30.25 ELSE 32.125 END AS seconds"
    )
    table, text, _ = drafted(
        capsys, "--data", write(tmp_path / "t.parquet", columns, rows=480_000), "--member", "user_id"
    )
    (seconds,) = table.values
    assert 0 < seconds.quantum <= 32 / 64
    assert "of members' totals over all rows; row_upper 32 cuts" in " ".join(text.replace("#", " ").split())


def test_totals_of_rows_keep_nearly_all_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Members with one row in each of many elements too."""
    columns = "hash(i) % 500 AS user_id, 'p' || hash(i, 1) % 300 AS page"
    table, text, _ = drafted(capsys, "--data", write(tmp_path / "t.parquet", columns, rows=4000))
    assert table.measures.rows == 16
    assert "With 16, one total of all rows loses" in " ".join(text.replace("#", " ").split())


def test_a_member_with_most_rows_does_not_decide_how_many_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are what a dozen members reach; the comment says what a total of all rows loses by it."""
    columns = (
        "CASE WHEN i % 2 = 0 THEN 7 ELSE 1000 + hash(i) % 3000 * 7 END AS user_id, 'p' || i // 2 % 9 AS page"
    )
    data = write(tmp_path / "t.parquet", columns, rows=40_000)
    table, text, _ = drafted(capsys, "--data", data)
    assert table.measures.rows is not None
    assert table.measures.rows <= 16
    assert "one total of all rows loses about 50 %" in " ".join(text.replace("#", " ").split())


def test_distinct_values_are_offered_where_noise_does_not_hide_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number of seven cities would be paid for, and say nothing."""
    columns = "(i % 3000)::VARCHAR AS user_id, 'c' || i % 7 AS city, 'page' || i % 2000 AS page"
    table, _, _ = drafted(capsys, "--data", write(tmp_path / "visits.parquet", columns, 60_000))
    assert {*table.measures.distinct} == {"page"}
    assert {"city", "page"} <= {each.name for each in table.columns}


def test_lists_of_fifty_are_planned_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are named with some to spare, and a member's usual elements count."""
    columns = "hash(i) % 2000 * 7 AS user_id, 'p' || sqrt(hash(i, 1) % 6400)::INTEGER AS page"
    _, text, _ = drafted(capsys, "--data", write(tmp_path / "t.parquet", columns, rows=40_000))
    (typical, most_names) = (
        int(re.findall(rf"{key}: (\d+)", text)[0]) for key in ("typical", "longest_list")
    )
    assert typical >= 16
    assert most_names == 75


def test_an_empty_folder_has_no_draft(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1; one with files is a table."""
    assert main(["draft", "--data", f"t={tmp_path}"]) == 1
    assert "could be asked about: it has no files" in capsys.readouterr().err
    write(tmp_path / "a.parquet")
    assert main(["draft", "--data", f"t={tmp_path}"]) == 0
