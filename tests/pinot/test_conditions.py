"""Conditions of every form on a real Pinot are met by the rows that meet them in the reference."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deploy.pinot.cluster import PinotCluster
from dp_service.queries.elements import days_of
from dp_service.queries.resolution import resolve
from dp_service.queries.tables import Policy
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.engines.pinot.configuration import OLDEST_MULTISTAGE_VERSION
from tests.pinot.facts import version_of, wanted_version
from tests.pinot.planner import Table
from tests.pinot.planner.on_cluster import held
from tests.support.engine_queries import engine_query
from tests.support.queries.odd_conditions import CONDITIONS, DROPPED, KEPT, ROWS, asked
from tests.support.queries.reference import Row, answer
from tests.support.queries.strategies import NOW

HAS_MULTISTAGE = version_of({"pinot-controller": wanted_version()}) >= OLDEST_MULTISTAGE_VERSION


TYPES = ("VARCHAR", "VARCHAR", "BIGINT", "BOOLEAN", "INTEGER")


@pytest.fixture(scope="module")
def filled(pinot_cluster: PinotCluster) -> Iterator[PinotCluster]:
    """The cluster with the odd rows; for what is missing Pinot stores values of its own."""
    rows = [(*row[:4], None if row.day is None else days_of(row.day)) for row in ROWS]
    with held(pinot_cluster, {"t": Table(dict(zip(Row._fields, TYPES, strict=True)), rows)}):
        yield pinot_cluster


@pytest.mark.parametrize("policy", [DROPPED, KEPT], ids=["dropped", "kept"])
def test_the_same_rows_meet_a_condition_as_in_the_reference(
    filled: PinotCluster, engine: PinotEngine, policy: Policy
) -> None:
    """Members go to the engine of one stage, clipped events to that of several."""
    version = engine.data_version("t")
    for condition in CONDITIONS:
        for by in ("text", "number"):
            for counted in ("DISTINCT member", "*")[: 1 + HAS_MULTISTAGE]:
                query = asked(condition, policy, by, counted)
                found = engine.run(engine_query(resolve(query, policy, now=NOW), "pinot"), version)
                expected = answer(query, policy, ROWS, now=NOW)
                assert sorted(expected) == sorted(zip(*found.elements, found.counts, strict=True)), condition
