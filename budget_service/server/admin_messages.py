"""Translates between the administrator's protocol buffers and the ledger's values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import budget_pb2

from budget_service.ledger.acts.clock import ResumeClock
from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.acts.currency import ChangeCurrency
from budget_service.ledger.acts.refund import Refund
from budget_service.ledger.acts.reopen import ReopenAccount
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.ignorable import has_ignorable
from budget_service.ledger.limits import MAX_CHANGED_AT_ONCE, parse_change
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import (
    Account,
    InvalidFieldError,
    Limit,
    blocks_of,
    has_invisible,
)
from budget_service.ledger.verification import Difference
from budget_service.server.limit_messages import limit_message, parse_limit_message, parse_time
from budget_service.server.messages import parse_account, parse_id, parse_unit_id
from budget_service.server.refunds import without_charge
from budget_service.server.responses import cost_message, timestamp

MAX_PAGE = 1000
DEFAULT_PAGE = 100
MAX_REASON_CHARACTERS = 256

# Of a store: one number, or the two of Redis.
_POSITION = re.compile(r"[0-9]{1,18}")

_Change = TypeVar("_Change", CloseAccount, ReopenAccount)

_KINDS = {
    EntryKind.SETTLED: pb.CHARGE_KIND_SETTLED,
    EntryKind.DIRECT: pb.CHARGE_KIND_DIRECT,
    EntryKind.FORFEITED: pb.CHARGE_KIND_FORFEITED,
    EntryKind.LOST: pb.CHARGE_KIND_LOST,
    EntryKind.CURRENCY: pb.CHARGE_KIND_CURRENCY,
    EntryKind.CLOCK: pb.CHARGE_KIND_CLOCK,
    EntryKind.REFUNDED: pb.CHARGE_KIND_REFUNDED,
    EntryKind.LIMIT: pb.CHARGE_KIND_LIMIT,
    EntryKind.CLOSE: pb.CHARGE_KIND_CLOSE,
    EntryKind.REOPEN: pb.CHARGE_KIND_REOPEN,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """Which part of a journal is read: entries `under` an account, among the next `at_most` after a position."""

    under: Account
    after: str
    at_most: int


@dataclass(frozen=True, slots=True)
class Administrator:
    """Who sends a request, as authenticated, and whether every change needs a reason."""

    actor: str
    needs_reason: bool = False

    def reason(self, text: str) -> str:
        """Return the reason of a change, which may be empty unless one is needed, or raise InvalidFieldError."""
        if self.needs_reason and not text:
            raise InvalidFieldError(
                "reason", "must say why: the configuration has administration.requires_reason"
            )
        return parse_reason(text) if text else ""


def parse_set_limits(message: pb.SetLimitsRequest, sender: Administrator) -> SetLimits:
    """Return the request, or raise InvalidFieldError."""
    if not 1 <= len(message.changes) <= MAX_CHANGED_AT_ONCE:
        raise InvalidFieldError("changes", f"must be 1 to {MAX_CHANGED_AT_ONCE}")
    changes = tuple(_change(each, f"changes[{index}]") for index, each in enumerate(message.changes))
    levels = [level for level, _ in changes]
    if len({level.root for level in levels}) > 1:
        raise InvalidFieldError("changes", "must share their first segment")
    if len(set(levels)) < len(levels):
        raise InvalidFieldError("changes", "must name each level once")
    return SetLimits(
        account=levels[0].level(1),
        request_id=parse_id(message.request_id, "request_id"),
        actor=sender.actor,
        changes=changes,
        reason=sender.reason(message.reason),
    )


def parse_begin_currency(message: pb.BeginCurrencyRequest, sender: Administrator) -> ChangeCurrency:
    """Return the request, or raise InvalidFieldError."""
    unit_id = parse_unit_id(message.unit_id, "unit_id") if message.unit_id else ""
    return ChangeCurrency(
        account=parse_root(message.account),
        request_id=parse_id(message.request_id, "request_id"),
        actor=sender.actor,
        unit_id=unit_id,
        reason=sender.reason(message.reason),
    )


def parse_resume_clock(message: pb.ResumeClockRequest, sender: Administrator) -> ResumeClock:
    """Return the request, or raise InvalidFieldError."""
    if not message.HasField("true_time"):
        raise InvalidFieldError("true_time", "must say what the time is")
    return ResumeClock(
        account=parse_root(message.account),
        request_id=parse_id(message.request_id, "request_id"),
        actor=sender.actor,
        true_time=parse_time(message.true_time, "true_time"),
        reason=sender.reason(message.reason),
    )


def parse_refund(message: pb.RefundChargeRequest, sender: Administrator) -> Refund:
    """Return the request without its charge, or raise InvalidFieldError."""
    reason = parse_reason(message.reason)
    account, release_id = parse_account(message.account), parse_id(message.release_id, "release_id")
    request_id = parse_id(message.request_id, "request_id")
    return without_charge(account, release_id, reason, request_id, actor=sender.actor)


def parse_account_change(
    kind: type[_Change], message: pb.CloseAccountRequest | pb.ReopenAccountRequest, sender: Administrator
) -> _Change:
    """Return the request, or raise InvalidFieldError."""
    return kind(
        account=parse_account(message.account),
        request_id=parse_id(message.request_id, "request_id"),
        actor=sender.actor,
        reason=parse_reason(message.reason),
    )


def parse_root(message: budget_pb2.Account) -> Account:
    """Return a root account, or raise InvalidFieldError."""
    account = parse_account(message)
    if account.depth != 1:
        raise InvalidFieldError("account.path", "must have one segment: a root is taken as a whole")
    return account


def parse_reading(message: pb.ReadJournalRequest) -> Reading:
    """Return the request, or raise InvalidFieldError."""
    if not 0 <= message.at_most <= MAX_PAGE:
        raise InvalidFieldError("at_most", f"must be between 0 and {MAX_PAGE}")
    after = parse_position(message.after, "after") if message.after else ""
    under = Account.parse(message.under.path, "under.path")
    return Reading(under, after, message.at_most or DEFAULT_PAGE)


def parse_position(text: str, field: str) -> str:
    """Return the position of an entry, or raise InvalidFieldError."""
    if not _POSITION.fullmatch(text):
        raise InvalidFieldError(field, "must be the position of an entry, as it was read")
    return text


def entry_message(entry: JournalEntry, position: str) -> pb.JournalEntry:
    """Return an entry of the journal as a message."""
    before, after = parse_change(entry.change) if entry.kind is EntryKind.LIMIT else (None, None)
    blocks = blocks_of(entry.holds)
    return pb.JournalEntry(
        position=position,
        account=budget_pb2.Account(path=entry.account.path),
        cost=cost_message(entry.cost, entry.unit_id, blocks),
        kind=_KINDS[entry.kind],
        time=timestamp(entry.time),
        request_id=entry.request_id,
        release_id=entry.release_id,
        query_id=entry.query_id,
        policy_statement=entry.policy_statement,
        shared_cost=None
        if entry.shared_cost is None
        else cost_message(entry.shared_cost, entry.unit_id, blocks),
        reason=entry.reason,
        limit_before=None if before is None else limit_message(before),
        limit_after=None if after is None else limit_message(after),
        actor=entry.actor,
    )


def difference_message(found: Difference) -> pb.Difference:
    """Return a difference as a message."""
    *above, last = found.level.path
    return pb.Difference(
        path=(*above, f"{last}*{found.level.block}" if found.level.block else last),
        unit="" if found.unit is None else found.unit.value,
        sum=found.sum.value,
        window_start=None if found.start is None else timestamp(found.start),
        kept=found.kept,
        rebuilt=found.rebuilt,
    )


def parse_reason(text: str) -> str:
    """Return a reason, or raise InvalidFieldError."""
    if not 1 <= len(text) <= MAX_REASON_CHARACTERS:
        raise InvalidFieldError("reason", f"must have 1 to {MAX_REASON_CHARACTERS} characters")
    if has_invisible(text) or has_ignorable(text):
        raise InvalidFieldError("reason", "must have no control character and no invisible one")
    return text


def _change(message: pb.LimitChange, field: str) -> tuple[Account, Limit | None]:
    level = Account.parse(message.path, f"{field}.path")
    return level, parse_limit_message(message.limit, f"{field}.limit") if message.HasField("limit") else None
