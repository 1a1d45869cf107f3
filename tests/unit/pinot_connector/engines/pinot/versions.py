"""What a fake Pinot reports about versions of its table `t`, and how tests wait for one."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest

from pinot_connector.engines.base import Engine
from pinot_connector.errors import DataChanged
from tests.support.fake_pinot import ANSWER, loaded, reported
from tests.support.skipped_time import SkippedTime

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


def wait_for_version(engine: Engine, clock: SkippedTime) -> None:
    """Let the engine find a version; fail where it takes two minutes."""
    until = clock.passed + 120
    while clock.passed < until:
        with suppress(DataChanged):
            assert engine.data_version("t")
            return
        clock.sleep(0.1)
    pytest.fail("there is no version")


def require_still_loading(engine: Engine) -> None:
    """Expect that the engine waits in vain for a version."""
    with pytest.raises(DataChanged, match="still loading"):
        engine.data_version("t")
