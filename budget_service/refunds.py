"""Refunds: what the journal says of the charge that an administrator gives back."""

from __future__ import annotations

from msgspec.structs import replace

from budget_service.ledger.requests import Refund
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import NOTHING, Account
from budget_service.stores.interface import Store

PAGE = 1000
_CHARGES = (EntryKind.SETTLED, EntryKind.DIRECT)


def unfounded(account: Account, release_id: str, reason: str, request_id: str) -> Refund:
    """Return a refund before its charge was looked up; the ledger refuses it, or repeats what it answered."""
    return Refund(
        account=account,
        levels=(),
        request_id=request_id,
        release_id=release_id,
        reason=reason,
        query_id="",
        cost=NOTHING,
        shared_cost=None,
        unit_id="",
        holds=(),
    )


async def founded(store: Store, request: Refund) -> Refund:
    """Return a refund with what the journal says of the last charge for its release; as it is if there is none.

    The ledger decides whether that charge still counts and is paid for. Raises StoreError.
    """
    before = ""
    while True:
        page = await store.latest(request.account.root, before, PAGE)
        for _, entry in page:
            is_charge = entry.kind in _CHARGES and entry.release_id == request.release_id
            if is_charge and entry.account == request.account:
                return replace(
                    request,
                    query_id=entry.query_id,
                    cost=entry.cost,
                    shared_cost=entry.shared_cost,
                    unit_id=entry.unit_id,
                    holds=entry.holds,
                )
        if len(page) < PAGE:
            return request
        before = page[-1][0]
