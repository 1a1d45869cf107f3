"""What may be asked of the ledger without changing it."""

from __future__ import annotations

from dataclasses import dataclass

from budget_service.ledger.currency import Currency
from budget_service.ledger.draft import Draft
from budget_service.ledger.outcomes import LevelStatus, Reason, Refused, Shortfall
from budget_service.ledger.rules import shortfalls
from budget_service.ledger.state import Snapshot
from budget_service.ledger.values import Cost, LevelLimit
from budget_service.ledger.windows import Microseconds


@dataclass(frozen=True, slots=True)
class Statement:
    """Every level of an account that has a limit, from the widest, and the currency of its root.

    `limits_version` counts the changes of the root's stored limits, so that the reader can tell old ones.
    """

    currency: Currency
    levels: tuple[LevelStatus, ...]
    limits_version: int = 0


def statement(snapshot: Snapshot, levels: tuple[LevelLimit, ...], now: Microseconds) -> Statement:
    """Return the state of an account at `now`; the snapshot needs only `root`, `due` and the account's balances."""
    draft = Draft(snapshot, levels, now)
    return Statement(draft.currency, draft.statuses(), snapshot.root.limits_version)


def check(found: Statement, cost: Cost, unit_id: str) -> tuple[Shortfall, ...] | Refused:
    """Return what is missing to pay `cost` now, nothing if it would be allowed; a foreign currency is refused."""
    if found.currency.unit_id not in ("", unit_id):
        return Refused(Reason.UNIT_MISMATCH)
    return shortfalls(found.levels, cost)
