"""Where nobody reports what every replica has loaded, a new version waits for `settle_seconds`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import DataChanged
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import QUERY, FakePinot, loaded, reported
from tests.support.skipped_time import SkippedTime
from tests.unit.pinot_connector.engines.pinot.versions import TWICE, ago, listed_twice, wait_for_version


@pytest.mark.parametrize("replicas", ["/tables/t/idealstate", "/tables/t/externalview"])
def test_one_of_several_replicas_proves_nothing_before_the_stated_time(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime, replicas: str
) -> None:
    """The controller tells one replica of each segment; another may be loading for as long as it is said to take."""
    pinot.replies |= reported({"s": "1"}, segment_refresh_time=ago(1)) | {replicas: TWICE}
    engine = opened(settle_seconds=20)
    with pytest.raises(DataChanged, match="settle_seconds"):
        engine.data_version("t")
    assert clock.passed < 10
    clock.sleep(20)
    assert engine.data_version("t")


def test_a_connector_that_starts_does_not_wait_for_what_was_replaced_long_ago(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """The stated time is over for every replica, by a margin for clocks that differ."""
    pinot.replies |= reported({"s": "1"}, segment_refresh_time=ago(200)) | {"/tables/t/idealstate": TWICE}
    assert opened(settle_seconds=60).data_version("t")


def test_a_segment_with_a_new_name_needs_no_stated_time(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """No replica can hold another content under a name that is new."""
    two = {"s": "1", "new": "2"}
    twice = {name: {"server": "ONLINE", "other": "ONLINE"} for name in two}
    pinot.replies |= reported({"s": "1"}, segment_push_time=(long_ago := ago(10**4)))
    engine = opened()
    engine.data_version("t")
    pinot.replies |= reported(two, segment_push_time=long_ago) | loaded(two)
    pinot.replies |= {
        "/tables/t/idealstate": {"OFFLINE": twice},
        "/tables/t/externalview": {"OFFLINE": twice},
    }
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    assert engine.data_version("t")


def test_a_table_that_was_made_again_is_waited_for(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """Its segments were never replaced, says Pinot, and yet have names under which others were served before."""
    engine = opened()
    confirmed(engine, QUERY)
    pinot.replies |= reported({"s": "2"}, segment_push_time=ago(0)) | loaded({"s": "2"})
    pinot.replies["/tables/t/externalview"] = TWICE
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="settle_seconds"):
        confirmed(engine, QUERY)


def test_a_replica_that_comes_back_unasked_is_given_the_stated_time(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """Without the admin ports nobody tells what it has loaded."""
    pinot.replies["/tables/t/idealstate"] = TWICE
    engine = opened(settle_seconds=20)
    confirmed(engine, QUERY)
    pinot.replies["/tables/t/externalview"] = TWICE
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="settle_seconds"):
        confirmed(engine, QUERY)
    clock.sleep(20)
    confirmed(engine, QUERY)


def test_a_replica_that_joins_while_a_version_is_waited_for_is_given_the_stated_time_too(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """It comes with what it began to load before the push."""
    pinot.replies |= reported({"s": "1"}, segment_refresh_time=ago(1)) | {"/tables/t/idealstate": TWICE}
    engine = opened(settle_seconds=20)
    with pytest.raises(DataChanged, match="settle_seconds"):
        engine.data_version("t")
    clock.sleep(10)
    pinot.replies["/tables/t/externalview"] = TWICE
    for pause in (10, 15):
        with pytest.raises(DataChanged, match="settle_seconds"):
            engine.data_version("t")
        clock.sleep(pause)
    assert engine.data_version("t")


def test_a_segment_that_was_deleted_and_pushed_again_is_waited_for(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """A replica may have missed that it was gone, and serve the old rows of that name."""
    long_ago = ago(10**4)
    pinot.replies |= listed_twice({"s": "1", "x": "9"}, segment_push_time=long_ago)
    engine = opened(settle_seconds=20)
    confirmed(engine, QUERY)
    pinot.replies |= listed_twice({"x": "9"}, segment_push_time=long_ago)
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    confirmed(engine, QUERY)
    pinot.replies |= listed_twice({"s": "2", "x": "9"}, segment_push_time=long_ago)
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="settle_seconds"):
        confirmed(engine, QUERY)
    clock.sleep(20)
    confirmed(engine, QUERY)


def test_what_was_waited_for_is_not_waited_for_again(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """A segment of a new name, soon after another was replaced, does not begin the stated time anew."""
    pinot.replies |= listed_twice({"s": "1"})
    engine = opened(settle_seconds=20)
    confirmed(engine, QUERY)
    pinot.replies |= listed_twice({"s": "2"})
    started = clock.passed
    with pytest.raises(DataChanged):
        confirmed(engine, QUERY)
    clock.sleep(10)
    pinot.replies |= listed_twice({"s": "2", "new": "3"})
    wait_for_version(engine, clock)
    assert 20 <= clock.passed - started < 21


@pytest.mark.parametrize(("age", "is_used"), [(0, False), (200, True)])
def test_a_connector_that_starts_waits_for_what_was_pushed_just_now(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime, age: float, is_used: bool
) -> None:
    """The name may have been another segment's before, which was deleted; nobody tells."""
    pushed = ago(age)
    pinot.replies |= listed_twice({"s": "1"}, segment_push_time=pushed)
    engine = opened(settle_seconds=60)
    if is_used:
        assert engine.data_version("t")
        return
    with pytest.raises(DataChanged, match="settle_seconds"):
        engine.data_version("t")
    # What was read a moment ago is not read again.
    clock.sleep(0.3)
    pinot.replies |= listed_twice({"s": "1", "new": "3"}, segment_push_time=pushed)
    with pytest.raises(DataChanged, match="settle_seconds"):
        engine.data_version("t")


PRUNED = {"OFFLINE": {
    "tableName": "t_OFFLINE",
    "routing": {"segmentPrunerTypes": ["time"]},
    "segmentsConfig": {"timeColumnName": "d"},
}}  # fmt: skip


def test_a_broker_that_prunes_is_given_the_stated_time_after_a_replacement(
    pinot: FakePinot, opened: Callable[..., PinotEngine], clock: SkippedTime
) -> None:
    """It leaves out segments by the times of those that they replaced; every question waits, whatever it names."""
    pinot.replies["/tables/t"] = PRUNED
    engine = opened(settle_seconds=20)
    confirmed(engine, QUERY)
    pinot.replies |= reported({"s": "2"}) | loaded({"s": "2"})
    started = clock.passed
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    with pytest.raises(DataChanged, match="prune"):
        confirmed(engine, QUERY)
    wait_for_version(engine, clock)
    assert 20 <= clock.passed - started < 21


def test_a_broker_that_prunes_knows_nothing_else_of_a_new_name(
    pinot: FakePinot, opened: Callable[..., PinotEngine]
) -> None:
    """So who pushes under new names waits for nothing."""
    pinot.replies["/tables/t"] = PRUNED
    engine = opened()
    engine.data_version("t")
    pinot.replies |= reported({"new": "2"}, segment_push_time=ago(0)) | loaded({"new": "2"})
    with pytest.raises(DataChanged, match="changed while"):
        confirmed(engine, QUERY)
    confirmed(engine, QUERY)


@pytest.mark.parametrize(("age", "is_used"), [(1, False), (200, True)])
def test_a_connector_that_starts_goes_by_the_time_of_a_replacement_where_brokers_prune(
    pinot: FakePinot, opened: Callable[..., PinotEngine], age: float, is_used: bool
) -> None:
    """Whatever the servers say, which load sooner than a broker hears of it."""
    pinot.replies |= {"/tables/t": PRUNED} | reported({"s": "1"}, segment_refresh_time=ago(age))
    if is_used:
        assert opened(settle_seconds=60).data_version("t")
        return
    with pytest.raises(DataChanged, match="prune"):
        opened(settle_seconds=60).data_version("t")
