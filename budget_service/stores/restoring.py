"""How a restored ledger is put into use again, in any store: what was left of every budget counts as spent."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable

from budget_service.ledger.outcomes import Charged
from budget_service.ledger.requests import WriteOff
from budget_service.ledger.values import NOTHING, Account, LevelLimit, Limit
from budget_service.stores.interface import Store

PAGE = 1000


async def write_off(
    store: Store, limit_of: Callable[[Account], Limit | None], named: Iterable[Account]
) -> int:
    """Spend what is left on every level that was used, has a stored limit or is `named`; return on how many.

    `limit_of` gives the configuration's limit of a level. Nobody knows what was charged in the interval that was lost.
    Raises StoreError.
    """
    wanted = set(named)
    name = secrets.token_hex(8)
    count = 0
    for root in sorted({*await store.roots(), *(level.root for level in wanted)}):
        stored = await store.all_limits(root)
        known = {*await _used(store, root), *stored.limits, *(each for each in wanted if each.root == root)}
        for level in sorted(known, key=lambda each: each.text):
            limit = stored.limits.get(level) or limit_of(level)
            if limit is not None:
                request = WriteOff(
                    account=level,
                    levels=(LevelLimit(level, limit),),
                    request_id=f"restored-{name}-{level.text}",
                    limits_version=stored.version,
                )
                outcome = (await store.apply(request)).outcome
                count += isinstance(outcome, Charged) and outcome.charged != NOTHING
    return count


async def _used(store: Store, root: str) -> set[Account]:
    found: set[Account] = set()
    after: str | None = None
    while after != "":
        page = await store.balances(root, after or "", PAGE)
        found.update(level for level, _ in page.balances)
        after = page.after
    return found
