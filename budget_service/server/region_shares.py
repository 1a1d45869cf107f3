"""Where an account's budget is held: the shares of regions, and what was lost of them."""

from __future__ import annotations

from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.leases import is_lease, lease_of
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import NOTHING, Account, Cost
from budget_service.ledger.windows import Microseconds
from budget_service.server import responses
from budget_service.stores.interface import Store

# So many of the newest journal entries are looked through for shares that have lapsed.
LOOKED_THROUGH = 1000


async def add_region_shares(
    message: pb.GetBudgetResponse, store: Store, account: Account, found: AccountStatement
) -> None:
    """Add what regions hold of an account's budget, and what was spent in its window because they were lost.

    Args:
        message: The answer.
        store: The home ledger.
        account: Whose budget.
        found: Its state.

    Raises:
        StoreUnavailableError: The store failed.
    """
    page = await store.balances(account.root, "", 1)
    shares = [each for each in page.reservations if is_lease(each.reservation_id) and each.account == account]
    window_start = found.levels[-1].window.start
    for each in sorted(shares, key=lambda share: (share.query_id, share.expires_at)):
        if each.expires_at > found.time:
            share = _share(each.query_id, each.held, each.unit_id, each.expires_at)
            message.region_shares.append(share)
        elif each.held != NOTHING and each.holds[-1].window_start >= window_start:
            # It is written into the journal by the next request of its root.
            share = _share(each.query_id, each.held, each.unit_id, each.expires_at)
            message.lapsed_shares.append(share)
    given_back: dict[str, Cost] = {}
    for _, entry in await store.latest(account.root, "", LOOKED_THROUGH):
        if entry.account != account or not is_lease(entry.request_id):
            continue
        lease_id = lease_of(entry.request_id)
        if entry.kind is EntryKind.REFUNDED:
            given_back[lease_id] = entry.cost
        elif entry.kind is EntryKind.FORFEITED and entry.holds[-1].window_start >= window_start:
            lost = entry.cost - given_back.get(lease_id, NOTHING)
            if lost != NOTHING:
                message.lapsed_shares.append(_share(entry.query_id, lost, entry.unit_id, entry.time))


def _share(region: str, held: Cost, unit_id: str, ends_at: Microseconds) -> pb.RegionShare:
    return pb.RegionShare(
        region=region, held=responses.cost_message(held, unit_id), ends_at=responses.timestamp(ends_at)
    )
