"""What Pinot's controller says about a table: which segments a whole answer covers.

A broker that has noticed that a server is gone leaves that server's segments out and says nothing. Only the
controller knows what should have been there.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from threading import Lock
from typing import Any

from pinot_connector.engines.base import EngineQuery
from pinot_connector.engines.pinot.columns import PinotColumn, columns_of, require_readable
from pinot_connector.engines.pinot.configuration import (
    require_exact_cluster,
    require_exact_table,
    require_known_version,
    require_multistage_version,
    require_short_texts,
)
from pinot_connector.engines.pinot.controller_http import ControllerHttp
from pinot_connector.engines.pinot.naming import (
    path_of,
    path_of_offline_part,
    real_time_refused,
    require_no_real_time_part,
)
from pinot_connector.engines.pinot.pruning import pruning_columns
from pinot_connector.engines.pinot.sharing import SharedReading
from pinot_connector.engines.pinot.state import Segment, TableState
from pinot_connector.errors import DataChanged, EngineRefused, EngineUnavailable

CONFIGURATION_SECONDS = 60.0
"""How long a configuration that was found safe is trusted."""

SETTLE_SECONDS = 2.0
"""How long a new version is waited for. The controller is up to a second ahead of what queries see, and a segment
that was replaced by another with as many documents would answer with its old content under the new version."""

YOUNG_SECONDS = 60.0
"""A version older than this needs no waiting; generous, for the clocks of two machines are compared."""

RECENT_SECONDS = 60.0
"""How long a reading of a table's segments may serve as the version that a question begins with."""

_UNUSABLE = "Pinot's controller gave an answer that cannot be used"

_SETTLE_ATTEMPTS = 4
_READS_AT_ONCE = 8


@dataclass(frozen=True)
class _Reading:
    """What was read of a table, when, and whether its state holds every segment that the controller keeps."""

    state: TableState
    at: float
    is_entire: bool


class Controller:
    """Reads a controller. Thread-safe."""

    def __init__(self, http: ControllerHttp) -> None:
        self._http = http
        self._threads = ThreadPoolExecutor(_READS_AT_ONCE, thread_name_prefix="pinot-controller")
        self._lock = Lock()
        self._latest: dict[str, _Reading] = {}
        self._present: dict[str, SharedReading[TableState]] = {}
        self._first_seen: dict[str, tuple[str, float]] = {}
        self._checked_at: dict[str, float] = {}
        self._columns: dict[str, Mapping[str, PinotColumn]] = {}
        self._pruning_columns: dict[str, frozenset[str]] = {}
        self._turns = itertools.count()

    def close(self) -> None:
        """Give back the threads."""
        self._threads.shutdown()

    def settled_state(self, table: str) -> TableState:
        """Return what a whole answer of the table covers, once queries see it too.

        What was read last is good enough while it is recent: every answer is compared with a new reading.
        """
        for _ in range(_SETTLE_ATTEMPTS):
            state = self._recent_state(table)
            wait = self._seconds_to_settle(table, state)
            if wait <= 0:
                return state
            time.sleep(wait)
            self._latest.pop(table, None)
        raise DataChanged("the table keeps changing")

    def present_state(self, table: str) -> TableState:
        """Return what a whole answer of the table covers, as the controller says it after this call.

        Calls that wait at the same time share one reading. Where the last reading found that every segment was to be
        online and none replaced, it is the checksums alone that are read again: a segment comes, goes or is replaced by
        others only together with its checksum. That a segment is switched off tells by the number that an answer
        covers, and then `state` reads all.
        """
        with self._lock:
            reading = self._present.setdefault(table, SharedReading(lambda: self._read_again(table)))
        return reading.value()

    def _read_again(self, table: str) -> TableState:
        latest = self._latest.get(table)
        if latest is not None and latest.is_entire:
            with _only_our_errors():
                if self._read(_checksums(table)) == latest.state.checksums:
                    return latest.state
        return self.state(table)

    def state(self, table: str) -> TableState:
        """Read all that tells what a whole answer of the table covers."""
        path = path_of(table)
        with _only_our_errors():
            ideal, kept, checksums = self._read_together(
                f"/tables/{path}/idealstate",
                f"/segments/{path}?type=OFFLINE&excludeReplacedSegments=true",
                _checksums(table),
            )
            names = _online(table, ideal) & _kept(kept)
            if not names <= checksums.keys():
                raise DataChanged("the table is being loaded")
            segments = self._segments(table, {name: checksums[name] for name in names})
        state = TableState(segments)
        # Only the present segments are remembered, so that the memory does not grow with every reload.
        self._latest[table] = _Reading(state, time.monotonic(), is_entire=names == checksums.keys())
        return state

    def _recent_state(self, table: str) -> TableState:
        latest = self._latest.get(table)
        if latest is not None and time.monotonic() - latest.at < RECENT_SECONDS:
            return latest.state
        return self.state(table)

    def require_exact_counts(self, table: str) -> None:
        """Refuse a cluster or a table whose configuration makes Pinot rewrite counts; look again once a minute."""
        if time.monotonic() - self._checked_at.get(table, float("-inf")) < CONFIGURATION_SECONDS:
            return
        require_no_real_time_part(table)
        path = path_of(table)
        with _only_our_errors():
            version, cluster, tables, schema = self._read_together(
                "/version", "/cluster/configs", f"/tables/{path}", f"/tables/{path}/schema"
            )
            require_known_version(version)
            require_exact_cluster(cluster)
            require_exact_table(tables)
            require_short_texts(schema)
            self._columns[table] = columns_of(schema)
            self._pruning_columns[table] = pruning_columns(tables["OFFLINE"])
        self._checked_at[table] = time.monotonic()

    def require_exact_answer(self, query: EngineQuery) -> None:
        """Refuse a query for another schema than the table has, or where counts are rewritten."""
        self.require_exact_counts(query.table)
        require_readable(self._columns[query.table], query.reads)

    def columns(self, table: str) -> Mapping[str, PinotColumn]:
        """Return the columns of a table that was found safe to ask."""
        return self._columns[table]

    def pruning_columns(self, table: str) -> frozenset[str]:
        """Return the columns by which a broker leaves out segments of a table that was found safe to ask."""
        return self._pruning_columns[table]

    def require_multistage(self) -> None:
        """Refuse a cluster whose multi-stage engine is too old."""
        with _only_our_errors():
            require_multistage_version(self._read("/version"))

    def _seconds_to_settle(self, table: str, state: TableState) -> float:
        now, version = time.monotonic(), state.data_version
        with self._lock:
            seen_version, seen_at = self._first_seen.get(table, (None, now))
            if seen_version != version:
                seen_at = now
                self._first_seen[table] = (version, now)
        is_young = abs(time.time() - state.changed_at) < YOUNG_SECONDS
        return seen_at + SETTLE_SECONDS - now if is_young else 0.0

    def _segments(self, table: str, checksums: Mapping[str, str]) -> Mapping[str, Segment]:
        """Return what is known of these segments, after asking about those that are new.

        And about one that is known, another one each time: the controller goes on to give the checksums of a table that
        was removed for one that was made again with segments of the same names.
        """
        latest = self._latest.get(table)
        known = latest.state.segments if latest is not None else {}
        kept = {
            name: known[name] for name in checksums if name in known and known[name].crc == checksums[name]
        }
        asked = [name for name in checksums if name not in kept]
        if kept:
            asked.append(sorted(kept)[next(self._turns) % len(kept)])
        described = self._threads.map(lambda name: self._describe(table, name, checksums[name]), asked)
        return kept | dict(zip(asked, described, strict=True))

    def _describe(self, table: str, name: str, crc: str) -> Segment:
        described = self._read(f"/segments/{path_of_offline_part(table)}/{path_of(name)}/metadata")
        times = [int(described.get(f"segment.{event}.time") or 0) for event in ("push", "refresh")]
        segment = Segment(described["segment.crc"], int(described["segment.total.docs"]), max(times) / 1000)
        if segment.crc != crc:
            raise DataChanged("the table changed while it was looked at")
        return segment

    def _read_together(self, *paths: str) -> Iterator[Any]:
        """Read several things at once, for somebody waits."""
        return self._threads.map(self._read, paths)

    def _read(self, path: str) -> Any:
        reply = self._http.get(path)
        if reply.status == HTTPStatus.NOT_FOUND:
            raise EngineRefused("Pinot has no such table")
        if not reply.is_success:
            raise EngineUnavailable(_UNUSABLE)
        return reply.json()


def _checksums(table: str) -> str:
    return f"/segments/{path_of_offline_part(table)}/crc"


@contextmanager
def _only_our_errors() -> Iterator[None]:
    """Turn whatever a malformed answer leads to into one error; some proxies answer with a page of their own."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError):
        raise EngineUnavailable(_UNUSABLE) from None


def _online(table: str, ideal: Any) -> set[str]:
    """Return the segments that at least one server should serve."""
    # A real-time part without any segment refuses too: the broker leaves out the last offline day beside it.
    if ideal.get("REALTIME") is not None:
        raise real_time_refused(table)
    segments = ideal.get("OFFLINE") or {}
    return {name for name, replicas in segments.items() if "ONLINE" in replicas.values()}


def _kept(listed: Any) -> set[str]:
    """Return the segments that no other segment has replaced."""
    return {name for tables in listed for name in tables.get("OFFLINE", ())}
