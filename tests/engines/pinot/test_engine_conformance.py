"""A real Pinot keeps the promises of an engine."""

from __future__ import annotations

import itertools

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


class Tables:
    """A table that holds `ROWS`, until a test replaces them; then there is another one for the next."""

    def __init__(self, cluster: PinotCluster) -> None:
        self._cluster = cluster
        self._current: str | None = None

    def current(self) -> str:
        """Return the table's name."""
        if self._current is None:
            table = self._current = f"conformance_{next(_numbers)}"
            create_table(self._cluster, table, _COLUMNS)
            _store(self._cluster, table, ROWS)
            wait_for_rows(self._cluster, table, len(ROWS))
        return self._current

    def replace_rows(self) -> None:
        """Replace the rows of the current one, which no other test is given."""
        _store(self._cluster, self.current(), OTHER_ROWS)
        self._current = None


@pytest.fixture(scope="module")
def tables(pinot_cluster: PinotCluster) -> Tables:
    """The table of these tests."""
    return Tables(pinot_cluster)


class TestPinot(EngineConformance):
    """A table of one segment, which is replaced."""

    @pytest.fixture
    def held(self, pinot_cluster: PinotCluster, engine: PinotEngine, tables: Tables) -> HeldTable:
        """The rows, and an engine that has seen nothing of them."""
        return HeldTable(
            engine,
            tables.current(),
            replace_rows=tables.replace_rows,
            features=_features(pinot_cluster),
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
