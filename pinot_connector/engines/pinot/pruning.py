"""Finds questions that a broker may answer without asking every segment, and checks such answers by plain counts.

A broker that prunes by time or partition answers a range beyond all segments by itself, with the same response as an
old broker when every server is dead. Refusing that would let one member's row on a later day decide whether there is an
answer. So the table is counted before and after such a question, whatever its answer is, by counts that nothing prunes:
outcome, charge and time are alike, and the counts show whether all servers were there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinot_connector.engines.base import EngineQuery, Feature
from pinot_connector.engines.pinot.configuration import EXACT

_LEGACY_PARTITIONS = "partitionawareoffline"


def pruning_columns(config: Mapping[str, Any]) -> frozenset[str]:
    """Returns the columns by whose values a broker leaves out segments of a table.

    Args:
        config: the configuration of the table's offline part.

    Raises:
        AttributeError, TypeError, ValueError: it is no configuration.
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
    """Returns whether a broker may leave out segments for this query; it depends on no row.

    Every column that the query names counts as one that it filters. Queries for the multi-stage engine switch pruning
    off.
    """
    if Feature.PINOT_MULTISTAGE in query.requires:
        return False
    return any(read.name in columns for read in query.reads)


def plain_count(table: str) -> str:
    """Returns the query that nothing prunes, and that servers answer from what they know of their segments."""
    return f'{EXACT}SELECT COUNT(*) FROM "{table}"'  # noqa: S608 - a name of the policy, which has no quotes in it
