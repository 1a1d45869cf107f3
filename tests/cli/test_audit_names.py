"""The names in a bundle: of accounts that were moved or forgotten, and of who asked for more; and wrong ones."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from gris_api.budget.v1 import budget_pb2

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.account_states import FORGOTTEN
from budget_service.ledger.pseudonyms import NameRow
from budget_service.ledger.values import Account
from gris_audit.bundle import NAMES
from gris_audit.checked import Checked
from gris_audit.names import Named, Names, check_names
from gris_cli.__main__ import main
from gris_cli.audit import collecting
from tests.support.audits import (
    Company,
    changed_in,
    lines_of,
    problems,
    rewritten,
    signed_again,
    signer_in,
    verified,
)
from tests.support.budget_client import connected
from tests.support.clocked_ledger import ClockedLedger, clocked_ledger

CONFIGURATION = Configuration.model_validate(
    {
        "create_at_first_use": True,
        "accounts": [
            {"path": ["acme"], "limit": {"information": 900, "calls": 90}, "window": "never"},
            {"path": ["acme", "*"], "limit": {"information": 100, "calls": 10}},
            {"path": ["acme", "*", "*"], "limit": {"information": 100, "calls": 10}},
        ],
    }
)
JOURNAL = "journal.acme.jsonl"
# What somebody may type that looks like an id.
NO_ID = f"audit ~{'A' * 22}"
# Names that no id holds by chance.
LEAVER, LATER = "leonie-4711", "u-271828-3141"
PERSONS = {LEAVER: "sub:leonie@example.org", "ann": "sub:ann@example.org"}
BECAUSE = ("--reason", "because")


@dataclass(frozen=True)
class Ledger:
    """A ledger, and who exports it."""

    served: ClockedLedger
    company: Company

    async def export(self, bundle: Path, code: int = 0) -> Path:
        """Write a bundle."""
        assert await asyncio.to_thread(main, self.company.typed("audit", "export", bundle)) == code
        return bundle

    async def ask(self, name: str) -> None:
        """Ask for more budget, as the person whose account it is."""
        async with connected(self.served.address) as stub:
            account = budget_pb2.Account(path=["acme", name])
            asking: dict[str, Any] = {
                "information": 200,
                "calls": 5,
                "reason": NO_ID,
                "request_id": f"asks {len(name)}",
            }
            await stub.RequestLimit(
                budget_pb2.RequestLimitRequest(account=account, asked_by=[PERSONS[name]], **asking)
            )


@pytest_asyncio.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Of two persons who asked for more one was moved, and closed, and nothing of them counts any more."""
    signer_in(tmp_path, "signer")
    async with clocked_ledger(tmp_path, CONFIGURATION) as served:
        found = Ledger(served, Company(tmp_path, served))
        await found.company.charge(
            (("acme", "ann"), 8, "r1"),
            (("acme", LEAVER), 4, "r2"),
            (("acme", "bob"), 6, "r3"),
            (("acme", "team", "joe"), 2, "r4"),
        )
        for name in PERSONS:
            await found.ask(name)
        await served.typed("move", "--account", "acme/bob", "--to", "acme/bea", *BECAUSE)
        await served.typed("move", "--account", f"acme/{LEAVER}", "--to", f"acme/{LATER}", *BECAUSE)
        await served.typed("close", "--account", f"acme/{LATER}", *BECAUSE)
        served.clock.step(days=62)
        await found.company.charge((("acme", "ann"), 10, "r5"), (("acme", "team", "joe"), 12, "r6"))
        yield found


async def forget(ledger: Ledger) -> list[NameRow]:
    """Forget the one who left; return the rows that are gone."""
    names = [f"acme/{LEAVER}", f"acme/{LATER}", f"acme/{LEAVER}//{PERSONS[LEAVER]}"]
    rows = await ledger.served.store.named("acme", names)
    assert len(names) == len(rows)
    await ledger.served.typed("forget", "--account", f"acme/{LATER}", *BECAUSE)
    return list(rows)


def text_of(row: NameRow) -> str:
    """Return the line of a row."""
    return json.dumps({"root": "acme", "name": row.name, "id": row.id, "key": row.key}) + "\n"


async def test_who_is_forgotten_is_in_no_file_of_a_bundle(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that was made before has the names still, and its journal is the beginning of this one's."""
    before = await ledger.export(tmp_path / "before")
    rows = await forget(ledger)
    after = await ledger.export(tmp_path / "after")
    # The root, ann, bob, who is called bea by now, and joe with his team; before also the one who left, by both names.
    assert (8, 6) == tuple(
        verified(capsys, each, ledger.company)["levels_compared"] for each in (before, after)
    )
    verified(capsys, after, ledger.company, "--before", before)
    everything = b"".join(each.read_bytes() for each in after.iterdir())
    for row in rows:
        assert row.name in (before / NAMES).read_text()
        for needle in (row.name.rpartition("/")[2], row.key):
            assert needle.encode() not in everything
    assert "forget" in [json.loads(line).get("kind") for line in lines_of(after / JOURNAL)]
    asked = [json.loads(line)["account"] for line in lines_of(after / "accounts.jsonl")]
    below = ["ann", "bea", "bob", "team"]
    assert [["acme"], *(["acme", name] for name in below), ["acme", "team", "joe"]] == asked
    assert 0o600 == (after / NAMES).stat().st_mode & 0o777


async def test_a_name_that_was_not_removed_is_not_in_a_bundle(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after an act that was interrupted: the journal says that nobody is called so, and the ledger differs."""
    rows = await forget(ledger)
    await ledger.served.store.add_names("acme", rows)
    bundle = await ledger.export(tmp_path / "bundle")
    differs = "the ledger differs from its journal: VerifyLedger found 2"
    assert [("service.json", differs)] == problems(verified(capsys, bundle, ledger.company, sound=False))
    assert all(row.id not in (bundle / NAMES).read_text() for row in rows)


async def test_nobody_is_forgotten_while_a_bundle_is_made(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise there would be a new bundle with the name in it: it is not written."""
    asked, loop = collecting._budget, asyncio.get_running_loop()
    forgetting: list[asyncio.Future[Any]] = []

    async def interrupted(stub: Any, account: Account) -> dict[str, Any]:
        if not forgetting:
            forgetting.append(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(forget(ledger), loop)))
        await asyncio.shield(forgetting[0])
        return await asked(stub, account)

    monkeypatch.setattr(collecting, "_budget", interrupted)
    await ledger.export(tmp_path / "bundle", code=1)
    assert "an account was forgotten during the export: export again" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not (tmp_path / "bundle").exists()
    await ledger.export(tmp_path / "bundle")
    verified(capsys, tmp_path / "bundle", ledger.company)


def _where(lines: list[str], name: str) -> int:
    return next(index for index, line in enumerate(lines) if json.loads(line)["name"] == name)


def _swapped(lines: list[str]) -> list[str]:
    """Give two ids the name and the key of the other one."""
    found = list(map(json.loads, lines))
    one, other = _where(lines, "acme/ann"), _where(lines, "acme/bea")
    found[one]["id"], found[other]["id"] = found[other]["id"], found[one]["id"]
    return [json.dumps(each) + "\n" for each in found]


def _names_alone_swapped(lines: list[str]) -> list[str]:
    found = list(map(json.loads, lines))
    one, other = _where(lines, "acme/ann"), _where(lines, "acme/bea")
    found[one]["name"], found[other]["name"] = "acme/bea", "acme/ann"
    return [json.dumps(each) + "\n" for each in found]


def _without(name: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [each for each in lines if json.loads(each)["name"] != name]


def _other_key(lines: list[str]) -> list[str]:
    found = list(map(json.loads, lines))
    found[0]["key"] = found[1]["key"]
    return [json.dumps(each) + "\n" for each in found]


def _with(row: NameRow) -> Callable[[list[str]], list[str]]:
    return lambda lines: [*lines, text_of(row)]


def _back(row: NameRow) -> str:
    who = (
        f"the name of {row.id}, who has asked for acme/~"
        if row.person
        else f"the name of acme/{row.id}, which"
    )
    return f"has {who}"


NOT_BOUND = "is not the id of this name and key"
FORM = "expected the name of an account or a person, its id and its key"
EARLIER = "has a name or an id that an earlier line has"
WRONG: dict[str, tuple[Callable[[list[str]], list[str]], list[str]]] = {
    "two ids swapped": (_swapped, [NOT_BOUND, NOT_BOUND]),
    "two names swapped": (_names_alone_swapped, [NOT_BOUND, NOT_BOUND]),
    "another key": (_other_key, [NOT_BOUND]),
    "a name removed": (_without("acme/ann"), ["which is in the journal and not forgotten"]),
    "a team's name removed": (_without("acme/team"), ["which is in the journal and not forgotten"]),
    "a person removed": (_without(f"acme/ann//{PERSONS['ann']}"), [", who has asked for acme/~"]),
    "a line twice": (lambda lines: [*lines, lines[0]], [f"line 7: {EARLIER}"]),
    "a name twice": (
        lambda lines: [*lines, text_of(NameRow.made(json.loads(lines[0])["name"], bytes(16)))],
        [f"line 7: {EARLIER}"],
    ),
    "a name of nobody": (
        lambda lines: [*lines, text_of(NameRow.made("acme/eve", bytes(16)))],
        ["which is not in the journal of acme"],
    ),
    "a root's name": (lambda lines: [text_of(NameRow.made("acme", bytes(16))), *lines], [f"line 1: {FORM}"]),
    "another root's name": (lambda lines: [text_of(NameRow.made("else/eve", bytes(16))), *lines], [FORM]),
    "no name": (lambda lines: [text_of(NameRow.made("acme/a*b", bytes(16))), *lines], [FORM]),
    "a short key": (lambda lines: [text_of(NameRow.made("acme/eve", bytes(15))), *lines], [FORM]),
    "a long line": (lambda lines: [*lines, "[" * 2**20 + "\n"], [f"line 7: {FORM}"]),
    "no line": (lambda lines: [*lines, "\n"], [f"line 7: {FORM}"]),
}  # fmt: skip


async def test_names_that_were_changed_are_found(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Although the signature is right: each change by one sentence a line that is wrong, and nothing else."""
    rows = await forget(ledger)
    exported = await ledger.export(tmp_path / "exported")
    # Of ann, bob, who is called bea by now, joe and his team, and the person who has asked for ann.
    assert 6 == len(lines_of(exported / NAMES))
    of_forgotten = {f"{row.name} is back": (_with(row), [_back(row)]) for row in rows}
    for number, (case, (change, expected)) in enumerate((WRONG | of_forgotten).items()):
        bundle = Path(shutil.copytree(exported, tmp_path / str(number)))
        rewritten(bundle / NAMES, change)
        signed_again(ledger.company, bundle)
        found = problems(verified(capsys, bundle, ledger.company, sound=False))
        assert [NAMES] * len(expected) == [file for file, _ in found], (case, found)
        for said, (_, problem) in zip(expected, found, strict=True):
            assert said in problem, case


async def test_a_bundle_needs_its_names(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the file it is not whole; and no account is believed that has no line in it."""
    bundle = await ledger.export(tmp_path / "bundle")
    changed_in(bundle / "accounts.jsonl", '{"account": ["acme", "ann"]', '{"account": ["acme", "eve"]')
    signed_again(ledger.company, bundle)
    found = problems(verified(capsys, bundle, ledger.company, sound=False))
    assert ("accounts.jsonl", "has acme/eve, which has no line in names.jsonl") in found
    assert ("accounts.jsonl", "does not have acme/ann, which is in the journal or in names.jsonl") in found
    (bundle / NAMES).unlink()
    signed_again(ledger.company, bundle)
    found = problems(verified(capsys, bundle, ledger.company, sound=False))
    assert [("manifest.json", "does not have names.jsonl")] == found


def test_a_name_is_below_that_of_the_level_above(tmp_path: Path) -> None:
    """Who makes journals may choose ids: a name and an id that belong together may be at the wrong place."""
    team, joe = (NameRow.made(name, bytes(16)) for name in ("acme/team", "acme/others/joe"))
    asker = NameRow.made("acme/others//sub:joe", bytes(16))
    level = Account(("acme", team.id, joe.id))
    named = Named({*level.levels}, {("acme", asker.id): {level.level(2)}}, {("acme", asker.id)})
    names, checked = Names(), Checked(tmp_path)
    assert ["", "", ""] == [names.add(each) for each in (team, joe, asker)]
    check_names(checked, names, named, {})
    assert [
        (NAMES, f"has a name of {level.text} that is not below the one of the level above it"),
        (NAMES, f"has a name of {asker.id} that is not below the one of acme/{team.id}"),
    ] == checked.problems


def test_who_asked_may_be_forgotten_with_an_account_below(tmp_path: Path) -> None:
    """They may have asked for the level above their account."""
    team, gone = NameRow.made("acme/team", bytes(16)), Account(("acme", "~" + "g" * 22))
    named = Named(
        {Account(("acme",)), Account(("acme", team.id)), gone}, {("acme", "~" + "a" * 22): {gone.level(1)}}
    )
    names, checked = Names(), Checked(tmp_path)
    names.add(team)
    check_names(checked, names, named, {gone: FORGOTTEN})
    assert [] == checked.problems
    check_names(checked, names, named, {})
    assert 2 == len(checked.problems)
