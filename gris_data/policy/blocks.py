"""Blocks of members over all tables of a policy: whether each member is of one, and copies in which each is.

A copy keeps, of each member, the rows of the block that a file of members says. Who is not in it yet comes into it with
the block of most of their rows in all tables together: a rule that looks at nobody else's rows. So one file fixes the
blocks of a window, whatever tables and periods are copied in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from dp_service.queries.blocks import Blocks
from dp_service.queries.policy import Policy
from gris_data.bound.whole_files import complete_or_nothing
from gris_data.errors import InputError
from gris_data.policy.promises import BLOCK, Promise, block_column
from gris_data.policy.rows import MemberRows, rows_of_members
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.parquet import literal, quoted

_DIVISION = "gris_blocks"
_MEMBERS = "gris_members"


@dataclass(frozen=True)
class Divided:
    """A copy: how many rows the table has, and how many of them are kept. True counts, for the owner alone."""

    table: str
    rows: int
    rows_kept: int


def kept_together(policy: Policy, files: Mapping[str, Path]) -> Promise | None:
    """Count in how many blocks members are over all tables of which there are files; None: fewer than two say it.

    Members are compared as texts, as a member has one name in all tables.
    """
    blocks, said = policy.currency.blocks, _said(policy, files)
    if blocks is None or len(said) <= 1:
        return None
    with _counted(policy, said) as counts, duckdb.connect() as connection:
        found = connection.execute(
            "SELECT coalesce(max(counted), 0), count(*) FILTER (counted > $most) FROM (SELECT count(DISTINCT block) "  # noqa: S608
            f"AS counted FROM {counts} GROUP BY member)",
            {"most": blocks.times},
        ).fetchone()
    most, members = found or (0, 0)
    return Promise(BLOCK, blocks.times, int(most), "", int(members))


def divide(policy: Policy, files: Mapping[str, Path], members: Path, out: Path) -> list[Divided]:
    """Write `out`/TABLE.parquet for each table with blocks, and the file of members, which is there or is made.

    Raises:
        InputError: The policy has no blocks in these tables, or the file of members is not one of its division.
        EngineError: A table cannot be read.
        OSError: Something cannot be written.
    """
    blocks, said = policy.currency.blocks, _said(policy, files)
    if blocks is None or not said:
        raise InputError("expected tables for which the policy states a block")
    inputs = {path.resolve() for path in (*said.values(), members)}
    if any((out / f"{name}.parquet").resolve() in inputs for name in said):
        raise InputError("the output must be neither the input nor the file of members")
    if not members.parent.is_dir():
        raise InputError(f"{members}: expected a file in a folder that is there", "members")
    with _counted(policy, said) as counts:
        _fix(blocks, members, counts)
    out.mkdir(parents=True, exist_ok=True)
    return [_copied(policy, name, path, members, out / f"{name}.parquet") for name, path in said.items()]


def _said(policy: Policy, files: Mapping[str, Path]) -> dict[str, Path]:
    """Return the files of the tables that say which block a row is of."""
    with_blocks = {table.name for table in policy.tables if table.block is not None}
    return {name: path for name, path in files.items() if name in with_blocks}


def _source(policy: Policy, name: str) -> MemberRows:
    table, blocks = policy.table(name), policy.currency.blocks
    column = block_column(table, blocks) if blocks is not None else None
    return rows_of_members(table, [] if column is None else [column])


@contextmanager
def _counted(policy: Policy, files: Mapping[str, Path]) -> Iterator[str]:
    """Give SQL for how many rows each member has in each block: `member`, `block`, `counted`, of each table."""
    with tempfile.TemporaryDirectory() as folder:
        for place, (name, path) in enumerate(files.items()):
            source = _source(policy, name)
            pairs = (
                f"SELECT CAST(member AS VARCHAR) AS member, element AS block, count(*) AS counted FROM ({source.sql}) "  # noqa: S608
                "GROUP BY ALL"
            )
            with closing(DuckDBEngine({name: path})) as engine, engine.reading(name) as connection:
                _write(connection.sql(pairs, params=source.values), Path(folder) / f"{place}.parquet")
        yield f"read_parquet({literal(f'{folder}/*.parquet')})"


def _fix(blocks: Blocks, members: Path, counts: str) -> None:
    """Add to the file of members those whom it does not have."""
    division = blocks.digest.hex()
    known = "(SELECT '' AS member, '' AS block WHERE false)"
    if members.exists():
        try:
            stated = (pq.read_schema(members).metadata or {}).get(_DIVISION.encode(), b"").decode()
        except (OSError, ValueError):
            stated = ""
        if stated != division:
            raise InputError(
                f"{members}: expected members of this policy's blocks; name another file", "members"
            )
        known = f"read_parquet({literal(str(members))})"
    new = (
        "SELECT member, arg_max(block, (counted, block)) AS block FROM (SELECT member, block, sum(counted) AS counted "  # noqa: S608
        f"FROM {counts} GROUP BY ALL) WHERE member NOT IN (SELECT member FROM {known}) GROUP BY member"
    )
    with duckdb.connect() as connection, complete_or_nothing(members, 0o600) as unfinished:
        connection.execute(
            f"COPY (SELECT member, block FROM {known} UNION ALL {new}) TO {literal(str(unfinished))} "  # noqa: S608
            f"(FORMAT parquet, KV_METADATA {{{_DIVISION}: {literal(division)}}})"
        )


def _copied(policy: Policy, name: str, path: Path, members: Path, out: Path) -> Divided:
    source = _source(policy, name)
    kept = (
        f"SELECT {quoted(name)}.* FROM {source.table} WHERE (CAST({source.member} AS VARCHAR), {source.element}) "  # noqa: S608
        f"IN (SELECT member, block FROM {_MEMBERS}) AND ({source.condition})"
    )
    with closing(DuckDBEngine({name: path})) as engine, engine.reading(name) as connection:
        connection.register(_MEMBERS, pq.read_table(members))
        with complete_or_nothing(out) as unfinished:
            _write(connection.sql(kept, params=source.values), unfinished)
        found = connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()  # noqa: S608 - a policy's name
    return Divided(name, 0 if found is None else int(found[0]), pq.read_metadata(out).num_rows)


def _write(rows: duckdb.DuckDBPyRelation, path: Path) -> None:
    batches = rows.to_arrow_reader()
    with pq.ParquetWriter(path, batches.schema) as written:
        for batch in batches:
            written.write_batch(batch)
