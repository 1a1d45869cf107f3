"""The statement for all engines: GROUP BY with a count, in a total order, with an explicit limit.

Without dimensions there is no GROUP BY: the answer is one row, also where no row counts. A sum of nothing, which is
NULL, is then 0.

If events are clipped, it groups the result of an inner query: how many events each member has in each element. The
inner query leaves out rows without a member.

A statement that weights members has one more query in between, with what each member adds to each of its elements: its
weights follow from the sums of the squares of all its cells (`dp_service.bounding.weights`). Each sum, each average,
and a count of another kind has a weight of its own. A window adds the squares up, or where that is slower a query by
member, which is joined to what it is of. A prepared copy has weights as a column. Where quantiles or distinct values
are asked for, the query in between ranks each member's elements by a salted hash instead, and only the first Delta of a
member count.

Where counts are released relative to their total, the statement also says of how many members each element is the
first. Every member that is counted has exactly one first element, so these numbers add up to the number of members, of
the very rows that the counts are of.

Where distinct values of a column are counted, a member's rows are the values that it keeps in an element
(`render.distinct`), and what is counted are the values that some member keeps.

Sums take the total of each member in each element in place of its events, or beside them where they are over rows
(`render.sums`): n and every sum are over the members of one inner query.

The statement of a second look has one condition more, which leaves only the names of the first one. It acts where the
question's own conditions do, so members are bounded within the names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dp_service.bounding.weights import WEIGHT_COLUMN, least_kept
from dp_service.queries.answer_columns import COUNT_COLUMN, FIRST_COUNT_COLUMN, MEMBER_COUNT_COLUMN
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    QueryDistinct,
)
from dp_service.queries.contributions import MAXIMUM_ROWS
from dp_service.queries.render.columns import column_expression
from dp_service.queries.render.dialects import Dialect, identifier
from dp_service.queries.render.distinct import VALUE_COLUMN, kept_values, united_values
from dp_service.queries.render.expressions import grouping_keys
from dp_service.queries.render.lookups import joined, looked_up_columns
from dp_service.queries.render.member_bounds import (
    FirstElements,
    Weights,
    counts_firsts,
    first_elements_of,
    min_count_of,
    sees_members_again,
    weights_of,
)
from dp_service.queries.render.of_members import has_window, is_of_members, key_of_members, rows_of_members
from dp_service.queries.render.quantiles import STEP_COLUMN, chosen_rows, counts_of_cells, member_value
from dp_service.queries.render.sums import (
    WEIGHT,
    at_most,
    measured,
    measures,
    numbers_of_member,
    over_members,
    own_cells,
    row_steps,
    sums,
    weight_name,
    weighted_sums,
)
from dp_service.queries.render.where import where_condition
from dp_service.queries.resolution import Resolution
from dp_service.terms import GRID

_WEIGHTED = "gris_weighted"


def statement(resolution: Resolution, dialect: Dialect) -> str:
    """Write the query. It repeats expressions and uses no aliases: engines differ in what an alias may shadow."""
    query = resolution.query
    if query.quantiles is not None:
        return quantile_statement(resolution, dialect)
    if isinstance(query.measure, QueryDistinct):
        return distinct_statement(resolution, dialect)
    if (weights := weights_of(resolution)) is not None:
        return weighted_statement(resolution, weights, dialect)
    if counts_firsts(resolution):
        return relative_statement(resolution, dialect)
    if query.values or query.clip is not None:
        return _members_statement(resolution, dialect)
    is_nested = is_of_members(query)
    keys, source = _keys(query, dialect, is_nested=is_nested), _rows(resolution, dialect, is_nested=is_nested)
    prefix = (dialect.window_prefix if has_window(query, dialect) else "") + (
        dialect.nested_prefix if is_nested else ""
    )
    return prefix + dialect.prefix + _ranking(resolution, keys, _count(query, dialect), source, dialect)


def _keys(query: CanonicalQuery, dialect: Dialect, *, is_nested: bool) -> list[str]:
    """Write what is grouped by, of the rows that `_rows` has."""
    if is_of_members(query):
        return [key_of_members(each, dialect) for each in query.dimensions]
    return grouping_keys(query, dialect, is_nested=is_nested)


def _rows(resolution: Resolution, dialect: Dialect, *, is_nested: bool) -> str:
    """Write which rows count, behind FROM: the table's, or one of each member (`render.of_members`)."""
    query = resolution.query
    found = f"{_table(query, dialect)} WHERE {where_condition(resolution, dialect, is_nested=is_nested)}"
    return rows_of_members(query, found, dialect) if is_of_members(query) else found


def _members_statement(resolution: Resolution, dialect: Dialect) -> str:
    """Write the counts of what is measured of each member in each element, and the sums beside them."""
    query = resolution.query
    members = _contributions(resolution, dialect) if query.values else _counts_of_members(resolution, dialect)
    source = f"({members}) AS {_members(dialect)}"
    clip = query.rows_summed if query.values else query.clip
    count = "COUNT(*)" if clip is None else over_members(_clipped(clip, dialect), query, dialect)
    names = _names(query, dialect)
    ranking = _ranking(resolution, names, count, source, dialect, numbers=sums(query, dialect))
    return dialect.nested_prefix + dialect.prefix + ranking


def _ranking(
    resolution: Resolution,
    keys: list[str],
    count: str,
    source: str,
    dialect: Dialect,
    *,
    numbers: Iterable[str] = (),
    weights: Weights | None = None,
) -> str:
    """Write the groups of a source in their total order, with the count and then other numbers behind them."""
    names = _names(resolution.query, dialect)
    order = ", ".join([f"{count} DESC", *(f"{key} ASC" for key in keys)])
    named = f"{count} AS {identifier(COUNT_COLUMN, dialect)}"
    least = min_count_of(resolution) if weights is None else weights.min_count
    selected = [*_selected(keys, names), named, *numbers]
    clauses = [
        f"SELECT {', '.join(selected)}",
        f"FROM {source}",
        *([f"GROUP BY {', '.join(keys)}"] if keys else []),
        *_having(count, least),
        *([f"ORDER BY {order}"] if keys else []),
        *_limit(resolution, dialect),
    ]
    return " ".join(clauses)


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
    keys = grouping_keys(query, dialect, is_nested=True)
    count = f"COUNT(*) AS {identifier(MEMBER_COUNT_COLUMN, dialect)}"
    clauses = [
        f"SELECT {', '.join([*_selected(keys, _names(query, dialect)), count])}",
        f"FROM {_table(query, dialect)}",
        f"WHERE {where_condition(resolution, dialect, is_nested=True)}",
        f"GROUP BY {', '.join([*keys, identifier(query.member, dialect)])}",
    ]
    return " ".join(clauses)


def _table(query: CanonicalQuery, dialect: Dialect) -> str:
    """Write the table, with what is joined to it so that it has the columns that are looked up."""
    columns = looked_up_columns(query) if dialect.joins_lookups else ()
    joins = [joined(each, column_expression(each.key, dialect), dialect) for each in columns]
    return identifier(query.table, dialect) + "".join(joins)


def _names(query: CanonicalQuery, dialect: Dialect) -> list[str]:
    return [identifier(dimension.name, dialect) for dimension in query.dimensions]


def _clipped(tau: int, dialect: Dialect) -> str:
    """Write the smaller of a member's count and tau."""
    return at_most(tau, MEMBER_COUNT_COLUMN, dialect)


def _selected(keys: list[str], names: list[str]) -> list[str]:
    return [key if key == name else f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]


def _count(query: CanonicalQuery, dialect: Dialect) -> str:
    match query.measure:
        case Measure.DISTINCT_MEMBERS:
            return f"COUNT(DISTINCT {identifier(query.member, dialect)})"
        case _:
            return "COUNT(*)"


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
    keys = grouping_keys(query, dialect)
    element = keys[0] if len(keys) == 1 else dialect.together(keys)
    count = "COUNT(*)" if rows else f"COUNT(DISTINCT {element})"
    clauses = [
        f"SELECT {count} AS {identifier(COUNT_COLUMN, dialect)}",
        f"FROM {_table(query, dialect)} WHERE {where_condition(resolution, dialect)}",
        f"GROUP BY {', '.join([member, *keys] if rows else [member])}",
        f"ORDER BY {count} DESC LIMIT 1",
    ]
    return dialect.prefix + " ".join(clauses)


def weighted_statement(resolution: Resolution, bound: Weights, dialect: Dialect) -> str:
    """Write the query for the counts of weighted members, and for the sums beside them, in the order of `statement`.

    The question's own filters act before, and a member is weighted within the elements that they leave.
    """
    if resolution.copy is not None:
        return prepared_statement(resolution, dialect)
    source, condition = _weighted(resolution, bound, dialect)
    count = dialect.total(identifier(_WEIGHTED, dialect))
    found = f"({source}) AS {identifier('gris_bounded', dialect)}"
    found = f"{found} WHERE {condition}" if condition else found
    names, numbers = _names(resolution.query, dialect), weighted_sums(resolution.query, dialect)
    prefix = dialect.window_prefix + dialect.nested_prefix + dialect.prefix
    written = prefix + _ranking(resolution, names, count, found, dialect, numbers=numbers, weights=bound)
    if not dialect.joins_squares:
        return written
    return f"WITH {_members(dialect)} AS MATERIALIZED ({_contributions(resolution, dialect)}) {written}"


def prepared_statement(resolution: Resolution, dialect: Dialect) -> str:
    """Write the query for the sums of the weights that a prepared copy has, in the order of `statement`.

    A member that has several rows in an element has the largest of their weights in it. Its squares then sum to no more
    than those of all periods together; the sum of its weights in P periods would be P times as large.
    """
    is_nested = sees_members_again(resolution)
    names, source = _names(resolution.query, dialect), _rows(resolution, dialect, is_nested=is_nested)
    keys, weight = _keys(resolution.query, dialect, is_nested=is_nested), identifier(WEIGHT_COLUMN, dialect)
    if min_count_of(resolution) is not None:
        source = f"{source} AND {weight} >= {least_kept(GRID)}"
    if not is_nested:
        return dialect.prefix + _ranking(resolution, keys, dialect.total(weight), source, dialect)
    clauses = [
        f"SELECT {', '.join([*_selected(keys, names), f'MAX({weight}) AS {identifier(WEIGHT, dialect)}'])}",
        f"FROM {source} GROUP BY {', '.join([*keys, identifier(resolution.query.member, dialect)])}",
    ]
    members = f"({' '.join(clauses)}) AS {_members(dialect)}"
    count = dialect.total(identifier(WEIGHT, dialect))
    return dialect.nested_prefix + dialect.prefix + _ranking(resolution, names, count, members, dialect)


def _full_count(resolution: Resolution, tau: int, dialect: Dialect) -> str:
    """Write the count where what is measured of a member in an element counts in full."""
    if resolution.query.measure is Measure.DISTINCT_MEMBERS:
        return "COUNT(*)"
    return dialect.total(_clipped(tau, dialect))


def _weighted(resolution: Resolution, bound: Weights, dialect: Dialect) -> tuple[str, str]:
    """Write what each member adds to each of its elements, on the grid, and which of that counts.

    What has a CASE is never 0 by it: `at_most` says why.
    """
    query, member, members = resolution.query, identifier("gris_member", dialect), _members(dialect)
    weighted, joins = identifier(_WEIGHTED, dialect), dialect.joins_squares
    cell = "1" if query.measure is Measure.DISTINCT_MEMBERS else f"({_clipped(bound.tau, dialect)})"
    squares: list[str] = []
    found: list[str] = []
    weights: list[str] = []
    cells = [(WEIGHT, cell, bound.typical * bound.tau**2)]
    for place, each, most in own_cells(query, dialect):
        typical = bound.typical_in_sums[place] or bound.typical
        cells.append((weight_name(query, place), each, typical * most**2))
    for name, each, full in cells:
        square = "COUNT(*)" if each == "1" else f"SUM({each} * {each})"
        over = "" if joins else f" OVER (PARTITION BY {member})"
        named = identifier(name.replace(WEIGHT, "gris_square"), dialect)
        squares.append(f"{square}{over} AS {named}")
        weights.append(identifier(name, dialect))
        found.append(f"{_weight(named, full)} AS {weights[-1]}")
    of = members if joins else f"({_contributions(resolution, dialect)}) AS {members}"
    kept, grouped = (member, [f"GROUP BY {member}"]) if joins else ("*", [])
    summed = " ".join([f"SELECT {', '.join([kept, *squares])}", f"FROM {of}", *grouped])
    summed = f"({summed}) AS {identifier('gris_squares', dialect)}"
    source = " ".join([f"(SELECT {', '.join([kept, *found])}", f"FROM {summed})"])
    source = f"{source} AS {identifier('gris_weights', dialect)}"
    if joins:
        source = f"{members} JOIN {source} USING ({member})"
    added = [f"{cell} * {weights[0]} AS {weighted}"]
    added += [f"{number} AS {name}" for _, number, name in numbers_of_member(query, dialect)]
    selected = [*_names(query, dialect), *added, *weights]
    counted = " ".join([f"SELECT {', '.join(selected)}", f"FROM {source}"])
    return counted, "" if bound.min_count is None else f"{weighted} >= {least_kept(GRID)}"


def _members(dialect: Dialect) -> str:
    return identifier("gris_members", dialect)


def _weight(square: str, full: int) -> str:
    """Write a member's weight by the sum of its squares: FLOOR(SQRT(FLOOR(D / Q))) is exact in floats below 2^52."""
    root = f"CAST(FLOOR(SQRT(FLOOR(CAST({full * GRID**2} AS DOUBLE) / {square}))) AS BIGINT)"
    return f"CASE WHEN {square} > {full} THEN {root} ELSE {GRID} END"


def relative_statement(resolution: Resolution, dialect: Dialect) -> str:
    """Write the query for counts, and of how many members each element is the first."""
    names, rank = _names(resolution.query, dialect), identifier("gris_rank", dialect)
    ranked = " ".join(
        [
            f"SELECT {', '.join([*names, *_measured(resolution.query, dialect)])}, ROW_NUMBER() OVER",
            f"(PARTITION BY {identifier('gris_member', dialect)} ORDER BY {', '.join(names)}) AS {rank}",
            f"FROM ({_contributions(resolution, dialect)}) AS {_members(dialect)}",
        ]
    )
    # 1 for a rank of 1, and 0 for those above. A rank has the type of counts, which a sum of ones would not have to
    # Pinot's planner.
    firsts = dialect.total(f"2 - {at_most(2, 'gris_rank', dialect)}")
    count = _full_count(resolution, resolution.parameters.tau, dialect)
    numbers = [f"{firsts} AS {identifier(FIRST_COUNT_COLUMN, dialect)}"]
    source = f"({ranked}) AS {identifier('gris_ranked', dialect)}"
    prefix = dialect.window_prefix + dialect.nested_prefix + dialect.prefix
    return prefix + _ranking(resolution, names, count, source, dialect, numbers=numbers)


def quantile_statement(resolution: Resolution, dialect: Dialect) -> str:
    """Write the query for how many values are in each cell of the grid, in each element (`render.quantiles`)."""
    query = resolution.query
    source, condition = _bounded_source(resolution, dialect)
    found = counts_of_cells(source, query, condition, dialect)
    window = dialect.window_prefix if query.ranks_rows or condition else ""
    return window + dialect.nested_prefix + dialect.prefix + " ".join([found, *_limit(resolution, dialect)])


def distinct_statement(resolution: Resolution, dialect: Dialect) -> str:
    """Write the query for how many distinct values are kept in each element (`render.distinct`)."""
    query = resolution.query
    source, condition = _bounded_source(resolution, dialect)
    found = united_values(source, query, condition, dialect)
    united = f"({found}) AS {identifier('gris_values', dialect)}"
    ranking = _ranking(resolution, _names(query, dialect), "COUNT(*)", united, dialect)
    return dialect.window_prefix + dialect.nested_prefix + dialect.prefix + ranking


def _bounded_source(resolution: Resolution, dialect: Dialect) -> tuple[str, str]:
    """Write what is measured of each member in each element, and which of these rows count; empty: all."""
    bound = first_elements_of(resolution)
    if bound is None:
        return _contributions(resolution, dialect), ""
    return _ranked(resolution, bound, dialect)


def _ranked(resolution: Resolution, bound: FirstElements, dialect: Dialect) -> tuple[str, str]:
    """Write what is measured of each member in each element with the element's rank, and which ranks count."""
    query = resolution.query
    selected = [*_names(query, dialect), *_measured(query, dialect)]
    # Of several values in one element each has the element's rank, and no other element has it: the texts that follow
    # the hash tell elements apart.
    several = isinstance(query.measure, QueryDistinct) or query.ranks_rows
    function = "DENSE_RANK" if several else "ROW_NUMBER"
    member = identifier("gris_member", dialect)
    texts = list(_canonical_texts(resolution, member, dialect))
    order = ", ".join([dialect.order_hash(bound.salt, texts), *texts[1:]])
    clauses = [
        f"SELECT {', '.join(selected)},",
        f"{function}() OVER (PARTITION BY {member} ORDER BY {order}) AS {identifier('gris_rank', dialect)}",
        f"FROM ({_contributions(resolution, dialect)}) AS {_members(dialect)}",
    ]
    return " ".join(clauses), f"{identifier('gris_rank', dialect)} <= {bound.typical}"


def _measured(query: CanonicalQuery, dialect: Dialect) -> list[str]:
    """Return what a query calls what it takes of each member in each element."""
    if isinstance(query.measure, QueryDistinct):
        return [identifier(VALUE_COLUMN, dialect)]
    return measured(query, dialect)


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
    source = f"FROM {_rows(resolution, dialect, is_nested=True)}"
    text = dialect.canonical_text(identifier("gris_member", dialect), resolution.member_type)
    if isinstance(query.measure, QueryDistinct):
        value = column_expression(query.measure.column, dialect)
        named = f"{value} AS {identifier(VALUE_COLUMN, dialect)}"
        rows = f"SELECT {', '.join([*selected, named])} {source} GROUP BY {', '.join([*keys, member, value])}"
        return kept_values(rows, query, query.measure, text, dialect)
    quantiles = query.quantiles
    if quantiles is not None and query.ranks_rows:
        step = f"{row_steps(quantiles.value, dialect)} AS {identifier(STEP_COLUMN, dialect)}"
        return chosen_rows(f"SELECT {', '.join([*selected, step])} {source}", query, text, dialect)
    if quantiles is None:
        numbers = measures(query, dialect)
    else:
        numbers = [f"{member_value(quantiles, dialect)} AS {measured(query, dialect)[0]}"]
    return f"SELECT {', '.join([*selected, *numbers])} {source} GROUP BY {', '.join([*keys, member])}"
