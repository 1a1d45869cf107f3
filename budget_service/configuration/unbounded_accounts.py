"""Finds the entries of `budget.yaml` that allow any number of accounts, and so an unlimited budget.

An entry with a `*` that creates accounts at first use gives each new name its own limit. A caller that chooses names
never runs out of budget, unless a level above the first `*`, which all those accounts share, has an enforced limit.
Where all limits of new names are in mode track, nothing is refused anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def unbounded(entries: Sequence[Pattern], limit_of: LimitOf) -> list[int]:
    """Return the indices of the entries that allow any number of accounts; `limit_of` returns the limit of a level."""
    return [index for index, entry in enumerate(entries) if _is_without_end(entry.path, entries, limit_of)]


def _is_without_end(path: list[str], entries: Sequence[Pattern], limit_of: LimitOf) -> bool:
    if ANY not in path:
        return False
    first = path.index(ANY)
    return _is_refused_anything(path, first, entries) and not _is_bounded(path[:first], limit_of)


def _is_bounded(shared: list[str], limit_of: LimitOf) -> bool:
    limits = [limit_of(Account(tuple(shared[:depth]))) for depth in range(1, len(shared) + 1)]
    return any(limit is not None and limit.mode is Mode.ENFORCE for limit in limits)


def _is_refused_anything(path: list[str], first: int, entries: Sequence[Pattern]) -> bool:
    """Return whether a limit for all names in the first `*` of a path refuses anything."""
    return any(
        first < len(each.path) <= len(path)
        and each.path[first] == ANY
        and each.mode == Mode.ENFORCE.value
        and all(ANY in pair or pair[0] == pair[1] for pair in zip(path, each.path, strict=False))
        for each in entries
    )
