"""A table that takes in a stream while everything changes: each answer is that of DuckDB, or there is none."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

import pytest

from deploy.pinot.cluster import PinotCluster
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from pinot_connector.engines.base import EngineQuery
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.engines.pinot.configuration import OLDEST_MULTISTAGE_VERSION
from pinot_connector.errors import EngineError, EngineRefused
from tests.engines.pinot.end_offsets import reporting_ends
from tests.engines.pinot.facts import version_of
from tests.engines.pinot.kafka_broker import Kafka, running_kafka
from tests.engines.pinot.loading import plain_rows
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.streams import TODAY, StreamedTable, answered, rows_of
from tests.engines.pinot.waiting import wait_until
from tests.support.engine_queries import engine_query

BUSY_SECONDS = 30.0


@dataclass
class Tally:
    """What became of questions, and how long after the end of each period the first answer came."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def ask(self, engine: PinotEngine, table: StreamedTable, end: int, truth: dict[str, int]) -> bool:
        """Ask once; return whether there was an answer."""
        return self.ask_for(engine, table.question(end), truth)

    def ask_for(self, engine: PinotEngine, question: EngineQuery, truth: dict[str, int]) -> bool:
        """Ask a question once; return whether there was an answer."""
        try:
            found = answered(engine, question)
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
def controller(pinot_cluster: PinotCluster, kafka: Kafka) -> Iterator[str]:
    """The address of the controller, which also reports where streams end."""
    with reporting_ends(pinot_cluster.controller_url, kafka.address) as address:
        yield address


@pytest.fixture
def engine(pinot_cluster: PinotCluster, controller: str) -> Iterator[PinotEngine]:
    """An engine for the cluster."""
    with closing(_engine(pinot_cluster, controller)) as engine:
        yield engine


def _engine(cluster: PinotCluster, controller: str) -> PinotEngine:
    return PinotEngine(controller=controller, broker=cluster.broker_url, timeout_seconds=10)


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


_BOUNDED = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  {table}:
    member: member_id
    time: {{column: day, type: date, refresh: day, delay_minutes: 60, complete_by: offsets}}
    contributions: {{bound: in_query, units: 10, min_count: 1}}
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: string}}
      article_id: {{type: string, group_by: true, typical: 7}}
      day: {{type: date}}
"""


def _bounded(table: StreamedTable, end: int) -> EngineQuery:
    """Return the same question for the multi-stage engine: no member has more articles than count."""
    policy = parse_policy(_BOUNDED.format(table=table.name))
    asked = HistogramQuery(table.name, ("article_id",), Measure.DISTINCT_MEMBERS)
    return engine_query(resolve(asked, policy, now=end * 86_400 + 7_200), "pinot")


def test_answers_are_right_or_refused_while_a_server_dies_and_comes_back(
    table: StreamedTable, engine: PinotEngine, controller: str, pinot_cluster: PinotCluster
) -> None:
    """Its segments are gone without a word, and it takes the rows of its partition in again before they count.

    So it is for who has asked before, for who asks for the first time, and from 1.0 on for who is bounded in the query.
    """
    table.send(rows_of(TODAY - 1, range(300)))
    truth = table.truth(TODAY, _before(table, TODAY))
    tally, of_strangers, of_bounded = Tally(), Tally(), Tally()
    asks_bounded = version_of({"pinot-controller": pinot_cluster.version}) >= OLDEST_MULTISTAGE_VERSION

    def ask() -> bool:
        found = [tally.ask(engine, table, TODAY, truth)]
        with closing(_engine(pinot_cluster, controller)) as stranger:
            found.append(of_strangers.ask(stranger, table, TODAY, truth))
        if asks_bounded:
            found.append(of_bounded.ask_for(engine, _bounded(table, TODAY), truth))
        return all(found)

    wait_until(ask)
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
            ask()
        killer.join()
        wait_until(ask, 120)
    for name, each in (("asked before", tally), ("first time", of_strangers), ("bounded", of_bounded)):
        each.report(f"a server that dies and comes back: {name}")
        assert 0 == each.outcomes["WRONG"]
        if each.outcomes:
            assert any(outcome != "right" for outcome in each.outcomes)


def test_a_segment_that_is_removed_is_in_no_answer_or_in_all(
    table: StreamedTable, engine: PinotEngine
) -> None:
    """Retention takes whole segments; an answer is on what there was before or on what there is after."""
    table.send(rows_of(TODAY - 1, range(800)))
    table.wait_for(len(table.rows))
    truth, tally = table.truth(), Tally()
    wait_until(lambda: tally.ask(engine, table, TODAY, truth))
    url = table.cluster.controller_url
    state = HTTP.get(f"{url}/tables/{table.name}/idealstate", timeout=30).json()["REALTIME"]
    removed = next(name for name, replicas in state.items() if "ONLINE" in replicas.values())
    question = table.question()
    answer = engine.run(question, engine.data_version(table.name))
    HTTP.delete(f"{url}/segments/{table.name}_REALTIME/{removed}", timeout=30).raise_for_status()

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


def test_what_retention_removes_is_in_no_question(
    pinot_cluster: PinotCluster, kafka: Kafka, engine: PinotEngine
) -> None:
    """The controller takes old segments during questions; a late row keeps old ones, which no question sees either."""
    found = StreamedTable(pinot_cluster, kafka, f"kept_{secrets.token_hex(3)}", partitions=1)
    today = int(time.time()) // 86_400
    try:
        found.create(flush_rows=150, retention_days=5)
        # Whole segments of ten days ago, one that a late row of yesterday keeps, and some of this week.
        for _ in range(4):
            found.send(rows_of(today - 10, range(50), "old"))
        found.send([*rows_of(today - 10, range(49), "kept"), *rows_of(today - 1, [49], "late")])
        for back in (2, 1, 0):
            found.send(rows_of(today - back, range(back * 20, back * 20 + 100)))
        young = [row for row in found.rows if today - 3 <= int(str(row["day"]))]
        truth, tally = found.truth(today, young), Tally()
        asked = found.question(today, start=today - 3)
        wait_until(lambda: tally.ask_for(engine, asked, truth))
        before = found.segments()
        refused = _refusal(engine, found.question(today))
        found.remove_what_is_old()

        def is_removed() -> bool:
            tally.ask_for(engine, asked, truth)
            return len(found.segments()) <= len(before) - 3

        wait_until(is_removed)
        wait_until(lambda: tally.ask_for(engine, asked, truth))
        others = PinotEngine(controller=pinot_cluster.controller_url, broker=pinot_cluster.broker_url)
        assert "retention" in refused
        assert refused == _refusal(engine, found.question(today)) == _refusal(others, found.question(today))
        others.close()
        # Pinot itself still has the rows that the late one keeps, and the others no more.
        sql = f"SELECT article_id, COUNT(*) FROM {found.name} WHERE day < {today - 9} GROUP BY 1"  # noqa: S608
        assert [["kept", 147]] == plain_rows(pinot_cluster, sql)
    finally:
        found.drop()
    tally.report("retention")
    assert 0 == tally.outcomes["WRONG"]


def _refusal(engine: PinotEngine, question: EngineQuery) -> str:
    with pytest.raises(EngineRefused) as refused:
        answered(engine, question)
    return str(refused.value)


def test_a_partition_that_stopped_before_its_first_commit_keeps_answers_back(
    table: StreamedTable, engine: PinotEngine
) -> None:
    """Its only segment is meant to be offline then; Pinot itself goes on answering from the other partition."""
    table.send(rows_of(TODAY - 1, range(40)))
    truth, tally = table.truth(), Tally()
    wait_until(lambda: tally.ask(engine, table, TODAY, truth))
    url = table.cluster.controller_url
    state = HTTP.get(f"{url}/tables/{table.name}/idealstate", timeout=30).json()["REALTIME"]
    stopped = next(name for name in state if "__1__" in name)
    (server,) = state[stopped]
    # What a server says of a consumer that failed for good.
    said = {"name": stopped, "instance": server, "streamPartitionMsgOffset": "1", "reason": "tried"}
    HTTP.get(f"{url}/segmentStoppedConsuming", params=said, timeout=30).raise_for_status()

    def is_noticed() -> bool:
        tally.ask(engine, table, TODAY, truth)
        return any("not being taken in" in outcome for outcome in tally.outcomes)

    wait_until(is_noticed)
    rest = sum(int(str(row["member_id"])[1:]) % 2 == 0 for row in table.rows)
    sql = f"SELECT COUNT(*) FROM {table.name}"  # noqa: S608
    wait_until(lambda: plain_rows(table.cluster, sql) == [[rest]])
    answered_before = tally.outcomes["right"]
    assert not tally.ask(engine, table, TODAY, truth)
    assert answered_before == tally.outcomes["right"]
    tally.report("a partition that stopped before its first commit")
    assert 0 == tally.outcomes["WRONG"]
