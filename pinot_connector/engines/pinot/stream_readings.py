"""What was read of a table that takes in a stream. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pinot_connector.engines.base import ClosedStream
from pinot_connector.engines.pinot.table_state import TableState


@dataclass(frozen=True)
class StreamSegments:
    """The segments of a real-time part, and on which servers each of them may answer."""

    committed: Mapping[str, frozenset[str]]
    consuming: Mapping[str, frozenset[str]]

    @property
    def names(self) -> frozenset[str]:
        """The names of all of them."""
        return frozenset({*self.committed, *self.consuming})


@dataclass(frozen=True)
class Boundary:
    """The last value of the time column for which the offline part is asked."""

    value: int

    def needs_offline(self, stream: ClosedStream) -> bool:
        """Returns whether a question needs the offline part."""
        return stream.start <= self.value

    def needs_real_time(self, stream: ClosedStream) -> bool:
        """Returns whether a question needs the real-time part."""
        return self.value + 1 < stream.end


@dataclass(frozen=True)
class OfflineReading:
    """What was known of a table's offline part; `use` as in `Controller.use`; `boundary` None: the part is empty."""

    state: TableState
    use: int
    boundary: Boundary | None


@dataclass(frozen=True)
class StreamReading:
    """What was known of a table at one time; `offline` None: it has no offline part."""

    segments: StreamSegments
    offline: OfflineReading | None = None
