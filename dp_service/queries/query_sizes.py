"""About how long a function of a row is where a query writes it: each name that is found may repeat it."""

from __future__ import annotations

from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.canonical_columns import (
    UTC,
    ColumnCondition,
    OrdinalRestriction,
    PartCondition,
    PatternCondition,
    QueryColumn,
    TextRestriction,
    column_conditions,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.elements import timestamp_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Value
from dp_service.queries.zone_offsets import zone_offsets

# How often bins or a funnel are written, where nothing repeats them.
_TIMES_WRITTEN = 3
# Beside them a query has names, of a message of 16 MiB.
_MOST_REPEATED = 6_000_000


def require_short(parameters: ReleaseParameters, query: CanonicalQuery) -> None:
    """Refuse a question whose query might not fit into a message.

    Raises:
        QuestionError: Its conditions, bins or steps are that long.
    """
    _require_short_conditions(query)
    _require_short_cases(parameters, query)


def _require_short_conditions(query: CanonicalQuery) -> None:
    """Refuse long conditions: one on a lookup names up to all of its keys."""
    characters = _characters_of_conditions(query)
    if characters > _MOST_REPEATED:
        raise QuestionError(
            "filters",
            f"expected conditions with at most about {_MOST_REPEATED:,} characters, looked-up keys among them, got "
            f"{characters:,}",
        )


def _require_short_cases(parameters: ReleaseParameters, query: CanonicalQuery) -> None:
    """Refuse long bins and steps: a second look repeats them for each name that is found."""
    names = None if parameters.contributions is None else parameters.contributions.names
    most = _MOST_REPEATED // (_TIMES_WRITTEN if names is None else names.most_names)
    each = sum(map(_characters_of, query.dimensions))
    if each > most:
        raise QuestionError(
            "dimensions",
            f"expected bins and steps with at most about {most:,} characters of conditions, looked-up keys among them, "
            f"got {each:,}"
            f"{'' if names is None else ': beside a column of an unknown domain its query repeats them for each name'}",
        )


def _characters_of_conditions(query: CanonicalQuery) -> int:
    """Return about how many bytes the conditions of a question and of its numbers have, each of them once."""
    own = (
        each for one in (*query.conditions, *query.conditions_of_values) for each in column_conditions(one)
    )
    return sum(map(_size_of_condition, (*query.restrictions, *own)))


def _characters_of(column: QueryColumn) -> int:
    """Return about how many bytes bins or a funnel have where they are written, rather too many; else 0."""
    values = () if column.source is None else column.source.values_written
    return sum(map(_size_of_value, values)) + sum(map(_size_of_condition, column.conditions))


def _size_of_condition(condition: ColumnCondition) -> int:
    """Return about how many bytes a condition has where it is written: each end of an interval with the column."""
    key = condition.column.key
    column = len(key.name) + (0 if key.null_value is None else _size_of_value(key.null_value))
    match condition:
        case TextRestriction(values=values):
            return column + sum(_QUOTES + len(each.encode()) for each in values)
        case OrdinalRestriction(intervals=intervals):
            return 2 * len(intervals) * (column + _END)
        case PatternCondition(pattern=pattern):
            return column + 4 * _size_of_value(pattern)
        case PartCondition():
            return 4 * (column + _END) * (2 + _changes_of_clocks(condition))


# What stands around a text in a list, a comparison with a number or a timestamp, what stands around a value of CASE.
_QUOTES, _END, _MARKS = 4, 30, 40


def _size_of_value(value: Value) -> int:
    return _MARKS + len(str(value).encode())


def _changes_of_clocks(condition: PartCondition) -> int:
    """Return how often clocks change in the times of a condition, each of which its query names."""
    time, times = condition.source.time, condition.times.hull
    if time.zone == UTC:
        return 0
    size = int(time.unit.value)
    start, end = (timestamp_of(number * size) for number in (times.start, times.end))
    return len(zone_offsets(start, end, time.zone))
