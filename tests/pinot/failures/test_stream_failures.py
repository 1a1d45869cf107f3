"""A table that takes in a stream while everything changes: each answer is that of DuckDB, or there is none."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

import httpx
import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineError
from tests.pinot.end_offsets import reporting_ends
from tests.pinot.kafka_broker import Kafka, running_kafka
from tests.pinot.streams import TODAY, StreamedTable, answered, rows_of
from tests.pinot.waiting import wait_until

BUSY_SECONDS = 30.0


@dataclass
class Tally:
    """What became of questions, and how long after the end of each period the first answer came."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def ask(self, engine: PinotEngine, table: StreamedTable, end: int, truth: dict[str, int]) -> bool:
        """Ask once; return whether there was an answer."""
        try:
            found = answered(engine, table.question(end))
        except EngineError as error:
            self.outcomes[f"{type(error).__name__}: {error}"] += 1
            return False
        self.outcomes["right" if found == truth else "WRONG"] += 1
        return True

    def report(self, name: str) -> None:
        """Print the table."""
        print(f"\n{name}")
        for outcome, times in self.outcomes.most_common():
            print(f"{times:6} {outcome}")
        if self.seconds:
            shown = ", ".join(f"{each:.1f}" for each in self.seconds)
            print(f"seconds from the end of a period until its first answer: {shown}")


@pytest.fixture(scope="module")
def kafka(pinot_cluster: PinotCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A Kafka beside the cluster."""
    with running_kafka(pinot_cluster, tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def engine(pinot_cluster: PinotCluster, kafka: Kafka) -> Iterator[PinotEngine]:
    """An engine for the cluster, whose controller also reports where streams end."""
    with reporting_ends(pinot_cluster.controller_url, kafka.address) as controller:
        engine = PinotEngine(controller=controller, broker=pinot_cluster.broker_url, timeout_seconds=10)
        yield engine
        engine.close()


@pytest.fixture
def table(pinot_cluster: PinotCluster, kafka: Kafka) -> Iterator[StreamedTable]:
    """A table whose segments are completed every few seconds."""
    found = StreamedTable(pinot_cluster, kafka, f"busy_{secrets.token_hex(3)}")
    found.create(flush_rows=600)
    yield found
    found.drop()


@contextmanager
def _rows_of_today(table: StreamedTable) -> Iterator[None]:
    """Send rows of the period that is not closed until the block ends."""
    done = Event()

    def send() -> None:
        member = 0
        while not done.wait(0.3):
            table.send(rows_of(TODAY, range(member, member + 30), "open"))
            member += 30

    sender = Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        done.set()
        sender.join()


def test_answers_are_right_while_segments_are_completed_and_periods_close(
    table: StreamedTable, engine: PinotEngine
) -> None:
    """Periods close one after the other in a stream that never ends; each is asked from its last row on."""
    tally, day, began = Tally(), TODAY - 100, time.monotonic()
    with _rows_of_today(table):
        while time.monotonic() - began < BUSY_SECONDS or len(tally.seconds) < 3:
            table.send(rows_of(day, range(day % 50, 200)))
            closed, truth = time.monotonic(), table.truth(day + 1, _before(table, day + 1))
            wait_until(lambda end=day + 1, truth=truth: tally.ask(engine, table, end, truth))  # type: ignore[misc]
            tally.seconds.append(time.monotonic() - closed)
            day += 1
    tally.report("a stream that never ends")
    assert 0 == tally.outcomes["WRONG"]
    assert len(tally.seconds) <= tally.outcomes["right"]


def _before(table: StreamedTable, end: int) -> list:  # type: ignore[type-arg]
    """Return the rows of before a day; others are sent meanwhile."""
    return [row for row in list(table.rows) if int(str(row["day"])) < end]


def test_answers_are_right_or_refused_while_a_server_dies_and_comes_back(
    table: StreamedTable, engine: PinotEngine, pinot_cluster: PinotCluster
) -> None:
    """Its segments are gone without a word, and it takes the rows of its partition in again before they count."""
    table.send(rows_of(TODAY - 1, range(300)))
    truth = table.truth(TODAY, _before(table, TODAY))
    tally = Tally()
    wait_until(lambda: tally.ask(engine, table, TODAY, truth))
    done = Event()

    def kill() -> None:
        pinot_cluster.kill_server(0)
        done.wait(20)
        pinot_cluster.start_server(0)
        done.set()

    killer = Thread(target=kill)
    with _rows_of_today(table):
        killer.start()
        while not done.is_set():
            tally.ask(engine, table, TODAY, truth)
        killer.join()
        wait_until(lambda: tally.ask(engine, table, TODAY, truth), 120)
    tally.report("a server that dies and comes back")
    assert 0 == tally.outcomes["WRONG"]
    assert any(not outcome.startswith("right") for outcome in tally.outcomes)


def test_a_segment_that_is_removed_is_in_no_answer_or_in_all(
    table: StreamedTable, engine: PinotEngine
) -> None:
    """Retention takes whole segments; an answer is on what there was before or on what there is after."""
    table.send(rows_of(TODAY - 1, range(800)))
    table.wait_for(len(table.rows))
    truth, tally = table.truth(), Tally()
    wait_until(lambda: tally.ask(engine, table, TODAY, truth))
    url = table.cluster.controller_url
    state = httpx.get(f"{url}/tables/{table.name}/idealstate", timeout=30).json()["REALTIME"]
    removed = next(name for name, replicas in state.items() if "ONLINE" in replicas.values())
    question = table.question()
    answer = engine.run(question, engine.data_version(table.name))
    httpx.delete(f"{url}/segments/{table.name}_REALTIME/{removed}", timeout=30).raise_for_status()

    def is_noticed() -> bool:
        try:
            engine.confirm(question, answer)
        except EngineError:
            return True
        return False

    wait_until(is_noticed)
    fewer: list[dict[str, int]] = []

    def is_answered() -> bool:
        try:
            fewer.append(answered(engine, question))
        except EngineError:
            return False
        return True

    wait_until(is_answered)
    assert sum(fewer[0].values()) < sum(truth.values())
