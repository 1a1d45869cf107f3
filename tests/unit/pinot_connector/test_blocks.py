"""Questions about one block of members, asked of both services: what pays, what is refused, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gris_gateway.faces.mcp.results import levels_of, tables_of
from pinot_connector import PrivateClient
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted
from tests.support.clients import blocking_client_of
from tests.support.embedded import UNHURRIED, embedded
from tests.support.rings import needs

POLICY = """
epsilon_per: 1
delta: 1e-9
count_noise: gaussian
blocks: {name: country, values: [DE, FR]}
tables:
  visits:
    member: m
    block: country
    data_version: one
    columns:
      country: {type: string, filter: [in], group_by: true, typical: 2}
      page: {type: string, filter: [in, not_in], group_by: true, typical: 2, domain: [p0, p1, p2, p3]}
    measures: {distinct_members: true}
    contributions: {bound: in_query, units: 5}
  orders:
    member: m
    columns: {page: {type: string, group_by: true, typical: 2, domain: [p0, p1]}}
    measures: {distinct_members: true}
    contributions: {bound: in_query, units: 5}
"""
ALL = "SELECT page, COUNT(DISTINCT m) FROM visits GROUP BY page"
BUDGET = """
accounts:
  - path: [a]
    limit: {information: 10, calls: 100}
"""
ROWS = [(f"m{i}", ["DE", "FR", "IT", None][i % 4], f"p{i % 3}") for i in range(400)]


@pytest.fixture
@needs("process")
def client(tmp_path: Path) -> Iterator[PrivateClient]:
    """Give a client whose budget pays two questions."""
    members, countries, pages = map(list, zip(*ROWS, strict=True))
    pq.write_table(pa.table({"m": members, "country": countries, "page": pages}), tmp_path / "visits.parquet")
    with (
        embedded(tmp_path, POLICY, BUDGET) as services,
        closing(DuckDBEngine({"visits": tmp_path / "visits.parquet"})) as engine,
        blocking_client_of(services, engine, account="a", timeouts=UNHURRIED) as found,
    ):
        yield found


def ask(client: PrivateClient, where: str) -> tuple[int, tuple[str, ...]]:
    """Ask something new of the rows that meet a condition; return what was charged, and whom."""
    result = client.sql(f"SELECT page, COUNT(DISTINCT m) FROM visits WHERE {where} GROUP BY page")  # noqa: S608
    assert {"method.blocks", "method.all_blocks"} & {each.code for each in result.statements}
    return result.charged.information, result.charged.blocks


def test_a_block_pays_for_its_own_questions_alone(client: PrivateClient) -> None:
    """Two questions of each block, then none about everybody; what is left says the same before and after."""
    catalog = client.catalog()
    assert catalog.blocks is not None
    of_de, of_fr = catalog.blocks.ids
    assert {each.name: each.block_column for each in catalog.tables} == {"visits": "country", "orders": None}
    shown = tables_of(catalog, with_values=False)
    assert shown["blocks"]["values"] == ["DE", "FR"]
    assert {"visits": "country", "orders": None} == {
        each["name"]: each["block_column"] for each in shown["tables"]
    }
    assert ask(client, "country = 'DE'") == (5, (of_de,))
    assert ask(client, "country = 'DE' AND page <> 'p0'") == (5, (of_de,))
    assert ask(client, "country = 'DE'")[0] == 0
    with pytest.raises(BudgetExhausted):
        ask(client, "country = 'DE' AND page <> 'p1'")
    with pytest.raises(BudgetExhausted):
        ask(client, "page <> 'p1'")
    (level,) = client.remaining()
    assert level.remaining.information == 0
    assert {each.blocks: each.information for each in level.remaining_of_blocks} == {(of_de,): 0, (): 10}
    (shown_level,) = levels_of((level,))
    assert [(each["blocks"], each["information"]) for each in shown_level["left_of_blocks"]] == [
        ([of_de], 0),
        ([], 10),
    ]
    assert ask(client, "country IN ('FR', 'IT')") == (5, tuple(sorted((of_fr, catalog.blocks.rest))))
    (level,) = client.remaining()
    assert [
        level.left_for(each).information for each in ((of_de,), (of_fr,), (catalog.blocks.rest,), ())
    ] == [0, 5, 5, 0]
    assert (
        client.explain("SELECT page, COUNT(DISTINCT m) FROM visits WHERE country = 'FR' GROUP BY page")
        .shares[0]
        .remaining
        == 5
    )


def test_a_question_about_everybody_takes_from_every_block(client: PrivateClient) -> None:
    """What all have paid is gone for each."""
    assert ask(client, "page <> 'p1'") == (5, ())
    (said,) = (each for each in client.explain(ALL).statements if each.code == "method.all_blocks")
    assert "at most 16 values of country, in every branch" in said.text
    (said,) = (
        each for each in client.explain(ALL.replace("visits", "orders")).statements if "blocks" in each.code
    )
    assert "this table does not say which block a row is of" in said.text
    assert ask(client, "country = 'FR'")[0] == 5
    with pytest.raises(BudgetExhausted) as refused:
        ask(client, "country = 'FR' AND page <> 'p1'")
    assert refused.value.shortfalls[0].remaining == 0
    assert ask(client, "country IS NULL OR country = 'US'")[0] == 5
    with pytest.raises(BudgetExhausted):
        ask(client, "page <> 'p2'")
