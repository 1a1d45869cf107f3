"""Rules that are wrong on purpose: the exploration has to find each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.refund import Refund
from budget_service.ledger.acts.report import ReportCharge
from budget_service.ledger.acts.write_off import WriteOff
from budget_service.ledger.balances import Balance
from budget_service.ledger.block_sums import NONE_PAYING
from budget_service.ledger.case import Case
from budget_service.ledger.draft import Draft
from budget_service.ledger.known_blocks import KnownBlocks
from budget_service.ledger.outcomes import Charged, Outcome
from budget_service.ledger.state import Reservation
from budget_service.ledger.values import MAX_AMOUNT, NOTHING, Cost, LevelLimit, Mode
from budget_service.ledger.windows import DAY
from tests.unit.budget_service import memory_store


def _still_paid(real: Any, refund: Refund, case: Case) -> Outcome:
    outcome: Outcome = real(refund, case)
    case.unpaid.clear()
    return outcome


def _refunded_twice(real: Any, refund: Refund, case: Case) -> Outcome:
    is_paid = refund.release_id in case.snapshot.paid_releases
    case.snapshot = replace(case.snapshot, paid_releases={refund.release_id: case.leaf.day.start})
    outcome: Outcome = real(refund, case)
    case.unpaid[:] = case.unpaid if is_paid else []
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
    "what blocks have paid is not added": (
        *(KnownBlocks, "paying", "blocks", "above"),
        lambda _, _self, _each, _own: NONE_PAYING,
    ),
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
        *(Case, "reservation", "blocks", "information must be"),
        lambda _, self: self.snapshot.reservation,
    ),
    "a settlement counts on its own day": (
        *(Charge, "_entry", "blocks", "callers were charged"),
        lambda real, self, case, kind, query_id, _holds: real(
            self, case, kind, query_id, case.holds(self.blocks)
        ),
    ),
    "a release stays paid after its refund": (Refund, "decide", "repeats", "free", _still_paid),
    "a release is refunded twice": (Refund, "decide", "shared", "refunded", _refunded_twice),
    "a retry charges again": (
        *(memory_store, "decide", "repeats", "retry"),
        lambda real, snapshot, *asked: real(replace(snapshot, remembered=None), *asked),
    ),
    "a release that is paid for is charged again": (
        *(Case, "is_paid", "repeats", "charged twice"),
        lambda _, _self, _release: False,
    ),
    "a release is charged again once limits were set": (
        *(Case, "is_paid", "repeats", "charged twice"),
        lambda real, self, release: not self.root.limits_version and real(self, release),
    ),
    "what was paid for on the day before is charged again": (
        *(Case, "is_paid_in", "repeats", "charged twice"),
        lambda real, self, start: real(self, start) and start == self.leaf.day.start,
    ),
    "what was paid for in an earlier window is free": (
        *(Case, "is_paid_in", "leavers", "free, and was not paid for"),
        lambda _, _self, _start: True,
    ),
    "what is settled late is paid for in the present window": (
        *(Case, "payment_span", "leavers", "free, and was not paid for"),
        lambda _, self, _account, _holds: self.leaf.day.start,
    ),
    "limits that were changed are applied": (
        *(memory_store, "decide", "shared", "limits that were changed"),
        lambda real, snapshot, request, limits, now: real(
            snapshot, request, replace(limits, version=snapshot.root.limits_version), now
        ),
    ),
    "a closed account spends": (
        *(memory_store, "decide", "shared", "closed"),
        lambda real, snapshot, act, limits, now: real(snapshot, act, replace(limits, closed=None), now),
    ),
    "a write-off spends nothing": (
        *(WriteOff, "decide", "returns", "are written off"),
        lambda _, _self, case: Charged(NOTHING, False, case.statuses()),
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
        *(ReportCharge, "_from_lease", "leases", "Sum.RESERVED"),
        lambda real, self, case, lease, is_paid: real(
            self, case, replace(lease, held=self.cost), is_paid=is_paid
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
    if isinstance(real, property):
        monkeypatch.setattr(place, name, property(lambda self: wrong(real.fget, self)))
    else:
        monkeypatch.setattr(place, name, lambda *asked, **named: wrong(real, *asked, **named))
    return world, problem
