"""`gris budget forget`, and what the other commands say of whom it has forgotten."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from budget_service.configuration.budget_file import Configuration
from tests.support.budget_client import charging, connected, cost
from tests.support.clocked_ledger import ClockedLedger, clocked_ledger

CONFIGURATION = Configuration.model_validate(
    {
        "create_at_first_use": True,
        "accounts": [
            {"path": ["acme"], "limit": {"information": 90, "calls": 90}, "window": "never"},
            {"path": ["acme", "*"], "limit": {"information": 10, "calls": 10}},
        ],
    }
)
WHO = ("--account", "acme/u-1")
BECAUSE = ("--reason", "erasure 17")


@pytest_asyncio.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[ClockedLedger]:
    """An empty ledger."""
    async with clocked_ledger(tmp_path, CONFIGURATION) as found:
        yield found


async def charge(ledger: ClockedLedger, name: str, id_: str) -> None:
    """Charge an account 7 units."""
    async with connected(ledger.address) as stub:
        await stub.UpdateBudget(charging(cost(7, 1), ("acme", name), request_id=id_))


async def said(
    capsys: pytest.CaptureFixture[str], ledger: ClockedLedger, *words: object, code: int = 0
) -> str:
    """Run a command; return what it prints on both streams, with one blank between words."""
    capsys.readouterr()
    await ledger.typed(*words, code=code)
    printed = capsys.readouterr()
    return " ".join((printed.out + printed.err).split())


async def facts(
    capsys: pytest.CaptureFixture[str], ledger: ClockedLedger, *words: object, code: int = 0
) -> Any:
    """Run a command with --json; return the object."""
    return json.loads(await said(capsys, ledger, *words, "--json", code=code))


async def test_an_account_is_forgotten_once_nothing_of_it_counts(
    ledger: ClockedLedger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before that each refusal says what is in the way; afterwards the name is that of somebody new."""
    await charge(ledger, "u-1", "first")
    forget = ("forget", *WHO, *BECAUSE)
    assert "the account is not closed itself" in await said(capsys, ledger, *forget, code=2)
    await ledger.typed("close", *WHO, "--reason", "left")
    assert "when its window is over" in await said(capsys, ledger, *forget, code=2)
    ledger.clock.step(days=31)
    done = "acme/u-1 is forgotten: who is called so from now on is somebody new"
    assert done == await said(capsys, ledger, *forget)
    assert "no such account" in await said(capsys, ledger, *forget, code=2)
    await charge(ledger, "u-1", "second")
    listed = (await facts(capsys, ledger, "charges", *WHO))["charges"]
    assert ["direct"] == [each["kind"] for each in listed]
    assert [] == (await facts(capsys, ledger, "verify"))["differences"]


async def test_who_was_never_charged_is_forgotten_at_once(
    ledger: ClockedLedger, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the command says is there for programs too."""
    await ledger.typed("close", *WHO, "--reason", "a typing error")
    assert {"account": "acme/u-1", "forgotten": True} == await facts(capsys, ledger, "forget", *WHO, *BECAUSE)


async def test_what_is_listed_of_a_forgotten_account_has_its_id(
    ledger: ClockedLedger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its charges count above it, and reports count it as one; nobody reads who it was."""
    await charge(ledger, "u-1", "first")
    await charge(ledger, "ann", "other")
    await ledger.typed("close", *WHO, "--reason", "left")
    ledger.clock.step(days=31)
    await ledger.typed("forget", *WHO, *BECAUSE)
    entries = await ledger.store.journal("acme", "", "", 9)
    id_ = entries[0][1].account.text
    listed = (await facts(capsys, ledger, "charges", "--account", "acme"))["charges"]
    assert [("direct", id_), ("direct", "acme/ann"), ("closed", id_), ("forgotten", id_)] == [
        (each["kind"], each["account"]) for each in listed
    ]
    assert "erasure 17" == listed[-1]["reason"]
    assert f"{id_} forgotten" in await said(capsys, ledger, "journal", "--root", "acme")
    since = listed[0]["time"][:10]
    usage = ("usage", "--account", "acme", "--since", since, "--information", 7)
    assert 2 == (await facts(capsys, ledger, *usage))["accounts"]
    assert "4 entries" in await said(capsys, ledger, "seal", "--root", "acme")
    assert "0 differences" in await said(capsys, ledger, "verify")


async def test_a_name_that_came_back_or_is_lost_is_found(
    ledger: ClockedLedger, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the numbers are explained to people."""
    for name in ("u-1", "ann"):
        await ledger.typed("close", "--account", f"acme/{name}", "--reason", "left")
    rows = await ledger.store.named("acme", ["acme/u-1", "acme/ann"])
    await ledger.typed("forget", *WHO, *BECAUSE)
    await ledger.store.add_names("acme", [each for each in rows if each.name == "acme/u-1"])
    await ledger.store.drop_names("acme", await ledger.store.named("acme", ["acme/ann"]))
    found = (await facts(capsys, ledger, "verify", code=1))["differences"]
    assert {("name", 1, 0), ("name", 0, 1)} == {
        (each["sum"], each["kept"], each["rebuilt"]) for each in found
    }
    for_people = await said(capsys, ledger, "verify", code=1)
    assert "name 1 where the name of the account is kept, or has to be; 0 where it is not" in for_people
    assert "3 forgotten" not in for_people
