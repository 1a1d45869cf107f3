"""On which levels, and for which blocks, a request counts."""

from __future__ import annotations

from functools import lru_cache

from budget_service.ledger.requests import BudgetRequest, Charge, Refund, ReportCharge, Reserve, WriteOff
from budget_service.ledger.values import Account

# A few megabytes.
_KEPT_ACCOUNTS = 10_000


def counting_levels(request: BudgetRequest) -> tuple[Account, ...]:
    """Return the levels that a request counts on: all of its account, but a write-off only on its own."""
    account = request.account
    first = account.depth if isinstance(request, WriteOff) else 1
    return _levels(account, first)


def named_blocks(request: BudgetRequest) -> tuple[str, ...]:
    """Return the blocks that alone pay, or are paid back, by a request that names some."""
    return request.blocks if isinstance(request, Reserve | Charge | Refund) else ()


def needs_all_blocks(request: BudgetRequest) -> bool:
    """Return whether a request is decided by what every block of its levels has paid."""
    return isinstance(request, ReportCharge) or (isinstance(request, Reserve | Charge) and not request.blocks)


@lru_cache(maxsize=_KEPT_ACCOUNTS)
def _levels(account: Account, widest: int) -> tuple[Account, ...]:
    return tuple([account.level(depth) for depth in range(widest, account.depth + 1)])
