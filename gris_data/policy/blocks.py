"""Whether each member's rows are of one block of the policy in all tables together."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from dp_service.queries.policy import Policy
from gris_data.policy.promises import BLOCK, Promise, block_column
from gris_data.policy.rows import rows_of_members
from pinot_connector.engines.duckdb import DuckDBEngine


def kept_together(policy: Policy, files: Mapping[str, Path]) -> Promise | None:
    """Count in how many blocks members are over all tables of which there are files; None: fewer than two say it.

    Members are compared as texts, as a member has one name in all tables.
    """
    blocks = policy.currency.blocks
    columns = {name: block_column(policy.table(name), blocks) for name in files}
    said = {name: column for name, column in columns.items() if column is not None}
    if blocks is None or len(said) <= 1:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for place, (name, column) in enumerate(said.items()):
            source = rows_of_members(policy.table(name), (column,))
            with closing(DuckDBEngine({name: files[name]})) as engine, engine.reading(name) as connection:
                pairs = f"SELECT DISTINCT CAST(member AS VARCHAR) AS member, element FROM ({source.sql})"  # noqa: S608
                batches = connection.sql(pairs, params=source.values).to_arrow_reader()
                with pq.ParquetWriter(f"{folder}/{place}.parquet", batches.schema) as written:
                    for batch in batches:
                        written.write_batch(batch)
        found = duckdb.execute(
            "SELECT coalesce(max(counted), 0), count(*) FILTER (counted > $most) FROM (SELECT count(DISTINCT element) "  # noqa: S608
            f"AS counted FROM read_parquet('{folder}/*.parquet') GROUP BY member)",
            {"most": blocks.times},
        ).fetchone()
    most, members = found or (0, 0)
    return Promise(BLOCK, blocks.times, int(most), "", int(members))
