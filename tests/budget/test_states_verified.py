"""Verification of what administrators have made of accounts: which are closed, and which had other names."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from budget_service.ledger.account_states import MOVED, AccountState
from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.requests import CloseAccount, MoveAccount, ReopenAccount
from budget_service.ledger.values import Account
from budget_service.ledger.verification import Checkpoint, Difference, Sum
from budget_service.server.audit import Verification, verify
from budget_service.server.checkpoints import make_checkpoint
from budget_service.stores.interface import Store
from tests.budget.closed_ledgers import KINDS, ClosedLedger
from tests.support.budget_samples import ANALYST, COLLEAGUE, COMPANY, SteppedClock, charge

ZOE = Account(("acme", "zoe"))
EVE = Account(("acme", "eve"))


class Kept(ClosedLedger):
    """A ledger that can be opened, and changed behind the service's back while it is closed."""

    async def put(self, account: Account, state: str) -> None:
        """Let the ledger keep another state of an account, or none if it is empty."""
        if self.kind == "redis":
            async with Redis.from_url(self._server.address) as client:
                key = "gris:{acme}:accounts"
                await (client.hset(key, account.text, state) if state else client.hdel(key, account.text))
            return
        row = (account.root, account.text, state)
        if self.kind == "sqlite":
            with contextlib.closing(sqlite3.connect(self._path)) as file, file:
                file.execute("DELETE FROM accounts WHERE level = ?", row[1:2])
                file.execute("INSERT INTO accounts SELECT ?, ?, ? WHERE ? <> ''", (*row, state))
            return
        self._server.execute("DELETE FROM gris.accounts WHERE level = %s", row[1])
        if state:
            self._server.execute("INSERT INTO gris.accounts VALUES (%s, %s, %s)", *row)


@pytest.fixture(params=KINDS)
def ledger(request: pytest.FixtureRequest, tmp_path: Path, clock: SteppedClock) -> Kept:
    """Give the ledger of each store."""
    return Kept(request.param, tmp_path, request, clock)


async def administered(store: Store) -> None:
    """Close Bob and the company, open the company again, and let Ann be called Zoe."""
    for index, account in enumerate((ANALYST, COLLEAGUE)):
        await store.apply(*charge(f"c{index}", account=account))
    for request in (
        CloseAccount(actor="ops", account=COLLEAGUE, request_id="1", reason="left"),
        CloseAccount(actor="ops", account=COMPANY, request_id="2", reason="a mistake"),
        ReopenAccount(actor="ops", account=COMPANY, request_id="3", reason="a mistake"),
        MoveAccount(actor="ops", account=ANALYST, target=ZOE, request_id="4", reason="renamed"),
    ):
        await store.apply(request, NO_LIMITS)


async def differences(store: Store) -> list[Difference]:
    """Verify the root."""
    found = Verification()
    await verify(store, "acme", found)
    return found.differences


def state(account: Account, kept: int, rebuilt: int) -> Difference:
    """Return the difference of a state."""
    return Difference(account, None, Sum.STATE, None, kept, rebuilt)


@pytest.mark.parametrize("checkpointed", [False, True])
async def test_a_state_that_is_not_the_journals_is_found(ledger: Kept, *, checkpointed: bool) -> None:
    """Opened, closed or renamed behind the service's back; also after the entries were archived."""
    await ledger.emptied()
    async with ledger.opened() as store:
        await administered(store)
        assert await differences(store) == []
        if checkpointed:
            await make_checkpoint(store, "acme")
            assert await store.drop_checkpointed("acme", 1000) == 6
            assert await differences(store) == []
    await ledger.put(COLLEAGUE, "")
    await ledger.put(EVE, "closed")
    await ledger.put(ANALYST, "closed")
    await ledger.put(ZOE, "open/eve")
    async with ledger.opened() as store:
        assert [
            state(ANALYST, 1, 2),
            state(COLLEAGUE, 0, 1),
            state(EVE, 1, 0),
            Difference(ZOE, None, Sum.FORMER_NAMES, None, 0, 1),
        ] == await differences(store)


async def test_a_checkpoint_has_the_states_of_its_journal(ledger: Kept) -> None:
    """Those of accounts that are closed, were moved or had other names."""
    await ledger.emptied()
    async with ledger.opened() as store:
        await administered(store)
        made = await make_checkpoint(store, "acme")
        states = {
            COLLEAGUE: AccountState(is_closed=True),
            ANALYST: MOVED,
            ZOE: AccountState(False, False, ("ann",)),
        }
        assert states == made.states
        assert made == await store.checkpoint("acme")


async def test_states_that_change_while_they_are_verified_are_no_difference(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account is closed after the balances were read, and one more between the two looks at the states."""
    await administered(any_store)
    read, more = any_store.all_limits, [EVE, ZOE]

    async def busy(root: str) -> Any:
        found = await read(root)
        if more:
            account = more.pop()
            closing_ = CloseAccount(actor="ops", account=account, request_id=account.text, reason="left")
            await any_store.apply(closing_, NO_LIMITS)
        return found

    monkeypatch.setattr(any_store, "all_limits", busy)
    found = Verification()
    checkpoint = await verify(any_store, "acme", found)
    assert (found.differences, more) == ([], [])
    # It is as old as the balances.
    assert isinstance(checkpoint, Checkpoint)
    assert EVE not in checkpoint.states
