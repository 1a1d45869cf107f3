"""The journal as it lies in the store, read past the service."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

import psycopg
from redis import Redis

from tests.campaigns.chaos.history import Amount, Entry

CONNECTOR_RELEASE = "connector-"
CONNECTORS = ("roomy", "connector")
COLUMNS = ("kind", "request_id", "release_id", "query_id", "account", "information", "calls", "holds")
SHARED = ("shared_information", "shared_calls")

POSTGRES_JOURNAL = """
SELECT kind, request_id, release_id, query_id, account, information, calls,
       (SELECT json_agg(json_build_array(level, window_start))::text FROM unnest(holds)),
       shared_information, shared_calls
FROM gris.journal
"""


def read_journal(address: str) -> tuple[Entry, ...]:
    """Return every line that takes something, from the journal of a store that is named as for budget_service."""
    reader = READERS[address.partition(":")[0]]
    # A changed limit takes nothing.
    return tuple(_entry(line) for line in reader(address) if line[0] != "limit")


def _from_sqlite(address: str) -> Iterable[Any]:
    # The service holds the file's lock, so it must have ended.
    with closing(sqlite3.connect(address.removeprefix("sqlite:"))) as connection:
        return connection.execute(f"SELECT {', '.join(COLUMNS + SHARED)} FROM journal").fetchall()  # noqa: S608 - constants


def _from_redis(address: str) -> Iterable[Any]:
    with closing(Redis.from_url(address, decode_responses=True, protocol=2)) as client:
        for key in client.scan_iter("gris:{*}:journal"):
            lines: Any = client.xrange(key)
            for _, fields in lines:
                yield (*(fields[column] for column in COLUMNS), *(fields.get(column) for column in SHARED))


def _from_postgres(address: str) -> Iterable[Any]:
    with closing(psycopg.connect(address)) as connection:
        return connection.execute(POSTGRES_JOURNAL).fetchall()


READERS = {"sqlite": _from_sqlite, "redis": _from_redis, "postgresql": _from_postgres}


def _entry(line: Sequence[Any]) -> Entry:
    kind, request_id, release_id, query_id, account, information, calls, holds, *more = line
    shared = None if more[0] is None else Amount(*map(int, more))
    path = tuple(account.split("/"))
    depths = tuple(_depth(level) for level, _ in json.loads(holds))
    is_forfeited = kind == "forfeited"
    # The connector keeps its request ids to itself; its charges go by the release, and what it held by the question.
    if path[:2] == CONNECTORS:
        request_id = f"{CONNECTOR_RELEASE}{query_id}" if is_forfeited else release_id
    return Entry(request_id, path, Amount(int(information), int(calls)), depths, is_forfeited, shared)


def _depth(level: int | str) -> int:
    # SQLite keeps the depth of a level, the others its path.
    return level if isinstance(level, int) else len(level.split("/"))
