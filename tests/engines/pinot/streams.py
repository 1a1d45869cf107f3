"""Tables of a real Pinot that take in a stream, the rows that they should hold, and questions about closed periods."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import httpx
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import (
    ClosedStream,
    ColumnType,
    CompleteBy,
    EngineAnswer,
    EngineQuery,
)
from pinot_connector.engines.pinot import PinotEngine
from tests.engines.pinot.kafka_broker import Kafka
from tests.engines.pinot.loading import plain_rows
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.queries import count_members
from tests.engines.pinot.waiting import wait_until
from tests.support.queries.duckdb_rows import store

Row = Mapping[str, object]
TODAY = 20_000
"""The first day that is not closed."""


def rows_of(day: int, members: Iterable[int], article: str = "") -> list[Row]:
    """Return three rows of each member on one day, in articles that differ between members, or in this one."""
    return [
        {"member_id": f"m{member}", "article_id": article or f"a{(member + i) % 7}", "day": day}
        for member in members
        for i in range(3)
    ]


@dataclass
class StreamedTable:
    """A table that takes in the topic of its name, and all rows that were sent to it or uploaded."""

    cluster: PinotCluster
    kafka: Kafka
    name: str
    partitions: int = 2
    rows: list[Row] = field(default_factory=list)

    def create(self, *, flush_rows: int = 100_000, retention_days: int | None = None, **config: Any) -> None:
        """Make topic, schema and real-time part; return when each partition is being taken in."""
        kept = {"retentionTimeUnit": "DAYS", "retentionTimeValue": str(retention_days)}
        wait_until(self._has_topic, 120)
        stream = {
            **self.kafka.stream_of(self.name),
            "realtime.segment.flush.threshold.rows": str(flush_rows),
            **config.pop("stream", {}),
        }
        schema = {
            "schemaName": self.name,
            "dimensionFieldSpecs": [
                {"name": "member_id", "dataType": "STRING"},
                {"name": "article_id", "dataType": "STRING"},
            ],
            "dateTimeFieldSpecs": [
                {"name": "day", "dataType": "INT", "format": "1:DAYS:EPOCH", "granularity": "1:DAYS"}
            ],
            **config.pop("schema", {}),
        }
        with httpx.Client(base_url=self.cluster.controller_url, timeout=30) as controller:
            controller.post("/schemas", json=schema).raise_for_status()
            for part in config.pop("parts", ("REALTIME",)):
                whole = self._config(part, stream if part == "REALTIME" else {}) | config
                if retention_days is not None and part == "REALTIME":
                    whole["segmentsConfig"] |= kept
                controller.post("/tables", json=whole).raise_for_status()
        wait_until(lambda: self.partitions == len(self._consuming()))

    def _has_topic(self) -> bool:
        """Ask for the topic; a broker that has just started may leave that unanswered."""
        admin = AdminClient({"bootstrap.servers": self.kafka.address})
        topic = NewTopic(self.name, self.partitions)
        try:
            admin.create_topics([topic], request_timeout=10)[self.name].result(15)
        except TimeoutError:
            return False
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
        return True

    def _config(self, part: str, stream: Mapping[str, object]) -> dict[str, Any]:
        return {
            "tableName": self.name,
            "tableType": part,
            "segmentsConfig": {
                "schemaName": self.name,
                "replication": "1",
                "replicasPerPartition": "1",
                "timeColumnName": "day",
                "timeType": "DAYS",
            },
            "tenants": {},
            "tableIndexConfig": {"loadMode": "MMAP", **({"streamConfigs": stream} if stream else {})},
            "metadata": {},
        }

    def _consuming(self) -> list[str]:
        view = HTTP.get(f"{self.cluster.controller_url}/tables/{self.name}/externalview", timeout=30).json()
        return [
            name
            for name, replicas in (view.get("REALTIME") or {}).items()
            if "CONSUMING" in replicas.values()
        ]

    def send(self, rows: Sequence[Row], partition: int | None = None) -> None:
        """Put rows into one partition, or a member's rows into the same one of all; return when Kafka has them."""
        producer = Producer({"bootstrap.servers": self.kafka.address})
        for row in rows:
            own = int(str(row["member_id"]).strip("m") or 0) % self.partitions
            producer.produce(
                self.name,
                json.dumps(row),
                key=str(row["member_id"]),
                partition=own if partition is None else partition,
            )
            producer.poll(0)
        assert 0 == producer.flush(60), "Kafka did not take every row"
        self.rows.extend(rows)

    def wait_for(self, rows: int) -> None:
        """Return when Pinot counts so many rows of the real-time part."""
        sql = f"SELECT COUNT(*) FROM {self.name}_REALTIME"  # noqa: S608
        wait_until(lambda: plain_rows(self.cluster, sql) == [[rows]])

    def drop(self) -> None:
        """Remove the table: servers would go on looking for a stream that is gone."""
        HTTP.delete(f"{self.cluster.controller_url}/tables/{self.name}", timeout=30)

    def remove_what_is_old(self) -> None:
        """Have the controller take the segments that its retention lets go of, as it does every six hours."""
        HTTP.get(
            f"{self.cluster.controller_url}/periodictask/run",
            params={"taskname": "RetentionManager", "tableName": self.name, "type": "REALTIME"},
            timeout=30,
        ).raise_for_status()

    def segments(self) -> frozenset[str]:
        """Return the names of the segments of the real-time part."""
        state = HTTP.get(f"{self.cluster.controller_url}/tables/{self.name}/idealstate", timeout=30).json()
        return frozenset(state["REALTIME"])

    def truth(self, end: int = TODAY, rows: Sequence[Row] | None = None) -> dict[str, int]:
        """Return the distinct members of each article before a day, as DuckDB counts them."""
        held = self.rows if rows is None else rows
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE held (member_id VARCHAR, article_id VARCHAR, day INTEGER)")
            store(connection, "held", [(row["member_id"], row["article_id"], row["day"]) for row in held])
            sql = "SELECT article_id, count(DISTINCT member_id) FROM held WHERE day < ? GROUP BY 1"
            return dict(connection.execute(sql, [end]).fetchall())

    def question(
        self,
        end: int = TODAY,
        by: CompleteBy = CompleteBy.OFFSETS,
        start: int = -(2**31),
        **promises: Any,
    ) -> EngineQuery:
        """Return the question for the members of each article in a range of days, whose period is closed."""
        query = count_members(
            self.name,
            ("article_id", ColumnType.STRING),
            where=f"WHERE day >= {start} AND day < {end}",
            limit=1000,
        )
        return replace(query, stream=ClosedStream("day", start, end, by, **promises))


def counts(answer: EngineAnswer) -> dict[str, int]:
    """Return the count of each element."""
    return {str(each): count for each, count in zip(answer.elements[0], answer.counts, strict=True)}


def answered(engine: PinotEngine, query: EngineQuery) -> dict[str, int]:
    """Return the confirmed counts of a question."""
    answer = engine.run(query, engine.data_version(query.table))
    engine.confirm(query, answer)
    return counts(answer)
