"""With `server_admin`, each server is asked by its admin port what it has loaded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from gris_gateway.configuration import EngineChoice, Pinot
from gris_gateway.hosting import engine_of
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import DataChanged, EngineRefused, EngineUnavailable
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import QUERY, FakePinot, refusing_server, reported
from tests.support.skipped_time import SkippedTime
from tests.unit.pinot_connector.engines.pinot.versions import METADATA, TWICE, ago, wait_for_version


def test_the_servers_are_asked_by_their_admin_ports(
    pinot: FakePinot, servers: dict[str, FakePinot], opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """Each that may answer has to have the new segment; with all of them there is no stated time to wait for."""
    pinot.replies |= reported({"s": "1"}, segment_refresh_time=ago(1))
    pinot.replies |= {"/tables/t/idealstate": TWICE, "/tables/t/externalview": TWICE}
    servers["other"].replies["/tables/t_OFFLINE/segments/crc"] = {"s": "7"}
    engine = opened(server_admin=True)
    with pytest.raises(DataChanged, match="still loading"):
        engine.data_version("t")
    servers["other"].replies["/tables/t_OFFLINE/segments/crc"] = {"s": "1"}
    wait_for_version(engine, clock)
    assert [5] == confirmed(engine, QUERY).counts
    assert METADATA not in pinot.paths
    assert set(servers["server"].headers) == set(servers["other"].headers) == {"Bearer token"}


@pytest.mark.parametrize("reply", [{}, None])
def test_a_server_that_has_nothing_of_the_table_is_loading_it(
    pinot: FakePinot, servers: dict[str, FakePinot], opened: Callable[..., PinotEngine], reply: Any
) -> None:
    """It says so, or that it does not know the table."""
    servers["server"].replies["/tables/t_OFFLINE/segments/crc"] = reply
    with pytest.raises(DataChanged, match="still loading"):
        opened(server_admin=True).data_version("t")


def test_a_server_that_is_silent_is_told_of(
    pinot: FakePinot, servers: dict[str, FakePinot], opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """A broker may still ask it, so it is waited for until the cluster knows that it is gone."""
    pinot.replies["/tables/t/externalview"] = TWICE
    pinot.replies["/instances/other"] = {"hostName": "127.0.0.1", "adminPort": 1}
    engine = opened(server_admin=True)
    with pytest.raises(DataChanged, match="does not report what it has loaded"):
        engine.data_version("t")
    pinot.replies["/tables/t/externalview"] = pinot.replies["/tables/t/idealstate"]
    wait_for_version(engine, clock)


def test_a_server_that_is_gone_is_waited_for_no_longer_than_stated(
    pinot: FakePinot, servers: dict[str, FakePinot], opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """The other replicas are proved; what one that comes back has loaded is looked at then."""
    pinot.replies |= reported({"s": "1"}, segment_refresh_time=ago(1)) | {"/tables/t/idealstate": TWICE}
    engine = opened(server_admin=True, settle_seconds=20)
    with pytest.raises(DataChanged, match="settle_seconds"):
        engine.data_version("t")
    clock.sleep(20)
    assert engine.data_version("t")


def test_a_server_whose_port_is_not_told_needs_an_option(
    pinot: FakePinot, servers: dict[str, FakePinot], opened: Callable[..., PinotEngine]
) -> None:
    """Pinot tells the port without TLS alone; a server that has none is reached where the option says."""
    port = pinot.replies["/instances/server"]["adminPort"]
    pinot.replies["/instances/server"]["adminPort"] = -1
    with pytest.raises(EngineRefused, match="server_admin_port"):
        opened(server_admin=True).data_version("t")
    assert opened(server_admin=True, server_admin_port=port).data_version("t")


def test_a_gateway_asks_the_servers_where_its_configuration_says_so(pinot: FakePinot) -> None:
    """Its options are those of the engine."""
    with refusing_server(pinot) as port:
        asked = Pinot(broker=pinot.url, controller=pinot.url, server_admin=True, server_admin_port=port)
        with (
            closing(engine_of(EngineChoice(pinot=asked))) as engine,
            pytest.raises(EngineRefused, match="a server of Pinot does not accept our credentials"),
        ):
            engine.data_version("t")
    pinot.replies |= reported({"s": "1"}, segment_refresh_time=ago(0)) | {"/tables/t/idealstate": TWICE}
    stated = Pinot(broker=pinot.url, controller=pinot.url, settle_seconds=0)
    with closing(engine_of(EngineChoice(pinot=stated))) as engine:
        assert engine.data_version("t")


@pytest.mark.parametrize("path", ["/instances/server", "/tables/t_OFFLINE/segments/crc"])
@pytest.mark.parametrize(
    "reply", [b"<html>secret</html>", b'["secret"]', b"7"], ids=["html", "list", "number"]
)
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


def test_a_server_that_comes_back_with_old_rows_ends_the_use_of_a_version(
    pinot: FakePinot,
    one_is_gone: dict[str, FakePinot],
    opened: Callable[..., PinotEngine],
    clock: SkippedTime,
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
    wait_for_version(engine, clock)
    confirmed(engine, QUERY)


def test_an_answer_that_began_before_a_server_came_back_is_never_confirmed(
    pinot: FakePinot,
    one_is_gone: dict[str, FakePinot],
    opened: Callable[..., PinotEngine],
    clock: SkippedTime,
) -> None:
    """That every server has the version by now does not tell what it answered from."""
    engine = opened(server_admin=True)
    version = engine.data_version("t")
    slow = engine.run(QUERY, version)
    _comes_back(pinot, one_is_gone["other"], "1")
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    wait_for_version(engine, clock)
    with pytest.raises(DataChanged, match="changed while"):
        engine.confirm(QUERY, slow)
    confirmed(engine, QUERY, version)


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
