"""The check of clients itself: what it calls a fault, and its clients that need nothing to be installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.campaigns.clients.__main__ import lines, rows
from tests.campaigns.clients.clients import METADATA, Client, clients
from tests.campaigns.clients.judging import NONE, YES, cells, shown
from tests.campaigns.clients.questions import Expected
from tests.campaigns.clients.sales import write_sales
from tests.campaigns.superset.stack import running_stack
from tests.support.catalogues import catalogue_programs

WANTED = Expected(
    {"top": [["a", 2], ["b", 1]], "series": [["2025-01-01 00:00:00.0", 1]], "sum": [["DE", 0.5]]},
    {"refused": "a column: nobody may", "exhausted": "the budget, refreshed 2026-12-01"},
    60,
)


def judged(*steps: dict[str, object]) -> dict[str, str]:
    """Return what is said of the steps that a client without metadata printed."""
    return cells(shown("\n".join(map(json.dumps, steps))), WANTED, METADATA)


def test_only_what_was_expected_is_a_yes() -> None:
    """Other rows, their order in a ranking, a refusal without its date, an error, and silence are no yes."""
    said = judged(
        {"step": "top", "rows": [["a", 2.0], ["b", 1]]},
        {"step": "again", "rows": [["b", 1], ["a", 2]]},
        {"step": "series", "rows": [["2025-01-01 00:00:00", 1]]},
        {"step": "days", "rows": [["2025-01-01", 1]]},
        {"step": "list", "rows": []},
        {"step": "sum", "error": "it broke"},
        {"step": "refused", "error": "{'message': 'a column: '\n  'nobody may\\nSELECT'}"},
        {
            "step": "exhausted",
            "answer": {"resultTable": {"rows": []}, "exceptions": [{"message": "the budget"}]},
        },
    )
    assert {step for step, cell in said.items() if cell == YES} == {"top", "series", "days", "refused"}
    assert said["tables"] == said["columns"] == NONE
    assert said["sum"] == "it broke"
    assert said["connect"] == said["parameter"] == "nothing"
    notes = list(lines({"a client": {**said, "paid once": YES}}))
    assert "[2] a client, again: rows [['b', 1], ['a', 2]]" in notes


@pytest.mark.slow
@pytest.mark.usefixtures("starts_processes")
def test_curl_psql_and_what_go_sends_get_what_every_request_gets_over_tls(tmp_path: Path) -> None:
    """In the folder of those that are installed is none: a line names each of them."""
    every = list(clients(tmp_path))
    missing = {each.partition(":")[0] for each in every if isinstance(each, str)}
    assert missing - {"curl", "psql"} == {
        "pinotdb, psycopg, psycopg2, asyncpg",
        "pinot-jdbc-client, pinot-java-client, pgjdbc",
        "pinot-client, pg, postgres.js",
        "pgx, lib/pq",
    }
    has_catalogue = catalogue_programs() is not None
    found = [
        each for each in every if isinstance(each, Client) and (has_catalogue or not each.is_of_postgres)
    ]
    with running_stack(tmp_path / "stack", write_sales, with_tls=True) as stack:
        table = rows(stack, found)
    assert table
    assert [] == [(name, row) for name, row in table.items() if not {YES, NONE}.issuperset(row.values())]
