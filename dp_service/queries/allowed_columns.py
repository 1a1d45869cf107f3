"""Which columns a question may group by, and which conditions it may set on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dp_service.queries.canonical_conditions import flattened
from dp_service.queries.columns import Column, Operator
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.filters import (
    VALUES_OF,
    AllOf,
    AnyOf,
    ColumnFilter,
    Filter,
    In,
    InPart,
    IsNull,
    Like,
    NotIn,
    Range,
    Value,
    column_filters,
    type_of,
)
from dp_service.queries.suggestions import listed
from dp_service.queries.tables import Table
from dp_service.queries.times import TimeColumn
from dp_service.terms import ColumnType

_EXAMPLE = "the catalogue has an example of it where the table permits it"
_FUNCTIONS = {
    "funnel": f"expected a funnel with its steps, FUNNEL_COUNT(STEPS(condition, condition)): {_EXAMPLE}",
    "retention": f"expected retention with its buckets, RETENTION('month', time): {_EXAMPLE}",
    "first_seen": f"expected first times with their buckets, DATE_TRUNC('month', MIN(time)): {_EXAMPLE}",
}


def groupable(table: Table, name: str) -> Column:
    """Return a column that questions may group by."""
    if name.lower() in _FUNCTIONS and name not in {each.name for each in table.columns}:
        raise QuestionError("dimensions", _FUNCTIONS[name.lower()])
    column = table.column(name)
    if column.type is ColumnType.TIMESTAMP:
        raise RefusedByPolicyError(
            Rule.GROUP_BY, f"{name}: a column of timestamps can be restricted to a range, and not grouped by"
        )
    if not column.group_by:
        allowed = [each.name for each in table.usable_columns if each.group_by]
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"{name}: the policy does not allow grouping by this column; it allows {listed(allowed)}",
        )
    return column


def time_of(name: str, what: str, offered: Sequence[str], wanted: str, table: Table) -> TimeColumn:
    """Return the time column that a function is of, if the policy offers the function.

    Raises:
        QuestionError: It is of another column.
        RefusedByPolicyError: The policy does not offer it.
    """
    column, time = table.time_column(), table.time
    if time is None:
        raise AssertionError("only a table with a time column has functions of time")
    if name != column.name:
        raise QuestionError(
            "dimensions", f"expected DATE_TRUNC and EXTRACT of the time column {column.name}, and of no other"
        )
    if wanted not in offered:
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"{name}: the policy does not offer {what} of a {wanted}; of this table it offers "
            f"{listed(list(offered)) if offered else 'none'}",
        )
    return time


def with_whole_lists(filters: Iterable[Filter]) -> Iterator[Filter]:
    """Yield conditions all of which must hold, with all values that one column may have instead in one list.

    So a fault of a list is found, and named, however it was written.
    """
    return map(_with_whole_lists, flattened(filters))


def _with_whole_lists(condition: Filter) -> Filter:
    if isinstance(condition, AllOf):
        return AllOf(tuple(map(_with_whole_lists, condition.parts)))
    if not isinstance(condition, AnyOf):
        return condition
    values: dict[str, list[Value]] = {}
    others: list[Filter] = []
    for part in map(_with_whole_lists, condition.parts):
        for each in part.parts if isinstance(part, AnyOf) else (part,):
            if isinstance(each, In):
                values.setdefault(each.column, []).extend(each.values)
            else:
                others.append(each)
    lists = [In(column, tuple(listed_)) for column, listed_ in values.items()]
    return lists[0] if len(lists) == 1 and not others else AnyOf((*lists, *others))


def in_canonical_order(filters: Iterable[Filter]) -> list[ColumnFilter]:
    """Return the conditions on columns in an order that does not depend on how they were written.

    It decides which fault is named.
    """
    found = (each for condition in with_whole_lists(filters) for each in column_filters(condition))
    return sorted(
        found, key=lambda each: (each.column, _operator(each).value, sorted({*map(repr, _values(each))}))
    )


def check_filter(table: Table, condition: ColumnFilter) -> None:
    """Refuse a condition that the policy does not allow, or whose values are of another type."""
    column = table.column(condition.column)
    if isinstance(condition, Like) and column.type is not ColumnType.STRING:
        raise QuestionError("filters", f"{column.name}: expected LIKE on a column of texts alone")
    if isinstance(condition, InPart):
        time_of(column.name, "parts", table.parts, condition.part, table)
    allowed = table.operators(column)
    if _operator(condition) not in allowed:
        others = [_SPELLING[each] for each in Operator if each in allowed]
        raise RefusedByPolicyError(
            Rule.FILTER,
            f"{column.name}: the policy does not allow {_SPELLING[_operator(condition)]} on this column; "
            f"it allows {'; '.join(others) or 'no conditions'}",
        )
    # A day among timestamps stands for its beginning.
    types = {column.type, ColumnType.DATE} if column.type is ColumnType.TIMESTAMP else {column.type}
    if any(type_of(value) not in types for value in _values(condition)):
        raise QuestionError("filters", f"{column.name}: expected {VALUES_OF[column.type]}")
    if isinstance(condition, In):
        _check_listed(column, condition.values)


def check_patterns(table: Table, conditions: Iterable[ColumnFilter]) -> None:
    """Refuse patterns that are looked for in more listed values than a question may take time for."""
    named = Counter(each.column for each in conditions if isinstance(each, Like))
    looked_through = sum(number * _listed_characters(table.column(name)) for name, number in named.items())
    if looked_through > _MOST_LOOKED_THROUGH:
        raise QuestionError(
            "filters",
            f"expected LIKE on columns whose listed values have at most {_MOST_LOOKED_THROUGH:,} characters, all "
            f"patterns together, got {looked_through:,}",
        )


def _listed_characters(column: Column) -> int:
    entries = () if column.lookup is None else (text for _, text in column.lookup.entries)
    return sum(len(str(value)) for value in (*(column.domain or ()), *entries))


# About a second of processor time.
_MOST_LOOKED_THROUGH = 100_000_000
_SPELLING = {
    Operator.IN: "=, IN, LIKE and IS NULL",
    Operator.NOT_IN: "<>, NOT IN, NOT LIKE and IS NOT NULL",
    Operator.RANGE: "<, <=, >, >= and BETWEEN",
}


def _check_listed(column: Column, values: Sequence[Value]) -> None:
    """Refuse a list of which a listed domain has nothing: most likely a slip, for which nobody should pay.

    A domain that was published from the data leaves values out that the data have, so it says nothing of them.
    """
    if column.domain is None or column.publication is not None:
        return
    if not {*column.domain, column.value_for_null}.isdisjoint(values):
        return
    raise QuestionError(
        "filters",
        f"{column.name}: expected a value of the column's domain, which has {listed(column.domain)}",
    )


def check_shown(condition: Filter, restricted: Mapping[str, tuple[Value, ...]]) -> None:
    """Refuse values that are asked for by name and that the answer could not show, whatever the data have of them.

    Only elements of the domain are counted. An answer without a value that was asked for would be read as a count of 0.
    """
    if not isinstance(condition, In) or condition.column not in restricted:
        return
    domain, asked = restricted[condition.column], set(condition.values)
    if outside := len(asked.difference(domain)):
        raise QuestionError(
            "filters",
            f"{condition.column}: {outside} of {len(asked)} values are not in the column's domain, so no answer could "
            f"show them: leave them out; the domain has {listed(domain)}",
        )


def _operator(condition: ColumnFilter) -> Operator:
    """Return which leave of the policy a condition needs: a pattern and NULL are some of a column's values."""
    match condition:
        case In():
            return Operator.IN
        case NotIn():
            return Operator.NOT_IN
        case Range() | InPart():
            return Operator.RANGE
        case Like(negated=negated) | IsNull(negated=negated):
            return Operator.NOT_IN if negated else Operator.IN


def _values(condition: ColumnFilter) -> tuple[Value, ...]:
    match condition:
        case In() | NotIn():
            return condition.values
        case Range():
            return tuple(bound.value for bound in (condition.lower, condition.upper) if bound is not None)
        case Like():
            return (condition.pattern,)
        case IsNull() | InPart():
            return ()
