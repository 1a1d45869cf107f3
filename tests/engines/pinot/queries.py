"""Queries in the form that dp_service renders for Pinot."""

from pinot_connector.engines.base import (
    ColumnType,
    Engine,
    EngineAnswer,
    EngineQuery,
    ExpectedColumn,
    ReadColumn,
)
from pinot_connector.engines.pinot.configuration import EXACT
from pinot_connector.errors import EngineError


def confirmed(engine: Engine, query: EngineQuery, data_version: str = "") -> EngineAnswer:
    """Return an answer that the engine has confirmed, on its present version or on the given one."""
    answer = engine.run(query, data_version or engine.data_version(query.table))
    engine.confirm(query, answer)
    return answer


def count_members(
    table: str,
    *dimensions: tuple[str, ColumnType],
    limit: int = 20_000,
    row_limit: int | None = None,
    where: str = "",
    reads: tuple[ReadColumn, ...] = (),
) -> EngineQuery:
    """Return the query for the distinct members of each element, the largest first."""
    names = ", ".join(f"d{i}" for i in range(len(dimensions)))
    groups = ", ".join(name for name, _ in dimensions)
    selected = ", ".join(f"{name} AS d{i}" for i, (name, _) in enumerate(dimensions))
    sql = (
        f"{EXACT}SELECT {selected}, COUNT(DISTINCT member_id) AS gris_count FROM {table} {where} "  # noqa: S608
        f"GROUP BY {groups} ORDER BY gris_count DESC, {names} LIMIT {limit}"
    )
    columns = tuple(ExpectedColumn(f"d{i}", kind) for i, (_, kind) in enumerate(dimensions))
    return EngineQuery(table, sql, columns, limit if row_limit is None else row_limit, reads=reads)


def outcome(engine: Engine, query: EngineQuery, version: str) -> object:
    """Return the elements of a confirmed answer on this version, or the error."""
    try:
        return confirmed(engine, query, version).elements
    except EngineError as error:
        return error
