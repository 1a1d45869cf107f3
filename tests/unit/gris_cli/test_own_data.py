"""One's own table: asked about with `--embedded --policy`, and served by `gris serve`; no flag is ignored."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from gris_cli.__main__ import main
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.errors import ServiceUnavailable
from tests.support.command_line import run_json
from tests.support.rings import needs

GRIS = (sys.executable, "-m", "gris_cli")
QUESTION = ("--table", "sales", "--by", "product", "--k", "2")
FREE_PORTS = ("--dp-port", "0", "--budget-port", "0", "--admin-port", "0")


def write_sales(folder: Path) -> None:
    """Write a table and the policy that is drafted for it."""
    rows = "SELECT i % 5000 AS client, 'p' || (i % 4) AS product FROM range(40000) AS rows(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{folder / 'sales.parquet'}' (FORMAT parquet)")
    draft = ("--names-only", "--data", str(folder / "sales.parquet"), "--out", str(folder / "policy.yaml"))
    assert main(["draft", *draft]) == 0


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both, which nobody changes."""
    folder = tmp_path_factory.mktemp("drafted")
    write_sales(folder)
    return folder


@pytest.fixture
def sales(drafted: Path, tmp_path: Path) -> Path:
    """A folder with a table and the policy that was drafted for it."""
    shutil.copytree(drafted, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
@needs("process")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[str], Path]]:
    """`gris serve` on ports of its own: what it printed, and the folder with its table, policy and state."""
    folder = tmp_path_factory.mktemp("served")
    write_sales(folder)
    files = ("--policy", str(folder / "policy.yaml"), "--data", f"sales={folder / 'sales.parquet'}")
    command = [*GRIS, "serve", *files, *FREE_PORTS, "--directory", str(folder / "state")]
    own = {"PYTHONUNBUFFERED": "1", "COLUMNS": "100", "XDG_CACHE_HOME": str(folder / "cache")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **own}) as process:
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line.strip())
            if "Ctrl-C" in line:
                break
        yield printed, folder
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_what_serve_prints_asks_and_verifies(
    served: tuple[list[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The environment, a first question and the verification of the ledger, as they are copied."""
    printed, _ = served
    for line in printed:
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            monkeypatch.setenv(name, value)
    (question,) = [line for line in printed if line.startswith("gris ask")]
    assert run_json(capsys, *question.split()[1:])["charged"]["calls"] == 1
    assert main(["budget", "verify"]) == 0
    assert "0 differences" in capsys.readouterr().out


def test_services_of_ones_own_beside_those_of_serve_are_told_who_holds_the_ledger(
    served: tuple[list[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """What runs goes on, and is what to ask."""
    printed, folder = served
    own = ("--policy", str(folder / "policy.yaml"), "--data", f"sales={folder / 'sales.parquet'}")
    assert main(["ask", "--embedded", *own, *QUESTION, "--directory", str(folder / "state")]) == 5
    said = capsys.readouterr().err
    assert f"{folder / 'state'} is in use, most likely by `gris serve`: leave out --embedded" in said
    (address,) = [line.partition("=")[2] for line in printed if line.startswith("export GRIS_BUDGET=")]
    assert main(["remaining", "--budget", address, "--account", "demo/ana"]) == 0


def test_a_policy_in_another_currency_than_the_folders_ledger_is_refused_before_anything_starts(
    sales: Path, capsys: pytest.CaptureFixture[str], starts_processes: None
) -> None:
    """The message names the key that has changed and the ways on; as long as nothing was spent, there is no need to."""
    policy, state = sales / "policy.yaml", sales / "state"
    own = ("--policy", str(policy), "--data", f"sales={sales / 'sales.parquet'}")
    asked = ("ask", "--embedded", *own, *QUESTION, "--directory", str(state))
    first = policy.read_text()
    policy.write_text(first.replace("epsilon_per: 0.15", "epsilon_per: 0.3"))
    assert main(["explain", *asked[1:]]) == 0
    policy.write_text(first)
    assert main(asked) == 0
    capsys.readouterr()
    left = run_json(capsys, "remaining", "--embedded", "--policy", str(policy), "--directory", str(state))
    assert left["remaining"][-1]["spent"]["information"] > 0
    policy.write_text(first.replace("epsilon_per: 0.15", "epsilon_per: 0.2"))
    for command in (
        asked,
        ("serve", *own, "--directory", str(state), *FREE_PORTS),
    ):
        capsys.readouterr()
        assert main([*command]) == 2
        said = capsys.readouterr().err
        for words in (
            "epsilon_per 0.2",
            "with epsilon_per 0.15",
            "unit of a budget is worth",
            "--directory names",
        ):
            assert words in said
        assert "count_noise" not in said
    (state / "currencies.json").write_text("spoilt")
    assert main(asked) == 2
    assert "counts another currency than the price" in capsys.readouterr().err
    assert main([*asked[:-1], str(sales / "other")]) == 0


def test_a_policy_with_audiences_is_asked_as_one(
    sales: Path, capsys: pytest.CaptureFixture[str], starts_processes: None
) -> None:
    """Without one the message names the flag."""
    policy = sales / "policy.yaml"
    policy.write_text(
        f"{policy.read_text()}audiences: {{of: {{tables: {{sales: {{columns: [product]}}}}}}}}\n"
    )
    own = ("--policy", str(policy), "--data", f"sales={sales / 'sales.parquet'}")
    flags = ("--embedded", *own, *QUESTION, "--directory", str(sales / "state"))
    for command in ("ask", "explain"):
        assert main([command, *flags]) == 3
        assert "--audience or GRIS_AUDIENCE names it" in capsys.readouterr().err
        assert main([command, *flags, "--audience", "of"]) == 0


def test_a_policy_that_has_changed_is_said_to_have_before_anything_is_asked(
    sales: Path, capsys: pytest.CaptureFixture[str], starts_processes: None
) -> None:
    """By its keys, once; nothing is said of comments."""
    policy = sales / "policy.yaml"
    own = ("--policy", str(policy), "--data", f"sales={sales / 'sales.parquet'}")
    asked = ("explain", "--embedded", *own, *QUESTION, "--directory", str(sales / "state"))
    said = []
    for text in ("", "# more\n", "max_k: 50\n", ""):
        policy.write_text(policy.read_text() + text)
        assert main(asked) == 0
        said.append(capsys.readouterr().err)
    assert ["", "", ""] == [said[0], said[1], said[3]]
    assert "was last used: max_k. What is asked under other settings" in said[2]


def test_only_what_another_try_can_mend_is_unavailable(
    sales: Path, capsys: pytest.CaptureFixture[str], starts_processes: None
) -> None:
    """A configuration that a service cannot use is a fault of it, and not of the service."""
    (sales / "budget.yaml").write_text("accounts: []\n")
    own = ("--policy", str(sales / "policy.yaml"), "--data", f"sales={sales / 'sales.parquet'}")
    budget = ("--budget-config", str(sales / "budget.yaml"), "--account", "a/b")
    assert main(["ask", "--embedded", *own, *budget, *QUESTION, "--directory", str(sales / "state")]) == 2
    assert "budget_service: did not start: " in capsys.readouterr().err


def test_a_question_about_own_data_starts_its_own_services(
    sales: Path, capsys: pytest.CaptureFixture[str], starts_processes: None
) -> None:
    """With the policy and the data that the flags name."""
    own = ("--policy", str(sales / "policy.yaml"), "--data", f"sales={sales / 'sales.parquet'}")
    rows = run_json(capsys, "ask", "--embedded", *own, *QUESTION, "--directory", str(sales / "state"))["rows"]
    assert 2 == len(rows)


def test_a_question_without_columns_prints_one_total(
    sales: Path, capsys: pytest.CaptureFixture[str], starts_processes: None
) -> None:
    """By flags and in SQL, of members and of clipped rows: a count and its interval, with neither rank nor element."""
    own = ("--policy", str(sales / "policy.yaml"), "--data", f"sales={sales / 'sales.parquet'}")
    asked = ("ask", "--embedded", *own, "--directory", str(sales / "state"))
    assert main([*asked, "--table", "sales"]) == 0
    printed = capsys.readouterr().out
    assert "noisy count" in printed.splitlines()[0]
    assert "#" not in printed.splitlines()[0]
    assert "1 information and 0 calls" in printed
    rows = ("--sql", "SELECT COUNT(*) AS n FROM sales WHERE product = 'p1'", "--json")
    assert main([*asked, *rows]) == 0
    shown = json.loads(capsys.readouterr().out)
    (row,) = shown["rows"]
    assert [] == row["element"]
    assert shown["parameters"]["clipped"] is True
    assert main([*asked, *rows[:2], "--verbose"]) == 0
    assert "At most 5 rows of a member count in each" in capsys.readouterr().out
    price = run_json(capsys, "explain", *asked[1:], "--table", "sales", "--count", "events")
    assert "COALESCE(" in price["queries"][0]["sql"]


@pytest.mark.parametrize(
    ("command", "flags", "expected"),
    [
        ("ask", ("--embedded", "--data", "mine={data}"), "lists no such table, only cofacts_feedback"),
        ("explain", ("--embedded", "--data", "mine=x.parquet"), "--policy FILE names yours"),
        ("ask", ("--embedded", "--policy", "{policy}"), "--data TABLE=PATH says where the data are"),
        (
            "ask",
            ("--embedded", "--policy", "{policy}", "--data", "mine={data}"),
            "lists no such table, only sales",
        ),
        (
            "ask",
            ("--embedded", "--policy", "nowhere.yaml", "--data", "sales={data}"),
            "there is no file nowhere.yaml",
        ),
        (
            "ask",
            ("--policy", "{policy}", "--data", "sales={data}"),
            "--policy has no meaning without --embedded",
        ),
        ("ask", ("--embedded", "--dp", "localhost:1"), "--dp has no meaning with --embedded"),
        ("explain", ("--directory", "x"), "--directory has no meaning without --embedded"),
        ("ask", ("--gateway", "gris://h:1", "--data", "a=b"), "--data has no meaning with --gateway"),
        ("ask", ("--engine", "pinot", "--data", "a=b"), "--data has no meaning with --engine pinot"),
        ("ask", ("--pinot-broker", "http://b"), "--pinot-broker has no meaning with --engine duckdb"),
        ("ask", ("--spark", "local[1]"), "--spark has no meaning with --engine duckdb"),
    ],
)
def test_a_flag_that_would_be_ignored_is_refused_by_name(
    sales: Path, capsys: pytest.CaptureFixture[str], command: str, flags: tuple[str, ...], expected: str
) -> None:
    """Before anything is started."""
    named = {"policy": str(sales / "policy.yaml"), "data": str(sales / "sales.parquet")}
    account = ("--account", "demo/ana")
    assert main([command, *account, *QUESTION, *(flag.format_map(named) for flag in flags)]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("remaining --gateway gris://h:1 --budget h:2", "--budget has no meaning with --gateway"),
        ("catalog --embedded --dp h:2", "--dp has no meaning with --embedded"),
        ("demo --pinot-broker http://b", "--pinot-broker has no meaning with --engine duckdb"),
    ],
)
def test_commands_with_some_of_the_flags_refuse_it_too(
    capsys: pytest.CaptureFixture[str], words: str, expected: str
) -> None:
    """Of the flags that they have: the rule stands with the flags, and with no command."""
    assert main(words.split()) == 2
    assert expected in capsys.readouterr().err


def test_each_fault_of_a_policy_has_a_line_of_its_own(
    sales: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behind the flag that names the policy."""
    policy = sales / "policy.yaml"
    policy.write_text(policy.read_text().replace("member:", "mumber:", 1) + "more: 1\n")
    flags = ("--embedded", "--policy", str(policy), "--data", f"sales={sales / 'sales.parquet'}")
    assert main(["ask", "--account", "demo/ana", *QUESTION, *flags]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"usage: --policy: {policy}:")
    assert len(lines) > 1
    assert all(line.startswith(f"{policy}:") for line in lines[1:])


def test_a_file_of_rows_without_types_is_refused_with_what_to_do(
    sales: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the flag, before a service is asked."""
    rows = sales / "sales.txt"
    rows.write_text("client,product\n1,p1\n")
    assert main(["ask", "--account", "demo/ana", "--data", f"sales={rows}", *QUESTION]) == 2
    assert f"--data: {rows} must be Parquet" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("nowhere.parquet", "--data: there is no file {path}"),
        ("*.orc", "--data: {path}: the data folder"),
        ("sales.txt", "--data: {path} must be Parquet (.parquet), CSV (.csv, .tsv) or DuckDB (.duckdb, .db)"),
    ],
)
@pytest.mark.parametrize("command", ["serve", "check"])
def test_a_file_that_holds_no_table_is_named_by_every_command(
    sales: Path, capsys: pytest.CaptureFixture[str], command: str, file: str, expected: str
) -> None:
    """With what to do about it, as by `gris ask`."""
    (sales / "sales.txt").write_text("client,product\n1,p1\n")
    policy, data = str(sales / "policy.yaml"), f"sales={sales / file}"
    flags = {"serve": ("serve", "--policy", policy), "check": ("check", policy)}[command]
    assert main([*flags, "--data", data]) == 2
    assert expected.format(path=sales / file) in " ".join(capsys.readouterr().err.split())


def test_a_file_of_another_table_is_refused_by_its_flag(
    sales: Path, capsys: pytest.CaptureFixture[str], starts_processes: None
) -> None:
    """With the table and the column; it is the file that has to be another one."""
    rows = "SELECT i AS client FROM range(30) AS rows(i)"
    duckdb.execute(f"COPY ({rows}) TO '{sales / 'sales.parquet'}' (FORMAT parquet)")
    own = ("--policy", str(sales / "policy.yaml"), "--data", f"sales={sales / 'sales.parquet'}")
    assert main(["ask", "--embedded", *own, *QUESTION, "--directory", str(sales / "state")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "usage: --data: the table sales has no column product, which the policy lists" in said


@pytest.mark.parametrize("pattern", ["", "part=*/*.parquet"])
def test_a_folder_of_files_is_drafted_checked_and_asked_about_as_one_table(
    sales: Path, capsys: pytest.CaptureFixture[str], pattern: str, starts_processes: None
) -> None:
    """With the policy that is drafted for it, under the folder's name; what its folders say is a column."""
    parts = sales / "shop"
    with duckdb.connect() as connection:
        rows = connection.read_parquet(str(sales / "sales.parquet"))
        divided = rows.project("*, CASE WHEN client < 4000 THEN 'x y' ELSE 'z' END AS part")
        divided.write_parquet(str(parts), partition_by=["part"])
    policy, data = str(sales / "shop.yaml"), str(parts / pattern)
    assert main(["draft", "--names-only", "--data", data, "--out", policy]) == 0
    assert main(["check", policy, "--data", f"shop={data}"]) == 0
    capsys.readouterr()
    own = ("--embedded", "--policy", policy, "--data", f"shop={data}", "--directory", str(sales / "of-shop"))
    found = run_json(capsys, "ask", *own, "--table", "shop", "--by", "part", "--k", "2")["rows"]
    # The noise of a count is far below 500.
    assert [(each["element"], round(each["noisy_count"] / 1000)) for each in found] == [
        (["x y"], 4),
        (["z"], 1),
    ]


def test_what_the_environment_says_is_there_for_other_commands_too(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    starts_processes: None,
) -> None:
    """Only flags that were typed are refused."""
    monkeypatch.setenv("GRIS_DP", "127.0.0.1:1")
    assert main(["catalog", "--embedded", "--directory", str(tmp_path), "--json"]) == 0
    assert "cofacts_feedback" in capsys.readouterr().out


@pytest.mark.parametrize("flag", ["--dp-port", "--budget-port", "--admin-port"])
def test_a_port_in_use_is_named_with_its_flag(
    sales: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    """Before a service starts."""
    ports = {"--dp-port": "0", "--budget-port": "0", "--admin-port": "0"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports[flag] = str(taken.getsockname()[1])
        flags = [word for pair in ports.items() for word in pair]
        assert main(["serve", "--policy", str(sales / "policy.yaml"), *flags]) == 2
        assert f"{flag}: 127.0.0.1:{ports[flag]}: address already in use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        (("--dp-port", "50052"), "--dp-port and --budget-port are both 50052"),
        (
            ("--budget-port", "9", "--admin-port", "9"),
            "--budget-port and --admin-port are both 9: each needs",
        ),
    ],
)
def test_two_services_with_one_port_are_refused_by_name(
    sales: Path, capsys: pytest.CaptureFixture[str], ports: tuple[str, ...], expected: str
) -> None:
    """Before one of them finds the port in use; 0 stands for a free one as often as it is given."""
    assert main(["serve", "--policy", str(sales / "policy.yaml"), *ports]) == 2
    assert expected in " ".join(capsys.readouterr().err.split())


def test_data_of_another_shape_are_not_served(sales: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The column that is missing is named."""
    other = sales / "other.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS client) TO '{other}' (FORMAT parquet)")
    flags = ("--policy", str(sales / "policy.yaml"), "--data", f"sales={other}")
    assert main(["serve", *flags, *FREE_PORTS]) == 2
    assert "--data sales: expected a column product" in capsys.readouterr().err


def test_data_that_break_a_promise_are_not_served(sales: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Too little noise would hide a member who has more; how many there are is for `gris check` to say."""
    policy, other = sales / "policy.yaml", sales / "other.parquet"
    promised = policy.read_text().replace("product: {type: string,", "product: {type: string, delta: 1,")
    policy.write_text(promised)
    with duckdb.connect() as connection:
        rows = "SELECT i % 10 AS client, 'p' || (i % 3) AS product FROM range(60) AS rows(i)"
        connection.execute(f"COPY ({rows}) TO '{other}' (FORMAT parquet)")
    assert main(["serve", "--policy", str(policy), "--data", f"sales={other}", *FREE_PORTS]) == 2
    said = capsys.readouterr().err
    assert "--data sales: members have more than the policy promises (columns.product.delta)" in said
    assert f"gris check {policy} --data sales={other}" in said


@pytest.mark.usefixtures("starts_processes")
def test_why_a_service_did_not_start_is_what_this_run_says(
    sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the last line that an earlier run left in its log."""
    (sales / "dp_service.log").write_text("an earlier run\n")
    # It ends at once, without a word.
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    services = EmbeddedServices(
        policy=sales / "policy.yaml", budget_config=sales / "none.yaml", directory=sales
    )
    with pytest.raises(ServiceUnavailable, match="did not start: its log is empty"), services:
        pass


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(
    sales: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the words of Python."""
    (sales / "file").write_text("")
    files = ("--policy", str(sales / "policy.yaml"), "--directory", str(sales / "file" / "state"))
    assert main(["catalog", "--embedded", *files]) == 1
    assert f"unexpected: {sales / 'file' / 'state'}: Not a directory\n" == capsys.readouterr().err
