"""A real Pinot counts the members of topics that the policy looks up, as DuckDB does on the same data."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest

from deploy.pinot.cluster import PinotCluster
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import NotIn
from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from pinot_connector.engines.pinot import PinotEngine
from tests.support.engine_queries import engine_query
from tests.support.paths import EXAMPLES
from tests.support.queries.lookups import content, policy_of, said

FEEDBACK = EXAMPLES / "cofacts" / "feedback.parquet"


@pytest.mark.parametrize("nulls", [{}, {"nulls": "keep", "null_value": "none of them"}])
def test_topics_have_the_counts_that_duckdb_answers(
    loaded_pinot: PinotCluster, engine: PinotEngine, nulls: dict[str, str]
) -> None:
    """Every second of the first thousand articles has one of three topics, of several lengths and with a quote."""
    with duckdb.connect() as database:
        database.read_parquet(str(FEEDBACK)).create_view("cofacts_feedback")
        keys = database.execute(
            "SELECT DISTINCT article_id FROM cofacts_feedback ORDER BY 1 LIMIT 1000"
        ).fetchall()
        topics = ("short", "a much longer text", "it's")
        file = content("article_id", [(key, topics[i % 3]) for i, (key,) in enumerate(keys[::2])])
        columns = {"member_id": {"type": "string"}, "article_id": {"type": "string"}}
        table = {
            "member": "member_id",
            "measures": {"distinct_members": True},
            "columns": columns | {"topic": said("article_id", file, **nulls)},
        }
        text = {"epsilon_per": "0.15", "delta": "1e-10", "tables": {"cofacts_feedback": table}}
        policy = policy_of(text, file)
        asked = HistogramQuery("cofacts_feedback", ("topic",), Measure.DISTINCT_MEMBERS, k=4)
        for question in (asked, replace(asked, filters=(NotIn("topic", ("short",)),))):
            resolution = resolve(question, policy, now=0)
            version = engine.data_version("cofacts_feedback")
            answer = engine.run(engine_query(resolution, "pinot"), version)
            found = [*zip(*answer.elements, answer.counts, strict=True)]
            assert found == database.execute(render(resolution, "duckdb")).fetchall()
            assert len(found) == len(resolution.parameters.domain or ())
