"""What every entry of a journal has, on every store."""

from __future__ import annotations

from budget_service.ledger.limits import parse_change
from budget_service.ledger.requests import parse_move
from budget_service.ledger.state import EntryKind, JournalEntry

# They name one time, at which something begins, or by which the clock is behind.
_WITH_A_TIME = (EntryKind.CURRENCY, EntryKind.CLOCK)


def require_well_formed(entry: JournalEntry) -> None:
    """Return if an entry is one that the rules can have written, as far as it shows by itself.

    Raises:
        ValueError: It is not; most likely somebody has changed it.
    """
    account = entry.account
    depths = [hold.depth for hold in entry.holds]
    if any(not 1 <= depth <= account.depth for depth in depths) or len(set(depths)) < len(depths):
        raise ValueError("an entry that counts on other levels than those of its account, or twice on one")
    if entry.kind in _WITH_A_TIME and len(depths) != 1:
        raise ValueError("an entry without its time")
    if entry.kind is EntryKind.LIMIT:
        parse_change(entry.reason)
    if entry.kind is EntryKind.MOVE and parse_move(entry.reason)[0].path[:-1] != account.path[:-1]:
        raise ValueError("an entry that moves an account to another level")
