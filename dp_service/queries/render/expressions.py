"""What is grouped by as it is written: columns, buckets and parts of time, and the first of some conditions."""

from __future__ import annotations

from dataclasses import replace

from dp_service.queries.canonical_columns import (
    QueryBins,
    QueryBucket,
    QueryCase,
    QueryColumn,
    QueryPart,
    QueryPartOfText,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.filters import Value
from dp_service.queries.render.columns import column_expression
from dp_service.queries.render.conditions import time_key, written_condition
from dp_service.queries.render.dialects import Dialect, literal
from dp_service.queries.render.sums import row_steps
from dp_service.queries.render.time_expressions import local_times


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
            times = local_times(query, time)
            key = time_key(times, dialect, is_nested=is_nested, is_total=is_total)
            return dialect.time(key, times, function)
        case QueryCase() as case:
            return _case(case, dialect, is_nested=is_nested)
        case QueryBins() as bins:
            return _bin(bins, dialect, is_nested=is_nested)
        case QueryPartOfText(column=column, function=function):
            return dialect.part_of_text(column_expression(column, dialect), function)
        case _:
            return column_expression(dimension, dialect)


def _case(case: QueryCase, dialect: Dialect, *, is_nested: bool) -> str:
    """Write a CASE that is never NULL; a condition that a row's NULL does not meet is none that it meets."""
    within = replace(dialect, lists_excluded=False)
    branches = [
        f"WHEN {written_condition(condition, within, is_nested=is_nested)} "
        f"THEN {_answer(value, dialect, is_nested=is_nested)}"
        for condition, value in case.branches
    ]
    otherwise = _answer(case.otherwise, dialect, is_nested=is_nested)
    return f"CASE {' '.join(branches)} ELSE {otherwise} END" if branches else otherwise


def _bin(bins: QueryBins, dialect: Dialect, *, is_nested: bool) -> str:
    """Write the label of a bin: no number makes it an error, and a row without one is left out by a condition."""
    integer = "BIGINT" if is_nested else dialect.integer
    steps = row_steps(bins.value, dialect, integer)
    branches = [
        f"WHEN {steps} < {edge} THEN {_answer(label, dialect, is_nested=is_nested)}"
        for edge, label in zip(bins.edges, bins.labels, strict=False)
    ]
    return f"CASE {' '.join(branches)} ELSE {_answer(bins.labels[-1], dialect, is_nested=is_nested)} END"


def _answer(value: Value, dialect: Dialect, *, is_nested: bool) -> str:
    """Write a value of CASE: a whole number as one of 64 bits, a text that is not filled up to others' length."""
    if isinstance(value, str):
        return dialect.case_text(value)
    written_value = literal(value, dialect)
    integer = "BIGINT" if is_nested else dialect.integer
    return f"CAST({written_value} AS {integer})" if type(value) is int else written_value
