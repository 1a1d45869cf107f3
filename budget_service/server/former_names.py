"""All names of an account: what it was charged under an earlier one is its own, and the journal keeps it under that."""

from __future__ import annotations

from budget_service.ledger.account_states import UNTOUCHED
from budget_service.ledger.values import Account
from budget_service.stores.interface import Store


async def names_of(store: Store, account: Account) -> tuple[Account, ...]:
    """Return an account and what it was called before.

    Raises:
        StoreError: The store failed.
    """
    state = (await store.limits(account)).states.get(account, UNTOUCHED)
    return (account, *state.former(account))
