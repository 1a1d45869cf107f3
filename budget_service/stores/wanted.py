"""What a batch of requests needs of the ledger, by what the requests name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from budget_service.ledger.counting import counting_levels, named_blocks, needs_all_blocks
from budget_service.ledger.leases import lease_part, lease_return
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.requests import (
    AccountRequest,
    CancelReservation,
    Charge,
    Refund,
    ReportCharge,
    Request,
    Reserve,
    ReturnLease,
    RootRequest,
    SetLimits,
)
from budget_service.ledger.state import Reservation
from budget_service.ledger.values import Account
from budget_service.stores.transactions import PaymentKey, RootKey, Wanted

# What is asked, and the limits that it is decided by.
Asked: TypeAlias = tuple[Request, AppliedLimits]

# What changes the stored limits, or the closed accounts that are counted with them.
_STORED = SetLimits | AccountRequest
# What names a reservation, and what names a release.
NAMING = Charge | CancelReservation | ReportCharge | ReturnLease
RELEASED = Charge | Refund | ReportCharge
# What regions ask about their leases.
LeaseRequest = ReportCharge | ReturnLease


def wanted_by(batch: Sequence[Asked], *, history: bool = False) -> Wanted:
    """Return what a batch of requests names, with the history if it is needed."""
    return Wanted(
        roots=frozenset([request.account.root for request, _ in batch]),
        levels=[level for request, _ in batch for level in _levels(request)],
        blocks=[level for request, _ in batch for level in _whole(request, history=history)],
        opening=frozenset([request.account.root for request, _ in batch if _opens_blocks(request)]),
        outcomes=[key for request, _ in batch for key in _outcomes(request)],
        payments=[key for asked in batch for key in _payments(*asked)],
        reservations=[key for asked in batch for key in _reservations(*asked)],
        counted=frozenset([request.account.root for request, _ in batch if isinstance(request, _STORED)]),
        limits=[
            level for request, _ in batch if isinstance(request, SetLimits) for level, _ in request.changes
        ],
        closed=[request.account for request, _ in batch if isinstance(request, AccountRequest)],
        history=history,
    )


def wanted_to_read(account: Account, *, history: bool) -> Wanted:
    """Return what stating the balances of an account needs."""
    levels = account.levels
    return Wanted(roots=frozenset((account.root,)), levels=levels, blocks=levels, history=history)


def held_levels(reservations: Iterable[Reservation]) -> list[Account]:
    """Return the levels whose balances reservations hold a part of."""
    return [hold.level_of(each.account) for each in reservations for hold in each.holds]


def _levels(request: Request) -> tuple[Account, ...]:
    if isinstance(request, RootRequest):
        return ()
    path = counting_levels(request)
    named = named_blocks(request)
    return (*path, *[level.of_block(block) for level in path for block in named]) if named else path


def _whole(request: Request, *, history: bool) -> tuple[Account, ...]:
    """Return the levels of which a request needs every block: with the history, of all of its own."""
    if isinstance(request, RootRequest) or not (history or needs_all_blocks(request)):
        return ()
    return counting_levels(request)


def _opens_blocks(request: Request) -> bool:
    return isinstance(request, Reserve | Charge) and bool(request.blocks)


def _outcomes(request: Request) -> Iterator[RootKey]:
    yield request.account.root, request.request_id
    if isinstance(request, LeaseRequest):
        yield from (named(request) for named in (grant_of, return_of, report_before, report_after))


def grant_of(request: LeaseRequest) -> RootKey:
    """Return the key of the outcome that granted a lease."""
    return request.account.root, lease_part(request.lease_id, 0)


def return_of(request: LeaseRequest) -> RootKey:
    """Return that of the outcome that took back what a report draws from."""
    return request.account.root, lease_return(request.lease_id, request.number - 1)


def report_before(request: LeaseRequest) -> RootKey:
    """Return that of the outcome of the report before; before the first one there is the grant."""
    return request.account.root, request.reservation_id


def report_after(request: LeaseRequest) -> RootKey:
    """Return that of the outcome of the report after."""
    return request.account.root, lease_part(request.lease_id, request.number + 1)


def _payments(request: Request, limits: AppliedLimits) -> Iterator[PaymentKey]:
    if isinstance(request, RELEASED) and request.release_id:
        yield limits.payer(request.account), "release", request.release_id
    if isinstance(request, Charge | Reserve | Refund) and request.query_id and not is_loan(request):
        yield limits.payer(request.account), "query", request.query_id


def is_loan(request: Request) -> bool:
    """Return whether a request reserves a lease: it answers no question, and has its region's name in that place."""
    return isinstance(request, Reserve) and request.is_lease


def _reservations(request: Request, limits: AppliedLimits) -> Iterator[tuple[RootKey, str]]:
    if isinstance(request, NAMING) and request.reservation_id:
        yield (request.account.root, request.reservation_id), limits.payer(request.account)
