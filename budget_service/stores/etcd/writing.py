"""What a batch changes, as operations of one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from budget_service.ledger.account_states import UNTOUCHED, state_text
from budget_service.ledger.balances import PastDay
from budget_service.ledger.limits import limit_text
from budget_service.ledger.state import Reservation
from budget_service.ledger.values import Account
from budget_service.ledger.windows import Microseconds
from budget_service.stores.etcd import encoding as text
from budget_service.stores.etcd.layout import Keys, end_of
from budget_service.stores.etcd.loading import Snapshot
from budget_service.stores.etcd.members import Members, delete, put, range_between, range_of
from budget_service.stores.transactions import Changes

# The past days of levels by their starts, as they are before the change.
Days = dict[tuple[Account, Microseconds], PastDay]


async def operations(members: Members, keys: Keys, changes: Changes, snapshot: Snapshot) -> list[Any]:
    """Return all that changes of one root write, but for the record of the root itself."""
    days = await _days(members, keys, changes, snapshot)
    made = [put(keys.balance(level), text.balance_text(each)) for level, each in changes.balances.items()]
    for (level, start), day in changes.days.items():
        made.append(put(keys.day(level, start), text.day_text(day.applied(days.get((level, start))))))
    made += [put(keys.outcome(id_), text.outcome_text(each)) for (_, id_), each in changes.outcomes.items()]
    for key, payment in changes.payments.items():
        at = keys.payment(key)
        made.append(delete(at) if payment is None else put(at, text.payment_text(payment)))
    made += _reservations(keys, changes, snapshot)
    if changes.journal:
        last = snapshot.root.entries + len(changes.journal)
        made.append(put(keys.entries(last), text.entries_text(changes.journal)))
    made += _administered(keys, changes)
    for source, target in changes.moved:
        made += await _moved(members, keys, source, target, snapshot)
    return made


def opened(changes: Changes) -> list[str]:
    """Return the ids of new reservations, which nobody may have used."""
    return [id_ for (_, id_), each in changes.reservations.items() if each is not None]


async def _days(members: Members, keys: Keys, changes: Changes, snapshot: Snapshot) -> Days:
    """Load the past days that something is added to. They seldom change."""
    wanted = list(changes.days)
    if not wanted:
        return {}
    ranges = [range_of(keys.day(level, start)) for level, start in wanted]
    found = await members.read(ranges, revision=snapshot.revision)
    return {
        name: text.read_day(each.key, each.value)
        for name, pairs in zip(wanted, found.ranges, strict=True)
        for each in pairs
    }


def _reservations(keys: Keys, changes: Changes, snapshot: Snapshot) -> list[Any]:
    made = []
    for (_, id_), each in changes.reservations.items():
        if each is not None:
            made += _written(keys, each)
        elif id_ in snapshot.reservations:
            made += [
                delete(keys.reservation(id_)),
                delete(keys.due(snapshot.reservations[id_].expires_at, id_)),
            ]
        # Else the same batch has opened it.
    return made


def _written(keys: Keys, each: Reservation) -> list[Any]:
    row = text.reservation_text(each)
    at = (keys.reservation(each.reservation_id), keys.due(each.expires_at, each.reservation_id))
    return [put(key, row) for key in at]


def _administered(keys: Keys, changes: Changes) -> list[Any]:
    made = []
    for level, limit in changes.limits.items():
        at = keys.limit(level)
        made.append(delete(at) if limit is None else put(at, limit_text(limit).encode()))
    for level, state in changes.states.items():
        at = keys.state(level)
        made.append(delete(at) if state == UNTOUCHED else put(at, state_text(state).encode()))
    return made


async def _moved(
    members: Members, keys: Keys, source: Account, target: Account, snapshot: Snapshot
) -> Sequence[Any]:
    """Write what is kept for one account for another one; the levels above, which what is held names too, stay."""
    days, every = keys.days(source), keys.reservations
    ranges = [
        range_of(keys.balance(source)),
        range_between(days, end_of(days)),
        range_between(every, end_of(every)),
    ]
    balances, past, reservations = (await members.read(ranges, revision=snapshot.revision)).ranges
    made = [put(keys.balance(target), each.value) for each in balances]
    made += [put(keys.days(target) + each.key[len(days) :], each.value) for each in past]
    made += [delete(keys.balance(source)), delete(days, end_of(days))]
    for each in reservations:
        held = text.read_reservation(each.key, each.value)
        if held.account == source:
            made += _written(keys, replace(held, account=target))
    return made
