"""How refusals and failures are reported over gRPC: a google.rpc.Status with details, domain `gris.budget`.

RESOURCE_EXHAUSTED   BUDGET_EXHAUSTED                     and QuotaFailure; RetryInfo if the wait is under an hour
NOT_FOUND            ACCOUNT_UNKNOWN
INVALID_ARGUMENT     INVALID_FIELD, REQUEST_ID_REUSED, COST_ABOVE_RESERVATION, QUERY_MISMATCH, BLOCKS_MISMATCH,
                     SUM_OVERFLOW                         and BadRequest naming the field
FAILED_PRECONDITION  RESERVATION_OVER, UNIT_MISMATCH, RELEASE_MISMATCH, TOO_MANY_LIMITS, UNIT_UNCHANGED,
                     CURRENCY_PLANNED, NO_CURRENCY_PLANNED, WINDOW_NEVER_ENDS, CLOCKS_DISAGREE,
                     CLOCK_NOT_BEHIND, LEDGER_DIFFERS, NOT_PAID, NO_BACKUPS, BACKUP_UNWRITABLE,
                     TOO_MANY_STATEMENTS, ACCOUNTS_WITHOUT_END, ACCOUNT_CLOSED,
                     ACCOUNT_NOT_CLOSED, LEASE_SPENT, LEASE_NOT_YOURS, NOT_LENDING, REGION_TAKEN,
                     CHARGED_IN_REGION
PERMISSION_DENIED    TICKET_NOT_AUTHENTIC, ROLE_MISSING (another region's name)
UNAUTHENTICATED      CALLER_UNNAMED, TOKEN_REFUSED
DATA_LOSS            LEDGER_DAMAGED (administrators only; others get STORE_UNAVAILABLE)
UNAVAILABLE          STORE_UNAVAILABLE, HOME_UNAVAILABLE, OVERLOADED, BUDGET_HELD (no effect; the last two with
                     RetryInfo), OUTCOME_UNKNOWN (retry with the same id)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, QuotaFailure, RetryInfo
from google.rpc.status_pb2 import Status

from budget_service.ledger.outcomes import Exhausted, Held, Reason, Refused, Shortfall
from budget_service.ledger.values import Account, InvalidFieldError
from budget_service.ledger.windows import SECOND, Microseconds, datetime_of

DOMAIN = "gris.budget"
OVERLOADED_SECONDS = 1
HELD_MILLISECONDS = 100
# Clients wait for budget that others hold: that is no fault, though its code is UNAVAILABLE. That the store is away is
# logged once, and not for each call.
LOG_LEVELS = {"BUDGET_HELD": logging.INFO, "STORE_UNAVAILABLE": logging.DEBUG}
LONGEST_RETRY: Microseconds = 3600 * SECOND

_PRECONDITIONS: Mapping[Reason, str] = {
    Reason.RESERVATION_OVER: (
        "the reservation is over: settled, cancelled or lapsed, or the charge that made it free was refunded"
    ),
    Reason.UNIT_MISMATCH: (
        "the ledger of this account, or the reservation, counts in another currency: another epsilon_per, delta, count "
        "noise or blocks"
    ),
    # The reason is for the operator's alarm. The caller must learn nothing about the data from this message.
    Reason.RELEASE_MISMATCH: "the release cannot be charged",
    Reason.NOT_PAID: "this account has not paid for the release in a window that counts, "
    "was refunded already, or the entry of the charge was trimmed",
    Reason.UNIT_UNCHANGED: "the root counts in this currency already",
    Reason.CURRENCY_PLANNED: "another currency is planned already: withdraw it first",
    Reason.NO_CURRENCY_PLANNED: "no other currency is planned, or it has begun",
    Reason.WINDOW_NEVER_ENDS: "a budget of this root is never refreshed: a new currency needs a new root account",
    Reason.CLOCKS_DISAGREE: "the store's clock and the given time are more than a minute apart",
    Reason.CLOCK_NOT_BEHIND: "the root's time goes on already: the store's clock is not behind it",
    Reason.TOO_MANY_LIMITS: (
        "the root has as many stored limits and closed accounts as it may have: remove some limits first"
    ),
    Reason.ACCOUNT_CLOSED: "the account, or a level above it, is closed",
    Reason.ACCOUNT_NOT_CLOSED: "the account is not closed itself",
    Reason.TOO_MANY_BLOCKS: "the root has as many blocks as it may have",
    Reason.LEASE_SPENT: "the region's share of the budget does not hold this: the home ledger has to be asked",
    Reason.LEASE_NOT_YOURS: "the lease is another region's",
}

_FIELDS: Mapping[Reason, tuple[str, str]] = {
    Reason.REQUEST_ID_REUSED: ("request_id", "was used before with other content"),
    Reason.COST_ABOVE_RESERVATION: ("cost", "is more than the reservation holds"),
    Reason.QUERY_MISMATCH: ("query_id", "is not the reservation's"),
    Reason.BLOCKS_MISMATCH: ("cost.blocks", "are not the reservation's"),
    Reason.SUM_OVERFLOW: ("cost", "cannot be added: the sum would not fit into 64 bits"),
}


class RefusalError(Exception):
    """A request ends with `status`."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def refused(refusal: Refused) -> Status:
    """Report a refusal by the rules."""
    reason = refusal.reason
    if reason in _PRECONDITIONS:
        return _status(code_pb2.FAILED_PRECONDITION, _PRECONDITIONS[reason], _info(reason.value))
    field, problem = _FIELDS[reason]
    if refusal.expected or refusal.got:
        expected, got = (" ".join(each) or "none" for each in (refusal.expected, refusal.got))
        problem = f"{problem}: expected {expected}, got {got}"
    return _bad_request(reason.value, field, problem)


def exhausted(refusal: Exhausted, account: Account) -> Status:
    """Report that a budget is spent: the first shortfall in the message, all of them in the quota failure."""
    first = refusal.shortfalls[0]
    details: list[Message] = [_info("BUDGET_EXHAUSTED", _shortfall_metadata(first, account))]
    details.append(QuotaFailure(violations=[_violation(each, account) for each in refusal.shortfalls]))
    wait = _wait(refusal)
    if wait is not None and wait < LONGEST_RETRY:
        details.append(RetryInfo(retry_delay=Duration(seconds=wait // SECOND, nanos=wait % SECOND * 1000)))
    return _status(
        code_pb2.RESOURCE_EXHAUSTED, f"budget exhausted: {_sentence(first)}{_still(refusal)}", *details
    )


def held(refusal: Held, account: Account) -> Status:
    """Report that a budget is held by open reservations; when they end is their owners' affair."""
    first = refusal.shortfalls[0]
    metadata = _shortfall_metadata(first, account)
    metadata.pop("refreshes_at", None)
    message = (
        f"budget held by open reservations: {first.requested} {first.unit.value} requested{_still(refusal)}"
    )
    retry = RetryInfo(retry_delay=Duration(nanos=HELD_MILLISECONDS * 1_000_000))
    return _status(code_pb2.UNAVAILABLE, message, _info("BUDGET_HELD", metadata), retry)


def is_retried_by_clients(status: Status) -> bool:
    """Return whether a client retries this after a pause of its own: gRPC need not do it before."""
    return any(_is_held(detail) for detail in status.details)


def _is_held(detail: Any) -> bool:
    info = ErrorInfo()
    return detail.Unpack(info) and info.reason == "BUDGET_HELD"


def invalid_field(error: InvalidFieldError) -> Status:
    """Report which field of a request is wrong."""
    return _bad_request("INVALID_FIELD", error.field, error.problem)


def account_unknown() -> Status:
    """Report that no such account exists."""
    return _status(code_pb2.NOT_FOUND, "no such account", _info("ACCOUNT_UNKNOWN"))


def root_unknown(root: str) -> Status:
    """Report that the ledger has no journal of a root account, so that there is nothing to verify."""
    message = f"the ledger has no journal of {root}: one begins with a root's first charge or stored limit"
    return _status(code_pb2.NOT_FOUND, message, _info("ACCOUNT_UNKNOWN"))


def ticket_not_authentic() -> Status:
    """Report that a charge does not carry dp_service's ticket for it."""
    message = "the charge ticket is missing or is not dp_service's for this charge"
    return _status(code_pb2.PERMISSION_DENIED, message, _info("TICKET_NOT_AUTHENTIC"))


def charged_in_region() -> Status:
    """Report that a charge was made in a region, which would go on giving its release for nothing."""
    message = "the release was charged in a region, and regions do not hear of refunds"
    return _status(code_pb2.FAILED_PRECONDITION, message, _info("CHARGED_IN_REGION"))


def not_lending() -> Status:
    """Report that the ledger has no regions."""
    message = "the configuration of this ledger has no `leases`: it lends nothing to regions"
    return _status(code_pb2.FAILED_PRECONDITION, message, _info("NOT_LENDING"))


def not_of_region(name: str) -> Status:
    """Report that the caller may not speak for a region."""
    message = f"this method asks for the role region:{name}"
    return _status(code_pb2.PERMISSION_DENIED, message, _info("ROLE_MISSING"))


def token_refused(why: str) -> Status:
    """Report that the caller's token, which was accepted when the call came, is not any more."""
    return _status(code_pb2.UNAUTHENTICATED, why, _info("TOKEN_REFUSED"))


def caller_unnamed() -> Status:
    """Report that a caller may change the ledger, and that nobody could say later who did."""
    message = "expected a name of at most 256 characters (`sub` of a token): the journal says who changes the ledger"
    return _status(code_pb2.UNAUTHENTICATED, message, _info("CALLER_UNNAMED"))


def region_taken(name: str) -> Status:
    """Report that another region has the same name."""
    message = f"another region is called {name}: give each region's ledger a name of its own"
    return _status(code_pb2.FAILED_PRECONDITION, message, _info("REGION_TAKEN"))


def home_unavailable() -> Status:
    """Report that what this region holds is not enough, and the home does not answer."""
    return _status(
        code_pb2.UNAVAILABLE,
        "the home ledger does not answer, and this region holds too little of the budget: repeat the request with "
        "the same request_id",
        _info("OUTCOME_UNKNOWN"),
    )


def no_balances() -> Status:
    """Report that the home does not answer, which alone states balances, or does not take this region's reports."""
    message = "only the home ledger states balances, and it does not answer this region; nothing was changed"
    return _status(code_pb2.UNAVAILABLE, message, _info("HOME_UNAVAILABLE"))


def no_backups() -> Status:
    """Report that the service has no folder for backups."""
    message = "the service was started without --backups, which a ledger in SQLite takes"
    return _status(code_pb2.FAILED_PRECONDITION, message, _info("NO_BACKUPS"))


def backup_unwritable(problem: str) -> Status:
    """Report that a backup cannot be written."""
    message = f"the backup cannot be written: {problem}; nothing is left of it"
    return _status(code_pb2.FAILED_PRECONDITION, message, _info("BACKUP_UNWRITABLE"))


def too_many_statements(most: int) -> Status:
    """Report that more policy statements count than one answer may hold."""
    message = f"more than {most} different policy statements count; there is no partial answer"
    return _status(code_pb2.FAILED_PRECONDITION, message, _info("TOO_MANY_STATEMENTS"))


def accounts_without_end(pattern: str) -> Status:
    """Report that a change would leave accounts that a wildcard creates without a shared bound."""
    message = (
        f"the configuration makes accounts {pattern} at first use: a level above them needs a limit in mode enforce, "
        "since every new name is a new budget"
    )
    return _status(code_pb2.FAILED_PRECONDITION, message, _info("ACCOUNTS_WITHOUT_END"))


def ledger_differs() -> Status:
    """Report that a balance differs from the journal."""
    message = "the ledger differs from its journal, and nothing was trimmed: verify it first"
    return _status(code_pb2.FAILED_PRECONDITION, message, _info("LEDGER_DIFFERS"))


def ledger_damaged(table: str, key: str) -> Status:
    """Report, to an administrator, which row of the ledger cannot be read."""
    named = f": the row {key!r} of {table} cannot be read" if key else ""
    metadata = {"table": table, "key": key} if key else {}
    return _status(code_pb2.DATA_LOSS, f"the ledger is damaged{named}", _info("LEDGER_DAMAGED", metadata))


def store_unavailable() -> Status:
    """Report that the store is down and nothing has changed."""
    return _status(
        code_pb2.UNAVAILABLE, "the store is unavailable; nothing was changed", _info("STORE_UNAVAILABLE")
    )


def is_store_unavailable(status: Status) -> bool:
    """Return whether a service reports that its store is down."""
    info = ErrorInfo()
    return any(each.Unpack(info) and info.reason == "STORE_UNAVAILABLE" for each in status.details)


def overloaded(*, by_own_root: bool = False) -> Status:
    """Report that too many calls are running, or too many about one root account; nothing was changed."""
    whose = "calls about accounts of one root" if by_own_root else "calls"
    message = f"too many {whose} at once; nothing was changed"
    retry = RetryInfo(retry_delay=Duration(seconds=OVERLOADED_SECONDS))
    return _status(code_pb2.UNAVAILABLE, message, _info("OVERLOADED"), retry)


def outcome_unknown() -> Status:
    """Report that the store gave no answer, so that the request may have had an effect."""
    message = "the outcome is unknown: repeat the request with the same request_id"
    return _status(code_pb2.UNAVAILABLE, message, _info("OUTCOME_UNKNOWN"))


def internal() -> Status:
    """Report an internal error."""
    return _status(code_pb2.INTERNAL, "internal error", _info("INTERNAL"))


def _bad_request(reason: str, field: str, problem: str) -> Status:
    violation = BadRequest.FieldViolation(field=field, description=problem)
    details = (_info(reason), BadRequest(field_violations=[violation]))
    return _status(code_pb2.INVALID_ARGUMENT, f"{field} {problem}", *details)


def _status(code: int, message: str, *details: Message) -> Status:
    status = Status(code=code, message=message)
    for detail in details:
        packed = Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _info(reason: str, metadata: Mapping[str, str] | None = None) -> ErrorInfo:
    return ErrorInfo(reason=reason, domain=DOMAIN, metadata=metadata or {})


def _shortfall_metadata(missing: Shortfall, account: Account) -> dict[str, str]:
    amounts = {"requested": str(missing.requested), "remaining": str(missing.remaining)}
    metadata = {"level": account.level(missing.depth).text, "unit": missing.unit.value, **amounts}
    if missing.refreshes_at is not None:
        metadata["refreshes_at"] = _rfc3339(datetime_of(missing.refreshes_at))
    return metadata


def _violation(missing: Shortfall, account: Account) -> QuotaFailure.Violation:
    level = account.level(missing.depth)
    subject = f"{level.text}:{missing.unit.value}"
    return QuotaFailure.Violation(subject=subject, description=_sentence(missing))


def _sentence(missing: Shortfall) -> str:
    until = "" if missing.refreshes_at is None else f" until {_rfc3339(datetime_of(missing.refreshes_at))}"
    return f"{missing.requested} {missing.unit.value} requested, {missing.remaining} left{until}"


def _still(refusal: Exhausted | Held) -> str:
    """Return why no window ends and no reservation lapses, and the cure; nothing if time goes on."""
    if not refusal.stands_still:
        return ""
    wait = timedelta(seconds=refusal.stands_still // SECOND)
    return (
        f"; the store's clock was ahead, so the ledger's time stands still for {wait}, unless an administrator lets it "
        "continue: gris budget resume-clock"
    )


def _wait(refusal: Exhausted) -> Microseconds | None:
    """Return how long until every shortfall is refreshed; None if one never is."""
    ends = [missing.refreshes_at for missing in refusal.shortfalls]
    known = [end for end in ends if end is not None]
    return max(known) - refusal.decided_at if len(known) == len(ends) else None


def _rfc3339(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
