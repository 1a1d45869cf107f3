"""Which rows count in a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dp_service.queries.canonical_columns import (
    QueryColumn,
    QueryValue,
    TextRestriction,
    column_conditions,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.filters import MAXIMUM_TEXT_LENGTH
from dp_service.queries.read_columns import MISSING_MEMBER
from dp_service.queries.render.columns import column_expression
from dp_service.queries.render.conditions import restriction_conditions, written_condition
from dp_service.queries.render.dialects import Dialect, identifier, literal
from dp_service.queries.render.expressions import Place, grouping_keys, has_value, value_of
from dp_service.queries.render.lookups import among, keys_of
from dp_service.queries.render.sums import usable_conditions
from dp_service.queries.resolution import NAMES_TO_COME, Resolution
from dp_service.terms import ColumnType, Element


def where_condition(resolution: Resolution, dialect: Dialect, *, is_nested: bool = False) -> str:
    """Write which rows count in a question."""
    conditions = [
        *_member_conditions(resolution.query, dialect),
        *conditions_of_question(resolution, dialect, is_nested=is_nested),
        *text_conditions(resolution, dialect),
        *_name_conditions(resolution, dialect, is_nested=is_nested),
        *(each for value in _values_of(resolution.query) for each in usable_conditions(value, dialect)),
    ]
    return " AND ".join(dict.fromkeys(conditions))


def _values_of(query: CanonicalQuery) -> Iterator[QueryValue]:
    """Yield what has quantiles, and of what there are bins."""
    if query.quantiles is not None:
        yield query.quantiles.value
    yield from (value for each in query.dimensions for value in each.values_read)


def conditions_of_question(resolution: Resolution, dialect: Dialect, *, is_nested: bool) -> Iterator[str]:
    """Write the restrictions of a question's columns, and its other conditions."""
    for restriction in resolution.query.restrictions:
        yield from restriction_conditions(restriction, dialect, is_nested=is_nested)
    for condition in resolution.query.conditions:
        yield written_condition(condition, dialect, is_nested=is_nested)


def _name_conditions(resolution: Resolution, dialect: Dialect, *, is_nested: bool) -> Iterator[str]:
    """Leave only the names that a first look has found."""
    names, columns = resolution.names, resolution.query.dimensions
    if names is None:
        return
    is_of_keys = not dialect.joins_lookups and any(column.lookup is not None for column in columns)
    if is_of_keys and names != NAMES_TO_COME:
        yield _is_one_of(resolution.query, columns, names, dialect, is_nested=is_nested)
        return
    keys = grouping_keys(resolution.query, dialect, is_nested=is_nested)
    if names == NAMES_TO_COME:
        yield f"{keys[0] if len(keys) == 1 else '(' + ', '.join(keys) + ')'} IN (:names)"
    elif len(keys) == 1:
        values = [value_of(name[0], columns[0].type) for name in names]
        yield among(keys[0], values, dialect)
    else:
        named = [
            " AND ".join(_is_named(resolution.query, columns, name, dialect, is_nested=is_nested))
            for name in names
        ]
        yield f"({' OR '.join(f'({each})' for each in named)})"


def _is_one_of(
    query: CanonicalQuery,
    columns: Sequence[QueryColumn],
    names: Sequence[Element],
    dialect: Dialect,
    *,
    is_nested: bool,
) -> str:
    """Write that columns have the values of one of some names: the keys of each looked-up value only once."""
    place = next((i for i, column in enumerate(columns) if column.lookup is not None), None)
    if place is None:
        named = [
            " AND ".join(_is_named(query, columns, name, dialect, is_nested=is_nested)) for name in names
        ]
        return f"({' OR '.join(f'({each})' for each in named)})"
    column, others = columns[place], [*columns[:place], *columns[place + 1 :]]
    alternatives = []
    for text in dict.fromkeys(name[place] for name in names):
        key = column_expression(column.key, dialect)
        conditions = list(keys_of(column, [str(text)], key, dialect))
        if others:
            rest = [(*name[:place], *name[place + 1 :]) for name in names if name[place] == text]
            conditions.append(_is_one_of(query, others, rest, dialect, is_nested=is_nested))
        alternatives.append(" AND ".join(conditions) or "1 = 1")
    return f"({' OR '.join(f'({each})' for each in alternatives)})"


def _is_named(
    query: CanonicalQuery, columns: Sequence[QueryColumn], name: Element, dialect: Dialect, *, is_nested: bool
) -> Iterator[str]:
    """Write that the columns have the values of an element; not every engine compares tuples."""
    place = Place(query, dialect, is_nested)
    yield from (has_value(column, scalar, place) for column, scalar in zip(columns, name, strict=True))


def _member_conditions(query: CanonicalQuery, dialect: Dialect) -> Iterator[str]:
    """Leave out rows without a member; if the policy lists the member column, a restriction already does.

    If it does not, and the engine stores no NULL, the query assumes that the member is a text; the engine has to check
    that (`reads`).
    """
    if any(restriction.column.name == query.member for restriction in query.restrictions):
        return
    member = identifier(query.member, dialect)
    yield (
        f"{member} IS NOT NULL" if dialect.stores_nulls else f"{member} <> {literal(MISSING_MEMBER, dialect)}"
    )


def text_conditions(resolution: Resolution, dialect: Dialect) -> Iterator[str]:
    """Leave out texts that a table may hold but an answer cannot; a list of values has none of them."""
    lists = {
        each.column: each.excluded
        for each in resolution.query.restrictions
        if isinstance(each, TextRestriction)
    }
    query = resolution.query
    read = (each.text_read for each in query.dimensions if each.type is ColumnType.STRING)
    texts = [each for each in read if each is not None]
    shown = [each for each in texts if lists.get(each, True)]
    if dialect.stores_long_texts:
        for column in shown:
            yield f"length({column_expression(column, dialect)}) <= {MAXIMUM_TEXT_LENGTH}"
    if dialect.well_formed is not None:
        # A text that is not UTF-8 equals no listed text, but meets conditions that only exclude some, also on members.
        excluding = [column for column, excluded in lists.items() if excluded]
        # Nor does it equal a key, but a key that is none of the file's may count.
        keys = [column.lookup.key for column in (*texts, *lists) if column.lookup is not None]
        # Where another alternative holds, its row is left out all the same, as engines do that hold no such text.
        others = [*query.conditions, *query.conditions_of_values]
        conditions = [each for one in others for each in column_conditions(one)]
        conditions += [each for dimension in query.dimensions for each in dimension.conditions]
        alternatives = [each.column for each in conditions]
        named = dict.fromkeys(
            [*shown, *excluding, *(each for each in keys if each.type is ColumnType.STRING)]
        )
        for column in named:
            yield dialect.well_formed(column_expression(column, dialect))
        for column in dict.fromkeys(each for each in alternatives if each.type is ColumnType.STRING):
            text = column_expression(column, dialect)
            if column not in named:
                # NULL is left out of this alternative alone.
                yield f"({text} IS NULL OR {dialect.well_formed(text)})"
