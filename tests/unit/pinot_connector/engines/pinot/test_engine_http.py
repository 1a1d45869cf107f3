"""What the engine makes of brokers and controllers that are slow, wrong or hostile."""

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest

from pinot_connector.engines.base import EngineQuery
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import DataChanged, EngineGone, EngineRefused, EngineUnavailable, IncompleteAnswer
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import QUERY, FakePinot, loaded, reported
from tests.support.skipped_time import SkippedTime


@pytest.fixture
def engine(pinot: FakePinot) -> Iterator[PinotEngine]:
    """An engine for the fake Pinot that does not wait long."""
    engine = PinotEngine(
        controller=pinot.url, broker=pinot.url, authorization="Bearer token", timeout_seconds=2.0
    )
    yield engine
    engine.close()


def ask(engine: PinotEngine, query: EngineQuery = QUERY) -> list[int]:
    """Return the counts of an answer on the present version."""
    return confirmed(engine, query).counts


def test_a_whole_answer_is_given(engine: PinotEngine) -> None:
    """The fake is convincing: what follows fails for its own reason."""
    assert ask(engine) == [5]


@pytest.mark.slow
@pytest.mark.parametrize(
    "literal", ["%", "%%", "%%%", "%(x)s", "%(", "%s", "%%(", "100%%(x)d%", "{}", "\\", "*", "é%"]
)
def test_text_reaches_the_broker_unchanged(pinot: FakePinot, engine: PinotEngine, literal: str) -> None:
    """Nothing formats a query once more: none is asked but the one that was rendered."""
    sql = f"SELECT '{literal}'"
    ask(engine, EngineQuery("t", sql, QUERY.columns, 3))
    assert pinot.queries == [sql]


def test_the_token_is_sent_to_both(pinot: FakePinot, engine: PinotEngine) -> None:
    """Controller and broker see the same credentials, always."""
    ask(engine)
    assert set(pinot.headers) == {"Bearer token"}


@pytest.mark.slow
def test_many_questions_may_be_asked_at_once(pinot: FakePinot, engine: PinotEngine) -> None:
    """Threads share one engine; none loses its credentials or its answer."""
    version = engine.data_version("t")
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: confirmed(engine, QUERY, version).counts, range(200)))
    assert answers == [[5]] * 200
    assert set(pinot.headers) == {"Bearer token"}


@pytest.mark.parametrize(
    ("controller", "broker"), [("https://a", "http://b"), ("http://a", "https://b"), ("http://a", "b:8099")]
)
def test_schemes_are_not_mixed(controller: str, broker: str) -> None:
    """A token is not sent in the clear because one of two URLs says so."""
    with pytest.raises(ValueError, match="https"):
        PinotEngine(controller=controller, broker=broker)


def test_no_proxy_of_the_environment_sees_counts(
    pinot: FakePinot, engine: PinotEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program's environment may name a proxy for the web; true counts do not pass through it."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")
    other = PinotEngine(controller=pinot.url, broker=pinot.url, authorization="Bearer token")
    assert ask(other) == [5]
    other.close()


def test_a_path_before_pinot_is_kept(pinot: FakePinot) -> None:
    """A cluster may stand behind one address with others; users in an address are not part of its name."""
    pinot.replies = {f"/pinot{path}": reply for path, reply in pinot.replies.items()}
    url = f"{pinot.url.replace('//', '//somebody@')}/pinot/"
    engine = PinotEngine(controller=url, broker=url)
    assert ask(engine) == [5]
    engine.close()


@pytest.mark.slow
def test_a_slow_broker_is_unavailable(pinot: FakePinot, engine: PinotEngine) -> None:
    """No question hangs."""
    pinot.delay_seconds = 6
    started = time.monotonic()
    with pytest.raises(EngineUnavailable, match="in time"):
        ask(engine)
    assert time.monotonic() - started < 5


def test_a_table_that_changes_during_the_query_is_noticed(pinot: FakePinot, engine: PinotEngine) -> None:
    """The version is read again after the answer has come."""
    pinot.before_answer = lambda: pinot.replies.update(reported({"s": "2"}))
    with pytest.raises(DataChanged):
        ask(engine)


def test_the_controller_is_read_once_for_a_question_that_finds_the_data_as_they_were(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """What one answer was compared with is what the next question begins with; a change is found by its answer."""
    ask(engine)
    read_before = pinot.paths.count("/segments/t_OFFLINE/zkmetadata")
    ask(engine)
    assert 1 == pinot.paths.count("/segments/t_OFFLINE/zkmetadata") - read_before
    pinot.replies |= reported({"s": "2"}) | loaded({"s": "2"})
    with pytest.raises(DataChanged):
        ask(engine)
    assert ask(engine) == [5]


@pytest.mark.parametrize(
    ("version", "path"), [("0.11.0", "crc"), ("1.0.0", "zkmetadata"), ("1.5.1", "zkmetadata")]
)
def test_an_answer_is_confirmed_by_the_list_of_segments_alone_where_none_is_left_out(
    pinot: FakePinot, engine: PinotEngine, version: str, path: str
) -> None:
    """One request a question; everything else that is known of a table changes only together with it."""
    pinot.replies["/version"] = {"pinot-controller": version}
    ask(engine)
    pinot.paths.clear()
    assert ask(engine) == [5]
    assert pinot.paths == ["/query/sql", f"/segments/t_OFFLINE/{path}"]


def test_all_is_read_after_every_answer_while_replaced_segments_are_kept(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Which of two sets of segments is served may change while every checksum stays."""
    pinot.replies |= reported({"s": "1", "new": "2"}) | {"/segments/t": [{"OFFLINE": ["s"]}]}
    assert ask(engine) == [5]
    pinot.before_answer = lambda: pinot.replies.update({"/segments/t": [{"OFFLINE": ["new"]}]})
    with pytest.raises(DataChanged):
        ask(engine)


def test_a_segment_that_is_switched_off_during_the_query_is_noticed(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Its checksum stays, and the answer covers one segment less: all is read again, and the version is another."""
    pinot.replies |= reported({"s": "1", "x": "2"}) | loaded({"s": "1", "x": "2"})
    with pytest.raises(IncompleteAnswer):
        ask(engine)
    off = {"/tables/t/idealstate": {"OFFLINE": {"s": {"server": "ONLINE"}, "x": {"server": "OFFLINE"}}}}
    pinot.before_answer = lambda: pinot.replies.update(off)
    with pytest.raises(DataChanged):
        ask(engine)
    assert ask(engine) == [5]


def test_a_young_version_is_given_only_when_queries_see_it_too(
    pinot: FakePinot, engine: PinotEngine, clock: SkippedTime
) -> None:
    """The controller runs ahead: a segment replaced just now would answer with its old rows under the new version."""
    pinot.replies |= reported({"s": "1"}, segment_refresh_time=str(int(time.time() * 1000)))
    engine.data_version("t")
    waited = clock.passed
    assert waited > 1
    engine.data_version("t")
    assert clock.passed == waited


def test_an_old_version_is_given_at_once(engine: PinotEngine, clock: SkippedTime) -> None:
    """A program that asks one question of data that nobody changes does not wait."""
    engine.data_version("t")
    assert clock.passed == 0


@pytest.mark.parametrize("version", ["0.11.0", "1.5.1"])
def test_a_segment_without_a_checksum_is_still_being_loaded(
    pinot: FakePinot, engine: PinotEngine, version: str
) -> None:
    """A table has no version while the controller does not know all of it."""
    pinot.replies["/version"] = {"pinot-controller": version}
    pinot.replies |= {"/segments/t_OFFLINE/crc": {}, "/segments/t_OFFLINE/zkmetadata": {"s": {}}}
    with pytest.raises(DataChanged):
        engine.data_version("t")


def test_a_table_that_was_made_again_under_old_checksums_is_noticed(
    pinot: FakePinot, engine: PinotEngine, clock: SkippedTime
) -> None:
    """The controller goes on giving the checksums of segments that are gone: about each one it is asked in turn."""
    pinot.replies["/version"] = {"pinot-controller": "0.11.0"}
    pinot.replies |= reported({"s": "1", "r": "1"}) | loaded({"s": "1", "r": "1"})
    sound = pinot.replies["/segments/t_OFFLINE/s/metadata"]
    version = engine.data_version("t")
    pinot.replies["/segments/t_OFFLINE/r/metadata"] = sound | {"segment.crc": "2"}
    found = []
    for _ in range(2):
        clock.sleep(60)
        with suppress(DataChanged):
            found.append(engine.data_version("t"))
    assert found == [version]


def test_a_segment_that_should_not_be_online_is_not_waited_for(pinot: FakePinot, engine: PinotEngine) -> None:
    """A segment that is meant to be offline belongs to no whole answer."""
    pinot.replies |= reported({"s": "1", "x": "2"})
    pinot.replies["/tables/t/idealstate"] = {
        "OFFLINE": {"s": {"server": "ONLINE"}, "x": {"server": "OFFLINE"}}
    }
    assert ask(engine) == [5]


@pytest.mark.parametrize(
    ("version", "path"),
    [
        ("1.5.1", "/version"),
        ("1.5.1", "/cluster/configs"),
        ("1.5.1", "/tables/t/idealstate"),
        ("1.5.1", "/tables/t/externalview"),
        ("1.5.1", "/segments/t"),
        ("1.5.1", "/segments/t_OFFLINE/zkmetadata"),
        ("1.5.1", "/segments/t_OFFLINE/metadata"),
        ("0.11.0", "/segments/t_OFFLINE/crc"),
        ("0.11.0", "/segments/t_OFFLINE/s/metadata"),
        ("0.11.0", "/segments/t_OFFLINE/metadata"),
    ],
)
@pytest.mark.parametrize(
    "reply", [b"<html>secret</html>", b'["secret"]', b"7"], ids=["html", "list", "number"]
)
def test_a_controller_that_talks_nonsense_is_not_trusted(
    pinot: FakePinot, engine: PinotEngine, version: str, path: str, reply: bytes
) -> None:
    """Whatever a controller or a proxy before it says, there is an engine's error and not another."""
    pinot.replies["/version"] = {"pinot-controller": version}
    pinot.replies[path] = reply
    with pytest.raises((EngineUnavailable, EngineRefused)) as caught:
        ask(engine)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, EngineRefused), (403, EngineRefused), (500, EngineUnavailable), (503, EngineUnavailable)],
)
def test_a_broker_that_fails_says_nothing_through_us(
    pinot: FakePinot, engine: PinotEngine, status: int, error: type[Exception]
) -> None:
    """An error page may hold the query, and stays where it is."""
    pinot.status = status
    pinot.replies["/query/sql"] = b"could not run SELECT secret"
    with pytest.raises(error) as caught:
        ask(engine)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "reply", [b"[]", b"null", b"7", b"{}", b'{"resultTable": {"rows": [[1]]}}', b"[" * 10**5]
)
def test_a_broker_that_talks_nonsense_is_refused(pinot: FakePinot, engine: PinotEngine, reply: bytes) -> None:
    """Only an answer in Pinot's own form is looked at."""
    pinot.replies["/query/sql"] = reply
    with pytest.raises(IncompleteAnswer):
        ask(engine)


def test_no_controller_means_no_answer(pinot: FakePinot, engine: PinotEngine) -> None:
    """Without a controller nobody knows what a whole answer is."""
    engine = PinotEngine(controller="http://127.0.0.1:1", broker=pinot.url)
    with pytest.raises(EngineUnavailable, match=r"controller: no answer at 127\.0\.0\.1:1"):
        ask(engine)
    engine.close()


def test_no_broker_is_said_at_once(pinot: FakePinot) -> None:
    """Nobody waits for the time-out of a connection where nobody listens: it would be another error."""
    nowhere = "http://127.0.0.1:1"
    with (
        closing(PinotEngine(controller=pinot.url, broker=nowhere, timeout_seconds=60)) as engine,
        pytest.raises(EngineGone, match=r"broker: no answer at 127\.0\.0\.1:1"),
    ):
        ask(engine)


def test_a_connection_that_a_broker_ended_after_an_answer_is_not_used_again(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """The question after it is answered over a new one."""
    pinot.keeps_connections = True
    assert ask(engine) == [5]
    pinot.ends = "after an answer"
    assert ask(engine) == [5]
    assert pinot.ended.wait(30)
    assert len(set(pinot.asked_by)) == 1
    assert ask(engine) == [5]
    assert len(set(pinot.asked_by)) == 2


def test_a_connection_that_breaks_at_a_question_fails_that_question_alone(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """It is one that answered before; the error is that of a broker who is gone, and the next question has another."""
    pinot.keeps_connections = True
    assert ask(engine) == [5]
    pinot.ends = "instead of an answer"
    with pytest.raises(EngineGone, match=r"broker: no answer at 127\.0\.0\.1:\d+") as raised:
        ask(engine)
    assert raised.value.__context__ is None
    assert len(set(pinot.asked_by)) == 1
    pinot.ends = ""
    assert ask(engine) == [5]
    assert len(set(pinot.asked_by)) == 2


def test_counts_are_not_written_to_the_log(engine: PinotEngine, caplog: pytest.LogCaptureFixture) -> None:
    """Even where everything is logged, neither query nor answer are."""
    with caplog.at_level(logging.DEBUG):
        ask(engine)
    assert "secret" not in caplog.text
    assert "element" not in caplog.text
