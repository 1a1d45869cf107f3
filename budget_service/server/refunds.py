"""Refunds: looks up in the journal the charge that an administrator gives back."""

from __future__ import annotations

from msgspec.structs import replace

from budget_service.ledger.acts.refund import Refund
from budget_service.ledger.leases import is_lease
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account
from budget_service.server.rpc_errors import RefusalError, charged_in_region
from budget_service.stores.interface import Store
from budget_service.tuning import DEFAULTS, Tuning

_CHARGES = (EntryKind.SETTLED, EntryKind.DIRECT)


def without_charge(account: Account, release_id: str, reason: str, request_id: str, *, actor: str) -> Refund:
    """Return a refund whose charge is not known (yet); the ledger refuses it, or replays an earlier answer."""
    return Refund(account=account, request_id=request_id, release_id=release_id, actor=actor, reason=reason)


async def with_charge(store: Store, request: Refund, tuning: Tuning = DEFAULTS) -> Refund:
    """Return a refund with the last charge for its release, as the journal has it.

    The refund stays without a charge if there is none, or if budget of a level of the charge was written off since: the
    write-off stands for lost charges, so a refund in addition could be spent a second time. Whether the charge still
    counts and is paid for is for the ledger to decide. What was charged in a region is not refunded: the region does
    not hear of it, and would go on giving the release for nothing.

    Args:
        store: The ledger.
        request: The refund, without its charge.
        tuning: Sets the length of a page.

    Returns:
        The refund to be applied.

    Raises:
        RefusalError: The release was charged in a region.
        StoreError: The store failed.
    """
    before = ""
    lost: list[JournalEntry] = []
    while True:
        page = await store.latest(request.account.root, before, tuning.journal_page)
        for _, entry in page:
            if entry.kind is EntryKind.LOST:
                lost.append(entry)
            is_charge = entry.kind in _CHARGES and entry.release_id == request.release_id
            if is_charge and entry.account == request.account:
                if is_lease(entry.request_id):
                    raise RefusalError(charged_in_region())
                if any(_covers(each, entry) for each in lost):
                    return request
                return replace(
                    request,
                    query_id=entry.query_id,
                    cost=entry.cost,
                    shared_cost=entry.shared_cost,
                    unit_id=entry.unit_id,
                    holds=entry.holds,
                )
        if len(page) < tuning.journal_page:
            return request
        before = page[-1][0]


def _covers(lost: JournalEntry, charge: JournalEntry) -> bool:
    """Return whether a later write-off is of a level that a charge counts in."""
    # The charge no longer counts in a calendar window that began later. The days of a sliding window count together.
    depth = lost.account.depth
    return lost.account == charge.account.level(depth) and any(hold.depth == depth for hold in charge.holds)
