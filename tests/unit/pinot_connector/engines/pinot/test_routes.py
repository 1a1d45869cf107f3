"""A broker's answers on a version count once it has shown that it asks for the segments of that version.

Nothing else tells old rows from new where segments are exchanged by others with new names and as many rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pinot_connector.engines.base import EngineAnswer
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import (
    DataChanged,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    IncompleteAnswer,
)
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import ANSWER, QUERY, FakePinot, loaded, reported

SHOWN = (
    'SELECT "$segmentName" AS "segment", COUNT(*) AS "gris_count" FROM "t" GROUP BY "$segmentName" LIMIT 2'
)


@pytest.fixture
def engine(opened: Callable[..., PinotEngine]) -> PinotEngine:
    """An engine for the fake Pinot."""
    return opened()


def exchange(pinot: FakePinot, name: str) -> None:
    """Have the controller list one other segment with as many rows, which is loaded."""
    pinot.replies |= reported({name: "2"}) | loaded({name: "2"})


def eventually(engine: PinotEngine) -> EngineAnswer:
    """Return an answer on the present version; the connector learns of it from its first refusal."""
    with pytest.raises(DataChanged):
        confirmed(engine, QUERY)
    return confirmed(engine, QUERY)


def test_a_broker_shows_its_segments_once_for_each_version(pinot: FakePinot, engine: PinotEngine) -> None:
    """Before the first question on it, however old it is; it costs nothing while the version is in use."""
    heard: list[int] = []
    pinot.before_answer = lambda: heard.append(len(pinot.routes_asked))
    for _ in range(3):
        confirmed(engine, QUERY)
    assert [1, 1, 1] == heard
    assert pinot.routes_asked[0].endswith(SHOWN)
    assert "numGroupsLimit=100000000;" in pinot.routes_asked[0]
    exchange(pinot, "new")
    eventually(engine)
    assert 2 == len(pinot.routes_asked)


def test_a_version_that_comes_back_is_shown_again(pinot: FakePinot, engine: PinotEngine) -> None:
    """A broker may still be where it was between."""
    confirmed(engine, QUERY)
    exchange(pinot, "new")
    eventually(engine)
    pinot.routes_of[""] = {"new": 7}
    pinot.replies |= reported({"s": "1"}) | loaded({"s": "1"})
    for _ in range(2):
        with pytest.raises(DataChanged):
            confirmed(engine, QUERY)


@pytest.mark.parametrize(
    "routes", [{"old": 7}, {"old": 7, "s": 7}, {"s": 6, "old": 1}, {"s": 6, "empty": 1}, {"s": 8}]
)
def test_a_broker_that_asks_for_other_segments_is_late(
    pinot: FakePinot, engine: PinotEngine, routes: dict[str, int]
) -> None:
    """The question is not even asked."""
    pinot.routes_of[""] = routes
    if routes == {"s": 8}:
        pinot.routes_say = {"totalDocs": 7}
    with pytest.raises(DataChanged, match="a broker of Pinot has not learned"):
        confirmed(engine, QUERY)
    assert [] == pinot.queries
    pinot.routes_of.clear()
    pinot.routes_say = {}
    assert [5] == confirmed(engine, QUERY).counts


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
    pinot: FakePinot, engine: PinotEngine, said: dict[str, Any], error: type[EngineError]
) -> None:
    """It is judged as the answer to a question is."""
    pinot.routes_say = said
    with pytest.raises(error):
        confirmed(engine, QUERY)
    assert [] == pinot.queries


def test_segments_without_rows_are_not_shown(pinot: FakePinot, engine: PinotEngine) -> None:
    """They are in no group."""
    pinot.replies |= reported({"s": "1", "empty": "2"}) | loaded({"s": "1", "empty": "2"})
    pinot.replies["/segments/t_OFFLINE/empty/metadata"]["segment.total.docs"] = "0"
    pinot.replies["/query/sql"] = {**ANSWER, "numSegmentsQueried": 2}
    assert [5] == confirmed(engine, QUERY).counts
    assert pinot.routes_asked[0].endswith("LIMIT 3")


def test_each_broker_behind_one_address_shows_its_segments(pinot: FakePinot, engine: PinotEngine) -> None:
    """What was answered by one that had not is asked again, and the late one among them is found out."""
    pinot.brokers = itertools.cycle(["Broker_a", "Broker_b", "Broker_c"])
    for _ in range(4):
        assert [5] == confirmed(engine, QUERY).counts
    asked = len(pinot.routes_asked)
    confirmed(engine, QUERY)
    assert asked == len(pinot.routes_asked)
    exchange(pinot, "new")
    pinot.routes_of["Broker_b"] = {"s": 7}
    brokers = set()
    for _ in range(12):
        try:
            answer = confirmed(engine, QUERY)
        except DataChanged:
            continue
        brokers.add(getattr(answer.coverage, "broker", None))
    assert "Broker_b" not in brokers


def test_a_broker_that_answers_for_the_first_time_is_asked_at_once(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """The first one went away after it had shown its segments."""
    pinot.brokers = itertools.chain(["Broker_gone"], itertools.repeat("Broker_here"))
    assert [5] == confirmed(engine, QUERY).counts
    assert (2, 2) == (len(pinot.routes_asked), len(pinot.queries))


def test_an_answer_is_not_confirmed_after_its_version_went_and_came_back(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Until its broker has shown its segments anew, nobody knows which of the two it answered on."""
    answer = engine.run(QUERY, engine.data_version("t"))
    exchange(pinot, "new")
    eventually(engine)
    pinot.replies |= reported({"s": "1"}) | loaded({"s": "1"})
    with pytest.raises(DataChanged):
        confirmed(engine, QUERY)
    assert answer.data_version == engine.data_version("t")
    with pytest.raises(DataChanged):
        engine.confirm(QUERY, answer)


def test_a_broker_that_never_shows_its_segments_is_not_trusted(pinot: FakePinot, engine: PinotEngine) -> None:
    """In a bounded number of requests."""
    pinot.brokers = (f"Broker_{i}" for i in itertools.count())
    with pytest.raises(EngineUnavailable, match="several brokers"):
        confirmed(engine, QUERY)
    assert len(pinot.routes_asked) < 30


def test_questions_that_come_together_have_one_of_them_ask(pinot: FakePinot, engine: PinotEngine) -> None:
    """A new version of a large table is no reason to scan it for each of them."""
    version = engine.data_version("t")
    pinot.delay_seconds = 0.2
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: engine.run(QUERY, version), range(6)))
    assert (6, 1) == (len(answers), len(pinot.routes_asked))


def test_segments_that_lack_a_column_are_refused_with_a_way_out(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Servers before Pinot 1.4 leave them out; every other number is full."""
    for left_out in (0, None):
        pinot.replies["/query/sql"] = {**ANSWER, "numSegmentsPrunedInvalid": left_out}
        assert [5] == confirmed(engine, QUERY).counts
    pinot.replies["/query/sql"] = {**ANSWER, "numSegmentsPrunedInvalid": 1}
    with pytest.raises(EngineRefused, match="reload the table's segments"):
        confirmed(engine, QUERY)
