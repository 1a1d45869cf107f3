"""What every entry of a journal has, on every store."""

from __future__ import annotations

from budget_service.ledger.limits import parse_change
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import blocks_of, parse_blocks

# They name one time, at which something begins, or by which the clock is behind.
_WITH_A_TIME = (EntryKind.CURRENCY, EntryKind.CLOCK)


def require_well_formed(entry: JournalEntry) -> None:
    """Return if an entry is one that the rules can have written, as far as it shows by itself.

    Raises:
        ValueError: It is not; most likely somebody has changed it.
    """
    account = entry.account
    depths = {hold.depth for hold in entry.holds}
    blocks = parse_blocks(blocks_of(entry.holds), "blocks") or ("",)
    # At each level once for everybody, or for each of the same blocks.
    counted = {(hold.depth, hold.block) for hold in entry.holds}
    whole = {(depth, block) for depth in depths for block in blocks}
    if (
        account.block
        or counted != whole
        or len(entry.holds) != len(whole)
        or any(not 1 <= depth <= account.depth for depth in depths)
    ):
        raise ValueError("an entry that counts on other levels than those of its account, or twice on one")
    if entry.kind in _WITH_A_TIME and len(depths) != 1:
        raise ValueError("an entry without its time")
    if entry.kind is EntryKind.LIMIT:
        parse_change(entry.change)
    if entry.is_administrative != bool(entry.actor):
        raise ValueError("an act of nobody, or a charge by an administrator")
