"""How a broker divides a table between its offline and its real-time part, and what an answer then covers.

Pinot asks the offline part for times up to a boundary and the real-time part for those after it, and so counts a row
once that is in both. It puts the boundary one day before the last row of the offline part, or one hour. So each row
with a later time moves it, and what the offline part lacks below it is in no answer. That it lacks nothing is a promise
of the policy (`offline_part: whole_days`); under it, the counts do not depend on where the boundary is.

Pinot does not ask a part at all that cannot have rows for a question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pinot_connector.engines.base import ClosedStream
from pinot_connector.engines.pinot.answer import Coverage
from pinot_connector.engines.pinot.columns import PinotColumn
from pinot_connector.engines.pinot.stream_readings import Boundary, OfflineReading, StreamSegments
from pinot_connector.errors import EngineRefused, EngineUnavailable, IncompleteAnswer

_PARTIAL = "Pinot answered on part of the data"
_DAY = 86_400_000
_MILLISECONDS = {
    "DAYS": _DAY,
    "HOURS": 3_600_000,
    "MINUTES": 60_000,
    "SECONDS": 1000,
    "MILLISECONDS": 1,
}
_FORMAT = re.compile(r"1:([A-Z]+):EPOCH|EPOCH\|([A-Z]+)(?:\|1)?")
_NUMBER = re.compile(r"-?[0-9]{1,18}", re.ASCII)


def boundary_of(shown: Any, stream: ClosedStream) -> Boundary | None:
    """Returns the boundary that a broker tells.

    Raises:
        EngineRefused: it is of another column than the policy's, or not a number.
    """
    if shown is None:
        return None
    if shown["timeColumn"] != stream.time_column:
        raise EngineRefused(
            f"Pinot divides the table between its two parts by the column {shown['timeColumn']}, and the policy's time "
            f"column is {stream.time_column}: expected the same"
        )
    if not _NUMBER.fullmatch(str(shown["timeValue"])):
        raise EngineRefused(
            f"column {stream.time_column}: expected a number since 1970 (EPOCH) for a table of Pinot with two parts"
        )
    return Boundary(int(shown["timeValue"]))


def require_retained(
    boundary: Boundary,
    stream: ClosedStream,
    config: Mapping[str, Any],
    column: PinotColumn,
    now: float,
) -> None:
    """Refuses a question for which the real-time part may have removed rows by its retention.

    It removes a segment whose last row is older than the retention, so no row that is younger. The boundary counts by
    its day: which day it is in follows from what was pushed, and not from its last row.

    Args:
        boundary: where the table is divided.
        stream: what the question needs.
        config: the configuration of the real-time part.
        column: the time column.
        now: seconds since 1970.

    Raises:
        EngineUnavailable: rows between the two parts may be gone.
        EngineRefused: the configuration cannot be read.
    """
    segments = config.get("segmentsConfig") or {}
    unit, value = segments.get("retentionTimeUnit"), segments.get("retentionTimeValue")
    if not unit or not value or not boundary.needs_real_time(stream):
        return
    found = _FORMAT.fullmatch((column.format or "").upper())
    step = _MILLISECONDS.get((found[1] or found[2]) if found else "")
    length = _MILLISECONDS.get(str(unit).upper())
    if step is None or length is None or not str(value).isdecimal():
        raise EngineRefused(
            "the retention of the table's real-time part, or the unit of its time column, is not known"
        )
    first = max(stream.start, boundary.value + 1) * step // _DAY * _DAY
    if first < now * 1000 - int(value) * length:
        raise EngineUnavailable(
            "the table's offline part is further behind than the retention of its real-time part reaches, so rows "
            "between them may be gone; ask the operator"
        )


def require_whole_parts(
    coverage: Coverage, segments: StreamSegments, offline: OfflineReading, stream: ClosedStream
) -> None:
    """Refuses an answer of two parts that leaves out a segment of one that the question needs.

    Raises:
        IncompleteAnswer: it does.
    """
    documents, boundary = offline.state.documents, offline.boundary
    total, most = sum(documents), len(documents)
    fewest, streamed = most - documents.count(0), len(segments.names)
    queried, is_fresh = coverage.segments_queried, coverage.consuming == len(segments.consuming)
    if coverage.segments_pruned:
        raise IncompleteAnswer(_PARTIAL)
    if fewest + streamed <= queried <= most + streamed and is_fresh and coverage.documents >= total:
        return
    may_lack_stream = boundary is not None and not boundary.needs_real_time(stream)
    if (
        may_lack_stream
        and fewest <= queried <= most
        and not coverage.consuming
        and coverage.documents == total
    ):
        return
    may_lack_offline = boundary is None or not boundary.needs_offline(stream)
    if not (may_lack_offline and queried == streamed and is_fresh):
        raise IncompleteAnswer(_PARTIAL)
