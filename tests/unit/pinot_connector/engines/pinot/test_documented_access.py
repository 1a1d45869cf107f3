"""The requests and settings that docs/pinot-reference.md lists are those that the connector asks and refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineRefused
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import QUERY, FakePinot
from tests.support.fake_streams import BY_OFFSETS, divided
from tests.support.fake_streams import asked as asked_stream
from tests.support.pages import quoted, rows, section

PAGE = "pinot-reference.md"
TABLES = {"tables": ["t"]}
# In the order of their lengths: a table's name stands in the other paths too.
_PATTERNS = {
    r"/segments/t(_OFFLINE)?/s/metadata": "/segments/{table}/{segment}/metadata",
    r"/(segments|tables)/t(?:_OFFLINE)?(/.*)?": r"/\1/{table}\2",
    r"/instances/.*": "/instances/{name}",
    r"/debug/timeBoundary/t": "/debug/timeBoundary/{table}",
}
REFUSED: Mapping[str, tuple[str, Any]] = {
    "enable.distinct.count.bitmap.override": (
        "/cluster/configs",
        {"enable.distinct.count.bitmap.override": "true"},
    ),
    "pinot.broker.use.approximate.function": (
        "/cluster/configs",
        {"pinot.broker.use.approximate.function": "true"},
    ),
    "useApproximateFunction": ("/tables/t", {"OFFLINE": {"query": {"useApproximateFunction": True}}}),
    "expressionOverrideMap": ("/tables/t", {"OFFLINE": {"query": {"expressionOverrideMap": {"a": "b"}}}}),
    "query": ("/tables/t", {"OFFLINE": {"query": {"maxDocsScanned": 1}}}),
    "isSegmentPartitioned": (
        "/tables/t",
        {"OFFLINE": {"fieldConfigList": [{"properties": {"isSegmentPartitioned": "true"}}]}},
    ),
    "upsertConfig": ("/tables/t", {"OFFLINE": {"upsertConfig": {"mode": "FULL"}}}),
    "maxLength": (
        "/tables/t/schema",
        {"dateTimeFieldSpecs": [{"name": "d", "dataType": "STRING", "maxLength": 1025}]},
    ),
    "maxLengthExceedStrategy": (
        "/tables/t/schema",
        {
            "dimensionFieldSpecs": [
                {"name": "d", "dataType": "STRING", "maxLengthExceedStrategy": "NO_ACTION"}
            ]
        },
    ),
}


def listed(version: str, *, server_admin: bool, of_stream: bool = False) -> set[str]:
    """Return the paths that the page lists for a version."""
    found = set()
    for request, _, when, _, _ in rows(section(PAGE, "## Permissions of its login"), "request"):
        is_old = version.startswith("0.")
        if ("before 1.0" in when and not is_old) or ("1.x" in when and is_old):
            continue
        if "for " in when and not of_stream:
            continue
        if "`server_admin`" in when and ("without" in when) == server_admin:
            continue
        found.add(quoted(request)[0].partition(" ")[2])
    return found


def asked(version: str, options: Mapping[str, Any]) -> set[str]:
    """Return the paths that a catalogue and a question ask of a Pinot of this version, as the page writes them."""
    with FakePinot().serving() as pinot:
        pinot.replies["/version"] = {"pinot-controller": version}
        pinot.replies["/instances/server"] = {
            "hostName": "127.0.0.1",
            "adminPort": int(pinot.url.rpartition(":")[2]),
        }
        pinot.replies["/tables/t_OFFLINE/segments/crc"] = {"s": "1"}
        engine = PinotEngine(controller=pinot.url, broker=pinot.url, **options)
        pinot.replies["/tables"] = TABLES
        engine.tables()
        confirmed(engine, QUERY)
        engine.close()
        return _requests(pinot)


def asked_of_a_stream() -> set[str]:
    """Return the paths that a catalogue and a question about a stream with an offline part ask."""
    with divided() as pinot:
        engine = PinotEngine(controller=pinot.url, broker=pinot.url)
        pinot.replies["/tables"] = TABLES
        engine.tables()
        confirmed(engine, asked_stream(replace(BY_OFFSETS, offline_days_are_whole=True)))
        engine.close()
        return _requests(pinot)


def _requests(pinot: FakePinot) -> set[str]:
    # The fake files plans, counts and routes under paths of its own.
    return {_written(path) for path in pinot.paths if path not in ("/explain", "/count", "/routes")}


def _written(path: str) -> str:
    for pattern, written in _PATTERNS.items():
        found = re.fullmatch(pattern, path)
        if found:
            return found.expand(written)
    return path


@pytest.mark.parametrize("version", ["0.11.0", "1.5.1"])
@pytest.mark.parametrize("server_admin", [False, True])
def test_the_requests_of_the_page_are_those_that_are_made(version: str, server_admin: bool) -> None:
    """Each of them, and no other: a login that has these permissions is enough, and none of them is for nothing."""
    options = {"server_admin": True} if server_admin else {}
    assert listed(version, server_admin=server_admin) == asked(version, options)


def test_the_requests_of_the_page_for_streams_are_those_that_are_made() -> None:
    """A table that takes in a stream and has an offline part needs all of them."""
    assert listed("1.5.1", server_admin=False, of_stream=True) == asked_of_a_stream()


def test_the_settings_of_the_page_are_those_that_are_refused() -> None:
    """Each by its name, before a question is asked."""
    settings = [
        quoted(name)[0] for name, _, _ in rows(section(PAGE, "## Settings that it refuses"), "setting")
    ]
    assert [*REFUSED] == settings
    for name, (path, reply) in REFUSED.items():
        with FakePinot().serving() as pinot:
            pinot.replies[path] = reply
            engine = PinotEngine(controller=pinot.url, broker=pinot.url)
            with pytest.raises(EngineRefused, match=re.escape(name)):
                engine.data_version("t")
            engine.close()
            assert [] == pinot.queries
