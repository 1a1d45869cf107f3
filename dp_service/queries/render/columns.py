"""Columns of the table as they are written: with what stands for NULL, or looked up."""

from __future__ import annotations

from dp_service.queries.canonical_columns import QueryColumn
from dp_service.queries.render.dialects import Dialect, identifier, literal
from dp_service.queries.render.lookups import looked_up


def column_expression(column: QueryColumn, dialect: Dialect) -> str:
    """Write a column, with its null value instead of NULL if NULLs are kept."""
    if column.lookup is not None:
        return looked_up(column, column_expression(column.lookup.key, dialect), dialect)
    name = identifier(column.name, dialect)
    if column.null_value is None or not dialect.stores_nulls:
        return name
    return f"COALESCE({name}, {literal(column.null_value, dialect)})"
