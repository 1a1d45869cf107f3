"""One's own table: asked about with `--embedded --policy`, and served by `gris serve`; no flag is ignored."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from gris_cli.__main__ import main
from tests.support.rings import needs

GRIS = (sys.executable, "-m", "gris_cli")
QUESTION = ("--table", "sales", "--by", "product", "--k", "2")


@pytest.fixture
def sales(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with a table and the policy that was drafted for it."""
    rows = "SELECT i % 5000 AS client, 'p' || (i % 4) AS product FROM range(40000) AS rows(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{tmp_path / 'sales.parquet'}' (FORMAT parquet)")
    draft = ("--data", str(tmp_path / "sales.parquet"), "--out", str(tmp_path / "policy.yaml"))
    assert main(["policy", "draft", *draft]) == 0
    capsys.readouterr()
    return tmp_path


@pytest.fixture
@needs("process")
def served(sales: Path) -> Iterator[list[str]]:
    """`gris serve` on ports of its own, and what it printed."""
    files = ("--policy", str(sales / "policy.yaml"), "--data", f"sales={sales / 'sales.parquet'}")
    ports = ("--dp-port", "0", "--budget-port", "0", "--admin-port", "0")
    command = [*GRIS, "serve", *files, *ports, "--directory", str(sales / "state")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line.strip())
            if "Ctrl-C" in line:
                break
        yield printed
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_what_serve_prints_asks_and_verifies(
    served: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The environment, a first question and the verification of the ledger, as they are copied."""
    for line in served:
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            monkeypatch.setenv(name, value)
    (question,) = [line for line in served if line.startswith("gris ask")]
    assert main([*question.split()[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["charged"]["calls"] == 1
    assert main(["budget", "verify"]) == 0
    assert "0 differences" in capsys.readouterr().out


def test_a_question_about_own_data_starts_its_own_services(
    sales: Path, capsys: pytest.CaptureFixture[str], starts_processes: None
) -> None:
    """With the policy and the data that the flags name."""
    own = ("--policy", str(sales / "policy.yaml"), "--data", f"sales={sales / 'sales.parquet'}")
    assert main(["ask", "--embedded", *own, *QUESTION, "--directory", str(sales / "state"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert 2 == len(rows)


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


def test_data_of_another_shape_are_not_served(sales: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The column that is missing is named."""
    other = sales / "other.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS client) TO '{other}' (FORMAT parquet)")
    flags = ("--policy", str(sales / "policy.yaml"), "--data", f"sales={other}")
    assert main(["serve", *flags]) == 2
    assert "--data sales: expected a column product" in capsys.readouterr().err


def test_the_retired_name_of_a_variable_is_refused_with_the_new_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be ignored otherwise, and the default address asked."""
    monkeypatch.setenv("GRIS_ADMIN", "127.0.0.1:1")
    assert main(["budget", "verify"]) == 2
    assert "GRIS_BUDGET_ADMIN" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(
    sales: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the words of Python."""
    (sales / "file").write_text("")
    files = ("--policy", str(sales / "policy.yaml"), "--directory", str(sales / "file" / "state"))
    assert main(["catalog", "--embedded", *files]) == 1
    assert f"unexpected: {sales / 'file' / 'state'}: Not a directory\n" == capsys.readouterr().err
