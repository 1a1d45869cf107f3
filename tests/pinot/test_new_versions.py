"""A version that is new is used once what the controller lists is what the servers have loaded."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest

from gris_gateway.configuration import EngineChoice, Pinot
from gris_gateway.hosting import engine_of
from pinot_connector.engines.base import Engine
from pinot_connector.engines.pinot import PinotEngine, settling
from pinot_connector.errors import DataChanged, EngineRefused, EngineUnavailable
from tests.pinot.queries import confirmed
from tests.pinot.waiting import wait_until
from tests.support.fake_pinot import ANSWER, QUERY, FakePinot, loaded, slow_server, told

TWICE = {"OFFLINE": {"s": {"server": "ONLINE", "other": "ONLINE"}}, "REALTIME": None}
METADATA = "/segments/t_OFFLINE/metadata"


@pytest.fixture
def pinot() -> Iterator[FakePinot]:
    """A fake Pinot whose table `t` has one segment on one server."""
    with FakePinot().serving() as fake:
        yield fake


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has questions wait for half a second instead of five."""
    monkeypatch.setattr(settling, "SETTLING_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(settling, "BROKER_SECONDS", 0.3)


@pytest.fixture
def opened(pinot: FakePinot) -> Iterator[Callable[..., PinotEngine]]:
    """Opens engines for the fake Pinot."""
    with ExitStack() as engines:

        def opened(**options: Any) -> PinotEngine:
            engine = PinotEngine(
                controller=pinot.url,
                broker=pinot.url,
                authorization="Bearer token",
                timeout_seconds=2,
                **options,
            )
            engines.callback(engine.close)
            return engine

        yield opened


@pytest.fixture
def servers(pinot: FakePinot) -> Iterator[dict[str, FakePinot]]:
    """The admin ports of two servers, `server` and `other`, both of which have the segment; each may be another."""
    with ExitStack() as serving:
        found = {name: serving.enter_context(FakePinot().serving()) for name in ("server", "other")}
        for name, server in found.items():
            host, port = server.url.removeprefix("http://").split(":")
            pinot.replies[f"/instances/{name}"] = {"hostName": f"Server_{host}", "adminPort": int(port)}
            server.replies = {"/tables/t_OFFLINE/segments/crc": {"s": "1"}}
        yield found


def ago(seconds: float) -> str:
    """Return a time in the past as Pinot writes it."""
    return str(int((time.time() - seconds) * 1000))


@pytest.mark.usefixtures("impatient")
def test_a_connector_that_starts_asks_what_is_loaded_even_of_an_old_version(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """How long ago a segment was pushed does not tell whether it is loaded: it may take longer than any time."""
    pinot.replies |= told({"s": "2"}, segment_refresh_time=ago(10**6)) | loaded({"s": "1"})
    with pytest.raises(DataChanged, match="still loading"):
        opened().data_version("t")


@pytest.mark.usefixtures("impatient")
def test_a_segment_that_no_server_tells_of_is_not_loaded(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """A server that failed is left out in silence."""
    pinot.replies |= loaded({})
    with pytest.raises(DataChanged, match=r"not told yet .* server_admin"):
        opened().data_version("t")


def on_two_servers(checksums: dict[str, str], *told_of: dict[str, str]) -> dict[str, Any]:
    """Return what is told of a table whose segments `s` and `r` are on two servers: of one server at a time, in turn.

    So does Pinot 1.5.
    """
    answers = itertools.cycle([loaded(server)[METADATA] for server in told_of])
    on_servers = {"OFFLINE": {"s": {"server": "ONLINE"}, "r": {"other": "ONLINE"}}, "REALTIME": None}
    views = {f"/tables/t/{view}": on_servers for view in ("idealstate", "externalview")}
    return told(checksums) | views | {METADATA: lambda: next(answers)}


@pytest.mark.usefixtures("impatient")
def test_what_a_controller_tells_of_one_server_at_a_time_is_added_up(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Each answer names another part of the segments, and all of them are loaded."""
    pinot.replies |= on_two_servers({"s": "1", "r": "1"}, {"s": "1"}, {"s": "1"}, {"r": "1"})
    assert opened().data_version("t").startswith("pinot:")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("told_of", "problem"),
    [
        ([{"s": "1"}, {"r": "0"}], "still loading"),
        ([{"s": "1"}], "not told yet"),
    ],
)
def test_what_one_server_has_says_nothing_of_another(
    pinot: FakePinot, opened: Callable[..., PinotEngine], told_of: list[dict[str, str]], problem: str
) -> None:
    """A segment is loaded once that was told of it."""
    pinot.replies |= on_two_servers({"s": "1", "r": "1"}, *told_of)
    with pytest.raises(DataChanged, match=problem):
        opened().data_version("t")


@pytest.mark.usefixtures("impatient")
def test_what_was_told_of_a_version_says_nothing_of_the_next(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Not even of a segment that is in both: whoever serves it may be another server by then."""
    engine = opened()
    pinot.replies |= on_two_servers({"s": "1", "r": "1"}, {"s": "1"}, {"r": "1"})
    engine.data_version("t")
    pinot.replies |= on_two_servers({"s": "2", "r": "1"}, {"s": "2"})
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="not told yet"):
        engine.data_version("t")


@pytest.mark.usefixtures("impatient")
def test_a_controller_that_cannot_ask_all_servers_is_told_of(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Newer versions fail as a whole where one server does; the text says what helps."""
    del pinot.replies[METADATA]
    with pytest.raises(DataChanged, match="server_admin"):
        opened().data_version("t")


@pytest.mark.usefixtures("impatient")
def test_a_version_that_was_found_loaded_costs_nothing_more(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Whoever loads is asked while a version is new, and not for the next hundred questions."""
    engine = opened()
    confirmed(engine, QUERY)
    pinot.paths.clear()
    for _ in range(100):
        confirmed(engine, QUERY)
    assert len(pinot.paths) == 200
    assert METADATA not in pinot.paths


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("version", ["0.11.0", "1.5.1"])
def test_a_version_that_came_back_is_asked_for_again(
    pinot: FakePinot, opened: Callable[..., PinotEngine], version: str
) -> None:
    """Servers may still serve what was between; that a version was once loaded says nothing of today."""
    pinot.replies["/version"] = {"pinot-controller": version}
    engine = opened()
    confirmed(engine, QUERY)
    pinot.replies |= told({"s": "2"}) | loaded({"s": "2"})
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    confirmed(engine, QUERY)
    pinot.replies |= told({"s": "1"})
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="still loading"):
        confirmed(engine, QUERY)


def test_questions_wait_for_a_moment_and_are_then_refused_at_once(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Each that waits holds a thread that questions about other tables need."""
    engine = opened()
    pinot.replies |= loaded({"s": "7"})
    first, second = _refused_after(engine), _refused_after(engine)
    assert 3 < first < 7
    assert second < 0.5


def _wait_for_version(engine: Engine) -> None:
    def is_given() -> bool:
        try:
            return bool(engine.data_version("t"))
        except DataChanged:
            return False

    wait_until(is_given, 5)


def _refused_after(engine: Engine) -> float:
    started = time.monotonic()
    with pytest.raises(DataChanged, match="still loading"):
        engine.data_version("t")
    return time.monotonic() - started


def test_a_version_that_is_loaded_while_a_question_waits_is_answered(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """A second of loading is noticed by nobody."""
    pinot.replies |= loaded({"s": "7"})
    timer = threading.Timer(1, lambda: pinot.replies.update(loaded({"s": "1"})))
    timer.start()
    assert [5] == confirmed(opened(), QUERY).counts
    timer.join()


def test_brokers_are_given_a_moment_after_the_last_segment_was_loaded(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Only then do they hear of it; a question that came too early would be refused as answered on a part."""
    pinot.replies |= loaded({})
    engine = opened()
    timer = threading.Timer(2.5, lambda: pinot.replies.update(loaded({"s": "1"})))
    started = time.monotonic()
    timer.start()
    _wait_for_version(engine)
    timer.join()
    assert 3.5 < time.monotonic() - started


@pytest.mark.usefixtures("impatient")
def test_questions_that_come_together_ask_once(pinot: FakePinot, opened: Callable[..., PinotEngine]) -> None:
    """Pinot makes a request to each server, or for each segment, of one to its controller."""
    engine = opened()
    with ThreadPoolExecutor(16) as threads:
        versions = set(threads.map(lambda _: engine.data_version("t"), range(16)))
    assert len(versions) == 1
    assert pinot.paths.count(METADATA) == 1


@pytest.mark.usefixtures("impatient")
def test_a_version_that_takes_long_is_asked_for_seldom(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Many questions that are refused are no burden to the cluster."""
    engine = opened()
    pinot.replies |= loaded({"s": "7"})
    _refused_after(engine)
    pinot.paths.clear()
    for _ in range(50):
        _refused_after(engine)
    assert pinot.paths.count(METADATA) <= 5


@pytest.mark.usefixtures("impatient")
def test_a_table_that_changes_again_is_not_waited_for_in_its_old_state(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """What is loaded by now may be newer than what was read last."""
    engine = opened()
    pinot.replies |= told({"s": "2"})
    _refused_after(engine)
    pinot.replies |= told({"s": "3"}) | loaded({"s": "3"})
    time.sleep(0.5)
    assert [5] == confirmed(engine, QUERY).counts


@pytest.mark.parametrize("replicas", ["/tables/t/idealstate", "/tables/t/externalview"])
@pytest.mark.usefixtures("impatient")
def test_one_of_several_replicas_proves_nothing_before_the_stated_time(
    pinot: FakePinot, opened: Callable[..., PinotEngine], replicas: str
) -> None:
    """The controller tells one replica of each segment; another may be loading for as long as it is said to take."""
    pinot.replies |= told({"s": "1"}, segment_refresh_time=ago(1)) | {replicas: TWICE}
    engine = opened(settle_seconds=2)
    started = time.monotonic()
    with pytest.raises(DataChanged, match="settle_seconds"):
        engine.data_version("t")
    assert time.monotonic() - started < 1.5
    time.sleep(2)
    assert engine.data_version("t")


@pytest.mark.usefixtures("impatient")
def test_a_connector_that_starts_does_not_wait_for_what_was_replaced_long_ago(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """The stated time is over for every replica, by a margin for clocks that differ."""
    pinot.replies |= told({"s": "1"}, segment_refresh_time=ago(200)) | {"/tables/t/idealstate": TWICE}
    assert opened(settle_seconds=60).data_version("t")


@pytest.mark.usefixtures("impatient")
def test_a_segment_with_a_new_name_needs_no_stated_time(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """No replica can hold another content under a name that is new."""
    two = {"s": "1", "new": "2"}
    twice = {name: {"server": "ONLINE", "other": "ONLINE"} for name in two}
    pinot.replies |= told({"s": "1"}, segment_push_time=(long_ago := ago(10**4)))
    engine = opened()
    engine.data_version("t")
    pinot.replies |= told(two, segment_push_time=long_ago) | loaded(two)
    pinot.replies |= {
        "/tables/t/idealstate": {"OFFLINE": twice},
        "/tables/t/externalview": {"OFFLINE": twice},
    }
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    assert engine.data_version("t")


@pytest.mark.usefixtures("impatient")
def test_a_version_that_came_back_unseen_is_asked_for_again(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Pinot 1.x tells with the checksums when a segment was replaced, so that what was between leaves a trace."""
    engine = opened()
    confirmed(engine, QUERY)
    pinot.replies |= told({"s": "1"}, segment_refresh_time=ago(0)) | loaded({"s": "2"})
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="still loading"):
        confirmed(engine, QUERY)


@pytest.mark.usefixtures("impatient")
def test_a_table_that_was_made_again_is_waited_for(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Its segments were never replaced, says Pinot, and yet have names under which others were served before."""
    engine = opened()
    confirmed(engine, QUERY)
    pinot.replies |= told({"s": "2"}, segment_push_time=ago(0)) | loaded({"s": "2"})
    pinot.replies["/tables/t/externalview"] = TWICE
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="settle_seconds"):
        confirmed(engine, QUERY)


@pytest.mark.usefixtures("impatient")
def test_a_segment_in_error_is_told_of(pinot: FakePinot, opened: Callable[..., PinotEngine]) -> None:
    """Nobody waits for ever without being told why."""
    pinot.replies["/tables/t/externalview"] = {"OFFLINE": {"s": {"server": "ERROR"}}, "REALTIME": None}
    with pytest.raises(DataChanged, match="could not load a segment"):
        opened().data_version("t")


@pytest.mark.usefixtures("impatient")
def test_the_servers_are_asked_by_their_admin_ports(
    pinot: FakePinot, servers: dict[str, FakePinot], opened: Callable[..., PinotEngine]
) -> None:
    """Each that may answer has to have the new segment; with all of them there is no stated time to wait for."""
    pinot.replies |= told({"s": "1"}, segment_refresh_time=ago(1))
    pinot.replies |= {"/tables/t/idealstate": TWICE, "/tables/t/externalview": TWICE}
    servers["other"].replies["/tables/t_OFFLINE/segments/crc"] = {"s": "7"}
    engine = opened(server_admin=True)
    with pytest.raises(DataChanged, match="still loading"):
        engine.data_version("t")
    servers["other"].replies["/tables/t_OFFLINE/segments/crc"] = {"s": "1"}
    _wait_for_version(engine)
    assert [5] == confirmed(engine, QUERY).counts
    assert METADATA not in pinot.paths
    assert set(servers["server"].headers) == set(servers["other"].headers) == {"Bearer token"}


@pytest.mark.parametrize("reply", [{}, None])
@pytest.mark.usefixtures("impatient")
def test_a_server_that_has_nothing_of_the_table_is_loading_it(
    pinot: FakePinot, servers: dict[str, FakePinot], opened: Callable[..., PinotEngine], reply: Any
) -> None:
    """It says so, or that it does not know the table."""
    servers["server"].replies["/tables/t_OFFLINE/segments/crc"] = reply
    with pytest.raises(DataChanged, match="still loading"):
        opened(server_admin=True).data_version("t")


@pytest.mark.usefixtures("impatient")
def test_a_server_that_is_silent_is_told_of(
    pinot: FakePinot, servers: dict[str, FakePinot], opened: Callable[..., PinotEngine]
) -> None:
    """A broker may still ask it, so it is waited for until the cluster knows that it is gone."""
    pinot.replies["/tables/t/externalview"] = TWICE
    pinot.replies["/instances/other"] = {"hostName": "127.0.0.1", "adminPort": 1}
    engine = opened(server_admin=True)
    with pytest.raises(DataChanged, match="does not tell what it has loaded"):
        engine.data_version("t")
    pinot.replies["/tables/t/externalview"] = pinot.replies["/tables/t/idealstate"]
    _wait_for_version(engine)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_is_gone_is_waited_for_no_longer_than_stated(
    pinot: FakePinot, servers: dict[str, FakePinot], opened: Callable[..., PinotEngine]
) -> None:
    """The other replicas are proved; what one that comes back has loaded is looked at then."""
    pinot.replies |= told({"s": "1"}, segment_refresh_time=ago(1)) | {"/tables/t/idealstate": TWICE}
    engine = opened(server_admin=True, settle_seconds=2)
    with pytest.raises(DataChanged, match="settle_seconds"):
        engine.data_version("t")
    time.sleep(2)
    assert engine.data_version("t")


@pytest.mark.usefixtures("impatient")
def test_a_server_whose_port_is_not_told_needs_an_option(
    pinot: FakePinot, servers: dict[str, FakePinot], opened: Callable[..., PinotEngine]
) -> None:
    """Pinot tells the port without TLS alone; a server that has none is reached where the option says."""
    port = pinot.replies["/instances/server"]["adminPort"]
    pinot.replies["/instances/server"]["adminPort"] = -1
    with pytest.raises(EngineRefused, match="server_admin_port"):
        opened(server_admin=True).data_version("t")
    assert opened(server_admin=True, server_admin_port=port).data_version("t")


@pytest.mark.usefixtures("impatient")
def test_a_gateway_asks_the_servers_where_its_configuration_says_so(pinot: FakePinot) -> None:
    """Its options are those of the engine."""
    with slow_server(pinot, "t") as port:
        asked = Pinot(broker=pinot.url, controller=pinot.url, server_admin=True, server_admin_port=port)
        with closing(engine_of(EngineChoice(pinot=asked))) as engine:
            _refused_after(engine)
    pinot.replies |= told({"s": "1"}, segment_refresh_time=ago(0)) | {"/tables/t/idealstate": TWICE}
    stated = Pinot(broker=pinot.url, controller=pinot.url, settle_seconds=0)
    with closing(engine_of(EngineChoice(pinot=stated))) as engine:
        assert engine.data_version("t")


@pytest.mark.parametrize("path", ["/instances/server", "/tables/t_OFFLINE/segments/crc"])
@pytest.mark.parametrize(
    "reply", [b"<html>secret</html>", b'["secret"]', b"7"], ids=["html", "list", "number"]
)
@pytest.mark.usefixtures("impatient")
def test_a_server_that_talks_nonsense_is_not_trusted(
    pinot: FakePinot,
    servers: dict[str, FakePinot],
    opened: Callable[..., PinotEngine],
    path: str,
    reply: bytes,
) -> None:
    """Whatever comes instead of checksums, there is no version."""
    for each in (pinot, servers["server"]):
        each.replies[path] = reply
    with pytest.raises(EngineUnavailable) as caught:
        opened(server_admin=True).data_version("t")
    assert "secret" not in str(caught.value)


@pytest.fixture
def one_is_gone(pinot: FakePinot, servers: dict[str, FakePinot]) -> dict[str, FakePinot]:
    """The same servers, of which Pinot knows that `other` is gone."""
    pinot.replies["/tables/t/idealstate"] = TWICE
    return servers


def _comes_back(pinot: FakePinot, other: FakePinot, checksum: str) -> None:
    pinot.replies["/tables/t/externalview"] = TWICE
    other.replies["/tables/t_OFFLINE/segments/crc"] = {"s": checksum}


@pytest.mark.usefixtures("impatient")
def test_a_server_that_comes_back_with_old_rows_ends_the_use_of_a_version(
    pinot: FakePinot, one_is_gone: dict[str, FakePinot], opened: Callable[..., PinotEngine]
) -> None:
    """It loads what was listed when it began to, and may answer from it; so the answer and the version wait."""
    engine = opened(server_admin=True)
    confirmed(engine, QUERY)
    _comes_back(pinot, one_is_gone["other"], "7")
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="still loading"):
        confirmed(engine, QUERY)
    _comes_back(pinot, one_is_gone["other"], "1")
    _wait_for_version(engine)
    confirmed(engine, QUERY)


@pytest.mark.usefixtures("impatient")
def test_an_answer_that_began_before_a_server_came_back_is_never_confirmed(
    pinot: FakePinot, one_is_gone: dict[str, FakePinot], opened: Callable[..., PinotEngine]
) -> None:
    """That every server has the version by now does not tell what it answered from."""
    engine = opened(server_admin=True)
    version = engine.data_version("t")
    slow = engine.run(QUERY, version)
    _comes_back(pinot, one_is_gone["other"], "1")
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    _wait_for_version(engine)
    with pytest.raises(DataChanged, match="changed while"):
        engine.confirm(QUERY, slow)
    confirmed(engine, QUERY, version)


@pytest.mark.usefixtures("impatient")
def test_a_replica_that_comes_back_unasked_is_given_the_stated_time(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Without the admin ports nobody tells what it has loaded."""
    pinot.replies["/tables/t/idealstate"] = TWICE
    engine = opened(settle_seconds=1.5)
    confirmed(engine, QUERY)
    pinot.replies["/tables/t/externalview"] = TWICE
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="settle_seconds"):
        confirmed(engine, QUERY)
    time.sleep(1.5)
    confirmed(engine, QUERY)


@pytest.mark.usefixtures("impatient")
def test_a_replica_that_joins_while_a_version_is_waited_for_is_given_the_stated_time_too(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """It comes with what it began to load before the push."""
    pinot.replies |= told({"s": "1"}, segment_refresh_time=ago(1)) | {"/tables/t/idealstate": TWICE}
    engine = opened(settle_seconds=2)
    with pytest.raises(DataChanged, match="settle_seconds"):
        engine.data_version("t")
    time.sleep(1)
    pinot.replies["/tables/t/externalview"] = TWICE
    for pause in (1, 1):
        with pytest.raises(DataChanged, match="settle_seconds"):
            engine.data_version("t")
        time.sleep(pause)
    time.sleep(0.5)
    assert engine.data_version("t")


@pytest.mark.usefixtures("impatient")
def test_a_version_that_a_replica_misses_costs_one_request_more(
    pinot: FakePinot, one_is_gone: dict[str, FakePinot], opened: Callable[..., PinotEngine]
) -> None:
    """Where every replica has it, none."""
    engine = opened(server_admin=True)
    confirmed(engine, QUERY)
    pinot.paths.clear()
    confirmed(engine, QUERY)
    assert pinot.paths == ["/query/sql", "/segments/t_OFFLINE/zkmetadata", "/tables/t/externalview"]
    _comes_back(pinot, one_is_gone["other"], "1")
    with pytest.raises(DataChanged):
        confirmed(engine, QUERY)
    confirmed(engine, QUERY)
    pinot.paths.clear()
    confirmed(engine, QUERY)
    assert pinot.paths == ["/query/sql", "/segments/t_OFFLINE/zkmetadata"]


def _listed_twice(segments: dict[str, str], **times: str) -> dict[str, Any]:
    """Return what is told of segments that two servers have loaded."""
    twice = {"OFFLINE": {name: {"server": "ONLINE", "other": "ONLINE"} for name in segments}}
    views = {f"/tables/t/{view}": twice for view in ("idealstate", "externalview")}
    covered = {"numSegmentsQueried": len(segments), "totalDocs": 7 * len(segments)}
    return told(segments, **times) | loaded(segments) | views | {"/query/sql": ANSWER | covered}


@pytest.mark.usefixtures("impatient")
def test_a_segment_that_was_deleted_and_pushed_again_is_waited_for(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """A replica may have missed that it was gone, and serve the old rows of that name."""
    long_ago = ago(10**4)
    pinot.replies |= _listed_twice({"s": "1", "x": "9"}, segment_push_time=long_ago)
    engine = opened(settle_seconds=2)
    confirmed(engine, QUERY)
    pinot.replies |= _listed_twice({"x": "9"}, segment_push_time=long_ago)
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    confirmed(engine, QUERY)
    pinot.replies |= _listed_twice({"s": "2", "x": "9"}, segment_push_time=long_ago)
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="settle_seconds"):
        confirmed(engine, QUERY)
    time.sleep(2)
    confirmed(engine, QUERY)


@pytest.mark.usefixtures("impatient")
def test_what_was_waited_for_is_not_waited_for_again(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """A segment of a new name, soon after another was replaced, does not begin the stated time anew."""
    pinot.replies |= _listed_twice({"s": "1"})
    engine = opened(settle_seconds=2)
    confirmed(engine, QUERY)
    pinot.replies |= _listed_twice({"s": "2"})
    started = time.monotonic()
    with pytest.raises(DataChanged):
        confirmed(engine, QUERY)
    time.sleep(1)
    pinot.replies |= _listed_twice({"s": "2", "new": "3"})
    _wait_for_version(engine)
    assert 2 <= time.monotonic() - started < 2.8


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("age", "is_used"), [(0, False), (200, True)])
def test_a_connector_that_starts_waits_for_what_was_pushed_just_now(
    pinot: FakePinot, opened: Callable[..., PinotEngine], age: float, is_used: bool
) -> None:
    """The name may have been another segment's before, which was deleted; nobody tells."""
    pushed = ago(age)
    pinot.replies |= _listed_twice({"s": "1"}, segment_push_time=pushed)
    engine = opened(settle_seconds=60)
    if is_used:
        assert engine.data_version("t")
        return
    with pytest.raises(DataChanged, match="settle_seconds"):
        engine.data_version("t")
    # What was read a moment ago is not read again.
    time.sleep(0.3)
    pinot.replies |= _listed_twice({"s": "1", "new": "3"}, segment_push_time=pushed)
    with pytest.raises(DataChanged, match="settle_seconds"):
        engine.data_version("t")


PRUNED = {"OFFLINE": {
    "tableName": "t_OFFLINE",
    "routing": {"segmentPrunerTypes": ["time"]},
    "segmentsConfig": {"timeColumnName": "d"},
}}  # fmt: skip


@pytest.mark.usefixtures("impatient")
def test_a_broker_that_prunes_is_given_the_stated_time_after_a_replacement(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """It leaves out segments by the times of those that they replaced; every question waits, whatever it names."""
    pinot.replies["/tables/t"] = PRUNED
    engine = opened(settle_seconds=2)
    confirmed(engine, QUERY)
    pinot.replies |= told({"s": "2"}) | loaded({"s": "2"})
    started = time.monotonic()
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="prune"):
        confirmed(engine, QUERY)
    _wait_for_version(engine)
    assert 2 <= time.monotonic() - started < 2.8


@pytest.mark.usefixtures("impatient")
def test_a_broker_that_prunes_knows_nothing_else_of_a_new_name(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """So who pushes under new names waits for nothing."""
    pinot.replies["/tables/t"] = PRUNED
    engine = opened()
    engine.data_version("t")
    pinot.replies |= told({"new": "2"}, segment_push_time=ago(0)) | loaded({"new": "2"})
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    confirmed(engine, QUERY)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("age", "is_used"), [(1, False), (200, True)])
def test_a_connector_that_starts_goes_by_the_time_of_a_replacement_where_brokers_prune(
    pinot: FakePinot, opened: Callable[..., PinotEngine], age: float, is_used: bool
) -> None:
    """Whatever the servers say, which load sooner than a broker hears of it."""
    pinot.replies |= {"/tables/t": PRUNED} | told({"s": "1"}, segment_refresh_time=ago(age))
    if is_used:
        assert opened(settle_seconds=60).data_version("t")
        return
    with pytest.raises(DataChanged, match="prune"):
        opened(settle_seconds=60).data_version("t")


@pytest.mark.parametrize(
    "path",
    [
        "/version",
        "/tables/t/idealstate",
        "/segments/t_OFFLINE/zkmetadata",
        "/tables/t/externalview",
        METADATA,
    ],
)
@pytest.mark.usefixtures("impatient")
def test_what_a_controller_said_does_not_hang_on_an_error(
    pinot: FakePinot, opened: Callable[..., PinotEngine], path: str
) -> None:
    """An error of the parser holds the whole body, with true numbers of rows; error trackers read such errors."""
    pinot.replies[path] = b'{"segment.total.docs": 7'
    with pytest.raises(EngineUnavailable) as caught:
        opened().data_version("t")
    assert caught.value.__context__ is None


@pytest.mark.usefixtures("impatient")
def test_what_a_controller_said_afterwards_does_not_hang_on_an_error(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Not even where several questions share the reading."""
    engine = opened()
    answer = engine.run(QUERY, engine.data_version("t"))
    pinot.replies["/segments/t_OFFLINE/zkmetadata"] = b'{"segment.total.docs": 7'
    with pytest.raises(EngineUnavailable) as caught:
        engine.confirm(QUERY, answer)
    assert caught.value.__context__ is None
