"""A running Pinot from 1.0 on in place of Calcite: what its own planner, broker and servers make of the queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import httpx

from deploy.pinot.cluster import PinotCluster
from tests.engines.pinot.loading import plain_answer, plain_rows, remove_table, upload, wait_for_rows
from tests.engines.pinot.waiting import wait_until

from . import Planned, Table

_PARTS = 4
_KINDS = {"VARCHAR": "STRING", "BIGINT": "LONG", "INTEGER": "INT"}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def answered(
    cluster: PinotCluster, tables: Mapping[str, Table], queries: Sequence[str], plans: Sequence[Planned]
) -> list[Planned]:
    """Return plans with the columns and rows of a cluster, in place of Calcite's."""
    with held(cluster, tables):
        return [_asked(cluster, sql, plan) for sql, plan in zip(queries, plans, strict=True)]


def _asked(cluster: PinotCluster, sql: str, plan: Planned) -> Planned:
    answer = plain_answer(cluster, sql)
    assert not answer["exceptions"], (answer["exceptions"], sql)
    assert answer["numServersQueried"] == len(cluster.ports.servers), sql
    table = answer["resultTable"]
    kinds = [_NAMES.get(kind, kind) for kind in table["dataSchema"]["columnDataTypes"]]
    names = table["dataSchema"]["columnNames"]
    return replace(plan, columns=[*zip(names, kinds, strict=True)], rows=[*map(tuple, table["rows"])])


@contextmanager
def held(cluster: PinotCluster, tables: Mapping[str, Table]) -> Iterator[None]:
    """Hold the tables in segments on every server; they have no time column, for their days go back to the year 1."""
    try:
        for name, table in tables.items():
            _load(cluster, name, table)
        yield
    finally:
        for name in tables:
            remove_table(cluster, name)


def _load(cluster: PinotCluster, name: str, table: Table) -> None:
    texts = {"maxLength": 1024}
    fields = [
        {"name": column, "dataType": _KINDS.get(kind, kind), **(texts if kind == "VARCHAR" else {})}
        for column, kind in table.columns.items()
    ]
    config = {
        "tableName": name,
        "tableType": "OFFLINE",
        "segmentsConfig": {"schemaName": name, "replication": "1"},
        "tenants": {},
        "tableIndexConfig": {},
        "metadata": {},
    }
    with httpx.Client(base_url=cluster.controller_url, timeout=30) as controller:
        schema = {"schemaName": name, "dimensionFieldSpecs": fields}
        controller.post("/schemas", json=schema).raise_for_status()
        controller.post("/tables", json=config).raise_for_status()
    rows = [
        dict(zip(table.columns, map(_stored, table.columns.values(), each), strict=True))
        for each in table.rows
    ]
    for part in range(_PARTS):
        upload(cluster, name, f"{name}_{part}", rows[part::_PARTS])
    wait_for_rows(cluster, name, len(rows))
    # A moment later than the other engine the multi-stage engine asks for a new segment as well.
    counted = f'SET useMultistageEngine=true; SELECT COUNT(*) FROM "{name}"'  # noqa: S608 - the test's own
    wait_until(lambda: plain_rows(cluster, counted) == [[len(rows)]])


def _stored(kind: str, value: object) -> object:
    # JSON's numbers are no timestamps to Pinot.
    return str(value) if kind == "TIMESTAMP" else value
