"""What Pinot itself says or does, on which the connector builds or of which the documents tell."""

from __future__ import annotations

import time
from typing import Any

import httpx

from pinot_connector.engines.pinot.configuration import EXACT
from tests.campaigns.pinot_check.cluster import CannotTryError, CheckedCluster
from tests.campaigns.pinot_check.connector import filled, require_equal
from tests.campaigns.pinot_check.rows import row
from tests.engines.pinot.facts import facts_of

_REPORT_SECONDS = 30.0
_ON_RECORD = "this version is not on record to do so (tests/engines/pinot/facts.py)"


def _checksums(cluster: CheckedCluster, path: str, key: str) -> dict[str, str]:
    return {name: str(reported[key]) for name, reported in cluster.get(path).items()}


def _kept_checksums(cluster: CheckedCluster, table: str) -> dict[str, str]:
    return {name: str(crc) for name, crc in cluster.get(f"/segments/{table}_OFFLINE/crc").items()}


@row
def loaded_checksums(cluster: CheckedCluster) -> str:
    """The controller tells the checksum of each segment as it is loaded, of all servers or of one after the other."""
    if cluster.options.get("server_admin"):
        raise CannotTryError("not needed: server_admin asks the servers")
    table = filled(cluster, "loaded", {"a": 3})
    path, kept = f"/segments/{table}_OFFLINE/metadata?type=OFFLINE", _kept_checksums(cluster, table)
    # Rows are served a moment before every server tells of them.
    started, requests, reported = time.monotonic(), 1, _checksums(cluster, path, "crc")
    while kept != reported:
        if time.monotonic() - started > _REPORT_SECONDS:
            raise AssertionError(
                f"{len(reported)} segments reported of {len(kept)}, or others: set PINOT_SERVER_ADMIN"
            )
        time.sleep(0.2)
        reported, requests = reported | _checksums(cluster, path, "crc"), requests + 1
    return f"by {requests} requests, after {time.monotonic() - started:.1f} s"


@row
def kept_checksums(cluster: CheckedCluster) -> str:
    """From 1.0 on, the controller tells in one request what should be loaded."""
    if cluster.version < (1, 0):
        raise CannotTryError("this version has no GET /segments/{table}/zkmetadata")
    table = filled(cluster, "kept", {"a": 3})
    path = f"/segments/{table}_OFFLINE/zkmetadata?type=OFFLINE"
    require_equal(
        _kept_checksums(cluster, table), _checksums(cluster, path, "segment.crc"), "other checksums"
    )
    rows = sum(map(int, _checksums(cluster, path, "segment.total.docs").values()))
    require_equal(3, rows, "another number of rows")
    return ""


@row
def admin_ports(cluster: CheckedCluster) -> str:
    """The servers tell their loaded checksums by their admin ports (server_admin)."""
    table = filled(cluster, "admin", {"a": 3})
    found: dict[str, str] = {}
    scheme = cluster.controller_url.partition(":")[0]
    for server in cluster.servers:
        instance = cluster.get(f"/instances/{server}")
        host, port = str(instance["hostName"]).removeprefix("Server_"), int(instance.get("adminPort") or 0)
        try:
            found |= _reported_by_server(
                cluster, f"{scheme}://{host}:{port}/tables/{table}_OFFLINE/segments/crc"
            )
        except (httpx.TransportError, httpx.InvalidURL):
            raise CannotTryError(
                "an admin port cannot be reached from here: leave server_admin off"
            ) from None
    require_equal(_kept_checksums(cluster, table), found, "other checksums than the controller keeps")
    return f"{len(cluster.servers)} servers"


def _reported_by_server(cluster: CheckedCluster, url: str) -> dict[str, str]:
    try:
        return {name: str(crc) for name, crc in cluster.get_elsewhere(url).items()}
    except httpx.HTTPStatusError as error:
        # A server that has no segment of the table knows nothing of it.
        if error.response.status_code == httpx.codes.NOT_FOUND:
            return {}
        raise


@row
def explained(cluster: CheckedCluster) -> str:
    """EXPLAIN tells the LIMIT in force."""
    table = filled(cluster, "explained", {"a": 3})
    sql = f"{EXACT}EXPLAIN PLAN FOR SELECT name, COUNT(*) FROM {table} GROUP BY name LIMIT 1001"  # noqa: S608
    lines = [str(each[0]) for each in cluster.rows(sql) or ()]
    limits = [line for line in lines if line.startswith("BROKER_REDUCE(") and "limit:" in line]
    require_equal(1, len(limits), "no line of the plan tells it")
    return "limit:" + limits[0].partition("limit:")[2].partition(",")[0].rstrip(")")


@row
def broker_answers(cluster: CheckedCluster) -> str:
    """A broker that can answer by itself tells so as this version is on record to."""
    table = cluster.create("alone", {"member_id": "STRING"}, routing={"segmentPrunerTypes": ["time"]})
    cluster.upload(table, "0", [{"member_id": "m", "day": 17_000}])
    cluster.wait_for_rows(table, 1)
    answer = cluster.ask(f"SELECT day, COUNT(*) FROM {table} WHERE day > 18000 GROUP BY day")  # noqa: S608
    statistics = [answer.get(name) for name in ("numSegmentsQueried", "numServersQueried", "totalDocs")]
    require_equal([0, 0, 0], statistics, "it asked a server")
    require_equal([], answer["exceptions"], "it raised an exception")
    facts = facts_of(cluster.version)
    require_equal(facts.empty_answers_have_a_table, "resultTable" in answer, _ON_RECORD)
    require_equal(facts.brokers_have_names, bool(answer.get("brokerId")), _ON_RECORD)
    return "an empty table" if "resultTable" in answer else "no table"


@row
def empty_answers(cluster: CheckedCluster) -> str:
    """Answers without rows, and missing tables, look as they do on record for this version."""
    facts = facts_of(cluster.version)
    table = filled(cluster, "no_match", {"a": 3})
    types = column_types(cluster.ask(f"SELECT day, COUNT(*) FROM {table} WHERE day > 18000 GROUP BY day"))  # noqa: S608
    require_equal("INT" if facts.empty_answers_have_types else "STRING", types[0], _ON_RECORD)
    found = cluster.status(f"/tables/{table}_nowhere")
    require_equal(404 if facts.missing_tables_are_not_found else 200, found, _ON_RECORD)
    return f"types {', '.join(types)}; status {found}"


def column_types(answer: dict[str, Any]) -> list[str]:
    """Return what an answer says of its columns."""
    return [str(kind) for kind in answer["resultTable"]["dataSchema"]["columnDataTypes"]]


@row
def timestamps(cluster: CheckedCluster) -> str:
    """TIMESTAMP is milliseconds, and stores 0 where a value is missing."""
    table = cluster.create("instants", {"member_id": "STRING", "instant": "TIMESTAMP"})
    cluster.upload(table, "0", [
        {"member_id": "a", "instant": 1_546_300_800_123, "day": 17_000},
        {"member_id": "b", "day": 17_000},
    ])  # fmt: skip
    cluster.wait_for_rows(table, 2)
    sql = f"SELECT member_id, COUNT(*) FROM {table} WHERE instant = {{}} GROUP BY member_id LIMIT 9"  # noqa: S608
    found = {ms: cluster.rows(sql.format(ms)) for ms in (0, 1_546_300_800_123)}
    require_equal(
        {0: [["b", 1]], 1_546_300_800_123: [["a", 1]]}, found, "other rows than those of this instant"
    )
    return "NULL is 1970-01-01"
