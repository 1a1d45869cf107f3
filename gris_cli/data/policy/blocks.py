"""Whether each member belongs to one block, over all tables of a policy."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb

from dp_service.queries.blocks import Blocks
from dp_service.queries.policy import Policy
from gris_cli.data.policy.column_types import types_of_csv
from gris_cli.data.policy.promises import BLOCK, Promise, block_column
from gris_cli.data.policy.rows import rows_of_members
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.parquet import literal

BATCH = 10_000


def kept_together(policy: Policy, files: Mapping[str, Path]) -> Promise | None:
    """Count in how many blocks members are over all tables of which there are files; None: fewer than two say it.

    Members are compared as texts, as a member has one name in all tables.
    """
    blocks, said = policy.currency.blocks, _said(policy, files)
    if blocks is None or len(said) <= 1:
        return None
    with _pairs(policy, blocks, said) as pairs, duckdb.connect() as connection:
        found = connection.execute(
            "SELECT coalesce(max(counted), 0), count(*) FILTER (counted > $most) FROM (SELECT count(DISTINCT block) "  # noqa: S608
            f"AS counted FROM {pairs} GROUP BY member)",
            {"most": blocks.times},
        ).fetchone()
    most, members = found or (0, 0)
    return Promise(BLOCK, blocks.times, int(most), "", int(members))


def _said(policy: Policy, files: Mapping[str, Path]) -> dict[str, Path]:
    """Return the files of the tables that say which block a row is of."""
    with_blocks = {table.name for table in policy.tables if table.block is not None}
    return {name: path for name, path in files.items() if name in with_blocks}


@contextmanager
def _pairs(policy: Policy, blocks: Blocks, files: Mapping[str, Path]) -> Iterator[str]:
    """Give SQL for which `member` has rows in which `block`, table by table."""
    with tempfile.TemporaryDirectory() as folder:
        for place, (name, path) in enumerate(files.items()):
            table = policy.table(name)
            column = block_column(table, blocks)
            source = rows_of_members(table, [] if column is None else [column])
            pairs = f"SELECT DISTINCT CAST(member AS VARCHAR), CAST(element AS VARCHAR) FROM ({source.sql})"  # noqa: S608
            with (
                closing(DuckDBEngine({name: path})) as engine,
                engine.reading(name, types_of_csv(table)) as connection,
            ):
                _write(connection.execute(pairs, source.values), Path(folder) / f"{place}.csv")
        columns = "{'member': 'VARCHAR', 'block': 'VARCHAR'}"
        yield (
            f"read_csv({literal(f'{folder}/*.csv')}, auto_detect = false, header = false, columns = {columns}, "
            """delim = ',', quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false)"""
        )


def _write(rows: duckdb.DuckDBPyConnection, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        written = csv.writer(file, quoting=csv.QUOTE_ALL)
        while batch := rows.fetchmany(BATCH):
            written.writerows(batch)
