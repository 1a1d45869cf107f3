"""Queries for counts of distinct values: how many values some member keeps, in each element.

Of the rows that the question's filters leave, a member has some distinct values in an element, NULL being none of them.
It keeps the first c by the hash of `dp_service.bounding.order`, under a salt of its own. A value counts once in an
element, also where several keep it.

Why a member changes a count by at most c: which values a member keeps follows from its own rows and public numbers
alone, so those of all others are the same with this member and without it. The union of what is kept in an element has
at most its c values more. Of its elements only the first Delta count, so at most so many unions differ. Were c
counted over all members of an element instead, or a value kept because others keep it, a member could push out any
number of others' values; were values kept before the question's filters, an element could hold none of them and the
count would say less, at the same noise.

Whether an element of an unknown domain is shown is decided by its noisy count, as it is for rows: one that only this
member brings has at most c values, so the threshold of tau = c hides it but for delta (`mechanisms.bounded.threshold`).
That an element has many members helps it nothing if they all have the same few values.
"""

from __future__ import annotations

from dp_service.bounding.order import table_salt
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    QueryDistinct,
)
from dp_service.queries.render.dialects import Dialect, identifier

VALUE_COLUMN = "gris_value"
_VALUES_OF_A_MEMBER = "values of a member"
"""What the salt is of by which a member's values are chosen: not of its elements."""


def values_salt(table: str) -> bytes:
    """Return the public salt by which members of a table keep their values."""
    return table_salt(table, _VALUES_OF_A_MEMBER)


def kept_values(
    rows: str, query: CanonicalQuery, counted: QueryDistinct, member_text: str, dialect: Dialect
) -> str:
    """Write the values that each member keeps in each element, each of them once.

    Args:
        rows: The query for elements, members and values of all rows that count, each combination once.
        query: The question.
        counted: What it counts.
        member_text: The member as the text that is hashed.
        dialect: The engine's SQL.
    """
    names = [identifier(dimension.name, dialect) for dimension in query.dimensions]
    member, value, place = (identifier(name, dialect) for name in ("gris_member", VALUE_COLUMN, "gris_place"))
    text = dialect.canonical_text(value, counted.column.type)
    numbered = [
        f"SELECT {', '.join([*names, member, value])},",
        f"ROW_NUMBER() OVER (PARTITION BY {', '.join([*names, member])}",
        f"ORDER BY {dialect.order_hash(values_salt(query.table), [member_text, text])}, {text}) AS {place}",
        f"FROM ({rows}) AS {identifier('gris_rows', dialect)}",
    ]
    clauses = [
        f"SELECT {', '.join([*names, member, value])}",
        f"FROM ({' '.join(numbered)}) AS {identifier('gris_numbered', dialect)}",
        f"WHERE {place} <= {counted.most}",
    ]
    return " ".join(clauses)


def united_values(source: str, query: CanonicalQuery, condition: str, dialect: Dialect) -> str:
    """Write each value that some member keeps in an element, once.

    Args:
        source: The query for the values that each member keeps in each element.
        query: The question.
        condition: Which of its rows count; empty: all.
        dialect: The engine's SQL.
    """
    keys = ", ".join(
        identifier(name, dialect) for name in (*(each.name for each in query.dimensions), VALUE_COLUMN)
    )
    clauses = [
        f"SELECT {keys}",
        f"FROM ({source}) AS {identifier('gris_kept', dialect)}",
        *([f"WHERE {condition}"] if condition else []),
        f"GROUP BY {keys}",
    ]
    return " ".join(clauses)
