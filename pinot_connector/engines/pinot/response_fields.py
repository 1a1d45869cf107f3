"""The fields of a broker's response: read, flags of a partial answer, or known to say nothing of the rows it covers.

A field that a later Pinot adds may say that rows were left out, so a response with an unknown one is refused. Look up
in Pinot's source what the field means, then add it here; `answer.py` reads those of `_READ`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinot_connector.errors import EngineRefused

KNOWN_VERSIONS = "0.11.0 and 1.0 to 1.5.1"

_READ = frozenset(
    {
        "resultTable",
        "exceptions",
        "brokerId",
        "numServersQueried",
        "numServersResponded",
        "numSegmentsQueried",
        "numSegmentsPrunedByBroker",
        "numSegmentsPrunedInvalid",
        "numConsumingSegmentsQueried",
        "totalDocs",
        "rlsFiltersApplied",
    }
)
# Flags that Pinot raises, without any exception, when it did not look at everything.
PARTIAL_FLAGS = (
    "partialResult",
    "numGroupsLimitReached",
    "groupsTrimmed",
    "maxRowsInJoinReached",
    "maxRowsInWindowReached",
    "maxRowsInDistinctReached",
    "maxRowsWithoutChangeInDistinctReached",
    "maxExecutionTimeInDistinctReached",
    "mseLiteLeafStageLimitReached",
    "earlyTerminationReasons",
)
# What was scanned, and what servers pruned because it cannot match.
_WORK = frozenset(
    {
        "numDocsScanned",
        "numEntriesScannedInFilter",
        "numEntriesScannedPostFilter",
        "numSegmentsProcessed",
        "numSegmentsMatched",
        "numSegmentsPrunedByServer",
        "numSegmentsPrunedByLimit",
        "numSegmentsPrunedByValue",
        "numConsumingSegmentsProcessed",
        "numConsumingSegmentsMatched",
        "minConsumingFreshnessTimeMs",
        "numRowsResultSet",
        # A warning below the limit of groups, and how many there were.
        "numGroupsWarningLimitReached",
        "numGroups",
        # The largest numbers of rows that were held; `..Reached` tells of a limit.
        "maxRowsInOperator",
        "maxRowsInJoin",
        "maxRowsInWindow",
    }
)
_TIME_AND_MEMORY = frozenset(
    {"timeUsedMs", "brokerReduceTimeMs"}
    | {
        f"{part}{measure}"
        for part in ("offline", "realtime")
        for measure in (
            "ThreadCpuTimeNs",
            "SystemActivitiesCpuTimeNs",
            "ResponseSerializationCpuTimeNs",
            "TotalCpuTimeNs",
            "ThreadMemAllocatedBytes",
            "ResponseSerMemAllocatedBytes",
            "TotalMemAllocatedBytes",
        )
    }
)
_DESCRIPTIONS = frozenset(
    {
        "requestId",
        "clientRequestId",
        "tablesQueried",
        "pools",
        "traceInfo",
        "segmentStatistics",
        "stageStats",
        "explainPlanNumEmptyFilterSegments",
        "explainPlanNumMatchAllFilterSegments",
    }
)
_KNOWN = _READ.union(PARTIAL_FLAGS, _WORK, _TIME_AND_MEMORY, _DESCRIPTIONS)


def require_known_fields(response: Mapping[str, Any]) -> None:
    """Refuses a response with a field that may say that rows were left out.

    Raises:
        EngineRefused: it has such a field; the error names it.
    """
    unknown = sorted(response.keys() - _KNOWN)
    if unknown:
        # Pinot's own fields are short names; anything else might hold data.
        name = unknown[0] if unknown[0].isidentifier() and len(unknown[0]) <= 64 else "of an unusual name"
        raise EngineRefused(
            f"Pinot's answer has an unknown field {name}, which may say that rows were left out: this version of "
            f"Gris knows the fields of Pinot {KNOWN_VERSIONS}; use one of these, or report the field (docs/pinot.md)"
        )
