"""A column that a table is given after segments were pushed."""

from __future__ import annotations

from typing import Any

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType, ReadColumn
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineError
from tests.engines.pinot.loading import create_table, plain_answer, upload, wait_for_rows
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.queries import confirmed, count_members, outcome
from tests.engines.pinot.waiting import wait_until


def test_a_column_that_segments_lack_is_refused_until_they_are_reloaded(
    pinot_cluster: PinotCluster, engine: PinotEngine
) -> None:
    """Pinot 0.11 counts nine members of the new column's default value as none, and says nothing but a statistic."""
    table = "new_column"
    create_table(pinot_cluster, table, {"member_id": "STRING", "country": "STRING"})
    old = [{"member_id": f"m{i}", "country": "DE", "day": 17000} for i in range(9)]
    upload(pinot_cluster, table, "old", old)
    wait_for_rows(pinot_cluster, table, 9)
    schemas = f"{pinot_cluster.controller_url}/schemas/{table}"
    schema = HTTP.get(schemas, timeout=30).json()
    schema["dimensionFieldSpecs"].append({"name": "plan", "dataType": "STRING"})
    HTTP.put(schemas, json=schema, timeout=30).raise_for_status()
    new = [{"member_id": "n", "country": "DE", "day": 17000, "plan": "free"}]
    upload(pinot_cluster, table, "new", new)
    wait_for_rows(pinot_cluster, table, 10)
    query = count_members(
        table, ("plan", ColumnType.STRING), reads=(ReadColumn("plan", ColumnType.STRING, "null"),)
    )
    wait_until(lambda: "numSegmentsPrunedInvalid" in plain_answer(pinot_cluster, query.sql))
    if plain_answer(pinot_cluster, query.sql)["numSegmentsPrunedInvalid"]:
        wait_until(lambda: _is_to_be_reloaded(engine, table, query))
        reload = f"{pinot_cluster.controller_url}/segments/{table}/reload"
        HTTP.post(reload, timeout=30).raise_for_status()
    wait_until(lambda: outcome(engine, query, engine.data_version(table)) == (["null", "free"],))
    assert [9, 1] == confirmed(engine, query).counts


def _is_to_be_reloaded(engine: PinotEngine, table: str, query: Any) -> bool:
    found = outcome(engine, query, engine.data_version(table))
    assert isinstance(found, EngineError)
    return "reload" in str(found)
