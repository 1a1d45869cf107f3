"""Trimming: which entries of a journal may go, and the one row of a root that stands for them from then on.

An administrator exports a journal and then has its oldest entries dropped. What is dropped is the longest beginning of
the journal, up to the end of the export, in which every entry is older than `counted_since`: the first moment that a
window of any limit of the root counts. A window that never ends is taken for the longest one that does, and so is that
of a root without a limit, which may get one again. First the root's `Base` is replaced, and then the entries that it
stands for are dropped. It holds:

- how many entries were dropped since the ledger began, and the digest of all of them. The digest of the root's last
  entry, which the root itself keeps, continues from there: whoever changes, removes or adds an entry after the base
  makes the two differ.
- the sum at every level, and at every block of one. A verification begins with it, adds the entries that are left, and
  compares each day since `until` with what the ledger keeps for that day, and all days before it with their sum. Every
  dropped charge was admitted on a day before `until`, so both sides of a comparison have the same charges.
- the currency, the closed accounts and the time, as these entries left them.
- for every level what a guarantee counts of the dropped charges: their statements, whether the sum reveals what
  releases cost, the first charge, and the limits that were changed. A window that reaches back before `until` counts
  all of that, so that a guarantee may be too careful and never too good.
- the `seal`, a digest of all the rest: a base that was changed is no beginning of the digest of the last entry.

Nothing else reads old entries. Balances and past days are rows of their own, and a level that gets another window finds
its balance in them. A payment is a row too. A refund needs the entry of its charge, and is refused without it. That a
charge still counts though its entry was dropped comes of a window without an end, or of one that was made longer.

A crash leaves the export without the base, and then the journal is whole; or the base with entries that it covers, and
then verifications and readings skip them, and the next trim drops them.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.json import encode
from msgspec.structs import replace

from budget_service.ledger.currency import UNUSED, Currency
from budget_service.ledger.digests import digest
from budget_service.ledger.limits import parse_change
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Limit
from budget_service.ledger.windows import MAX_SLIDING_DAYS, Microseconds, Period, WindowRule

_WITHOUT_LIMIT = WindowRule(Period.NEVER, "UTC")


class LevelFacts(Struct, array_like=True, gc=False):
    """What a guarantee counts of charges at a level: see the module.

    `changes` are those of the level's own limit, each with its time and the limit before. `reveals` says that the sum
    is not made of worst cases alone: direct charges were fixed beforehand, and forfeited ones are what was reserved.
    """

    statements: set[str] = field(default_factory=set)
    reveals: bool = False
    first_charge: Microseconds | None = None
    changes: list[tuple[Microseconds, Limit | None]] = field(default_factory=list)

    def charged(self, entry: JournalEntry, depth: int) -> None:
        """Count an entry that counts at the level, which has `depth` segments."""
        if entry.policy_statement:
            self.statements.add(entry.policy_statement)
        if entry.kind.is_charge:
            self._charged_at(entry.time)
        # At the level of the charged account itself the actual cost counts.
        counts_worst = entry.shared_cost is not None and entry.cost_at(depth) == entry.shared_cost
        if entry.kind is EntryKind.SETTLED and not counts_worst:
            self.reveals = True

    def limited(self, entry: JournalEntry) -> None:
        """Note a change of the level's limit."""
        before, _ = parse_change(entry.change)
        self.changes.append((entry.time, before))

    def add(self, other: LevelFacts) -> None:
        """Count what other facts of the same level count."""
        self.statements |= other.statements
        self.reveals |= other.reveals
        self.changes += other.changes
        if other.first_charge is not None:
            self._charged_at(other.first_charge)

    def _charged_at(self, time: Microseconds) -> None:
        self.first_charge = time if self.first_charge is None else min(self.first_charge, time)


class Base(Struct, frozen=True, kw_only=True):
    """What stands for the dropped entries of a root, the first `entries` up to `position`: see the module.

    Levels are texts; `spent` has information and calls.
    """

    position: str = ""
    entries: int = 0
    digest: str = ""
    until: Microseconds = 0
    time: Microseconds = 0
    ahead: Microseconds = 0
    currency: Currency = UNUSED
    closed: list[str] = []
    spent: dict[str, tuple[int, int]] = {}
    facts: dict[str, LevelFacts] = {}
    seal: str = ""

    def sealed(self) -> Base:
        """Return the base with the digest of all its other fields."""
        unsealed = replace(self, seal="")
        return replace(self, seal=digest([encode(unsealed, order="deterministic")]))

    @property
    def chain(self) -> str:
        """The digest of the dropped entries; none of a base that was changed."""
        return self.digest if self == self.sealed() else ""


def counted_since(rules: Sequence[WindowRule], now: Microseconds) -> Microseconds:
    """Return since when charges may count in a window by one of these rules; see the module."""
    return min(_ending(each).around(now).counts_from for each in rules or (_WITHOUT_LIMIT,))


def is_trimmable(entry: JournalEntry, until: Microseconds) -> bool:
    """Return whether an entry is of a time before `until`, and counts on no day since."""
    is_counted = entry.kind.is_charge or entry.kind is EntryKind.REFUNDED
    return entry.time < until and not (is_counted and any(each.window_start >= until for each in entry.holds))


def _ending(rule: WindowRule) -> WindowRule:
    if rule.period is Period.NEVER:
        return WindowRule(Period.SLIDING, rule.zone, MAX_SLIDING_DAYS)
    return rule
