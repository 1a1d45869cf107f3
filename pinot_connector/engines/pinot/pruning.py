"""Which questions a broker may answer without asking every segment, and what such an answer is compared with.

A broker that prunes by time or partition answers a range beyond all segments by itself, in the very words that an old
one uses when every server is dead. To refuse that would let one member's row on a later day decide whether there is an
answer. So such a question stands between two plain counts of the table, which nothing prunes, whatever its answer is:
outcome, charge and time are alike, and the counts tell whether all servers were there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinot_connector.engines.base import EngineQuery, Feature

_LEGACY_PARTITIONS = "partitionawareoffline"


def pruning_columns(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the columns by whose values a broker leaves out segments of a table.

    `config` is the configuration of the table's offline part; raises one of Python's own errors if it is none.
    """
    routing = config.get("routing") or {}
    listed = routing.get("segmentPrunerTypes")
    types = {str(each).lower() for each in listed or ()}
    # The old way to say it, which holds only where the new one is not used.
    is_legacy = listed is None and str(routing.get("routingTableBuilderName")).lower() == _LEGACY_PARTITIONS
    columns: set[str] = set()
    time = (config.get("segmentsConfig") or {}).get("timeColumnName")
    if "time" in types and time is not None:
        columns.add(time)
    if "partition" in types or is_legacy:
        partitions = (config.get("tableIndexConfig") or {}).get("segmentPartitionConfig") or {}
        columns |= (partitions.get("columnPartitionMap") or {}).keys()
    return frozenset(columns)


def may_be_pruned(query: EngineQuery, columns: frozenset[str]) -> bool:
    """Tell whether a broker may leave out segments for this query; it depends on no row.

    Every column that the query names is taken for one that it filters. The multi-stage engine is told not to prune.
    """
    if Feature.PINOT_MULTISTAGE in query.requires:
        return False
    return any(read.name in columns for read in query.reads)


def plain_count(table: str) -> str:
    """Return the query that nothing prunes, and that servers answer from what they know of their segments."""
    return f'SELECT COUNT(*) FROM "{table}"'  # noqa: S608 - a name of the policy, which has no quotes in it
