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
from dataclasses import dataclass
from typing import Any

from pinot_connector.engines.base import ClosedStream
from pinot_connector.engines.pinot.answer import Coverage
from pinot_connector.engines.pinot.columns import PinotColumn
from pinot_connector.engines.pinot.stream_readings import Boundary, OfflineReading, StreamSegments
from pinot_connector.errors import EngineRefused, EngineUnavailable, IncompleteAnswer

_PARTIAL = "Pinot answered on part of the data"
_SECOND = 1_000_000
_HOUR, _DAY = 3600 * _SECOND, 86_400 * _SECOND
_MICROSECONDS = {
    "DAYS": _DAY,
    "HOURS": _HOUR,
    "MINUTES": 60 * _SECOND,
    "SECONDS": _SECOND,
    "MILLISECONDS": 1000,
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
    stream: ClosedStream, config: Mapping[str, Any], column: PinotColumn | None, now: float
) -> None:
    """Refuses a question that reaches back further than a part is sure to keep its rows.

    Pinot removes a segment whose last row is older than the retention. So it is one late row, of one member, that
    decides whether older rows beside it are still there: only what is younger by itself is there for certain.

    Args:
        stream: what the question needs.
        config: the configuration of the part.
        column: the time column; None: the table has none of this name.
        now: seconds since 1970.

    Raises:
        EngineRefused: it does, or the configuration cannot be read.
    """
    kept = _kept_since(config, column, stream, now)
    if kept is not None and _day_of(stream.start, kept.step) < kept.since:
        raise EngineRefused(
            "the question reaches back further than the table's retention (segmentsConfig.retentionTimeValue), where "
            "one late row decides which older ones are still there: ask for a time range that begins later"
        )


def require_joined(
    boundary: Boundary,
    stream: ClosedStream,
    config: Mapping[str, Any],
    column: PinotColumn | None,
    now: float,
) -> None:
    """Refuses a question for which the real-time part may have removed rows that the offline part does not have yet.

    The boundary counts by its day: which day it is in follows from what was pushed, and not from its last row.

    Args:
        boundary: where the table is divided.
        stream: what the question needs.
        config: the configuration of the real-time part.
        column: the time column; None: the table has none of this name.
        now: seconds since 1970.

    Raises:
        EngineUnavailable: rows between the two parts may be gone.
        EngineRefused: the configuration cannot be read.
    """
    kept = _kept_since(config, column, stream, now) if boundary.needs_real_time(stream) else None
    if kept is not None and _day_of(max(stream.start, boundary.value + 1), kept.step) < kept.since:
        raise EngineUnavailable(
            "the table's offline part is further behind than the retention of its real-time part reaches, so rows "
            "between them may be gone; ask the operator"
        )


@dataclass(frozen=True)
class _Retained:
    """Rows since `since` are kept, in microseconds since 1970; a time column counts in `step` microseconds."""

    since: float
    step: int


def _kept_since(
    config: Mapping[str, Any], column: PinotColumn | None, stream: ClosedStream, now: float
) -> _Retained | None:
    """Returns since when a part keeps all rows; None: for ever."""
    segments = config.get("segmentsConfig") or {}
    unit, value = segments.get("retentionTimeUnit"), segments.get("retentionTimeValue")
    if not unit or not value:
        return None
    length = _MICROSECONDS.get(str(unit).upper())
    step = _step_of(column)
    is_by_column = segments.get("timeColumnName", stream.time_column) == stream.time_column
    if step is None or length is None or not str(value).isdecimal() or not is_by_column:
        raise EngineRefused(
            "the retention of the table, or the unit of its time column, is not known, or is not of the policy's time "
            "column (segmentsConfig)"
        )
    # Clocks may differ, and time goes on while the question runs.
    return _Retained(now * _SECOND - int(value) * length + _HOUR, step)


def _step_of(column: PinotColumn | None) -> int | None:
    """Returns how many microseconds one step of a time column is in a question; None: it is not known."""
    if column is None:
        return None
    if column.type == "TIMESTAMP":
        return 1
    found = _FORMAT.fullmatch((column.format or "").upper())
    return _MICROSECONDS.get(found[1] or found[2]) if found else None


def _day_of(value: int, step: int) -> int:
    return value * step // _DAY * _DAY


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
