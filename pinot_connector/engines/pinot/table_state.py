"""The state of a table: the segments that a whole answer covers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Segment:
    """One segment as the controller describes it; times are in seconds since 1970.

    `replaced_at` is when another segment was last replaced by this one, under its name; 0: never.
    """

    crc: str
    documents: int
    changed_at: float
    replaced_at: float = 0.0

    @classmethod
    def described(cls, fields: Mapping[str, str]) -> Segment:
        """Reads the controller's description of a segment.

        Raises:
            KeyError: a field is missing.
            ValueError: a number is none.
        """
        pushed, refreshed = (
            max(int(fields.get(f"segment.{event}.time") or 0), 0) / 1000 for event in ("push", "refresh")
        )
        documents = int(fields["segment.total.docs"])
        return cls(str(fields["segment.crc"]), documents, max(pushed, refreshed), refreshed)


@dataclass(frozen=True)
class TableState:
    """The segments that a whole answer covers; `is_entire`: the controller keeps no others of this table."""

    segments: Mapping[str, Segment]
    is_entire: bool = True

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

    @property
    def replaced_at(self) -> float:
        """When a segment was last replaced by another of its name; 0: never."""
        return max((segment.replaced_at for segment in self.segments.values()), default=0.0)

    def replaced_since(self, earlier: TableState) -> float:
        """Returns the same of the segments alone that an earlier state does not hold as they are."""
        changed = (
            segment for name, segment in self.segments.items() if earlier.segments.get(name) != segment
        )
        return max((segment.replaced_at for segment in changed), default=0.0)
