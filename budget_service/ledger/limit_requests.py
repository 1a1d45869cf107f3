"""The rules for requests for other limits: they are kept, and decided by persons who have not asked.

A request changes no limit. Its approval does exactly what `SetLimits` would, once: then the request is gone. Requests
are bounded for each account, and in all by what a root account may store; they expire, and leave with a later request.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from budget_service.ledger.account_states import UNTOUCHED, AccountState, LimitRequest
from budget_service.ledger.administration import act_entry, decision, refusal, set_limits
from budget_service.ledger.limits import (
    AppliedLimits,
    LimitsChangedError,
    TemporaryLimit,
    change_text,
    ends_at,
    limit_text,
    parse_limit,
)
from budget_service.ledger.outcomes import LimitsSet, Reason, Refused
from budget_service.ledger.pseudonyms import ASKED_BY, ids_in
from budget_service.ledger.requests import (
    ANY_VERSION,
    ApproveLimit,
    LimitAct,
    RefuseLimit,
    RequestLimit,
    SetLimits,
)
from budget_service.ledger.state import Decision, EntryKind, Snapshot
from budget_service.ledger.values import Account
from budget_service.ledger.windows import DAY, Microseconds

UNAUTHENTICATED = "unauthenticated"
"""Who calls a service that asks nobody who they are. No name that is authenticated has no kind before it."""
MOST_OF_ACCOUNT = 8
MOST_OF_ROOT = 1000
# Who may name accounts below the own one could have all of the root's otherwise.
MOST_OF_ASKER = 50
# Accounts whose expired requests leave with a new one: more than come with it.
MOST_SWEPT = 100
WAITING: Microseconds = 30 * DAY
_KINDS = {
    RequestLimit: EntryKind.REQUEST,
    ApproveLimit: EntryKind.APPROVE,
    RefuseLimit: EntryKind.REFUSE,
}


def act_on_limit(snapshot: Snapshot, request: LimitAct, limits: AppliedLimits, now: Microseconds) -> Decision:
    """Ask for another limit, or approve or refuse one that was asked for.

    Raises:
        LimitsChangedError: Somebody else may have asked since it was looked up who has.
    """
    state = snapshot.states.get(request.account, UNTOUCHED)
    state = state.requesting(waiting(state, now))
    if isinstance(request, RequestLimit):
        return _asked(snapshot, request, state, limits.most_stored, now)
    found = next((each for each in state.requests if each.id == request.id), None)
    if found is None:
        return refusal(snapshot, request, Refused(Reason.NO_SUCH_REQUEST), now)
    if isinstance(request, RefuseLimit):
        return _noted(snapshot, request, _with(state, found, None), found, now)
    if request.of_two and not found.approved_by and _refusal(request, found) is None:
        approved = replace(found, approved_by=request.actor)
        return _noted(snapshot, request, _with(state, found, approved), approved, now)
    decided = _approved(snapshot, request, found, limits, now)
    change = decided.change
    if change is None or not change.limits:
        return decided
    return Decision(decided.answer, replace(change, states={request.account: _with(state, found, None)}))


def waiting(state: AccountState, now: Microseconds) -> tuple[LimitRequest, ...]:
    """Return the requests of an account that have not expired."""
    return tuple([each for each in state.requests if now < each.expires_at])


def _asked(
    snapshot: Snapshot, request: RequestLimit, state: AccountState, most_stored: int, now: Microseconds
) -> Decision:
    if request.as_of not in (ANY_VERSION, snapshot.root.limits_version):
        raise LimitsChangedError(now)
    reason, swept = None, _swept(snapshot, request, now)
    # Also an account that was forgotten since it was looked up.
    if any(snapshot.states.get(each, UNTOUCHED).is_closed for each in request.asking.levels):
        reason = Reason.ACCOUNT_CLOSED
    elif ends_at((request.wanted,)) <= now:
        reason = Reason.LIMIT_ENDED
    elif not isinstance(request.before, TemporaryLimit) and request.wanted.maximum.within(
        request.before.maximum
    ):
        reason = Reason.NOT_MORE
    elif (
        len(state.requests) >= MOST_OF_ACCOUNT
        or any(each.asked_by in (request.actor, *request.known_as) for each in state.requests)
        # Administrators must have room to set limits, whatever is asked for.
        or snapshot.stored_limits - [*swept.values()].count(UNTOUCHED) >= most_stored // 2
    ):
        reason = Reason.TOO_MANY_REQUESTS
    if reason is not None:
        return refusal(snapshot, request, Refused(reason), now)
    asked = LimitRequest(
        request.id,
        request.actor,
        limit_text(request.before),
        limit_text(request.wanted),
        request.reason,
        now + WAITING,
    )
    after = state.requesting((*state.requests, asked))
    return _noted(snapshot, request, after, asked, now, others=swept)


def _swept(snapshot: Snapshot, request: RequestLimit, now: Microseconds) -> dict[Account, AccountState]:
    """Return the states of other accounts without their expired requests."""
    states = {each: snapshot.states[each] for each in request.expired if each in snapshot.states}
    return {each: state.requesting(waiting(state, now)) for each, state in states.items()}


def _refusal(request: ApproveLimit, found: LimitRequest) -> Reason | None:
    # Who is nobody may be anybody, but not two persons.
    before = ({*found.asked_by.split()} - {UNAUTHENTICATED}) | {*found.approved_by.split()}
    is_unknown = bool(ids_in(found.asked_by)) and found.asked_by not in request.cleared
    if is_unknown or not before.isdisjoint(request.actor.split()):
        return Reason.OTHER_PERSON_NEEDED
    present = request.present
    return None if present is not None and limit_text(present) == found.before else Reason.LIMIT_CHANGED


def _approved(
    snapshot: Snapshot,
    request: ApproveLimit,
    found: LimitRequest,
    limits: AppliedLimits,
    now: Microseconds,
) -> Decision:
    """Set the limit that was asked for, as an administrator would."""
    reason = _refusal(request, found)
    if reason is None and snapshot.limits.get(request.account) != request.stored:
        reason = Reason.LIMIT_CHANGED
    if reason is not None:
        return refusal(snapshot, request, Refused(reason), now)
    act = SetLimits(
        account=request.account.level(1),
        request_id=request.request_id,
        actor=" ".join(filter(None, (found.approved_by, request.actor))),
        changes=((request.account, parse_limit(found.wanted)),),
        reason=f"{found.reason}{ASKED_BY}{found.asked_by}, request {found.id})",
    )
    decided = set_limits(snapshot, act, limits, now)
    change = decided.change
    if change is None or change.remembered is None:
        raise ValueError("a change of limits is always remembered")
    remembered = replace(change.remembered, fingerprint=request.fingerprint())
    # So that an approved limit is known from one whose reason says so: nobody chooses this field.
    journal = tuple([replace(each, query_id=found.id) for each in change.journal])
    return Decision(decided.answer, replace(change, remembered=remembered, journal=journal))


def _with(state: AccountState, found: LimitRequest, now: LimitRequest | None) -> AccountState:
    """Return a state with something else, or nothing, in the place of a request."""
    changed = (now if each is found else each for each in state.requests)
    return state.requesting(tuple([each for each in changed if each is not None]))


def _noted(
    snapshot: Snapshot,
    request: LimitAct,
    after: AccountState,
    asked: LimitRequest,
    now: Microseconds,
    *,
    others: Mapping[Account, AccountState] = MappingProxyType({}),
) -> Decision:
    """Return what changes no limit, with its entry in the journal."""
    change = change_text(parse_limit(asked.before), parse_limit(asked.wanted))
    entry = act_entry(_KINDS[type(request)], request, now, query_id=asked.id, change=change)
    root = replace(snapshot.root, currency=snapshot.root.currency.at(now), last_time=now)
    # Stores look for states only where a version says that there are some.
    root = replace(root, limits_version=root.next_limits_version(now))
    return decision(root, request, LimitsSet(0), journal=(entry,), states={**others, request.account: after})
