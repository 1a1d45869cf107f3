"""The journal as it lies in the store, read past the service."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import Any

from redis import Redis

from tests.chaos.history import Amount, Entry

COLUMNS = ("request_id", "account", "information", "calls", "holds")


def read_journal(address: str) -> tuple[Entry, ...]:
    """Return every line of the journal of a store that is named as for budget_service."""
    reader = _from_sqlite if address.startswith("sqlite:") else _from_redis
    return tuple(_entry(*line) for line in reader(address))


def _from_sqlite(address: str) -> Iterable[Any]:
    # The service holds the file's lock, so it must have ended.
    with closing(sqlite3.connect(address.removeprefix("sqlite:"))) as connection:
        return connection.execute(f"SELECT {', '.join(COLUMNS)} FROM journal").fetchall()  # noqa: S608 - constants


def _from_redis(address: str) -> Iterable[Any]:
    with closing(Redis.from_url(address, decode_responses=True, protocol=2)) as client:
        for key in client.scan_iter("gris:{*}:journal"):
            lines: Any = client.xrange(key)
            for _, fields in lines:
                yield tuple(fields[column] for column in COLUMNS)


def _entry(request_id: str, account: str, information: str, calls: str, holds: str) -> Entry:
    path = tuple(account.split("/"))
    depths = tuple(_depth(level) for level, _ in json.loads(holds))
    return Entry(request_id, path, Amount(int(information), int(calls)), depths)


def _depth(level: int | str) -> int:
    # SQLite keeps the depth of a level, Redis its path.
    return level if isinstance(level, int) else len(level.split("/"))
