"""On a real Pinot: whose time-out counts, and what a second try is worth while the broker does not know of a death."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType, ReadColumn
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineUnavailable, IncompleteAnswer
from tests.engines.pinot.loading import (
    create_table,
    has_table,
    plain_answer,
    plain_count,
    upload,
    wait_for_rows,
)
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.queries import confirmed, count_members
from tests.engines.pinot.waiting import wait_until

COLUMNS = {"member_id": "STRING", "country": "STRING"}
ROWS: list[dict[str, object]] = [{"member_id": f"m{i}", "country": "DE", "day": 17000} for i in range(5)]


def test_a_tables_own_time_out_decides_nothing(pinot_cluster: PinotCluster, engine: PinotEngine) -> None:
    """Pinot by itself gives up after the table's millisecond; the connector's request says how long it waits."""
    create_table(pinot_cluster, "hurried", COLUMNS, query={"timeoutMs": 1})
    upload(pinot_cluster, "hurried", "hurried_a", ROWS)
    query = count_members("hurried", ("country", ColumnType.STRING))
    wait_until(lambda: [5] == _counts_in_the_end(engine, "hurried"))
    # A quick server may keep within a millisecond, now and then.
    wait_until(lambda: bool(plain_answer(pinot_cluster, query.sql)["exceptions"]))
    assert [5] == confirmed(engine, query).counts


def _counts_in_the_end(engine: PinotEngine, table: str) -> list[int]:
    try:
        return confirmed(engine, count_members(table, ("country", ColumnType.STRING))).counts
    except Exception:
        return []


@pytest.fixture
def replicated(pinot_cluster: PinotCluster) -> Iterator[PinotCluster]:
    """The cluster with tables of which each server holds every segment; both servers answer at first.

    A query of `grouped` asks one server, a query of `balanced` both.
    """
    tables = {"grouped": {"routing": {"instanceSelectorType": "replicaGroup"}}, "balanced": {}}
    for table, config in tables.items():
        if not has_table(pinot_cluster, table):
            create_table(pinot_cluster, table, COLUMNS, replication=2, **config)
            for segment in "abc":
                upload(pinot_cluster, table, f"{table}_{segment}", ROWS)
        wait_for_rows(pinot_cluster, table, 15)
        wait_until(lambda table=table: all(_is_whole(pinot_cluster, table) for _ in "12"))  # type: ignore[misc]
    yield pinot_cluster
    pinot_cluster.start_server(0)


@pytest.fixture
def asking(replicated: PinotCluster) -> Iterator[PinotEngine]:
    """An engine that asks the servers what they have loaded, so that it does not wait for what was pushed just now."""
    with closing(
        PinotEngine(controller=replicated.controller_url, broker=replicated.broker_url, server_admin=True)
    ) as engine:
        yield engine


def _is_whole(cluster: PinotCluster, table: str) -> bool:
    return bool(plain_count(cluster, table)["totalDocs"] == len("abc") * len(ROWS))


def test_a_table_with_replica_groups_is_answered_while_the_broker_does_not_know_of_a_death(
    replicated: PinotCluster, asking: PinotEngine
) -> None:
    """Every second query of Pinot fails for half a minute; the connector's do not."""
    query = count_members("grouped", ("country", ColumnType.STRING))
    version = asking.data_version("grouped")
    confirmed(asking, query, version)
    replicated.kill_server(0)
    # Servers take turns, so some of these are asked of the one that is gone.
    for _ in range(6):
        assert [5] == confirmed(asking, query, version).counts
    assert any(plain_answer(replicated, query.sql)["exceptions"] for _ in range(4))


@pytest.fixture
def detecting_broker(replicated: PinotCluster) -> Iterator[PinotCluster]:
    """The cluster with a broker that leaves out a server to which a connection failed."""
    configs, name = f"{replicated.controller_url}/cluster/configs", "pinot.broker.failure.detector.type"
    HTTP.post(configs, json={name: "CONNECTION"}, timeout=30).raise_for_status()
    _restart_broker(replicated)
    yield replicated
    HTTP.delete(f"{configs}/{name}", timeout=30).raise_for_status()
    _restart_broker(replicated)


def _restart_broker(cluster: PinotCluster) -> None:
    cluster.stop_broker()
    cluster.start_broker()
    wait_until(lambda: _is_whole(cluster, "balanced"))


def test_a_broker_that_detects_failures_answers_the_second_time(
    detecting_broker: PinotCluster, asking: PinotEngine
) -> None:
    """The first question after a death tells the broker of it, and is answered all the same."""
    query = count_members("balanced", ("country", ColumnType.STRING))
    version = asking.data_version("balanced")
    confirmed(asking, query, version)
    detecting_broker.kill_server(0)
    assert [5] == confirmed(asking, query, version).counts


def test_no_server_at_all_is_not_taken_for_no_segment(
    pinot_cluster: PinotCluster, engine: PinotEngine
) -> None:
    """Pinot 0.11 says the same, word for word, when every segment is pruned and when every server is dead."""
    create_table(pinot_cluster, "pruned", COLUMNS, routing={"segmentPrunerTypes": ["time"]})
    upload(pinot_cluster, "pruned", "pruned_old", ROWS)
    upload(pinot_cluster, "pruned", "pruned_new", [{"member_id": "m", "country": "DE", "day": 17020}])
    wait_for_rows(pinot_cluster, "pruned", len(ROWS) + 1)
    query = count_members(
        "pruned",
        ("country", ColumnType.STRING),
        where="WHERE day >= 17015",
        reads=(ReadColumn("day", ColumnType.DATE, None),),
    )
    version = engine.data_version(query.table)

    def is_refused() -> bool:
        try:
            assert [1] == confirmed(engine, query, version).counts
        except (IncompleteAnswer, EngineUnavailable):
            return True
        return False

    def is_left_alone() -> bool:
        answer = plain_answer(pinot_cluster, query.sql)
        assert is_refused()
        return not answer["numServersQueried"]

    # Once the broker has shown its segments nobody looks at them again: the counts before and after are what is left.
    assert not is_refused()
    for number in (0, 1):
        pinot_cluster.kill_server(number)
    try:
        wait_until(is_left_alone, seconds=120)
    finally:
        for number in (0, 1):
            pinot_cluster.start_server(number)
    wait_until(lambda: not is_refused())
