"""Questions about a table with a purpose, asked of both services: its own limit refuses them where others pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gris_mcp.results import price_of
from pinot_connector import PrivateClient, formats
from pinot_connector.budgets import questions_left
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted
from tests.support.clients import blocking_client_of
from tests.support.embedded import UNHURRIED, embedded
from tests.support.rings import needs

TABLE = """
    member: m
    data_version: one
    columns: {page: {type: string, filter: [in, not_in], group_by: true, domain: [p0, p1, p2, p3]}}
    measures: {distinct_members: true}
    contributions: {bound: in_query, delta_0: 2, units: 5}
"""
POLICY = f"""
epsilon_per: 1
delta: 1e-9
count_noise: gaussian
tables:
  salaries:
    purpose: payroll{TABLE}
  visits:{TABLE}
"""
BUDGET = """
accounts:
  - path: [a]
    limit: {information: 20, calls: 100}
    purposes:
      payroll: {information: 8, calls: 50}
"""


@pytest.fixture
@needs("process")
def rows(tmp_path: Path) -> Path:
    """Rows for both tables."""
    path = tmp_path / "rows.parquet"
    rows = {"m": [f"m{i}" for i in range(400)], "page": [f"p{i % 3}" for i in range(400)]}
    pq.write_table(pa.table(rows), path)
    return path


@pytest.fixture
@needs("process")
def client(rows: Path, tmp_path: Path) -> Iterator[PrivateClient]:
    """Give a client whose budget pays four questions, one of them for payroll."""
    with asking(tmp_path, rows, POLICY) as found:
        yield found


@contextmanager
def asking(folder: Path, rows: Path, policy: str) -> Iterator[PrivateClient]:
    """Give a client of a ledger in a folder, under a policy."""
    with (
        embedded(folder, policy, BUDGET) as services,
        closing(DuckDBEngine({"salaries": rows, "visits": rows})) as engine,
        blocking_client_of(services, engine, account="a", timeouts=UNHURRIED) as found,
    ):
        yield found


def ask(client: PrivateClient, table: str, page: str) -> tuple[int, str]:
    """Ask something new; return what was charged, and for what."""
    result = client.sql(
        f"SELECT page, COUNT(DISTINCT m) FROM {table} WHERE page <> '{page}' GROUP BY page"  # noqa: S608
    )
    return result.charged.information, result.charged.purpose


def test_the_limit_of_a_purpose_refuses_its_questions_alone(client: PrivateClient) -> None:
    """The refusal names it; what was paid for is still free."""
    assert ask(client, "salaries", "p0") == (5, "payroll")
    with pytest.raises(BudgetExhausted) as refused:
        ask(client, "salaries", "p1")
    (missing,) = refused.value.shortfalls
    assert (missing.level, missing.purpose, missing.remaining) == (("a",), "payroll", 3)
    assert "purpose payroll at a, information: 5 asked for, 3 left" in str(missing)
    assert ask(client, "salaries", "p0")[0] == 0
    assert [ask(client, "visits", f"p{i}") for i in range(3)] == [(5, "")] * 3
    with pytest.raises(BudgetExhausted) as refused:
        ask(client, "visits", "p3")
    assert [each.purpose for each in refused.value.shortfalls] == [""]
    assert [(level.name, level.remaining.information) for level in client.remaining()] == [
        ("purpose payroll at a", 3),
        ("a", 0),
    ]


def test_the_purpose_of_a_table_may_change(rows: Path, tmp_path: Path) -> None:
    """Kept answers stay free, whether the purpose is added, becomes another or goes; new ones count for the new one."""
    none, other = (POLICY.replace("    purpose: payroll\n", each) for each in ("", "    purpose: hr\n"))
    for number, policy in enumerate((none, POLICY, other, none)):
        with asking(tmp_path, rows, policy) as client:
            assert ask(client, "salaries", "p0")[0] == (0 if number else 5)
    with asking(tmp_path, rows, POLICY) as client:
        assert ask(client, "salaries", "p1") == (5, "payroll")


def test_what_is_said_to_fit_is_what_the_purpose_holds_too(client: PrivateClient) -> None:
    """Before and after an answer, of questions for the purpose alone; on pages, too, the limit is named."""
    salaries, visits = (
        f"SELECT page, COUNT(DISTINCT m) FROM {table} WHERE page <> 'p3' GROUP BY page"  # noqa: S608
        for table in ("salaries", "visits")
    )
    assert [client.questions_left(each) for each in (salaries, visits)] == [1, 4]
    assert [each.name for each in client.explain(visits).shares] == ["a"]
    result = client.sql(salaries)
    assert [(level.name, level.remaining.information) for level in result.remaining] == [
        ("purpose payroll at a", 3),
        ("a", 15),
    ]
    assert questions_left(result.remaining, result.cost) == 0
    assert [client.questions_left(each) for each in (salaries, visits)] == [0, 3]
    narrowest = client.explain(salaries).narrowest
    assert narrowest is not None
    assert (narrowest.name, narrowest.remaining, narrowest.cost) == ("purpose payroll at a", 3, 5)
    levels = [left.removesuffix(" UTC").split(":")[0] for left in map(formats.level, client.remaining())]
    assert levels == ["purpose payroll at a", "a"]
    budget = price_of(client.explain(salaries), client.remaining())
    assert (budget.questions_left, [each.purpose for each in budget.budget]) == (0, ["payroll", ""])
