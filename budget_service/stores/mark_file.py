"""The file of a high-water mark: how it is read and replaced, and what to do about a ledger that does not match it."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path

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
