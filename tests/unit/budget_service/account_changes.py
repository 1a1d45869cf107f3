"""Accounts that a test closes and opens again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from budget_service.ledger.act import Act
from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.acts.reopen import ReopenAccount
from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.outcomes import (
    Answer,
    Reason,
    Refused,
)
from budget_service.ledger.values import Account, Cost, LevelLimit, Limit
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from tests.support.budget_samples import (
    COMPANY,
    Asked,
    levels,
    limit,
)
from tests.unit.budget_service.root_acts import AccountAct

OWN, ABOVE = limit(10, 5, days=7), limit(30, 9)
CLOSED = Refused(Reason.ACCOUNT_CLOSED)
ONE = Cost(1, 1)


def on(account: Account, own: Limit = OWN) -> tuple[LevelLimit, ...]:
    """Return the limits of an analyst and of the company."""
    return levels(account, own=own, above=ABOVE)


async def ask(store: Store, asked: Asked[Act]) -> Answer:
    """Ask as the service does: by what the ledger has stored now."""
    stored = await store.limits(asked.request.account)
    return await store.apply(asked.request, stored.applied_to(asked.request.account, asked.limits.levels))


async def change(store: Store, request: AccountAct) -> object:
    """Have an administrator change an account."""
    return (await store.apply(request, NO_LIMITS)).outcome


async def close(store: Store, account: Account, id_: str = "close") -> object:
    """Close an account."""
    return await change(store, CloseAccount(actor="ops", account=account, request_id=id_, reason="left"))


async def reopen(store: Store, account: Account, id_: str = "reopen") -> object:
    """Open an account again."""
    return await change(store, ReopenAccount(actor="ops", account=account, request_id=id_, reason="is back"))


async def spent(store: Store, account: Account, own: Limit = OWN) -> list[Cost]:
    """Return what is spent at each level of an analyst."""
    return [each.spent for each in (await store.read(account, on(account, own))).levels]


async def assert_sound(store: Store) -> None:
    """The journal adds up to the balances."""
    found = Verification()
    await verify(store, COMPANY.root, found)
    assert found.differences == []


def for_(account: Account, make: Callable[..., Asked[Any]], *args: Any, **named: Any) -> Asked[Any]:
    """Return a request of an account by its usual limits."""
    return make(*args, account=account, on=on(account), **named)
