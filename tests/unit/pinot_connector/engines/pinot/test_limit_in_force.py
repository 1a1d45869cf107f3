"""A broker that answers with fewer rows than a query asks for is refused, wherever its setting stands."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from pinot_connector.engines.base import Feature
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.engines.pinot.configuration import EXACT
from pinot_connector.errors import EngineRefused, EngineUnavailable
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import QUERY, FakePinot
from tests.support.skipped_time import SkippedTime


@pytest.fixture
def engine(opened: Callable[..., PinotEngine]) -> PinotEngine:
    """An engine for the fake Pinot."""
    return opened()


def test_a_cluster_that_new_versions_set_up_is_asked(pinot: FakePinot, engine: PinotEngine) -> None:
    """Since 1.4 the controller turns the override on; without a limit of a broker it does nothing."""
    pinot.replies["/cluster/configs"] = {"pinot.broker.enable.query.limit.override": "true"}
    assert [5] == confirmed(engine, QUERY).counts


def test_a_limit_that_only_the_brokers_own_file_sets_is_noticed(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """No cluster setting tells it, and the answer of so many rows looks whole."""
    pinot.limits[""] = QUERY.row_limit - 1
    for _ in range(2):
        with pytest.raises(EngineRefused, match=r"pinot\.broker\.query\.response\.limit"):
            confirmed(engine, QUERY)


def test_a_limit_beyond_what_a_question_asks_for_is_harmless(pinot: FakePinot, engine: PinotEngine) -> None:
    """Only a question that asks for more rows is refused."""
    pinot.limits[""] = QUERY.row_limit
    assert [5] == confirmed(engine, QUERY).counts
    with pytest.raises(EngineRefused):
        confirmed(engine, replace(QUERY, row_limit=QUERY.row_limit + 1))


def test_a_broker_that_refuses_large_limits_by_itself_is_asked(pinot: FakePinot, engine: PinotEngine) -> None:
    """It lowers none; it is asked about each larger question."""
    pinot.most_rows = 100
    for row_limit in (3, 50, 3):
        assert [5] == confirmed(engine, replace(QUERY, row_limit=row_limit)).counts
    with pytest.raises(EngineRefused, match="refused the query"):
        confirmed(engine, replace(QUERY, row_limit=101))


def test_a_broker_is_explained_once_a_minute(pinot: FakePinot, engine: PinotEngine) -> None:
    """Within that time, further questions cost no further request."""
    for row_limit in (3, 100_001):
        confirmed(engine, replace(QUERY, row_limit=row_limit))
    assert 1 == len(pinot.explained)


def test_a_broker_that_begins_to_lower_limits_is_noticed_after_that_time(
    pinot: FakePinot, engine: PinotEngine, clock: SkippedTime
) -> None:
    """Its plan is asked for again once the last one is too old."""
    confirmed(engine, QUERY)
    pinot.limits[""] = 2
    assert [5] == confirmed(engine, QUERY).counts
    clock.sleep(60)
    with pytest.raises(EngineRefused):
        confirmed(engine, QUERY)


def test_what_is_explained_holds_nothing_of_a_question(pinot: FakePinot, engine: PinotEngine) -> None:
    """Pinot logs its queries. Without a filter there is always something to plan for."""
    confirmed(engine, QUERY)
    expected = 'EXPLAIN PLAN FOR SELECT "d", COUNT(*) FROM "t" GROUP BY "d" LIMIT 100001'
    assert [EXACT + expected] == pinot.explained


def test_each_broker_behind_one_address_is_explained_before_its_answers_count(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """A balancer leads to any of them; what one does says nothing of another."""
    pinot.brokers = itertools.cycle(["Broker_a", "Broker_b", "Broker_c"])
    pinot.limits["Broker_b"] = 2
    outcomes = []
    for _ in range(6):
        answer = engine.run(QUERY, engine.data_version("t"))
        try:
            engine.confirm(QUERY, answer)
        except EngineRefused:
            outcomes.append("refused")
        else:
            outcomes.append("confirmed")
    named = [broker for broker, _ in zip(itertools.cycle("abc"), range(40), strict=False)]
    assert {"refused", "confirmed"} == set(outcomes), named
    assert 2 == outcomes.count("refused")


def test_a_broker_that_is_not_met_again_is_not_trusted(pinot: FakePinot, engine: PinotEngine) -> None:
    """Nobody knows what it does to a LIMIT. It has reported which segments it asks for, and has answered."""
    pinot.brokers = itertools.chain(["Broker_gone"] * 2, itertools.repeat("Broker_here"))
    with pytest.raises(EngineUnavailable, match="cannot be found again"):
        confirmed(engine, QUERY)


@pytest.mark.parametrize("documents", [0, 7])
def test_a_table_without_rows_has_no_plan_and_is_answered(
    pinot: FakePinot, engine: PinotEngine, documents: int
) -> None:
    """A broker that leaves out empty segments plans nothing; LIMIT leaves out none of no rows."""
    pinot.has_plans = False
    pinot.replies["/segments/t_OFFLINE/s/metadata"]["segment.total.docs"] = str(documents)
    pinot.replies["/query/sql"] = pinot.replies["/query/sql"] | {"totalDocs": documents}
    if documents:
        with pytest.raises(EngineUnavailable, match="LIMIT"):
            confirmed(engine, QUERY)
    else:
        assert [5] == confirmed(engine, QUERY).counts


def test_the_multi_stage_engine_is_not_explained(pinot: FakePinot, engine: PinotEngine) -> None:
    """It lowers no LIMIT, and its plans do not say one."""
    pinot.limits[""] = 1
    query = replace(QUERY, requires=frozenset({Feature.PINOT_MULTISTAGE}))
    assert [5] == confirmed(engine, query).counts
    assert [] == pinot.explained
