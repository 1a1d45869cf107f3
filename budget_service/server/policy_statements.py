"""What the present charges of an account mean for its guarantee, level by level.

For each level: the policy statements in its present window, whether its sum reveals what releases cost, and which
limits it had. They are read from the journal, newest entries first, back to the start of the oldest window, and from
the base where a window reaches back to entries that were trimmed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from budget_service.ledger.base import LevelFacts
from budget_service.ledger.outcomes import LevelStatus
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account, Cost, Limit, Mode
from budget_service.ledger.windows import Microseconds, Period
from budget_service.server.messages import LONGEST_TTL
from budget_service.stores.interface import Store
from budget_service.tuning import DEFAULTS, Tuning

# The limit that the configuration has for a level; None if it has none.
Configured: TypeAlias = Callable[[Account], Limit | None]


class TooManyStatementsError(Exception):
    """More different statements count than an answer may hold."""


@dataclass(frozen=True, slots=True)
class LevelStatements:
    """What the present charges at a level mean for a guarantee."""

    level: Account
    facts: LevelFacts

    @property
    def statements(self) -> tuple[str, ...]:
        """The policy statements of these charges, sorted."""
        return tuple(sorted(self.facts.statements))

    @property
    def has_worst_cases(self) -> bool:
        """Whether every charge from accounts below counts with its worst case."""
        return not self.facts.reveals

    def largest_limit(self, present: Limit, configured: Configured) -> Cost | None:
        """Return the largest limit that counts, unit by unit; None if the level had no limit that was enforced.

        A guarantee counts the largest limit of the window, whatever was spent by the time it was lowered: when to spend
        it was the analyst's choice. What was in force only before the first charge does not count: nobody had seen an
        answer by then. A limit of the configuration is taken for what it always was: its changes are in no journal. One
        with windows of its own bounds nothing in the present one, in which several of them may have ended.

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
        for time, before in self.facts.changes:
            yield before or configured(self.level), time

    def _counts(self, limit: Limit | None, until: Microseconds) -> bool:
        if self.facts.first_charge is None:
            return False
        is_bounded = limit is not None and limit.mode is Mode.ENFORCE
        # A charge may have been admitted as long before as a reservation lasts. For a level that has just got its first
        # limit that says nothing: it is nearly always so, and what was held then is counted against the limit.
        return until > self.facts.first_charge - (LONGEST_TTL if is_bounded else 0)


def _bounds(limit: Limit, present: Limit) -> bool:
    """Return whether an earlier limit bounds what was spent in the window of the present one."""
    is_as_long = limit.window == present.window or limit.window.period is Period.NEVER
    return limit.mode is Mode.ENFORCE and is_as_long


async def policy_statements_of(
    store: Store, account: Account, levels: tuple[LevelStatus, ...], tuning: Tuning = DEFAULTS
) -> Mapping[int, LevelStatements]:
    """Return the statements at each level of an account.

    No charge that counts is left out. After a change of a window's rule, and where a window reaches back to entries
    that were trimmed, some that count no more may be included.

    Args:
        store: The ledger.
        account: The account.
        levels: The state of its levels.
        tuning: Sets the length of a page and the largest number of statements.

    Returns:
        The statements by the depth of their level.

    Raises:
        TooManyStatementsError: More different statements count than an answer may hold.
        StoreError: The store failed.
    """
    window = _Window(account, levels, tuning.max_statements)
    before, is_last = "", False
    while not is_last:
        page = await store.latest(account.root, before, tuning.statements_page)
        for _, entry in page:
            window.add(entry)
        window.require_few()
        if any(window.is_before(entry) for _, entry in page):
            return window.statements()
        is_last = len(page) < tuning.statements_page
        before = "" if is_last else page[-1][0]
    # What was trimmed before it could be read is in the base by now.
    base = await store.base(account.root)
    window.reach_back(base.facts, base.until)
    window.require_few()
    return window.statements()


class _Window:
    """The windows of the levels of an account, and what is found in them."""

    def __init__(self, account: Account, levels: tuple[LevelStatus, ...], max_statements: int) -> None:
        self._levels = {each.depth: account.level(each.depth) for each in levels}
        self._max_statements = max_statements
        self._starts = {each.depth: each.window.start for each in levels}
        self._oldest: Microseconds = min(self._starts.values())
        self._found = {depth: LevelFacts() for depth in self._starts}

    def is_before(self, entry: JournalEntry) -> bool:
        """Return whether neither an entry nor any older one counts."""
        # A forfeit has the time at which its reservation lapsed, and is written later.
        return entry.kind is not EntryKind.FORFEITED and entry.time < self._oldest

    def add(self, entry: JournalEntry) -> None:
        """Collect the statement of an entry at each level at which it counts, or the change of a level's limit."""
        depth = entry.account.depth
        is_limited = entry.kind is EntryKind.LIMIT and entry.account == self._levels.get(depth)
        if is_limited and entry.time >= self._starts[depth]:
            self._found[depth].limited(entry)
        named = {hold.depth: hold.window_start for hold in entry.holds}
        for depth, start in self._starts.items():
            is_own = entry.account.level(depth) == self._levels[depth]
            if is_own and named.get(depth, -1) >= start:
                self._found[depth].charged(entry, depth)

    def reach_back(self, facts: Mapping[str, LevelFacts], until: Microseconds) -> None:
        """Count what counts of trimmed entries, all of them before `until`, where a window may have some of them."""
        for depth, start in self._starts.items():
            if start < until and (known := facts.get(self._levels[depth].text)) is not None:
                self._found[depth].add(known)

    def require_few(self) -> None:
        """Return if an answer may hold what was found, else raise TooManyStatementsError."""
        if len(set().union(*(each.statements for each in self._found.values()))) > self._max_statements:
            raise TooManyStatementsError

    def statements(self) -> dict[int, LevelStatements]:
        """Return what was found."""
        return {depth: LevelStatements(self._levels[depth], found) for depth, found in self._found.items()}
