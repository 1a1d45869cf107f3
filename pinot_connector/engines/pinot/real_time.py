"""Answers questions about closed periods of tables that take in a stream.

Such a table has no version: a consuming segment has no checksum, and its replicas hold different rows. But the rows of
a closed period are fixed once all of them are in. So an answer counts if the real-time part was whole, and had been
taken in up to where the stream ended after the period was closed, both before the query and after it, with the same
segments. Whether this holds depends on whole segments and partitions. One member's row has no part in it but the time
that Pinot takes to index it.

A table that has an offline part too is divided between the two by Pinot (`time_boundary`). Its offline part has to have
one version, as that of any other table, and the boundary must not move, from before the query until after it.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from pinot_connector.engines.base import ClosedStream, CompleteBy, EngineAnswer, EngineQuery
from pinot_connector.engines.pinot.answer import Coverage, coverage_in, coverage_of, judge, require_all
from pinot_connector.engines.pinot.broker import Broker, Deadline
from pinot_connector.engines.pinot.controller import Controller, only_our_errors
from pinot_connector.engines.pinot.controller_http import ControllerHttp
from pinot_connector.engines.pinot.pruning import may_be_pruned, plain_count
from pinot_connector.engines.pinot.replaced_rows import require_closed_rows
from pinot_connector.engines.pinot.routes import LATE_BROKER, Routes, routes_query
from pinot_connector.engines.pinot.stream_ends import StreamEnds
from pinot_connector.engines.pinot.stream_readings import (
    Boundary,
    OfflineReading,
    StreamReading,
    StreamSegments,
)
from pinot_connector.engines.pinot.stream_segments import consumed, require_reached, segments_of
from pinot_connector.engines.pinot.table_names import offline_part, path_of, real_time_part
from pinot_connector.engines.pinot.table_state import TableState
from pinot_connector.engines.pinot.time_boundary import (
    boundary_of,
    require_joined,
    require_retained,
    require_whole_parts,
)
from pinot_connector.engines.pinot.version_readiness import VERSION_TIMEOUT_SECONDS
from pinot_connector.errors import DataChanged, EngineRefused, EngineUnavailable, IncompleteAnswer

_TRIES = 3
_READS_AT_ONCE = 8
_PAUSE_SECONDS = 0.25
_CHANGED = "a segment of the table's stream was completed or moved while the question ran; ask again"
_MOVED = "the offline part of the table changed while the question ran; ask again"
_PARTIAL = "Pinot answered on part of the data"
_OTHER_BROKERS = "several brokers stand behind Pinot's address, and the one that answered was not met again"


@dataclass
class _Routed:
    """The brokers that have shown that they ask for these segments and no others."""

    segments: StreamSegments
    brokers: frozenset[str] = frozenset()


class RealTime:
    """Asks the broker about tables with a real-time part. Thread-safe.

    Args:
        controller: knows the tables.
        http: the same controller.
        broker: the broker.
    """

    def __init__(self, controller: Controller, http: ControllerHttp, broker: Broker) -> None:
        self._controller = controller
        self._http = http
        self._broker = broker
        self._threads = ThreadPoolExecutor(_READS_AT_ONCE, thread_name_prefix="pinot-stream")
        self._offline_routes = Routes(broker.ask)
        self._ends = StreamEnds()
        self._routed: dict[str, _Routed] = {}
        self._refused_since: dict[str, float] = {}

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown()

    def answer(
        self, query: EngineQuery, stream: ClosedStream, data_version: str, deadline: Deadline
    ) -> EngineAnswer:
        """Returns the answer of a broker that had shown which segments it asks for.

        Raises:
            DataChanged: not every row of the period is in, or a segment is being completed, moved or loaded.
            IncompleteAnswer: Pinot reports a partial answer, or it has other columns or types, or too many rows.
            EngineUnavailable: Pinot cannot be reached, or took too long.
            EngineRefused: Pinot refused the query, or does not report what the policy relies on.
        """
        self._require_askable(query, stream)
        for _ in range(_TRIES):
            reading = self._when_in(query.table, stream, deadline)
            if not self._brokers(query.table, reading.segments):
                # That scans the table, so what was read before is no longer of the present.
                self._learn(query.table, reading.segments, deadline)
                continue
            # A server that died and came back may lack rows until it has taken them in again, so nothing is asked
            # twice after one reading.
            answer = judge(self._broker.ask_once(query.sql, deadline), query, data_version)
            coverage = coverage_in(answer)
            if not self._knows_offline(query.table, reading.offline, coverage.broker):
                self._learn_offline(query.table, reading.offline, coverage.broker, deadline)
            elif coverage.broker in self._brokers(query.table, reading.segments):
                return replace(answer, coverage=replace(coverage, stream=reading))
            else:
                self._learn(query.table, reading.segments, deadline)
        raise EngineUnavailable(_OTHER_BROKERS)

    def confirm(
        self, query: EngineQuery, stream: ClosedStream, coverage: Coverage, deadline: Deadline
    ) -> None:
        """Returns if the segments were the same after the query as before, all rows were in, and none was left out.

        Raises:
            DataChanged: a segment was completed or moved meanwhile, or rows are missing now.
            IncompleteAnswer: the answer is partial.
            EngineUnavailable, EngineRefused: as for `answer`.
        """
        before, table = coverage.stream, query.table
        segments = self._segments(table, stream)
        if before is None or segments != before.segments:
            raise DataChanged(_CHANGED)
        if before.offline is None:
            require_whole_stream(coverage, segments)
            return
        offline = self._offline_after(table, stream, before.offline, deadline)
        if not self._knows_offline(table, offline, coverage.broker):
            raise DataChanged(LATE_BROKER)
        require_whole_parts(coverage, segments, offline, stream)

    def _require_askable(self, query: EngineQuery, stream: ClosedStream) -> None:
        """Refuses what no waiting makes right."""
        parts = self._controller.parts(query.table)
        if parts.offline is not None and not stream.offline_days_are_whole:
            raise EngineRefused(
                "the table has an offline part too; a policy that states time.offline_part: whole_days promises that "
                "it holds all rows of the stream up to its last day, and one that names "
                f"{offline_part(query.table)} asks it alone"
            )
        require_closed_rows(parts, self._controller.key(query.table), stream)
        if may_be_pruned(query, self._controller.pruning_columns(query.table)):
            raise EngineRefused(
                "Pinot's broker leaves out segments of the table by a column that the question names "
                "(routing.segmentPrunerTypes), which cannot be checked for a table that takes in a stream"
            )
        if parts.offline is None:
            self._require_retained(query.table, stream, None)

    def _when_in(self, table: str, stream: ClosedStream, deadline: Deadline) -> StreamReading:
        """Returns a reading in which every row is in, after a short wait if that is needed.

        Only the first questions wait: later ones are refused at once, because each one that waits holds a thread.
        """
        while True:
            try:
                offline = self._offline(table, stream, deadline)
                reading = StreamReading(self._segments(table, stream), offline)
            except DataChanged:
                since = self._refused_since.setdefault(table, time.monotonic())
                if time.monotonic() - since > VERSION_TIMEOUT_SECONDS:
                    raise
                time.sleep(_PAUSE_SECONDS)
            else:
                self._refused_since.pop(table, None)
                return reading

    @only_our_errors
    def _segments(self, table: str, stream: ClosedStream) -> StreamSegments:
        """Returns the segments of the real-time part, in which every row of the period is."""
        path = path_of(table)
        report = self._threads.submit(self._read, f"/tables/{path}/consumingSegmentsInfo")
        external = self._threads.submit(self._read, f"/tables/{path}/externalview")
        ideal = self._read(f"/tables/{path}/idealstate")
        segments = segments_of(
            ideal.get("REALTIME") or {},
            external.result().get("REALTIME") or {},
            every_replica=self._controller.parts(table).replaces_rows,
        )
        by_offsets = stream.complete_by is CompleteBy.OFFSETS
        found = consumed(segments, report.result(), with_ends=by_offsets)
        if by_offsets:
            require_reached(found, self._ends.targets(table, stream.time_column, stream.end, found.ends))
        return segments

    def _offline(self, table: str, stream: ClosedStream, deadline: Deadline) -> OfflineReading | None:
        """Returns what is known of the offline part, whose segments a broker has shown that it asks for."""
        if self._controller.parts(table).offline is None:
            return None
        part = offline_part(table)
        self._controller.require_exact_counts(part)
        state = self._controller.ready_state(part)
        use = self._controller.use(part)
        self._offline_routes.learned(part, state, frozenset(), deadline)
        return self._divided(table, stream, state, use, deadline)

    def _knows_offline(self, table: str, offline: OfflineReading | None, broker: str) -> bool:
        """Returns whether a broker has shown that it asks for these segments of the offline part, if there is one."""
        return offline is None or broker in self._offline_routes.known(offline_part(table), offline.state)

    def _learn_offline(
        self, table: str, offline: OfflineReading | None, broker: str, deadline: Deadline
    ) -> None:
        if offline is not None:
            self._offline_routes.learned(offline_part(table), offline.state, frozenset({broker}), deadline)

    def _offline_after(
        self, table: str, stream: ClosedStream, before: OfflineReading, deadline: Deadline
    ) -> OfflineReading:
        """Returns the same after the query, if nothing has changed."""
        state = self._controller.present_state(offline_part(table), before.use)
        after = self._divided(table, stream, state, before.use, deadline)
        if after != before:
            raise DataChanged(_MOVED)
        return after

    @only_our_errors
    def _divided(
        self, table: str, stream: ClosedStream, state: TableState, use: int, deadline: Deadline
    ) -> OfflineReading:
        part = offline_part(table)
        if 0 in state.documents:
            # Some brokers do not ask for a segment without rows; then their number does not show whether another one,
            # with rows, was left out.
            require_all(coverage_of(self._broker.ask(plain_count(part), deadline)), state)
        boundary = boundary_of(self._broker.time_boundary(table, deadline), stream)
        if boundary is None:
            if any(state.documents):
                raise DataChanged(LATE_BROKER)
        else:
            self._require_retained(table, stream, boundary)
        return OfflineReading(state, use, boundary)

    def _require_retained(self, table: str, stream: ClosedStream, boundary: Boundary | None) -> None:
        """Refuses a question for which a part may have removed rows by its retention."""
        parts, column = self._controller.parts(table), self._controller.columns(table).get(stream.time_column)
        now = time.time()
        if boundary is None:
            require_retained(stream, parts.real_time or {}, column, now)
            return
        if boundary.needs_offline(stream):
            require_retained(stream, parts.offline or {}, column, now)
        require_joined(boundary, stream, parts.real_time or {}, column, now)

    def _read(self, path: str) -> Any:
        return self._http.read(path).json()

    def _brokers(self, table: str, segments: StreamSegments) -> frozenset[str]:
        """Returns the brokers that have shown that they ask for these segments."""
        known = self._routed.get(table)
        return known.brokers if known is not None and known.segments == segments else frozenset()

    def _learn(self, table: str, segments: StreamSegments, deadline: Deadline) -> None:
        """Has a broker show which segments of the real-time part it asks for."""
        part = real_time_part(table)
        query = routes_query(part, len(segments.names))
        response = self._broker.ask(query.sql, deadline)
        answer = judge(response, query, part)
        coverage = coverage_of(response)
        if not set(answer.elements[0]) <= segments.names:
            raise DataChanged(LATE_BROKER)
        try:
            require_whole_stream(coverage, segments)
        except IncompleteAnswer:
            # It learns of a segment that has just been completed, or begun, with a delay.
            raise DataChanged(LATE_BROKER) from None
        self._routed[table] = _Routed(segments, self._brokers(table, segments) | {coverage.broker})


def require_whole_stream(coverage: Coverage, segments: StreamSegments) -> None:
    """Refuses an answer of a real-time part that leaves out a segment.

    Raises:
        IncompleteAnswer: it does.
    """
    if coverage.segments_pruned or coverage.segments_queried != len(segments.names):
        raise IncompleteAnswer(_PARTIAL)
    if coverage.consuming != len(segments.consuming):
        raise IncompleteAnswer(_PARTIAL)
