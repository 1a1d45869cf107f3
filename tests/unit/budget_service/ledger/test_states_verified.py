"""Verification of what administrators have made of accounts: which are closed."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.acts.reopen import ReopenAccount
from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.values import Account
from budget_service.ledger.verification import Difference, Sum
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from tests.support.budget_samples import ANALYST, COLLEAGUE, COMPANY, SteppedClock, charge
from tests.unit.budget_service.closed_ledgers import KINDS, ClosedLedger
from tests.unit.budget_service.trims import base_of_all, trimmed

ZOE = Account(("acme", "zoe"))
EVE = Account(("acme", "eve"))


class Kept(ClosedLedger):
    """A ledger that can be opened, and changed behind the service's back while it is closed."""

    async def put(self, account: Account, *, is_closed: bool) -> None:
        """Let the ledger keep another state of an account."""
        if self.kind == "redis":
            async with Redis.from_url(self._server.address) as client:
                name = f"closed\t{account.text}"
                if is_closed:
                    await client.set(f"gris:{{acme}}:row:{name}", "true")
                    await client.zadd("gris:{acme}:names", {name: 0})
                else:
                    await client.zrem("gris:{acme}:names", name)
            return
        row = (account.root, f"closed\t{account.text}")
        if self.kind == "sqlite":
            query = (
                "INSERT INTO rows VALUES (?, ?, 'true', NULL)"
                if is_closed
                else "DELETE FROM rows WHERE root = ? AND key = ?"
            )
            with contextlib.closing(sqlite3.connect(self._path)) as file, file:
                file.execute(query, row)
        elif is_closed:
            self._server.execute("INSERT INTO gris.rows VALUES (%s, %s, 'true')", *row)
        else:
            self._server.execute("DELETE FROM gris.rows WHERE root = %s AND key = %s", *row)


@pytest.fixture(params=KINDS)
def ledger(request: pytest.FixtureRequest, tmp_path: Path, clock: SteppedClock) -> Kept:
    """Give the ledger of each store."""
    return Kept(request.param, tmp_path, request, clock)


async def administered(store: Store) -> None:
    """Close Bob and the company, and open the company again."""
    for index, account in enumerate((ANALYST, COLLEAGUE)):
        await store.apply(*charge(f"c{index}", account=account))
    for request in (
        CloseAccount(actor="ops", account=COLLEAGUE, request_id="1", reason="left"),
        CloseAccount(actor="ops", account=COMPANY, request_id="2", reason="a mistake"),
        ReopenAccount(actor="ops", account=COMPANY, request_id="3", reason="a mistake"),
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


@pytest.mark.parametrize("is_trimmed", [False, True])
async def test_a_state_that_is_not_the_journals_is_found(ledger: Kept, *, is_trimmed: bool) -> None:
    """Opened or closed behind the service's back; also after the entries were trimmed."""
    await ledger.emptied()
    async with ledger.opened() as store:
        await administered(store)
        assert await differences(store) == []
        if is_trimmed:
            assert (await trimmed(store)).entries == 5
            assert await differences(store) == []
    await ledger.put(COLLEAGUE, is_closed=False)
    await ledger.put(EVE, is_closed=True)
    async with ledger.opened() as store:
        assert [state(COLLEAGUE, 0, 1), state(EVE, 1, 0)] == await differences(store)


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
    base = await base_of_all(any_store)
    assert more == []
    # It is as old as the balances.
    assert [COLLEAGUE.text] == base.closed
