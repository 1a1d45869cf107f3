"""The commands that write the changes of a batch."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from budget_service.ledger.limits import limit_text
from budget_service.ledger.state import JournalEntry, RootRecord
from budget_service.ledger.values import Account
from budget_service.ledger.windows import Microseconds
from budget_service.stores.codec import encoded
from budget_service.stores.redis.encoding import holds_text
from budget_service.stores.redis.layout import blocks_key, days_key, key_of, payment_key, request_key
from budget_service.stores.transactions import Changes

Command: TypeAlias = tuple[str, ...]

# Lua cannot pass on any number of arguments. Even, since some are pairs.
PARTS_AT_ONCE = 1000


def commands(root: str, changes: Changes, revision: str, known: Collection[Account]) -> Iterator[Command]:
    """Give the commands that write all changes of a root account, the first of which writes its record.

    Args:
        root: The root account.
        changes: What is written.
        revision: The root's next revision.
        known: The levels that had a balance when they were loaded.
    """
    record = changes.roots[root]
    yield _root(root, record, revision)
    yield from _balances(root, changes, known)
    yield from _days(changes)
    yield from _reservations(root, changes)
    journal = key_of(root, "journal")
    for entry in changes.journal:
        yield _entry(journal, entry)
    yield from _payments(root, changes, record.last_time)
    for (_, request_id), each in changes.outcomes.items():
        text = f"{each.keep_until}:{each.fingerprint}:{encoded(each.outcome)}"
        yield _expiring(request_key(root, request_id), text, each.keep_until, record.last_time)
    yield from _limits(root, changes)
    for is_closed, command in ((False, "SREM"), (True, "SADD")):
        levels = [level.text for level, each in changes.closed.items() if each is is_closed]
        yield from _portions(command, key_of(root, "closed"), levels)


def _root(root: str, record: RootRecord, revision: str) -> Command:
    currency = record.currency
    return (
        *("HSET", key_of(root, "root"), "revision", revision, "unit_id", currency.unit_id),
        *("currency_since", str(currency.since), "next_unit_id", currency.next_unit_id),
        *("next_since", str(currency.next_since), "last_time", str(record.last_time)),
        *("limits_version", str(record.limits_version), "ahead", str(record.ahead)),
        *("entries", str(record.entries), "digest", record.digest),
    )


def _balances(root: str, changes: Changes, known: Collection[Account]) -> Iterator[Command]:
    balances = changes.balances
    pairs = [part for level, each in balances.items() for part in (level.text, encoded(each))]
    yield from _portions("HSET", key_of(root, "balances"), pairs)
    new = [level for level in balances if level not in known]
    for level in new:
        if level.block:
            yield "SADD", blocks_key(level.of_block("")), level.block


def _days(changes: Changes) -> Iterator[Command]:
    for each in changes.days.values():
        key = days_key(each.level)
        yield "HSETNX", key, str(each.start), str(each.end)
        yield "HINCRBY", key, f"{each.start}:information", str(each.information)
        yield "HINCRBY", key, f"{each.start}:calls", str(each.calls)


def _reservations(root: str, changes: Changes) -> Iterator[Command]:
    key, ends = key_of(root, "reservations"), key_of(root, "ends")
    ended = [id_ for (_, id_), each in changes.reservations.items() if each is None]
    yield from _portions("HDEL", key, ended)
    yield from _portions("ZREM", ends, ended)
    for (_, id_), each in changes.reservations.items():
        if each is not None:
            yield "HSET", key, id_, encoded(each)
            yield "ZADD", ends, str(each.expires_at), id_


def _payments(root: str, changes: Changes, now: Microseconds) -> Iterator[Command]:
    for (payer, kind, id_), each in changes.payments.items():
        key = payment_key(root, payer, kind, id_)
        if each is None:
            yield "DEL", key
        else:
            yield _expiring(key, f"{each.window_start}:{each.release_id}", each.keep_until, now)


def _expiring(key: str, text: str, keep_until: Microseconds | None, now: Microseconds) -> Command:
    if keep_until is None:
        return "SET", key, text
    return "SET", key, text, "PX", str(max(1, math.ceil((keep_until - now) / 1000)))


def _entry(journal: str, entry: JournalEntry) -> Command:
    more: list[str] = []
    if entry.policy_statement:
        more += ("policy_statement", entry.policy_statement)
    if entry.shared_cost is not None:
        shared = entry.shared_cost
        more += ("shared_information", str(shared.information), "shared_calls", str(shared.calls))
    for act in (("reason", entry.reason), ("actor", entry.actor), ("change", entry.change)):
        if act[1]:
            more += act
    return (
        *("XADD", journal, "*", "kind", entry.kind.value, "account", entry.account.text),
        *("information", str(entry.cost.information), "calls", str(entry.cost.calls)),
        *("unit_id", entry.unit_id, "request_id", entry.request_id, "release_id", entry.release_id),
        *("query_id", entry.query_id, "time", str(entry.time)),
        *("holds", holds_text(entry.account, entry.holds), *more),
    )


def _limits(root: str, changes: Changes) -> Iterator[Command]:
    key = key_of(root, "limits")
    yield from _portions(
        "HDEL", key, [level.text for level, limit in changes.limits.items() if limit is None]
    )
    kept = ((level.text, limit_text(limit)) for level, limit in changes.limits.items() if limit is not None)
    yield from _portions("HSET", key, [part for pair in kept for part in pair])


def _portions(command: str, key: str, parts: Sequence[str]) -> Iterator[Command]:
    for start in range(0, len(parts), PARTS_AT_ONCE):
        yield (command, key, *parts[start : start + PARTS_AT_ONCE])
