"""Looked-up columns: how their values and the conditions on them are written.

The query carries the keys and their texts itself. Nothing has to be loaded beforehand, and no query can meet a copy of
the file that is older than the one that the policy pins. Engines take them in one of two forms:

- A **CASE over the keys** (Pinot, Spark). A condition never evaluates it: the keys whose values are wanted are a list,
  which an engine can find in an index. It is never NULL, whatever a row holds. Where keys without a text are left out,
  a condition leaves out their rows, and what the CASE would say of them is in no answer.
- A **join with lists of values** (DuckDB, which goes through a long CASE for every row). Each key is there once: a row
  meets one of them or none, so the join neither repeats nor drops a row.

Whatever a query counts, clips or bounds is of the looked-up values: rows are grouped by them before anything is
counted, so members are counted distinct by them, and never by the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dp_service.queries.answer_columns import LOOKUP_COLUMNS
from dp_service.queries.canonical_columns import (
    QueryColumn,
    QueryLookup,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.filters import Value
from dp_service.queries.render.dialects import Dialect, identifier, literal

_KEY, _TEXT = LOOKUP_COLUMNS


def looked_up(column: QueryColumn, key: str, dialect: Dialect) -> str:
    """Write the value of a looked-up column, given how its key is written."""
    if dialect.joins_lookups:
        text = f"{_alias(column, dialect)}.{identifier(_TEXT, dialect)}"
        return (
            text if column.null_value is None else f"COALESCE({text}, {literal(column.null_value, dialect)})"
        )
    cases = [
        f"WHEN {among(key, keys, dialect)} THEN {dialect.case_text(text)}"
        for text, keys in sorted(_keys_by_text(_lookup_of(column)).items())
    ]
    rest = "" if column.null_value is None else str(column.null_value)
    return f"CASE {' '.join(cases)} ELSE {dialect.case_text(rest)} END"


def looked_up_columns(query: CanonicalQuery) -> tuple[QueryColumn, ...]:
    """Return the looked-up columns that a question names, each once, by name."""
    named = [*query.dimensions, *(each.column for each in query.restrictions)]
    found = {column.name: column for column in named if column.lookup is not None}
    return tuple(found[name] for name in sorted(found))


def joined(column: QueryColumn, key: str, dialect: Dialect) -> str:
    """Write what a table of DuckDB is joined with so that it has a looked-up column, given how its key is written."""
    lists = (
        f"unnest([{', '.join(literal(value, dialect) for value in values)}]) AS {identifier(name, dialect)}"
        for name, values in zip((_KEY, _TEXT), zip(*_lookup_of(column).entries, strict=True), strict=True)
    )
    alias = _alias(column, dialect)
    return f" LEFT JOIN (SELECT {', '.join(lists)}) AS {alias} ON {key} = {alias}.{identifier(_KEY, dialect)}"


def keys_of(column: QueryColumn, values: Iterable[Value], key: str, dialect: Dialect) -> Iterator[str]:
    """Write that a looked-up column has one of some values, by its keys; nothing where it always has.

    A key without a text counts as the column's null value, if it has one.
    """
    wanted = set(map(str, values))
    by_text = _keys_by_text(_lookup_of(column))
    if column.null_value is None or column.null_value not in wanted:
        yield among(key, [each for text in sorted(wanted & set(by_text)) for each in by_text[text]], dialect)
        return
    unwanted = [each for text in sorted(set(by_text) - wanted) for each in by_text[text]]
    if unwanted:
        yield among(key, unwanted, dialect, excluded=True)


def among(key: str, values: Iterable[Value], dialect: Dialect, *, excluded: bool = False) -> str:
    """Write that an expression has one of some values, or none of them."""
    listed = [literal(value, dialect) for value in values]
    if len(listed) == 1:
        return f"{key} {'<>' if excluded else '='} {listed[0]}"
    return f"{key} {'NOT IN' if excluded else 'IN'} ({', '.join(listed)})"


def _alias(column: QueryColumn, dialect: Dialect) -> str:
    return identifier(f"gris_of_{column.name}", dialect)


def _lookup_of(column: QueryColumn) -> QueryLookup:
    if column.lookup is None:
        raise AssertionError("only a looked-up column has keys")
    return column.lookup


def _keys_by_text(lookup: QueryLookup) -> Mapping[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for key, text in lookup.entries:
        found.setdefault(text, []).append(key)
    return found
