"""What Pinot needs for a pairs copy: a schema, and a table configuration with a star-tree.

A star-tree answers GROUP BY with COUNT(*) where each filter is on a column of `dimensionsSplitOrder`. First come the
columns that every question filters by, then attributes, those with most values first, then elements. Star nodes of
the first ones would never be read. `gris_build` is in the tree, and so are sums of `gris_check`, so that what the
copy holds is compared with its manifest without reading rows. The member is not in the schema: no question names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any

import duckdb

from dp_service.queries.filters import MAXIMUM_TEXT_LENGTH
from dp_service.queries.pairs_manifest import (
    BUILD_COLUMN,
    CHECK_COLUMN,
    PERIOD_COLUMN,
    PREVIOUS_COLUMN,
    PairsManifest,
)
from dp_service.terms import ColumnType
from pinot_connector.engines.parquet import quoted

MAX_LEAF_RECORDS = 10_000
QUERY_TIMEOUT_MS = 30_000
# Pinot cuts texts at 512 of Java's characters if nothing is said. Elements that are cut could become one, in which a
# member would count twice. The tool leaves longer ones than these out.
_MAX_LENGTH = MAXIMUM_TEXT_LENGTH
_DAYS = {"dataType": "INT", "format": "1:DAYS:EPOCH", "granularity": "1:DAYS"}


def pinot_schema(manifest: PairsManifest, types: Mapping[str, ColumnType]) -> str:
    """Return the schema of a copy's table, as Pinot takes it; put the table's name in the place of `TABLE`."""
    dimensions: list[dict[str, Any]] = []
    days: list[dict[str, Any]] = [{"name": PERIOD_COLUMN, **_DAYS}]
    for name in (*manifest.elements, *manifest.attributes):
        kind = types[name]
        if kind is ColumnType.DATE:
            days.append({"name": name, **_DAYS})
        elif kind is ColumnType.STRING:
            dimensions.append({"name": name, "dataType": "STRING", "maxLength": _MAX_LENGTH})
        else:
            dimensions.append({"name": name, "dataType": "BOOLEAN" if kind is ColumnType.BOOL else "LONG"})
    dimensions.append({"name": PREVIOUS_COLUMN, "dataType": "INT"})
    dimensions.append({"name": BUILD_COLUMN, "dataType": "LONG"})
    return _json(
        {
            "schemaName": "TABLE",
            "dimensionFieldSpecs": dimensions,
            "metricFieldSpecs": [{"name": CHECK_COLUMN, "dataType": "INT"}],
            "dateTimeFieldSpecs": days,
        }
    )


def by_selectivity(manifest: PairsManifest, newest: Path) -> list[str]:
    """Return the attributes by falling selectivity, which is by how many values each has in a period's file.

    The numbers are estimates, since nothing depends on them but how much a question reads.
    """
    if not manifest.attributes:
        return []
    numbers = ", ".join(f"approx_count_distinct({quoted(name)})" for name in manifest.attributes)
    with duckdb.connect() as connection:
        # What directories are called says nothing of a column.
        rows = "read_parquet(?, hive_partitioning = false)"
        found = connection.execute(f"SELECT {numbers} FROM {rows}", [escape(str(newest))]).fetchone()  # noqa: S608
    values = dict(zip(manifest.attributes, found or (), strict=True))
    return sorted(manifest.attributes, key=lambda name: -values[name])


def pinot_table(manifest: PairsManifest, filters: Sequence[str]) -> str:
    """Return the configuration of a copy's table; put the table's name in the place of `TABLE`.

    Args:
        manifest: What the copy is.
        filters: Its attributes, those first by which a question leaves out most rows.
    """
    own = [PERIOD_COLUMN, BUILD_COLUMN, PREVIOUS_COLUMN]
    tree = {
        "dimensionsSplitOrder": [*own, *filters, *manifest.elements],
        "skipStarNodeCreationForDimensions": own,
        "functionColumnPairs": ["COUNT__*", f"SUM__{CHECK_COLUMN}"],
        "maxLeafRecords": MAX_LEAF_RECORDS,
    }
    return _json(
        {
            "tableName": "TABLE",
            "tableType": "OFFLINE",
            "segmentsConfig": {"schemaName": "TABLE", "replication": "1"},
            "tenants": {},
            "tableIndexConfig": {
                "loadMode": "MMAP",
                # A dictionary of check numbers would be as long as the column.
                "noDictionaryColumns": [CHECK_COLUMN],
                "starTreeIndexConfigs": [tree],
            },
            "query": {"timeoutMs": QUERY_TIMEOUT_MS},
            "metadata": {},
        }
    )


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"
