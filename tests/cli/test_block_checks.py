"""Whether data keep the promise that each member's rows are of one block: as files and engines count them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.queries.policy import Policy, parse_policy
from gris_data.errors import InputError
from gris_data.policy.blocks import divide, kept_together
from gris_data.policy.data import examined
from gris_data.policy.promises import BLOCK, Promise, counted
from pinot_connector.engines.duckdb import DuckDBEngine

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


def in_blocks(path: Path) -> dict[str, set[str]]:
    """Return the blocks that each member of a table is in."""
    found: dict[str, set[str]] = {}
    for row in pq.read_table(path).to_pylist():
        found.setdefault(row["m"], set()).add(row["at"] if row["at"] in VALUES else "rest")
    return found


def test_copies_keep_the_block_that_a_member_was_given_first(tmp_path: Path) -> None:
    """Most rows of all tables decide; who is in the file of members stays in that block, whatever comes later."""
    of, members, out = policy(moves=0), tmp_path / "members.parquet", tmp_path / "out"
    first = {
        "t": written(
            tmp_path / "t.parquet",
            [("a", "DE"), ("a", "FR"), ("b", None), ("b", "US"), ("b", "DE"), (None, "DE")],
        ),
        "u": written(tmp_path / "u.parquet", [("a", "FR"), ("c", "DE"), ("c", "DE"), ("null", "FR")]),
    }
    done = divide(of, first, members, out)
    assert [(each.table, each.rows, each.rows_kept) for each in done] == [("t", 6, 3), ("u", 4, 3)]
    assert in_blocks(out / "t.parquet") == {"a": {"FR"}, "b": {"rest"}}
    assert in_blocks(out / "u.parquet") == {"a": {"FR"}, "c": {"DE"}}
    assert members.stat().st_mode & 0o077 == 0
    later = written(tmp_path / "later.parquet", [("a", "DE")] * 9 + [("c", "FR"), ("c", "DE"), ("d", "IT")])
    divide(of, {"t": later}, members, tmp_path / "more")
    assert in_blocks(tmp_path / "more" / "t.parquet") == {"c": {"DE"}, "d": {"rest"}}
    together = kept_together(of, {"t": tmp_path / "more" / "t.parquet", "u": out / "u.parquet"})
    assert together is not None
    assert together.is_kept


def test_a_file_of_other_members_is_refused(tmp_path: Path) -> None:
    """Blocks of another division, something else, no table with blocks, and an output that is an input."""
    of, rows = policy(moves=0), [("a", "DE")]
    table = written(tmp_path / "t.parquet", rows)
    for members in (table, written(tmp_path / "text.csv", rows)):
        with pytest.raises(InputError, match="members of this policy's blocks"):
            divide(of, {"t": table}, members, tmp_path / "out")
    with pytest.raises(InputError, match="expected tables"):
        divide(of, {"other": table}, tmp_path / "members.parquet", tmp_path / "out")
    with pytest.raises(InputError, match="must be neither the input nor"):
        divide(of, {"t": table}, tmp_path / "members.parquet", tmp_path)
