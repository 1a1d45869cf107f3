"""Putting rows into a real Pinot, segment by segment, and counting them without the connector."""

import json
from typing import Any

import httpx

from deploy.pinot.cluster import PinotCluster
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.waiting import wait_until


def create_table(
    cluster: PinotCluster, table: str, dimensions: dict[str, str], *, replication: int = 1, **config: Any
) -> None:
    """Make an empty table of these columns and the time column `day`; `config` goes into its configuration."""
    schema = {
        "schemaName": table,
        "dimensionFieldSpecs": [{"name": name, "dataType": kind} for name, kind in dimensions.items()],
        "dateTimeFieldSpecs": [
            {"name": "day", "dataType": "INT", "format": "1:DAYS:EPOCH", "granularity": "1:DAYS"}
        ],
    }
    segments = {"schemaName": table, "replication": str(replication), "timeColumnName": "day"}
    whole = {
        "tableName": table,
        "tableType": "OFFLINE",
        "segmentsConfig": segments,
        "tenants": {},
        "tableIndexConfig": {},
        "metadata": {},
        **config,
    }
    HTTP.post(f"{cluster.controller_url}/schemas", json=schema, timeout=30).raise_for_status()
    HTTP.post(f"{cluster.controller_url}/tables", json=whole, timeout=30).raise_for_status()


def has_table(cluster: PinotCluster, table: str) -> bool:
    """Tell whether there is a table of this name; of none, some versions answer 404, and some an empty object."""
    answer = HTTP.get(f"{cluster.controller_url}/tables/{table}", timeout=30)
    return answer.is_success and bool(answer.json())


def remove_table(cluster: PinotCluster, table: str) -> None:
    """Remove a table and its schema, if they are there, and wait until servers have dropped the table.

    Until then it cannot be made again; and where a schema stays, another table of this name has to have its columns.
    """
    url = f"{cluster.controller_url}/tables/{table}"
    for each in (url, f"{cluster.controller_url}/schemas/{table}"):
        answer = HTTP.delete(each, timeout=30)
        if answer.status_code != httpx.codes.NOT_FOUND:
            answer.raise_for_status()

    def is_gone() -> bool:
        view = HTTP.get(f"{url}/externalview", timeout=30)
        return not (view.is_success and any(view.json().get(kind) for kind in ("OFFLINE", "REALTIME")))

    wait_until(is_gone)


def upload(cluster: PinotCluster, table: str, segment: str, rows: list[dict[str, object]]) -> None:
    """Add a segment, or replace the one of this name."""
    batch = {
        "inputFormat": "json",
        "segmentNameGenerator.type": "fixed",
        "segmentNameGenerator.configs.segment.name": segment,
    }
    parameters = {"tableNameWithType": f"{table}_OFFLINE", "batchConfigMapStr": json.dumps(batch)}
    content = "\n".join(json.dumps(row) for row in rows).encode()
    url = f"{cluster.controller_url}/ingestFromFile"
    HTTP.post(url, params=parameters, files={"file": ("rows.json", content)}, timeout=30).raise_for_status()


def wait_for_rows(cluster: PinotCluster, table: str, rows: int) -> None:
    """Return when a query counts this many rows."""
    # A table that has just been made is answered for without any result at first.
    wait_until(lambda: plain_rows(cluster, f'SELECT COUNT(*) FROM "{table}"') == [[rows]])  # noqa: S608


def plain_count(cluster: PinotCluster, table: str) -> dict[str, Any]:
    """Return the broker's whole answer to a plain count of rows."""
    return plain_answer(cluster, f"SELECT COUNT(*) FROM {table}")  # noqa: S608


def plain_rows(cluster: PinotCluster, sql: str) -> object:
    """Return the rows that Pinot itself answers, None while it has no answer."""
    return (plain_answer(cluster, sql).get("resultTable") or {}).get("rows")


def plain_answer(cluster: PinotCluster, sql: str) -> dict[str, Any]:
    """Return the broker's whole answer to a query."""
    url = f"{cluster.broker_url}/query/sql"
    content: dict[str, Any] = HTTP.post(url, json={"sql": sql}, timeout=30).json()
    return content
