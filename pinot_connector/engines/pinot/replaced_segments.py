"""Finds segments of a table that replaced others of the same name."""

from __future__ import annotations

from collections import defaultdict

from pinot_connector.engines.pinot.table_state import Segment, TableState


class ReplacedSegments:
    """Compares the states of one table that were seen one after the other. Not thread-safe.

    A segment may be deleted and another pushed under its name, so segments are remembered for some time after they are
    gone.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._gone_at: dict[str, dict[Segment, float]] = {}

    def replaces(self, before: TableState, state: TableState, now: float) -> bool:
        """Returns whether `state`, seen at `now`, has another segment under a name than was listed there recently."""
        self._forget(now - self._seconds)
        replaced = False
        for name, segment in before.segments.items():
            if state.segments.get(name) != segment:
                self._gone_at.setdefault(name, {})[segment] = now
        for name, segment in state.segments.items():
            # What was there before was compared when it came.
            if before.segments.get(name) != segment:
                replaced |= bool(self._gone_at.get(name, {}).keys() - {segment})
        return replaced

    def _forget(self, before: float) -> None:
        kept: dict[str, dict[Segment, float]] = defaultdict(dict)
        for name, segments in self._gone_at.items():
            for segment, gone_at in segments.items():
                if gone_at >= before:
                    kept[name][segment] = gone_at
        self._gone_at = dict(kept)
