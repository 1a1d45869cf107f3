"""A program that was written for pinotdb, on a real Pinot: only its connect line changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pinotdb
import pytest

from deploy.pinot.cluster import PinotCluster
from pinot_connector import PrivateClient
from pinot_connector.dbapi import Connection
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.pinot import PinotEngine
from tests.support.paths import EXAMPLES
from tests.support.rings import needs

QUESTION = (
    "SELECT article_id, COUNT(DISTINCT member_id) AS members FROM cofacts_feedback "
    "WHERE score = %(score)s AND app IN (%(apps)s) AND article_id <> %(not_this)s "
    "GROUP BY article_id ORDER BY members DESC LIMIT 8"
)
VALUES = {"score": 1, "apps": ["WEBSITE", "RUMORS_LINE_BOT"], "not_this": 'it\'s 100% \\ "nothing"'}
# Counts carry discrete Laplace noise of scale 2 / 0.15; one of eight is off by more than this once in 10^6 runs.
FARTHEST = 250

Answer = tuple[list[str], list[tuple[str, int]]]


def with_a_cursor(connect: Callable[[], Any]) -> Answer:
    """Opens a connection and a cursor, asks, looks at the columns, fetches all, and closes."""
    connection = connect()
    cursor = connection.cursor()
    cursor.execute(QUESTION, VALUES)
    names = [column[0] for column in cursor.description]
    rows = [(str(article), int(members)) for article, members in cursor.fetchall()]
    connection.close()
    return names, rows


def with_a_block(connect: Callable[[], Any]) -> Answer:
    """Takes the cursor that a connection gives in a block, and reads it row by row."""
    with connect() as cursor:
        rows = [(article, members) for article, members in cursor.execute(QUESTION, VALUES)]
        return [column[0] for column in cursor.description], rows


def by_the_connection(connect: Callable[[], Any]) -> Answer:
    """Executes on the connection itself and fetches rows one at a time and in pieces."""
    connection = connect()
    cursor = connection.execute(QUESTION, VALUES)
    rows = [cursor.fetchone(), *cursor.fetchmany(3), *cursor.fetchmany(100)]
    connection.close()
    return [column[0] for column in cursor.description], [(article, members) for article, members in rows]


@pytest.fixture(scope="module")
@needs("process")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServices]:
    """Both services, with the policy and the budgets of the examples."""
    with EmbeddedServices(
        policy=EXAMPLES / "policy.yaml",
        budget_config=EXAMPLES / "budget.yaml",
        directory=tmp_path_factory.mktemp("services"),
    ) as running:
        yield running


@pytest.mark.parametrize("program", [with_a_cursor, with_a_block, by_the_connection])
def test_a_program_for_pinotdb_changes_its_connect_line(
    loaded_pinot: PinotCluster, services: EmbeddedServices, program: Callable[[Callable[[], Any]], Answer]
) -> None:
    """The same columns and as many rows, and each count is about the one that Pinot tells."""
    host, port = "127.0.0.1", loaded_pinot.ports.broker
    names, rows = program(lambda: pinotdb.connect(host, port, path="/query/sql", scheme="http"))
    with closing(
        PinotEngine(controller=loaded_pinot.controller_url, broker=f"http://{host}:{port}")
    ) as engine:
        private_names, private_rows = program(
            lambda: Connection(
                PrivateClient(
                    dp=services.dp_address,
                    budget=services.budget_address,
                    account=f"demo/{program.__name__}",
                    engine=engine,
                )
            )
        )
    assert (["article_id", "members"], 8) == (names, len(rows))
    assert (names, 8) == (private_names, len(private_rows))
    true = true_counts(host, port, [article for article, _ in private_rows])
    assert all(abs(members - true[article]) < FARTHEST for article, members in private_rows)
    assert private_rows != rows


def true_counts(host: str, port: int, articles: list[str]) -> dict[str, int]:
    """Returns what Pinot itself counts for some articles."""
    question = QUESTION.replace("GROUP", "AND article_id IN (%(articles)s) GROUP")
    with pinotdb.connect(host, port) as cursor:
        return dict(cursor.execute(question, VALUES | {"articles": articles}))
