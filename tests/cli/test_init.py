"""`gris init` writes what a first shared answer needs; all of it starts as written, and nothing is written over."""

from __future__ import annotations

import io
import os
import pty
import subprocess
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import create_engine
from sqlalchemy import text as statement
from sqlalchemy.pool import NullPool

from gris_cli.__main__ import main
from gris_cli.shared.serving import Written
from gris_console.process import HostedConsole
from gris_gateway.hosting import Gateway
from tests.support.command_line import run_json, run_text
from tests.support.redis_server import free_port
from tests.support.rings import needs
from tests.support.shared_answers import (
    GRIS,
    asked_by_an_agent,
    asked_by_sqlalchemy,
    asked_in_a_shell,
    serving,
    shown_in_a_browser,
    token_of,
)

SQL = "SELECT product, COUNT(DISTINCT customer_number) AS n FROM purchases GROUP BY product ORDER BY n DESC LIMIT 5"
PORTS = range(50051, 50058)


def write_purchases(folder: Path) -> Path:
    """Write a table as a newcomer has it: rows of members, made by other programs."""
    rows = range(40_000)
    table = pa.table(
        {
            "customer_number": [i * 7919 % 8_000 for i in rows],
            "product": [f"P-{i % 7}" for i in rows],
            "bought_on": [date(2026, 1, 1) + timedelta(days=i % 90) for i in rows],
        }
    )
    parquet.write_table(table, folder / "purchases.parquet")
    return folder / "purchases.parquet"


def flags(path: Path, /, **others: str) -> list[str]:
    """Return the five answers as flags."""
    given = {
        "data": str(path),
        "member": "customer_number",
        "analyst": "ana",
        "budget": "300:9",
        "host": "localhost",
    }
    return [word for name, value in (given | others).items() for word in (f"--{name}", value) if value]


@pytest.fixture(scope="module")
@needs("process")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What was written for a new table, started as it is but for its ports."""
    folder = tmp_path_factory.mktemp("mein Projekt ü")
    state = folder / "geteilt"
    assert main(["init", str(state), *flags(write_purchases(folder))]) == 0
    free = {str(port): str(free_port()) for port in PORTS}
    for name in ("gateway.yaml", "console.yaml"):
        text = (state / name).read_text()
        for port, other in free.items():
            text = text.replace(port, other)
        (state / name).write_text(text)
    with serving(folder, "--from", str(state)) as said:
        yield said


async def test_what_is_written_answers_every_surface_as_it_stands(
    started: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell, SQLAlchemy, Pinot's own dialect, an agent and a browser; an analyst's own budget pays, once."""
    shell = asked_in_a_shell(started)
    counts = {row["element"][0]: row["noisy_count"] for row in shell["rows"]}
    assert len(counts) == 5
    levels = {tuple(each["path"]): each["limit"]["information"] for each in shell["remaining"]}
    assert levels == {("team",): 900, ("team", "ana"): 300}
    assert dict(map(tuple, asked_by_sqlalchemy(started, SQL, monkeypatch))) == counts
    with create_engine(started["pinot"], poolclass=NullPool).connect() as connection:
        assert dict(map(tuple, connection.execute(statement(SQL)).fetchall())) == counts
    by_agent = await asked_by_an_agent(started, table="purchases", by=["product"], k=5)
    assert [row["count"] for row in by_agent["rows"]] == list(counts.values())
    page = await shown_in_a_browser(
        started, table="purchases", by="product", k="5", measure="distinct_members"
    )
    assert all(element in page.text for element in counts)


def test_a_second_run_changes_nothing_and_makes_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So it adds an analyst, and goes on after it was interrupted; what is there is said."""
    data, state = write_purchases(tmp_path), tmp_path / "state"
    first = run_json(capsys, "init", state, *flags(data))
    assert len(first["written"]) == 13
    assert first["there"] == []
    (state / "console.yaml").unlink()
    before = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    second = run_json(capsys, "init", state, *flags(data, analyst="ben", budget="1:1"))
    assert [Path(path).name for path in second["written"]] == ["ben.token", "console.yaml"]
    assert {path: path.read_bytes() for path in before} == before
    assert "budget.yaml is there already" in run_text(capsys, "init", state, *flags(data))
    assert {0o600} == {path.stat().st_mode & 0o777 for path in state.rglob("*") if path.is_file()}
    assert {0o700} == {path.stat().st_mode & 0o777 for path in (state, state / "credentials")}


@pytest.mark.parametrize("name", ["member", "analyst", "budget", "host", "data"])
def test_an_answer_that_is_missing_is_named_where_nobody_can_be_asked(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is written."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["init", str(tmp_path / "state"), *flags(write_purchases(tmp_path), **{name: ""})]) == 2
    assert f"--{name} is missing" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"data": "nowhere.parquet"}, "--data: there is no file nowhere.parquet"),
        ({"member": "person"}, "person"),
        ({"analyst": "../ana"}, "--analyst: expected names"),
        ({"analyst": "admin"}, "other than admin"),
        ({"budget": "3000"}, "--budget expects INFORMATION:CALLS"),
        ({"budget": "0:30"}, "--budget expects two numbers from 1 on"),
        ({"host": "https://h:1"}, "without a port"),
    ],
)
def test_an_answer_of_another_form_is_refused_by_name(
    wrong: dict[str, str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is written."""
    assert main(["init", str(tmp_path / "state"), *flags(write_purchases(tmp_path), **wrong)]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither to write a policy elsewhere, nor to take another one's key."""
    data, state = write_purchases(tmp_path), tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "budget.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    assert main(["init", str(state), *flags(data)]) == 2
    assert not (tmp_path / "elsewhere.yaml").exists()
    (state / "budget.yaml").unlink()
    (state / "issuer.key").unlink()
    (state / "issuer.key").symlink_to(tmp_path / "elsewhere.key")
    assert main(["init", str(state), *flags(data)]) == 2
    assert "expected a file of your own, and no link" in capsys.readouterr().err


def test_a_host_that_others_reach_is_served_by_tls_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gateway, agents and console are sound as they are written, and all that is pasted names the host."""
    state = tmp_path / "state"
    said = run_json(capsys, "init", state, *flags(write_purchases(tmp_path), host="Gris.example.org"))
    monkeypatch.chdir(state)
    written = Written.read(state)
    Gateway(written.gateway).close()
    assert written.console is not None
    HostedConsole(written.console)
    assert written.gateway.listen == "0.0.0.0:50054"
    assert said["sqlalchemy"]["url"].startswith("gris://gris.example.org:50054/")
    assert said["mcp"]["mcpServers"]["gris"]["url"] == "https://gris.example.org:50055/mcp"
    assert said["console"]["url"] == "https://gris.example.org:50056"
    assert said["pinot"].startswith("pinot+https://-:")
    assert said["pinot"].endswith(
        "@gris.example.org:50057/query/sql?controller=https://gris.example.org:50057"
    )
    assert token_of(said)


def test_a_terminal_is_asked_five_questions(tmp_path: Path, starts_processes: None) -> None:
    """With what names say, and what is usual, as answers that a return key gives."""
    data = write_purchases(tmp_path)
    ours, theirs = pty.openpty()
    command = [*GRIS, "init", "state"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path
    ) as process:
        os.close(theirs)
        os.write(ours, f"{data}\n\nana, ben\n\n\n".encode())
        assert process.stdout is not None
        said = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0, said
    assert "[customer_number]" in said
    assert (tmp_path / "state" / "credentials" / "ben.token").exists()
    assert "gris serve --from state" in said
