"""A version that is new is used once what the controller lists is what the servers have loaded."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import DataChanged, EngineUnavailable
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import QUERY, FakePinot, loaded, reported
from tests.unit.pinot_connector.engines.pinot.versions import METADATA, ago


def test_a_connector_that_starts_asks_what_is_loaded_even_of_an_old_version(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """How long ago a segment was pushed does not tell whether it is loaded: it may take longer than any time."""
    pinot.replies |= reported({"s": "2"}, segment_refresh_time=ago(10**6)) | loaded({"s": "1"})
    with pytest.raises(DataChanged, match="still loading"):
        opened().data_version("t")


def test_a_segment_that_no_server_tells_of_is_not_loaded(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """A server that failed is left out in silence."""
    pinot.replies |= loaded({})
    with pytest.raises(DataChanged, match=r"not reported yet .* server_admin"):
        opened().data_version("t")


def on_two_servers(checksums: dict[str, str], *reported_of: dict[str, str]) -> dict[str, Any]:
    """Return replies about a table whose segments `s` and `r` are on two servers: of one server at a time, in turn.

    Pinot 1.5 replies in this way.
    """
    answers = itertools.cycle([loaded(server)[METADATA] for server in reported_of])
    on_servers = {"OFFLINE": {"s": {"server": "ONLINE"}, "r": {"other": "ONLINE"}}, "REALTIME": None}
    views = {f"/tables/t/{view}": on_servers for view in ("idealstate", "externalview")}
    return reported(checksums) | views | {METADATA: lambda: next(answers)}


def test_what_a_controller_tells_of_one_server_at_a_time_is_added_up(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Each answer names another part of the segments, and all of them are loaded."""
    pinot.replies |= on_two_servers({"s": "1", "r": "1"}, {"s": "1"}, {"s": "1"}, {"r": "1"})
    assert opened().data_version("t").startswith("pinot:")


@pytest.mark.parametrize(
    ("reported_of", "problem"),
    [
        ([{"s": "1"}, {"r": "0"}], "still loading"),
        ([{"s": "1"}], "not reported yet"),
    ],
)
def test_what_one_server_has_says_nothing_of_another(
    pinot: FakePinot, opened: Callable[..., PinotEngine], reported_of: list[dict[str, str]], problem: str
) -> None:
    """A segment counts as loaded only once a server has reported that very segment."""
    pinot.replies |= on_two_servers({"s": "1", "r": "1"}, *reported_of)
    with pytest.raises(DataChanged, match=problem):
        opened().data_version("t")


def test_what_was_told_of_a_version_says_nothing_of_the_next(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Not even of a segment that is in both: another server may serve it by then."""
    engine = opened()
    pinot.replies |= on_two_servers({"s": "1", "r": "1"}, {"s": "1"}, {"r": "1"})
    engine.data_version("t")
    pinot.replies |= on_two_servers({"s": "2", "r": "1"}, {"s": "2"})
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="not reported yet"):
        engine.data_version("t")


def test_a_controller_that_cannot_ask_all_servers_is_told_of(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Newer versions fail as a whole where one server does; the text says what helps."""
    del pinot.replies[METADATA]
    with pytest.raises(DataChanged, match="server_admin"):
        opened().data_version("t")


def test_a_version_that_was_found_loaded_costs_nothing_more(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Servers are asked what they have loaded while a version is new, and not for the next hundred questions."""
    engine = opened()
    confirmed(engine, QUERY)
    pinot.paths.clear()
    for _ in range(100):
        confirmed(engine, QUERY)
    assert len(pinot.paths) == 200
    assert METADATA not in pinot.paths


@pytest.mark.parametrize("version", ["0.11.0", "1.5.1"])
def test_a_version_that_came_back_is_asked_for_again(
    pinot: FakePinot, opened: Callable[..., PinotEngine], version: str
) -> None:
    """Servers may still serve what was between; that a version was once loaded says nothing of today."""
    pinot.replies["/version"] = {"pinot-controller": version}
    engine = opened()
    confirmed(engine, QUERY)
    pinot.replies |= reported({"s": "2"}) | loaded({"s": "2"})
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    confirmed(engine, QUERY)
    pinot.replies |= reported({"s": "1"})
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="still loading"):
        confirmed(engine, QUERY)


def test_a_version_that_came_back_unseen_is_asked_for_again(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Pinot 1.x tells with the checksums when a segment was replaced, so that what was between leaves a trace."""
    engine = opened()
    confirmed(engine, QUERY)
    pinot.replies |= reported({"s": "1"}, segment_refresh_time=ago(0)) | loaded({"s": "2"})
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="still loading"):
        confirmed(engine, QUERY)


def test_a_segment_in_error_is_told_of(pinot: FakePinot, opened: Callable[..., PinotEngine]) -> None:
    """The error says why, so that nobody waits without end and without a reason."""
    pinot.replies["/tables/t/externalview"] = {"OFFLINE": {"s": {"server": "ERROR"}}, "REALTIME": None}
    with pytest.raises(DataChanged, match="could not load a segment"):
        opened().data_version("t")


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
def test_what_a_controller_said_does_not_hang_on_an_error(
    pinot: FakePinot, opened: Callable[..., PinotEngine], path: str
) -> None:
    """An error of the parser holds the whole body, with true numbers of rows; error trackers read such errors."""
    pinot.replies[path] = b'{"segment.total.docs": 7'
    with pytest.raises(EngineUnavailable) as caught:
        opened().data_version("t")
    assert caught.value.__context__ is None


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
