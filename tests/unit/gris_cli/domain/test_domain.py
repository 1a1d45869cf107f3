"""`gris domain` against a real budget_service."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dp_service.queries.policy import read_policy
from dp_service.queries.published import DomainFile
from examples.published_domain import compare
from gris_cli.__main__ import main
from gris_cli.data.domain import ledger_entry
from pinot_connector.budgets import Cost
from pinot_connector.errors import OutcomeUnknown
from pinot_connector.rpc_errors import Service as Named
from tests.support import publishing
from tests.support.budget_process import Service, service
from tests.support.command_line import run_json

POLICY = """
epsilon_per: 0.15
delta: 1e-10
tables:
  visits:
    member: who
    measures: {distinct_members: true}
    columns:
      page: {type: string, group_by: true}
      day: {type: date, group_by: true}
"""
BUDGET = """
accounts:
  - path: [domains, poor]
    limit: {information: 35, calls: 1000}
  - path: [domains]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [domains, "*"]
    limit: {information: 1000, calls: 1000}
  - path: [acme]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [acme, "*"]
    limit: {information: 1000, calls: 1000}
"""
MEMBERS = 400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Data in which everyone visits /home, and one member each of 400 other pages; and a policy."""
    rows = "SELECT 'm' || i AS who, unnest(['/home', '/page/' || i]) AS page, DATE '2019-04-14' AS day"
    return publishing.write_data(tmp_path, "visits", f"{rows} FROM range({MEMBERS}) AS t(i)", POLICY)


def publish(folder: Path, *more: str, column: str = "page") -> int:
    """Publish a column of the visits."""
    return publishing.publish("domain", folder, "visits", column, "--member", "who", *more, out="page.json")


def spent(ledger: Service, account: str, capsys: pytest.CaptureFixture[str]) -> list[int]:
    """Return the information and calls that an account has spent."""
    capsys.readouterr()
    shown = run_json(capsys, "budget", "show", "--account", account, "--budget", ledger.address)
    return [level["spent"] for level in shown["levels"][-2:]]


def test_a_publication_is_recorded_and_names_what_many_have(
    folder: Path, ledger: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """ceil(8 rho / epsilon_per^2) information and ceil(delta / delta per call) calls, then a file."""
    code = publish(folder, "--account", "domains/pages", "--budget", ledger.address, "--json")
    reported = json.loads(capsys.readouterr().out)
    assert (0, {"information": 36, "calls": 10}) == (code, reported["price"])
    domain = DomainFile.read((folder / "page.json").read_bytes())
    assert ("/home",) == domain.elements
    assert 0o644 == (folder / "page.json").stat().st_mode & 0o777
    assert [36, 10] == spent(ledger, "domains/pages", capsys)


def test_a_price_that_does_not_fit_leaves_no_file(
    folder: Path, ledger: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is that of an exhausted budget, and the directory is as it was."""
    before = sorted(folder.iterdir())
    assert 4 == publish(folder, "--account", "domains/poor", "--budget", ledger.address)
    assert before == sorted(folder.iterdir())
    assert [0, 0] == spent(ledger, "domains/poor", capsys)


def test_a_price_is_not_added_to_units_of_laplace_noise(
    folder: Path, ledger: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """The account of an analyst whose units are worth bounded range refuses it, and there is no file."""
    currency = read_policy((folder / "policy.yaml").read_bytes(), "policy.yaml").policy.currency
    cost = Cost(information=1, calls=1, unit_id=currency.unit_id)
    ledger_entry.record(ledger_entry.LedgerAccount(ledger.address, ("acme", "ada"), None), cost)
    assert 2 == publish(folder, "--account", "acme/ada", "--budget", ledger.address)
    assert not (folder / "page.json").exists()
    assert [1, 1] == spent(ledger, "acme/ada", capsys)


@pytest.mark.slow
def test_a_ledger_that_is_not_there_leaves_the_file_before(folder: Path) -> None:
    """Nothing is shown that is not recorded."""
    (folder / "page.json").write_text("the domain before")
    assert 5 == publish(folder, "--account", "domains/pages", "--budget", "127.0.0.1:1")
    assert "the domain before" == (folder / "page.json").read_text()
    assert not list(folder.glob(".page*"))


@pytest.mark.usefixtures("capsys")
def test_an_unknown_outcome_is_repeated_and_counts_once(
    folder: Path, ledger: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first charge takes effect and its answer is lost; the second is of the same release."""
    charged = ledger_entry._charged
    lost = iter([True, False])

    async def losing(calls: Any, release: Any) -> Any:
        answer = await charged(calls, release)
        if next(lost):
            raise OutcomeUnknown(Named.BUDGET, "the answer was lost")
        return answer

    monkeypatch.setattr(ledger_entry, "_charged", losing)
    assert 0 == publish(folder, "--account", "domains/lost", "--budget", ledger.address)
    assert [36, 10] == spent(ledger, "domains/lost", capsys)


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_is_not_paid_for_is_in_no_file_when_the_command_is_killed(
    folder: Path, number: signal.Signals
) -> None:
    """The ledger takes the call and never answers; the `gris` that is installed cleans up, or cannot any more."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        arguments: list[str | Path] = [
            *(
                "--data",
                folder / "visits.parquet",
                "--table",
                "visits",
                "--column",
                "page",
                "--member",
                "who",
            ),
            *("--policy", folder / "policy.yaml", "--out", folder / "page.json", "--data-version", "v1"),
            *("--account", "domains/pages", "--budget", f"127.0.0.1:{silent.getsockname()[1]}"),
        ]
        gris = Path(sys.executable).parent / "gris"
        with subprocess.Popen([gris, "domain", "publish", *arguments], stderr=subprocess.DEVNULL) as process:
            # It calls the ledger once the file beside the domain is there.
            silent.accept()[0].close()
            process.send_signal(number)
            process.wait(timeout=30)
    left = list(folder.glob(".page*"))
    assert len(left) == (number is signal.SIGKILL)
    assert not any(file.read_bytes().strip(b"\0") for file in left)
    assert not (folder / "page.json").exists()


@pytest.mark.slow
def test_a_file_is_inspected_and_a_broken_one_is_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Method, guarantee, price and elements; a file that was edited is wrong usage."""
    assert 0 == publish(folder, "--unrecorded", "--method", "gaussian")
    capsys.readouterr()
    file = folder / "page.json"
    assert 0 == main(
        ["domain", "inspect", str(file), "--policy", str(folder / "policy.yaml"), "--elements", "--json"]
    )
    reported = json.loads(capsys.readouterr().out)
    assert ("gaussian", ["/home"], "1/10") == (reported["method"], reported["elements"], reported["rho"])
    assert 0 == main(["domain", "inspect", str(file)])
    assert "visits.page: 1 elements (string)" in capsys.readouterr().out
    file.write_bytes(file.read_bytes().replace(b"/home", b"/away"))
    assert 2 == main(["domain", "inspect", str(file)])
    assert "integrity" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "give either --account"),
        (("--unrecorded", "--account", "a/b"), "give either --account"),
        (("--unrecorded", "--method", "best"), "--method expects one of gaussian, sips"),
        (("--unrecorded", "--rho", "nan"), "nan is no number"),
        (("--unrecorded", "--rho=-1"), "rho must be"),
        (("--unrecorded", "--delta", "2"), "delta must be"),
        (("--unrecorded", "--typical", "0"), "typical must be"),
        (("--unrecorded", "--table", "no"), "lists no table"),
        (("--unrecorded", "--data", "/nowhere.parquet"), "there is no file /nowhere.parquet"),
        (("--unrecorded", "--member", "nobody"), "there is no column nobody"),
        (("--unrecorded", "--out", "/nowhere/x.json"), "there is no directory /nowhere"),
        (("--unrecorded", "--policy", "/nowhere.yaml"), "/nowhere.yaml"),
        (("--unrecorded", "--data-version", ""), "data_version: expected at least 1 character"),
        (("--unrecorded", "--data-version", "v" * 257), "data_version: expected at most 256 characters"),
        (("--unrecorded", "--data-version", "\udcff"), "data_version: "),
        (("--unrecorded", "--data-version", f"sha256:{'0a' * 32}"), "expected no plain hash of the data"),
        (("--unrecorded", "--data-version", "0A" * 16), "expected no plain hash of the data"),
        (
            ("--unrecorded", "--rho", f"0.1{'0' * 60}1"),
            "rho: expected a text such as 19/20, of at most 60",
        ),
    ],
)
def test_wrong_flags_are_told_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    """Exit code 2, one message, no file."""
    assert 2 == publish(folder, *more)
    assert said in capsys.readouterr().err
    assert not (folder / "page.json").exists()


@pytest.mark.slow
def test_days_are_published_as_days(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The type in the file is the column's."""
    assert 0 == publish(folder, "--unrecorded", column="day")
    assert 0 == main(["domain", "inspect", str(folder / "page.json"), "--elements", "--json"])
    reported = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert ("date", ["2019-04-14"]) == (reported["type"], reported["elements"])


@pytest.mark.usefixtures("starts_processes")
def test_the_example_finds_all_fifty_articles_for_no_calls(tmp_path: Path) -> None:
    """Before: UnkGumb, fewer than fifty and a call; after: KnownGumb over the published domain."""
    found = compare(tmp_path)
    assert len(found.before.rows) < 50 == len(found.after.rows)
    assert found.before.cost.calls > 0 == found.after.cost.calls
    assert found.size > 400


@pytest.mark.usefixtures("starts_processes")
def test_a_ledger_that_demands_tickets_gets_one_made_with_the_noise_key(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --key-file the price is proved; without it, or with a key of somebody else, there is no file."""
    for name, content in (("noise.key", bytes(range(32))), ("other.key", bytes(32))):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o400)
    assert 0 == main(
        ["budget", "ticket-key", "--key-file", str(folder / "noise.key"), "--out", str(folder / "ticket.key")]
    )
    demanding = f"{BUDGET}charge_tickets: {{key_file: {folder / 'ticket.key'}}}\n"
    with service(folder, f"sqlite:{folder}/ledger.db", configuration=demanding) as running:
        ledger = ("--account", "domains/pages", "--budget", running.address)
        assert 0 != publish(folder, *ledger)
        assert 0 != publish(folder, *ledger, "--key-file", str(folder / "other.key"))
        assert 2 == publish(folder, *ledger, "--key-file", str(folder / "no.key"))
        assert not (folder / "page.json").exists()
        assert 0 == publish(folder, *ledger, "--key-file", str(folder / "noise.key"))
        assert [36, 10] == spent(running, "domains/pages", capsys)
