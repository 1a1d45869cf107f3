"""A real Pinot keeps the promises of an engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing

import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import Feature
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.engines.pinot.configuration import OLDEST_MULTISTAGE_VERSION
from tests.engines.pinot.facts import version_of
from tests.engines.pinot.loading import create_table, upload, wait_for_rows
from tests.engines.pinot.plain_http import HTTP
from tests.support.engine_conformance import OTHER_ROWS, ROWS, EngineConformance, HeldTable, Rows

_COLUMNS = {
    "member_id": "STRING",
    "page": "STRING",
    "nickname": "STRING",
    "score": "INT",
    "regular": "BOOLEAN",
    "visited": "INT",
    "seen": "TIMESTAMP",
    "seen_s": "INT",
    "seen_ms": "LONG",
    "seen_us": "LONG",
}
_numbers = itertools.count()


class TestPinot(EngineConformance):
    """A table of one segment, which is replaced; an engine waits until brokers know of one, so most tests share it."""

    @pytest.fixture(scope="class")
    @classmethod
    def held(cls, pinot_cluster: PinotCluster) -> Iterator[HeldTable]:
        """The rows in a table that stays."""
        yield from _held(pinot_cluster)

    @pytest.fixture
    def own(self, pinot_cluster: PinotCluster) -> Iterator[HeldTable]:
        """The rows in a table of one test."""
        yield from _held(pinot_cluster)


def _held(cluster: PinotCluster) -> Iterator[HeldTable]:
    table = f"conformance_{next(_numbers)}"
    create_table(cluster, table, _COLUMNS)
    _store(cluster, table, ROWS)
    wait_for_rows(cluster, table, len(ROWS))
    with closing(PinotEngine(controller=cluster.controller_url, broker=cluster.broker_url)) as engine:
        yield HeldTable(
            engine,
            table,
            replace_rows=lambda: _store(cluster, table, OTHER_ROWS),
            features=_features(cluster),
            null_stand_in="null",
        )


def _store(cluster: PinotCluster, table: str, rows: Rows) -> None:
    # Pinot takes no time before 1971 in its time column, so that is another one; and JSON's numbers are no timestamps.
    stored = [{**row, "seen": str(row["seen"] // 1000), "day": 19_000} for row in rows]
    upload(cluster, table, "only", stored)


def _features(cluster: PinotCluster) -> frozenset[Feature]:
    version = version_of(HTTP.get(f"{cluster.controller_url}/version", timeout=30).json())
    # Whether a table is a bounded copy is for its operator to know, and a stream is looked at when it is asked.
    always = {Feature.BOUNDED_COPY, Feature.CLOSED_STREAM}
    return frozenset(always | {Feature.PINOT_MULTISTAGE} if version >= OLDEST_MULTISTAGE_VERSION else always)
