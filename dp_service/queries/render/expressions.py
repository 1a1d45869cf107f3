"""What is grouped by as it is written: columns, buckets and parts of time, and the first of some conditions."""

from __future__ import annotations

from dataclasses import replace

from dp_service.queries.canonical_query import (
    CanonicalQuery,
    QueryBucket,
    QueryCase,
    QueryColumn,
    QueryPart,
    QueryTime,
)
from dp_service.queries.filters import Value
from dp_service.queries.render.columns import column_expression
from dp_service.queries.render.conditions import value_of_number, written_condition
from dp_service.queries.render.dialects import Dialect, literal
from dp_service.queries.render.time_expressions import is_own_timestamp, local_times
from dp_service.terms import ColumnType


def grouping_keys(query: CanonicalQuery, dialect: Dialect, *, is_nested: bool = False) -> list[str]:
    """Write what is grouped by."""
    return [grouping_key(each, query, dialect, is_nested=is_nested) for each in query.dimensions]


def grouping_key(
    dimension: QueryColumn,
    query: CanonicalQuery,
    dialect: Dialect,
    *,
    is_nested: bool,
    is_total: bool = False,
) -> str:
    """Write one dimension.

    Args:
        dimension: The dimension.
        query: The question.
        dialect: The engine's SQL.
        is_nested: Whether it stands in a query inside another one.
        is_total: Whether rows beyond the question's range meet it as well; they must not make it an error.
    """
    match dimension.source:
        case QueryBucket(time=time, length=function) | QueryPart(time=time, part=function):
            key = _time_key(time, query, dialect, is_nested=is_nested, is_total=is_total)
            return dialect.time(key, local_times(query, time), function)
        case QueryCase() as case:
            return _case(case, dialect, is_nested=is_nested)
        case _:
            return column_expression(dimension, dialect)


def _time_key(
    time: QueryTime, query: CanonicalQuery, dialect: Dialect, *, is_nested: bool, is_total: bool
) -> str:
    """Write the column of a function of time; `is_total`: brought into the question's range."""
    key = time_key(time.column, dialect, is_nested=is_nested)
    if not is_total:
        return key
    kind = ColumnType.INT64 if time.column.stored is not None else time.column.type
    within = local_times(query, time).range
    low, last = (literal(value_of_number(end, kind), dialect) for end in (within.start, within.end - 1))
    return f"(CASE WHEN {key} < {low} THEN {low} WHEN {key} > {last} THEN {last} ELSE {key} END)"


def time_key(column: QueryColumn, dialect: Dialect, *, is_nested: bool) -> str:
    """Write a column of times as it is compared with literals."""
    key = column_expression(column, dialect)
    if not is_own_timestamp(column):
        return key
    return dialect.timestamp_key(key) if is_nested else dialect.whole_timestamp(key)


def _case(case: QueryCase, dialect: Dialect, *, is_nested: bool) -> str:
    """Write a CASE that is never NULL; a condition that a row's NULL does not meet is none that it meets."""
    within = replace(dialect, lists_excluded=False)
    branches = [
        f"WHEN {written_condition(condition, within, is_nested=is_nested)} THEN {_answer(value, dialect)}"
        for condition, value in case.branches
    ]
    otherwise = _answer(case.otherwise, dialect)
    return f"CASE {' '.join(branches)} ELSE {otherwise} END" if branches else otherwise


def _answer(value: Value, dialect: Dialect) -> str:
    """Write a value of CASE: a whole number as one of 64 bits, a text that is not filled up to others' length."""
    if isinstance(value, str):
        return dialect.case_text(value)
    written_value = literal(value, dialect)
    return f"CAST({written_value} AS BIGINT)" if type(value) is int else written_value
