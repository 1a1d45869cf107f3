"""The policy of the examples: it can be read, agrees with the data beside it, and shows every mechanism."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import duckdb
import pytest

from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.render import render
from dp_service.queries.versions import is_plain_hash
from dp_service.terms import MechanismName
from tests.support.paths import EXAMPLES
from tests.support.queries.policies import resolved
from tests.support.some import some

FILES = {
    "cofacts_feedback": EXAMPLES / "cofacts" / "feedback.parquet",
    "online_retail": EXAMPLES / "online_retail" / "purchases.parquet",
}
ENGINE_TYPES = {"string": "VARCHAR", "int64": "BIGINT", "date": "DATE"}


@pytest.fixture(scope="module")
def policy() -> Policy:
    """Return the policy of the examples."""
    return read_policy((EXAMPLES / "policy.yaml").read_bytes(), "policy.yaml").policy


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a DuckDB that holds the example tables."""
    with duckdb.connect() as connection:
        for name, path in FILES.items():
            connection.read_parquet(str(path)).create_view(name)
        yield connection


VERSIONS = {
    "cofacts_feedback": (
        "cofacts feedback until 2019-04-14",
        "9c2421aef2b1692b3c8692d6ccbd3fe8a5b237e0cc62dc5ed3e0d41d4eb81234",
    ),
    "online_retail": (
        "online retail until 2011-12-09",
        "519964a680b74bc4ce544c77a312276142b7c67b90184a671f917604f83c4278",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_the_declared_data_version_changes_with_the_file(policy: Policy, name: str) -> None:
    """A changed file under an old version would let its change be seen through repeated noise."""
    digest = hashlib.sha256(FILES[name].read_bytes()).hexdigest()
    assert (policy.table(name).data_version, digest) == VERSIONS[name]


def test_the_policy_holds_no_hash_of_the_data(policy: Policy) -> None:
    """Anyone who guesses the data could verify the guess."""
    assert not any(is_plain_hash(table.data_version or "") for table in policy.tables)


@pytest.mark.parametrize("name", FILES)
def test_every_column_of_the_policy_is_in_the_file_with_its_type(
    policy: Policy, engine: duckdb.DuckDBPyConnection, name: str
) -> None:
    """A policy that names other columns would fail at the first question."""
    table = engine.table(name)
    types = dict(zip(table.columns, map(str, table.types), strict=True))
    assert {
        column.name: ENGINE_TYPES[column.type] for column in policy.table(name).columns
    }.items() <= types.items()


@pytest.mark.parametrize("name", FILES)
def test_what_the_policy_promises_is_true_of_the_file(
    policy: Policy, engine: duckdb.DuckDBPyConnection, name: str
) -> None:
    """No member is in more elements than Delta or has more events than tau; the domains hold every value."""
    table = policy.table(name)
    for column in some(table.columns):
        relation = engine.table(name)
        if column.delta is not None:
            per_member = relation.aggregate(f"{table.member}, count(DISTINCT {column.name}) AS n")
            assert per_member.max("n").fetchall()[0][0] <= column.delta
        if column.domain is not None:
            assert {row[0] for row in relation.project(column.name).distinct().fetchall()} <= set(
                column.domain
            )
    if table.measures.events is not None:
        events = engine.table(name).aggregate(f"{table.member}, count(*) AS n")
        assert events.max("n").fetchall()[0][0] <= table.measures.events.tau


QUESTIONS = {
    "SELECT app, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY app": MechanismName.KNOWN_LAP,
    "SELECT score, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY score LIMIT 2": MechanismName.KNOWN_GUMB,
    "SELECT cohort, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY cohort": MechanismName.UNK_LAP,
    "SELECT article_id, COUNT(DISTINCT member_id) FROM cofacts_feedback "
    "WHERE score = 1 AND day >= '2019-01-01' GROUP BY article_id ORDER BY 2 DESC LIMIT 10": MechanismName.UNK_GUMB,
    "SELECT stock_code, COUNT(*) FROM online_retail WHERE country <> 'United Kingdom' "
    "GROUP BY stock_code LIMIT 10": MechanismName.UNK_GUMB,
}


@pytest.mark.parametrize(("sql", "mechanism"), QUESTIONS.items())
def test_the_examples_show_every_mechanism(
    policy: Policy, engine: duckdb.DuckDBPyConnection, sql: str, mechanism: MechanismName
) -> None:
    """Each question resolves to its mechanism, and DuckDB answers it over the real data."""
    resolution = resolved(sql, policy)
    rows = engine.execute(render(resolution, "duckdb")).fetchall()
    assert resolution.parameters.mechanism is mechanism
    assert 0 < len(rows) <= resolution.row_limit
