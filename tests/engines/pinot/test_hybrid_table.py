"""A real table with an offline and a real-time part: a question to the offline part sees no row of the stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import httpx
import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import DataChanged, EngineRefused
from pinot_connector.release_store import MemoryReleaseStore
from tests.engines.pinot.kafka_broker import running_kafka
from tests.engines.pinot.loading import plain_rows, remove_table, upload, wait_for_rows
from tests.engines.pinot.queries import confirmed, count_members
from tests.engines.pinot.waiting import wait_until
from tests.support.clients import blocking_client_of
from tests.support.embedded import embedded

TABLE, OFFLINE = "hybrid", "hybrid_OFFLINE"
DAYS, LAST_DAY = 3, 17002
IN_STREAM = 40
SCHEMA = {
    "schemaName": TABLE,
    "dimensionFieldSpecs": [
        {"name": "member_id", "dataType": "STRING"},
        {"name": "article_id", "dataType": "STRING"},
    ],
    "dateTimeFieldSpecs": [
        {"name": "day", "dataType": "INT", "format": "1:DAYS:EPOCH", "granularity": "1:DAYS"}
    ],
}
# With noise of scale 1.5, no article with 90 members is ever seen below the threshold of 24.
POLICY = """
epsilon_per: 4
delta: 1e-6
tables:
  hybrid_OFFLINE:
    member: member_id
    data_version: first
    d_bar: 1000
    measures: {distinct_members: true}
    columns:
      member_id: {type: string}
      article_id: {type: string, group_by: true, delta: 3}
"""
ARTICLES = count_members(OFFLINE, ("article_id", ColumnType.STRING))


def rows_of(day: int, article: str = "") -> list[dict[str, object]]:
    """Return 450 rows of one day: 150 members, who read three of five articles, or this one."""
    return [
        {"member_id": f"m{i % 150}", "article_id": article or f"a{(i % 150 + i // 150) % 5}", "day": day}
        for i in range(450)
    ]


@dataclass(frozen=True)
class Hybrid:
    """The table, and the rows of its offline part as a file."""

    cluster: PinotCluster
    parquet: Path

    def truth(self) -> dict[str, int]:
        """Return the distinct members of each article in the offline part."""
        sql = "SELECT article_id, count(DISTINCT member_id) FROM read_parquet(?) GROUP BY 1"
        with duckdb.connect() as connection:
            return dict(connection.execute(sql, [str(self.parquet)]).fetchall())


@pytest.fixture(scope="module")
def hybrid(pinot_cluster: PinotCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hybrid]:
    """Three days in the offline part, and in the stream the day after them and a row that came late."""
    folder = tmp_path_factory.mktemp("hybrid")
    offline = [row for day in range(DAYS) for row in rows_of(LAST_DAY - day)]
    with running_kafka(pinot_cluster, folder) as kafka:
        late = {"member_id": "late", "article_id": "late", "day": LAST_DAY - 2}
        kafka.send(TABLE, [late, *rows_of(LAST_DAY + 1, "streamed")[: IN_STREAM - 1]])
        with httpx.Client(base_url=pinot_cluster.controller_url, timeout=30) as controller:
            controller.post("/schemas", json=SCHEMA).raise_for_status()
            try:
                controller.post("/tables", json=_config("OFFLINE")).raise_for_status()
                for day in range(DAYS):
                    upload(pinot_cluster, TABLE, _segment(day), rows_of(LAST_DAY - day))
                wait_for_rows(pinot_cluster, OFFLINE, len(offline))
                stream: dict[str, object] = {"streamConfigs": kafka.stream_of(TABLE)}
                controller.post("/tables", json=_config("REALTIME", stream)).raise_for_status()
                wait_for_rows(pinot_cluster, f"{TABLE}_REALTIME", IN_STREAM)
                yield Hybrid(pinot_cluster, _parquet(offline, folder))
            finally:
                # Servers would go on looking for a stream that is gone, and nobody could make the table again.
                remove_table(pinot_cluster, TABLE)


def _config(kind: str, index: dict[str, object] | None = None) -> dict[str, object]:
    time = {"timeColumnName": "day", "timeType": "DAYS"}
    return {
        "tableName": TABLE,
        "tableType": kind,
        "segmentsConfig": {"schemaName": TABLE, "replication": "1", "replicasPerPartition": "1", **time},
        "tenants": {},
        "tableIndexConfig": {"loadMode": "MMAP", **(index or {})},
        "metadata": {},
    }


def _segment(day: int) -> str:
    return f"{TABLE}_{day}"


def _parquet(rows: list[dict[str, object]], folder: Path) -> Path:
    lines, parquet = folder / "rows.json", folder / "rows.parquet"
    lines.write_text("\n".join(map(json.dumps, rows)))
    with duckdb.connect() as connection:
        connection.read_json(str(lines)).write_parquet(str(parquet))
    return parquet


def test_pinot_itself_answers_from_both_parts(hybrid: Hybrid) -> None:
    """The stream is there: under the plain name Pinot counts rows that the offline part does not have."""
    sql = f"SELECT COUNT(*) FROM {TABLE} WHERE article_id = 'streamed'"  # noqa: S608
    assert [[IN_STREAM - 1]] == plain_rows(hybrid.cluster, sql)


def test_the_offline_part_alone_is_counted(hybrid: Hybrid, engine: PinotEngine) -> None:
    """Every count is that of the offline rows, neither those of the stream nor the late one, and it is confirmed."""
    answer = confirmed(engine, ARTICLES)
    assert hybrid.truth() == dict(zip(answer.elements[0], answer.counts, strict=True))


def test_the_last_day_of_the_offline_part_is_counted(hybrid: Hybrid, engine: PinotEngine) -> None:
    """Under the plain name Pinot looks for the last offline day in the stream, which may have less of it."""
    answer = confirmed(engine, count_members(OFFLINE, ("day", ColumnType.DATE)))
    assert {LAST_DAY - day: 150 for day in range(DAYS)} == dict(
        zip(answer.elements[0], answer.counts, strict=True)
    )
    sql = f"SELECT COUNT(*) FROM {TABLE} WHERE day = {LAST_DAY}"  # noqa: S608
    assert [[0]] == plain_rows(hybrid.cluster, sql)


@pytest.mark.parametrize("name", [TABLE, f"{TABLE}_REALTIME"])
def test_any_other_name_is_refused(hybrid: Hybrid, engine: PinotEngine, name: str) -> None:
    """If a policy names the real-time part, or the whole table without its stream, the error says what to name."""
    with pytest.raises(EngineRefused, match=OFFLINE):
        confirmed(engine, count_members(name, ("article_id", ColumnType.STRING)))


def test_the_release_is_that_of_duckdb(hybrid: Hybrid, engine: PinotEngine, tmp_path: Path) -> None:
    """The whole path on a name with a type: one histogram, one seed, the same rows and the same charge."""
    duck = DuckDBEngine({OFFLINE: hybrid.parquet})
    with embedded(tmp_path, POLICY) as services:
        results = []
        for account, asked in (("t/left", engine), ("t/right", duck)):
            # With a store of its own: the second engine is to draw the release too.
            with blocking_client_of(
                services, asked, account=account, releases=MemoryReleaseStore()
            ) as client:
                results.append(
                    client.sql(
                        f"SELECT article_id, COUNT(DISTINCT member_id) FROM {OFFLINE} GROUP BY article_id "  # noqa: S608
                        "ORDER BY 2 DESC LIMIT 3"
                    )
                )
    duck.close()
    left, right = results
    assert left.release_id == right.release_id
    assert len(left.rows) == 3
    assert left.rows == right.rows
    assert left.charged == right.charged


def test_a_bucket_that_is_replaced_during_the_question_is_noticed(
    hybrid: Hybrid, engine: PinotEngine
) -> None:
    """The answer on the version before is not confirmed; on the next version the new rows are counted."""
    answer = engine.run(ARTICLES, engine.data_version(OFFLINE))
    upload(hybrid.cluster, TABLE, _segment(0), rows_of(LAST_DAY, "replaced"))
    with pytest.raises(DataChanged):
        engine.confirm(ARTICLES, answer)
    wait_until(lambda: "replaced" in confirmed(engine, ARTICLES).elements[0])
