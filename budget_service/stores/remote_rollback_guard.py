"""The high-water mark of a ledger in a remote store, kept with the service and apart from the store.

The ledger has a name and a count. A service that has charged something increases the count within a second, and writes
it into a small file that is not part of the store and its backups. A ledger that is behind its high-water mark, or has
another name, has lost acknowledged charges. Several services may use one ledger, each with its own file or with a
shared one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from budget_service.stores.interface import StoreUnusableError
from budget_service.stores.mark_file import (
    IF_NOTHING_IS_LOST,
    WHAT_TO_DO,
    Position,
    load_fields,
    log_position,
    remove_leftovers,
    require_no_mark,
    require_stands_at,
    save_fields,
)

# A confirmed ledger continues its count above the high-water mark of any service.
CONFIRMED_STEP = 10**9
# The count of a ledger that is known to have lost charges: behind every mark, until it is confirmed.
LOST_COUNT = -1

# A ledger's name, and how often it was counted on.
Count: TypeAlias = Position
# Adds to the count of the ledger and returns it; 0 only reads it.
Counter: TypeAlias = Callable[[int], Awaitable[Count]]


class RollbackGuard:
    """Keeps the high-water mark of one ledger at `path`, and compares the ledger with it."""

    def __init__(self, path: Path, counter: Counter) -> None:
        self._path = path
        self._count = counter
        self._last: Count | None = None
        self._is_due = False

    async def begin(self) -> None:
        """Count on and mark the ledger, if it is the marked one and not behind it, or was never marked.

        The mark is written before the ledger is counted on: one that was counted on has a mark somewhere.

        Raises:
            StoreUnusableError: The ledger does not match its mark, or the mark cannot be written.
        """
        await asyncio.to_thread(remove_leftovers, self._path)
        mark, found = await self._mark_and_count()
        if mark is None and found.count:
            # A service that shares this file and started meanwhile has written it, before it counted on.
            mark, found = await self._mark_and_count()
        if mark is None and found.count:
            raise StoreUnusableError(
                f"there is no mark {self._path}, and this ledger had one: put it back, or copy that of another service "
                f"of this ledger; {IF_NOTHING_IS_LOST}"
            )
        if mark is not None:
            _require_not_behind(found, mark, self._path)
        await asyncio.to_thread(_save, self._path, found)
        # A copy of the ledger that is older than this start does not stand where this service leaves it. And a count of
        # 0 means that the ledger never had a mark anywhere.
        self._last = await self._count(1)
        await asyncio.to_thread(_save, self._path, self._last)
        log_position(self._last)

    async def _mark_and_count(self) -> tuple[Count | None, Count]:
        """Return both, in this order: another service may count on in between."""
        mark = await asyncio.to_thread(_read, self._path)
        return mark, await self._count(0)

    def charged(self) -> None:
        """Note that the ledger is about to change."""
        self._is_due = True

    async def check(self) -> None:
        """Count on if anything was charged, and see that the ledger is not set back while it is used.

        Raises:
            StoreUnusableError: It is, until somebody confirms it; or the mark cannot be written.
        """
        assert self._last is not None, "it was begun"  # noqa: S101 - the order of this program
        last, step = self._last, int(self._is_due)
        self._is_due = False
        try:
            found = await self._count(0)
            _require_not_set_back(found, last, 0)
            if step:
                found = await self._count(step)
                _require_not_set_back(found, last, step)
            await asyncio.to_thread(_keep, self._path, found, last)
        except BaseException:
            self._is_due = self._is_due or bool(step)
            raise
        self._last = found

    def end(self) -> None:
        """Log where this service leaves the ledger, unless it charged something after the last check."""
        if self._last is not None and not self._is_due:
            log_position(self._last)

    async def confirm(self) -> None:
        """Raise the count above every high-water mark, and write this one anew."""
        mark = await asyncio.to_thread(_read, self._path)
        found = await self._count(0)
        beyond = max(found.count, 0 if mark is None else mark.count) + CONFIRMED_STEP
        await asyncio.to_thread(_save, self._path, await self._count(beyond - found.count))

    async def renew(self, stated: Count) -> None:
        """Write a lost mark anew, if the ledger stands exactly where the last service that used it left it.

        A ledger that was set back stands elsewhere: every start of a service moves it on.

        Raises:
            StoreUnusableError: The ledger stands elsewhere, a mark is there, or it cannot be written.
        """
        require_no_mark(self._path)
        require_stands_at(await self._count(0), stated)
        await asyncio.to_thread(_save, self._path, stated)


def _require_not_behind(found: Count, mark: Count, path: Path) -> None:
    if mark.ledger_id != found.ledger_id:
        raise StoreUnusableError(f"{path} is the mark of another ledger: {WHAT_TO_DO}")
    if found.count < mark.count:
        raise StoreUnusableError(f"this ledger is behind its mark {path}: {WHAT_TO_DO}")


def _require_not_set_back(found: Count, last: Count, step: int) -> None:
    if found.ledger_id != last.ledger_id or found.count < last.count + step:
        raise StoreUnusableError(f"this ledger was set back while it was used: {WHAT_TO_DO}")


def _keep(path: Path, found: Count, last: Count) -> None:
    # Also if somebody has removed it: without charges it would not be written again before the next start.
    if found != last or not path.exists():
        _save(path, found)


def _read(path: Path) -> Count | None:
    try:
        kept = load_fields(path)
        return None if kept is None else Count(str(kept["ledger_id"]), int(kept["count"]))
    except (OSError, ValueError, TypeError, KeyError):
        raise StoreUnusableError(f"{path} cannot be read: {IF_NOTHING_IS_LOST}") from None


def _save(path: Path, count: Count) -> None:
    save_fields(path, {"ledger_id": count.ledger_id, "count": count.count})
