"""Finds the entries of `budget.yaml` that allow any number of accounts, and so an unlimited budget.

An entry with a `*` gives each new name its own limit. A caller that chooses names
never runs out of budget, unless a level above the first `*`, which all those accounts share, has an enforced limit.
Where all limits of new names are in mode track, nothing is refused anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Protocol

from budget_service.ledger.values import ANY, Account, Limit, Mode

LimitOf = Callable[[Account], Limit | None]


class Pattern(Protocol):
    """An entry: the paths that it matches, and what it does where a cost does not fit."""

    @property
    def path(self) -> list[str]:
        """The segments; `*` stands for any one."""

    @property
    def mode(self) -> str:
        """The value of a Mode."""


class EndlessPatterns:
    """The entries that make accounts without end unless a level that these share bounds them; by that shared path."""

    def __init__(self, entries: Sequence[Pattern]) -> None:
        enforced = _EnforcedPatterns(each.path for each in entries if each.mode == Mode.ENFORCE.value)
        self._first: dict[Account, int] = {}
        for number, entry in enumerate(entries):
            if ANY in entry.path and enforced.refuse(entry.path):
                self._first.setdefault(Account(tuple(entry.path[: entry.path.index(ANY)])), number)
        self._sharing: defaultdict[Account, list[Account]] = defaultdict(list)
        for shared in self._first:
            for level in shared.levels:
                self._sharing[level].append(shared)

    def first_unbounded(self, limit_of: LimitOf) -> int | None:
        """Return the number of the first entry that no level bounds, None if there is none.

        Args:
            limit_of: The limit of a level.
        """
        return next((number for shared, number in self._first.items() if not _bounds(shared, limit_of)), None)

    def needs(self, level: Account) -> bool:
        """Return whether entries share this level above their first `*`, and so may need its limit."""
        return level in self._sharing

    def first_opened(self, levels: Iterable[Account], limit_of: LimitOf) -> int | None:
        """Return the number of the first entry that these levels bounded and no level bounds now, None if none.

        Args:
            levels: Those that have an enforced limit no more.
            limit_of: The limit of a level now.
        """
        shared = {each for level in levels for each in self._sharing.get(level, ())}
        return min((self._first[each] for each in shared if not _bounds(each, limit_of)), default=None)


def enforces(limit: Limit | None) -> bool:
    """Return whether a level with this limit refuses what does not fit."""
    return limit is not None and limit.mode is Mode.ENFORCE


def _bounds(shared: Account, limit_of: LimitOf) -> bool:
    return any(enforces(limit_of(level)) for level in shared.levels)


class _EnforcedPatterns:
    """Entries that are enforced, by what remains of their paths where another path has a `*`."""

    def __init__(self, paths: Iterable[list[str]]) -> None:
        self._paths: defaultdict[int, list[list[str]]] = defaultdict(list)
        for path in paths:
            self._paths[len(path)].append(path)
        self._rests: dict[tuple[bool, ...], set[tuple[str, ...]]] = {}

    def refuse(self, path: list[str]) -> bool:
        """Return whether a limit for all names in the first `*` of a path refuses anything."""
        return any(
            not self._rests_of(path[:depth]).isdisjoint(product(*map(_alike, path[:depth])))
            for depth in range(path.index(ANY) + 1, len(path) + 1)
        )

    def _rests_of(self, path: list[str]) -> set[tuple[str, ...]]:
        # There are as many as ways to place a `*`, however many entries there are.
        wild = tuple(segment == ANY for segment in path)
        if wild not in self._rests:
            first = wild.index(True)
            self._rests[wild] = {
                tuple("" if is_wild else segment for segment, is_wild in zip(each, wild, strict=True))
                for each in self._paths[len(wild)]
                if each[first] == ANY
            }
        return self._rests[wild]


def _alike(segment: str) -> tuple[str, ...]:
    """Return what may stand in an entry for the same name; nothing is left where any may."""
    return ("",) if segment == ANY else (segment, ANY)
