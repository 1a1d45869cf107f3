"""Rules that are wrong on purpose: the exploration has to find each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from budget_service.ledger import lease_reports, rules
from budget_service.ledger.balances import Balance
from budget_service.ledger.draft import Draft
from budget_service.ledger.outcomes import Charged, Outcome
from budget_service.ledger.requests import Refund
from budget_service.ledger.state import Reservation, Snapshot
from budget_service.ledger.values import MAX_AMOUNT, NOTHING, Cost, LevelLimit, Mode
from budget_service.ledger.windows import DAY
from tests.unit.budget_service import memory_store


def _still_paid(real: Any, snapshot: Snapshot, draft: Draft, request: Refund) -> Outcome:
    outcome: Outcome = real(snapshot, draft, request)
    draft.unpaid.clear()
    return outcome


def _refunded_twice(real: Any, snapshot: Snapshot, draft: Draft, request: Refund) -> Outcome:
    outcome: Outcome = real(replace(snapshot, release_paid_in=draft.leaf.day.start), draft, request)
    draft.unpaid[:] = draft.unpaid if snapshot.release_paid_in is not None else []
    return outcome


def _without_calls(each: LevelLimit) -> LevelLimit:
    return replace(each, limit=replace(each.limit, maximum=replace(each.limit.maximum, calls=MAX_AMOUNT)))


def _is_of_today(draft: Draft, reservation: Reservation) -> bool:
    return any(each.window_start == draft.now - draft.now % DAY for each in reservation.holds)


# Where it is, the world that shows it and how, and what is called instead of the real function, which it gets first.
MUTANTS: dict[str, tuple[Any, str, str, str, Callable[..., Any]]] = {
    "a limit is compared with one less": (
        *(Draft, "_has_room", "blocks", "above"),
        lambda real, self, each, cost: real(self, each, Cost(max(0, cost.information - 1), cost.calls)),
    ),
    "calls are not compared": (
        *(Draft, "_has_room", "blocks", "for block '[XY]', above"),
        lambda real, self, each, cost: real(self, _without_calls(each), cost),
    ),
    "only the account's own limit is compared": (
        *(Draft, "has_room", "shared", "above"),
        lambda _, self, cost: self._has_room(self.levels[-1], cost),
    ),
    "what blocks have paid is not added": (Draft, "_own", "blocks", "above", lambda _, _self, _level: []),
    "a lapse frees what is forfeited": (
        *(Draft, "expire", "blocks", "callers were charged"),
        lambda _, self, reservation: self.end(reservation),
    ),
    "a lapse on the same day frees what is forfeited": (
        *(Draft, "expire", "leavers", "callers were charged"),
        lambda real, self, reservation: real(
            self, replace(reservation, forfeits=reservation.forfeits and not _is_of_today(self, reservation))
        ),
    ),
    "a cancel forgets the hold": (
        *(Draft, "end", "shared", "Sum.RESERVED"),
        lambda _, self, reservation: self.ended.append(reservation.reservation_id),
    ),
    "what was settled lapses as well": (
        *(Draft, "end", "blocks", "other reservations"),
        lambda _, self, reservation: self._add_reserved(reservation, reservation.held, returns=True),
    ),
    "what has lapsed is settled": (
        *(rules, "_open_reservation", "blocks", "information must be"),
        lambda _, snapshot, _draft: snapshot.reservation,
    ),
    "a settlement counts on its own day": (
        *(rules, "entry_of", "blocks", "callers were charged"),
        lambda real, kind, draft, request, query_id, holds: real(
            kind, draft, request, query_id, holds=draft.holds(request.blocks)
        ),
    ),
    "a release stays paid after its refund": (rules, "_refund", "repeats", "free", _still_paid),
    "a release is refunded twice": (rules, "_refund", "shared", "refunded", _refunded_twice),
    "a retry charges again": (
        *(memory_store, "decide", "repeats", "retry"),
        lambda real, snapshot, *asked: real(replace(snapshot, remembered=None), *asked),
    ),
    "a release that is paid for is charged again": (
        *(rules, "_release_is_paid", "repeats", "charged twice"),
        lambda _, _snapshot, _draft: False,
    ),
    "a release is charged again once limits were set": (
        *(rules, "_release_is_paid", "repeats", "charged twice"),
        lambda real, snapshot, draft: not snapshot.root.limits_version and real(snapshot, draft),
    ),
    "what was paid for on the day before is charged again": (
        *(Draft, "is_paid_in", "repeats", "charged twice"),
        lambda real, self, start: real(self, start) and start == self.leaf.day.start,
    ),
    "what was paid for in an earlier window is free": (
        *(Draft, "is_paid_in", "leavers", "free, and was not paid for"),
        lambda _, _self, _start: True,
    ),
    "what is settled late is paid for in the present window": (
        *(Draft, "payment_span", "leavers", "free, and was not paid for"),
        lambda _, self, _account, _holds: self.leaf.day.start,
    ),
    "limits that were changed are applied": (
        *(memory_store, "decide", "shared", "limits that were changed"),
        lambda real, snapshot, request, limits, now: real(
            snapshot, request, replace(limits, version=snapshot.root.limits_version), now
        ),
    ),
    "a closed account spends": (
        *(rules, "is_closed_to", "shared", "closed"),
        lambda _, _request, _limits: False,
    ),
    "a write-off spends nothing": (
        *(rules, "_write_off", "returns", "are written off"),
        lambda _, draft, _request, _limits: Charged(NOTHING, False, draft.statuses()),
    ),
    "a limit that is tracked frees the level above": (
        *(Draft, "has_room", "returns", "above"),
        lambda real, self, cost: self.levels[-1].limit.mode is Mode.TRACK or real(self, cost),
    ),
    "a lease that lapses is not forfeited": (
        *(Draft, "expire", "leases", "and .* counts"),
        lambda _, self, reservation: self.end(reservation),
    ),
    "a report frees the rest of its lease": (
        *(lease_reports, "_from_lease", "leases", "Sum.RESERVED"),
        lambda real, draft, request, lease, is_paid: real(
            draft, request, replace(lease, held=request.cost), is_paid=is_paid
        ),
    ),
    "what is lent may be spent at home": (
        *(Draft, "has_room", "leases", "above"),
        lambda _, _self, _cost: True,
    ),
    "a first limit forgets what was spent": (
        *(Balance, "rebuilt", "repeats", "above"),
        lambda real, self, rule, span, _past, since: real(
            replace(self, today=NOTHING), rule, span, (), since
        ),
    ),
}


def put_in(mutant: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Replace a real function by a wrong one; return the world that shows it, and how."""
    place, name, world, problem, wrong = MUTANTS[mutant]
    real = getattr(place, name)
    monkeypatch.setattr(place, name, lambda *asked, **named: wrong(real, *asked, **named))
    return world, problem
