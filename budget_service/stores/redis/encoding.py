"""The texts that the ledger keeps in Redis: written and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import json

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.currency import Currency
from budget_service.ledger.journal import require_well_formed
from budget_service.ledger.limits import StoredLimits
from budget_service.ledger.state import (
    EntryKind,
    JournalEntry,
    PaidQuery,
    Reservation,
    RootRecord,
    StoredOutcome,
)
from budget_service.ledger.values import Account, Cost, Hold
from budget_service.ledger.windows import Microseconds
from budget_service.stores.codec import decode_outcome
from budget_service.stores.damaged_rows import read_limit, reads
from budget_service.stores.interface import BalancePage

_RESERVATION, _BALANCE = json.Decoder(Reservation), json.Decoder(Balance)

# Levels of an account, or blocks of them, and where the windows begin that something counts in.
HoldRows: TypeAlias = list[tuple[str, Microseconds]]


@reads("roots")
def parse_root(_root: str, fields: Sequence[str]) -> RootRecord:
    """Return the record of a root from the fields of its hash, `unit_id` to `digest`."""
    unit_id, since, next_unit_id, next_since, ahead, last_time, version, entries, digest = fields
    currency = Currency(unit_id, int(since), next_unit_id, int(next_since))
    return RootRecord(currency, int(last_time), int(version), int(ahead), int(entries), digest)


@reads("outcomes")
def parse_outcome(_request_id: str, text: str) -> StoredOutcome:
    """Return what is remembered of a request."""
    keep_until, fingerprint, outcome = text.split(":", 2)
    return StoredOutcome(fingerprint, decode_outcome(outcome), int(keep_until))


@reads("payments")
def parse_payment(_id: str, text: str) -> PaidQuery:
    """Return what was paid for."""
    start, release_id = text.split(":", 1)
    return PaidQuery(release_id, int(start))


@reads("reservations")
def parse_reservation(_reservation_id: str, text: str) -> Reservation:
    """Return a reservation from its JSON; scripts read its `account`, `holds` and `query_id`."""
    return _RESERVATION.decode(text)


def parse_balances(root: str, reply: list[Any]) -> BalancePage:
    """Return the page that `balances.lua` found."""
    position, cursor, balances, reservations, past, clock, record = reply
    found = tuple((Account.of_text(level), parse_balance(level, text)) for level, text in pairs(balances))
    return BalancePage(
        position=position,
        root=RootRecord() if record[0] is None else parse_root(root, record),
        clock=int(clock),
        balances=found,
        past={level: parse_past_days(level.text, days) for (level, _), days in zip(found, past, strict=True)},
        reservations=tuple(parse_reservation(id_, text) for id_, text in pairs(reservations)),
        after="" if cursor == "0" else cursor,
    )


def parse_all_limits(version: str, limits: list[str], closed: list[str]) -> StoredLimits:
    """Return the limits and closed accounts of a root that `all_limits.lua` found."""
    return StoredLimits(
        int(version),
        {Account.of_text(level): read_limit(level, each) for level, each in pairs(limits)},
        frozenset(map(Account.of_text, closed)),
    )


@reads("journal")
def parse_entry(_position: str, fields: list[str]) -> JournalEntry:
    """Return the entry at a position from the fields of its stream."""
    kept = dict(pairs(fields))
    entry = JournalEntry(
        kind=EntryKind(kept["kind"]),
        account=Account.of_text(kept["account"]),
        cost=Cost(int(kept["information"]), int(kept["calls"])),
        unit_id=kept["unit_id"],
        request_id=kept["request_id"],
        release_id=kept["release_id"],
        query_id=kept["query_id"],
        time=int(kept["time"]),
        holds=_holds(json.decode(kept["holds"], type=HoldRows)),
        # Only where there are any.
        policy_statement=kept.get("policy_statement", ""),
        shared_cost=_shared_cost(kept),
        reason=kept.get("reason", ""),
        actor=kept.get("actor", ""),
        change=kept.get("change", ""),
    )
    require_well_formed(entry)
    return entry


def _shared_cost(kept: dict[str, str]) -> Cost | None:
    if "shared_information" not in kept:
        return None
    return Cost(int(kept["shared_information"]), int(kept["shared_calls"]))


def pairs(flat: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Give the pairs of a list that has one behind the other."""
    return zip(flat[::2], flat[1::2], strict=True)


def holds_text(account: Account, holds: Iterable[Hold]) -> str:
    """Return the JSON of what a charge of an account counts in."""
    return json.encode([(each.level_of(account).text, each.window_start) for each in holds]).decode()


def _holds(kept: HoldRows) -> tuple[Hold, ...]:
    levels = [(Account.of_text(text), start) for text, start in kept]
    return tuple([Hold(level.depth, start, level.block) for level, start in levels])


@reads("balances")
def parse_balance(_level: str, text: str) -> Balance:
    """Return the balance of a level from its JSON."""
    return _BALANCE.decode(text)


@reads("days")
def parse_past_days(_level: str, fields: list[str]) -> list[PastDay]:
    """Return the past days of a level from the fields of its hash."""
    kept = dict(pairs(fields))
    return [
        PastDay(int(start), int(end), Cost(int(kept[f"{start}:information"]), int(kept[f"{start}:calls"])))
        for start, end in kept.items()
        if ":" not in start
    ]
