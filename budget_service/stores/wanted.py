"""What a batch of requests needs of the ledger, by what the requests name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from budget_service.ledger.act import Act, Needs
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.state import Reservation
from budget_service.ledger.values import Account
from budget_service.stores.transactions import PaymentKey, Wanted

# What is asked, and the limits that it is decided by.
Asked: TypeAlias = tuple[Act, AppliedLimits]


def wanted_by(
    batch: Sequence[Asked], *, history: bool = False, page: tuple[Account, str] | None = None
) -> Wanted:
    """Return what a batch of acts needs, with the history and a page of blocks if they are needed."""
    found = [(act.account.root, act, act.needs(), limits) for act, limits in batch]
    return Wanted(
        roots=frozenset([root for root, _, _, _ in found]),
        levels=[level for _, _, needs, _ in found for level in _levels(needs)],
        outcomes=[(root, id_) for root, act, needs, _ in found for id_ in (act.request_id, *needs.outcomes)],
        payments=[key for _, act, needs, limits in found for key in _payments(act.account, needs, limits)],
        reservations=[
            ((root, needs.reservation_id), limits.payer(act.account))
            for root, act, needs, limits in found
            if needs.reservation_id
        ],
        counted=frozenset([root for root, _, needs, _ in found if needs.stored]),
        limits=[level for _, _, needs, _ in found for level in needs.limits],
        closed=[level for _, _, needs, _ in found for level in needs.closed],
        history=history,
        page=page,
    )


def wanted_to_read(account: Account, *, history: bool) -> Wanted:
    """Return what stating the balances of an account needs."""
    levels = account.levels
    return Wanted(roots=frozenset((account.root,)), levels=levels, blocks=levels, history=history)


def held_levels(reservations: Iterable[Reservation]) -> list[Account]:
    """Return the levels whose balances reservations hold a part of."""
    return [hold.level_of(each.account) for each in reservations for hold in each.holds]


def _levels(needs: Needs) -> tuple[Account, ...]:
    path, blocks = needs.levels, needs.blocks
    return (*path, *[level.of_block(block) for level in path for block in blocks]) if blocks else path


def _payments(account: Account, needs: Needs, limits: AppliedLimits) -> Iterator[PaymentKey]:
    for kind, ids in (("release", needs.releases), ("query", needs.questions)):
        for id_ in filter(None, ids):
            yield limits.payer(account), kind, id_
