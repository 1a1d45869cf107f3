"""The segments of a table's real-time part, and how far each of its partitions has been taken in.

Pure. A partition of a stream is a row of segments: all but the last are committed and never change, and the last one is
consuming. So the part is whole if each segment is where the controller means it to be, and each consuming one has
reached the offset at which its partition ended after the period was closed.

The time of the newest row in each consuming segment (`minConsumingFreshnessTimeMs` of an answer) is no evidence. It is
the producers' clock; a segment without rows has none, and is left out of the minimum; and where a partition stands
still it would take one more row, of one member, to have an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pinot_connector.engines.pinot.loaded_segments import IN_ERROR
from pinot_connector.engines.pinot.stream_readings import StreamSegments
from pinot_connector.errors import DataChanged, EngineRefused

MOVING = "a segment of the table's stream is being completed, moved or loaded; ask again later"
NOT_CONSUMED = (
    "a partition of the table's stream is not being taken in (paused, ended or in error); ask the operator"
)
NOT_REPORTED = "a server of Pinot does not report how far it has taken in the table's stream; ask again later"
NOT_IN = "not every row of the period has been taken in from the table's stream yet; ask again later"
NO_END = (
    "Pinot does not report where the table's stream ends (it does from 0.12 on, where offsets are numbers); "
    "a policy that states complete_by: delay relies on delay_minutes instead"
)

_ONLINE, _CONSUMING, _ERROR = "ONLINE", "CONSUMING", "ERROR"

Offsets = Mapping[str, int]
"""An offset for each partition of a stream, by the partition's name."""


@dataclass(frozen=True)
class Consumed:
    """How far each partition has been taken in, by the slowest replica; `ends` is where the stream ended meanwhile."""

    current: Offsets
    ends: Offsets


def segments_of(ideal: Any, external: Any, *, every_replica: bool) -> StreamSegments:
    """Returns the segments of a real-time part if each of them is where it is meant to be.

    A replica that is not online at all may be missing, because no broker asks it; one that is in another state than is
    meant holds other rows.

    Args:
        ideal: for each segment the state that each server should have it in.
        external: for each segment the state that each server has it in.
        every_replica: whether no replica may be missing: which rows are replaced is known to a server only once it
            has all segments.

    Raises:
        DataChanged: a segment is not where it is meant to be, or no segment takes in a partition.
    """
    found: dict[str, dict[str, frozenset[str]]] = {_ONLINE: {}, _CONSUMING: {}}
    for name, replicas in ideal.items():
        meant = {server: state for server, state in replicas.items() if state in found}
        if not meant:
            continue
        states = external.get(name, {})
        if _ERROR in states.values():
            raise DataChanged(IN_ERROR)
        present = {server: state for server, state in states.items() if state in found}
        if not present or (every_replica and present != meant) or not present.items() <= meant.items():
            raise DataChanged(MOVING)
        kinds = set(meant.values())
        if len(kinds) > 1:
            raise DataChanged(MOVING)
        found[kinds.pop()][name] = frozenset(present)
    segments = StreamSegments(found[_ONLINE], found[_CONSUMING])
    partitions = {_partition_of(name) for name in segments.consuming}
    # All of them: of a partition that stopped before anything was committed, the only segment is meant to be offline.
    if not partitions or not {_partition_of(name) for name in ideal} <= {*partitions, None}:
        raise DataChanged(NOT_CONSUMED)
    return segments


def _partition_of(segment: str) -> str | None:
    """Returns the partition in the name of a segment (its table, partition, number and time); None: it was uploaded."""
    parts = segment.rsplit("__", 3)
    return parts[1] if len(parts) == 4 else None


def consumed(segments: StreamSegments, report: Any, *, with_ends: bool) -> Consumed:
    """Returns how far the consuming segments are, from the controller's answer to `consumingSegmentsInfo`.

    Args:
        segments: the segments that may answer.
        report: the answer.
        with_ends: whether it has to say where the stream ends; otherwise there are no offsets at all.

    Raises:
        DataChanged: a server does not report, or does not take in a partition.
        EngineRefused: the end of the stream is not reported, or is not a number.
    """
    # Pinot 0.11 writes the name of its field; later ones may not.
    listed = report.get("_segmentToConsumingInfoMap", report.get("segmentToConsumingInfoMap"))
    current: dict[str, int] = {}
    ends: dict[str, int] = {}
    for name, servers in segments.consuming.items():
        by_server = {each["serverName"]: each for each in listed.get(name, ())}
        for server in servers:
            if server not in by_server:
                raise DataChanged(NOT_REPORTED)
            if by_server[server]["consumerState"] != _CONSUMING:
                raise DataChanged(NOT_CONSUMED)
            if with_ends:
                _add(by_server[server], current, ends)
    if with_ends and len(current) < len(segments.consuming):
        raise DataChanged(NOT_REPORTED)
    return Consumed(current, ends)


def _add(reported: Any, current: dict[str, int], ends: dict[str, int]) -> None:
    """Adds what one server says of one segment: the least of what is taken in, and the furthest end."""
    offsets = reported.get("partitionOffsetInfo")
    if offsets is None:
        raise EngineRefused(NO_END)
    for partition, end in offsets["latestUpstreamOffsetMap"].items():
        here, there = _number(offsets["currentOffsetsMap"][partition]), _number(end)
        current[partition] = min(here, current.get(partition, here))
        ends[partition] = max(there, ends.get(partition, there))


def _number(offset: Any) -> int:
    text = str(offset)
    if not text.isascii() or not text.isdigit():
        raise EngineRefused(NO_END)
    return int(text)


def require_reached(found: Consumed, targets: Offsets) -> None:
    """Refuses a part that has not been taken in up to these offsets.

    A stream that was made anew ends before them; its present end then counts. A partition that is newer than the
    targets has no row that they are about.

    Raises:
        DataChanged: a partition is behind, or is not taken in any more.
    """
    if not targets.keys() <= found.current.keys():
        raise DataChanged(NOT_CONSUMED)
    if any(found.current[each] < min(target, found.ends[each]) for each, target in targets.items()):
        raise DataChanged(NOT_IN)
