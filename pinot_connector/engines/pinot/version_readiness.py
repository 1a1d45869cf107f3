"""Decides when a new version of a table may be used: once the servers answer from its segments."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock

from pinot_connector.engines.pinot.loaded_segments import (
    Evidence,
    Finding,
    LoadedSegments,
    Replicas,
    have_joined,
)
from pinot_connector.engines.pinot.replaced_segments import ReplacedSegments
from pinot_connector.engines.pinot.table_state import TableState
from pinot_connector.errors import DataChanged, GrisError

YOUNG_SECONDS = 60.0
"""Every broker knows a version that is older than this when it is first seen; generous, like `CLOCK_SECONDS`."""

CLOCK_SECONDS = 60.0
"""How far the clocks of two machines may differ."""

VERSION_TIMEOUT_SECONDS = 5.0
"""How long a question waits for a new version; those that come later are refused at once: each holds a thread."""

BROKER_DELAY_SECONDS = 2.0
"""How long a broker may go on with the segments that it knew, which of them replace others, and their times."""

NOT_USED = 0
"""The number of no use of a table's state; see `VersionReadiness.use`."""

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.25, 5.0
_BEING_ASKED = "the servers of Pinot are still being asked what they have loaded; ask again later"
_REPLICAS = (
    "a server of Pinot may still be loading a new version of the table, which is used settle_seconds after its "
    "segments were replaced; ask again later"
)
_PRUNERS = (
    "a broker of Pinot may still prune by what segments held before they were replaced; the new version of the table "
    "is used settle_seconds after that; ask again later"
)

log = logging.getLogger(__name__)


@dataclass
class _Watch:
    """One state of one table, since it was first seen or taken back. Guarded by the lock of `VersionReadiness`."""

    state: TableState
    number: int
    first_seen: float
    is_change: bool
    replicas_ready_at: float
    """When even a replica that was never seen has loaded what was replaced."""
    pruners_ready_at: float
    """When a broker that prunes has forgotten what was replaced."""
    used_on: Finding | None = None
    """The finding on which it came into use; None: it is not in use. Later findings do not change this."""
    finding: Finding | None = None
    online: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """On which servers each segment was when it was last found on some."""
    found_at: float = float("-inf")
    missing_at: float | None = None
    """When it was last seen that something is not loaded; None: never."""
    search: Future[Finding] | None = None

    @property
    def is_provisional(self) -> bool:
        """Whether it is in use, though a server that is not online yet may hold something else."""
        return self.used_on is not None and self.used_on.evidence is Evidence.SOME_REPLICAS

    def pause(self, now: float) -> float:
        """Returns how long to wait before the servers are asked again: longer for a version that takes long."""
        return min(max(_FIRST_PAUSE_SECONDS, (now - self.first_seen) / 10), _LONGEST_PAUSE_SECONDS)


class VersionReadiness:
    """Tracks for each table which state is in use, and finds out whether a new one is loaded. Thread-safe.

    Once every replica has loaded a state, this stays so while the controller lists the same: servers load what it lists
    and nothing else. So such a state costs no request. A replica that is not online yet loads what was listed when it
    began, and may come online with that. So a state that was found on some replicas is used until another one joins
    them; then its use ends, and answers that began before are not confirmed.

    A state is identified by its checksums and the times of its segments: one that was replaced, and came back, is
    looked for again.

    Args:
        loaded: reports what the servers have loaded.
        settle_seconds: the longest time that a server takes to load a segment.
    """

    def __init__(self, loaded: LoadedSegments, settle_seconds: float) -> None:
        self._loaded = loaded
        self._settle_seconds = settle_seconds
        self._lock = Lock()
        self._numbers = itertools.count(NOT_USED + 1)
        self._watches: dict[str, _Watch] = {}
        self._replaced: dict[str, ReplacedSegments] = {}

    def saw(self, table: str, state: TableState) -> None:
        """Remembers that the controller listed this state."""
        self._watch(table, state)

    def use(self, table: str, state: TableState | None = None) -> int:
        """Returns a number that stands for the present use of the table's state, `NOT_USED` if it is not in use.

        The number changes whenever another state was seen, or the use of this one ended.

        Args:
            table: its name.
            state: the state that has to be the one in use; None: whichever it is.
        """
        watch = self._watches.get(table)
        if watch is None or watch.used_on is None or not (state is None or _are_same(watch.state, state)):
            return NOT_USED
        return watch.number

    def is_used(self, table: str, state: TableState) -> bool:
        """Returns whether this state of the table is in use: it was found to be loaded, and no other was seen since."""
        return self.use(table, state) != NOT_USED

    def is_provisional(self, table: str) -> bool:
        """Returns whether what is used of the table was not found on every replica; then `compare` must be called."""
        watch = self._watches.get(table)
        return watch is not None and watch.is_provisional

    def compare(self, table: str, replicas: Replicas) -> None:
        """Ends the use of the table's state if a server may answer now that could not when it was found."""
        with self._lock:
            watch = self._watches.get(table)
            if watch is None or watch.used_on is None or not watch.is_provisional:
                return
            if not have_joined(watch.used_on.online, replicas.online_for(watch.state.segments)):
                return
            now = time.monotonic()
            self._watches[table] = _Watch(
                watch.state,
                next(self._numbers),
                now,
                is_change=True,
                replicas_ready_at=now + self._settle_seconds,
                pruners_ready_at=watch.pruners_ready_at,
            )

    def seconds_to_wait(self, table: str, state: TableState, *, is_pruned: bool) -> float:
        """Returns 0 if this state may be used, and else after how many seconds to read the table and ask again.

        Args:
            table: its name.
            state: what the controller lists.
            is_pruned: whether brokers leave out segments of the table by what they know of their contents.

        Raises:
            DataChanged: it is not worth waiting for: the servers are still loading it, or may be.
            EngineUnavailable: neither controller nor servers can be reached.
            EngineRefused: one of them does not accept our credentials.
        """
        watch = self._watch(table, state)
        if watch.used_on is not None:
            return 0.0
        finding = self._finding(table, watch)
        now = time.monotonic()
        pruners_at = watch.pruners_ready_at if is_pruned else now
        usable_at = max(self._loaded_at(watch, finding), pruners_at)
        if now >= usable_at:
            with self._lock:
                watch.used_on = watch.used_on or finding
            return 0.0
        pause = min(usable_at - now, watch.pause(now))
        if now + pause > watch.first_seen + VERSION_TIMEOUT_SECONDS:
            raise DataChanged(finding.problem or (_PRUNERS if usable_at == pruners_at else _REPLICAS))
        return pause

    def _watch(self, table: str, state: TableState) -> _Watch:
        with self._lock:
            watch = self._watches.get(table)
            if watch is None or not _are_same(watch.state, state):
                watch = self._watches[table] = self._next(table, watch, state)
            return watch

    def _next(self, table: str, before: _Watch | None, state: TableState) -> _Watch:
        number, now = next(self._numbers), time.monotonic()
        replaced = self._replaced.setdefault(table, ReplacedSegments(self._settle_seconds))
        if before is None:
            # What was pushed just now may have the name of a segment that was deleted before this process started.
            by_push, by_refresh = (
                self._ready_by_clock(changed_at, now) for changed_at in (state.changed_at, state.replaced_at)
            )
            return _Watch(state, number, now, False, by_push, by_refresh)
        ready_at = self._ready_by_clock(state.replaced_since(before.state), now)
        if replaced.replaces(before.state, state, now):
            ready_at = now + self._settle_seconds
        replicas_at = max(ready_at, before.replicas_ready_at)
        return _Watch(state, number, now, True, replicas_at, max(ready_at, before.pruners_ready_at))

    def _ready_by_clock(self, changed_at: float, now: float) -> float:
        """Returns when it is `settle_seconds` ago that something changed at this time since 1970; 0: never.

        A connector that starts must not wait for what happened long ago, nor longer than `settle_seconds`.
        """
        if not changed_at:
            return now
        age = time.time() - changed_at
        left = self._settle_seconds + CLOCK_SECONDS - age if age >= 0 else self._settle_seconds
        return now + max(0.0, min(left, self._settle_seconds))

    def _finding(self, table: str, watch: _Watch) -> Finding:
        """Returns what is loaded; one search serves all questions that wait, and searches are spaced out."""
        with self._lock:
            known, now = watch.finding, time.monotonic()
            if known is not None and (
                known.evidence is Evidence.EVERY_REPLICA or now - watch.found_at < watch.pause(now)
            ):
                return known
            search = watch.search
            if search is None:
                own = watch.search = Future()
        if search is None:
            return self._find_loaded(table, watch, own)
        try:
            return search.result(VERSION_TIMEOUT_SECONDS)
        except TimeoutError:
            raise DataChanged(_BEING_ASKED) from None

    def _find_loaded(self, table: str, watch: _Watch, search: Future[Finding]) -> Finding:
        try:
            finding = self._loaded.find_loaded(table, watch.state)
        except BaseException as error:
            with self._lock:
                watch.search = None
            # The question that searched reports a malformed answer; those that wait learn only that nothing is known.
            search.set_exception(error if isinstance(error, GrisError) else DataChanged(_BEING_ASKED))
            raise
        with self._lock:
            if finding.problem and finding != watch.finding:
                fields = {"table": table, "problem": finding.problem, "servers": ", ".join(finding.servers)}
                log.warning(
                    "A table is not loaded as it should be.",
                    extra={"event": "segments.not_loaded", "fields": fields},
                )
            watch.finding, watch.found_at, watch.search = finding, time.monotonic(), None
            if finding.evidence is Evidence.NONE:
                watch.missing_at = watch.found_at
            if finding.online:
                if watch.found_at < watch.replicas_ready_at and have_joined(watch.online, finding.online):
                    # It comes online with what it began to load before; loading the present state takes its time again.
                    watch.replicas_ready_at = watch.found_at + self._settle_seconds
                watch.online = finding.online
        search.set_result(finding)
        return finding

    def _loaded_at(self, watch: _Watch, finding: Finding) -> float:
        """Returns when the servers answer from all of it, and brokers know that."""
        match finding.evidence:
            case Evidence.NONE:
                return float("inf")
            case Evidence.EVERY_REPLICA:
                return self._known_to_brokers_at(watch)
            case Evidence.SOME_REPLICAS:
                return max(self._known_to_brokers_at(watch), watch.replicas_ready_at)

    def _known_to_brokers_at(self, watch: _Watch) -> float:
        if watch.missing_at is not None:
            # Brokers learn of a segment only when it is loaded.
            return watch.missing_at + BROKER_DELAY_SECONDS
        is_young = abs(time.time() - watch.state.changed_at) < YOUNG_SECONDS
        # Where replaced segments are kept, they may have been replaced just now by others that came long ago.
        is_new = watch.is_change or is_young or not watch.state.is_entire
        return watch.first_seen + BROKER_DELAY_SECONDS if is_new else watch.first_seen


def _are_same(one: TableState, other: TableState) -> bool:
    return one is other or one.segments == other.segments
