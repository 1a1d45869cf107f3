"""What a whole answer of a table covers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Segment:
    """One segment as the controller describes it; times are in seconds since 1970."""

    crc: str
    documents: int
    changed_at: float


@dataclass(frozen=True)
class TableState:
    """The segments that a whole answer covers."""

    segments: Mapping[str, Segment]

    @cached_property
    def data_version(self) -> str:
        """A hash over names and checksums, which changes whenever the content does."""
        names = json.dumps(sorted((name, segment.crc) for name, segment in self.segments.items()))
        return f"pinot:{hashlib.sha256(names.encode()).hexdigest()}"

    @cached_property
    def checksums(self) -> Mapping[str, str]:
        """The checksum of each segment."""
        return {name: segment.crc for name, segment in self.segments.items()}

    @cached_property
    def documents(self) -> list[int]:
        """The number of documents of each segment, the smallest first."""
        return sorted(segment.documents for segment in self.segments.values())

    @property
    def changed_at(self) -> float:
        """When the youngest segment was made or replaced."""
        return max((segment.changed_at for segment in self.segments.values()), default=0.0)
