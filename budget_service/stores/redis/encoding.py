"""The texts that the ledger keeps in Redis, and what scripts and commands reply: written and read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.currency import Currency
from budget_service.ledger.journal import require_well_formed
from budget_service.ledger.limits import StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.state import (
    EntryKind,
    JournalEntry,
    Reservation,
    RootRecord,
    Snapshot,
)
from budget_service.ledger.values import Account, Cost, Hold
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import DaySpan, Microseconds, Window
from budget_service.stores.codec import (
    REUSED,
    decode_days,
    decode_end,
    decode_outcome,
    decode_root,
    decode_rule,
    decode_states,
    encode_root,
    encode_states,
)
from budget_service.stores.damaged_rows import read_limit, read_state, reads
from budget_service.stores.interface import BalancePage

FIELDS_AT_ONCE = 1000


def checkpoint_fields(checkpoint: Checkpoint) -> Iterator[list[str]]:
    """Give the fields of a checkpoint's hash and their values, in portions."""
    yield ["position", checkpoint.position, "entries", str(checkpoint.entries)]
    yield ["digest", checkpoint.digest, "currency", encode_root(checkpoint)]
    yield ["states", encode_states(checkpoint.states)]
    portion: list[str] = []
    for level, spans in checkpoint.spent.items():
        sums = (f"{start},{cost.information},{cost.calls};" for start, cost in spans.items())
        portion += [f"level:{level.text}", "".join(sums)]
        if len(portion) >= FIELDS_AT_ONCE:
            yield portion
            portion = []
    if portion:
        yield portion


@reads("checkpoints")
def parse_checkpoint(_root: str, fields: list[str]) -> Checkpoint:
    """Return the checkpoint of a root's hash."""
    kept = dict(_pairs(fields))
    if not kept:
        return Checkpoint()
    spent = {
        parse_account(name.removeprefix("level:")): _sums(text)
        for name, text in kept.items()
        if name.startswith("level:")
    }
    currency, time, ahead = decode_root(kept["currency"])
    states = decode_states(kept["states"])
    entries = int(kept["entries"])
    return Checkpoint(kept["position"], entries, kept["digest"], spent, currency, states, time, ahead)


def _sums(text: str) -> dict[Microseconds, Cost]:
    parts = (each.split(",") for each in text.split(";")[:-1])
    return {int(start): Cost(int(information), int(calls)) for start, information, calls in parts}


@reads("outcomes")
def parse_answer(_request_id: str, kind: str, text: str) -> Answer:
    """Return the answer of a changing script to a request."""
    return REUSED if kind == "reused" else Answer(decode_outcome(text), replayed=kind == "replayed")


def parse_reading(
    reply: list[Any], accounts: Sequence[Account], most_due: int, *, with_history: bool
) -> tuple[Snapshot, Microseconds]:
    """Return the snapshot of some accounts that `read.lua` found, and its time.

    Args:
        reply: What it returned.
        accounts: The levels it was given.
        most_due: How many lapsed reservations it returns at most.
        with_history: Whether it was asked for the history.
    """
    now, root, rest = reply[0], reply[1:8], reply[8:]
    texts, lapsed = rest[: len(accounts)], rest[len(accounts) :]
    past: dict[Account, list[PastDay]] | None = None
    reservations: tuple[Reservation, ...] = ()
    if with_history:
        *days, held = lapsed[: len(accounts) + 1]
        lapsed = lapsed[len(accounts) + 1 :]
        past = {level: _past_days(level.text, each) for level, each in zip(accounts, days, strict=True)}
        reservations = tuple(parse_reservation(id_, text) for id_, text in _pairs(held))
    due = tuple(parse_reservation(id_, text) for id_, text in zip(lapsed[::2], lapsed[1::2], strict=True))
    snapshot = Snapshot(
        root=_root(*root),
        balances={
            level: _balance(level.text, text) for level, text in zip(accounts, texts, strict=True) if text
        },
        due=due,
        due_further=len(due) == most_due,
        past=past,
        reservations=reservations,
    )
    return snapshot, int(now)


def _root(unit_id: str, *numbers: str) -> RootRecord:
    since, next_unit_id, next_since, ahead, last_time, limits_version = numbers
    currency = Currency(unit_id, int(since), next_unit_id, int(next_since))
    return RootRecord(currency, int(last_time), int(limits_version), int(ahead))


@reads("reservations")
def parse_reservation(reservation_id: str, text: str) -> Reservation:
    """Return a reservation from its JSON."""
    kept = json.loads(text)
    return Reservation(
        reservation_id=reservation_id,
        account=parse_account(kept["account"]),
        request_id=kept["request_id"],
        query_id=kept["query_id"],
        held=Cost(int(kept["information"]), int(kept["calls"])),
        unit_id=kept["unit_id"],
        expires_at=int(kept["expires_at"]),
        paid_release_id=kept["paid_release_id"],
        forfeits=kept["forfeits"] == "1",
        holds=_holds(kept["holds"]),
    )


def parse_balances(reply: list[Any]) -> BalancePage:
    """Return the page that `balances.lua` found."""
    position, cursor, balances, reservations, past, clock, *root = reply
    found = tuple((parse_account(level), _balance(level, text)) for level, text in _pairs(balances))
    return BalancePage(
        position=position,
        root=_root(*root),
        clock=int(clock),
        balances=found,
        past={level: _past_days(level.text, days) for (level, _), days in zip(found, past, strict=True)},
        reservations=tuple(parse_reservation(id_, text) for id_, text in _pairs(reservations)),
        after="" if cursor == "0" else cursor,
    )


def parse_stored_limits(version: int, levels: Sequence[Account], texts: Sequence[str]) -> StoredLimits:
    """Return the limits and states of levels that `stored_limits.lua` found."""
    limits, states = texts[: len(levels)], texts[len(levels) :]
    return StoredLimits(
        version,
        {level: read_limit(level.text, each) for level, each in zip(levels, limits, strict=True) if each},
        {level: read_state(level.text, each) for level, each in zip(levels, states, strict=True) if each},
    )


def parse_all_limits(version: str, limits: list[str], states: list[str]) -> StoredLimits:
    """Return the limits and states of a root that `all_limits.lua` found."""
    return StoredLimits(
        int(version),
        {parse_account(level): read_limit(level, each) for level, each in _pairs(limits)},
        {parse_account(level): read_state(level, each) for level, each in _pairs(states)},
    )


@reads("journal")
def parse_entry(_position: str, fields: list[str]) -> JournalEntry:
    """Return the entry at a position from the fields of its stream."""
    kept = dict(_pairs(fields))
    entry = JournalEntry(
        kind=EntryKind(kept["kind"]),
        account=parse_account(kept["account"]),
        cost=Cost(int(kept["information"]), int(kept["calls"])),
        unit_id=kept["unit_id"],
        request_id=kept["request_id"],
        release_id=kept["release_id"],
        query_id=kept["query_id"],
        time=int(kept["time"]),
        holds=_holds(json.loads(kept["holds"])),
        # Only where there are any.
        policy_statement=kept.get("policy_statement", ""),
        shared_cost=_shared_cost(kept),
        reason=kept.get("reason", ""),
    )
    require_well_formed(entry)
    return entry


def _shared_cost(kept: dict[str, str]) -> Cost | None:
    if "shared_information" not in kept:
        return None
    return Cost(int(kept["shared_information"]), int(kept["shared_calls"]))


def _pairs(flat: list[str]) -> Iterator[tuple[str, str]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _holds(kept: Any) -> tuple[Hold, ...]:
    # Lua writes an empty list as an empty object.
    return tuple(Hold(parse_account(level).depth, int(start)) for level, start in kept or ())


@reads("balances")
def _balance(_level: str, text: str) -> Balance:
    start, end, *rest = text.split(":")
    amounts, (since, leaves_at, earlier, rule, day_start, day_end), today = rest[:4], rest[4:10], rest[10:]
    return Balance(
        window=Window(int(start), decode_end(end)),
        day=DaySpan(int(day_start), int(day_end)),
        rule=decode_rule(rule),
        spent=Cost(int(amounts[0]), int(amounts[1])),
        reserved=Cost(int(amounts[2]), int(amounts[3])),
        reserved_since=int(since),
        leaves_at=decode_end(leaves_at),
        earlier=decode_days(earlier),
        today=Cost(int(today[0]), int(today[1])),
    )


@reads("days")
def _past_days(_level: str, fields: list[str]) -> list[PastDay]:
    found = ((start, text.split(",")) for start, text in _pairs(fields))
    return [
        PastDay(int(start), int(end), Cost(int(information), int(calls)))
        for start, (end, information, calls) in found
    ]


def parse_account(text: str) -> Account:
    """Return an account from its path joined by slashes."""
    return Account(tuple(text.split("/")))
