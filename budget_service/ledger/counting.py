"""On which levels, for which purpose and for which blocks, a request counts."""

from __future__ import annotations

from functools import lru_cache

from budget_service.ledger.requests import BudgetRequest, Charge, Refund, ReportCharge, Reserve, WriteOff
from budget_service.ledger.values import Account, LevelLimit, limits_for, purpose_of

# A few megabytes.
_KEPT_ACCOUNTS = 10_000


def counting_levels(request: BudgetRequest) -> tuple[Account, ...]:
    """Return the levels that a request counts on: all of its account, but a write-off only on its own.

    A request with a purpose counts on those of the purpose too, after the others.
    """
    account = request.account
    first = account.depth if isinstance(request, WriteOff) else 1
    return _levels(account, first, named_purpose(request))


def named_purpose(request: BudgetRequest) -> str:
    """Return the purpose of a request; empty if it has none."""
    if isinstance(request, Refund):
        return purpose_of(request.holds)
    return request.purpose if isinstance(request, Reserve | Charge) else ""


def every_level(levels: tuple[LevelLimit, ...], account: Account) -> tuple[Account, ...]:
    """Return the levels of an account, and those of purposes that have a limit."""
    return (*account.levels, *[each.level for each in limits_for(levels, None) if each.level.purpose])


def named_blocks(request: BudgetRequest) -> tuple[str, ...]:
    """Return the blocks that alone pay, or are paid back, by a request that names some."""
    return request.blocks if isinstance(request, Reserve | Charge | Refund) else ()


def needs_all_blocks(request: BudgetRequest) -> bool:
    """Return whether a request is decided by what every block of its levels has paid."""
    return isinstance(request, ReportCharge) or (isinstance(request, Reserve | Charge) and not request.blocks)


@lru_cache(maxsize=_KEPT_ACCOUNTS)
def _levels(account: Account, widest: int, purpose: str) -> tuple[Account, ...]:
    levels = [account.level(depth) for depth in range(widest, account.depth + 1)]
    return (*levels, *([level.of_purpose(purpose) for level in levels] if purpose else ()))
