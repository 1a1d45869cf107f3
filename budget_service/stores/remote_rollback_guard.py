"""The high-water mark of a ledger in Redis or PostgreSQL, kept with the service and apart from the store.

The ledger has a name and a count. A service that has charged something increases the count within a second, and writes
it into a small file that is not part of the store and its backups. A ledger that is behind its high-water mark, or has
another name, has lost acknowledged charges. Several services may use one ledger, each with its own file or with a
shared one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from budget_service.stores.interface import StoreUnavailableError, StoreUnusableError
from budget_service.stores.mark_file import WHAT_TO_DO, write_whole

# A confirmed ledger continues its count above the high-water mark of any service.
CONFIRMED_STEP = 10**9


@dataclass(frozen=True, slots=True)
class Count:
    """A ledger's name, and how often it was counted on."""

    ledger_id: str
    count: int


# Adds to the count of the ledger and returns it; 0 only reads it.
Counter: TypeAlias = Callable[[int], Awaitable[Count]]


class RollbackGuard:
    """Keeps the high-water mark of one ledger at `path`, and compares the ledger with it."""

    def __init__(self, path: Path, counter: Counter) -> None:
        self._path = path
        self._count = counter
        self._last: Count | None = None
        # The first look increases the count: a count of 0 means that the ledger never had a mark anywhere.
        self._is_due = True

    async def begin(self) -> None:
        """Return if the ledger is the marked one and not behind it, or was never marked; else StoreUnusableError."""
        # In this order: another service may count on in between.
        mark = await asyncio.to_thread(_read, self._path)
        found = await self._count(0)
        if mark is None and found.count:
            raise StoreUnusableError(
                f"there is no mark {self._path}, and this ledger had one: put it back, or copy that of another service "
                f"of this ledger; {WHAT_TO_DO}"
            )
        if mark is not None and mark.ledger_id != found.ledger_id:
            raise StoreUnusableError(f"{self._path} is the mark of another ledger: {WHAT_TO_DO}")
        if mark is not None and found.count < mark.count:
            raise StoreUnusableError(f"this ledger is behind its mark {self._path}: {WHAT_TO_DO}")
        self._last = found

    def charged(self) -> None:
        """Note that the ledger is about to change."""
        self._is_due = True

    async def look(self) -> None:
        """Count on if anything was charged, and see that the ledger is not set back while it is used.

        Raises StoreUnusableError if it is, until somebody confirms it, and StoreUnavailableError if the mark cannot be
        written.
        """
        assert self._last is not None, "it was begun"  # noqa: S101 - the order of this program
        last, step = self._last, int(self._is_due)
        self._is_due = False
        try:
            found = await self._count(0)
            if found.ledger_id != last.ledger_id or found.count < last.count:
                raise StoreUnusableError(f"this ledger was set back while it was used: {WHAT_TO_DO}")
            if step:
                found = await self._count(step)
            if found != last:
                await asyncio.to_thread(_save, self._path, found)
        except BaseException:
            self._is_due = self._is_due or bool(step)
            raise
        self._last = found

    async def confirm(self) -> None:
        """Raise the count above every high-water mark, and write this one anew."""
        mark = await asyncio.to_thread(_read, self._path)
        found = await self._count(0)
        beyond = max(found.count, 0 if mark is None else mark.count) + CONFIRMED_STEP
        await asyncio.to_thread(_save, self._path, await self._count(beyond - found.count))


def _read(path: Path) -> Count | None:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return Count(str(kept["ledger_id"]), int(kept["count"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError):
        raise StoreUnusableError(f"{path} cannot be read: {WHAT_TO_DO}") from None


def _save(path: Path, count: Count) -> None:
    try:
        write_whole(path, json.dumps({"ledger_id": count.ledger_id, "count": count.count}))
    except OSError as error:
        raise StoreUnavailableError(f"{path}: {error.strerror}") from error
