"""`gris serve --practice`: the policy's tables with made-up rows, which every surface says of every answer."""

from __future__ import annotations

import datetime
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyarrow import parquet

from dp_service.queries.policy import parse_policy
from gris_cli.__main__ import main
from gris_cli.examples import find_examples
from gris_data.errors import InputError
from gris_data.policy.data import require_kept
from gris_lab.practice_rows import MEMBERS, practice_tables
from pinot_connector.dbapi import PracticeWarning
from tests.support.rings import needs
from tests.support.shared_answers import (
    GRIS,
    asked_by_an_agent,
    asked_by_sqlalchemy,
    asked_in_a_shell,
    serving,
    shown_and_downloaded,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
BUDGET = str(EXAMPLES / "budget.yaml")
TODAY = datetime.date(2026, 11, 26)
CODE = "practice.rows"
SAYS = "these rows are made up"
QUESTION = {"table": "cofacts_feedback", "by": "app", "k": "5", "measure": "distinct_members"}
SQL = "SELECT app, COUNT(DISTINCT member_id) AS n FROM cofacts_feedback GROUP BY app ORDER BY n DESC LIMIT 5"
PORTS = tuple(
    word for name in ("gateway", "mcp", "console", "broker", "postgres") for word in (f"--{name}-port", "0")
)
COLUMNS = """
epsilon_per: 0.15
delta: 1e-10
tables:
  sales:
    member: customer
    time: {column: sold_at, type: int64, unit: milliseconds, zone: UTC, buckets: [day]}
    measures: {distinct_members: true, events: {tau: 5, tau_is: clipped}}
    columns:
      customer: {type: int64}
      "kind": {type: string, group_by: true, domain: ["a", "it's", "ü"]}
      plan: {type: string, group_by: true, delta: 1}
      paid: {type: bool, group_by: true}
      weekday: {type: int64, group_by: true, domain: [1, 2, 3, 4, 5, 6, 7], delta: 3}
      born: {type: date, filter: [range]}
      seen: {type: timestamp, filter: [range]}
"""
VALUES = """
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  sales:
    member: customer
    time: {column: day, type: date}
    measures: {distinct_members: true}
    contributions: {bound: in_query, delta_0: 8, units: 20, sums: {max_members: 100000, max_rows: 10000000}}
    columns:
      kind: {type: string, group_by: true}
    values:
      price: {type: decimal, quantum: 0.01, lower: -5, upper: 500, row_lower: -5, row_upper: 100}
      pieces: {type: int64, lower: 0, upper: 40}
    quantiles:
      age: {type: int64, member_value: largest, grid: {scale: linear, from: 0, to: 120, cells: 24}}
"""
PREPARED = """
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  sales:
    member: customer
    measures: {distinct_members: true}
    contributions: {bound: prepared, delta_0: 8, units: 20, elements: [kind], period: all}
    columns:
      kind: {type: string, group_by: true}
"""


@pytest.mark.parametrize(
    "text",
    [(EXAMPLES / "policy.yaml").read_text(), COLUMNS, VALUES],
    ids=["the examples", "every type", "values and quantiles"],
)
def test_made_up_rows_are_as_the_policy_says_and_keep_what_it_promises(text: str, tmp_path: Path) -> None:
    """Types, units, domains and numbers of values; and one policy gives the same rows again."""
    policy = parse_policy(text)
    tables = practice_tables(policy, tmp_path, TODAY)
    assert tables.keys() == {table.name for table in policy.tables}
    for table in policy.tables:
        require_kept(table, tables[table.name])
        members = parquet.read_table(tables[table.name], columns=[table.member]).column(0)
        assert MEMBERS // 2 < len(members.unique()) <= MEMBERS
    (tmp_path / "again").mkdir()
    again = practice_tables(policy, tmp_path / "again", TODAY)
    assert {name: path.read_bytes() for name, path in again.items()} == {
        name: path.read_bytes() for name, path in tables.items()
    }


def test_a_table_that_a_prepared_copy_answers_is_refused_by_name(tmp_path: Path) -> None:
    """What the copy promises cannot be made up."""
    with pytest.raises(InputError, match="the table sales is answered from a prepared copy"):
        practice_tables(parse_policy(PREPARED), tmp_path, TODAY)


def test_practice_takes_no_data(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is named would be ignored."""
    assert main(["serve", "--practice", "--data", "cofacts_feedback=x.parquet"]) == 2
    assert "--data has no meaning with --practice" in capsys.readouterr().err


def test_practice_services_have_no_ports_to_choose(capsys: pytest.CaptureFixture[str]) -> None:
    """Who is given an address of them could ask about data of their own."""
    assert main(["serve", "--practice", "--dp-port", "0"]) == 2
    assert "--dp-port has no meaning with --practice" in capsys.readouterr().err


@pytest.fixture(scope="module")
@needs("process")
def practised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], Path]]:
    """The examples' policy on made-up rows; what is printed, and the folder."""
    folder = tmp_path_factory.mktemp("practised")
    with serving(folder, "--practice", *PORTS) as said:
        yield said, folder


async def test_each_surface_says_that_an_answer_is_practice(
    practised: tuple[dict[str, Any], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a repeated one, another view of it, a price, and what needs no release."""
    said, _ = practised
    assert said["practice"] is True
    shell = asked_in_a_shell(said)
    assert shell["statements"][0]["code"] == CODE
    other = asked_in_a_shell({"ask": said["ask"] + " --confidence 0.9"})
    assert (other["charged"]["information"], other["charged"]["calls"]) == (0, 0)
    assert other["statements"][0]["code"] == CODE
    price = asked_in_a_shell({"ask": said["ask"].replace(" ask ", " explain ")})
    assert CODE in [each["code"] for each in price["statements"]]
    explained = await asked_by_an_agent(said, sql=f"EXPLAIN {SQL}")
    assert SAYS in json.dumps(explained)
    with pytest.warns(PracticeWarning, match=SAYS) as warned:
        assert len(asked_by_sqlalchemy(said, SQL, monkeypatch)) == 4
    assert len(warned) == 1
    by_agent = await asked_by_an_agent(said, table="cofacts_feedback", by=["app"], k=5)
    assert SAYS in by_agent["notes"][0]["text"]
    free = await asked_by_an_agent(said, sql="SELECT app FROM cofacts_feedback GROUP BY app LIMIT 0")
    assert SAYS in free["notes"][0]["text"]
    page, file = await shown_and_downloaded(said, **QUESTION)
    assert SAYS in page.text
    assert "Practice: all rows are made up." in page.text
    assert file.response.headers["content-disposition"] == 'attachment; filename="practice.rows-answer.csv"'


def test_no_other_rows_are_answered_as_if_they_were_made_up(
    practised: tuple[dict[str, Any], Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even for who finds the services, which nothing names; the examples' policy declares no version."""
    said, folder = practised
    assert not {"dp", "budget", "admin"} & said.keys()
    written = yaml.safe_load((folder / ".gris" / "practice" / "gateway.yaml").read_text())
    monkeypatch.delenv("GRIS_GATEWAY", raising=False)
    monkeypatch.setenv("GRIS_RELEASES", str(folder / "asked.sqlite"))
    services = ["--dp", written["dp"]["address"], "--budget", written["budget"]["address"]]
    data = f"cofacts_feedback={find_examples(None).tables['cofacts_feedback']}"
    question = ["--account", "demo/ana", "--table", "cofacts_feedback", "--by", "app", "--k", "5"]
    assert main(["ask", *services, "--data", data, *question]) != 0
    shown = capsys.readouterr()
    assert "for practice" in " ".join((shown.out + shown.err).split())
    assert "made up" not in shown.out


def test_nothing_of_practice_is_kept_and_nothing_real_is_touched(
    practised: tuple[dict[str, Any], Path],
) -> None:
    """A folder of its own has the identity alone: no noise key, no ledger, no release."""
    folder = practised[1] / ".gris"
    assert [path.name for path in folder.iterdir()] == ["practice"]
    names = {path.name for path in (folder / "practice").rglob("*")}
    assert {"gateway.key", "issuer.key", "analyst.token"} <= names
    assert (folder / "practice" / ".gitignore").read_text() == "*\n"
    assert not {"noise.key", "ledger.sqlite", "releases.sqlite", "releases.key"} & names


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_practice_that_is_ended_before_it_serves_leaves_nothing(
    tmp_path: Path, starts_processes: None, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    """The folder of made-up rows goes with it."""
    if signal.getsignal(end) is signal.SIG_IGN:
        pytest.skip("this session ignores the signal, as nohup does")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "policy.yaml").write_text(COLUMNS)
    with subprocess.Popen(
        [*GRIS, "serve", "--practice", "--policy", "policy.yaml", "--budget-config", BUDGET, *PORTS],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not list(tmp_path.glob("gris-practice-*")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(end)
        try:
            assert process.wait(60) != 0
        finally:
            process.kill()
    assert not list(tmp_path.glob("gris-practice-*"))


def test_the_next_practice_has_its_budget_again_and_other_noise(
    tmp_path: Path, starts_processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start draws a key of its own, so that noise which is known of made-up rows tells nothing of another run."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    answers = []
    # The second by closing the terminal, unless this session ignores that, as nohup does.
    closing = signal.SIGHUP if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else signal.SIGTERM
    for end in (signal.SIGINT, closing):
        with serving(tmp_path, "--practice", *PORTS, end=end) as said:
            assert list(temporary.glob("gris-practice-*"))
            answers.append(asked_in_a_shell(said))
        assert not list(temporary.glob("gris-practice-*"))
    first, second = answers
    assert first["remaining"] == second["remaining"]
    assert first["key_id"] != second["key_id"]
    assert first["rows"] != second["rows"]
    shutil.rmtree(tmp_path / ".gris")
