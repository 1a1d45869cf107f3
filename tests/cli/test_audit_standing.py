"""Limits and closed accounts in a bundle: also of accounts of which all entries are archived, and wrong ones."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.windows import DAY, microseconds_of
from gris_audit.bundle import ACCOUNTS, NAMES
from gris_cli.__main__ import main
from tests.support.audits import Company, lines_of, problems, rewritten, signed_again, signer_in, verified
from tests.support.budget_client import connected
from tests.support.clocked_ledger import ClockedLedger, clocked_ledger

CONFIGURATION = Configuration.model_validate(
    {
        "create_at_first_use": True,
        "accounts": [
            {"path": ["acme"], "limit": {"information": 900, "calls": 90}, "window": "never"},
            {"path": ["acme", "*"], "limit": {"information": 100, "calls": 10}, "window": "never"},
            {"path": ["acme", "*", "*"], "limit": {"information": 100, "calls": 10}, "window": "never"},
        ],
    }
)
ASKER = "sub:dora@example.org"
# Of some there are charges, of others an administrator's acts alone.
EVERYBODY = ["ann", "bob", "carl", "carla", "dora", "erin", "fred", "gil", "team"]
BECAUSE = ("--reason", "because")
WITHOUT = "--without-archives"
AHEAD = 400 * DAY


@dataclass(frozen=True)
class Ledger:
    """A ledger, who exports it, and where its archives are."""

    served: ClockedLedger
    company: Company
    folder: Path

    @property
    def archives(self) -> list[object]:
        """The options that give all archives."""
        return [word for path in sorted(self.folder.iterdir()) for word in ("--archive", path)]

    async def export(self, bundle: Path) -> Path:
        """Write a bundle."""
        assert await asyncio.to_thread(main, self.company.typed("audit", "export", bundle)) == 0
        return bundle

    async def limit(self, name: str, information: int, *more: str) -> None:
        """Set a limit."""
        amounts = ("--information", information, "--calls", 5, *more)
        await self.served.typed("set-limit", "--account", f"acme/{name}", *amounts)

    async def archive(self) -> None:
        """Archive all that there is."""
        await self.served.typed("seal", "--root", "acme", "--archive")


@pytest_asyncio.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """One with limits that were set and removed, a request that waits, and accounts that were closed and moved."""
    signer_in(tmp_path, "signer")
    (folder := tmp_path / "archive").mkdir()
    async with clocked_ledger(tmp_path, CONFIGURATION, folder) as served:
        found = Ledger(served, Company(tmp_path, served), folder)
        names = (*EVERYBODY[:3], "fred", "gil")
        await found.company.charge(
            *((("acme", name), 8, name) for name in names), (("acme", "team", "joe"), 2, "joe")
        )
        async with connected(served.address) as stub:
            asking: dict[str, Any] = {"account": {"path": ["acme", "dora"]}, "asked_by": [ASKER], "calls": 20}
            asking |= {"information": 300, "reason": "more", "request_id": "asks"}
            await stub.RequestLimit(budget_pb2.RequestLimitRequest(**asking))
        await found.limit("ann", 60, "--until", "2250-01-01", "--purpose", "payroll=30/3")
        await found.limit("gil", 70, "--until", "2250-01-01")
        await found.limit("erin", 50)
        await served.typed("set-limit", "--account", "acme/erin", "--remove")
        await found.limit("fred", 40, "--mode", "track")
        await served.typed("close", "--account", "acme/bob", *BECAUSE)
        await served.typed("close", "--account", "acme/team", *BECAUSE)
        await served.typed("move", "--account", "acme/carl", "--to", "acme/carla", *BECAUSE)
        yield found


async def test_accounts_of_which_all_is_archived_are_in_a_bundle(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By name, and with what they have: who may archive a journal makes nobody disappear from the bundles after it."""
    before = await ledger.export(tmp_path / "before")
    await ledger.archive()
    await ledger.company.charge((("acme", "new"), 1, "new"))
    after = await ledger.export(tmp_path / "after")
    names = {json.loads(line)["name"] for line in lines_of(after / NAMES)}
    people = {*(f"acme/{name}" for name in EVERYBODY), "acme/team/joe", "acme/new"}
    assert {*people, f"acme/dora//{ASKER}"} == names
    has = {"/".join(each["account"]): each["budget"] for each in map(json.loads, lines_of(after / ACCOUNTS))}
    assert {"acme", *people} == has.keys()
    own = next(each for each in has["acme/ann"]["levels"] if len(each["path"]) == 2)
    assert ("60", True, "8") == (
        own["limit"]["information"],
        "limit_until" in own,
        own["spent"]["information"],
    )
    assert ["acme", "bob"] == has["acme/bob"]["closed_level"]
    assert 11 == verified(capsys, before, ledger.company)["levels_compared"]
    found = verified(capsys, after, ledger.company, *ledger.archives)
    assert (12, 0) == (found["levels_compared"], found["entries_not_given"])
    assert 15 == verified(capsys, after, ledger.company, WITHOUT)["entries_not_given"]
    words = ["audit", "verify", str(after), "--public-key", str(ledger.company.folder / "signer.pem")]
    assert main([*words, WITHOUT]) == 0
    assert "15 entries, which are archived" in " ".join(capsys.readouterr().out.split())
    verified(capsys, after, ledger.company, "--before", before)


async def test_who_is_archived_cannot_be_left_out(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the archives, no name and no line may be missing; without them one that has the other."""
    await ledger.archive()
    bundle = await ledger.export(tmp_path / "bundle")
    rewritten(bundle / ACCOUNTS, lambda all_: [each for each in all_ if '["acme", "ann"],' not in each])
    signed_again(ledger.company, bundle)
    line = "does not have acme/ann, which is in the journal or in names.jsonl"
    for more in (ledger.archives, [WITHOUT]):
        found = problems(verified(capsys, bundle, ledger.company, *more, sound=False))
        assert [(ACCOUNTS, line)] == found
    rewritten(bundle / NAMES, lambda all_: [each for each in all_ if '"acme/ann"' not in each])
    signed_again(ledger.company, bundle)
    ((file, problem),) = problems(verified(capsys, bundle, ledger.company, *ledger.archives, sound=False))
    assert NAMES == file
    assert "which is in the journal and not forgotten" in problem


def _account(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Return what changes the budget of an account in a bundle."""

    def changed(lines: list[str]) -> list[str]:
        found = list(map(json.loads, lines))
        change(next(each for each in found if each["account"][1:] == name.split("/"))["budget"])
        return [json.dumps(each) + "\n" for each in found]

    return lambda bundle: rewritten(bundle / ACCOUNTS, changed)


def _level(field: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda budget: budget["levels"][-1].update({field: value})


LIMIT = "has another limit than by the last entry about it"
WRONG: dict[str, tuple[Callable[[Path], None], str]] = {
    "higher": (_account("ann", lambda b: b["levels"][-1]["limit"].update(information="6000")), f"acme/ann {LIMIT}"),
    "more calls": (_account("ann", lambda b: b["levels"][-1]["limit"].update(calls="6")), f"acme/ann {LIMIT}"),
    "for good": (_account("ann", lambda b: b["levels"][-1].pop("limit_until")), f"acme/ann {LIMIT}"),
    "longer": (_account("ann", _level("limit_until", "2251-01-01T00:00:00Z")), f"acme/ann {LIMIT}"),
    "by a clock that is ahead": (
        _account("ann", lambda b: (b["levels"][-1].pop("limit_until"), b["levels"][-1]["limit"].update(information="6"),
                                   b.update(clock_ahead="99999999999s"))),
        f"acme/ann {LIMIT}",
    ),
    "a clock": (
        _account("fred", lambda b: b.update(clock_ahead="3456000s")),
        "acme/fred has a clock that is ahead by other than the last entry about it says",
    ),
    "of a purpose": (
        _account("ann", lambda b: b["purposes"][-1]["limit"].update(information="31")), f"acme/ann {LIMIT}"
    ),
    "tracked": (_account("ann", _level("mode", "MODE_TRACK")), f"acme/ann {LIMIT}"),
    "enforced": (_account("fred", _level("mode", "MODE_ENFORCE")), f"acme/fred {LIMIT}"),
    "no level": (_account("fred", lambda b: b["levels"].pop()), f"acme/fred {LIMIT}"),
    "a file's, for a time": (_account("team/joe", _level("limit_until", "2250-01-01T00:00:00Z")),
                             f"acme/team/joe {LIMIT}"),
    "open": (
        _account("bob", lambda b: b.update(closed_level=[])),
        "acme/bob says that no level of it is closed, and the journal another thing",
    ),
    "open above": (
        _account("team/joe", lambda b: b.update(closed_level=["acme", "team", "joe"])),
        "acme/team/joe says that acme/team/joe is closed, and the journal another thing",
    ),
    "closed": (
        _account("ann", lambda b: b.update(closed_level=["acme", "ann"])),
        "acme/ann says that acme/ann is closed, and the journal another thing",
    ),
    "another's": (
        _account("bob", lambda b: b.update(closed_level=["acme", "team"])),
        "acme/bob says that acme/team is closed, and the journal another thing",
    ),
}  # fmt: skip


async def test_limits_and_closed_accounts_that_were_changed_are_found(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the entries about them are in the bundle or in an archive that is given."""
    whole = await ledger.export(tmp_path / "whole")
    await ledger.archive()
    archived = await ledger.export(tmp_path / "archived")
    for number, (case, (change, expected)) in enumerate(WRONG.items()):
        for exported, more in ((whole, []), (archived, ledger.archives)):
            bundle = Path(shutil.copytree(exported, tmp_path / f"{exported.name}{number}"))
            change(bundle)
            signed_again(ledger.company, bundle)
            found = problems(verified(capsys, bundle, ledger.company, *more, sound=False))
            assert (ACCOUNTS, expected) in found, (case, found)


async def test_entries_that_are_not_archived_show_limits_without_the_archives(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of what no entry is about that is there, nothing is known."""
    await ledger.archive()
    await ledger.limit("fred", 80)
    await ledger.served.typed("reopen", "--account", "acme/bob", *BECAUSE)
    await ledger.served.typed("move", "--account", "acme/ann", "--to", "acme/anne", *BECAUSE)
    bundle = await ledger.export(tmp_path / "bundle")
    verified(capsys, bundle, ledger.company, *ledger.archives)
    verified(capsys, bundle, ledger.company, WITHOUT)
    _account("fred", lambda b: b["levels"][-1]["limit"].update(information="81"))(bundle)
    _account("bob", lambda b: b.update(closed_level=["acme", "bob"]))(bundle)
    _account("anne", lambda b: b["levels"][-1]["limit"].update(information="81"))(bundle)
    signed_again(ledger.company, bundle)
    found = problems(verified(capsys, bundle, ledger.company, WITHOUT, sound=False))
    closed = "acme/bob says that acme/bob is closed, and the journal another thing"
    assert [(ACCOUNTS, closed), (ACCOUNTS, f"acme/fred {LIMIT}")] == found
    found = problems(verified(capsys, bundle, ledger.company, *ledger.archives, sound=False))
    assert (ACCOUNTS, f"acme/anne {LIMIT}") in found


async def test_a_temporary_limit_holds_until_its_end(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once an entry is later, what was before does: what was set for good, or what budget.yaml says."""
    end = ("--until", "2026-10-16")
    await ledger.limit("gil", 70, *end)
    await ledger.limit("fred", 90, *end)
    await ledger.limit("carla", 95, *end)
    ledger.served.clock.step(days=3)
    await ledger.company.charge((("acme", "new"), 1, "new"))
    bundle = await ledger.export(tmp_path / "bundle")
    verified(capsys, bundle, ledger.company)
    _account("fred", lambda b: b["levels"][-1]["limit"].update(information="90"))(bundle)
    _account("carla", _level("limit_until", "2026-10-16T00:00:00Z"))(bundle)
    signed_again(ledger.company, bundle)
    found = problems(verified(capsys, bundle, ledger.company, sound=False))
    assert [(ACCOUNTS, f"acme/{name} {LIMIT}") for name in ("carla", "fred")] == found


async def test_a_root_whose_time_goes_on_ahead_of_the_clock_has_its_own(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By how much, its last entry about that says, days before the export; of a limit that ends, too."""
    served, before = ledger.served, datetime.now(UTC) - timedelta(days=3)
    served.clock.now = microseconds_of(before) + AHEAD
    await ledger.company.charge((("acme", "new"), 1, "new"))
    served.clock.now -= AHEAD
    resumed = admin_pb2.ResumeClockRequest(account={"path": ["acme"]}, request_id="resume")
    resumed.true_time.FromDatetime(before)
    async with grpc.aio.insecure_channel(served.admin_address) as channel:
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        await stub.ResumeClock(resumed)
    end = (before + timedelta(microseconds=AHEAD, days=2)).date()
    await ledger.limit("gil", 75, "--until", f"{end}")
    served.clock.step(days=3)
    bundle = await ledger.export(tmp_path / "bundle")
    verified(capsys, bundle, ledger.company)
    _account("gil", lambda b: b.update(clock_ahead="1s"))(bundle)
    signed_again(ledger.company, bundle)
    found = problems(verified(capsys, bundle, ledger.company, sound=False))
    assert [
        (ACCOUNTS, "acme/gil has a clock that is ahead by other than the last entry about it says")
    ] == found
