"""The rows on a real Pinot: three tables that hold the same, whose second segment has the odd ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial

import httpx

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import Feature
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.engines.pinot.configuration import OLDEST_MULTISTAGE_VERSION
from tests.campaigns.one_row.asking import TABLES, Held
from tests.campaigns.one_row.rows import ORDINARY, Row
from tests.engines.pinot.facts import version_of
from tests.engines.pinot.loading import plain_rows, remove_table, upload
from tests.engines.pinot.waiting import wait_until

_LONGEST = 1024
_FIELDS: Mapping[str, Mapping[str, object]] = {
    "who": {"dataType": "LONG"},
    "member": {"dataType": "STRING", "maxLength": _LONGEST},
    "text": {"dataType": "STRING", "maxLength": _LONGEST},
    "number": {"dataType": "LONG"},
    "small": {"dataType": "INT", "defaultNullValue": -128},
    "flag": {"dataType": "BOOLEAN"},
    "day": {"dataType": "INT", "defaultNullValue": 0},
    "at": {"dataType": "TIMESTAMP"},
    "at_s": {"dataType": "LONG"},
    "at_ms": {"dataType": "LONG"},
    "price": {"dataType": "DOUBLE"},
    "whole": {"dataType": "LONG"},
}
# What the policy of this table says of NULL.
_LOOKED = {**_FIELDS, "whole": {"dataType": "LONG", "defaultNullValue": 2}}


@contextmanager
def held_by(cluster: PinotCluster) -> Iterator[Held]:
    """Give a cluster's engine, with tables that are removed again."""
    with httpx.Client(base_url=cluster.controller_url, timeout=30) as controller:
        version = version_of(controller.get("/version").json())
        lacks = frozenset() if version >= OLDEST_MULTISTAGE_VERSION else frozenset({Feature.PINOT_MULTISTAGE})
        for table in TABLES:
            _create(controller, table)
            upload(cluster, table, "ordinary", [_stored(row) for row in ORDINARY])
    try:
        with closing(PinotEngine(controller=cluster.controller_url, broker=cluster.broker_url)) as engine:
            yield Held(engine, lambda rows: _hold(cluster, rows), seen, lacks)
    finally:
        for table in TABLES:
            remove_table(cluster, table)


def _create(controller: httpx.Client, table: str) -> None:
    of_table = _LOOKED if table == "looked" else _FIELDS
    fields = [{"name": name, **field} for name, field in of_table.items()]
    config = {
        "tableName": table,
        "tableType": "OFFLINE",
        "segmentsConfig": {"schemaName": table, "replication": "1"},
        "tenants": {},
        "tableIndexConfig": {},
        "metadata": {},
    }
    schema = {"schemaName": table, "dimensionFieldSpecs": fields}
    controller.post("/schemas", json=schema).raise_for_status()
    controller.post("/tables", json=config).raise_for_status()


def seen(row: Row) -> Row | None:
    """Return a row as Pinot stores it: texts end at a NUL or after so many UTF-16 units, times are milliseconds."""
    if any(isinstance(each, bytes) for each in row):
        return None
    at = None if row.at is None else row.at // 1000 * 1000
    return row._replace(member=_cut(row.member), text=_cut(row.text), at=at)


def _cut(text: object) -> str | None:
    if not isinstance(text, str):
        return None
    units = text.split("\0")[0].encode("utf-16-le")[: 2 * _LONGEST]
    return units.decode("utf-16-le")


def _hold(cluster: PinotCluster, rows: Sequence[Row]) -> None:
    odd = [row for row in rows[len(ORDINARY) :] if seen(row) is not None]
    held = [row.who for row in (*ORDINARY, *odd)]
    for table in TABLES:
        # A segment of no rows can not be made; this one has nobody.
        upload(
            cluster, table, "odd", [_stored(row) for row in odd] or [{**_stored(ORDINARY[0]), "member": None}]
        )
    wanted = [[len(held) + (not odd), float(sum(held))]]
    for table in TABLES:
        sql = f"SELECT COUNT(*), SUM(who) FROM {table}"  # noqa: S608 - the campaign's own
        wait_until(partial(_has_rows, cluster, sql, wanted))


def _has_rows(cluster: PinotCluster, sql: str, wanted: object) -> bool:
    return plain_rows(cluster, sql) == wanted


def _stored(row: Row) -> dict[str, object]:
    """Return a row as JSON that Pinot reads: no JSON has numbers that are none, and its numbers are no times."""
    at = None if row.at is None else str(row.at // 1000)
    price = None if row.price is None else str(row.price).replace("nan", "NaN").replace("inf", "Infinity")
    return {**row._asdict(), "at": at, "price": price}
