"""What a question means, said in plain Python over a list of rows: the measure of what engines are asked."""

import datetime
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import accumulate
from operator import or_
from typing import Any, NamedTuple

from dp_service.bounding.weights import least_kept
from dp_service.queries.asked_numbers import DistinctValues, Measure
from dp_service.queries.columns import Column, Lookup, Nulls
from dp_service.queries.dimensions import Dimension
from dp_service.queries.filters import (
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
    TimeRange,
)
from dp_service.queries.functions.parts_of_texts import PartOfText
from dp_service.queries.render.distinct import values_salt
from dp_service.queries.render.member_bounds import FirstElements, Weights
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Policy, Table
from dp_service.queries.times import Refresh
from dp_service.terms import GRID
from tests.support.bounding import kept, weighted


class Row(NamedTuple):
    """One row of the small table."""

    member: str | None
    text: str | None
    number: int | None
    flag: bool | None
    day: datetime.date | None


def holds(condition: Filter, value_of: Callable[[str], Any], null_of: Callable[[str], Any]) -> bool:
    """Tell whether a row meets a condition.

    Args:
        condition: The condition.
        value_of: The row's value in a column; None: it has none, and so meets no condition on that column.
        null_of: What stands for NULL in a column where the policy keeps it; None: NULL is left out.
    """
    if isinstance(condition, AllOf | AnyOf):
        parts = [holds(each, value_of, null_of) for each in condition.parts]
        return all(parts) if isinstance(condition, AllOf) else any(parts)
    value = value_of(condition.column)
    return value is not None and _holds_of(condition, value, null_of(condition.column))


def _holds_of(condition: ColumnFilter, value: Any, null: Any) -> bool:
    """Tell whether a value meets a condition; `null` stands for NULL."""
    match condition:
        case In():
            return value in condition.values
        case NotIn():
            return value not in condition.values
        case Range(lower=lower, upper=upper):
            above = lower is None or value > lower.value or (value == lower.value and not lower.exclusive)
            below = upper is None or value < upper.value or (value == upper.value and not upper.exclusive)
            return above and below
        case Like(pattern=pattern, folds=folds):
            found = _is_like(_folded(pattern), _folded(value)) if folds else _is_like(pattern, value)
            return found is not condition.negated
        case IsNull():
            return (value == null) is not condition.negated
        case InPart(part=part, numbers=numbers):
            return part.of(datetime.datetime.combine(value, datetime.time.min)) in numbers


def _folded(text: str) -> str:
    """Return a text with the letters A to Z small, and no others."""
    return "".join(chr(ord(each) + 32) if "A" <= each <= "Z" else each for each in text)


def _is_like(pattern: str, text: str) -> bool:
    """Tell whether a text has a pattern, by which of its beginnings each beginning of the pattern matches."""
    matched = [not place for place in range(len(text) + 1)]
    signs = iter(pattern)
    for sign in signs:
        if sign == "%":
            matched = [*accumulate(matched, or_)]
        else:
            wanted = {next(signs)} if sign == "\\" else {*text} if sign == "_" else {sign}
            matched = [False, *(matched[i] and each in wanted for i, each in enumerate(text))]
    return matched[-1]


def answer(query: HistogramQuery, policy: Policy, rows: list[Row], *, now: int) -> list[tuple[Any, ...]]:
    """Return the rows that an engine must answer with, in order, at a moment in seconds since 1970."""
    table = policy.table(query.table)
    found = _members_of(query, policy, rows, now=now)
    if not query.dimensions:
        # A total is one row, also of nothing.
        found.setdefault((), [])
    counts = {
        element: len(set(members)) if query.measure is Measure.DISTINCT_MEMBERS else _events(members, table)
        for element, members in found.items()
    }
    ordered = sorted(counts, key=lambda element: (-counts[element], element))
    limit = resolve(query, policy, now=now).row_limit
    return [(*element, counts[element]) for element in ordered[:limit]]


def bounded_answer(
    query: HistogramQuery, policy: Policy, rows: list[Row], bound: Weights, *, now: int
) -> list[tuple[Any, ...]]:
    """Return the counts of weighted members on the grid, in order."""
    held: dict[str | None, Counter[tuple[Any, ...]]] = defaultdict(Counter)
    for element, members in _members_of(query, policy, rows, now=now).items():
        for member in members:
            held[member][element] += 1
    counts: Counter[tuple[Any, ...]] = Counter()
    most = 1 if query.measure is Measure.DISTINCT_MEMBERS else bound.tau
    for events in held.values():
        counts.update(_weighted({element: min(count, most) for element, count in events.items()}, bound))
    shown = {element: count for element, count in counts.items() if count and count >= (bound.min_count or 0)}
    return [(*element, shown[element]) for element in sorted(shown, key=lambda each: (-shown[each], each))]


def relative_answer(
    query: HistogramQuery, policy: Policy, rows: list[Row], *, now: int
) -> list[tuple[Any, ...]]:
    """Return the counts of all contributions, in order, with the number of members whose first element it is."""
    found = _members_of(query, policy, rows, now=now)
    most = resolve(query, policy, now=now).parameters.tau
    counts = {
        element: sum(min(count, most) for count in Counter(members).values())
        for element, members in found.items()
    }
    firsts = Counter(
        {member: element for element in sorted(found, reverse=True) for member in found[element]}.values()
    )
    ordered = sorted(counts, key=lambda element: (-counts[element], element))
    return [(*element, counts[element], firsts[element]) for element in ordered]


def _weighted(cells: dict[tuple[Any, ...], int], bound: Weights) -> dict[tuple[Any, ...], int]:
    """Return what a member adds to each of its elements where members are weighted."""
    least = 1 if bound.min_count is None else least_kept(GRID)
    found = weighted([*cells.values()], bound.typical * bound.tau**2 * GRID**2, least=least)
    return dict(zip(cells, found, strict=True))


def distinct_answer(
    query: HistogramQuery,
    policy: Policy,
    rows: list[Row],
    bound: FirstElements | None,
    *,
    least: int = 0,
    now: int,
) -> list[tuple[Any, ...]]:
    """Return of how many distinct values each element keeps some, in order; `bound` None: of every element.

    `least` is the smallest count of an element that is answered.
    """
    assert isinstance(query.measure, DistinctValues)
    table, most = policy.table(query.table), policy.table(query.table).tau(query.measure, 1)
    column = table.column(query.measure.column).model_copy(update={"nulls": Nulls.DROP})
    held: dict[str | None, dict[tuple[Any, ...], set[str]]] = defaultdict(lambda: defaultdict(set))
    for element, counted in _rows_of(query, policy, rows, now=now).items():
        for row in counted:
            if (value := _value(row, column)) is not None:
                held[row.member][element].add(_text(value))
    united: dict[tuple[Any, ...], set[str]] = defaultdict(set, {} if query.dimensions else {(): set()})
    for member, values in held.items():
        by_text = {tuple(map(_text, element)): element for element in values}
        chosen = by_text if bound is None else kept(bound.salt, str(member), by_text, bound.typical)
        for text in chosen:
            of_element = values[by_text[text]]
            united[by_text[text]].update(kept(values_salt(query.table), str(member), of_element, most))
    counts = {element: len(values) for element, values in united.items() if len(values) >= least}
    return [(*element, counts[element]) for element in sorted(counts, key=lambda each: (-counts[each], each))]


def _text(value: Any) -> str:
    """Return the canonical text of a value."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _members_of(
    query: HistogramQuery, policy: Policy, rows: list[Row], *, now: int
) -> dict[tuple[Any, ...], list[str | None]]:
    """Return the member of each row that is counted, by element."""
    found = _rows_of(query, policy, rows, now=now)
    return {element: [row.member for row in counted] for element, counted in found.items()}


def _rows_of(
    query: HistogramQuery, policy: Policy, rows: list[Row], *, now: int
) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows that are counted, by element."""
    table = policy.table(query.table)
    today = datetime.datetime.fromtimestamp(now, datetime.UTC).date()
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if _counts(row, query, table) and _is_closed(row, table, today):
            found[tuple(value_of_dimension(row, each, table) for each in query.dimensions)].append(row)
    domains = [table.column(each).domain if isinstance(each, str) else None for each in query.dimensions]
    return {
        element: counted
        for element, counted in found.items()
        if all(domain is None or value in domain for value, domain in zip(element, domains, strict=True))
    }


def _events(members: list[str | None], table: Table) -> int:
    """Return how many events are counted, given the member of each."""
    clip = None if table.measures.assumed_tau is not None else table.tau(Measure.EVENTS, 1)
    return sum(count if clip is None else min(count, clip) for count in Counter(members).values())


def _counts(row: Row, query: HistogramQuery, table: Table) -> bool:
    """Tell whether a row is counted: it has a member, no value that matters is missing, all conditions hold."""
    if row.member is None:
        return False
    columns = [table.column(name) for name in query.plain_dimensions]
    columns += [table.time_column()] if query.time_range else []
    member = table.member_column()
    columns += [member] if member is not None else []
    if any(_value(row, column) is None for column in columns):
        return False
    if any(value_of_dimension(row, each, table) is None for each in query.dimensions):
        return False
    if not all(_holds_for(row, each, table) for each in query.filters):
        return False
    return query.time_range is None or _within(query.time_range, _value(row, table.time_column()))


def _holds_for(row: Row, condition: Filter, table: Table) -> bool:
    def value_of(name: str) -> Any:
        return _value(row, table.column(name))

    def null_of(name: str) -> Any:
        return table.column(name).value_for_null

    return holds(condition, value_of, null_of)


def value_of_dimension(row: Row, dimension: Dimension, table: Table) -> Any:
    """Return what a row is grouped by; None: it is left out."""
    match dimension:
        case str():
            return _value(row, table.column(dimension))
        case PartOfText(column=name, function=function):
            column = table.column(name)
            text = _value(row, column)
            is_listed = column.domain is None or text in column.domain
            return function.of(text) if text is not None and is_listed else None
        case _:
            raise AssertionError("functions of time have a calendar of their own")


def _is_closed(row: Row, table: Table, today: datetime.date) -> bool:
    """Tell whether a row's day lies before the first day of the period that `today` is in."""
    if table.time is None or table.time.refresh is None:
        return True
    first_days = {
        Refresh.DAY: today,
        Refresh.WEEK: today - datetime.timedelta(days=today.weekday()),
        Refresh.MONTH: today.replace(day=1),
    }
    day = _value(row, table.time_column())
    return day is not None and day < first_days[table.time.refresh]


def _value(row: Row, column: Column) -> Any:
    """Return a value with NULL handled; None if the row is left out for it."""
    if column.lookup is not None:
        return _looked_up(row, column, column.lookup)
    value = getattr(row, column.name)
    if column.nulls is Nulls.KEEP:
        return column.null_value if value is None else value
    return None if value == column.null_value else value


def _looked_up(row: Row, column: Column, lookup: Lookup) -> Any:
    key = _value(row, lookup.key)
    return None if key is None else dict(lookup.entries).get(key, column.value_for_null)


def _within(time_range: TimeRange, day: datetime.date) -> bool:
    timestamp = datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)
    start, end = (_beginning(bound) for bound in (time_range.start, time_range.end))
    return (start is None or timestamp >= start) and (end is None or timestamp < end)


def _beginning(bound: datetime.date | None) -> datetime.datetime | None:
    """Return when a range begins or ends; the table's days are those of UTC."""
    if bound is None or isinstance(bound, datetime.datetime):
        return bound
    return datetime.datetime.combine(bound, datetime.time.min, datetime.UTC)
