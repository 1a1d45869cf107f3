"""On a real Pinot: whose time-out counts, and what a second try is worth while the broker does not know of a death."""

from collections.abc import Iterator

import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType
from pinot_connector.engines.pinot import PinotEngine
from tests.pinot.loading import create_table, plain_answer, upload, wait_for_rows
from tests.pinot.queries import confirmed, count_members
from tests.pinot.waiting import wait_until

pytestmark = pytest.mark.pinot

COLUMNS = {"member_id": "STRING", "country": "STRING"}
ROWS: list[dict[str, object]] = [{"member_id": f"m{i}", "country": "DE", "day": 17000} for i in range(5)]


def test_a_tables_own_time_out_decides_nothing(pinot_cluster: PinotCluster, engine: PinotEngine) -> None:
    """Pinot by itself gives up after the table's millisecond; the connector's request says how long it waits."""
    create_table(pinot_cluster, "hurried", COLUMNS, query={"timeoutMs": 1})
    upload(pinot_cluster, "hurried", "hurried_a", ROWS)
    query = count_members("hurried", ("country", ColumnType.STRING))
    wait_until(lambda: [5] == _counts_in_the_end(engine, "hurried"))
    assert plain_answer(pinot_cluster, query.sql)["exceptions"]
    assert [5] == confirmed(engine, query).counts


def _counts_in_the_end(engine: PinotEngine, table: str) -> list[int]:
    try:
        return confirmed(engine, count_members(table, ("country", ColumnType.STRING))).counts
    except Exception:
        return []


@pytest.fixture
def replicated(pinot_cluster: PinotCluster) -> Iterator[PinotCluster]:
    """The cluster with a table of which each server holds every segment, and a query asks one."""
    create_table(
        pinot_cluster, "doubled", COLUMNS, replication=2, routing={"instanceSelectorType": "replicaGroup"}
    )
    for segment in "abc":
        upload(pinot_cluster, "doubled", f"doubled_{segment}", ROWS)
    wait_for_rows(pinot_cluster, "doubled", 15)
    # Both servers answer, in turns.
    wait_until(
        lambda: all(
            plain_answer(pinot_cluster, "SELECT COUNT(*) FROM doubled")["totalDocs"] == 15 for _ in "12"
        )
    )
    yield pinot_cluster
    pinot_cluster.start_server(0)


def test_a_table_with_replicas_is_answered_while_the_broker_does_not_know_of_a_death(
    replicated: PinotCluster, engine: PinotEngine
) -> None:
    """Every second query of Pinot fails for half a minute; the connector's do not."""
    query = count_members("doubled", ("country", ColumnType.STRING))
    version = engine.data_version("doubled")
    confirmed(engine, query, version)
    replicated.kill_server(0)
    # Servers take turns, so some of these are asked of the one that is gone.
    for _ in range(6):
        assert [5] == confirmed(engine, query, version).counts
    assert any(plain_answer(replicated, query.sql)["exceptions"] for _ in range(4))
