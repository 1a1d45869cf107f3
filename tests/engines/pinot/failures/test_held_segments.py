"""A segment that is replaced by one with as many rows, which takes its time to load, on a real Pinot.

The controller tells of the new checksum at once; nothing in an answer tells old rows from new.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import DataChanged, EngineError
from tests.engines.pinot.failures.held_segments import (
    HeldSegment,
    create_table,
    load_names,
    loaded,
    push,
    segment_of,
)
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.queries import confirmed, count_members
from tests.engines.pinot.waiting import wait_until


@dataclass
class Said:
    """What was answered, as versions and names, and what was said instead of an answer."""

    answered: set[tuple[str, str]] = field(default_factory=set)
    refused: list[EngineError] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """The names that were answered, under whatever version."""
        return {name for _, name in self.answered}

    @property
    def texts(self) -> set[str]:
        """The texts of what was said instead."""
        return {str(error) for error in self.refused}


def said(engine: PinotEngine, table: str, seconds: float) -> Said:
    """Ask again and again for so long."""
    query = count_members(table, ("name", ColumnType.STRING))
    found = Said()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            answer = confirmed(engine, query)
        except EngineError as error:
            found.refused.append(error)
            time.sleep(0.1)
        else:
            found.answered |= {(answer.data_version, str(name)) for name in answer.elements[0]}
    return found


def wait_for_name(engine: PinotEngine, table: str, name: str) -> Said:
    """Ask until this name is answered; return all that was said before."""
    found = Said()

    def is_answered() -> bool:
        more = said(engine, table, 0.3)
        found.answered |= more.answered
        found.refused += more.refused
        return name in found.names

    wait_until(is_answered, 90)
    return found


@pytest.fixture
def opened(pinot_cluster: PinotCluster) -> Iterator[Callable[..., PinotEngine]]:
    """Opens engines for the cluster."""
    with ExitStack() as engines:

        def opened(**options: Any) -> PinotEngine:
            engine = PinotEngine(
                controller=pinot_cluster.controller_url, broker=pinot_cluster.broker_url, **options
            )
            engines.callback(engine.close)
            return engine

        yield opened


def replaced(cluster: PinotCluster, replication: int) -> tuple[str, HeldSegment]:
    """Return a table that serves `old`, and the segment of `new` that is to take its place."""
    table = create_table(cluster, replication=replication)
    load_names(cluster, table, "new")
    segment = segment_of(cluster, table)
    load_names(cluster, table, "old")
    return table, segment


def test_rows_that_are_not_loaded_yet_are_never_answered_for(
    pinot_cluster: PinotCluster, engine: PinotEngine
) -> None:
    """While the only server still serves the old segment, there is no answer under the new version."""
    table, segment = replaced(pinot_cluster, replication=1)
    before = said(engine, table, 4)
    with segment.offered():
        push(pinot_cluster, table, segment)
        wait_until(lambda: segment.asked == 2)
        meanwhile = said(engine, table, 8)
        segment.let(1)
        wait_for_name(engine, table, "new")
        after = said(engine, table, 1)
    assert before.names == {"old"}
    assert meanwhile.answered == set()
    assert {type(error) for error in meanwhile.refused} == {DataChanged}
    assert any("still loading a new version" in text for text in meanwhile.texts)
    assert after.names == {"new"}
    assert not {version for version, _ in before.answered} & {version for version, _ in after.answered}


def test_a_connector_that_starts_while_a_segment_is_loading_waits_too(
    pinot_cluster: PinotCluster, opened: Callable[..., PinotEngine]
) -> None:
    """It has seen no other version before, and whether this one is loaded is for the servers to say."""
    table, segment = replaced(pinot_cluster, replication=1)
    with segment.offered():
        push(pinot_cluster, table, segment)
        wait_until(lambda: segment.asked == 2)
        meanwhile = said(opened(), table, 7)
        segment.let(1)
        after = wait_for_name(opened(), table, "new")
    assert meanwhile.answered == set()
    assert after.names == {"new"}


def test_every_replica_has_to_have_loaded(
    pinot_cluster: PinotCluster, opened: Callable[..., PinotEngine]
) -> None:
    """Where one of two servers serves the new segment and the other the old one, their admin ports tell."""
    table, segment = replaced(pinot_cluster, replication=2)
    engine = opened(server_admin=True)
    with segment.offered():
        push(pinot_cluster, table, segment)
        wait_until(lambda: segment.asked == 3)
        segment.let(1)
        wait_until(lambda: len(set(loaded(pinot_cluster, table))) == 2)
        meanwhile = said(engine, table, 8)
        segment.let(1)
        after = wait_for_name(engine, table, "new")
    assert meanwhile.answered == set()
    assert any("still loading" in text for text in meanwhile.texts)
    assert after.names == {"new"}


def test_replicas_that_cannot_be_asked_are_given_the_stated_time(
    pinot_cluster: PinotCluster, opened: Callable[..., PinotEngine]
) -> None:
    """Through the controller one replica of two is heard, so a version is used only after `settle_seconds`."""
    table, segment = replaced(pinot_cluster, replication=2)
    engine = opened(settle_seconds=12)
    with segment.offered():
        push(pinot_cluster, table, segment)
        wait_until(lambda: segment.asked == 3)
        pushed_at = time.monotonic()
        meanwhile = said(engine, table, 4)
        segment.let(2)
        after = wait_for_name(engine, table, "new")
    assert time.monotonic() - pushed_at > 11
    assert meanwhile.answered == set()
    assert after.names == {"new"}
    assert any("settle_seconds" in text for text in after.texts)


def test_a_server_that_is_started_again_while_it_loads_is_waited_for(
    pinot_cluster: PinotCluster, opened: Callable[..., PinotEngine]
) -> None:
    """It begins with the segment that it has on its disk, or with none, and is asked for neither."""
    table, segment = replaced(pinot_cluster, replication=2)
    engine = opened(server_admin=True, settle_seconds=90)
    with segment.offered(), ThreadPoolExecutor(1) as starting:
        push(pinot_cluster, table, segment)
        wait_until(lambda: segment.asked == 3)
        pinot_cluster.kill_server(0)
        killed = said(engine, table, 6)
        # It is healthy only once it has loaded what it should.
        started = starting.submit(pinot_cluster.start_server, 0)
        wait_until(lambda: segment.asked >= 4, 150)
        loading = said(engine, table, 6)
        segment.let(1000)
        after = wait_for_name(engine, table, "new")
        started.result()
    assert killed.answered == loading.answered == set()
    assert any("does not report what it has loaded" in text for text in killed.texts)
    assert after.names == {"new"}


def test_a_server_that_comes_online_with_rows_that_were_replaced_meanwhile_is_not_believed(
    pinot_cluster: PinotCluster, opened: Callable[..., PinotEngine]
) -> None:
    """It loads what was listed when it began to start; the other has the new segment by then, and was answered from."""
    table, new = replaced(pinot_cluster, replication=2)
    load_names(pinot_cluster, table, "mid")
    mid = segment_of(pinot_cluster, table)
    load_names(pinot_cluster, table, "old")
    engine = opened(server_admin=True, settle_seconds=10)
    with mid.offered(), new.offered(), ThreadPoolExecutor(1) as starting:
        pinot_cluster.kill_server(0)
        wait_until(lambda: len(_online(pinot_cluster, table)) == 1, 90)
        push(pinot_cluster, table, mid)
        mid.let(1)
        wait_until(lambda: mid.asked == 2)
        started = starting.submit(pinot_cluster.start_server, 0)
        wait_until(lambda: mid.asked == 3, 150)
        push(pinot_cluster, table, new)
        new.let(1)
        before = wait_for_name(engine, table, "new")
        mid.let(1000)
        wait_until(lambda: len(_online(pinot_cluster, table)) == 2, 90)
        after = said(engine, table, 8)
        held = loaded(pinot_cluster, table)
        new.let(1000)
        again = wait_for_name(engine, table, "new")
        started.result()
    assert len(set(held)) == 2
    assert again.names == {"new"}
    assert before.names == {"new"}
    assert after.names <= {"new"}
    assert any("still loading" in text for text in after.texts)


def _online(cluster: PinotCluster, table: str) -> list[str]:
    view = HTTP.get(f"{cluster.controller_url}/tables/{table}/externalview").json()["OFFLINE"]["s0"]
    return [server for server, state in view.items() if state == "ONLINE"]


def test_a_segment_that_cannot_be_loaded_is_told_of(
    pinot_cluster: PinotCluster, opened: Callable[..., PinotEngine]
) -> None:
    """A refresh that fails leaves the old segment in place for good, and nothing is answered under the new version."""
    table, segment = replaced(pinot_cluster, replication=1)
    engines = [opened(), opened(server_admin=True)]
    with segment.offered():
        segment.break_downloads()
        push(pinot_cluster, table, segment)
        wait_until(lambda: segment.asked >= 2)
        meanwhile = [said(engine, table, 7) for engine in engines]
    assert [each.answered for each in meanwhile] == [set(), set()]
    assert all(any("still loading" in text for text in each.texts) for each in meanwhile)


def test_a_new_segment_in_error_is_told_of(
    pinot_cluster: PinotCluster, opened: Callable[..., PinotEngine]
) -> None:
    """Where nothing was there before, Pinot itself says that it has failed, and so do we."""
    source, segment = replaced(pinot_cluster, replication=1)
    table = create_table(pinot_cluster)
    with segment.offered():
        segment.break_downloads()
        push(pinot_cluster, table, segment)
        view = f"{pinot_cluster.controller_url}/tables/{table}/externalview"
        wait_until(lambda: "ERROR" in str(HTTP.get(view).json()))
        meanwhile = [said(opened(server_admin=asked), table, 1) for asked in (False, True)]
    assert source != table
    assert [each.answered for each in meanwhile] == [set(), set()]
    assert all(any("could not load a segment" in text for text in each.texts) for each in meanwhile)
