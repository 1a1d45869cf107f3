"""Remembers where streams ended once a period was closed."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from pinot_connector.engines.pinot.stream_segments import Offsets

_MOST_REMEMBERED = 16


@dataclass(frozen=True)
class _Ends:
    """Where a stream ended after what lies before `closed` was closed."""

    closed: int
    offsets: Offsets


class StreamEnds:
    """For each table, offsets that lie behind every row of a closed period. Thread-safe.

    A question that sees rows before `end` is translated only once that period is closed, so an end of the stream that
    is read for such a question lies behind all of its rows that came in time, and behind those of earlier periods. It
    is read once for each period: what comes later does not count, so a partition that is always some rows behind is
    complete all the same, and one that stands still is complete at once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._ends: dict[tuple[str, str], list[_Ends]] = {}

    def targets(self, table: str, time_column: str, end: int, present: Offsets) -> Offsets:
        """Returns the first offsets that were read for this period or a later one; if there are none, those of now.

        Args:
            table: the table.
            time_column: the column in whose values periods are; a policy may come to name another one.
            end: its first value that the question does not see.
            present: where the stream ends now.
        """
        with self._lock:
            known = self._ends.setdefault((table, time_column), [])
            for each in known:
                if each.closed >= end:
                    return each.offsets
            # Later periods come later, so this one is after all that are known.
            known.append(_Ends(end, present))
            del known[:-_MOST_REMEMBERED]
            return present
