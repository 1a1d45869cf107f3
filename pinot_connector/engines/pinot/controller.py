"""Reads from Pinot's controller which segments a whole answer of a table covers.

A broker that has noticed that a server is gone leaves out its segments without reporting it. Only the controller knows
what should have been there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from pinot_connector.engines.base import EngineQuery
from pinot_connector.engines.pinot.columns import (
    PinotColumn,
    columns_of,
    key_of,
    require_readable,
    require_summable,
)
from pinot_connector.engines.pinot.configuration import (
    TableParts,
    lists_segments,
    parts_of,
    require_exact_cluster,
    require_exact_table,
    require_known_version,
    require_multistage_version,
    require_short_texts,
)
from pinot_connector.engines.pinot.controller_http import UNUSABLE, ControllerHttp
from pinot_connector.engines.pinot.loaded_segments import (
    LoadedByController,
    LoadedByServers,
    LoadedSegments,
    LoadOptions,
    Replicas,
)
from pinot_connector.engines.pinot.pruning import pruning_columns
from pinot_connector.engines.pinot.segment_lists import ChecksummedSegments, DescribedSegments, SegmentList
from pinot_connector.engines.pinot.single_flight import SingleFlight
from pinot_connector.engines.pinot.table_names import path_of, real_time_refused, require_no_real_time_part
from pinot_connector.engines.pinot.table_state import TableState
from pinot_connector.engines.pinot.version_readiness import NOT_USED, VersionReadiness
from pinot_connector.errors import DataChanged, EngineUnavailable

CONFIGURATION_SECONDS = 60.0
"""How long a configuration that was found safe is trusted."""

RECENT_SECONDS = 60.0
"""How old a reading of a table's segments may be when a question begins with it."""

MOVING_SECONDS = 0.25
"""How old a reading of a version that is not in use yet may be: another may have taken its place."""

_READS_AT_ONCE = 8

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def only_our_errors(read: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Translates whatever a malformed answer leads to into one error; some proxies answer with a page of their own."""

    @wraps(read)
    def reading(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return read(*args, **kwargs)
        except (AttributeError, KeyError, TypeError, ValueError):
            pass
        # Raised outside of `except`: a parser's error holds what it parsed, and would be attached as the context.
        raise EngineUnavailable(UNUSABLE)

    return reading


@dataclass(frozen=True)
class _Reading:
    """What was read of a table, and when."""

    state: TableState
    at: float


class Controller:
    """Reads a controller. Thread-safe."""

    def __init__(self, http: ControllerHttp, options: LoadOptions) -> None:
        self._http = http
        self._threads = ThreadPoolExecutor(_READS_AT_ONCE, thread_name_prefix="pinot-controller")
        self._lock = Lock()
        self._latest: dict[str, _Reading] = {}
        self._present: dict[str, SingleFlight[TableState]] = {}
        # Servers that answer slowly must not delay questions about other tables.
        self._loading_threads = ThreadPoolExecutor(_READS_AT_ONCE, thread_name_prefix="pinot-loading")
        loaded: LoadedSegments = LoadedByController(http, self._loading_threads)
        if options.server_admin:
            loaded = LoadedByServers(http, self._loading_threads, options.server_admin_port)
        self._readiness = VersionReadiness(loaded, options.settle_seconds)
        self._described = DescribedSegments(http)
        self._checksummed = ChecksummedSegments(http, self._threads)
        self._segments: SegmentList = self._checksummed
        self._checked_at: dict[str, float] = {}
        self._columns: dict[str, Mapping[str, PinotColumn]] = {}
        self._pruning_columns: dict[str, frozenset[str]] = {}
        self._parts: dict[str, TableParts] = {}
        self._keys: dict[str, frozenset[str]] = {}

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown()
        self._loading_threads.shutdown()

    def ready_state(self, table: str) -> TableState:
        """Returns what a whole answer of the table covers, once queries see it too.

        A recent reading is good enough: every answer is compared with a new one.

        Raises:
            DataChanged: the servers go on loading it for longer than is worth waiting for.
        """
        state = self._recent_state(table)
        while (wait := self._seconds_to_wait(table, state)) > 0:
            time.sleep(wait)
            state = self.state(table)
        return state

    @only_our_errors
    def _seconds_to_wait(self, table: str, state: TableState) -> float:
        return self._readiness.seconds_to_wait(table, state, is_pruned=bool(self._pruning_columns.get(table)))

    def use(self, table: str) -> int:
        """Returns a number that stands for the use of the state that `ready_state` found, for `present_state`."""
        return self._readiness.use(table)

    def present_state(self, table: str, use: int) -> TableState:
        """Returns what a whole answer of the table covers, as the controller reports it after this call.

        It is the state that `ready_state` found the servers to answer from, in use without interruption since `use`
        returned this number, or there is an error. Calls that wait at the same time share one reading. If not every
        replica was found to have loaded the state, that reading also shows whether a server has come online since.

        If the last reading found every segment meant to be online and none replaced, only the list of segments is read
        again: a segment comes, goes or is replaced only together with its checksum. A segment that is switched off
        shows in the number of segments that an answer covers, and then `state` reads everything.

        Args:
            table: its name.
            use: the number that `use` returned before the query.

        Raises:
            DataChanged: the controller lists another state than the one in use.
        """
        with self._lock:
            reading = self._present.setdefault(table, SingleFlight(lambda: self._read_again(table)))
        state = reading.value()
        if use == NOT_USED or use != self._readiness.use(table, state):
            raise DataChanged("the table changed while the question ran")
        return state

    @only_our_errors
    def _read_again(self, table: str) -> TableState:
        latest = self._latest.get(table)
        is_entire = latest is not None and latest.state.is_entire
        if latest is not None and is_entire and self._segments.is_unchanged(table, latest.state):
            state = latest.state
        else:
            state = self.state(table)
        if self._readiness.is_provisional(table):
            external = self._read(f"/tables/{path_of(table)}/externalview")
            self._readiness.compare(table, Replicas.read({}, external))
        return state

    @only_our_errors
    def state(self, table: str) -> TableState:
        """Reads everything that determines what a whole answer of the table covers."""
        path, segments = path_of(table), self._segments
        listing = self._threads.submit(segments.read, table)
        ideal, kept = self._read_together(
            f"/tables/{path}/idealstate",
            f"/segments/{path}?type=OFFLINE&excludeReplacedSegments=true",
        )
        listed = listing.result()
        names = _online(table, ideal) & _kept(kept)
        if not names <= listed.keys():
            raise DataChanged("the table is being loaded")
        latest = self._latest.get(table)
        known = latest.state.segments if latest is not None else {}
        state = TableState(segments.segments(table, listed, names, known), names == listed.keys())
        self._readiness.saw(table, state)
        # Only the present segments are remembered, so that the memory does not grow with every reload.
        self._latest[table] = _Reading(state, time.monotonic())
        return state

    def _recent_state(self, table: str) -> TableState:
        latest = self._latest.get(table)
        if latest is not None:
            is_used = self._readiness.is_used(table, latest.state)
            recent = RECENT_SECONDS if is_used else MOVING_SECONDS
            if time.monotonic() - latest.at < recent:
                return latest.state
        return self.state(table)

    @only_our_errors
    def require_exact_counts(self, table: str) -> None:
        """Refuses a cluster or a table whose configuration makes Pinot rewrite counts; checks again once a minute."""
        if time.monotonic() - self._checked_at.get(table, float("-inf")) < CONFIGURATION_SECONDS:
            return
        require_no_real_time_part(table)
        path = path_of(table)
        version, cluster, tables, schema = self._read_together(
            "/version", "/cluster/configs", f"/tables/{path}", f"/tables/{path}/schema"
        )
        require_known_version(version)
        self._segments = self._described if lists_segments(version) else self._checksummed
        require_exact_cluster(cluster)
        require_exact_table(tables)
        require_short_texts(schema)
        self._columns[table] = columns_of(schema)
        self._keys[table] = key_of(schema)
        self._parts[table] = parts = parts_of(tables)
        self._pruning_columns[table] = frozenset().union(*map(pruning_columns, parts.configurations))
        self._checked_at[table] = time.monotonic()

    def require_exact_answer(self, query: EngineQuery) -> None:
        """Refuses a query for another schema than the table has, or where counts are rewritten."""
        self.require_exact_counts(query.table)
        require_readable(self._columns[query.table], query.reads)
        require_summable(self._columns[query.table], query.read_values)

    def columns(self, table: str) -> Mapping[str, PinotColumn]:
        """Returns the columns of a table that was found safe to ask."""
        return self._columns[table]

    def pruning_columns(self, table: str) -> frozenset[str]:
        """Returns the columns by which a broker leaves out segments of a table that was found safe to ask."""
        return self._pruning_columns[table]

    def key(self, table: str) -> frozenset[str]:
        """Returns the columns of the key by which rows of a table replace others, if they do."""
        return self._keys[table]

    def parts(self, table: str) -> TableParts:
        """Returns the parts of a table that was found safe to ask."""
        return self._parts[table]

    @only_our_errors
    def tables(self) -> frozenset[str]:
        """Returns the names of the cluster's tables, without their types."""
        return frozenset(str(name) for name in self._read("/tables")["tables"])

    @only_our_errors
    def require_multistage(self) -> None:
        """Refuses a cluster whose multi-stage engine is too old."""
        require_multistage_version(self._read("/version"))

    def _read_together(self, *paths: str) -> Iterator[Any]:
        """Reads several paths at once, because a question waits."""
        return self._threads.map(self._read, paths)

    def _read(self, path: str) -> Any:
        return self._http.read(path).json()


def _online(table: str, ideal: Any) -> set[str]:
    """Returns the segments that at least one server should serve."""
    # A real-time part without any segment is refused too: with it, the broker leaves out the last offline day.
    if ideal.get("REALTIME") is not None:
        raise real_time_refused(table)
    segments = ideal.get("OFFLINE") or {}
    return {name for name, replicas in segments.items() if "ONLINE" in replicas.values()}


def _kept(listed: Any) -> set[str]:
    """Returns the segments that no other segment has replaced."""
    return {name for tables in listed for name in tables.get("OFFLINE", ())}
