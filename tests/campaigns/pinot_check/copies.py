"""Pairs copies with a star-tree: the index answers with the counts of the raw rows, and no other copy answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from pinot_connector.engines.base import EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import EngineRefused
from tests.campaigns.pinot_check.cluster import CheckedCluster
from tests.campaigns.pinot_check.connector import answered, histogram, refused, require_equal
from tests.campaigns.pinot_check.rows import row
from tests.pinot.queries import confirmed
from tests.support.engine_queries import engine_query
from tests.support.pairs_copies import START, make, policy_text, questions, random_rows, rows_of, write

_COLUMNS = ("what", "country", "gris_period", "gris_previous", "gris_build", "gris_check")
_INDEX = "FILTER_STARTREE_INDEX"


@row
def pairs_copies(cluster: CheckedCluster) -> str:
    """A pairs copy is answered from its star-tree with the counts of the raw rows; loaded twice, it is refused."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        # Two texts that Pinot would take for one, if it cut them where it cuts others.
        long = [("m01", f"{'e' * 600}{number}", "DE", START) for number in range(2)]
        source = write(folder / "visits.parquet", [*random_rows(4000, seed=6), *long])
        make(source, folder / "copy")
        table, rows = _loaded(cluster, folder / "copy")
        text = policy_text("copy/manifest.json").replace("visits_pairs", table)
        policy = read_policy(text.encode(), str(folder / "policy.yaml")).policy
        asked = [each for seed in range(3) for each in questions(Random(seed))]
        _require_truth(cluster, source, policy, asked)
        cluster.upload(table, "once_more", rows)
        cluster.wait_for_rows(table, 2 * len(rows))
        query = _of_copy(policy, asked[0])
        with closing(cluster.engine()) as engine, refused(EngineRefused, "a copy that was loaded twice"):
            answered(engine, query)
    return f"{len(asked)} questions, {len(rows)} pairs"


def _loaded(cluster: CheckedCluster, copy: Path) -> tuple[str, list[dict[str, Any]]]:
    """Load a copy with the schema and the configuration that the tool wrote, in two segments; return its rows, too."""
    table = cluster.name_of("pairs")
    schema, config = (
        json.loads((copy / name).read_text().replace('"TABLE"', json.dumps(table)))
        for name in ("pinot-schema.json", "pinot-table.json")
    )
    tenants = {"broker": cluster.tenant, "server": cluster.tenant}
    cluster.create_as(table, schema, {**config, "tenants": tenants})
    rows = [dict(zip(_COLUMNS, each[1:], strict=True)) for each in rows_of(copy, numbers=True)]
    for part in range(2):
        cluster.upload(table, str(part), rows[part::2])
    cluster.wait_for_rows(table, len(rows))
    return table, rows


def _require_truth(
    cluster: CheckedCluster, source: Path, policy: Policy, asked: Sequence[HistogramQuery]
) -> None:
    raw = replace(policy, tables=tuple(each.model_copy(update={"prepared": None}) for each in policy.tables))
    with closing(DuckDBEngine({"visits": source})) as duck, closing(cluster.engine()) as engine:
        for question in asked:
            query = _of_copy(policy, question)
            # Patterns, and conditions of several columns, are looked up in rows.
            if not resolve(question, policy, now=0).query.conditions:
                plan = cluster.rows(query.sql.replace("SELECT", "EXPLAIN PLAN FOR SELECT", 1))
                require_equal(True, _INDEX in str(plan), "the plan does not name the star-tree")
            expected = confirmed(duck, engine_query(resolve(question, raw, now=0), duck.dialect))
            require_equal(histogram(expected), histogram(answered(engine, query)))


def _of_copy(policy: Policy, question: HistogramQuery) -> EngineQuery:
    return engine_query(resolve(question, policy, now=0), "pinot")
