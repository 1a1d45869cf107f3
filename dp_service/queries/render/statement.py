"""The statement for all engines: GROUP BY with a count, in a total order, with an explicit limit.

Without dimensions there is no GROUP BY: the answer is one row, also where no row counts. A sum of nothing, which is
NULL, is then 0.

If events are clipped, it groups the result of an inner query: how many events each member has in each element. The
inner query leaves out rows without a member.

A bounded statement has one more query in between, which ranks each member's elements by a salted hash: only the first
Delta_0 of a member count. Where counts are released relative to their total, it also says of how many members each
element is the first. Every member that is counted has exactly one first element, so these numbers add up to the number
of members, of the very rows that the counts are of.

Sums take the total of each member in each element in place of its events, or beside them where they are over rows
(`render.sums`): n and every sum are over the members of one inner query.

The statement of a second look has one condition more, which leaves only the names of the first one. It acts where the
question's own conditions do, so members are bounded within the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from dp_service.queries.canonical import (
    CanonicalQuery,
    OrdinalRestriction,
    QueryBucket,
    QueryColumn,
    Restriction,
    TextRestriction,
)
from dp_service.queries.contributions import MAXIMUM_ROWS
from dp_service.queries.elements import date_of, timestamp_of
from dp_service.queries.intervals import UNIVERSES, Interval, Intervals, gaps, is_short
from dp_service.queries.pairs import PairsRange
from dp_service.queries.policy_schema import (
    BUCKET_COLUMN,
    COUNT_COLUMN,
    FIRST_COUNT_COLUMN,
    MEMBER_COUNT_COLUMN,
)
from dp_service.queries.read_columns import MISSING_MEMBER
from dp_service.queries.render.bucket_expressions import bucketed_times, is_own_timestamp
from dp_service.queries.render.dialects import Dialect, identifier, literal
from dp_service.queries.render.lookups import among, joined, keys_of, looked_up, looked_up_columns
from dp_service.queries.render.member_bounds import InQueryBound, in_query_bound, min_count_of
from dp_service.queries.render.pairs import pairs_conditions, within_copy
from dp_service.queries.render.quantiles import (
    STEP_COLUMN,
    chosen_rows,
    counts_of_cells,
    member_value,
)
from dp_service.queries.render.sums import measured, measures, row_steps, sums, usable_conditions
from dp_service.queries.resolution import NAMES_TO_COME, Resolution
from dp_service.queries.structured import MAXIMUM_TEXT_LENGTH, Measure, Value
from dp_service.terms import ColumnType, Element, MemberValue, Scalar


def statement(resolution: Resolution, dialect: Dialect) -> str:
    """Write the query. It repeats expressions and uses no aliases: engines differ in what an alias may shadow."""
    query = resolution.query
    if resolution.pairs is not None:
        return _pairs_statement(within_copy(resolution), resolution.pairs, dialect)
    if resolution.counts_cells:
        return quantile_statement(resolution, dialect)
    if (bound := in_query_bound(resolution)) is not None:
        return bounded_statement(resolution, bound, dialect)
    if query.values:
        source = f"({_contributions(resolution, dialect)}) AS {identifier('gris_members', dialect)}"
        clip = query.rows_summed
        count = "COUNT(*)" if clip is None else _total(_clipped(clip, dialect), query, dialect)
        ranking = _ranking(resolution, _names(query, dialect), count, source, dialect)
        return dialect.nested_prefix + dialect.prefix + ranking
    if query.clip is not None:
        keys = _names(query, dialect)
        source = f"({_counts_of_members(resolution, dialect)}) AS {identifier('gris_members', dialect)}"
        count = _total(_clipped(query.clip, dialect), query, dialect)
        return dialect.nested_prefix + dialect.prefix + _ranking(resolution, keys, count, source, dialect)
    keys = _keys(query, dialect)
    source = f"{_table(query, dialect)} WHERE {_condition(resolution, dialect)}"
    return dialect.prefix + _ranking(resolution, keys, _count(query, dialect), source, dialect)


def _pairs_statement(resolution: Resolution, pairs: PairsRange, dialect: Dialect) -> str:
    """Write the count of a pairs copy's rows, of which one is of each member and element."""
    query = resolution.query
    conditions = [
        *pairs_conditions(pairs, dialect),
        *_restriction_conditions(resolution, dialect, is_nested=False),
        *_text_conditions(resolution, dialect),
    ]
    keys = [_expression(dimension, dialect) for dimension in query.dimensions]
    source = f"{identifier(query.table, dialect)} WHERE {' AND '.join(conditions)}"
    return dialect.prefix + _ranking(resolution, keys, "COUNT(*)", source, dialect)


def _ranking(resolution: Resolution, keys: list[str], count: str, source: str, dialect: Dialect) -> str:
    """Write the groups of a source in their total order, the count last."""
    names = _names(resolution.query, dialect)
    order = ", ".join([f"{count} DESC", *(f"{key} ASC" for key in keys)])
    named = f"{count} AS {identifier(COUNT_COLUMN, dialect)}"
    selected = [*_selected(keys, names), named, *sums(resolution.query, dialect)]
    clauses = [
        f"SELECT {', '.join(selected)}",
        f"FROM {source}",
        *([f"GROUP BY {', '.join(keys)}"] if keys else []),
        *_having(count, min_count_of(resolution)),
        *([f"ORDER BY {order}"] if keys else []),
        *_limit(resolution, dialect),
    ]
    return " ".join(clauses)


def _total(expression: str, query: CanonicalQuery, dialect: Dialect) -> str:
    """Write a sum; a group has always something to add up, but all rows together may be none."""
    total = dialect.total(expression)
    return total if query.dimensions else f"COALESCE({total}, 0)"


def _having(count: str, min_count: int | None) -> list[str]:
    """Leave out elements below a count; no group counts less than 1."""
    return [f"HAVING {count} >= {min_count}"] if min_count is not None and min_count > 1 else []


def _limit(resolution: Resolution, dialect: Dialect) -> list[str]:
    """Write the limit. Where all rows are wanted, an engine that needs none would only make room for so many."""
    if resolution.row_limit == MAXIMUM_ROWS and not dialect.needs_limit:
        return []
    return [f"LIMIT {resolution.row_limit}"]


def _counts_of_members(resolution: Resolution, dialect: Dialect) -> str:
    """Write how many events each member has in each element."""
    query = resolution.query
    keys = _keys(query, dialect, is_nested=True)
    count = f"COUNT(*) AS {identifier(MEMBER_COUNT_COLUMN, dialect)}"
    clauses = [
        f"SELECT {', '.join([*_selected(keys, _names(query, dialect)), count])}",
        f"FROM {_table(query, dialect)}",
        f"WHERE {_condition(resolution, dialect, is_nested=True)}",
        f"GROUP BY {', '.join([*keys, identifier(query.member, dialect)])}",
    ]
    return " ".join(clauses)


def _table(query: CanonicalQuery, dialect: Dialect) -> str:
    """Write the table, with what is joined to it so that it has the columns that are looked up."""
    columns = looked_up_columns(query) if dialect.joins_lookups else ()
    joins = [joined(each, _expression(each.of_table, dialect), dialect) for each in columns]
    return identifier(query.table, dialect) + "".join(joins)


def _names(query: CanonicalQuery, dialect: Dialect) -> list[str]:
    return [identifier(dimension.name, dialect) for dimension in query.dimensions]


def _clipped(tau: int, dialect: Dialect) -> str:
    """Write the smaller of a member's count and tau: LEAST would return a float on Pinot."""
    count = identifier(MEMBER_COUNT_COLUMN, dialect)
    return f"CASE WHEN {count} > {tau} THEN {tau} ELSE {count} END"


def _selected(keys: list[str], names: list[str]) -> list[str]:
    return [key if key == name else f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]


def _count(query: CanonicalQuery, dialect: Dialect) -> str:
    match query.measure:
        case Measure.DISTINCT_MEMBERS:
            return f"COUNT(DISTINCT {identifier(query.member, dialect)})"
        case Measure.EVENTS:
            return "COUNT(*)"


def _condition(resolution: Resolution, dialect: Dialect, *, is_nested: bool = False) -> str:
    conditions = [
        *_member_conditions(resolution.query, dialect),
        *_restriction_conditions(resolution, dialect, is_nested=is_nested),
        *_text_conditions(resolution, dialect),
        *_name_conditions(resolution, dialect, is_nested=is_nested),
        *(each for value in resolution.query.used_values for each in usable_conditions(value, dialect)),
    ]
    return " AND ".join(conditions)


def _restriction_conditions(resolution: Resolution, dialect: Dialect, *, is_nested: bool) -> Iterator[str]:
    for restriction in resolution.query.restrictions:
        yield from _conditions(restriction, dialect, is_nested=is_nested)


def _name_conditions(resolution: Resolution, dialect: Dialect, *, is_nested: bool) -> Iterator[str]:
    """Leave only the names that a first look has found."""
    names, columns = resolution.names, resolution.query.dimensions
    if names is None:
        return
    is_of_keys = not dialect.joins_lookups and any(column.lookup is not None for column in columns)
    if is_of_keys and names != NAMES_TO_COME:
        yield _is_one_of(resolution.query, columns, names, dialect, is_nested=is_nested)
        return
    keys = _keys(resolution.query, dialect, is_nested=is_nested)
    if names == NAMES_TO_COME:
        yield f"{keys[0] if len(keys) == 1 else '(' + ', '.join(keys) + ')'} IN (:names)"
    elif len(keys) == 1:
        values = [_value_of(name[0], columns[0].type) for name in names]
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
        key = _expression(column.of_table, dialect)
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
    for column, scalar in zip(columns, name, strict=True):
        if query.bucket is not None and column.name == BUCKET_COLUMN:
            yield _is_in_bucket(query, query.bucket, date_of(int(scalar)), dialect, is_nested=is_nested)
        else:
            yield f"{_expression(column, dialect)} = {literal(_value_of(scalar, column.type), dialect)}"


def _is_in_bucket(
    query: CanonicalQuery, bucket: QueryBucket, first_day: date, dialect: Dialect, *, is_nested: bool
) -> str:
    """Write the range of a bucket's times: a function could fail on times that another condition leaves out."""
    ranges = [
        " AND ".join(_conditions(OrdinalRestriction(bucket.column, (each,)), dialect, is_nested=is_nested))
        for each in bucketed_times(query, bucket).values_in(first_day)
    ]
    return ranges[0] if len(ranges) == 1 else f"({' OR '.join(f'({each})' for each in ranges)})"


def _value_of(scalar: Scalar, kind: ColumnType) -> Value:
    """Return a value of an element in the form that it has in questions."""
    return scalar if isinstance(scalar, str) else _value(scalar, kind)


def _keys(query: CanonicalQuery, dialect: Dialect, *, is_nested: bool = False) -> list[str]:
    """Write what is grouped by: columns, and a bucket of the time column."""
    return [_key(dimension, query, dialect, is_nested=is_nested) for dimension in query.dimensions]


def _key(dimension: QueryColumn, query: CanonicalQuery, dialect: Dialect, *, is_nested: bool) -> str:
    bucket = query.bucket
    if bucket is None or dimension.name != BUCKET_COLUMN:
        return _expression(dimension, dialect)
    time = _expression(bucket.column, dialect)
    if is_own_timestamp(bucket.column):
        time = dialect.timestamp_key(time) if is_nested else dialect.whole_timestamp(time)
    return dialect.bucket(time, bucketed_times(query, bucket))


def _expression(column: QueryColumn, dialect: Dialect) -> str:
    """Write a column, with its null value instead of NULL if NULLs are kept."""
    if column.lookup is not None:
        return looked_up(column, _expression(column.lookup.key, dialect), dialect)
    name = identifier(column.name, dialect)
    if column.null_value is None or not dialect.stores_nulls:
        return name
    return f"COALESCE({name}, {literal(column.null_value, dialect)})"


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


def _text_conditions(resolution: Resolution, dialect: Dialect) -> Iterator[str]:
    """Leave out texts that a table may hold but an answer cannot; a list of values has none of them."""
    lists = {
        each.column: each.excluded
        for each in resolution.query.restrictions
        if isinstance(each, TextRestriction)
    }
    texts = [each for each in resolution.query.dimensions if each.type is ColumnType.STRING]
    shown = [each for each in texts if lists.get(each, True)]
    if dialect.stores_long_texts:
        for column in shown:
            yield f"length({_expression(column, dialect)}) <= {MAXIMUM_TEXT_LENGTH}"
    if dialect.well_formed is not None:
        # A text that is not UTF-8 equals no listed text, but meets conditions that only exclude some, also on members.
        excluding = [column for column, excluded in lists.items() if excluded]
        # Nor does it equal a key, but a key that is none of the file's may count.
        keys = [column.lookup.key for column in (*texts, *lists) if column.lookup is not None]
        looked_at = [key for key in keys if key.type is ColumnType.STRING]
        for column in dict.fromkeys([*shown, *excluding, *looked_at]):
            yield dialect.well_formed(_expression(column, dialect))


def _conditions(restriction: Restriction, dialect: Dialect, *, is_nested: bool) -> Iterator[str]:
    """Write the conditions of a restriction. NULL meets none of them, unless COALESCE replaces it."""
    column = restriction.column
    is_of_keys = column.lookup is not None and not dialect.joins_lookups
    if is_of_keys and isinstance(restriction, TextRestriction):
        # It names values and excludes none: all that the column can have are known.
        yield from keys_of(column, restriction.values, _expression(column.of_table, dialect), dialect)
        return
    key = _expression(column, dialect)
    match restriction:
        case TextRestriction():
            yield among(key, restriction.values, dialect, excluded=restriction.excluded)
        case OrdinalRestriction() if column.type is ColumnType.TIMESTAMP and column.stored is None:
            yield from _timestamp_conditions(
                dialect.timestamp_key(key) if is_nested else key, restriction.intervals, dialect
            )
        case OrdinalRestriction():
            yield from _ordinal_conditions(key, restriction, dialect)


def _ordinal_conditions(key: str, restriction: OrdinalRestriction, dialect: Dialect) -> Iterator[str]:
    """Write a set of integers as a list if that is no longer than its two ends and a list of the gaps between."""
    intervals, column = restriction.intervals, restriction.column
    kind = ColumnType.INT64 if column.stored is not None else column.type
    if is_short(intervals):
        yield among(key, _values(intervals, kind), dialect)
        return
    yield from _bounds(key, Interval(intervals[0].start, intervals[-1].end), kind, dialect)
    missing = gaps(intervals)
    if missing:
        yield among(key, _values(missing, kind), dialect, excluded=True)


def _timestamp_conditions(key: str, intervals: Intervals, dialect: Dialect) -> Iterator[str]:
    """Write a set of timestamps by its ends, the upper one exclusive: finer timestamps before it belong to the set.

    Between the ends only the timestamp that stands for NULL can be missing: conditions on timestamps are ranges.
    """
    yield f"{key} >= {literal(timestamp_of(intervals[0].start), dialect)}"
    yield f"{key} < {literal(timestamp_of(intervals[-1].end), dialect)}"
    missing = gaps(intervals)
    if missing:
        yield among(key, _values(missing, ColumnType.TIMESTAMP), dialect, excluded=True)


def _bounds(key: str, hull: Interval, kind: ColumnType, dialect: Dialect) -> Iterator[str]:
    """Write the ends of a set of integers, both members of the set: a narrow column can hold every number written.

    For days both ends are always written: engines can hold days, even infinite ones, that no answer can carry. Such a
    day must only drop its own row, or one member's row would decide whether there is an answer.
    """
    universe, are_days = UNIVERSES[kind], kind is ColumnType.DATE
    if hull == universe and dialect.stores_nulls and not are_days:
        yield f"{key} IS NOT NULL"
    if are_days or hull.start > universe.start:
        yield f"{key} >= {literal(_value(hull.start, kind), dialect)}"
    if are_days or hull.end < universe.end:
        yield f"{key} <= {literal(_value(hull.end - 1, kind), dialect)}"


def _values(intervals: tuple[Interval, ...], kind: ColumnType) -> list[Value]:
    return [_value(i, kind) for interval in intervals for i in range(interval.start, interval.end)]


def _value(number: int, kind: ColumnType) -> Value:
    match kind:
        case ColumnType.DATE:
            return date_of(number)
        case ColumnType.TIMESTAMP:
            return timestamp_of(number)
        case ColumnType.BOOL:
            return bool(number)
        case _:
            return number


def most_of_a_member(resolution: Resolution, dialect: Dialect, *, rows: bool) -> str:
    """Write the query for the most that any member has, of the rows that a question counts.

    Its answer is one count, or no row if there is no member. It is a true count, for the owner of the data alone: no
    question is asked so.

    Args:
        resolution: A question that counts members of elements.
        dialect: The engine's SQL.
        rows: Count a member's rows in one element; otherwise a member's elements.
    """
    query = resolution.query
    member = identifier(query.member, dialect)
    keys = _keys(query, dialect)
    element = keys[0] if len(keys) == 1 else dialect.together(keys)
    count = "COUNT(*)" if rows else f"COUNT(DISTINCT {element})"
    clauses = [
        f"SELECT {count} AS {identifier(COUNT_COLUMN, dialect)}",
        f"FROM {_table(query, dialect)} WHERE {_condition(resolution, dialect)}",
        f"GROUP BY {', '.join([member, *keys] if rows else [member])}",
        f"ORDER BY {count} DESC LIMIT 1",
    ]
    return dialect.prefix + " ".join(clauses)


def bounded_statement(resolution: Resolution, bound: InQueryBound, dialect: Dialect) -> str:
    """Write the query for the counts of bounded contributions, all of them, in the order of `statement`.

    The question's own filters act before bounding, and a member is bounded within the elements that they leave.
    """
    query = resolution.query
    names = _names(query, dialect)
    rank = identifier("gris_rank", dialect)
    distinct = query.measure is Measure.DISTINCT_MEMBERS
    count = "COUNT(*)" if distinct else dialect.total(_clipped(bound.tau, dialect))
    named = f"{count} AS {identifier(COUNT_COLUMN, dialect)}"
    selected = [*names, named, *_firsts(bound, dialect), *sums(query, dialect)]
    clauses = [
        f"SELECT {', '.join(selected)}",
        f"FROM ({_ranked(resolution, bound, dialect)}) AS {identifier('gris_ranked', dialect)}",
        f"WHERE {rank} <= {bound.delta_0}",
        f"GROUP BY {', '.join(names)}",
        *_having(count, bound.min_count),
        f"ORDER BY {', '.join([f'{count} DESC', *(f'{name} ASC' for name in names)])}",
        *_limit(resolution, dialect),
    ]
    return dialect.window_prefix + dialect.nested_prefix + dialect.prefix + " ".join(clauses)


def quantile_statement(resolution: Resolution, dialect: Dialect) -> str:
    """Write the query for how many members are in each cell of the grid, in each element (`render.quantiles`)."""
    query, bound = resolution.query, in_query_bound(resolution)
    if bound is None:
        source, condition = _contributions(resolution, dialect), ""
    else:
        source = _ranked(resolution, bound, dialect)
        condition = f"{identifier('gris_rank', dialect)} <= {bound.delta_0}"
    found = counts_of_cells(source, query, condition, dialect)
    of_one_row = query.quantiles is not None and query.quantiles.rule is MemberValue.ONE_ROW
    window = dialect.window_prefix if of_one_row or bound is not None else ""
    return window + dialect.nested_prefix + dialect.prefix + " ".join([found, *_limit(resolution, dialect)])


def _firsts(bound: InQueryBound, dialect: Dialect) -> Iterator[str]:
    """Write of how many members an element is the first; a count of an expression means other things on Pinot."""
    if bound.counts_firsts:
        rank = identifier("gris_rank", dialect)
        # A rank has the type of counts, which a sum of ones would not have to Pinot's planner.
        is_first = f"CASE WHEN {rank} = 1 THEN {rank} ELSE 0 END"
        yield f"{dialect.total(is_first)} AS {identifier(FIRST_COUNT_COLUMN, dialect)}"


def _ranked(resolution: Resolution, bound: InQueryBound, dialect: Dialect) -> str:
    """Write what is measured of each member in each element, and the element's rank among the member's."""
    selected = [*_names(resolution.query, dialect), *measured(resolution.query, dialect)]
    member = identifier("gris_member", dialect)
    texts = list(_canonical_texts(resolution, member, dialect))
    order = ", ".join([dialect.order_hash(bound.salt, texts), *texts[1:]])
    clauses = [
        f"SELECT {', '.join(selected)},",
        f"ROW_NUMBER() OVER (PARTITION BY {member} ORDER BY {order}) AS {identifier('gris_rank', dialect)}",
        f"FROM ({_contributions(resolution, dialect)}) AS {identifier('gris_members', dialect)}",
    ]
    return " ".join(clauses)


def _canonical_texts(resolution: Resolution, member: str, dialect: Dialect) -> Iterator[str]:
    """Write the member and then each value of the element as the texts that are hashed."""
    yield dialect.canonical_text(member, resolution.member_type)
    for dimension in resolution.query.dimensions:
        yield dialect.canonical_text(identifier(dimension.name, dialect), dimension.type)


def _contributions(resolution: Resolution, dialect: Dialect) -> str:
    """Write what is measured of each member in each element, with the member."""
    query = resolution.query
    member = identifier(query.member, dialect)
    keys = _keys(query, dialect, is_nested=True)
    selected = [
        *_selected(keys, _names(query, dialect)),
        f"{member} AS {identifier('gris_member', dialect)}",
    ]
    condition = _condition(resolution, dialect, is_nested=True)
    source = f"FROM {_table(query, dialect)} WHERE {condition}"
    # A look for names counts members, whatever their values are.
    quantiles = query.quantiles if resolution.counts_cells else None
    if quantiles is not None and quantiles.rule is MemberValue.ONE_ROW:
        step = f"{row_steps(quantiles.value, dialect)} AS {identifier(STEP_COLUMN, dialect)}"
        text = dialect.canonical_text(identifier("gris_member", dialect), resolution.member_type)
        return chosen_rows(f"SELECT {', '.join([*selected, step])} {source}", query, text, dialect)
    if quantiles is None:
        numbers = measures(query, dialect)
    else:
        numbers = [f"{member_value(quantiles, dialect)} AS {measured(query, dialect)[0]}"]
    return f"SELECT {', '.join([*selected, *numbers])} {source} GROUP BY {', '.join([*keys, member])}"
