"""What is done when charges were lost: nobody knows them, so that all that was left counts as spent."""

from __future__ import annotations

from dataclasses import dataclass

from budget_service.ledger.balances import Balance
from budget_service.ledger.state import EntryKind, Hold, JournalEntry
from budget_service.ledger.values import NOTHING, Account, Limit, Mode
from budget_service.ledger.windows import Microseconds

REQUEST_ID = "restored"


@dataclass(frozen=True, slots=True)
class Spent:
    """The balance of a level after what was left of it is spent, and the entry that says so."""

    balance: Balance
    entry: JournalEntry


def spend_the_rest(
    level: Account, limit: Limit, last: Balance | None, unit_id: str, now: Microseconds
) -> Spent | None:
    """Spend what a level has left in the window that is open now; None if it only tracks, or nothing is left.

    With a sliding window the rest counts as charged today, so that it stays as long as any charge that was lost could.
    """
    span = limit.window.around(now)
    balance = Balance.opened(span, span.window.start) if last is None else last.at(now, span)
    rest = (balance.spent + balance.reserved).left_of(limit.maximum)
    if limit.mode is Mode.TRACK or rest == NOTHING:
        return None
    start = balance.window.start
    entry = JournalEntry(
        kind=EntryKind.LOST,
        account=level,
        cost=rest,
        unit_id=unit_id,
        request_id=REQUEST_ID,
        release_id="",
        query_id="",
        time=now,
        holds=(Hold(level.depth, start),),
    )
    return Spent(balance.charged(start, rest), entry)
