"""Columns as they are written: with what stands for NULL, looked up, in buckets of time."""

from __future__ import annotations

from dp_service.queries.answer_columns import BUCKET_COLUMN
from dp_service.queries.canonical_query import CanonicalQuery, QueryColumn
from dp_service.queries.render.bucket_expressions import bucketed_times, is_own_timestamp
from dp_service.queries.render.dialects import Dialect, identifier, literal
from dp_service.queries.render.lookups import looked_up


def grouping_keys(query: CanonicalQuery, dialect: Dialect, *, is_nested: bool = False) -> list[str]:
    """Write what is grouped by: columns, and a bucket of the time column."""
    return [_key(dimension, query, dialect, is_nested=is_nested) for dimension in query.dimensions]


def _key(dimension: QueryColumn, query: CanonicalQuery, dialect: Dialect, *, is_nested: bool) -> str:
    bucket = query.bucket
    if bucket is None or dimension.name != BUCKET_COLUMN:
        return column_expression(dimension, dialect)
    time = column_expression(bucket.column, dialect)
    if is_own_timestamp(bucket.column):
        time = dialect.timestamp_key(time) if is_nested else dialect.whole_timestamp(time)
    return dialect.bucket(time, bucketed_times(query, bucket))


def column_expression(column: QueryColumn, dialect: Dialect) -> str:
    """Write a column, with its null value instead of NULL if NULLs are kept."""
    if column.lookup is not None:
        return looked_up(column, column_expression(column.lookup.key, dialect), dialect)
    name = identifier(column.name, dialect)
    if column.null_value is None or not dialect.stores_nulls:
        return name
    return f"COALESCE({name}, {literal(column.null_value, dialect)})"
