"""The whole path on a real Pinot with two servers: its answers are DuckDB's, or there is none and nothing is lost."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import pytest

from deploy.pinot.cluster import PinotCluster
from examples.load import TABLES, data_version
from pinot_connector import PrivateClient, PrivateResult
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import Engine
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineUnavailable, GrisError, IncompleteAnswer
from pinot_connector.release_store import MemoryReleaseStore
from tests.engines.pinot.trimmed_table import TrimmedTable
from tests.support.clients import blocking_client_of
from tests.support.embedded import embedded
from tests.support.paths import EXAMPLES

COFACTS = "cofacts_feedback"
TRIMMED_POLICY = """
  nasty:
    member: member_id
    data_version: {version}
    d_bar: 1000
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: string}}
      article_id: {{type: string, group_by: true, delta: 1}}
"""
_numbers = itertools.count()


@pytest.fixture(scope="module")
def services(
    trimmed_table: TrimmedTable, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServices]:
    """Both services, with the policy of the examples and one more table."""
    folder = tmp_path_factory.mktemp("services")
    trimmed = TRIMMED_POLICY.format(version=data_version(trimmed_table.parquet))
    with embedded(folder, (EXAMPLES / "policy.yaml").read_text() + trimmed) as running:
        yield running


@pytest.fixture
def duck(trimmed_table: TrimmedTable) -> Iterator[DuckDBEngine]:
    """The same data in DuckDB."""
    opened = DuckDBEngine({COFACTS: TABLES[COFACTS], "nasty": trimmed_table.parquet})
    yield opened
    opened.close()


def new_client(services: EmbeddedServices, engine: Engine) -> PrivateClient:
    """Return a client of an analyst who has asked nothing yet, and that is given nothing another one has asked for."""
    return blocking_client_of(
        services, engine, account=f"t/analyst-{next(_numbers)}", releases=MemoryReleaseStore()
    )


Question = Callable[[PrivateClient], PrivateResult]
QUESTIONS: dict[str, Question] = {
    "UnkGumb": lambda client: client.top_k(COFACTS, "article_id", 10),
    "UnkLap": lambda client: client.histogram(COFACTS, "cohort"),
    "KnownGumb": lambda client: client.top_k(COFACTS, "score", 2),
    "KnownLap": lambda client: client.histogram(COFACTS, "app"),
    "a filter on text and time, in SQL": lambda client: client.sql(
        "SELECT article_id, COUNT(DISTINCT member_id) FROM cofacts_feedback WHERE app <> 'WEBSITE' AND score = 1 "
        "AND day BETWEEN '2019-01-01' AND '2019-03-31' GROUP BY article_id ORDER BY 2 DESC LIMIT 10"
    ),
    "a total": lambda client: client.total(COFACTS, where={"score": 1}),
    "a total of nothing": lambda client: client.total(COFACTS, where={"article_id": "nowhere"}),
    "two columns": lambda client: client.top_k(COFACTS, ["article_id", "score"], 5),
    "groups that Pinot would trim": lambda client: client.histogram("nasty", "article_id"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_both_engines_give_one_release(
    loaded_pinot: PinotCluster,
    engine: PinotEngine,
    services: EmbeddedServices,
    duck: DuckDBEngine,
    name: str,
) -> None:
    """One data version, one histogram, one seed: rows, counts and release id agree to the last digit."""
    with new_client(services, engine) as on_pinot, new_client(services, duck) as on_duckdb:
        left, right = QUESTIONS[name](on_pinot), QUESTIONS[name](on_duckdb)
    assert left.release_id == right.release_id
    assert left.rows == right.rows
    assert left.cost == right.cost == left.charged == right.charged


# Its server starts again after it; the engine alone is tried in failures.
@pytest.mark.nightly
def test_a_killed_server_gives_no_other_answer_and_loses_no_budget(
    loaded_pinot: PinotCluster, engine: PinotEngine, services: EmbeddedServices, duck: DuckDBEngine
) -> None:
    """While half the data are gone every answer is still the whole one, and every failure costs nothing."""
    with new_client(services, duck) as client:
        whole = QUESTIONS["UnkGumb"](client)
    # The version of the data is known to be loaded from now on.
    assert _ask_once(services, engine, whole) is None
    loaded_pinot.kill_server(0)
    try:
        failures = [_ask_once(services, engine, whole) for _ in range(8)]
    finally:
        loaded_pinot.start_server(0)
    assert {IncompleteAnswer} <= set(failures) <= {IncompleteAnswer, EngineUnavailable}
    _wait_until(lambda: _ask_once(services, engine, whole) is None)


def _ask_once(services: EmbeddedServices, engine: PinotEngine, whole: PrivateResult) -> type | None:
    """Ask as a new analyst; return what went wrong, after a look at the budget, or None."""
    with new_client(services, engine) as client:
        try:
            result = QUESTIONS["UnkGumb"](client)
        except GrisError as error:
            (*_, level) = client.remaining()
            assert (0, 0) == (level.spent.information, level.reserved.information)
            assert (0, 0) == (level.spent.calls, level.reserved.calls)
            return type(error)
    assert whole.release_id == result.release_id
    return None


def _wait_until(condition: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.2)
