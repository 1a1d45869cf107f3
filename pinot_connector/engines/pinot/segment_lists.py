"""What the controller says of the segments that it keeps of a table: their checksums, rows and times."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

from pinot_connector.engines.pinot.controller_http import ControllerHttp
from pinot_connector.engines.pinot.table_names import path_of, path_of_offline_part
from pinot_connector.engines.pinot.table_state import Segment, TableState
from pinot_connector.errors import DataChanged


class SegmentList(Protocol):
    """One way to read them, by one request where nothing has changed. What malformed answers lead to is raised."""

    def read(self, table: str) -> Mapping[str, Any]:
        """Return what the first request tells, by the names of the segments."""
        ...

    def segments(
        self, table: str, listed: Mapping[str, Any], names: Iterable[str], known: Mapping[str, Segment]
    ) -> Mapping[str, Segment]:
        """Return the segments of these names, all of which `read` has listed.

        `known` is what was known of the table before.

        Raises:
            DataChanged: they were listed as something else.
        """
        ...

    def is_unchanged(self, table: str, state: TableState) -> bool:
        """Tell whether the controller keeps these segments and no others."""
        ...


@dataclass(frozen=True)
class _Parsed:
    body: bytes
    segments: Mapping[str, Segment]


class DescribedSegments:
    """Reads all of all segments by one request, as it stands in ZooKeeper: Pinot 1.0 and later. Thread-safe."""

    def __init__(self, http: ControllerHttp) -> None:
        self._http = http
        self._latest: dict[str, _Parsed] = {}

    def read(self, table: str) -> Mapping[str, Segment]:
        """See `SegmentList`; a segment that is being uploaded and has no checksum yet is left out."""
        reply = self._http.read(f"/segments/{path_of_offline_part(table)}/zkmetadata?type=OFFLINE")
        latest = self._latest.get(table)
        # Of a large table it is megabytes, and the same ones for each question.
        if latest is None or latest.body != reply.body:
            described = {
                name: Segment.described(fields)
                for name, fields in reply.json().items()
                if "segment.crc" in fields
            }
            latest = self._latest[table] = _Parsed(reply.body, described)
        return latest.segments

    def segments(
        self, table: str, listed: Mapping[str, Any], names: Iterable[str], known: Mapping[str, Segment]
    ) -> Mapping[str, Segment]:
        """See `SegmentList`."""
        return {name: listed[name] for name in names}

    def is_unchanged(self, table: str, state: TableState) -> bool:
        """See `SegmentList`."""
        return self.read(table) == state.segments


class ChecksummedSegments:
    """Reads the list of checksums, and asks about each segment by itself: Pinot before 1.0. Thread-safe."""

    def __init__(self, http: ControllerHttp, threads: Executor) -> None:
        self._http = http
        self._threads = threads
        self._turns = itertools.count()

    def read(self, table: str) -> Mapping[str, str]:
        """See `SegmentList`: the checksums."""
        listed: Mapping[str, str] = self._http.read(f"/segments/{path_of_offline_part(table)}/crc").json()
        return listed

    def segments(
        self, table: str, listed: Mapping[str, Any], names: Iterable[str], known: Mapping[str, Segment]
    ) -> Mapping[str, Segment]:
        """See `SegmentList`; asks about those that are new.

        And about one that is known, another one each time: the controller goes on to give the checksums of a table that
        was removed for one that was made again with segments of the same names.
        """
        checksums = {name: listed[name] for name in names}
        kept = {
            name: known[name] for name in checksums if name in known and known[name].crc == checksums[name]
        }
        asked = [name for name in checksums if name not in kept]
        if kept:
            asked.append(sorted(kept)[next(self._turns) % len(kept)])
        described = self._threads.map(lambda name: self._describe(table, name, checksums[name]), asked)
        return kept | dict(zip(asked, described, strict=True))

    def is_unchanged(self, table: str, state: TableState) -> bool:
        """See `SegmentList`."""
        return self.read(table) == state.checksums

    def _describe(self, table: str, name: str, crc: str) -> Segment:
        path = f"/segments/{path_of_offline_part(table)}/{path_of(name)}/metadata"
        segment = Segment.described(self._http.read(path).json())
        if segment.crc != crc:
            raise DataChanged("the table changed while it was looked at")
        return segment
