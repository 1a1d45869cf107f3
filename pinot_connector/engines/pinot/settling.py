"""When a new version of a table may be used: once what it consists of is what the servers answer from."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock

from pinot_connector.engines.pinot.loaded import Evidence, Finding, LoadedSegments
from pinot_connector.engines.pinot.state import TableState
from pinot_connector.errors import DataChanged, GrisError

PATIENCE_SECONDS = 5.0
"""How long questions wait for a new version; those that come later are refused at once, for they hold a thread."""

BROKER_SECONDS = 2.0
"""How long a broker may go on with what it knew of a table: its segments, which replace which, and their times."""

YOUNG_SECONDS = 60.0
"""A version that is older than this when it is first seen is known to every broker; generous, as is `CLOCK_SECONDS`."""

CLOCK_SECONDS = 60.0
"""How far the clocks of two machines may differ."""

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.25, 5.0
_BEING_ASKED = "the servers of Pinot are still being asked what they have loaded; ask again later"
_REPLICAS = (
    "a server of Pinot may still be loading a new version of the table, which is used settle_seconds after its "
    "segments were replaced; ask again later"
)

log = logging.getLogger(__name__)


@dataclass
class _Watch:
    """One state of one table, since it was first seen. Guarded by the lock of `Settling`."""

    state: TableState
    first_seen: float
    is_change: bool
    replaced_at: float | None
    """When a segment of the table was last seen to be replaced by another of its name; None: never."""
    is_usable: bool = False
    finding: Finding | None = None
    looked_at: float = field(default=float("-inf"))
    missing_at: float | None = None
    """When it was last seen that something is not loaded; None: never."""
    looking: Future[Finding] | None = None

    def pause(self, now: float) -> float:
        """Return how long to wait before looking again: the longer a version takes, the less often it is asked for."""
        return min(max(_FIRST_PAUSE_SECONDS, (now - self.first_seen) / 10), _LONGEST_PAUSE_SECONDS)


class Settling:
    """Knows of each table which state is in use, and asks for one that is new. Thread-safe.

    What was found loaded stays so while the controller lists the same: servers load what it lists, and nothing else.
    So a state that is in use costs no request. A state is known by its checksums and by the times of its segments: one
    that was replaced, and came back, is asked for anew.
    """

    def __init__(self, loaded: LoadedSegments, settle_seconds: float) -> None:
        self._loaded = loaded
        self._settle_seconds = settle_seconds
        self._lock = Lock()
        self._watches: dict[str, _Watch] = {}

    def is_used(self, table: str, state: TableState) -> bool:
        """Tell whether this state of the table was found to be loaded, and no other was seen since."""
        watch = self._watches.get(table)
        return watch is not None and watch.is_usable and _are_same(watch.state, state)

    def seconds_to_wait(self, table: str, state: TableState) -> float:
        """Return 0 if this state may be used, and else after how many seconds to read the table and ask again.

        Raises:
            DataChanged: it is not worth waiting for: the servers are still loading it, or may be.
            EngineUnavailable: nobody can be asked.
            EngineRefused: somebody does not accept our credentials.
        """
        watch = self._watch(table, state)
        if watch.is_usable:
            return 0.0
        finding = self._finding(table, watch)
        now = time.monotonic()
        usable_at = self._usable_at(watch, finding, now)
        if now >= usable_at:
            watch.is_usable = True
            return 0.0
        pause = min(usable_at - now, watch.pause(now))
        if now + pause > watch.first_seen + PATIENCE_SECONDS:
            raise DataChanged(finding.problem or _REPLICAS)
        return pause

    def _watch(self, table: str, state: TableState) -> _Watch:
        with self._lock:
            watch = self._watches.get(table)
            if watch is None or not _are_same(watch.state, state):
                watch = self._watches[table] = _next(watch, state)
            return watch

    def _finding(self, table: str, watch: _Watch) -> Finding:
        """Return what is loaded; one question asks for all that wait, and not more often than is sensible."""
        with self._lock:
            known, now = watch.finding, time.monotonic()
            if known is not None and (
                known.evidence is Evidence.EVERY_REPLICA or now - watch.looked_at < watch.pause(now)
            ):
                return known
            looking = watch.looking
            if looking is None:
                own = watch.looking = Future()
        if looking is None:
            return self._look(table, watch, own)
        try:
            return looking.result(PATIENCE_SECONDS)
        except TimeoutError:
            raise DataChanged(_BEING_ASKED) from None

    def _look(self, table: str, watch: _Watch, looking: Future[Finding]) -> Finding:
        try:
            finding = self._loaded.look(table, watch.state)
        except BaseException as error:
            with self._lock:
                watch.looking = None
            # Whoever asked tells of a malformed answer; those who wait only learn that nothing is known.
            looking.set_exception(error if isinstance(error, GrisError) else DataChanged(_BEING_ASKED))
            raise
        with self._lock:
            if finding.problem and finding != watch.finding:
                log.warning("table %s: %s %s", table, finding.problem, ", ".join(finding.servers))
            watch.finding, watch.looked_at, watch.looking = finding, time.monotonic(), None
            if finding.evidence is Evidence.NONE:
                watch.missing_at = watch.looked_at
        looking.set_result(finding)
        return finding

    def _usable_at(self, watch: _Watch, finding: Finding, now: float) -> float:
        match finding.evidence:
            case Evidence.NONE:
                return float("inf")
            case Evidence.EVERY_REPLICA:
                return _known_to_brokers_at(watch)
            case Evidence.SOME_REPLICAS:
                return max(_known_to_brokers_at(watch), self._settled_at(watch, now))

    def _settled_at(self, watch: _Watch, now: float) -> float:
        """Return when even a replica that nobody has seen has loaded what was replaced.

        Of a segment whose name is new no replica can hold another content.
        """
        seen = now if watch.replaced_at is None else watch.replaced_at + self._settle_seconds
        replaced_at = watch.state.replaced_at
        if not replaced_at:
            return seen
        settled = watch.first_seen + self._settle_seconds
        age = time.time() - replaced_at
        # A connector that starts must not wait for what happened long ago.
        by_clock = now + self._settle_seconds + CLOCK_SECONDS - age if age >= 0 else settled
        return max(seen, min(settled, by_clock))


def _are_same(one: TableState, other: TableState) -> bool:
    return one is other or one.segments == other.segments


def _next(before: _Watch | None, state: TableState) -> _Watch:
    now = time.monotonic()
    if before is None:
        return _Watch(state, now, is_change=False, replaced_at=None)
    replaced_at = now if state.replaces(before.state) else before.replaced_at
    return _Watch(state, now, is_change=True, replaced_at=replaced_at)


def _known_to_brokers_at(watch: _Watch) -> float:
    if watch.missing_at is not None:
        # Brokers learn of a segment only when it is loaded.
        return watch.missing_at + BROKER_SECONDS
    is_young = abs(time.time() - watch.state.changed_at) < YOUNG_SECONDS
    # Where replaced segments are kept, they may have been replaced just now by others that came long ago.
    is_new = watch.is_change or is_young or not watch.state.is_entire
    return watch.first_seen + BROKER_SECONDS if is_new else watch.first_seen
