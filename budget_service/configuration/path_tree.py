"""The paths of `budget.yaml` as a tree, so that no look-up takes longer because there are many of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from budget_service.ledger.values import ANY


class PathTree:
    """Paths in which `*` stands for any one segment, and the number of each: where it stands among them.

    `repeated` is the number of the first one that stands there for the second time, None if none does.
    """

    __slots__ = ("_below", "_number", "repeated")

    def __init__(self, paths: Iterable[Sequence[str]] = ()) -> None:
        self._below: dict[str, PathTree] = {}
        self._number: int | None = None
        self.repeated: int | None = None
        for number, path in enumerate(paths):
            node = self
            for segment in path:
                if segment not in node._below:
                    node._below[segment] = PathTree()
                node = node._below[segment]
            if node._number is not None and self.repeated is None:
                self.repeated = number
            node._number = number

    def matching(self, path: Sequence[str]) -> list[int]:
        """Return the numbers of the paths that match this one, which has no `*`, in their order."""
        return sorted(node._number for node in self._reached(path) if node._number is not None)

    def leads_to(self, path: Sequence[str]) -> bool:
        """Return whether a path matches this one, which has no `*`, or begins with such a match."""
        return bool(self._reached(path))

    def _reached(self, path: Sequence[str]) -> list[PathTree]:
        # At most twice as many with each segment: what is written out, and what any name matches.
        found = [self]
        for segment in path:
            found = [node._below[each] for node in found for each in (segment, ANY) if each in node._below]
        return found
