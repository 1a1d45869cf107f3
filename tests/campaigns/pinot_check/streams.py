"""Tables that take in a stream: closed periods of them are the truth, as soon as there is an answer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import httpx
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from pinot_connector.engines.base import ClosedStream, CompleteBy, EngineQuery
from pinot_connector.engines.pinot.configuration import parts_of
from pinot_connector.engines.pinot.stream_segments import consumed, segments_of
from pinot_connector.errors import EngineRefused
from tests.campaigns.pinot_check.cluster import CannotTryError, CheckedCluster
from tests.campaigns.pinot_check.connector import (
    FIRST_DAY,
    MEMBER_AND_NAME,
    NAME,
    answered,
    histogram,
    refused,
    require_equal,
)
from tests.campaigns.pinot_check.rows import row, slow_row
from tests.engines.pinot.facts import facts_of
from tests.engines.pinot.kafka_broker import Kafka
from tests.engines.pinot.queries import count_members
from tests.engines.pinot.waiting import wait_until

_PARTITIONS = 2
_END = FIRST_DAY + 3
_FLUSH_ROWS = 200
_KAFKA_SECONDS = 60

Row = Mapping[str, object]


@row
def own_table(cluster: CheckedCluster) -> str:
    """What Pinot reports of your table that takes in a stream (PINOT_TABLE) is what the connector reads."""
    table = cluster.own_table
    if table is None:
        raise CannotTryError("PINOT_TABLE names none; its rows are not asked for")
    parts = parts_of(cluster.get(f"/tables/{table}"))
    if parts.real_time is None:
        raise AssertionError("the table has no real-time part")
    shown = [cluster.get(f"/tables/{table}/{kind}") for kind in ("idealstate", "externalview")]
    ideal, external = (each.get("REALTIME") or {} for each in shown)
    segments = segments_of(ideal, external, every_replica=parts.replaces_rows)
    report = cluster.get(f"/tables/{table}/consumingSegmentsInfo")
    try:
        found = consumed(segments, report, with_ends=True)
    except EngineRefused:
        consumed(segments, report, with_ends=False)
        return f"{len(segments.names)} segments; where the stream ends is not reported, so complete_by: delay"
    behind = sum(max(0, found.ends[each] - here) for each, here in found.current.items())
    of_partitions = f"{len(found.current)} partitions, {behind} rows behind"
    return f"{len(segments.names)} segments, {of_partitions}: complete_by: offsets"


@slow_row
def closed_periods(cluster: CheckedCluster) -> str:
    """Closed periods of a table that takes in a stream are the truth, in committed and consuming segments."""
    with _streamed(cluster, "streamed") as table:
        rows = _rows(range(FIRST_DAY, _END + 1), 120)
        _send(cluster, table, rows)
        return _require_truth(cluster, table, len(rows), rows)


@slow_row
def hybrid_tables(cluster: CheckedCluster) -> str:
    """Closed periods of a table with two parts count each row once; without the promise they are refused."""
    with _streamed(cluster, "hybrid", kinds=("OFFLINE", "REALTIME")) as table:
        pushed, streamed = (
            _rows(days, 90) for days in (range(FIRST_DAY, _END - 1), range(FIRST_DAY + 1, _END + 1))
        )
        for day in range(FIRST_DAY, _END - 1):
            cluster.upload(table, str(day), [each for each in pushed if each["day"] == day])
        wait_until(lambda: cluster.rows(f"SELECT COUNT(*) FROM {table}_OFFLINE") == [[len(pushed)]])  # noqa: S608
        _send(cluster, table, streamed)
        with closing(cluster.engine()) as engine, refused(EngineRefused, "a table with an offline part"):
            engine.run(_asked(cluster, table), "closed")
        last = [each for each in streamed if each["day"] not in range(FIRST_DAY, _END - 1)]
        held = [*pushed, *last]
        return _require_truth(cluster, table, len(streamed), held, offline_days_are_whole=True)


@slow_row
def replaced_rows(cluster: CheckedCluster) -> str:
    """Of rows that replace others the newest count, if the member is part of the key; else they are refused."""
    options = {"upsertConfig": {"mode": "FULL"}, "routing": {"instanceSelectorType": "strictReplicaGroup"}}
    with _streamed(cluster, "upserted", key=("member_id", "day"), **options) as table:
        wrong = [{**each, "name": "wrong"} for each in _rows((FIRST_DAY,), 150)]
        right = [{**each, "name": f"n{place % 3}"} for place, each in enumerate(_rows((FIRST_DAY,), 100))]
        _send(cluster, table, [*wrong, *right])
        newest = {each["member_id"]: each for each in [*wrong, *right]}.values()
        promised: dict[str, Any] = {"replaced_until_closed": True, "member": "member_id"}
        with closing(cluster.engine()) as engine:
            for stated in ({}, {**promised, "member": "name"}):
                with refused(EngineRefused, "a table whose rows are replaced"):
                    engine.run(_asked(cluster, table, **stated), "closed")
        return _require_truth(cluster, table, len(wrong) + len(right), [*newest], **promised)


@contextmanager
def _streamed(cluster: CheckedCluster, name: str, **config: Any) -> Iterator[str]:
    """Make a table that takes in the topic of its name, and remove both."""
    if cluster.kafka is None:
        raise CannotTryError("PINOT_KAFKA names no Kafka that this machine and the servers reach")
    admin, topic = AdminClient({"bootstrap.servers": cluster.kafka}), cluster.name_of(name)
    admin.create_topics([NewTopic(topic, _PARTITIONS)])[topic].result(_KAFKA_SECONDS)
    try:
        kinds = config.pop("kinds", ("REALTIME",))
        index = {"loadMode": "MMAP", "streamConfigs": _stream_of(cluster, topic)}
        table = cluster.create(
            name, MEMBER_AND_NAME, kinds=kinds, REALTIME={"tableIndexConfig": index}, **config
        )
        wait_until(lambda: _PARTITIONS == _consuming(cluster, table))
        try:
            yield table
        finally:
            # Servers would go on looking for a topic that is gone.
            cluster.remove(table)
    finally:
        admin.delete_topics([topic])[topic].result(_KAFKA_SECONDS)


def _stream_of(cluster: CheckedCluster, topic: str) -> dict[str, str]:
    kafka = Kafka(str(cluster.kafka), facts_of(cluster.version).kafka_plugin)
    return {**kafka.stream_of(topic), "realtime.segment.flush.threshold.rows": str(_FLUSH_ROWS)}


def _consuming(cluster: CheckedCluster, table: str) -> int:
    path = f"/tables/{table}/externalview"
    # Of a table that has just been made there is none.
    view = (cluster.get(path).get("REALTIME") or {}) if cluster.status(path) == httpx.codes.OK else {}
    return sum("CONSUMING" in replicas.values() for replicas in view.values())


def _rows(days: Iterable[int], members: int) -> list[Row]:
    return [
        {"member_id": f"m{member}", "name": f"n{(member + day) % 5}", "day": day}
        for day in days
        for member in range(members)
    ]


def _send(cluster: CheckedCluster, topic: str, rows: Sequence[Row]) -> None:
    """Put rows into the topic, all of a member's into one partition; return when Kafka has them."""
    producer = Producer({"bootstrap.servers": str(cluster.kafka)})
    for each in rows:
        partition = int(str(each["member_id"])[1:]) % _PARTITIONS
        producer.produce(topic, json.dumps(each), partition=partition)
    require_equal(0, producer.flush(_KAFKA_SECONDS), "Kafka did not take every row")


def _asked(cluster: CheckedCluster, table: str, end: int = _END, **promises: Any) -> EngineQuery:
    by = CompleteBy.OFFSETS if facts_of(cluster.version).ends_are_reported else CompleteBy.DELAY
    query = count_members(table, NAME, where=f"WHERE day < {end}", limit=1000)
    return replace(query, stream=ClosedStream("day", -(2**31), end, by, **promises))


def _require_truth(
    cluster: CheckedCluster, table: str, sent: int, rows: Sequence[Row], **promises: Any
) -> str:
    """Ask about each end of a period; return after how long the first was answered, and how many segments there are.

    Args:
        cluster: the cluster.
        table: its table.
        sent: how many rows came by the stream.
        rows: the rows that count.
        promises: what the policy promises.
    """
    began = time.monotonic()
    if not facts_of(cluster.version).ends_are_reported:
        # With the delay alone, a caller has to wait first, for as long as Pinot takes.
        sql = f"SELECT COUNT(*) FROM {table}_REALTIME"  # noqa: S608
        wait_until(lambda: cluster.ask(sql).get("totalDocs") == sent)
    seconds = 0.0
    with closing(cluster.engine()) as engine:
        for end in (_END, _END - 1, _END - 2):
            held = {(each["name"], each["member_id"]) for each in rows if int(str(each["day"])) < end}
            wanted: dict[object, int] = {}
            for name, _ in held:
                wanted[name] = wanted.get(name, 0) + 1
            found = histogram(answered(engine, _asked(cluster, table, end, **promises)))
            seconds = seconds or time.monotonic() - began
            require_equal(wanted, found, "other counts than the rows have")
    segments = len(cluster.get(f"/tables/{table}/idealstate")["REALTIME"])
    by = "offsets" if facts_of(cluster.version).ends_are_reported else "delay"
    return f"complete_by: {by}; {seconds:.1f} s after the last row; {segments} segments of the stream"
