"""Finds out whether a broker asks the servers for the segments of a version, and for no others.

Brokers learn of a table's segments with a delay. If segments were replaced by others with new names and as many rows,
no answer to a question shows which of them it is from. So each broker is asked once for each version how many rows it
counts in each segment by name, before any of its answers on that version is accepted. Its reply depends on the table's
segments and on no question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from pinot_connector.engines.base import COUNT_COLUMN, ColumnType, EngineQuery, ExpectedColumn
from pinot_connector.engines.pinot.answer import Coverage, coverage_of, judge, require_all
from pinot_connector.engines.pinot.broker import Deadline
from pinot_connector.engines.pinot.configuration import EXACT
from pinot_connector.engines.pinot.limit_in_force import MOST_BROKERS
from pinot_connector.engines.pinot.table_state import TableState
from pinot_connector.errors import DataChanged, EngineUnavailable

# No group is trimmed away, and rows that newer ones replace (`skipUpsert`) count: segments are meant, and not rows.
_OPTIONS = f"{EXACT}SET skipUpsert=true; "
_NAME = "segment"
LATE_BROKER = "a broker of Pinot has not learned of the table's new version yet; ask again later"

Ask = Callable[[str, Deadline], Mapping[str, Any]]
"""Returns a broker's response to a query."""


@dataclass
class _KnownBrokers:
    """Which brokers have shown that they ask for the segments of this state."""

    state: TableState
    brokers: frozenset[str] = frozenset()


class Routes:
    """Tracks for each table which brokers use the segments of its present version. Thread-safe.

    It remembers only the version in use: for one that comes back, brokers are asked again.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}
        self._shown: dict[str, _KnownBrokers] = {}

    def known(self, table: str, state: TableState) -> frozenset[str]:
        """Returns the brokers that have shown that they ask for the segments of this state."""
        shown = self._shown.get(table)
        return shown.brokers if shown is not None and shown.state.segments == state.segments else frozenset()

    def learned(
        self, table: str, state: TableState, wanted: frozenset[str], deadline: Deadline
    ) -> frozenset[str]:
        """Returns the known brokers, at least one, after asking for the wanted ones.

        Of several questions that come at the same time, one asks. Behind an address with several brokers one cannot
        choose which answers, so a wanted broker may still not be known.

        Raises:
            DataChanged: a broker asks for other segments.
            IncompleteAnswer: its answer is partial.
            EngineUnavailable: it cannot be reached, or took too long.
            EngineRefused: it refuses the query.
        """
        known = self.known(table, state)
        if known and wanted <= known:
            return known
        lock = self._lock_of(table)
        if not lock.acquire(timeout=deadline.seconds_left):
            raise EngineUnavailable("Pinot's broker did not report in time which segments it uses")
        try:
            for _ in range(MOST_BROKERS):
                known = self.known(table, state)
                if known and wanted <= known:
                    break
                self._remember(table, state, _shown_by(self._ask, table, state, deadline))
            return self.known(table, state)
        finally:
            lock.release()

    def _remember(self, table: str, state: TableState, broker: str) -> None:
        # Readers without the lock find one state with its brokers, never a mixture.
        self._shown[table] = _KnownBrokers(state, self.known(table, state) | {broker})

    def _lock_of(self, table: str) -> Lock:
        with self._lock:
            return self._locks.setdefault(table, Lock())


def routes_query(table: str, segments: int) -> EngineQuery:
    """Returns the query that counts rows by segment; it may find one segment more than there are."""
    limit = segments + 1
    sql = (
        f'{_OPTIONS}SELECT "$segmentName" AS "{_NAME}", COUNT(*) AS "{COUNT_COLUMN}" '  # noqa: S608
        f'FROM "{table}" GROUP BY "$segmentName" LIMIT {limit}'
    )
    return EngineQuery(table, sql, (ExpectedColumn(_NAME, ColumnType.STRING),), limit)


def _shown_by(ask: Ask, table: str, state: TableState, deadline: Deadline) -> str:
    """Returns the broker that answered, if it asks for the segments of this state."""
    query = routes_query(table, len(state.segments))
    response = ask(query.sql, deadline)
    answer = judge(response, query, state.data_version)
    coverage: Coverage = coverage_of(response)
    counted = dict(zip(answer.elements[0], answer.counts, strict=True))
    if not counted.keys() <= state.segments.keys():
        raise DataChanged(LATE_BROKER)
    # If segments are missing, a server may be gone, and the broker is not to blame.
    require_all(coverage, state)
    # A segment without rows is in no group.
    if counted != {name: each.documents for name, each in state.segments.items() if each.documents}:
        raise DataChanged(LATE_BROKER)
    return coverage.broker
