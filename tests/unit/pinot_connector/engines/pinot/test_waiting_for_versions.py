"""Questions wait a while for a new version, together, and are then refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pinot_connector.engines.pinot import PinotEngine, PinotTimings
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import QUERY, FakePinot, loaded, reported
from tests.unit.pinot_connector.engines.pinot.versions import (
    METADATA,
    seconds_until_refused,
    wait_for_version,
)


@pytest.mark.slow
def test_questions_wait_for_a_moment_and_are_then_refused_at_once(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Each that waits holds a thread that questions about other tables need."""
    engine = opened(timings=PinotTimings())
    pinot.replies |= loaded({"s": "7"})
    first, second = seconds_until_refused(engine), seconds_until_refused(engine)
    assert 3 < first < 7
    assert second < 0.5


@pytest.mark.slow
def test_a_version_that_is_loaded_while_a_question_waits_is_answered(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """A second of loading is noticed by nobody."""
    pinot.replies |= loaded({"s": "7"})
    timer = threading.Timer(1, lambda: pinot.replies.update(loaded({"s": "1"})))
    timer.start()
    assert [5] == confirmed(opened(timings=PinotTimings()), QUERY).counts
    timer.join()


@pytest.mark.slow
def test_brokers_are_given_a_moment_after_the_last_segment_was_loaded(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Only then do they hear of it; a question that came too early would be refused as answered on a part."""
    pinot.replies |= loaded({})
    engine = opened(timings=PinotTimings())
    timer = threading.Timer(2.5, lambda: pinot.replies.update(loaded({"s": "1"})))
    started = time.monotonic()
    timer.start()
    wait_for_version(engine)
    timer.join()
    assert 3.5 < time.monotonic() - started


def test_questions_that_come_together_ask_once(pinot: FakePinot, opened: Callable[..., PinotEngine]) -> None:
    """Pinot makes a request to each server, or for each segment, of one to its controller."""
    engine = opened()
    with ThreadPoolExecutor(16) as threads:
        versions = set(threads.map(lambda _: engine.data_version("t"), range(16)))
    assert len(versions) == 1
    assert pinot.paths.count(METADATA) == 1


def test_a_version_that_takes_long_is_asked_for_seldom(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Many questions that are refused are no burden to the cluster."""
    engine = opened()
    pinot.replies |= loaded({"s": "7"})
    seconds_until_refused(engine)
    pinot.paths.clear()
    for _ in range(50):
        seconds_until_refused(engine)
    assert pinot.paths.count(METADATA) <= 5


@pytest.mark.slow
def test_a_table_that_changes_again_is_not_waited_for_in_its_old_state(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """What is loaded by now may be newer than what was read last."""
    engine = opened()
    pinot.replies |= reported({"s": "2"})
    seconds_until_refused(engine)
    pinot.replies |= reported({"s": "3"}) | loaded({"s": "3"})
    time.sleep(0.5)
    assert [5] == confirmed(engine, QUERY).counts
