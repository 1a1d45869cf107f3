"""What journals say of limits and of closed accounts, compared with what a bundle's accounts have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from google.protobuf.timestamp_pb2 import Timestamp
from gris_api.budget.v1 import budget_pb2

from budget_service.ledger.limits import TemporaryLimit, parse_change
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account, Limit
from budget_service.ledger.verification import RebuiltStates
from budget_service.ledger.windows import Microseconds
from budget_service.server.limit_messages import limit_message


@dataclass
class Standing:
    """The stored limit of each level and the state of each account by the entries about them: `add` all, in order.

    Both are by ids. `newest` is the time of the newest entry of a root, and `ahead` how far the last entry about its
    clock lets its time be ahead of that. Of a level that no entry is about, nothing is known but in roots of which all
    entries were added: there it has no limit but that of budget.yaml, and is open.
    """

    states: RebuiltStates = field(default_factory=RebuiltStates)
    limits: dict[Account, Limit | None] = field(default_factory=dict)
    newest: dict[str, Microseconds] = field(default_factory=dict)
    ahead: dict[str, Microseconds] = field(default_factory=dict)

    def add(self, entry: JournalEntry) -> None:
        """Follow one entry."""
        account, root = entry.account, entry.account.root
        self.states.add(entry)
        self.newest[root] = max(self.newest.get(root, 0), entry.time)
        if entry.kind is EntryKind.LIMIT:
            self.limits[account] = parse_change(entry.change)[1]
        elif entry.kind is EntryKind.CLOCK:
            self.ahead[root] = entry.holds[0].window_start
        elif entry.kind is EntryKind.MOVE:
            target = Account.of_text(entry.change)
            self.limits.pop(target, None)
            if account in self.limits:
                self.limits[target] = self.limits[account]
            self.limits[account] = None
        elif entry.kind is EntryKind.FORGET:
            self.limits[account] = None

    def problems(
        self,
        account: Account,
        by_ids: Account,
        said: budget_pb2.GetBudgetResponse,
        until: Microseconds,
        *,
        is_whole: bool,
    ) -> Iterator[str]:
        """Give what contradicts the entries.

        Args:
            account: An account by its names.
            by_ids: The same as journals have it.
            said: What the bundle says that it has.
            until: The latest time of the ledger at which that can have been asked, in microseconds.
            is_whole: All entries of its root were added.
        """
        if by_ids in self.limits or is_whole:
            found = self._possible(by_ids, until)
            own = next((each for each in said.levels if tuple(each.path) == account.path), None)
            purposes = [each for each in said.purposes if tuple(each.path) == account.path]
            # Where charges of an earlier currency count, the limit is theirs.
            is_other = own is not None and own.previous_currency
            if not is_other and not any(_is_limit(own, purposes, each) for each in found):
                yield f"{account.text} has another limit than by the last entry about it"
        if self._contradicts(account, by_ids, tuple(said.closed_level), is_whole=is_whole):
            closed = "/".join(said.closed_level)
            named = f"{closed} is closed" if closed else "no level of it is closed"
            yield f"{account.text} says that {named}, and the journal another thing"

    def clock_ahead(self, root: str, *, is_whole: bool) -> Microseconds | None:
        """Return how far a root's time is ahead of its store's clock, None if no entry is known that would say so."""
        return self.ahead.get(root, 0 if is_whole else None)

    def _possible(self, level: Account, until: Microseconds) -> list[Limit | None]:
        """Return which limits may have held between the newest entry and a time."""
        limit = self.limits.get(level)
        if not isinstance(limit, TemporaryLimit):
            return [limit]
        newest = self.newest[level.root]
        held: list[Limit | None] = [limit] if newest < limit.until else []
        return [*held, limit.then] if max(newest, until) >= limit.until else held

    def _contradicts(
        self, account: Account, by_ids: Account, closed: tuple[str, ...], *, is_whole: bool
    ) -> bool:
        """Return whether the widest level that is closed is another one: none if that is empty."""
        states = self.states.states
        known = {
            level.depth: level in states and states[level].is_closed
            for level in by_ids.levels
            if level in states or is_whole
        }
        depth = len(closed)
        if closed != account.path[:depth] or (closed and not known.get(depth, True)):
            return True
        return any(is_closed and (not closed or each < depth) for each, is_closed in known.items())


def _is_limit(level: budget_pb2.Level | None, purposes: list[budget_pb2.Level], limit: Limit | None) -> bool:
    """Return whether a level has a limit; None: that of budget.yaml, which is not known, and has no end."""
    if limit is None:
        return level is None or not level.HasField("limit_until")
    if level is None:
        return False
    sent, end = limit_message(limit), level.limit_until if level.HasField("limit_until") else Timestamp()
    own = (level.limit.information, level.limit.calls, level.mode, end)
    of_purposes = {each.purpose: (each.limit.information, each.limit.calls) for each in purposes}
    expected = {each.purpose: (each.information, each.calls) for each in sent.purposes}
    return own == (sent.information, sent.calls, sent.mode, sent.until) and of_purposes == expected
