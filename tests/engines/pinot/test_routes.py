"""A broker's answers on a version count once it has shown that it asks for the segments of that version.

Nothing else tells old rows from new where segments are exchanged by others with new names and as many rows.
"""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType, EngineAnswer, ReadColumn
from pinot_connector.engines.pinot import PinotEngine, PinotTimings
from pinot_connector.errors import (
    DataChanged,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    IncompleteAnswer,
)
from tests.engines.pinot.loading import create_table, plain_answer, upload, wait_for_rows
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.queries import confirmed, count_members
from tests.engines.pinot.waiting import wait_until
from tests.support.fake_pinot import ANSWER, QUERY, FakePinot, loaded, reported

SHOWN = (
    'SELECT "$segmentName" AS "segment", COUNT(*) AS "gris_count" FROM "t" GROUP BY "$segmentName" LIMIT 2'
)


@pytest.fixture
def fake_engine(pinot: FakePinot) -> Iterator[PinotEngine]:
    """An engine for the fake Pinot that does not wait long, and gives brokers no time to learn of new segments."""
    engine = PinotEngine(
        controller=pinot.url,
        broker=pinot.url,
        timeout_seconds=2.0,
        timings=PinotTimings(broker_delay_seconds=0.0),
    )
    yield engine
    engine.close()


def exchange(pinot: FakePinot, name: str) -> None:
    """Have the controller list one other segment with as many rows, which is loaded."""
    pinot.replies |= reported({name: "2"}) | loaded({name: "2"})


def eventually(engine: PinotEngine) -> EngineAnswer:
    """Return an answer on the present version; the connector learns of it from its first refusal."""
    with pytest.raises(DataChanged):
        confirmed(engine, QUERY)
    return confirmed(engine, QUERY)


def test_a_broker_shows_its_segments_once_for_each_version(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """Before the first question on it, however old it is; it costs nothing while the version is in use."""
    heard: list[int] = []
    pinot.before_answer = lambda: heard.append(len(pinot.routes_asked))
    for _ in range(3):
        confirmed(fake_engine, QUERY)
    assert [1, 1, 1] == heard
    assert pinot.routes_asked[0].endswith(SHOWN)
    assert "numGroupsLimit=100000000;" in pinot.routes_asked[0]
    exchange(pinot, "new")
    eventually(fake_engine)
    assert 2 == len(pinot.routes_asked)


def test_a_version_that_comes_back_is_shown_again(pinot: FakePinot, fake_engine: PinotEngine) -> None:
    """A broker may still be where it was between."""
    confirmed(fake_engine, QUERY)
    exchange(pinot, "new")
    eventually(fake_engine)
    pinot.routes_of[""] = {"new": 7}
    pinot.replies |= reported({"s": "1"}) | loaded({"s": "1"})
    for _ in range(2):
        with pytest.raises(DataChanged):
            confirmed(fake_engine, QUERY)


@pytest.mark.parametrize(
    "routes", [{"old": 7}, {"old": 7, "s": 7}, {"s": 6, "old": 1}, {"s": 6, "empty": 1}, {"s": 8}]
)
def test_a_broker_that_asks_for_other_segments_is_late(
    pinot: FakePinot, fake_engine: PinotEngine, routes: dict[str, int]
) -> None:
    """The question is not even asked."""
    pinot.routes_of[""] = routes
    if routes == {"s": 8}:
        pinot.routes_say = {"totalDocs": 7}
    with pytest.raises(DataChanged, match="a broker of Pinot has not learned"):
        confirmed(fake_engine, QUERY)
    assert [] == pinot.queries
    pinot.routes_of.clear()
    pinot.routes_say = {}
    assert [5] == confirmed(fake_engine, QUERY).counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"partialResult": True}, IncompleteAnswer),
        ({"numServersQueried": 2}, IncompleteAnswer),
        ({"numSegmentsQueried": 0}, IncompleteAnswer),
        ({"totalDocs": 6}, IncompleteAnswer),
        ({"exceptions": [{"errorCode": 305}]}, IncompleteAnswer),
        ({"exceptions": [{"errorCode": 700}]}, EngineRefused),
        ({"exceptions": [{"errorCode": 429}]}, EngineUnavailable),
        ({"numSegmentsPrunedInvalid": 1}, EngineRefused),
        ({"resultTable": None}, IncompleteAnswer),
    ],
)
def test_what_a_broker_shows_has_to_be_whole(
    pinot: FakePinot, fake_engine: PinotEngine, said: dict[str, Any], error: type[EngineError]
) -> None:
    """It is judged as the answer to a question is."""
    pinot.routes_say = said
    with pytest.raises(error):
        confirmed(fake_engine, QUERY)
    assert [] == pinot.queries


def test_segments_without_rows_are_not_shown(pinot: FakePinot, fake_engine: PinotEngine) -> None:
    """They are in no group."""
    pinot.replies |= reported({"s": "1", "empty": "2"}) | loaded({"s": "1", "empty": "2"})
    pinot.replies["/segments/t_OFFLINE/empty/metadata"]["segment.total.docs"] = "0"
    pinot.replies["/query/sql"] = {**ANSWER, "numSegmentsQueried": 2}
    assert [5] == confirmed(fake_engine, QUERY).counts
    assert pinot.routes_asked[0].endswith("LIMIT 3")


def test_each_broker_behind_one_address_shows_its_segments(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """What was answered by one that had not is asked again, and the late one among them is found out."""
    pinot.brokers = itertools.cycle(["Broker_a", "Broker_b", "Broker_c"])
    for _ in range(4):
        assert [5] == confirmed(fake_engine, QUERY).counts
    asked = len(pinot.routes_asked)
    confirmed(fake_engine, QUERY)
    assert asked == len(pinot.routes_asked)
    exchange(pinot, "new")
    pinot.routes_of["Broker_b"] = {"s": 7}
    brokers = set()
    for _ in range(12):
        try:
            answer = confirmed(fake_engine, QUERY)
        except DataChanged:
            continue
        brokers.add(getattr(answer.coverage, "broker", None))
    assert "Broker_b" not in brokers


def test_a_broker_that_answers_for_the_first_time_is_asked_at_once(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """The first one went away after it had shown its segments."""
    pinot.brokers = itertools.chain(["Broker_gone"], itertools.repeat("Broker_here"))
    assert [5] == confirmed(fake_engine, QUERY).counts
    assert (2, 2) == (len(pinot.routes_asked), len(pinot.queries))


def test_an_answer_is_not_confirmed_after_its_version_went_and_came_back(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """Until its broker has shown its segments anew, nobody knows which of the two it answered on."""
    answer = fake_engine.run(QUERY, fake_engine.data_version("t"))
    exchange(pinot, "new")
    eventually(fake_engine)
    pinot.replies |= reported({"s": "1"}) | loaded({"s": "1"})
    with pytest.raises(DataChanged):
        confirmed(fake_engine, QUERY)
    assert answer.data_version == fake_engine.data_version("t")
    with pytest.raises(DataChanged):
        fake_engine.confirm(QUERY, answer)


def test_a_broker_that_never_shows_its_segments_is_not_trusted(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """In a bounded number of requests."""
    pinot.brokers = (f"Broker_{i}" for i in itertools.count())
    with pytest.raises(EngineUnavailable, match="several brokers"):
        confirmed(fake_engine, QUERY)
    assert len(pinot.routes_asked) < 30


def test_questions_that_come_together_have_one_of_them_ask(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """A new version of a large table is no reason to scan it for each of them."""
    version = fake_engine.data_version("t")
    pinot.delay_seconds = 0.2
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: fake_engine.run(QUERY, version), range(6)))
    assert (6, 1) == (len(answers), len(pinot.routes_asked))


def test_segments_that_lack_a_column_are_refused_with_a_way_out(
    pinot: FakePinot, fake_engine: PinotEngine
) -> None:
    """Servers before Pinot 1.4 leave them out; every other number is full."""
    for left_out in (0, None):
        pinot.replies["/query/sql"] = {**ANSWER, "numSegmentsPrunedInvalid": left_out}
        assert [5] == confirmed(fake_engine, QUERY).counts
    pinot.replies["/query/sql"] = {**ANSWER, "numSegmentsPrunedInvalid": 1}
    with pytest.raises(EngineRefused, match="reload the table's segments"):
        confirmed(fake_engine, QUERY)


@contextmanager
def stopped_broker(cluster: PinotCluster) -> Iterator[None]:
    """Stop the broker as a long collection of garbage does."""
    broker = cluster._processes["broker"]
    broker.send(signal.SIGSTOP)
    try:
        yield
    finally:
        broker.send(signal.SIGCONT)


def outcome(engine: PinotEngine, query: Any, version: str) -> object:
    """Return the elements of a confirmed answer on this version, or the error."""
    try:
        return confirmed(engine, query, version).elements
    except EngineError as error:
        return error


def test_old_rows_of_a_late_broker_are_never_answered_under_a_new_version(
    pinot_cluster: PinotCluster, engine: PinotEngine
) -> None:
    """The version is exchanged by segment lineage while the broker stands still, longer than it is waited for."""
    table = "late_broker"

    def rows(country: str) -> list[dict[str, object]]:
        return [{"member_id": f"m{i}", "country": country, "day": 17000} for i in range(10)]

    create_table(pinot_cluster, table, {"member_id": "STRING", "country": "STRING"})
    upload(pinot_cluster, table, "g0", rows("G0"))
    wait_for_rows(pinot_cluster, table, 10)
    query = count_members(table, ("country", ColumnType.STRING))
    wait_until(lambda: outcome(engine, query, engine.data_version(table)) == (["G0"],))
    url = f"{pinot_cluster.controller_url}/segments/{table}"
    kind = {"type": "OFFLINE"}
    outcomes: list[object] = []
    for number in range(1, 4):
        names = {"segmentsFrom": [f"g{number - 1}"], "segmentsTo": [f"g{number}"]}
        begun = HTTP.post(f"{url}/startReplaceSegments", params=kind, json=names, timeout=30).json()
        upload(pinot_cluster, table, f"g{number}", rows(f"G{number}"))
        entry = {"segmentLineageEntryId": begun["segmentLineageEntryId"]}
        # Until it is loaded, nobody may use it, and the broker would have learned of it too.
        time.sleep(4)
        with stopped_broker(pinot_cluster), ThreadPoolExecutor(6) as threads:
            HTTP.post(f"{url}/endReplaceSegments", params={**kind, **entry}, timeout=30).raise_for_status()
            time.sleep(0.5)
            engine._controller._latest.clear()
            version = engine.data_version(table)
            asked = [threads.submit(outcome, engine, query, version) for _ in range(6)]
            resumed = threading.Timer(0.5, lambda: pinot_cluster._processes["broker"].send(signal.SIGCONT))
            resumed.start()
            outcomes += [each.result() for each in asked]
        confirmed_ones = [each for each in outcomes if isinstance(each, tuple)]
        assert [] == [each for each in confirmed_ones if each != ([f"G{number}"],)], outcomes
        outcomes.clear()
        wait_until(lambda: outcome(engine, query, version) == ([f"G{number}"],))  # noqa: B023


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
