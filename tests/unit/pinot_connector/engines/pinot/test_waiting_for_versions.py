"""Questions wait a while for a new version, together, and are then refused."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pinot_connector.engines.pinot import PinotEngine
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import QUERY, FakePinot, loaded, reported
from tests.support.skipped_time import SkippedTime
from tests.unit.pinot_connector.engines.pinot.versions import (
    METADATA,
    require_still_loading,
    wait_for_version,
)


def test_questions_wait_for_a_moment_and_are_then_refused_at_once(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """Each that waits holds a thread that questions about other tables need."""
    engine = opened()
    pinot.replies |= loaded({"s": "7"})
    require_still_loading(engine)
    waited = clock.passed
    assert 3 < waited < 7
    require_still_loading(engine)
    assert clock.passed == waited


def test_a_version_that_is_loaded_while_a_question_waits_is_answered(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """A second of loading is noticed by nobody."""
    pinot.replies |= loaded({"s": "7"})
    clock.after(1, lambda: pinot.replies.update(loaded({"s": "1"})))
    assert [5] == confirmed(opened(), QUERY).counts


def test_brokers_are_given_a_moment_after_the_last_segment_was_loaded(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """Only then do they hear of it; a question that came too early would be refused as answered on a part."""
    pinot.replies |= loaded({})
    clock.after(2.5, lambda: pinot.replies.update(loaded({"s": "1"})))
    wait_for_version(opened(), clock)
    assert clock.passed > 3.5


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
    require_still_loading(engine)
    pinot.paths.clear()
    for _ in range(50):
        require_still_loading(engine)
    assert pinot.paths.count(METADATA) <= 5


def test_a_table_that_changes_again_is_not_waited_for_in_its_old_state(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """What is loaded by now may be newer than what was read last."""
    engine = opened()
    pinot.replies |= reported({"s": "2"})
    require_still_loading(engine)
    pinot.replies |= reported({"s": "3"}) | loaded({"s": "3"})
    clock.sleep(5)
    assert [5] == confirmed(engine, QUERY).counts
