"""Pairs copies on a real Pinot: its star-tree answers with the counts of the raw table, and no other copy does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from deploy.pinot.cluster import PinotCluster
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import TimeRange
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from examples.load import load_pairs
from pinot_connector.engines.base import Engine, EngineAnswer
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineRefused
from tests.pinot.loading import upload, wait_for_rows
from tests.pinot.plain_http import HTTP
from tests.support.engine_queries import engine_query
from tests.support.pairs_copies import (
    MONTHS,
    START,
    make,
    mixed,
    policy_text,
    questions,
    random_rows,
    rows_of,
    write,
)
from tests.support.some import some

INDEX = "FILTER_STARTREE_INDEX"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a table and its pairs copy."""
    made = tmp_path_factory.mktemp("pairs")
    # Two texts that Pinot would take for one, if it cut them where it cuts others.
    long = [(who, f"{'e' * 600}{number}", "DE", START) for number, who in enumerate(("m01", "m01"))]
    make(write(made / "visits.parquet", [*random_rows(4000, seed=6), *long]), made / "copy")
    return made


@pytest.fixture(scope="module")
def policy(folder: Path) -> Policy:
    """Give a policy that names the copy."""
    text = policy_text("copy/manifest.json")
    return read_policy(text.encode(), str(folder / "policy.yaml")).policy


def load_as(
    cluster: PinotCluster, folder: Path, table: str, *, star_tree: bool = True, copy: str = "copy"
) -> None:
    """Load the copy."""
    urls = {"controller": cluster.controller_url, "broker": cluster.broker_url}
    load_pairs(folder / copy, table, segments=2, star_tree=star_tree, **urls)


def answer_of(engine: Engine, resolution: Resolution) -> EngineAnswer:
    """Return the confirmed answer."""
    query = engine_query(resolution, engine.dialect)
    if query.requires:
        engine.check(query)
    answer = engine.run(query, engine.data_version(query.table))
    engine.confirm(query, answer)
    return answer


def plan_of(cluster: PinotCluster, resolution: Resolution) -> str:
    """Return how Pinot says that it answers."""
    return explained(
        cluster, engine_query(resolution, "pinot").sql.replace("SELECT", "EXPLAIN PLAN FOR SELECT", 1)
    )


def explained(cluster: PinotCluster, sql: str) -> str:
    """Return the plan of a query."""
    found = HTTP.post(f"{cluster.broker_url}/query/sql", json={"sql": sql}, timeout=60).json()
    assert not found.get("exceptions"), found["exceptions"]
    return str(found["resultTable"]["rows"])


def test_the_star_tree_answers_with_the_counts_of_the_table(
    pinot_cluster: PinotCluster, engine: PinotEngine, folder: Path, policy: Policy
) -> None:
    """For ranges, all before a period, attributes and the elements themselves; without the index it is as right."""
    load_as(pinot_cluster, folder, "visits_pairs")
    load_as(pinot_cluster, folder, "bare_pairs", star_tree=False)
    duck = DuckDBEngine({"visits": folder / "visits.parquet"})
    bare = replace(policy, tables=tuple(each.model_copy(update={"prepared": None}) for each in policy.tables))
    for query in some(each for seed in range(3) for each in questions(Random(seed))):
        of_copy = resolve(query, policy, now=0)
        # Patterns, and conditions of several columns, are looked up in rows.
        assert of_copy.query.conditions or INDEX in plan_of(pinot_cluster, of_copy)
        expected = answer_of(duck, resolve(query, bare, now=0))
        without_index = replace(of_copy, query=replace(of_copy.query, table="bare_pairs"))
        assert INDEX not in plan_of(pinot_cluster, without_index)
        for resolution in (of_copy, without_index):
            found = answer_of(engine, resolution)
            assert (found.elements, found.counts) == (expected.elements, expected.counts)
    duck.close()


def test_a_copy_that_was_loaded_twice_answers_nothing(
    pinot_cluster: PinotCluster, folder: Path, policy: Policy
) -> None:
    """As it was loaded once, it does."""
    load_as(pinot_cluster, folder, "visits_pairs")
    asked = resolve(questions(Random(1))[0], policy, now=0)
    engine = _engine(pinot_cluster)
    assert answer_of(engine, asked).counts
    engine.close()
    names = ("what", "country", "gris_period", "gris_previous", "gris_build", "gris_check")
    rows = [dict(zip(names, row[1:], strict=True)) for row in rows_of(folder / "copy", numbers=True)]
    upload(pinot_cluster, "visits_pairs", "once_more", rows)
    wait_for_rows(pinot_cluster, "visits_pairs", 2 * len(rows))
    engine = _engine(pinot_cluster)
    with pytest.raises(EngineRefused, match="does not hold what its manifest says"):
        answer_of(engine, asked)
    engine.close()


def test_parts_of_two_builds_answer_nothing(
    pinot_cluster: PinotCluster, engine: PinotEngine, tmp_path: Path
) -> None:
    """A period of an earlier build took the place of one that has as many rows; the star-tree shows it."""
    mixed(tmp_path, random_rows(500, seed=6))
    policy = read_policy(policy_text("copy/manifest.json").encode(), str(tmp_path / "policy.yaml")).policy
    whole = HistogramQuery(
        "visits", ("what",), Measure.DISTINCT_MEMBERS, (), TimeRange(None, MONTHS[-1]), k=3
    )
    asked = resolve(whole, policy, now=0)
    for copy in ("copy", "mixed"):
        load_as(pinot_cluster, tmp_path, f"{copy}_pairs", copy=copy)
    sql = (
        "EXPLAIN PLAN FOR SELECT gris_period, gris_build, gris_previous, COUNT(*), SUM(gris_check) FROM copy_pairs "
        "GROUP BY gris_period, gris_build, gris_previous ORDER BY gris_period LIMIT 1000000"
    )
    assert INDEX in explained(pinot_cluster, sql)
    assert answer_of(engine, replace(asked, query=replace(asked.query, table="copy_pairs"))).counts
    with pytest.raises(EngineRefused, match="parts of another copy"):
        answer_of(engine, replace(asked, query=replace(asked.query, table="mixed_pairs")))


def _engine(cluster: PinotCluster) -> PinotEngine:
    return PinotEngine(controller=cluster.controller_url, broker=cluster.broker_url)
