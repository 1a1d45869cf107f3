"""A broker that prunes answers some questions without asking any server, and one row more decides which.

Whether there is an answer, what it costs and how it looks must not tell that row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector import PrivateResult
from pinot_connector.budgets import Cost
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import ColumnType, EngineQuery, ReadColumn
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import GrisError
from pinot_connector.release_store import MemoryReleaseStore
from tests.engines.pinot.loading import create_table, upload, wait_for_rows
from tests.engines.pinot.queries import confirmed, count_members
from tests.support.clients import blocking_client_of
from tests.support.embedded import embedded
from tests.support.rings import needs

COLUMNS = {"member_id": "STRING", "country": "STRING", "app": "STRING"}
PARTITIONED = {
    "segmentPartitionConfig": {
        "columnPartitionMap": {"country": {"functionName": "Murmur", "numPartitions": 4}}
    }
}
# How each pair of tables is pruned, and the one row that the second of each pair has besides.
PAIRS: dict[str, tuple[dict[str, Any], dict[str, object]]] = {
    "by_time": ({"routing": {"segmentPrunerTypes": ["time"]}}, {"day": 17020}),
    "by_partition": (
        {"routing": {"segmentPrunerTypes": ["Partition"]}, "tableIndexConfig": PARTITIONED},
        {"country": "XX"},
    ),
    "by_emptiness": ({"routing": {"segmentPrunerTypes": ["empty"]}}, {}),
    "plain": ({}, {}),
}
TABLE = """
  {name}:
    member: member_id
    data_version: v
    time: {{column: day, type: date{closed}}}
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: string}}
      country: {{type: string, group_by: true, filter: [in], delta: 1}}
      app: {{type: string, group_by: true, domain: [web, mobile], delta: 1}}
"""
QUESTIONS = [
    # Beyond all days but that of the extra row, on its day alone, and in closed periods of the offline part.
    ("by_time", "SELECT country, {count} FROM {} WHERE {beyond} GROUP BY country ORDER BY 2 DESC LIMIT 3"),
    ("by_time", "SELECT country, {count} FROM {} WHERE {beyond} GROUP BY country"),
    ("by_time", "SELECT app, {count} FROM {} WHERE {beyond} GROUP BY app"),
    ("by_time", "SELECT app, {count} FROM {} WHERE {beyond} GROUP BY app ORDER BY 2 DESC LIMIT 1"),
    ("by_time", "SELECT app, {count} FROM {} WHERE day BETWEEN '2016-08-07' AND '2016-08-07' GROUP BY app"),
    ("by_time", "SELECT app, {count} FROM {}_OFFLINE WHERE {beyond} GROUP BY app"),
    ("by_time", "SELECT country, {count} FROM {}_OFFLINE WHERE {beyond} GROUP BY country"),
    ("by_partition", "SELECT country, {count} FROM {} WHERE country = 'XX' GROUP BY country"),
    ("by_partition", "SELECT app, {count} FROM {} WHERE country IN ('XX') GROUP BY app"),
    ("by_emptiness", "SELECT country, {count} FROM {} GROUP BY country"),
    ("by_emptiness", "SELECT app, {count} FROM {} GROUP BY app"),
    ("plain", "SELECT country, {count} FROM {} GROUP BY country"),
    ("plain", "SELECT app, {count} FROM {} GROUP BY app"),
]
_numbers = itertools.count()


def rows_of(day: int, country: str, count: int = 30) -> list[dict[str, object]]:
    """Return rows of this many members."""
    return [{"member_id": f"m{i}", "country": country, "app": "web", "day": day} for i in range(count)]


@pytest.fixture(scope="module")
def pairs(pinot_cluster: PinotCluster) -> PinotCluster:
    """The cluster with two tables a pair, numbered 0 and 1; the second has one row more, in a segment of its own.

    The tables pruned by emptiness have nothing but an empty segment beside that row, the plain ones nothing at all.
    """
    for pair, (config, extra) in PAIRS.items():
        filled = pair in ("by_time", "by_partition")
        for more in (0, 1):
            table = f"{pair}_{more}"
            create_table(pinot_cluster, table, COLUMNS, **config)
            if filled:
                upload(pinot_cluster, table, f"{table}_a", rows_of(17000, "DE"))
                upload(pinot_cluster, table, f"{table}_b", rows_of(17010, "FR"))
            elif config:
                upload(pinot_cluster, table, f"{table}_empty", [])
            if more:
                one = {"member_id": "extra", "country": "DE", "app": "web", "day": 17010, **extra}
                upload(pinot_cluster, table, f"{table}_more", [one])
            if filled or more:
                wait_for_rows(pinot_cluster, table, 60 * filled + more)
    return pinot_cluster


@pytest.fixture(scope="module")
def engine(pairs: PinotCluster) -> Iterator[PinotEngine]:
    """One engine for all questions: it waits once until brokers know of tables so young, and for all together."""
    with closing(PinotEngine(controller=pairs.controller_url, broker=pairs.broker_url)) as engine:
        names = [f"{pair}_{more}" for pair in PAIRS for more in (0, 1)]
        with ThreadPoolExecutor(len(names)) as threads:
            list(threads.map(engine.data_version, names))
        yield engine


@pytest.fixture(scope="module")
@needs("process")
def services(pairs: PinotCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServices]:
    """Both services, with a policy for every table, and for the offline parts in closed periods."""
    folder = tmp_path_factory.mktemp("services")
    names = [f"{pair}_{more}" for pair in PAIRS for more in (0, 1)]
    tables = [TABLE.format(name=name, closed="") for name in names]
    closed = ", refresh: day, delay_minutes: 60"
    tables += [TABLE.format(name=f"by_time_{more}_OFFLINE", closed=closed) for more in (0, 1)]
    with embedded(folder, "epsilon_per: 0.15\ndelta: 1e-10\ntables:" + "".join(tables)) as running:
        yield running


@pytest.mark.parametrize(("pair", "question"), QUESTIONS)
def test_one_row_more_changes_neither_outcome_nor_charge(
    pairs: PinotCluster, engine: PinotEngine, services: EmbeddedServices, pair: str, question: str
) -> None:
    """From the policy to the result; without the row no server is asked, with it one is."""
    without, with_it = (asked(engine, services, written(question, f"{pair}_{more}")) for more in (0, 1))
    assert isinstance(without[0], Cost)
    assert without == with_it


def written(question: str, table: str) -> str:
    """Return a question about one of the tables."""
    return question.format(table, count="COUNT(DISTINCT member_id)", beyond="day >= '2016-08-05'")


def asked(engine: PinotEngine, services: EmbeddedServices, sql: str) -> tuple[object, ...]:
    """Return all that an analyst who has asked nothing before sees of a question, but for noise in counts."""
    account = f"t/analyst-{next(_numbers)}"
    # With a store of its own: each question is to reach Pinot.
    with blocking_client_of(services, engine, account=account, releases=MemoryReleaseStore()) as client:
        result: PrivateResult | GrisError
        try:
            result = client.sql(sql)
        except GrisError as error:
            result = error
        (*_, level) = client.remaining()
    budget = (level.spent.information, level.spent.calls, level.reserved.information)
    if isinstance(result, GrisError):
        return type(result), str(result), budget
    shown = sorted(str(row.element) for row in result.rows) if "GROUP BY app" in sql else list(result.rows)
    if "LIMIT 1" in sql:
        # Which of two elements without a member comes first is noise.
        shown = shown[:0]
    return result.cost, result.charged, result.ended_in_bottom, shown, budget


def test_an_answer_of_no_segment_has_no_rows(pairs: PinotCluster, engine: PinotEngine) -> None:
    """And a row that is there is found."""
    found = [confirmed(engine, _later(f"by_time_{more}")).counts for more in (0, 1)]
    assert [[], [1]] == found


def _later(table: str) -> EngineQuery:
    return count_members(
        table,
        ("country", ColumnType.STRING),
        where="WHERE day >= 17015",
        reads=(ReadColumn("day", ColumnType.DATE, None),),
    )
