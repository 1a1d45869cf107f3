"""Reads the segments that the controller keeps of a table: checksums, rows and times."""

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
    """One way to read them, by one request if nothing has changed. Errors from malformed answers are not caught."""

    def read(self, table: str) -> Mapping[str, Any]:
        """Returns the answer to the first request, by the names of the segments."""
        ...

    def segments(
        self, table: str, listed: Mapping[str, Any], names: Iterable[str], known: Mapping[str, Segment]
    ) -> Mapping[str, Segment]:
        """Returns the segments of these names, all of which `read` has listed.

        `known` is what was known of the table before.

        Raises:
            DataChanged: they were listed as something else.
        """
        ...

    def is_unchanged(self, table: str, state: TableState) -> bool:
        """Returns whether the controller keeps these segments and no others."""
        ...


@dataclass(frozen=True)
class _Parsed:
    body: bytes
    segments: Mapping[str, Segment]


class DescribedSegments:
    """Reads everything about all segments by one request, from ZooKeeper: Pinot 1.0 and later. Thread-safe."""

    def __init__(self, http: ControllerHttp) -> None:
        self._http = http
        self._latest: dict[str, _Parsed] = {}

    def read(self, table: str) -> Mapping[str, Segment]:
        """See `SegmentList`; a segment that is being uploaded and has no checksum yet is left out."""
        reply = self._http.read(f"/segments/{path_of_offline_part(table)}/zkmetadata?type=OFFLINE")
        latest = self._latest.get(table)
        # For a large table it is megabytes, and the same ones for each question.
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

        It also asks about one known segment, another one each time: after a table was removed and created again with
        segments of the same names, the controller still reports the old checksums.
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
