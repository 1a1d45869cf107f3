"""The whole path with both services and Redis in containers, and what happens when one of them goes away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from pinot_connector import PrivateClient, Timeouts
from pinot_connector.engines.base import Engine
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted, ServiceUnavailable
from tests.containers.conftest import ROOT, Services

pytestmark = pytest.mark.containers
TABLE = "cofacts_feedback"


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    """Return an engine over the real data."""
    opened = DuckDBEngine({TABLE: ROOT / "examples" / "cofacts" / "feedback.parquet"})
    yield opened
    opened.close()


def client(services: Services, engine: Engine, analyst: str) -> PrivateClient:
    """Return a client of one analyst."""
    return PrivateClient(
        dp=services.dp_address,
        budget=services.budget_address,
        account=("demo", analyst),
        engine=engine,
        # What a lost reply leaves reserved lapses while the test looks on.
        timeouts=Timeouts(engine=3, reservation=5),
    )


def test_a_question_is_answered_charged_and_free_the_second_time(
    services: Services, engine: DuckDBEngine
) -> None:
    """Real data through two containers and Redis: ten articles, a price, and the same answer for nothing."""
    with client(services, engine, "ana") as ana:
        first, second = ana.top_k(TABLE, "article_id", 10), ana.top_k(TABLE, "article_id", 10)
    assert len(first.rows) == 10
    assert first.charged.information == 21
    assert (first.rows, 0, 0) == (second.rows, second.charged.information, second.charged.calls)


def test_an_exhausted_budget_is_refused(services: Services, engine: DuckDBEngine) -> None:
    """The ledger in Redis says no, and says what is left."""
    with client(services, engine, "small") as small:
        small.top_k(TABLE, "article_id", 10)
        small.top_k(TABLE, "article_id", 9)
        with pytest.raises(BudgetExhausted) as caught:
            small.top_k(TABLE, "article_id", 8)
    assert "information" in {shortfall.unit for shortfall in caught.value.shortfalls}


def test_the_services_run_without_rights(services: Services) -> None:
    """The image's processes belong to a user who is nobody."""
    for container in (services.dp, services.budget):
        code, output = container.exec(["id", "-u"])
        assert (code, output.decode().strip()) == (0, "10001")


def test_a_paused_store_means_no_result_and_no_lost_budget(services: Services, engine: DuckDBEngine) -> None:
    """While Redis does not answer there is no answer; when it is back nothing was charged and questions go on."""
    with client(services, engine, "ben") as ben:
        before = ben.remaining()
        store = services.redis.get_wrapped_container()
        store.pause()
        try:
            with pytest.raises(ServiceUnavailable):
                ben.top_k(TABLE, "article_id", 5)
        finally:
            store.unpause()
        assert before == _eventually_remaining(ben)
        assert len(ben.top_k(TABLE, "article_id", 5).rows) == 5


def _eventually_remaining(ben: PrivateClient) -> object:
    deadline = time.monotonic() + 30
    while True:
        try:
            levels = ben.remaining()
        except ServiceUnavailable:
            levels = None
        # A reservation whose reply was lost is held until it lapses or is given back.
        if levels is not None and all(level.reserved.information == 0 for level in levels):
            return levels
        assert time.monotonic() < deadline, "the store did not come back"
        time.sleep(0.2)
