"""Whether data keep the promise that each member's rows are of one block: as files and engines count them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.queries.policy import Policy, parse_policy
from gris_cli.data.policy.blocks import kept_together
from gris_cli.data.policy.data import examined
from gris_cli.data.policy.promises import BLOCK, Promise, counted
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.paths import ROOT

VALUES = ["DE", "FR"]
Rows = Sequence[tuple[str | None, str | None]]


def policy(moves: int) -> Policy:
    """Return a policy of two tables with a column of blocks each, and one without."""
    table = {
        "member": "m",
        "measures": {"distinct_members": True},
        "columns": {"m": {"type": "string"}, "at": {"type": "string", "filter": ["in"], "group_by": True}},
    }
    tables = {"t": {**table, "block": "at"}, "u": {**table, "block": "at"}, "other": table}
    blocks = {"name": "country", "values": VALUES, "moves": moves}
    return parse_policy(json.dumps({"epsilon_per": 1, "delta": "1e-9", "blocks": blocks, "tables": tables}))


def written(path: Path, rows: Rows) -> Path:
    """Write a table."""
    members, values = zip(*rows, strict=True)
    pq.write_table(pa.table({"m": pa.array(members, pa.string()), "at": pa.array(values, pa.string())}), path)
    return path


def expected(rows: Rows, times: int) -> tuple[int, int]:
    """Return in how many blocks a member is at most, and how many members are in more than so many."""
    blocks: dict[str, set[str]] = {}
    for member, value in rows:
        if member not in (None, "null"):
            blocks.setdefault(str(member), set()).add(value if value in VALUES else "rest")
    sizes = list(map(len, blocks.values()))
    return max(sizes), sum(size > times for size in sizes)


def found(promises: tuple[Promise, ...]) -> tuple[int, int | None]:
    """Return what was counted of blocks."""
    ((most, members),) = [(each.found, each.members) for each in promises if each.key == BLOCK]
    return most, members


@pytest.mark.parametrize("seed", range(6))
def test_blocks_of_members_are_counted_in_each_table_and_in_all(seed: int, tmp_path: Path) -> None:
    """NULL and every value without a block of its own are one block; an engine's answer names no members."""
    random = Random(seed)
    of = policy(moves=seed % 2)
    choices = [*VALUES, "US", "null", "de", "", None]
    tables = {
        name: [
            (random.choice(["a", "b", "c", "null", None]), random.choice(choices[seed % 3 :]))
            for _ in range(4)
        ]
        for name in ("t", "u", "other")
    }
    # Somebody has rows everywhere.
    tables = {name: [*rows, ("a", "DE")] for name, rows in tables.items()}
    files = {name: written(tmp_path / f"{name}.parquet", rows) for name, rows in tables.items()}
    times = 1 + seed % 2
    for name in ("t", "u"):
        table = of.table(name)
        most, members = expected(tables[name], times)
        assert found(examined(table, files[name], of.currency.blocks).promises) == (most, members)
        with closing(DuckDBEngine({name: files[name]})) as engine:
            assert found(counted(engine, table, of.currency).promises) == (most, None if members else 0)
    together = kept_together(of, files)
    assert together is not None
    assert (together.found, together.members) == expected([*tables["t"], *tables["u"]], times)
    assert together.is_kept == (together.members == 0)
    assert kept_together(of, {"t": files["t"], "other": files["other"]}) is None
    assert examined(of.table("other"), files["other"], of.currency.blocks).promises == ()


def test_the_sql_of_the_page_divides_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each member's rows are of the block of most of them, and a member stays in its block when rows are added."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "blocks.md").read_text()
    sql = page.partition("```sql\n")[2].partition("```")[0]
    for rows, kept in (
        ([("a", "DE"), ("a", "DE"), ("a", "FR"), ("b", None), ("b", "US"), (None, "DE")], 4),
        ([("a", "FR"), ("a", "FR"), ("a", "DE"), ("c", "IT")], 2),
    ):
        table = pa.table({"customer": [m for m, _ in rows], "country": [at for _, at in rows]})
        pq.write_table(table, "visits.parquet")
        with duckdb.connect("members.duckdb") as connection:
            connection.execute(sql)
        divided = pq.read_table("visits-divided.parquet").to_pylist()
        assert len(divided) == kept
        assert {row["country"] for row in divided if row["customer"] == "a"} == {"DE"}
