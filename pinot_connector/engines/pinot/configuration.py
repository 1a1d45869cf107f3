"""Refuses configurations of Pinot that make counts inexact.

Pinot can be configured to answer `COUNT(DISTINCT x)` with an approximation, with a sum over partitions, or with any
other expression. None of this shows in an answer, and an inexact count is not the count of the privacy proof.
Settings in a broker's own file cannot be read from here; whether a broker shortens answers shows in its plans
(`limit_in_force`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pinot_connector.engines.pinot.columns import fields_of
from pinot_connector.errors import EngineRefused

EXACT = (
    "SET minServerGroupTrimSize=-1; SET minSegmentGroupTrimSize=-1; SET minBrokerGroupTrimSize=-1; "
    "SET groupTrimThreshold=2000000000; SET numGroupsLimit=100000000; SET enableNullHandling=false; "
    "SET maxServerResponseSizeBytes=2147483647; SET ignoreMissingSegments=false; SET skipUnavailableServers=false; "
    "SET autoRewriteAggregationType=false; "
)
"""What the connector's own queries set, as those that dp_service renders do: nothing is cut or left out."""

OLDEST_VERSION = (0, 11)
"""Older brokers do not report how many segments they left out, so their answers may not be whole."""

OLDEST_MULTISTAGE_VERSION = (1, 0)
"""Before, the multi-stage engine was a preview, in which a query inside a query does not work."""

OLDEST_SEGMENT_LIST = (1, 0)
"""Before, the controller lists checksums that it remembers, and describes one segment at a time."""

LONGEST_TEXT = 1024
"""No answer holds longer texts: one member's long text must not decide whether there is an answer."""

_BOUNDING_STRATEGIES = ("TRIM_LENGTH", "SUBSTITUTE_DEFAULT_VALUE", "ERROR")

_UNSAFE_CLUSTER_SETTINGS = (
    "enable.distinct.count.bitmap.override",
    "pinot.broker.use.approximate.function",
)

HARMLESS_QUERY_SETTINGS = frozenset(
    ("timeoutMs", "disableGroovy", "maxQueryResponseSizeBytes", "maxServerResponseSizeBytes")
)
"""What a table's `query` may hold: every query overrides these, or they change no answer."""


def require_known_version(components: Mapping[str, str]) -> None:
    """Refuses a Pinot that is too old, or does not report its version.

    `components` is the controller's answer to `GET /version`: the version of each of its parts.
    """
    version = _version(components)
    if version < OLDEST_VERSION:
        raise EngineRefused(
            f"Pinot {_text(version)} is too old: its answers do not say whether they are whole"
        )


def require_multistage_version(components: Mapping[str, str]) -> None:
    """Refuses a Pinot whose multi-stage engine cannot run what clips or bounds a member's contributions."""
    version = _version(components)
    if version < OLDEST_MULTISTAGE_VERSION:
        raise EngineRefused(
            f"Pinot {_text(version)} cannot answer the measure events where the policy clips it, nor count distinct "
            "values of a column, funnels or first times, nor bound the contributions of members in a query "
            "(contributions.bound: in_query): that needs the multi-stage engine "
            f"of Pinot {_text(OLDEST_MULTISTAGE_VERSION)} or later; of a prepared copy every version takes questions "
            "that see one period and group by all of the copy's elements"
        )


def lists_segments(components: Mapping[str, str]) -> bool:
    """Returns whether this Pinot has one request that lists what should be loaded of all segments (`zkmetadata`)."""
    return _version(components) >= OLDEST_SEGMENT_LIST


def _version(components: Mapping[str, str]) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", components.get("pinot-controller", ""))
    if found is None:
        raise EngineRefused("Pinot does not say which version it is")
    return int(found[1]), int(found[2])


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def require_exact_cluster(settings: Mapping[str, str]) -> None:
    """Refuses a cluster configuration that rewrites counts."""
    for name, value in settings.items():
        if _is_on(value) and _read_by_brokers(name) in _UNSAFE_CLUSTER_SETTINGS:
            raise EngineRefused(f"the cluster setting {name} lets Pinot answer something else than was asked")


def _read_by_brokers(name: str) -> str:
    """Returns the name by which brokers read a cluster setting: in any case, and for all roles alike (`pinot.all.`)."""
    relaxed = name.replace("-", "").replace("_", "").lower()
    return re.sub(r"^pinot\.all\.", "pinot.broker.", relaxed)


_TIMES_OF_KEYS = (
    ("upsertConfig", "metadataTTL"),
    ("upsertConfig", "deletedKeysTTL"),
    ("dedupConfig", "metadataTTL"),
)


@dataclass(frozen=True)
class TableParts:
    """The configurations of a table's offline part and of its real-time part; None: it has no such part."""

    offline: Mapping[str, Any] | None
    real_time: Mapping[str, Any] | None

    @property
    def configurations(self) -> tuple[Mapping[str, Any], ...]:
        """Those that there are."""
        return tuple(each for each in (self.offline, self.real_time) if each is not None)

    @property
    def replaces_rows(self) -> bool:
        """Whether a row decides if another one with its key counts: the newest does (upsert), or the first (dedup)."""
        config = self.real_time or {}
        keeps_first = (config.get("dedupConfig") or {}).get("dedupEnabled")
        return _is_upserted(config) or _is_on(keeps_first)

    @property
    def answers_from_views(self) -> bool:
        """Whether a question may be answered from which rows counted some seconds ago; Pinot 1.2 and later."""
        config = (self.real_time or {}).get("upsertConfig") or {}
        return str(config.get("consistencyMode")).upper() == "SNAPSHOT"

    @property
    def forgets_keys(self) -> str | None:
        """The setting by which a row that comes late no longer replaces one; None: there is none.

        Pinot counts that time from the latest row of a partition, which may be of any member.
        """
        config = self.real_time or {}
        for kind, name in _TIMES_OF_KEYS:
            stated = (config.get(kind) or {}).get(name)
            # Pinot itself writes 0.0 where nothing is set.
            if stated is not None and str(stated) not in ("", "0", "0.0"):
                return f"{kind}.{name}"
        return None


def parts_of(tables: Mapping[str, Any]) -> TableParts:
    """Returns the parts of a table, from the answer to `GET /tables/{table}`."""
    return TableParts(tables.get("OFFLINE") or None, tables.get("REALTIME") or None)


def require_exact_table(tables: Mapping[str, Any]) -> None:
    """Refuses a table configuration that rewrites counts; `tables` is the answer to `GET /tables/{table}`."""
    parts = parts_of(tables)
    if not parts.configurations:
        raise EngineRefused("Pinot has no such table")
    for config in parts.configurations:
        _require_exact_part(config)
    if _is_upserted(parts.offline or {}):
        raise EngineRefused(
            "rows of the table's offline part replace others with their key (upsertConfig), so that rows of one member "
            "could take those of others out of the counts"
        )


def _require_exact_part(config: Mapping[str, Any]) -> None:
    query = config.get("query") or {}
    if _is_on(query.get("useApproximateFunction")):
        raise EngineRefused("the table setting useApproximateFunction makes counts inexact")
    if query.get("expressionOverrideMap"):
        raise EngineRefused("the table setting expressionOverrideMap rewrites what is counted")
    for name in query.keys() - HARMLESS_QUERY_SETTINGS - {"useApproximateFunction", "expressionOverrideMap"}:
        if query[name] is not None:
            raise EngineRefused(
                f"the table setting query.{name} is of a newer Pinot than this connector knows, and could cut answers: "
                "remove it from the table's configuration"
            )
    for field in config.get("fieldConfigList") or ():
        if _is_on((field.get("properties") or {}).get("isSegmentPartitioned")):
            raise EngineRefused("the table setting isSegmentPartitioned makes counts of members inexact")


def require_short_texts(schema: Mapping[str, Any]) -> None:
    """Refuses a schema in which texts can be longer than `LONGEST_TEXT`, in a column of any kind.

    Pinot cuts longer ones at `maxLength`. From 1.2 on it does with them what `maxLengthExceedStrategy` says: keeps them
    (NO_ACTION), puts the default in their place, or leaves out the row. No condition of a query bounds them: it would
    be evaluated for every row, and Pinot could answer from no star-tree.
    """
    for field in fields_of(schema):
        if field.get("dataType") != "STRING":
            continue
        name, length = field.get("name"), field.get("maxLength")
        if length is not None and int(length) > LONGEST_TEXT:
            raise EngineRefused(
                f"column {name}: expected a maxLength of at most {LONGEST_TEXT} in Pinot's schema, got {length}: one "
                "long text would decide whether there is an answer"
            )
        strategy = field.get("maxLengthExceedStrategy")
        if strategy is not None and str(strategy).upper() not in _BOUNDING_STRATEGIES:
            raise EngineRefused(
                f"column {name}: expected a maxLengthExceedStrategy of {', '.join(_BOUNDING_STRATEGIES)} in Pinot's "
                f"schema, got {strategy}, which keeps texts of any length: one of them would decide whether there is "
                "an answer"
            )


def _is_upserted(config: Mapping[str, Any]) -> bool:
    mode = (config.get("upsertConfig") or {}).get("mode")
    return str(mode or "NONE").upper() != "NONE"


def _is_on(value: object) -> bool:
    """Returns whether a setting is on: Pinot writes `true` both as a Boolean and as text in any case."""
    return str(value).lower() == "true"
