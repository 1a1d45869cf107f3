"""Trims of a journal in tests, without an administrator's service."""

from __future__ import annotations

from budget_service.ledger.base import Base
from budget_service.server.audit import Trim, Verification, verify
from budget_service.stores.interface import Store

EVERYTHING = "9" * 18


async def trimmed(store: Store, root: str = "acme") -> Base:
    """Verify a root, drop all entries that it has, and return what stands for them."""
    base = await base_of_all(store, root)
    await store.write_base(root, base)
    while await store.drop_trimmed(root, 1000):
        pass
    return base


async def base_of_all(store: Store, root: str = "acme") -> Base:
    """Return what would stand for all entries of a root."""
    now, found = (await store.balances(root, "", 1)).root.last_time, Verification()
    base = await verify(store, root, found, trim=Trim(EVERYTHING, now + 1))
    assert found.differences == []
    return base
