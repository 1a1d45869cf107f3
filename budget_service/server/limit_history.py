"""The limits that a level had in its present window, as far as the journal tells.

A guarantee counts the largest of them, whatever was spent by the time it was lowered: when to spend it was the
analyst's choice. What was in force only before the first charge does not count: nobody had seen an answer by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from budget_service.ledger.limits import parse_change
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, Cost, Limit, Mode
from budget_service.ledger.windows import Microseconds, Period
from budget_service.server.messages import LONGEST_TTL

# The limit that the configuration has for a level; None if it has none.
Configured: TypeAlias = Callable[[Account], Limit | None]


@dataclass(frozen=True, slots=True)
class LimitHistory:
    """The changes of one level's limit in its window, oldest first, and the time of its first charge, if it has any."""

    changes: tuple[JournalEntry, ...] = ()
    first_charge: Microseconds | None = None

    def largest(self, present: Limit, configured: Configured) -> Cost | None:
        """Return the largest limit that counts, unit by unit; None if the level had no limit that was enforced.

        A limit of the configuration is taken for what it always was: its changes are in no journal. One with windows of
        its own bounds nothing in the present one, in which several of them may have ended.

        Args:
            present: The limit that is enforced now.
            configured: Says which limit is in force where none is stored.
        """
        earlier = [limit for limit, until in self._earlier(configured) if self._counts(limit, until)]
        enforced = [limit.maximum for limit in earlier if limit is not None and _bounds(limit, present)]
        if len(enforced) < len(earlier):
            return None
        enforced.append(present.maximum)
        return Cost(max(each.information for each in enforced), max(each.calls for each in enforced))

    def _earlier(self, configured: Configured) -> Iterator[tuple[Limit | None, Microseconds]]:
        for entry in self.changes:
            before, _ = parse_change(entry.change)
            yield before or configured(entry.account), entry.time

    def _counts(self, limit: Limit | None, until: Microseconds) -> bool:
        if self.first_charge is None:
            return False
        is_bounded = limit is not None and limit.mode is Mode.ENFORCE
        # A charge may have been admitted as long before as a reservation lasts. For a level that has just got its first
        # limit that says nothing: it is nearly always so, and what was held then is counted against the limit.
        return until > self.first_charge - (LONGEST_TTL if is_bounded else 0)


def _bounds(limit: Limit, present: Limit) -> bool:
    """Return whether an earlier limit bounds what was spent in the window of the present one."""
    is_as_long = limit.window == present.window or limit.window.period is Period.NEVER
    return limit.mode is Mode.ENFORCE and is_as_long
