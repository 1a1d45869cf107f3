"""The high-water mark of a ledger, kept with the service and apart from the store and its backups.

The ledger has a name and a count. A service that has charged something increases the count within a second, and writes
it into a small file that is not part of the store and its backups. A ledger that is behind its high-water mark, or has
another name, has lost acknowledged charges. Several services may use one ledger, each with its own file or with a
shared one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, TypeAlias

from budget_service.stores.interface import StoreUnusableError

WHAT_TO_DO = (
    "if it is a backup that was restored, start once with --confirm-restored: every budget that is open counts as "
    "spent until its window ends, because nobody knows what was charged since the backup"
)
IF_NOTHING_IS_LOST = (
    "if only the mark is lost, --renew-mark LEDGER:COUNT writes it anew and costs nothing, with the position that the "
    "log of the service that ended last has (rollback_guard.position); else, " + WHAT_TO_DO
)

FRESH = ".new"
LEFT_SECONDS = 3600.0

# Two checks of one process may end at the same time, each in a thread of its own.
_WRITING = threading.Lock()

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Position:
    """A ledger's name, and a number that grows with what is charged."""

    ledger_id: str
    count: int

    @staticmethod
    def parse(text: str) -> Position:
        """Return the position LEDGER:COUNT. Raises ValueError."""
        ledger_id, colon, count = text.partition(":")
        if not (ledger_id and colon and count.isascii() and count.isdecimal()):
            raise ValueError("expected LEDGER:COUNT")
        return Position(ledger_id, int(count))


def fresh_path(path: Path) -> Path:
    """Return this process's own path for a file's replacement: workers and replicas share a mark.

    In containers, all replicas have the same process id.
    """
    return path.with_name(f"{path.name}.{socket.gethostname()}.{os.getpid()}{FRESH}")


def write_whole(path: Path, text: str) -> None:
    """Replace a file on the disk atomically, also when other processes do the same. Raises OSError."""
    fresh = fresh_path(path)
    with _WRITING:
        try:
            descriptor = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            try:
                os.write(descriptor, text.encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove what processes that were killed have left of a file's replacement; one under way takes no hour."""
    for each in path.parent.glob(f"{escape(path.name)}.*{FRESH}"):
        with suppress(OSError):
            if time.time() - each.stat().st_mtime > LEFT_SECONDS:
                each.unlink()


def save_position(path: Path, position: Position) -> None:
    """Replace the high-water mark on the disk. Raises StoreUnusableError with the reason."""
    try:
        write_whole(path, json.dumps({"ledger_id": position.ledger_id, "count": position.count}))
    except OSError as error:
        raise StoreUnusableError(
            f"the high-water mark {path} cannot be written: {error.strerror}; without it nobody would notice a backup "
            "that is restored"
        ) from error


def load_position(path: Path) -> Position | None:
    """Return what `save_position` wrote, None if there is no file. Raises StoreUnusableError."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return Position(str(kept["ledger_id"]), int(kept["count"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError):
        raise StoreUnusableError(f"{path} cannot be read: {IF_NOTHING_IS_LOST}") from None


def log_position(position: Position) -> None:
    """Log where a ledger stands: the evidence for `--renew-mark`, kept apart from the store."""
    log.info(
        "The position of the ledger.",
        extra={
            "event": "rollback_guard.position",
            "fields": {"ledger": position.ledger_id, "count": position.count},
        },
    )


def require_stands_at(found: Position, stated: Position) -> None:
    """Raise StoreUnusableError unless a ledger stands exactly at the stated position."""
    # The message has nothing of the ledger: the position has to come from where no restore can change it.
    if found != stated:
        raise StoreUnusableError(
            "this ledger does not stand at that position: it was set back, was used since, or is another one, so "
            f"nothing was done; {WHAT_TO_DO}"
        )


def require_no_mark(path: Path) -> None:
    """Raise StoreUnusableError if a high-water mark can be read: then that decides, and not what somebody states."""
    try:
        is_there = load_position(path) is not None
    except StoreUnusableError:
        return
    if is_there:
        raise StoreUnusableError(f"{path} is a high-water mark already: start the service with it")


# A confirmed ledger continues its count above the high-water mark of any service.
CONFIRMED_STEP = 10**9
# The count of a ledger that is known to have lost charges: behind every mark, until it is confirmed.
LOST_COUNT = -1

# Adds to the count of the ledger and returns it; 0 only reads it.
Counter: TypeAlias = Callable[[int], Awaitable[Position]]
# Calls a function on another thread.
Aside: TypeAlias = Callable[..., Awaitable[Any]]


class RollbackGuard:
    """Keeps the high-water mark of one ledger at `path`, and compares the ledger with it."""

    def __init__(
        self, path: Path, counter: Counter, last: Position | None = None, aside: Aside = asyncio.to_thread
    ) -> None:
        self._path = path
        self._count = counter
        self._aside = aside
        # Where the ledger stood last, once it was begun.
        self._last = last
        self._is_due = False

    async def begin(self) -> None:
        """Position on and mark the ledger, if it is the marked one and not behind it, or was never marked.

        The mark is written before the ledger is counted on: one that was counted on has a mark somewhere.

        Raises:
            StoreUnusableError: The ledger does not match its mark, or the mark cannot be written.
        """
        await self._aside(remove_leftovers, self._path)
        mark, found = await self._mark_and_count()
        if mark is None and found.count:
            # A service that shares this file and started meanwhile has written it, before it counted on.
            mark, found = await self._mark_and_count()
        require_matches(self._path, mark, found)
        await self._aside(save_position, self._path, found)
        # A copy of the ledger that is older than this start does not stand where this service leaves it. And a count of
        # 0 means that the ledger never had a mark anywhere.
        self._last = await self._count(1)
        await self._aside(save_position, self._path, self._last)
        log_position(self._last)

    async def _mark_and_count(self) -> tuple[Position | None, Position]:
        """Return both, in this order: another service may count on in between."""
        mark = await self._aside(load_position, self._path)
        return mark, await self._count(0)

    def charged(self) -> None:
        """Note that the ledger is about to change."""
        self._is_due = True

    async def check(self) -> None:
        """Position on if anything was charged, and see that the ledger is not set back while it is used.

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
            await self._aside(_keep, self._path, found, last)
        except BaseException:
            self._is_due = self._is_due or bool(step)
            raise
        self._last = found

    async def leave(self) -> None:
        """Mark how far the ledger has come, whatever has taken its place by now: that has come less far.

        Raises:
            StoreError: The ledger cannot be read, or the mark cannot be written.
        """
        await self._aside(save_position, self._path, await self._count(0))

    def end(self) -> None:
        """Log where this service leaves the ledger, unless it charged something after the last check."""
        if self._last is not None and not self._is_due:
            log_position(self._last)

    async def confirm(self) -> None:
        """Raise the count above every high-water mark, and write this one anew."""
        try:
            mark = await self._aside(load_position, self._path)
        except StoreUnusableError:
            # It is damaged; no count is as far as the step from any other.
            mark = None
        found = await self._count(0)
        beyond = max(found.count, 0 if mark is None else mark.count) + CONFIRMED_STEP
        await self._aside(save_position, self._path, await self._count(beyond - found.count))

    async def renew(self, stated: Position) -> None:
        """Write a lost mark anew, if the ledger stands exactly where the last service that used it left it.

        A ledger that was set back stands elsewhere: every start of a service moves it on.

        Raises:
            StoreUnusableError: The ledger stands elsewhere, a mark is there, or it cannot be written.
        """
        require_no_mark(self._path)
        require_stands_at(await self._count(0), stated)
        await self._aside(save_position, self._path, stated)


def require_matches(path: Path, mark: Position | None, found: Position) -> None:
    """Raise StoreUnusableError unless a ledger is the marked one and not behind its mark, or was never marked."""
    if mark is None:
        if found.count:
            raise StoreUnusableError(
                f"there is no mark {path}, and this ledger had one: put it back, or copy that of another service "
                f"of this ledger; {IF_NOTHING_IS_LOST}"
            )
    elif mark.ledger_id != found.ledger_id:
        raise StoreUnusableError(f"{path} is the mark of another ledger: {WHAT_TO_DO}")
    elif found.count < mark.count:
        raise StoreUnusableError(f"this ledger is behind its mark {path}: {WHAT_TO_DO}")


def _require_not_set_back(found: Position, last: Position, step: int) -> None:
    if found.ledger_id != last.ledger_id or found.count < last.count + step:
        raise StoreUnusableError(f"this ledger was set back while it was used: {WHAT_TO_DO}")


def _keep(path: Path, found: Position, last: Position) -> None:
    # Also if somebody has removed it: without charges it would not be written again before the next start.
    if found != last or not path.exists():
        save_position(path, found)
