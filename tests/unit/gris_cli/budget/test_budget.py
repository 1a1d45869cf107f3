"""`gris budget` against a real budget_service."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import cost_pb2

from gris_cli.__main__ import main
from gris_cli.budget.reports import currency_facts
from tests.support.budget_client import connected
from tests.support.budget_process import Service, service
from tests.support.budget_samples import UNIT
from tests.support.command_line import run_json
from tests.support.rings import needs

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)
DAY = timedelta(days=1)
COSTS = (("ann", 7, 1), ("ann", 5, 1), ("bob", 3, 0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the ledger lies."""
    return tmp_path_factory.mktemp("ledger")


@pytest.fixture(scope="module")
@needs("process")
def ledger(folder: Path) -> Iterator[Service]:
    """A service with the administrator's address, in which ann and bob were charged."""
    with service(folder, f"sqlite:{folder}/ledger.db", "--admin-listen", "127.0.0.1:0") as running:
        asyncio.run(_charge_all(running.address))
        yield running


async def _charge_all(address: str) -> None:
    async with connected(address) as stub:
        for number, (analyst, information, calls) in enumerate(COSTS):
            await stub.UpdateBudget(
                budget_pb2.UpdateBudgetRequest(
                    account=budget_pb2.Account(path=["acme", analyst]),
                    cost=cost_pb2.Cost(information=information, calls=calls, unit_id=UNIT),
                    request_id=f"r{number}",
                    release_id=f"release-{number}",
                )
            )


def reported(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """Runs a command with --json and returns the object it prints."""
    return run_json(capsys, "budget", *arguments, code=code)


def journal_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """Return the entries that `gris budget journal` prints."""
    assert main(["budget", "journal", *arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_an_account_is_shown_level_by_level(ledger: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """Limit, spent and left in both units, for people and for programs."""
    arguments = ["show", "--account", "acme/ann", "--budget", ledger.address]
    shown = reported(capsys, *arguments)
    facts: dict[str, Any] = {
        "currency": UNIT,
        "next_currency": None,
        "closed": None,
        "held_by": [],
        "lost_by": [],
    }
    assert facts | {"levels": shown["levels"], "seconds_ahead": 0.0} == shown
    *_, information, calls = shown["levels"]
    assert ("acme/ann", "information", 1_000_000, 12, 0, 999_988) == tuple(
        information[key] for key in ("account", "unit", "limit", "spent", "reserved", "remaining")
    )
    assert ("calls", 2, "enforce") == (calls["unit"], calls["spent"], calls["mode"])
    assert main(["budget", *arguments]) == 0
    assert "999988" in capsys.readouterr().out


@pytest.mark.usefixtures("starts_processes")
def test_another_currency_is_planned_shown_and_withdrawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For people and for programs; `show` says what follows and when, and again nothing after the withdrawal."""
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db", "--admin-listen", "127.0.0.1:0") as running:
        asyncio.run(_charge_all(running.address))
        assert running.admin_address is not None
        arguments = ("new-currency", "--root", "acme", "--admin", running.admin_address)
        planned = reported(capsys, *arguments, "--unit", "e" * 32, "--request-id", "once")
        assert planned["begins_at"][8:] == "01 00:00:00"
        assert planned == reported(capsys, *arguments, "--unit", "e" * 32, "--request-id", "once")
        show = ["budget", "show", "--account", "acme/ann", "--budget", running.address]
        shown = reported(capsys, *show[1:])
        following = {"unit_id": "e" * 32, "begins_at": planned["begins_at"]}
        assert (UNIT, following) == (shown["currency"], shown["next_currency"])
        assert main(show) == 0
        assert f"{'e' * 32} from {planned['begins_at']}" in capsys.readouterr().out
        assert main(["budget", *arguments, "--withdraw"]) == 0
        assert "keeps its currency" in capsys.readouterr().out
        assert reported(capsys, *show[1:])["next_currency"] is None
        assert main(show) == 0
        shown = capsys.readouterr().out
        assert UNIT in shown
        assert "e" * 32 not in shown
        assert main(["budget", *arguments]) == 2
        assert "--withdraw" in capsys.readouterr().err


def test_a_clock_that_is_right_needs_no_help(ledger: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """The refusal says why, and nothing is changed."""
    assert ledger.admin_address is not None
    assert main(["budget", "resume-clock", "--root", "acme", "--admin", ledger.admin_address]) != 0
    assert "goes on already" in "".join(capsys.readouterr())


def test_charges_are_listed_by_account_and_time(ledger: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """A company's charges are its analysts'; a time without charges has none, which is said."""
    assert ledger.admin_address is not None
    admin = ("--admin", ledger.admin_address)
    found = journal_of(capsys, "--account", "acme", *admin)
    assert [(f"acme/{name}", information, calls) for name, information, calls in COSTS] == [
        (each["account"], each["information"], each["calls"]) for each in found
    ]
    assert {"direct"} == {each["kind"] for each in found}
    assert 1 == len(journal_of(capsys, "--account", "acme/bob", *admin))
    assert found == journal_of(capsys, "--account", "acme", *admin, "--from", "2020-01-01")
    assert main(["budget", "journal", "--account", "acme", *admin, "--to", "2020-01-01"]) == 0
    assert ("", True) == ((said := capsys.readouterr()).out, "acme has no such entry" in said.err)


def test_usage_is_told_by_day_and_limit(ledger: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """One of two analysts would have exhausted ten units on the first day, none a hundred."""
    assert ledger.admin_address is not None
    today = datetime.now(UTC)
    since = (today - timedelta(hours=1)).isoformat()
    report = reported(
        capsys, "usage", "--account", "acme", "--since", since, "--days", "2", "--information", "10",
        "--information", "100", "--calls", "1", "--admin", ledger.admin_address,
    )  # fmt: skip
    rows = report["usage"]
    assert 2 == report["accounts"]
    assert [
        ("information", 10, 1, 1, 0.5), ("information", 10, 2, 1, 0.5), ("information", 100, 1, 0, 0.0),
        ("information", 100, 2, 0, 0.0), ("calls", 1, 1, 1, 0.5), ("calls", 1, 2, 1, 0.5),
    ] == [tuple(row.values()) for row in rows]  # fmt: skip


def test_a_limit_that_is_set_holds_at_once_and_can_be_removed(
    ledger: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ledger's own limit comes before the configuration's until it is removed."""
    assert ledger.admin_address is not None
    change = ("set-limit", "--account", "acme/cid", "--admin", ledger.admin_address)
    limit = ("--information", "10", "--calls", "2", "--window", "sliding:30", "--zone", "Europe/Berlin")
    shown = ("show", "--account", "acme/cid", "--budget", ledger.address)
    version = reported(capsys, *change, *limit, "--reason", "a report")["version"]
    assert [10, 2] == [level["limit"] for level in reported(capsys, *shown)["levels"][-2:]]
    removed = reported(capsys, *change, "--remove")
    assert (True, True) == (removed["removed"], 0 < version < removed["version"])
    assert [1_000_000] * 2 == [level["limit"] for level in reported(capsys, *shown)["levels"][-2:]]
    listed = journal_of(capsys, "--account", "acme/cid", "--admin", ledger.admin_address)
    assert ["a report", ""] == [each["reason"] for each in listed]
    assert all("unauthenticated" == each["actor"] and "is " in each["change"] for each in listed)


@pytest.mark.usefixtures("starts_processes")
def test_a_journal_is_streamed_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each entry, with who did it; what is written later comes by itself, and nothing comes twice."""
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db", "--admin-listen", "127.0.0.1:0") as running:
        asyncio.run(_charge_all(running.address))
        assert running.admin_address is not None
        admin = ("--account", "acme", "--admin", running.admin_address)
        command = [sys.executable, "-m", "gris_cli", "budget", "journal", *admin, "--json", "--follow"]
        # Where tests run in the background interrupts are ignored, and commands inherit that.
        ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
        with ExitStack() as stack:
            following = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(following.kill)
            signal.signal(signal.SIGINT, ignored)
            assert following.stdout is not None
            first = [json.loads(following.stdout.readline()) for _ in COSTS]
            change = ("set-limit", "--account", "acme/ann", "--remove", "--reason", "too much")
            reported(capsys, *change, "--admin", running.admin_address)
            later = json.loads(following.stdout.readline())
            following.send_signal(signal.SIGINT)
            assert following.wait(20) == 130
        assert ["r0", "r1", "r2"] == [each["request_id"] for each in first]
        assert ("limit changed", "unauthenticated", "too much") == tuple(
            later[key] for key in ("kind", "actor", "reason")
        )
        resumed = ["budget", "journal", *admin, "--after", first[1]["position"]]
        assert main([*resumed, "--json"]) == 0
        assert [first[2], later] == [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert main(resumed) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert (1, 1) == (out.count("direct"), out.count("too much"))
        assert main(["budget", "journal", *admin, "--after", "x"]) == 2
        assert "--after: must be the position" in " ".join(capsys.readouterr().err.split())


def test_what_regions_hold_or_lost_and_how_far_the_clock_is_ahead_is_told_to_programs_too() -> None:
    """What `show` says below its table, as data."""
    share = {"information": 4, "calls": 1}
    found = budget_pb2.GetBudgetResponse(
        region_shares=[budget_pb2.RegionShare(region="eu", held=share, ends_at=NOON)],
        lapsed_shares=[budget_pb2.RegionShare(region="us", held={"information": 2}, ends_at=NOON - DAY)],
        clock_ahead=timedelta(seconds=90),
    )
    facts = currency_facts(found)
    assert facts["held_by"] == [
        {"region": "eu", "information": 4, "calls": 1, "until": "2026-11-24 12:00:00"}
    ]
    assert facts["lost_by"] == [
        {"region": "us", "information": 2, "calls": 0, "until": "2026-11-23 12:00:00"}
    ]
    assert (None, 90.0) == (facts["currency"], facts["seconds_ahead"])


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("set-limit", "--account", "acme/cid"), "--information and --calls together"),
    (("set-limit", "--account", "acme/cid", "--information", "1"), "--information and --calls together"),
    (("set-limit", "--account", "acme/cid", "--information", "1", "--calls", "1", "--remove"), "or --remove"),
    (
        ("set-limit", "--account", "acme/cid", "--information", "-1", "--calls", "1"),
        "--information: expected 0 to 2^63 - 1, got -1",
    ),
    (
        ("set-limit", "--account", "a", "--information", "1", "--calls", str(2**63)),
        f"--calls: expected 0 to 2^63 - 1, got {2**63}",
    ),
    (
        ("set-limit", "--account", "a", "--information", "nan", "--calls", "1"),
        "expected a whole number, got 'nan'",
    ),
    (
        ("reopen", "--account", "acme/ann", "--reason", "x"),
        "--account: the account is not closed itself; got 'acme/ann'",
    ),
    (
        ("journal", "--account", "acme", "--after", "abc"),
        "--after: must be the position of an entry, as it was read; got 'abc'",
    ),
    (
        ("set-limit", "--account", "acme/cid", "--information", "1", "--calls", "1", "--mode", "x"),
        "--mode expects enforce or track, got 'x'",
    ),
    (
        ("set-limit", "--account", "acme/cid", "--information", "1", "--calls", "1", "--window", "year"),
        "--window expects day, week, month, never or sliding:DAYS, got 'year'",
    ),
    (
        ("set-limit", "--account", "acme/cid", "--information", "1", "--calls", "1", "--window", "sliding:1"),
        "--window: must be 2 to 400",
    ),
    (
        ("set-limit", "--account", "acme/cid", "--information", "1", "--calls", "1", "--zone", "Mars"),
        "--zone: must be the name",
    ),
    (
        ("set-limit", "--account", "a//b", "--information", "1", "--calls", "1"),
        "--account: must have 1 to 128 bytes",
    ),
    (
        ("journal", "--account", "acme", "--from", "yesterday"),
        "--from expects a day such as 2026-01-31, or a time, got 'yesterday'",
    ),
    (("usage", "--account", "acme", "--since", "2026-01-01"), "--information or --calls"),
    (
        ("usage", "--account", "acme", "--since", "2026-01-01", "--days", "0", "--calls", "1"),
        "--days': expected a number",
    ),
    (
        ("usage", "--account", "acme", "--since", "2026-01-01", "--depth", "9", "--calls", "1"),
        "--depth': expected a number",
    ),
    (("new-currency", "--root", "", "--withdraw"), "--root: must have 1 to 128 bytes"),
    (("refund", "--account", "acme/cid", "--release", "", "--reason", "x"), "--release: must have 1 to 128"),
]


@pytest.mark.parametrize(("arguments", "expected"), WRONG)
def test_what_is_wrong_is_said_by_name(
    ledger: Service, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], expected: str
) -> None:
    """Whether the command line or the service finds it: exit code 2 and the name of what is wrong."""
    assert ledger.admin_address is not None
    error = reported(capsys, *arguments, "--admin", ledger.admin_address, code=2)["error"]
    assert expected in error["message"]
    if named := re.match("(--[a-z]+)(?:: | expects)", expected):
        assert named[1] == error["field"]


def test_the_services_own_address_is_not_the_administrators(
    ledger: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """Callers that may spend cannot set limits, and the error says where that is done."""
    error = reported(capsys, "verify", "--admin", ledger.address, code=2)["error"]
    assert "--admin-listen" in error["message"]


def test_an_account_that_is_not_there_and_a_service_that_is_not_there_are_told_apart(
    ledger: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 for the caller's mistake, 5 for what may come back."""
    assert reported(capsys, "show", "--account", "nobody", "--budget", ledger.address, code=2)
    assert reported(capsys, "show", "--account", "acme/ann", "--budget", "127.0.0.1:1", code=5)


@pytest.mark.usefixtures("starts_processes")
def test_the_service_logs_the_reasons_of_a_trim_and_of_a_backup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they are given; one that is no reason is refused by its flag, and nothing is done."""
    store, folder = f"sqlite:{tmp_path}/ledger.db", tmp_path / "backups"
    folder.mkdir()
    with service(tmp_path, store, "--admin-listen", "127.0.0.1:0", "--backups", str(folder)) as running:
        asyncio.run(_charge_all(running.address))
        assert running.admin_address is not None
        admin = ("--admin", running.admin_address)
        for number, command in enumerate((("trim", "--root", "acme"), ("backup",))):
            more = [("--export", f"{tmp_path}/{name}") if number == 0 else () for name in ("no", "yes")]
            assert main(["budget", *command, *more[0], "--reason", "two\nlines", *admin]) == 2
            assert "--reason" in capsys.readouterr().err
            reported(capsys, *command, *more[1], "--reason", f"ticket {number}", *admin)
        assert len([*folder.iterdir()]) == 1
    logged = (tmp_path / "log").read_text()
    for event, reason in (("ledger.trimmed", "ticket 0"), ("ledger.backed_up", "ticket 1")):
        (line,) = [each for each in logged.splitlines() if event in each]
        assert reason in line
        assert "unauthenticated" in line


def test_a_journal_is_exported_before_it_is_trimmed(
    ledger: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Into a new file, a line for each entry; what still counts stays in the ledger."""
    assert ledger.admin_address is not None
    admin, file = ("--admin", ledger.admin_address), tmp_path / "export"
    trimmed = reported(capsys, "trim", "--root", "acme", "--export", str(file), *admin)
    assert ("acme", 0, 0, "") == tuple(trimmed.values())
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines == journal_of(capsys, "--account", "acme", *admin)
    assert (UNIT, "") == (lines[0]["unit_id"], lines[0]["query_id"])
    again = reported(capsys, "trim", "--root", "acme", "--export", str(file), *admin, code=2)
    assert "cannot be written: File exists" in again["error"]["message"]
    none = reported(capsys, "trim", "--root", "nix", "--export", str(tmp_path / "none"), *admin, code=2)
    assert "nix has no entries" in none["error"]["message"]


@pytest.mark.usefixtures("starts_processes")
def test_a_ledger_that_was_tampered_with_is_found_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sound ledger ends in 0; a balance that is not the journal's in 1, with both numbers."""
    store = f"sqlite:{tmp_path}/ledger.db"
    with service(tmp_path, store, "--admin-listen", "127.0.0.1:0") as running:
        asyncio.run(_charge_all(running.address))
        assert running.admin_address is not None
        for only in ((), ("--root", "acme")):
            assert [] == reported(capsys, "verify", "--admin", running.admin_address, *only)["differences"]
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        _lower_a_balance(connection)
    with service(tmp_path, store, "--admin-listen", "127.0.0.1:0") as running:
        assert running.admin_address is not None
        found = reported(capsys, "verify", "--admin", running.admin_address, code=1)
    assert any((1, 12) == (each["kept"], each["rebuilt"]) for each in found["differences"])
    assert (3, len(found["differences"])) == (found["entries"], found["different"])


@pytest.mark.usefixtures("starts_processes")
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1, and standard error has the table and the key."""
    store = f"sqlite:{tmp_path}/ledger.db"
    with service(tmp_path, store) as running:
        asyncio.run(_charge_all(running.address))
        assert running.end(signal.SIGTERM) == 0
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute(
            "UPDATE rows SET text = json_set(text, '$[3][1]', -1) WHERE key LIKE 'balances%acme/%'"
        )
    with service(tmp_path, store, "--admin-listen", "127.0.0.1:0") as running:
        assert running.admin_address is not None
        assert main(["budget", "verify", "--admin", running.admin_address]) == 1
    said = capsys.readouterr().err
    assert "the row 'acme/" in said
    assert "' of balances cannot be read" in said


def _lower_a_balance(connection: sqlite3.Connection) -> None:
    """Set what ann has spent to 1."""
    lowered = "UPDATE rows SET text = json_set(text, '$[3][0]', 1) WHERE json_extract(text, '$[3][0]') = 12"
    connection.execute(lowered)


def test_a_charge_is_given_back_once(ledger: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """With its reason in the list of charges; a second time is refused in words."""
    assert ledger.admin_address is not None
    asyncio.run(_charge("zoe", ledger.address))
    command = ("refund", "--account", "acme/zoe", "--release", "zoes", "--admin", ledger.admin_address)
    given = reported(capsys, *command, "--reason", "older rows")
    assert (4, 1) == (given["information"], given["calls"])
    listed = journal_of(capsys, "--account", "acme/zoe", "--admin", ledger.admin_address)
    assert ["direct", "refunded"] == [each["kind"] for each in listed]
    assert "older rows" == listed[1]["reason"]
    assert main(["budget", *command, "--reason", "again"]) == 2
    assert "has not paid for the release" in " ".join(capsys.readouterr().err.split())


async def _charge(name: str, address: str) -> None:
    async with connected(address) as stub:
        await stub.UpdateBudget(
            budget_pb2.UpdateBudgetRequest(
                account=budget_pb2.Account(path=["acme", name]),
                cost=cost_pb2.Cost(information=4, calls=1, unit_id=UNIT),
                request_id=name,
                release_id=f"{name}s",
            )
        )


def test_an_account_is_closed_and_opened(ledger: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reasons in the list of charges; `show` says what is closed, and refusals are in words."""
    assert ledger.admin_address is not None
    asyncio.run(_charge("mia", ledger.address))
    admin = ("--admin", ledger.admin_address)
    mia = ("--account", "acme/mia", *admin)
    assert {"account": "acme/mia", "closed": True} == reported(capsys, "close", *mia, "--reason", "left")
    show = ["budget", "show", "--account", "acme/mia", "--budget", ledger.address]
    assert "acme/mia" == reported(capsys, *show[1:])["closed"]
    assert main(show) == 0
    assert "acme/mia: nothing can be asked" in " ".join(capsys.readouterr().out.split())
    assert main(["budget", "close", *mia, "--reason", "left"]) == 2
    assert "is closed" in " ".join(capsys.readouterr().err.split())
    assert {"account": "acme/mia", "closed": False} == reported(capsys, "reopen", *mia, "--reason", "is back")
    assert reported(capsys, *show[1:])["closed"] is None
    assert main(show) == 0
    assert "nothing can be asked" not in capsys.readouterr().out
    listed = journal_of(capsys, *mia)
    assert [("direct", ""), ("closed", "left"), ("reopened", "is back")] == [
        (each["kind"], each["reason"]) for each in listed
    ]
    assert ["", "unauthenticated", "unauthenticated"] == [each["actor"] for each in listed]
    assert reported(capsys, "verify", *admin)["differences"] == []
