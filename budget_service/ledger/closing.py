"""The rules for closing an account and opening it again.

No budget is made by either. What was spent, reserved and paid for stays where it counts.
"""

from __future__ import annotations

from msgspec.structs import replace

from budget_service.ledger.administration import act_entry, decision, refusal
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import LimitsSet, Reason, Refused
from budget_service.ledger.requests import BudgetRequest, Charge, CloseAccount, ReopenAccount, Reserve
from budget_service.ledger.state import Decision, EntryKind, Snapshot
from budget_service.ledger.windows import Microseconds


def is_closed_to(request: BudgetRequest, limits: AppliedLimits) -> bool:
    """Return whether a request is refused because its account, or a level above it, is closed.

    What was reserved before ends as it would, and what a region has charged has happened.
    """
    if limits.closed is None:
        return False
    return isinstance(request, Reserve) or (isinstance(request, Charge) and not request.reservation_id)


def refuse_closed(snapshot: Snapshot, request: BudgetRequest, now: Microseconds) -> Decision:
    """Refuse a request under a closed account."""
    return refusal(snapshot, request, Refused(Reason.ACCOUNT_CLOSED), now)


def change_account(
    snapshot: Snapshot, request: CloseAccount | ReopenAccount, limits: AppliedLimits, now: Microseconds
) -> Decision:
    """Close an account, or open it again."""
    reason = _refusal(snapshot, request, limits.most_stored)
    if reason is not None:
        return refusal(snapshot, request, Refused(reason), now)
    root = replace(snapshot.root, currency=snapshot.root.currency.at(now), last_time=now)
    # A request that comes with older limits is not decided: they are looked up again, and the account is closed.
    root = replace(root, limits_version=root.next_limits_version(now))
    is_closed = isinstance(request, CloseAccount)
    entry = act_entry(EntryKind.CLOSE if is_closed else EntryKind.REOPEN, request, now)
    outcome = LimitsSet(root.limits_version)
    return decision(root, request, outcome, journal=(entry,), closed={request.account: is_closed})


def _refusal(snapshot: Snapshot, request: CloseAccount | ReopenAccount, most_stored: int) -> Reason | None:
    is_closed = request.account in snapshot.closed
    if isinstance(request, ReopenAccount):
        return None if is_closed else Reason.ACCOUNT_NOT_CLOSED
    if is_closed:
        return Reason.ACCOUNT_CLOSED
    return Reason.TOO_MANY_LIMITS if snapshot.stored_limits >= most_stored else None
