"""Reading the state of an account without changing the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from budget_service.ledger.currency import Currency
from budget_service.ledger.draft import Draft
from budget_service.ledger.outcomes import LevelStatus, Reason, Refused, Shortfall
from budget_service.ledger.rules import shortfalls
from budget_service.ledger.state import Snapshot
from budget_service.ledger.values import Account, Cost, LevelLimit
from budget_service.ledger.windows import Microseconds


@dataclass(frozen=True, slots=True)
class Statement:
    """Every level of an account that has a limit, from the widest, and the currency of its root.

    `limits_version` is the version of the root's stored limits, by which outdated limits are recognised. `ahead` is how
    far the root's time is ahead of the store's clock. `closed` is the widest level of the account that is closed; no
    store knows it; it is found where the limits are looked up.
    """

    currency: Currency
    levels: tuple[LevelStatus, ...]
    limits_version: int = 0
    ahead: Microseconds = 0
    closed: Account | None = None


def statement(snapshot: Snapshot, levels: tuple[LevelLimit, ...], now: Microseconds) -> Statement:
    """Return the state of an account at `now`.

    Args:
        snapshot: Its `root`, `due` and the account's balances are enough.
        levels: The levels of the account that have a limit.
        now: The ledger's time.

    Raises:
        HistoryNeededError: It needs the past days too.
    """
    draft = Draft(snapshot, levels, now)
    root = snapshot.root
    return Statement(draft.currency, draft.statuses(), root.limits_version, root.ahead)


def check(found: Statement, cost: Cost, unit_id: str) -> tuple[Shortfall, ...] | Refused:
    """Return what is missing to pay `cost` now: nothing if it would be allowed. Another currency is refused."""
    if found.currency.unit_id not in ("", unit_id):
        return Refused(Reason.UNIT_MISMATCH)
    return shortfalls(found.levels, cost)
