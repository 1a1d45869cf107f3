"""The rules for closing an account, opening it again, moving it to another name, and forgetting it.

No budget is made by any of them. What was spent, reserved and paid for stays where it counts: at the account, whatever
its name is by then, and at every level above it. A name that an account had before is closed for good. Who is forgotten
may come again as somebody new, so an account is forgotten only when nothing of it counts any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec.structs import replace

from budget_service.ledger.account_states import MAX_FORMER_NAMES, MOVED, UNTOUCHED, AccountState
from budget_service.ledger.administration import act_entry, decision, refusal
from budget_service.ledger.balances import Balance
from budget_service.ledger.limits import AppliedLimits, LimitsChangedError
from budget_service.ledger.outcomes import LimitsSet, Reason, Refused
from budget_service.ledger.requests import (
    AccountRequest,
    BudgetRequest,
    Charge,
    CloseAccount,
    ForgetAccount,
    MoveAccount,
    ReopenAccount,
    ReportCharge,
    Reserve,
)
from budget_service.ledger.state import Decision, EntryKind, JournalEntry, Snapshot
from budget_service.ledger.values import NOTHING, Account
from budget_service.ledger.windows import Microseconds, WindowRule

States: TypeAlias = dict[Account, AccountState]


def is_closed_to(request: BudgetRequest, limits: AppliedLimits) -> bool:
    """Return whether a request is refused because its account, or a level above it, is closed.

    What was reserved before ends as it would. Under a name that the account no longer has, nothing does.
    """
    # What a region has charged has happened, whatever became of the account since.
    if limits.closed is None or isinstance(request, ReportCharge):
        return False
    is_new = isinstance(request, Reserve) or (isinstance(request, Charge) and not request.reservation_id)
    return is_new or limits.is_moved


def refuse_closed(snapshot: Snapshot, request: BudgetRequest, now: Microseconds) -> Decision:
    """Refuse a request under a closed account."""
    return refusal(snapshot, request, Refused(Reason.ACCOUNT_CLOSED), now)


def change_account(
    snapshot: Snapshot, request: AccountRequest, limits: AppliedLimits, now: Microseconds
) -> Decision:
    """Close an account, open it again, move it to another name, or forget it.

    Raises:
        LimitsChangedError: It is to be forgotten, and its limits are not those that its windows were looked up with.
    """
    if isinstance(request, ForgetAccount):
        return _forget(snapshot, request, limits, now)
    reason = _refusal(snapshot, request, limits.most_stored)
    if reason is not None:
        return refusal(snapshot, request, Refused(reason), now)
    root = replace(snapshot.root, currency=snapshot.root.currency.at(now), last_time=now)
    # A request that comes with older limits is not decided: they are looked up again, and the account is closed.
    root = replace(root, limits_version=root.next_limits_version(now))
    outcome, entry = LimitsSet(root.limits_version), _entry(request, now)
    if not isinstance(request, MoveAccount):
        state = snapshot.states.get(request.account, UNTOUCHED)
        state = state.closed() if isinstance(request, CloseAccount) else state.reopened()
        return decision(root, request, outcome, journal=(entry,), states={request.account: state})
    limit = snapshot.limits.get(request.account)
    return decision(
        root,
        request,
        outcome,
        journal=(entry,),
        limits=() if limit is None else ((request.account, None), (request.target, limit)),
        states=_moved(snapshot, request),
        moved=(request.account, request.target),
    )


def _forget(snapshot: Snapshot, request: ForgetAccount, limits: AppliedLimits, now: Microseconds) -> Decision:
    if limits.version != snapshot.root.limits_version:
        raise LimitsChangedError
    account, root = request.account, snapshot.root
    state = snapshot.states.get(account, UNTOUCHED)
    if state.is_forgotten:
        # Who did it was interrupted before its rows were gone.
        return decision(root, request, LimitsSet(root.limits_version))
    if (reason := _refusal_to_forget(snapshot, account, state, limits, now)) is not None:
        return refusal(snapshot, request, Refused(reason), now)
    root = replace(root, currency=root.currency.at(now), last_time=now)
    root = replace(root, limits_version=root.next_limits_version(now))
    return decision(
        root,
        request,
        LimitsSet(root.limits_version),
        journal=(_entry(request, now),),
        limits=((account, None),) if account in snapshot.limits else (),
        states=state.forgotten(account),
    )


def _refusal_to_forget(
    snapshot: Snapshot, account: Account, state: AccountState, limits: AppliedLimits, now: Microseconds
) -> Reason | None:
    if account.depth == 1:
        raise ValueError("a root account has no pseudonym")
    if state.is_moved:
        return Reason.ACCOUNT_MOVED
    if not state.is_closed:
        return Reason.ACCOUNT_NOT_CLOSED
    if account in snapshot.occupied:
        return Reason.HAS_ACCOUNTS_BELOW
    stored = snapshot.limits.get(account)
    windows = {*limits.rules, *(() if stored is None else (stored.window,))}
    own = (balance for level, balance in snapshot.balances.items() if level.path == account.path)
    return Reason.STILL_COUNTS if any(_counts(each, windows, now) for each in own) else None


def _counts(balance: Balance, windows: Iterable[WindowRule], now: Microseconds) -> bool:
    """Return whether anything is held, or may count in one of these windows or in that which the balance had last."""
    if balance.reserved != NOTHING:
        return True
    own = balance.rule
    rules = {*windows, *(() if own is None else (own,))}
    return any(
        balance.day.end > rule.around(now).counts_from and not (rule == own and balance.is_unused)
        for rule in rules
    )


def _refusal(snapshot: Snapshot, request: AccountRequest, most_stored: int) -> Reason | None:
    state = snapshot.states.get(request.account, UNTOUCHED)
    # With a level, the names below it go: nobody could open again what is closed under one of them now.
    if any(snapshot.states.get(each, UNTOUCHED).is_forgotten for each in request.account.levels):
        return Reason.ACCOUNT_FORGOTTEN
    if state.is_moved:
        return Reason.ACCOUNT_MOVED
    if isinstance(request, ReopenAccount):
        return None if state.is_closed else Reason.ACCOUNT_NOT_CLOSED
    if isinstance(request, MoveAccount):
        return _refusal_of_move(snapshot, request, most_stored)
    if state.is_closed:
        return Reason.ACCOUNT_CLOSED
    is_new = request.account not in snapshot.states
    return Reason.TOO_MANY_LIMITS if is_new and snapshot.stored_limits >= most_stored else None


def _refusal_of_move(snapshot: Snapshot, request: MoveAccount, most_stored: int) -> Reason | None:
    source, target = request.account, request.target
    if source.depth == 1 or source.path[:-1] != target.path[:-1]:
        raise ValueError("an account stays below the same level")
    path = [source.level(depth) for depth in range(1, source.depth + 1)]
    if any(snapshot.states.get(level, UNTOUCHED).is_closed for level in path):
        return Reason.ACCOUNT_CLOSED
    if source in snapshot.occupied:
        return Reason.HAS_ACCOUNTS_BELOW
    known = (snapshot.balances, snapshot.limits, snapshot.states, snapshot.occupied)
    # Two balances are never added up: what one of them had spent could be forgotten, or spent twice.
    if any(target in each for each in known):
        return Reason.TARGET_USED
    if source not in snapshot.balances and source not in snapshot.limits:
        return Reason.NOTHING_TO_MOVE
    state = snapshot.states.get(source, UNTOUCHED)
    if len(state.former_names) >= MAX_FORMER_NAMES:
        return Reason.MOVED_TOO_OFTEN
    added = 1 if source in snapshot.states else 2
    return Reason.TOO_MANY_LIMITS if snapshot.stored_limits + added > most_stored else None


def _moved(snapshot: Snapshot, request: MoveAccount) -> States:
    state = snapshot.states.get(request.account, UNTOUCHED)
    return {request.account: MOVED, request.target: state.after_move(request.account)}


def _entry(request: AccountRequest, now: Microseconds) -> JournalEntry:
    kind = {
        CloseAccount: EntryKind.CLOSE,
        ReopenAccount: EntryKind.REOPEN,
        MoveAccount: EntryKind.MOVE,
        ForgetAccount: EntryKind.FORGET,
    }[type(request)]
    change = request.target.text if isinstance(request, MoveAccount) else ""
    return act_entry(kind, request, now, change=change)
