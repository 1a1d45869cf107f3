"""Puts a restored ledger into use again, in any store: what was left of every budget counts as spent.

That includes what is reserved. Each reservation may have been settled in the lost interval, so none may return anything
later: they are cancelled first, and what they held is spent with the rest. A share that is lent may have been given
back and spent in it, or be charged from still: it is kept until its end, and not taken back after just these reports.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec.structs import replace

from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.give_back import ReturnLease
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.acts.write_off import WriteOff
from budget_service.ledger.leases import is_lease, lease_of
from budget_service.ledger.limits import AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Charged, LimitsSet
from budget_service.ledger.state import Reservation
from budget_service.ledger.values import NOTHING, Account, LevelLimit, Limit
from budget_service.stores.interface import Store

PAGE = 1000

# The configuration's limit of a level.
LimitOf: TypeAlias = Callable[[Account], Limit | None]


async def write_off(
    store: Store, limit_of: LimitOf, named: Iterable[Account], *, actor: str, reason: str = ""
) -> int:
    """Spend what is left on every level that was used, has a stored limit or is `named`; return on how many.

    What was charged in the lost interval is not known. Raises StoreError.
    """
    wanted: defaultdict[str, set[Account]] = defaultdict(set)
    for level in named:
        wanted[level.root].add(level)
    name = secrets.token_hex(8)
    count = 0
    for root in sorted({*await store.roots(), *wanted}):
        stored = await store.all_limits(root)
        # From now on nothing is given back of leases that lapsed before.
        unchanged = SetLimits(
            account=Account((root,)), request_id=f"restored-{name}", actor=actor, changes=()
        )
        versioned = (await store.apply(unchanged, AppliedLimits((), stored.version))).outcome
        assert isinstance(versioned, LimitsSet)  # noqa: S101 - no limit is added, so that none is refused
        stored = replace(stored, version=versioned.version)
        await _end_reservations(store, root, stored, limit_of, name)
        known = {*await _used(store, root), *stored.limits, *wanted[root]}
        for index, level in enumerate(sorted(known, key=lambda each: each.text)):
            limit = stored.limits.get(level) or limit_of(level)
            if limit is not None:
                id_ = f"restored-{name}-{index}"
                request = WriteOff(account=level, request_id=id_, actor=actor, reason=reason)
                limits = AppliedLimits((LevelLimit(level, limit),), stored.version)
                outcome = (await store.apply(request, limits)).outcome
                count += isinstance(outcome, Charged) and outcome.charged != NOTHING
    return count


async def _end_reservations(
    store: Store, root: str, stored: StoredLimits, limit_of: LimitOf, name: str
) -> None:
    # Each page of balances contains all open reservations.
    for held in (await store.balances(root, "", 1)).reservations:
        levels = _levels(held, stored, limit_of)
        # Where nothing is limited any more, nothing can be spent twice.
        if levels:
            # One that has lapsed is refused, and has ended by that.
            await store.apply(_end(held, name), AppliedLimits(levels, stored.version))


def _end(held: Reservation, name: str) -> CancelReservation | ReturnLease:
    if is_lease(held.reservation_id):
        lease_id, number = lease_of(held.reservation_id), int(held.reservation_id.rpartition(".")[2])
        return ReturnLease(
            account=held.account,
            lease_id=lease_id,
            number=number,
            region=held.query_id,
            is_written_off=True,
        )
    return CancelReservation(
        account=held.account,
        request_id=f"restored-{name}-{held.reservation_id}",
        reservation_id=held.reservation_id,
    )


def _levels(held: Reservation, stored: StoredLimits, limit_of: LimitOf) -> tuple[LevelLimit, ...]:
    account = held.account
    every = [account.level(depth) for depth in range(1, account.depth + 1)]
    limits = ((level, stored.limits.get(level) or limit_of(level)) for level in every)
    return tuple(LevelLimit(level, limit) for level, limit in limits if limit is not None)


async def _used(store: Store, root: str) -> set[Account]:
    found: set[Account] = set()
    after: str | None = None
    while after != "":
        page = await store.balances(root, after or "", PAGE)
        # What is left of a level is spent for all of its blocks, known or not.
        found.update(level for level, _ in page.balances if not level.block)
        after = page.after
    return found
