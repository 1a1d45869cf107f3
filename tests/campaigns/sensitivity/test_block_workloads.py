"""Whole workloads over blocks: no member is charged above the limit, and no block's rows matter to another one.

Random questions are asked of both services until budgets are spent, then again in worlds that lack a member, or all
rows of a block. Who is touched is decided without Gris: whose rows meet the condition, by DuckDB.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.queries.policy import parse_policy
from pinot_connector import PrivateClient
from pinot_connector.embedded import KEY_FILE
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted, InvalidQuestion
from tests.support.clients import blocking_client_of
from tests.support.embedded import UNHURRIED, embedded
from tests.support.examples import long_but

POLICY = """
epsilon_per: 1
delta: 1e-9
count_noise: gaussian
blocks: {name: country, values: [DE, FR, IT]}
tables:
  visits:
    member: m
    block: country
    data_version: one
    columns:
      country: {type: string, filter: [in, not_in], group_by: true, typical: 2, nulls: keep, null_value: none}
      page: {type: string, filter: [in, not_in], group_by: true, typical: 2, domain: [p0, p1, p2, p3]}
    measures: {distinct_members: true}
    contributions: {bound: in_query, units: 5}
"""
LIMIT = 30
BUDGET = f"accounts: [{{path: [a], limit: {{information: {LIMIT}, calls: 1000}}}}]\n"
COUNTRIES = ["DE", "FR", "IT", "US", None]
NULL = "country IS NULL"
QUESTIONS = 60

Row: TypeAlias = tuple[str, str | None, str]


@dataclass(frozen=True)
class Outcome:
    """What came of a question: `decided` is its price, who pays, or why there is no answer.

    `blocks` pay, none: all of them; `rows` were shown.
    """

    decided: object
    charged: int = 0
    blocks: tuple[str, ...] = ()
    rows: object = None


def rows_of(random: Random) -> list[Row]:
    """Return rows of members who are in one country each."""
    of = {f"m{place}": random.choice(COUNTRIES) for place in range(40)}
    return [(member, of[member], f"p{random.randrange(4)}") for member in random.choices(list(of), k=200)]


def condition(random: Random, depth: int = 2) -> str:
    """Return a condition in SQL on the column of blocks, another one, or both."""
    match random.randrange(12 if depth else 4):
        case 0:
            return f"country = '{random.choice(['DE', 'FR', 'IT', 'US', 'de', 'DE '])}'"
        case 1:
            listed = "', '".join(random.sample(["DE", "FR", "IT", "US", "ES"], random.randint(1, 3)))
            return f"country {random.choice(['IN', 'NOT IN'])} ('{listed}')"
        case 2:
            return f"page {random.choice(['=', '<>'])} 'p{random.randrange(4)}'"
        case 3:
            return NULL
        case 4:
            return f"NOT ({condition(random, depth - 1)})"
    joined = random.choice([" AND ", " OR "])
    return f"({joined.join(condition(random, depth - 1) for _ in range(2))})"


def answered(folder: Path, rows: list[Row], workload: list[str]) -> list[Outcome]:
    """Return the outcome of each question, in order, under the same noise key."""
    folder.mkdir()
    members, countries, pages = map(list, zip(*rows, strict=True))
    table = pa.table({"m": members, "country": pa.array(countries, pa.string()), "page": pages})
    pq.write_table(table, folder / "visits.parquet")
    state = folder / "state"
    state.mkdir(mode=0o700)
    (state / KEY_FILE).touch(mode=0o600)
    (state / KEY_FILE).write_bytes(b"k" * 32)
    with (
        embedded(folder, POLICY, BUDGET) as services,
        closing(DuckDBEngine({"visits": folder / "visits.parquet"})) as engine,
        blocking_client_of(services, engine, account="a", timeouts=UNHURRIED) as client,
    ):
        return [outcome(client, where) for where in workload]


def outcome(client: PrivateClient, where: str) -> Outcome:
    """Return what a question of the rows that meet a condition comes to."""
    try:
        result = client.sql(f"SELECT page, COUNT(DISTINCT m) FROM visits WHERE {where} GROUP BY page")  # noqa: S608
    except (BudgetExhausted, InvalidQuestion) as error:
        return Outcome((type(error), str(error)))
    return Outcome((result.cost, result.charged), result.charged.information, result.cost.blocks, result.rows)


def touched(rows: list[Row], where: str) -> set[str]:
    """Return the members whose rows meet a condition, as if the text for NULL stood there."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE visits (m VARCHAR, country VARCHAR, page VARCHAR)")
        connection.executemany("INSERT INTO visits VALUES (?, coalesce(?, 'none'), ?)", rows)
        plain = where.replace(NULL, "country = 'none'")
        return {m for (m,) in connection.execute(f"SELECT DISTINCT m FROM visits WHERE {plain}").fetchall()}  # noqa: S608


@pytest.mark.slow
@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("seed", long_but(lambda seed: seed < 3, range(1, 31)))
def test_no_member_is_charged_above_the_limit_and_other_blocks_do_not_matter(
    seed: int, tmp_path: Path
) -> None:
    """Whatever is asked; price, payers and refusals are the same without a member, and so are answers of others."""
    random = Random(seed)
    rows = rows_of(random)
    workload = [condition(random) for _ in range(QUESTIONS)]
    found = answered(tmp_path / "all", rows, workload)
    charged: Counter[str] = Counter()
    for where, each in zip(workload, found, strict=True):
        charged.update(dict.fromkeys(touched(rows, where) if each.charged else (), each.charged))
    assert max(charged.values()) <= LIMIT < sum(each.charged for each in found)

    ids = parse_policy(POLICY).currency.blocks
    assert ids is not None
    gone, country, _ = random.choice(rows)
    own = ids.ids.get(country or "", ids.rest)
    there = {each: ids.ids.get(each or "", ids.rest) for each in COUNTRIES}
    less = {
        "member": [row for row in rows if row[0] != gone],
        "block": [row for row in rows if there[row[1]] != own],
    }
    for name, left in less.items():
        again = answered(tmp_path / name, left, workload)
        assert [each.decided for each in again] == [each.decided for each in found]
        others = [place for place, each in enumerate(found) if each.blocks and own not in each.blocks]
        assert [again[place].rows for place in others] == [found[place].rows for place in others]
        assert [each.rows for each in again] != [each.rows for each in found]
