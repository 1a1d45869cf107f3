"""Reads of a whole ledger in etcd, page by page: roots, journal and balances; and its checkpoints."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from aetcd.rpc import rpc_pb2
from msgspec import json

from budget_service.ledger.balances import PastDay
from budget_service.ledger.limits import StoredLimits
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds
from budget_service.stores.codec import decode_currency, decode_states, encode_currency, encode_states
from budget_service.stores.damaged_rows import read_limit, read_state, reads
from budget_service.stores.etcd import encoding as text
from budget_service.stores.etcd.layout import Keys, Layout, end_of, numbered
from budget_service.stores.etcd.members import (
    Members,
    delete,
    put,
    range_between,
    range_of,
    unchanged,
)
from budget_service.stores.etcd.pending import RootAccess
from budget_service.stores.interface import BalancePage, OutcomeUnknownError, StoreUnavailableError

ROOTS_PAGE = 10_000
# Sums of a level and a day, some 60 bytes each: a key of a checkpoint stays far below what a request may have.
SUMS_TOGETHER = 4000
# So much later a checkpoint that was not finished will not be.
WRITING_MICROSECONDS = 3600 * 10**6
DESCENDING = rpc_pb2.RangeRequest.DESCEND
LAST = 2**63 - 1


async def load_roots(members: Members, layout: Layout) -> list[str]:
    """Return every root that was ever used. Raises StoreUnavailableError."""
    prefix, first = layout.roots, layout.roots
    names: list[str] = []
    while True:
        asked = range_between(first, end_of(prefix), keys_only=True, limit=ROOTS_PAGE)
        (rows,) = (await members.read([asked])).ranges
        names += [each.key[len(prefix) :].decode() for each in rows]
        if len(rows) < ROOTS_PAGE:
            return names
        first = rows[-1].key + b"\0"


async def load_limits(at: RootAccess, levels: Sequence[Account] | None) -> StoredLimits:
    """Return the stored limits and states of some levels, or of all of a root. Raises StoreUnavailableError."""
    keys = at.keys
    prefixes = (keys.limits, keys.states)
    asked = (
        [range_between(each, end_of(each)) for each in prefixes]
        if levels is None
        else [range_of(each + level.text.encode()) for each in prefixes for level in levels]
    )
    settled = await at.read(asked)
    rows = [each for found in settled.found.ranges for each in found]
    return StoredLimits(
        settled.root.record.limits_version,
        {level: read_limit(level.text, each) for level, each in _texts(rows, keys.limits)},
        {level: read_state(level.text, each) for level, each in _texts(rows, keys.states)},
    )


def _texts(rows: Iterable[Any], prefix: bytes) -> Iterator[tuple[Account, str]]:
    """Give the levels of the keys that begin with a prefix, and the texts there."""
    for each in rows:
        if each.key.startswith(prefix):
            yield text.read_account(each.key[len(prefix) :].decode()), each.value.decode()


async def load_journal(at: RootAccess, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
    """Return entries of a root in order; a position is the number of the entry. Raises StoreUnavailableError."""
    first, last = int(after or 0) + 1, int(until) if until else LAST
    # The key of a change has the number of its last entry, and each has at least one.
    keys = at.keys
    asked = range_between(keys.entries(first), end_of(keys.journal), limit=most)
    (rows,) = (await at.read([asked])).found.ranges
    found = (pair for each in rows for pair in text.read_entries(each.key, each.value))
    wanted = ((str(number), entry) for number, entry in found if first <= number <= last)
    return list(islice(wanted, most))


async def load_latest(at: RootAccess, before: str, most: int) -> list[tuple[str, JournalEntry]]:
    """Return entries of a root before a position, newest first. Raises StoreUnavailableError."""
    keys, end = at.keys, int(before) if before else LAST
    asked = [
        # The change that the entry before the position belongs to may end behind it.
        range_between(keys.entries(end - 1), end_of(keys.journal), limit=1),
        range_between(keys.journal, keys.entries(end - 1), limit=most, sort_order=DESCENDING),
    ]
    across, older = (await at.read(asked)).found.ranges
    found = (pair for each in (*across, *older) for pair in reversed(text.read_entries(each.key, each.value)))
    return list(islice(((str(number), entry) for number, entry in found if number < end), most))


async def load_balances(at: RootAccess, after: str, most: int) -> BalancePage:
    """Return balances of a root in the order of their levels. Raises StoreUnavailableError."""
    keys = at.keys
    first = keys.balances + after.encode() + b"\0" if after else keys.balances
    asked = [
        range_between(first, end_of(keys.balances), limit=most),
        range_between(keys.reservations, end_of(keys.reservations)),
    ]
    settled = await at.read(asked)
    rows, reservations = settled.found.ranges
    levels = [text.read_account(each.key[len(keys.balances) :].decode()) for each in rows]
    return BalancePage(
        position=str(settled.root.entries or ""),
        currency=settled.root.record.currency,
        balances=tuple(
            (level, text.read_balance(each.key, each.value)) for level, each in zip(levels, rows, strict=True)
        ),
        past=await _load_past(at, levels, settled.found.revision),
        reservations=tuple(text.read_reservation(each.key, each.value) for each in reservations),
        after=levels[-1].text if len(levels) == most else "",
    )


async def _load_past(at: RootAccess, levels: list[Account], revision: int) -> dict[Account, list[PastDay]]:
    keys = at.keys
    past: dict[Account, list[PastDay]] = {level: [] for level in levels}
    if levels:
        # The levels of a page follow each other, and so do their days.
        days = range_between(keys.days(levels[0]), end_of(keys.days(levels[-1])))
        (rows,) = (await at.members.read([days], revision=revision)).ranges
        names = {keys.days(level): level for level in levels}
        for each in rows:
            level = names.get(each.key[: each.key.rindex(b"\0") + 1])
            if level is not None:
                past[level].append(text.read_day(each.key, each.value))
    return past


async def load_checkpoint(at: RootAccess) -> Checkpoint:
    """Return the checkpoint of a root's journal. Raises StoreUnavailableError."""
    members, keys = at.members, at.keys
    found = await members.read([range_of(keys.checkpoint)])
    (rows,) = found.ranges
    if not rows:
        return Checkpoint()
    head = _read_head(rows[0].key, rows[0].value)
    sums = keys.sums + head[0].encode() + b"/"
    (portions,) = (await members.read([range_between(sums, end_of(sums))], revision=found.revision)).ranges
    spent: dict[Account, dict[Microseconds, Cost]] = {}
    for each in portions:
        _read_sums(each.key, each.value, spent)
    _, position, entries, digest, currency, states = head
    return Checkpoint(position, entries, digest, spent, decode_currency(currency), decode_states(states))


async def write_checkpoint(at: RootAccess, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint, unless it has more entries: its sums first, then the key that names them.

    Raises StoreUnavailableError. A checkpoint that was written without an answer does no harm.
    """
    try:
        await _write_checkpoint(at.members, at.keys, checkpoint)
    except OutcomeUnknownError as error:
        raise StoreUnavailableError(str(error)) from None


async def _write_checkpoint(members: Members, keys: Keys, checkpoint: Checkpoint) -> None:
    (rows,) = (await members.read([range_of(keys.checkpoint)])).ranges
    revision = rows[0].mod_revision if rows else 0
    if rows and json.decode(rows[0].value)[2] > checkpoint.entries:
        return
    name = numbered(now := time.time_ns() // 1000) + f".{secrets.token_hex(8)}".encode()
    for number, portion in enumerate(_portions(checkpoint)):
        at = keys.sums + name + b"/" + numbered(number)
        await members.write(rpc_pb2.TxnRequest(success=[put(at, json.encode(portion))]))
    texts = [encode_currency(checkpoint.currency), encode_states(checkpoint.states)]
    head = [name.decode(), checkpoint.position, checkpoint.entries, checkpoint.digest, *texts]
    done = await members.write(
        rpc_pb2.TxnRequest(
            compare=[unchanged(keys.checkpoint, revision)],
            success=[put(keys.checkpoint, json.encode(head))],
        )
    )
    unused = [keys.sums + name + b"/"]
    if done.succeeded:
        # What it replaces, and what was never finished.
        unused = [keys.sums + json.decode(rows[0].value)[0].encode() + b"/"] if rows else []
        old = keys.sums + numbered(now - WRITING_MICROSECONDS)
        await members.write(rpc_pb2.TxnRequest(success=[delete(keys.sums, old)]))
    for each in unused:
        await members.write(rpc_pb2.TxnRequest(success=[delete(each, end_of(each))]))


def _portions(checkpoint: Checkpoint) -> Iterator[list[Any]]:
    sums = (
        [level.text, start, cost.information, cost.calls]
        for level, spans in checkpoint.spent.items()
        for start, cost in spans.items()
    )
    while portion := list(islice(sums, SUMS_TOGETHER)):
        yield portion


@reads("checkpoints", text.key_text)
def _read_head(_key: bytes, value: bytes) -> list[Any]:
    name, position, entries, digest, currency, states = json.decode(value)
    decode_currency(currency)
    decode_states(states)
    return [name, position, entries, digest, currency, states]


@reads("checkpoint_sums", text.key_text)
def _read_sums(_key: bytes, value: bytes, spent: dict[Account, dict[Microseconds, Cost]]) -> None:
    for level, start, information, calls in json.decode(value):
        spent.setdefault(text.read_account(level), {})[start] = Cost(information, calls)


async def drop_checkpointed(at: RootAccess, most: int) -> int:
    """Remove the oldest entries that the checkpoint covers and return their number. Raises StoreUnavailableError."""
    members, keys = at.members, at.keys
    (heads,) = (await members.read([range_of(keys.checkpoint)])).ranges
    if not heads:
        return 0
    position = int(_read_head(heads[0].key, heads[0].value)[1] or 0)
    asked = range_between(keys.journal, keys.entries(position + 1), limit=most)
    (rows,) = (await members.read([asked])).ranges
    if not rows:
        return 0
    count = sum(len(text.read_entries(each.key, each.value)) for each in rows)
    try:
        # Only this: etcd takes it even where it has no room to write.
        await members.write(rpc_pb2.TxnRequest(success=[delete(keys.journal, rows[-1].key + b"\0")]))
    except OutcomeUnknownError as error:
        raise StoreUnavailableError(str(error)) from None
    return count
