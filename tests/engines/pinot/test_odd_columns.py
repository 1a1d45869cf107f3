"""Columns that are not what the policy says, on a real Pinot: refused by name, before Pinot is asked and for nothing.

Pinot itself answers nearly all of these questions, with counts that mean something else.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import httpx
import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineRefused
from tests.engines.pinot.loading import plain_rows
from tests.engines.pinot.waiting import wait_until
from tests.support.clients import blocking_client_of
from tests.support.embedded import embedded
from tests.support.rings import needs

ROWS = 12
_numbers = itertools.count()
SCHEMA = {
    "schemaName": "odd",
    "dimensionFieldSpecs": [
        {"name": "m", "dataType": "STRING"},
        {"name": "ml", "dataType": "LONG"},
        {"name": "mm", "dataType": "STRING", "singleValueField": False},
        {"name": "c", "dataType": "STRING"},
        {"name": "i32", "dataType": "INT"},
        {"name": "i64", "dataType": "LONG"},
        {"name": "several", "dataType": "STRING", "singleValueField": False},
        {"name": "age", "dataType": "STRING"},
        {"name": "d", "dataType": "DOUBLE"},
    ],
    "metricFieldSpecs": [{"name": "metric", "dataType": "LONG"}],
}
COLUMNS = """
    measures: {distinct_members: true}
    columns:
      c: {type: string, group_by: true, filter: [in]}
      i32: {type: int64, group_by: true, filter: [in, not_in, range], null_value: -2147483648}
      i64: {type: int64, group_by: true, filter: [range]}
      several: {type: string, group_by: true, filter: [in, not_in]}
      age: {type: int64, filter: [range]}
      d: {type: int64, filter: [range]}
      metric: {type: int64, group_by: true, filter: [range]}
      gone: {type: string, filter: [in]}
"""
HEAD = "epsilon_per: 1\ndelta: 1e-10\ntables:\n  odd:\n    data_version: v\n    member: "


def row(i: int) -> dict[str, object]:
    """Return one row; every third lacks the numbers, and the last one everything that says whose it is."""
    number = None if i % 3 == 0 else i
    whose = {"m": f"m{i}", "ml": i, "mm": [f"m{i}", "m0"]} if i < ROWS else {}
    numbers = {"i32": number, "i64": number, "metric": number}
    return {**whose, **numbers, "c": "x", "several": ["a", "b", "a"], "age": str(i), "d": i + 0.5}


@pytest.fixture(scope="module")
def odd_table(pinot_cluster: PinotCluster) -> PinotCluster:
    """The cluster with the table."""
    config = {
        "tableName": "odd",
        "tableType": "OFFLINE",
        "segmentsConfig": {"schemaName": "odd", "replication": "1"},
        "tenants": {},
        "tableIndexConfig": {},
        "metadata": {},
    }
    batch = {"inputFormat": "json"}
    content = "\n".join(json.dumps(row(i)) for i in range(ROWS + 1)).encode()
    with httpx.Client(base_url=pinot_cluster.controller_url, timeout=30) as controller:
        controller.post("/schemas", json=SCHEMA).raise_for_status()
        controller.post("/tables", json=config).raise_for_status()
        parameters = {"tableNameWithType": "odd_OFFLINE", "batchConfigMapStr": json.dumps(batch)}
        files = {"file": ("rows.json", content)}
        controller.post("/ingestFromFile", params=parameters, files=files).raise_for_status()
    wait_until(lambda: plain_rows(pinot_cluster, "SELECT COUNT(*) FROM odd") == [[ROWS + 1]])
    return pinot_cluster


class Recording(PinotEngine):
    """An engine that keeps its answers, and which questions it has begun to answer."""

    def __init__(self, cluster: PinotCluster) -> None:
        super().__init__(controller=cluster.controller_url, broker=cluster.broker_url)
        self.answers: list[EngineAnswer] = []

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """See `Engine.run`."""
        self.answers.append(super().run(query, data_version))
        return self.answers[-1]


@pytest.fixture(scope="module")
@needs("process")
def by_member(
    odd_table: PinotCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, EmbeddedServices]]:
    """The services, under a policy for each column that may be the member's; the text is not listed."""
    listed = f"{HEAD}ml{COLUMNS}      ml: {{type: int64}}\n"
    policies = {
        "m": f"{HEAD}m{COLUMNS}",
        "mm": f"{HEAD}mm{COLUMNS}",
        "unlisted": f"{HEAD}ml{COLUMNS}",
        "ml": listed,
    }
    running: dict[str, EmbeddedServices] = {}
    try:
        for name, policy in policies.items():
            folder = tmp_path_factory.mktemp(name)
            services = embedded(folder, policy)
            running[name] = services.__enter__()
        yield running
    finally:
        for services in running.values():
            services.__exit__(None, None, None)


def counted(cluster: PinotCluster, services: EmbeddedServices, sql: str) -> dict[object, int]:
    """Return the true counts by element that a question is answered from; a refusal must have cost nothing."""
    engine = Recording(cluster)
    try:
        with blocking_client_of(services, engine, account=f"t/{next(_numbers)}") as client:
            try:
                client.sql(sql)
            except EngineRefused:
                assert not engine.answers
                (*_, level) = client.remaining()
                assert level.remaining == level.limit
                raise
    finally:
        engine.close()
    (answer,) = engine.answers
    return dict(zip(answer.elements[0], answer.counts, strict=True))


REFUSED = {
    "a dimension of several values": ("several", "", "m", "column several: one row has several values"),
    "a filter on several values": ("c", "several = 'a'", "m", "column several: one row has several values"),
    "a member of several values": ("c", "", "mm", "column mm: one row has several values"),
    "a member of another type": ("c", "", "unlisted", "column ml: Pinot holds LONG.*list the member column"),
    "a text that is compared as a number": (
        "c",
        "age BETWEEN 2 AND 9",
        "m",
        "column age: Pinot holds STRING",
    ),
    "a fraction": ("c", "d > 3", "m", "column d: Pinot holds DOUBLE"),
    "another null of a metric": ("metric", "", "m", "column metric: Pinot stores 0 where"),
    "a column that is not there": ("c", "gone = 'x'", "m", "no column gone"),
    "a number that the column cannot hold": (
        "c",
        "i32 <= 5000000000",
        "m",
        "column i32: .* more than 32 bits",
    ),
}


@pytest.mark.usefixtures("starts_pinot")
@pytest.mark.parametrize("name", REFUSED)
def test_a_column_that_is_not_what_the_policy_says_is_refused_by_name(
    odd_table: PinotCluster, by_member: dict[str, EmbeddedServices], name: str
) -> None:
    """Nothing is asked and nothing is paid."""
    dimension, where, member, expected = REFUSED[name]
    column = "ml" if member == "unlisted" else member
    sql = (
        f"SELECT {dimension}, COUNT(DISTINCT {column}) FROM odd {'WHERE ' + where if where else ''} "  # noqa: S608
        f"GROUP BY {dimension} ORDER BY 2 DESC LIMIT 3"
    )
    with pytest.raises(EngineRefused, match=expected):
        counted(odd_table, by_member[member], sql)


@pytest.mark.usefixtures("starts_pinot")
@pytest.mark.parametrize("member", ["m", "ml"])
def test_rows_without_a_member_are_left_out(
    odd_table: PinotCluster, by_member: dict[str, EmbeddedServices], member: str
) -> None:
    """Whether the policy lists the member column or not; Pinot by itself counts one member more."""
    sql = f"SELECT c, COUNT(DISTINCT {member}) FROM odd GROUP BY c ORDER BY 2 DESC LIMIT 3"  # noqa: S608
    assert [["x", ROWS + 1]] == plain_rows(odd_table, sql)
    assert {"x": ROWS} == counted(odd_table, by_member[member], sql)


@pytest.mark.usefixtures("starts_pinot")
@pytest.mark.parametrize("column", ["i32", "i64"])
def test_a_null_that_the_policy_drops_is_no_element(
    odd_table: PinotCluster, by_member: dict[str, EmbeddedServices], column: str
) -> None:
    """Of 32 and of 64 bits, each by the value that Pinot stores; every other number has its member."""
    sql = f"SELECT {column}, COUNT(DISTINCT m) FROM odd GROUP BY {column} ORDER BY 2 DESC LIMIT 3"  # noqa: S608
    assert {i: 1 for i in range(ROWS) if i % 3} == counted(odd_table, by_member["m"], sql)
