"""What a fake Pinot reports about versions of its table `t`, and how tests wait for one."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pinot_connector.engines.base import Engine
from pinot_connector.errors import DataChanged
from tests.engines.pinot.waiting import wait_until
from tests.support.fake_pinot import ANSWER, loaded, reported

TWICE = {"OFFLINE": {"s": {"server": "ONLINE", "other": "ONLINE"}}, "REALTIME": None}
METADATA = "/segments/t_OFFLINE/metadata"


def ago(seconds: float) -> str:
    """Returns a time in the past as Pinot writes it."""
    return str(int((time.time() - seconds) * 1000))


def listed_twice(segments: dict[str, str], **times: str) -> dict[str, Any]:
    """Returns what Pinot reports about segments that two servers have loaded."""
    twice = {"OFFLINE": {name: {"server": "ONLINE", "other": "ONLINE"} for name in segments}}
    views = {f"/tables/t/{view}": twice for view in ("idealstate", "externalview")}
    covered = {"numSegmentsQueried": len(segments), "totalDocs": 7 * len(segments)}
    return reported(segments, **times) | loaded(segments) | views | {"/query/sql": ANSWER | covered}


def wait_for_version(engine: Engine) -> None:
    """Returns once the table has a version; fails after five seconds."""

    def has_version() -> bool:
        try:
            return bool(engine.data_version("t"))
        except DataChanged:
            return False

    wait_until(has_version, 5)


def seconds_until_refused(engine: Engine) -> float:
    """Returns how long the engine waits for a version that is still being loaded."""
    started = time.monotonic()
    with pytest.raises(DataChanged, match="still loading"):
        engine.data_version("t")
    return time.monotonic() - started
