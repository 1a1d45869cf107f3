"""The journal as it lies in the store, read past the service."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import psycopg
from redis import Redis

from tests.campaigns.chaos.history import Amount, Entry

CONNECTOR_RELEASE = "connector-"
CONNECTORS = ("roomy", "connector")
KEPT = ("kind", "request_id", "release_id", "query_id")


def read_journal(address: str) -> tuple[Entry, ...]:
    """Return every line of the journal of a store that is named as for budget_service, those of a root in order."""
    return tuple(map(_entry, READERS[address.partition(":")[0]](address)))


def _from_sqlite(address: str) -> Iterable[Any]:
    # The service holds the file's lock, so it must have ended.
    with closing(sqlite3.connect(address.removeprefix("sqlite:"))) as connection:
        for (text,) in connection.execute("SELECT text FROM journal ORDER BY entry"):
            yield json.loads(text)


def _from_redis(address: str) -> Iterable[Any]:
    with closing(Redis.from_url(address, decode_responses=True, protocol=2)) as client:
        for key in client.scan_iter("gris:{*}:journal"):
            lines: Any = client.xrange(key)
            yield from (json.loads(fields["entry"]) for _, fields in lines)


def _from_postgres(address: str) -> Iterable[Any]:
    with closing(psycopg.connect(address)) as connection:
        for (text,) in connection.execute("SELECT text FROM gris.journal ORDER BY root, number"):
            yield json.loads(text)


READERS = {
    "sqlite": _from_sqlite,
    "redis": _from_redis,
    "postgresql": _from_postgres,
}


def _entry(line: dict[str, Any]) -> Entry:
    kind, request_id, release_id, query_id = (line[name] for name in KEPT)
    shared = None if line["shared_cost"] is None else Amount(*line["shared_cost"])
    path = tuple(line["account"][0])
    depths = tuple(sorted({depth for depth, *_ in line["holds"]}))
    blocks = tuple(sorted({block for *_, block in line["holds"] if block}))
    is_forfeited = kind == "forfeited"
    # The connector keeps its request ids to itself; its charges go by the release, and what it held by the question.
    if path[:2] == CONNECTORS:
        request_id = f"{CONNECTOR_RELEASE}{query_id}" if is_forfeited else release_id
    cost = Amount(*line["cost"])
    limit = _limit(line["change"]) if kind == "limit" else None
    return Entry(request_id, path, cost, depths, is_forfeited, shared, kind, limit, blocks)


def _limit(change: str) -> Amount | None:
    """Return what a limit is after a change, None for none."""
    information, calls, *_ = (*change.partition(">")[2].split(":"), "")
    return Amount(int(information), int(calls)) if information else None
