"""`gris check`: every fault with its line, and of a sound policy what it allows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dp_service.queries.asked_numbers import DistinctValues
from dp_service.queries.policy import parse_policy, read_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from gris_cli.__main__ import main
from gris_cli.data.policy import data
from gris_cli.data.policy.promises import counted, require_columns
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import EngineRefused
from tests.support.command_line import run_json, run_text
from tests.support.paths import EXAMPLES
from tests.support.publishing import domain_file, policy_of
from tests.support.texts import NOT_UTF8, write_rows

EXAMPLE = EXAMPLES / "policy.yaml"
POLICY = """\
epsilon_per: 0.15
delta: 1e-10
tables:
  visits:
    member: m
    time: {column: day, type: date, zone: Europe/Berlin, refresh: week, delay_minutes: 1}
    measures: {distinct_members: true, events: {tau: 3, tau_is: clipped}}
    columns:
      m: {type: string}
      page: {type: string, group_by: true, filter: [in]}
      app: {type: string, group_by: true, domain: [a, b], delta: 2}
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Write a sound policy."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


@pytest.mark.slow
def test_a_sound_policy_is_told_for_people(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Measures, time, and for each column the mechanism it leads to and the filters; exit code 0."""
    assert main(["check", str(written)]) == 0
    printed = capsys.readouterr()
    reported = " ".join(printed.out.split())
    assert printed.err == ""
    assert max(map(len, printed.out.splitlines())) <= 100
    for words in (
        "is sound",
        "epsilon_per 0.15, delta 1e-10",
        "events, a member changes a count by at most 3, by clipping",
        "day, in days, zone Europe/Berlin; closed each week, now before ",
        "page │ string │ UnkGumb │ in │ not known",
        "app │ string │ KnownLap │ - │ a, b",
        "day │ date │ - │ range",
        "default tables.visits.columns.page: domain unknown, delta any number",
    ):
        assert words in reported


def test_a_sound_policy_is_told_as_json(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object, in which programs find the same."""
    reported = run_json(capsys, "check", written)
    assert reported["currency"] == {
        "epsilon_per": "3/20",
        "delta": "1/10000000000",
        "unit_id": "61c38258a2d5d2f817f4797eeb22bee5",
    }
    (table,) = reported["tables"]
    time = table["time"]
    assert [time["column"], time["zone"], time["refresh"]] == ["day", "Europe/Berlin", "week"]
    assert [measure["tau"] for measure in table["measures"]] == [1, 3]
    assert {column["name"]: column["mechanism"] for column in table["columns"]} == {
        "app": "KnownLap",
        "day": None,
        "page": "UnkGumb",
    }
    assert reported["warnings"] == []


def test_warnings_do_not_change_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """The examples promise two things, and say so."""
    warnings = run_json(capsys, "check", EXAMPLE)["warnings"]
    lines = EXAMPLE.read_text().splitlines()
    assert ["delta", "events"] == [warning["key"].rpartition(".")[2] for warning in warnings]
    assert ["delta: 1", "events: {tau"] == [
        lines[warning["line"] - 1].strip()[: len(start)]
        for warning, start in zip(warnings, ("delta: 1", "events: {tau"), strict=True)
    ]


def test_every_fault_is_told_with_its_line(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error for people, with the line itself; as JSON with line, key and message; exit code 2."""
    written.write_text(POLICY.replace("domain: [a, b]", "domain: [a, 1]").replace("[in]", "[range]"))
    assert main(["check", str(written)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{written}:10: tables.visits.columns.page.filter: range: expected" in printed.err
    assert "    10 |       page: {type: string" in printed.err
    assert f"{written}:11: tables.visits.columns.app.domain.1: expected a value of type string" in printed.err
    error = run_json(capsys, "check", written, code=2)["error"]
    assert error["code"] == "policy"
    assert sorted((each["line"], each["key"]) for each in error["problems"]) == [
        (10, "tables.visits.columns.page.filter"),
        (11, "tables.visits.columns.app.domain.1"),
    ]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"epsilon_per: [", 1, "expected a value"),
        (b"", 1, "expected keys and their values"),
        (b"\xff\xfe", 1, "UTF-8"),
        (POLICY.replace("1e-10", "1e-300").encode(), 1, "no noise that can be drawn"),
    ],
)
def test_whatever_cannot_be_served_is_a_fault(
    written: Path, capsys: pytest.CaptureFixture[str], content: bytes, line: int, message: str
) -> None:
    """What is no YAML, empty, no text, or leaves no noise that can be drawn."""
    written.write_bytes(content)
    (problem,) = run_json(capsys, "check", written, code=2)["error"]["problems"]
    assert problem["line"] == line
    assert message in problem["message"]


@pytest.mark.parametrize("arguments", [["policy"], ["check"], ["check", "/nowhere.yaml"]])
def test_a_wrong_command_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No command, no file, or one that is not there: exit code 2 and one message."""
    error = run_json(capsys, *arguments, code=2)["error"]
    assert error["code"] == "usage"
    assert error["message"]


def test_what_drives_a_terminal_is_not_repeated(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file from elsewhere is looked at before it is trusted."""
    written.write_text(POLICY.replace("member: m", 'member: "\\e[31m"'))
    assert main(["check", str(written)]) == 2
    assert "\x1b" not in capsys.readouterr().err


ODD: list[dict[str, str | bytes]] = [
    {"m": "m1", "page": NOT_UTF8, "app": "a", "note": "n"},
    {"m": NOT_UTF8, "page": "p", "app": "a", "note": NOT_UTF8},
    {"m": "m2", "page": "x" * 1025, "app": "c", "note": "n"},
    {"m": "null", "page": "p", "app": "a", "note": "n"},
    {"m": "m3", "page": "p", "app": "b", "note": "n"},
]


def test_of_a_long_line_the_part_around_the_fault_is_quoted(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no key says what part it is, its beginning."""
    long = "x" * 1_000_000
    column = f"m: {{type: string, description: {long}, colour: red, domain: [{long}]}}"
    for policy, shown in (
        (POLICY.replace("m: {type: string}", column), "x, colour: red, domain: [x"),
        (f"{long}\n", f"| {long[:120]} ..\n"),
    ):
        written.write_text(policy)
        assert main(["check", str(written)]) == 2
        said = capsys.readouterr().err
        assert shown in said
        assert max(map(len, said.splitlines())) <= 300


def _check_data(
    written: Path, rows: Sequence[Mapping[str, str | bytes]], capsys: pytest.CaptureFixture[str]
) -> Any:
    written.write_text(
        POLICY.replace(
            "    time: {column: day, type: date, zone: Europe/Berlin, refresh: week, delay_minutes: 1}\n", ""
        )
    )
    path = written.parent / "visits.parquet"
    write_rows(path, rows)
    return run_json(capsys, "check", written, "--data", f"visits={path}")["data"]


def test_the_owner_is_told_which_rows_of_the_data_are_left_out(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By column and reason; a text that is not UTF-8 keeps its row out of every question, whatever the policy lists."""
    reported = _check_data(written, ODD, capsys)
    reasons = [
        ("m", "a text that is not UTF-8", 1, "every question"),
        ("page", "a text that is not UTF-8", 1, "every question"),
        ("note", "a text that is not UTF-8", 1, "every question"),
        ("app", "a value outside the domain", 1, "answers that show it"),
        ("m", "no member", 1, "every question"),
        ("page", "a text of more than 1,024 characters", 1, "answers that show it"),
    ]
    left_out = [dict(zip(("column", "reason", "rows", "of"), each, strict=True)) for each in reasons]
    clipped = [{"column": column, "rows": 2, "cut": 0} for column in ("", "app", "page")]
    whole = {"table": "visits", "rows": 5, "rows_in_no_question": 2, "left_out": left_out, "promises": []}
    assert reported == [whole | {"clipped": clipped, "clamped": [], "kept_values": []}]


def test_of_sound_data_nothing_is_left_out(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the report says so, for people too."""
    assert _check_data(written, ODD[4:], capsys) == [
        {"table": "visits", "rows": 1, "rows_in_no_question": 0, "left_out": [], "promises": []}
        | {
            "clipped": [{"column": column, "rows": 1, "cut": 0} for column in ("", "app", "page")],
            "clamped": [],
            "kept_values": [],
        }
    ]
    assert main(["check", str(written), "--data", f"visits={written.parent / 'visits.parquet'}"]) == 0
    assert "visits: 1 row; true counts, for the owner alone" in capsys.readouterr().out


def test_the_owner_is_told_how_many_distinct_values_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the answer itself: by one total and by each column, of which the question's own bound takes nothing here."""
    path, policy = tmp_path / "visits.parquet", tmp_path / "policy.yaml"
    policy.write_text(
        "{epsilon_per: 0.15, delta: 1e-10, count_noise: gaussian, tables: {visits: {member: m, measures: {distinct: "
        "{page: 2}}, contributions: {bound: in_query, units: 10}, columns: "
        "{page: {type: string}, app: {type: string, group_by: true, typical: 9}}}}}"
    )
    rows = [{"m": f"m{i % 3}", "page": f"p{i % 8}", "app": f"a{i % 2}"} for i in range(60)]
    write_rows(path, [*rows, {"m": "m9", "page": "null", "app": "a9"}])
    found = run_json(capsys, "check", policy, "--data", path)["data"][0]["kept_values"]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE visits AS FROM '{path}'")
        for each, by in zip(found, ("", "app"), strict=True):
            question = HistogramQuery("visits", (by,) if by else (), DistinctValues("page"))
            resolution = resolve(question, read_policy(policy.read_bytes(), str(policy)).policy, now=0)
            kept = sum(count for *_, count in connection.execute(render(resolution, "duckdb")).fetchall())
            assert each == {"distinct_of": "page", "column": by, "values": 8, "kept": kept}
    assert 2 < found[0]["kept"] < 8
    printed = run_text(capsys, "check", policy, "--data", path)
    assert f"{found[0]['kept']} of 8 values of page" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            "nowhere.parquet",
            "a table of the policy (visits), or a path alone that exists, got nowhere.parquet",
        ),
        ("others=x.parquet", "a table of the policy (visits)"),
        ("visits=x.csv", "there is no file x.csv"),
        ("visits=nowhere.parquet", "there is no file nowhere.parquet"),
    ],
)
def test_data_that_cannot_be_examined_are_wrong_usage(
    written: Path, data: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and what was expected."""
    assert main(["check", str(written), "--data", data]) == 2
    assert expected in capsys.readouterr().err


def test_data_of_another_shape_than_the_policys_are_refused(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column that is missing is named."""
    write_rows(written.parent / "visits.parquet", [{"m": "m1", "page": "p"}])
    assert main(["check", str(written), "--data", f"visits={written.parent / 'visits.parquet'}"]) == 2
    assert "expected a column app in the data of visits; it lists" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "misspelt", "expected"),
    [
        ("member: m\n", "member: mm\n", "expected a column mm in the data of visits; did you mean m?"),
        ("column: day", "column: dya", "expected a column dya in the data of visits; did you mean day?"),
    ],
)
def test_a_misspelt_member_or_time_column_is_named_once_there_are_data(
    written: Path, capsys: pytest.CaptureFixture[str], old: str, misspelt: str, expected: str
) -> None:
    """Without data it looks like one more column; so the report says that nothing was compared."""
    policy = POLICY.replace("      m: {type: string}\n", "")
    path = written.parent / "visits.parquet"
    row = "SELECT 'm1' AS m, 'p' AS page, 'a' AS app, DATE '2026-01-01' AS day"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({row}) TO '{path}' (FORMAT parquet)")
    written.write_text(policy)
    assert main(["check", str(written), "--data", str(path)]) == 0
    assert "not checked" not in capsys.readouterr().out
    written.write_text(policy.replace(old, misspelt))
    said = run_text(capsys, "check", written)
    assert "not checked whether the data of visits have these columns (member and time too)" in said
    assert main(["check", str(written), "--data", str(path)]) == 2
    assert expected in " ".join(capsys.readouterr().err.split())
    (table,) = parse_policy(written.read_text()).tables
    with (
        closing(DuckDBEngine({"visits": path})) as engine,
        pytest.raises(EngineRefused, match=f"no column {misspelt.rsplit(maxsplit=1)[-1]}"),
    ):
        require_columns(engine, table)


def test_the_owner_is_told_how_many_rows_clipping_cuts(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a total and of each column: what a member has beyond tau in one element, without rows of nobody."""
    five = [{"m": "m1", "page": "p", "app": app} for app in "aaaab"]
    rows = [*five, {"m": "m2", "page": "p", "app": "a"}, *({"m": "null", "page": "p", "app": "a"},) * 9]
    (reported,) = _check_data(written, rows, capsys)
    assert [("", 6, 2), ("app", 6, 1), ("page", 6, 2)] == [
        (each["column"], each["rows"], each["cut"]) for each in reported["clipped"]
    ]
    data = f"visits={written.parent / 'visits.parquet'}"
    said = run_text(capsys, "check", written, "--data", data)
    assert "clipped 1 of 6 rows (16.7 %) left out of events counted by app" in said


def test_a_table_given_as_a_policy_is_named_and_not_printed(
    written: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither the rows of a Parquet file nor other bytes that are no text reach a terminal."""
    path = written.parent / "visits.parquet"
    write_rows(path, [{"m": "secret"}])
    assert main(["check", str(path)]) == 2
    assert "is a Parquet file, and a policy is YAML; gris draft --data" in capfd.readouterr().err
    path.write_bytes(b"secret\xff")
    assert main(["check", str(path)]) == 2
    said = capfd.readouterr().err
    assert "expected a text in UTF-8" in said
    assert "secret" not in said


@pytest.mark.parametrize("type_", ["JSON", "TIMESTAMP"])
def test_a_member_of_a_type_that_one_row_can_break_is_told(
    written: Path, capsys: pytest.CaptureFixture[str], type_: str
) -> None:
    """Before any row is read, as a question would be refused."""
    written.write_text(POLICY.replace("      m: {type: string}\n", ""))
    path = written.parent / "visits.parquet"
    row = f"SELECT NULL::{type_} AS m, 'p' AS page, 'a' AS app, DATE '2024-01-01' AS day"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({row}) TO '{path}' (FORMAT parquet)")
    assert main(["check", str(written), "--data", f"visits={path}"]) == 2
    assert "expected the column m to be of a type that members can have" in capsys.readouterr().err


def test_what_was_published_is_told_with_its_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It counts towards every guarantee."""
    policy = policy_of(tmp_path, domain_file("one", "1/10", "1e-9"))
    assert "published at rho 0.1, delta 1e-09" in run_text(capsys, "check", policy)
    (column,) = run_json(capsys, "check", policy)["tables"][0]["columns"]
    assert {"rho": "1/10", "delta": "1/1000000000"} == column["published"]


PROMISES = """\
epsilon_per: 0.15
delta: 1e-10
tables:
  visits:
    member: m
    measures: {distinct_members: true, events: {tau: 2, tau_is: assumed}}
    columns:
      m: {type: int64}
      born: {type: string, group_by: true, delta: 1}
      kept: {type: int64, group_by: true, delta: 1, nulls: keep, null_value: 0}
      app: {type: string, group_by: true, domain: [a, b], delta: 2}
"""


def _promises(
    tmp_path: Path, rows: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, dict[str, object]], str]:
    """Check the policy of promises on some rows; return the exit code, the promises by key, and the text."""
    policy, data = tmp_path / "promises.yaml", tmp_path / "visits.parquet"
    policy.write_text(PROMISES)
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT m::BIGINT AS m, born::VARCHAR AS born, kept::BIGINT AS kept, 'a' AS app "  # noqa: S608
            f"FROM (VALUES {rows}) AS rows(m, born, kept)) TO '{data}' (FORMAT parquet)"
        )
    command = ["check", str(policy), "--data", f"visits={data}"]
    code = main([*command, "--json"])
    reported = json.loads(capsys.readouterr().out)["data"][0]["promises"]
    assert main(command) == code
    return code, {each.pop("key"): each for each in reported}, " ".join(capsys.readouterr().out.split())


def test_the_owner_is_told_that_the_data_keep_every_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dropped NULL is no value, rows without a member are nobody's, a domain as large as delta is no promise."""
    rows = "(1, 'x', 5), (1, NULL, 5), (2, 'y', NULL), (2, 'y', 0), (NULL, 'x', 1), (NULL, 'y', 2), (NULL, 'x', 3)"
    code, promises, text = _promises(tmp_path, rows, capsys)
    assert code == 0
    assert {"columns.born.delta": 1, "columns.kept.delta": 1, "measures.events.tau": 2} == {
        key: each["found"] for key, each in promises.items()
    }
    assert all(each["is_kept"] for each in promises.values())
    assert "columns.born.delta 1: no member has more than 1 values; kept by these data" in text


def test_a_broken_promise_is_told_with_how_many_members_break_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1: a kept NULL is a value, and rows count in the element in which a member has most."""
    rows = "(1, 'x', 5), (1, 'z', NULL), (2, 'y', 4), (2, 'y', 4), (2, 'y', 4), (3, 'x', 1)"
    code, promises, text = _promises(tmp_path, rows, capsys)
    assert code == 1
    assert promises["columns.born.delta"] == {
        "promised": 1,
        "found": 2,
        "column": "born",
        "members": 1,
        "is_kept": False,
    }
    assert (2, 1) == (promises["columns.kept.delta"]["found"], promises["columns.kept.delta"]["members"])
    assert (3, 1) == (promises["measures.events.tau"]["found"], promises["measures.events.tau"]["members"])
    assert "BROKEN, measures.events.tau 2: no member has more than 3 rows in one element of" in text


ASSUMED = """
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  visits:
    member: m
    measures: {distinct_members: true, events: {tau: 2, tau_is: assumed}}
    contributions: {bound: assumed, delta: 3, units: 20}
    columns:
      m: {type: int64}
      page: {type: string, group_by: true}
      kind: {type: int64, group_by: true, nulls: drop}
      size: {type: int64, group_by: true, nulls: keep, null_value: 0}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "most", "tau"),
    [
        ("(1, 'x', 1, 5), (1, 'x', 2, 5), (NULL, 'z', 9, 9)", (2, "kind, size"), 2),
        # Rows without a kind are in questions that do not name it; a size that is missing is one of 0.
        (
            "(1, 'x', NULL, 0), (1, 'y', NULL, NULL), (1, 'x', NULL, 2), (1, 'y', 1, 2)",
            (4, "page, size"),
            2,
        ),
        (
            "(1, 'a', 1, 1), (1, 'a', 2, 1), (1, 'b', 1, 1), (1, 'b', 2, 1), (2, 'a', 1, 1)",
            (4, "kind, page, size"),
            4,
        ),
    ],
)
def test_an_assumed_bound_of_contributions_is_counted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rows: str,
    most: tuple[int, str],
    tau: int,
) -> None:
    """By the columns in whose questions members have most; so it is by an engine's queries too."""
    found, columns = most
    policy, data = tmp_path / "assumed.yaml", tmp_path / "visits.parquet"
    policy.write_text(ASSUMED)
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT m::BIGINT AS m, page, kind::BIGINT AS kind, size::BIGINT AS size "  # noqa: S608
            f"FROM (VALUES {rows}) AS rows(m, page, kind, size)) TO '{data}' (FORMAT parquet)"
        )
    command = ["check", str(policy), "--data", f"visits={data}"]
    assert main([*command, "--json"]) == (0 if found <= 3 else 1)
    reported = {each.pop("key"): each for each in json.loads(capsys.readouterr().out)["data"][0]["promises"]}
    assert reported["contributions.delta"] == {
        "promised": 3,
        "found": found,
        "column": columns,
        "members": 0 if found <= 3 else 1,
        "is_kept": found <= 3,
    }
    assert tau == reported["measures.events.tau"]["found"]
    main(command)
    said = f"contributions.delta 3: no member has more than {found} elements of {columns}"
    assert said in " ".join(capsys.readouterr().out.split())
    asked = parse_policy(ASSUMED)
    with closing(DuckDBEngine({"visits": data})) as engine:
        report = counted(engine, asked.tables[0], asked.currency)
    assert {key: (each["found"], each["column"]) for key, each in reported.items()} == {
        each.key: (each.found, each.column) for each in report.promises
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows",
    [
        "(1, 'x', 5), (1, NULL, 5), (2, 'y', NULL), (2, 'y', 0), (NULL, 'x', 1), (NULL, 'y', 2), (NULL, 'x', 3)",
        "(1, 'x', 5), (1, 'z', NULL), (2, 'y', 4), (2, 'y', 4), (2, 'y', 4), (3, 'x', 1)",
        "(NULL, 'x', 5)",
    ],
)
def test_an_engine_finds_what_the_files_own_count_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: str
) -> None:
    """By queries as they are asked of Pinot and Spark; how many members break a promise is not counted there."""
    _, promises, _ = _promises(tmp_path, rows, capsys)
    policy = parse_policy(PROMISES)
    (table,) = policy.tables
    with closing(DuckDBEngine({"visits": tmp_path / "visits.parquet"})) as engine:
        report = counted(engine, table, policy.currency)
    assert {key: (each["found"], each["is_kept"]) for key, each in promises.items()} == {
        each.key: (each.found, each.is_kept) for each in report.promises
    }
    assert [None if not each.is_kept else 0 for each in report.promises] == [
        each.members for each in report.promises
    ]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--pinot-broker", "http://localhost:1"), "--pinot-broker needs --pinot"),
        (("--spark", "local[1]"), "--spark needs --data TABLE=PATH"),
        (
            ("--spark", "local[1]", "--data", "others=x"),
            "--data expects TABLE=PATH with a table of the policy",
        ),
        (("--data", "visits=x", "--data", "visits=y"), "--data names the table visits twice"),
    ],
)
def test_flags_that_count_nothing_are_refused(
    written: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], expected: str
) -> None:
    """Each says what it needs."""
    assert main(["check", str(written), *flags]) == 2
    assert expected in " ".join(capsys.readouterr().err.split())


TIMES = {
    "a timestamp declared as a date": (
        "type: date",
        "TIMESTAMP '2026-03-29 10:00:00'",
        "at to be of the policy's type, date; the data have TIMESTAMP: declare type: timestamp, without a unit",
    ),
    "a timestamp with a zone declared as an integer": (
        "type: int64, unit: seconds",
        "TIMESTAMPTZ '2026-03-29 10:00:00+00'",
        "type, int64; the data have TIMESTAMP WITH TIME ZONE: declare type: timestamp",
    ),
    "integers declared as the engine's own type": (
        "type: timestamp",
        "1774778400000::BIGINT",
        "type, timestamp; the data have BIGINT: declare the unit that they count since 1970",
    ),
    "milliseconds declared as seconds": (
        "type: timestamp, unit: seconds",
        "1774778400000::BIGINT",
        "type, timestamp in seconds; the data have what looks like milliseconds",
    ),
    "seconds declared as microseconds": (
        "type: timestamp, unit: microseconds",
        "1774778400",
        "type, timestamp in microseconds; the data have what looks like seconds",
    ),
    "timestamps that one row can break": (
        "type: timestamp",
        "TIMESTAMP_MS '2026-03-29 10:00:00'",
        "the data have a type that one row can break, as timestamps in milliseconds or INT96 are in a Parquet file",
    ),
    "an enumeration, whose values are not reported": (
        "type: timestamp",
        "'secret'::ENUM('secret')",
        "type, timestamp; the data have ",
    ),
}


def _check_time(written: Path, time: str, value: str) -> int:
    """Check a policy with this time column against one row of data; return the exit code."""
    old = "time: {column: day, type: date, zone: Europe/Berlin, refresh: week, delay_minutes: 1}"
    written.write_text(POLICY.replace(old, f"time: {{column: at, {time}}}"))
    path = written.parent / "visits.parquet"
    row = f"""SELECT 'm1' AS m, 'p' AS page, 'a' AS app, {value} AS "at\""""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({row}) TO '{path}' (FORMAT parquet)")
    return main(["check", str(written), "--data", f"visits={path}"])


@pytest.mark.slow
@pytest.mark.parametrize(("time", "value", "expected"), TIMES.values(), ids=TIMES)
def test_a_time_column_of_another_type_or_unit_is_told(
    written: Path, capsys: pytest.CaptureFixture[str], *, time: str, value: str, expected: str
) -> None:
    """The column, what the policy says, what the data have, and what to declare instead."""
    assert _check_time(written, time, value) == 2
    reported = " ".join(capsys.readouterr().err.split())
    assert expected in reported
    assert "secret" not in reported


@pytest.mark.slow
@pytest.mark.parametrize(
    ("time", "value"),
    [
        ("type: timestamp", "TIMESTAMP '2026-03-29 10:00:00'"),
        ("type: timestamp", "TIMESTAMPTZ '2026-03-29 10:00:00+00'"),
        ("type: timestamp", "TIMESTAMP_NS '2026-03-29 10:00:00'"),
        ("type: timestamp, unit: seconds", "1774778400"),
        ("type: timestamp, unit: milliseconds", "1774778400000"),
        ("type: timestamp, unit: milliseconds", "NULL::BIGINT"),
    ],
)
def test_timestamps_as_they_are_declared_are_sound(
    written: Path, capsys: pytest.CaptureFixture[str], time: str, value: str
) -> None:
    """The engine's own types, and integers in the unit that is stated."""
    assert _check_time(written, time, value) == 0
    assert "visits: 1 row" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("'infinity'::TIMESTAMP", "a timestamp outside the years 1700 to 2261"),
        ("TIMESTAMPTZ '1650-01-01 00:00:00+00'", "a timestamp outside the years 1700 to 2261"),
        ("TIMESTAMP '1970-01-01 00:00:00'", "1970-01-01T00:00:00+00:00, the null_value"),
        ("NULL::TIMESTAMP", "NULL, which is dropped"),
    ],
)
def test_rows_with_other_timestamps_are_counted(
    written: Path, capsys: pytest.CaptureFixture[str], value: str, reason: str
) -> None:
    """Questions that restrict the column leave them out."""
    assert _check_time(written, "type: timestamp", value) == 0
    assert reason in " ".join(capsys.readouterr().out.split())


def test_an_interruption_is_none_of_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB makes an error of Ctrl-C, which is no word about what it read."""
    (table,) = parse_policy(POLICY).tables
    path, columns = tmp_path / "visits.parquet", "'a' AS m, DATE '2026-01-01' AS day, 'p' AS page, 'a' AS app"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns}) TO '{path}' (FORMAT parquet)")

    def interrupted(*_: object) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(data, "count_unreadable", interrupted)
    with pytest.raises(KeyboardInterrupt):
        data.examined(table, path)


def test_what_audiences_are_offered_is_told(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its tables, columns and rows, for people and for programs."""
    stated = "{staff: {}, some: {tables: {visits: {columns: [page], where: {app: [a, $app]}}}}}"
    policy = POLICY.replace("app: {type: string,", "app: {type: string, filter: [in],")
    written.write_text(f"{policy}audiences: {stated}\n")
    said = run_text(capsys, "check", written)
    assert "audience staff: all tables, as they are" in said
    assert "audience some: visits (page; only rows with app a, $app)" in said
    found = run_json(capsys, "check", written)["audiences"]
    assert found == {
        "staff": {},
        "some": {"tables": {"visits": {"columns": ["page"], "where": {"app": ["a", "$app"]}}}},
    }


def test_what_weights_leave_out_of_rows_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A member with 16 pages where 4 count in full counts with the root of 4/16 on each; in a total, with 4 rows."""
    policy, data = tmp_path / "weighted.yaml", tmp_path / "visits.parquet"
    policy.write_text(
        "{epsilon_per: 0.15, delta: 1e-10, count_noise: gaussian, tables: {visits: {member: m, measures: {rows: 4}, "
        "contributions: {bound: in_query, units: 10}, columns: "
        "{page: {type: string, group_by: true, typical: 4}, app: {type: string, group_by: true, typical: 1}}}}}"
    )
    rows = [{"m": "m1", "page": f"p{i}", "app": "a"} for i in range(16)]
    write_rows(data, [*rows, {"m": "m2", "page": "p0", "app": "a"}])
    assert main(["check", str(policy), "--data", f"visits={data}", "--json"]) == 0
    (reported,) = json.loads(capsys.readouterr().out)["data"]
    assert [(each["column"], each["rows"], each["cut"]) for each in reported["clipped"]] == [
        ("", 17, 12),
        ("app", 17, 12),
        ("page", 17, 8),
    ]
