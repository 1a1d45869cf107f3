"""A broker that answers with fewer rows than a query asks for is refused, wherever its setting stands."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType, Feature
from pinot_connector.engines.pinot import PinotEngine, PinotTimings
from pinot_connector.engines.pinot.configuration import EXACT
from pinot_connector.errors import EngineRefused, EngineUnavailable
from tests.engines.pinot.loading import plain_answer
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.queries import confirmed, count_members
from tests.engines.pinot.trimmed_table import TrimmedTable
from tests.engines.pinot.waiting import wait_until
from tests.support.fake_pinot import QUERY, FakePinot


@pytest.fixture
def fake_engine(pinot: FakePinot) -> Iterator[PinotEngine]:
    """An engine for the fake Pinot."""
    engine = PinotEngine(controller=pinot.url, broker=pinot.url, timeout_seconds=5.0)
    yield engine
    engine.close()


def test_a_cluster_that_new_versions_set_up_is_asked(pinot: FakePinot, fake_engine: PinotEngine) -> None:
    """Since 1.4 the controller turns the override on; without a limit of a broker it does nothing."""
    pinot.replies["/cluster/configs"] = {"pinot.broker.enable.query.limit.override": "true"}
    assert [5] == confirmed(fake_engine, QUERY).counts


def test_a_limit_that_only_the_brokers_own_file_sets_is_noticed(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """No cluster setting tells it, and the answer of so many rows looks whole."""
    pinot.limits[""] = QUERY.row_limit - 1
    for _ in range(2):
        with pytest.raises(EngineRefused, match=r"pinot\.broker\.query\.response\.limit"):
            confirmed(fake_engine, QUERY)


def test_a_limit_beyond_what_a_question_asks_for_is_harmless(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """Only a question that asks for more rows is refused."""
    pinot.limits[""] = QUERY.row_limit
    assert [5] == confirmed(fake_engine, QUERY).counts
    with pytest.raises(EngineRefused):
        confirmed(fake_engine, replace(QUERY, row_limit=QUERY.row_limit + 1))


def test_a_broker_that_refuses_large_limits_by_itself_is_asked(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """It lowers none; it is asked about each larger question."""
    pinot.most_rows = 100
    for row_limit in (3, 50, 3):
        assert [5] == confirmed(fake_engine, replace(QUERY, row_limit=row_limit)).counts
    with pytest.raises(EngineRefused, match="refused the query"):
        confirmed(fake_engine, replace(QUERY, row_limit=101))


def test_a_broker_is_explained_once_a_minute(pinot: FakePinot, fake_engine: PinotEngine) -> None:
    """Within that time, further questions cost no further request."""
    for row_limit in (3, 100_001):
        confirmed(fake_engine, replace(QUERY, row_limit=row_limit))
    assert 1 == len(pinot.explained)


def test_a_broker_that_begins_to_lower_limits_is_noticed_after_that_time(pinot: FakePinot) -> None:
    """Its plan is asked for again once the last one is too old."""
    timings = PinotTimings(plan_memory_seconds=0.0)
    with closing(PinotEngine(controller=pinot.url, broker=pinot.url, timings=timings)) as engine:
        confirmed(engine, QUERY)
        pinot.limits[""] = 2
        with pytest.raises(EngineRefused):
            confirmed(engine, QUERY)


def test_what_is_explained_holds_nothing_of_a_question(pinot: FakePinot, fake_engine: PinotEngine) -> None:
    """Pinot logs its queries. Without a filter there is always something to plan for."""
    confirmed(fake_engine, QUERY)
    expected = 'EXPLAIN PLAN FOR SELECT "d", COUNT(*) FROM "t" GROUP BY "d" LIMIT 100001'
    assert [EXACT + expected] == pinot.explained


def test_each_broker_behind_one_address_is_explained_before_its_answers_count(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """A balancer leads to any of them; what one does says nothing of another."""
    pinot.brokers = itertools.cycle(["Broker_a", "Broker_b", "Broker_c"])
    pinot.limits["Broker_b"] = 2
    outcomes = []
    for _ in range(6):
        answer = fake_engine.run(QUERY, fake_engine.data_version("t"))
        try:
            fake_engine.confirm(QUERY, answer)
        except EngineRefused:
            outcomes.append("refused")
        else:
            outcomes.append("confirmed")
    named = [broker for broker, _ in zip(itertools.cycle("abc"), range(40), strict=False)]
    assert {"refused", "confirmed"} == set(outcomes), named
    assert 2 == outcomes.count("refused")


def test_a_broker_that_is_not_met_again_is_not_trusted(pinot: FakePinot, fake_engine: PinotEngine) -> None:
    """Nobody knows what it does to a LIMIT. It has reported which segments it asks for, and has answered."""
    pinot.brokers = itertools.chain(["Broker_gone"] * 2, itertools.repeat("Broker_here"))
    with pytest.raises(EngineUnavailable, match="cannot be found again"):
        confirmed(fake_engine, QUERY)


@pytest.mark.parametrize("documents", [0, 7])
def test_a_table_without_rows_has_no_plan_and_is_answered(
    pinot: FakePinot, fake_engine: PinotEngine, documents: int
) -> None:
    """A broker that leaves out empty segments plans nothing; LIMIT leaves out none of no rows."""
    pinot.has_plans = False
    pinot.replies["/segments/t_OFFLINE/s/metadata"]["segment.total.docs"] = str(documents)
    pinot.replies["/query/sql"] = pinot.replies["/query/sql"] | {"totalDocs": documents}
    if documents:
        with pytest.raises(EngineUnavailable, match="LIMIT"):
            confirmed(fake_engine, QUERY)
    else:
        assert [5] == confirmed(fake_engine, QUERY).counts


def test_the_multi_stage_engine_is_not_explained(pinot: FakePinot, fake_engine: PinotEngine) -> None:
    """It lowers no LIMIT, and its plans do not say one."""
    pinot.limits[""] = 1
    query = replace(QUERY, requires=frozenset({Feature.PINOT_MULTISTAGE}))
    assert [5] == confirmed(fake_engine, query).counts
    assert [] == pinot.explained


def test_a_real_broker_is_refused_only_while_it_lowers_limits(
    pinot_cluster: PinotCluster, trimmed_table: TrimmedTable, engine: PinotEngine
) -> None:
    """With both settings Pinot gives 500 rows of 1,001 and no sign of it; the override alone does nothing."""
    query = count_members("nasty", ("article_id", ColumnType.STRING), limit=1001)
    small = count_members("nasty", ("article_id", ColumnType.STRING), limit=500)
    configs = f"{pinot_cluster.controller_url}/cluster/configs"
    override, most = "pinot.broker.enable.query.limit.override", "pinot.broker.query.response.limit"
    before = HTTP.get(configs, timeout=30).json().get(override, "false")

    def rows_and_outcome(settings: dict[str, str]) -> tuple[int, int | str]:
        HTTP.post(configs, json=settings, timeout=30).raise_for_status()
        pinot_cluster.stop_broker()
        pinot_cluster.start_broker()
        wait_until(lambda: plain_answer(pinot_cluster, query.sql).get("numSegmentsQueried") == 2)
        new = PinotEngine(controller=pinot_cluster.controller_url, broker=pinot_cluster.broker_url)
        try:
            assert 500 == len(confirmed(new, small).counts)
            outcome: int | str = len(confirmed(new, query).counts)
        except EngineRefused as error:
            outcome = str(error)
        finally:
            new.close()
        return len(plain_answer(pinot_cluster, query.sql)["resultTable"]["rows"]), outcome

    try:
        assert (1001, 1001) == rows_and_outcome({override: "true"})
        rows, outcome = rows_and_outcome({most: "500"})
        assert (500, True) == (rows, most in str(outcome))
    finally:
        HTTP.delete(f"{configs}/{most}", timeout=30).raise_for_status()
        assert (1001, 1001) == rows_and_outcome({override: before})
