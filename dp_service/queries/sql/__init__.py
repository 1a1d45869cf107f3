"""SQL into the structured form: the words that people, BI tools and language models write for one question.

    SELECT dims.., numbers.. FROM table [[AS] alias] [WHERE conditions]
    [GROUP BY dims.. | ALL] [HAVING conditions on numbers]
    [ORDER BY number [DESC] [, dims [ASC]]] [LIMIT k | FETCH FIRST k ROWS ONLY]

One of dims may be DATE_TRUNC('month', time): then ORDER BY may also be dims [ASC] alone, as it is without ORDER BY.
Numbers are one count, with sums and averages and counts of rows that meet a condition, or percentiles (`numbers`). A
count comes with all of them, whether or not it is selected; beside one of members there may be one of rows. All other
numbers are over rows, unless the statement is around one that groups by the member (`per_member`). Without dims the
count is one total. Without a number, but with a count in ORDER BY, the question is about the order alone.

Beside percentiles there is no LIMIT, and ORDER BY is with one of them. The smallest number comes first in a list of a
known domain alone.

Conditions compare a column with literals by =, <>, IN, BETWEEN, <, <=, >, >=, LIKE, ILIKE and IS NULL, joined by AND,
OR and NOT. Without a number, or with LIMIT 0, a question is about what the policy lists and needs no release. EXPLAIN
before a statement asks for its price alone.
Comments, a semicolon at the end, conditions that say nothing (1 = 1), and statements around a statement that only
name, filter or order (`wrappers`) have no meaning of their own. Names are case-sensitive, keywords are not.

`tokens` divides a text, `expressions` and `statements` read it by recursive descent into a `tree` and refuse what is no
such statement; what the tree asks for is read here. Everything that is refused is named with its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from math import inf, prod
from typing import NoReturn, TypeVar

from dp_service.parameters.release import HavingCondition
from dp_service.queries.asked_numbers import Counted, Measure
from dp_service.queries.canonical_conditions import flattened as all_of
from dp_service.queries.dimensions import Dimension, columns_of, is_series
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import Filter, column_filters
from dp_service.queries.sql import tree
from dp_service.queries.sql.clauses import place_of, placed_in
from dp_service.queries.sql.conditions import filters_of
from dp_service.queries.sql.having import having_of, measure_in, says_that_rows_are
from dp_service.queries.sql.ordering import Order, is_of_elements, order_of, place_of_number, require_groups
from dp_service.queries.sql.places import RefusedHereError, located, refuse
from dp_service.queries.sql.probes import is_probe, probe_of
from dp_service.queries.sql.scope import Scope, integer, scope_of
from dp_service.queries.sql.select_list import Dimension as SelectedDimension
from dp_service.queries.sql.select_list import (
    SelectList,
    dimension_selected,
    measure_without_count,
    select_list_of,
    without_repeats,
)
from dp_service.queries.sql.statements import StatementReader
from dp_service.queries.sql.tokens import tokens_of
from dp_service.queries.sql.wrappers import flattened
from dp_service.queries.structured import MAXIMUM_K, Free, HistogramQuery
from dp_service.queries.tables import Policy, Table

_Answer = TypeVar("_Answer")


def parse_sql(text: str, policy: Policy) -> HistogramQuery:
    """Read a question in SQL into the structured form.

    Args:
        text: The statement, with or without a semicolon at its end.
        policy: Provides the table's member column and the types of its columns.

    Raises:
        QuestionError: A construct is not accepted; the message names it, and where it stands.
        RefusedByPolicyError: The policy does not list a name.
    """
    return located(lambda: _read(text, policy), text, policy.names)


def parse_condition(
    text: str, table: Table, policy: Policy, *, grouped: tuple[str, ...] = ()
) -> tuple[Filter, ...]:
    """Read a condition in SQL, as it stands behind WHERE, of a structured question.

    Args:
        text: The condition.
        table: The table that the question is about.
        policy: Provides all names, which messages may repeat.
        grouped: The columns that the question groups by.

    Raises:
        QuestionError: A construct is not accepted; the message names it, and where it stands.
        RefusedByPolicyError: The policy does not list a name.
    """
    return located(lambda: _condition(text, table, grouped), text, policy.names, field="condition")


def with_dimensions(query: HistogramQuery, policy: Policy) -> HistogramQuery:
    """Read what a structured question groups by where it is more than a column's name: as it stands behind SELECT.

    Args:
        query: The question, whose dimensions are texts.
        policy: Provides the types of the table's columns.

    Raises:
        QuestionError: A construct is not accepted; the message names it, and where it stands.
        RefusedByPolicyError: The policy does not list a name.
    """
    if all(isinstance(each, str) and _NAME.fullmatch(each) for each in query.dimensions):
        return query
    table = policy.table(query.table)
    texts = (text for each in query.dimensions for text in _spelt_out(str(each)))
    found = [_dimension_of(text, table, policy) for text in texts]
    aliases = tuple(each.alias for each in found)
    return replace(
        query, dimensions=tuple(each.of for each in found), aliases=aliases if any(aliases) else ()
    )


def _spelt_out(text: str) -> tuple[str, ...]:
    """Return what a text groups by: of retention, first times and how much later members come back."""
    found = _RETENTION.fullmatch(text)
    if found is None:
        return (text,)
    length, time = found.groups()
    return f"DATE_TRUNC('{length}', MIN({time}))", f"DATE_DIFF('{length}', MIN({time}), {time})"


def _dimension_of(text: str, table: Table, policy: Policy) -> SelectedDimension:
    if _NAME.fullmatch(text):
        return SelectedDimension(text)
    return located(
        lambda: dimension_selected(StatementReader(tokens_of(text)).whole_item(), Scope(table, table.name)),
        text,
        policy.names,
        field="dimensions",
    )


def _condition(text: str, table: Table, grouped: tuple[str, ...]) -> tuple[Filter, ...]:
    root = StatementReader(tokens_of(text)).whole_condition()
    found = filters_of(root, Scope(table, table.name), grouped)
    if found is None:
        refuse(root, "a condition that no row meets is accepted in a whole statement alone")
    return found


def _read(text: str, policy: Policy) -> HistogramQuery:
    reader = StatementReader(tokens_of(text))
    select = flattened(reader.statement(), policy)
    with placed_in(select):
        asked = _question(select, policy)
    if not (reader.explains or reader.max_error):
        return asked
    return replace(asked, explained=reader.explains, max_error=reader.max_error)


def with_places(text: str, policy: Policy, work: Callable[[], _Answer]) -> _Answer:
    """Do what a question in SQL is for, and give an error of the question its place in the text.

    Args:
        text: The statement, which `parse_sql` has read under the same policy.
        policy: The policy.
        work: Answers the question, or prices it.

    Raises:
        QuestionError: As `work` does, with line and column.
        RefusedByPolicyError: The same.
    """
    try:
        return work()
    except (QuestionError, RefusedByPolicyError) as error:
        found = error

    def refuse_again() -> NoReturn:
        select = flattened(StatementReader(tokens_of(text)).statement(), policy)
        raise RefusedHereError(place_of(found, select), found)

    return located(refuse_again, text, policy.names)


def _question(select: tree.Select, policy: Policy) -> HistogramQuery:
    select = without_repeats(select)
    scope = scope_of(select, policy)
    if is_probe(select):
        filters = filters_of(select.where, scope, ())
        if _asks_for_columns(select, filters):
            return probe_of(select, scope, filters or ())
    selected = select_list_of(select, scope)
    if _asks_for_values(select, selected, scope):
        return _of_listed_values(select, selected, scope)
    require_groups(select, selected, scope)
    _check_clauses(select, selected, scope)
    ordered = order_of(select.order, selected, scope)
    measure = _measure(select, selected, ordered, scope)
    filters = filters_of(select.where, scope, selected.names)
    is_free = _asks_for_columns(select, filters)
    dimensions = tuple(each.of for each in selected.dimensions)
    in_order = any(map(is_series, dimensions))
    return HistogramQuery(
        table=scope.table.name,
        dimensions=dimensions,
        measure=measure,
        filters=filters or (),
        free=Free.COLUMNS if is_free else None,
        k=None if selected.quantiles else _limit(select, is_free=is_free),
        omit_counts=not (selected.count or selected.aggregates or selected.quantiles),
        aggregates=selected.aggregates,
        ordered_by=ordered.aggregate,
        quantiles=selected.quantiles,
        ranked=in_order and ordered.ranked,
        by_element=ordered.by_element and not in_order and not selected.quantiles,
        smallest_first=ordered.smallest_first,
        having=() if selected.quantiles else _having(select, selected, measure, scope),
        count_alias=None if selected.count is None else selected.count.alias,
        aliases=_aliases(selected),
        shown=selected.shown,
        in_sql=True,
        over_rows=bool(selected.aggregates)
        and measure is Measure.DISTINCT_MEMBERS
        and not selected.of_members,
        is_of_values=_is_of_values(select, selected, ordered),
    )


def _is_of_values(select: tree.Select, selected: SelectList, ordered: Order) -> bool:
    """Return whether a question needs no count: neither as a number, nor in a condition on numbers."""
    parts = [part for each in selected.aggregates for part in each.parts]
    is_counted = selected.count is not None or ordered.measure is not None or bool(select.having)
    return not is_counted and bool(parts) and all(part.column for part in parts)


def _limit(select: tree.Select, *, is_free: bool) -> int | None:
    if is_free and (select.limit is None or not integer(select.limit)):
        # What is asked for is not shown.
        return MAXIMUM_K
    return None if select.limit is None else integer(select.limit)


def _asks_for_columns(select: tree.Select, filters: tuple[Filter, ...] | None) -> bool:
    """Return whether a question asks for its columns and no rows: LIMIT 0, or a condition that none meets."""
    return filters is None or (select.limit is not None and integer(select.limit) == 0)


def _asks_for_values(select: tree.Select, selected: SelectList, scope: Scope) -> bool:
    """Return whether a question selects no number, and orders by none: then it is about values alone."""
    if selected.columns != selected.dimensions:
        return False
    return select.distinct is not None or not select.order or is_of_elements(select.order, selected, scope)


def _of_listed_values(select: tree.Select, selected: SelectList, scope: Scope) -> HistogramQuery:
    """Return the question for the values of columns whose domains the policy lists, which needs no release."""
    filters = filters_of(select.where, scope, selected.names)
    is_of_columns = _asks_for_columns(select, filters)
    if select.distinct is None and select.group is None and not is_of_columns:
        refuse(select.items[0].value, _ROWS)
    named = [{each.column for each in column_filters(one)} for one in all_of(filters or ())]
    # Of conditions on several columns together the combinations that meet them are not listed.
    is_apart = is_of_columns or all(len(columns) == 1 and columns <= set(selected.names) for columns in named)
    dimensions = tuple(each.of for each in selected.dimensions)
    asked = [scope.table.column(name) for each in dimensions for name in sorted(columns_of(each))]
    is_known = all(column.domain is not None and column.group_by for column in asked)
    is_plain = dimensions == selected.names
    if not ((is_known and is_plain) or is_of_columns) or not is_apart or select.having:
        refuse(select.distinct or select, _DISTINCT)
    if select.group is not None:
        require_groups(select, selected, scope)
    if not order_of(select.order, selected, scope).by_element and select.order:
        refuse(select.order[0].value, _DISTINCT)
    return HistogramQuery(
        table=scope.table.name,
        dimensions=dimensions,
        measure=scope.table.measures.offered[0].measure,
        filters=filters or (),
        k=_limit(select, is_free=True),
        free=Free.COLUMNS if is_of_columns else Free.ELEMENTS,
        aliases=_aliases(selected),
        by_element=False,
        in_sql=True,
    )


def _measure(select: tree.Select, selected: SelectList, ordered: Order, scope: Scope) -> Counted:
    """Return what is counted: what the select list says, or ORDER BY, or what comes with a sum."""
    if selected.count is not None:
        return selected.count.measure
    if selected.counts_members:
        return Measure.DISTINCT_MEMBERS
    in_having = measure_in(select.having, scope) if select.having and selected.aggregates else None
    found = ordered.measure or in_having or measure_without_count(selected, select, scope)
    if found is None:
        member = scope.table.member
        refuse(
            select,
            f"expected COUNT(DISTINCT {member}) or COUNT(*), selected or in ORDER BY: no rows are shown, and values "
            "alone only of columns whose domain the policy lists",
        )
    return found


def _having(
    select: tree.Select, selected: SelectList, measure: Counted, scope: Scope
) -> tuple[HavingCondition, ...]:
    """Return the conditions on what is released; of a total that there are rows is none, for it is always shown."""
    if select.having is None:
        return ()
    if not selected.dimensions and says_that_rows_are(select.having, scope):
        return ()
    return tuple(having_of(select.having, lambda node: place_of_number(node, selected, measure, scope)))


def _aliases(selected: SelectList) -> tuple[str | None, ...]:
    found = tuple(each.alias for each in selected.dimensions)
    return found if any(found) else ()


def _check_clauses(select: tree.Select, selected: SelectList, scope: Scope) -> None:
    """Refuse clauses beside quantiles that would be another choice from the data, at another price."""
    if not selected.quantiles:
        return
    beside, because = "percentiles, MIN and MAX", "every element of the domain is shown"
    is_said = (
        not selected.dimensions and select.having is not None and says_that_rows_are(select.having, scope)
    )
    if select.having is not None and not is_said:
        refuse(select.having, f"HAVING is not accepted beside {beside}: {because}")
    if select.limit is not None and 0 < integer(select.limit) < _most_rows(selected, scope):
        refuse(select.limit, f"LIMIT is not accepted beside {beside}, leave it out: {because}")


def _most_rows(selected: SelectList, scope: Scope) -> float:
    """Return how many rows an answer can have: as many as the policy tells, and no answer more than a million."""
    return min(_NO_LIMIT, prod(_most_values(each.of, scope) for each in selected.dimensions))


def _most_values(dimension: Dimension, scope: Scope) -> float:
    if isinstance(dimension, str):
        return len(scope.table.column(dimension).domain or ()) or inf
    return inf if dimension.values is None else len(dimension.values)


_NAME = re.compile(r"\w{1,128}")
_RETENTION = re.compile(r"\s*RETENTION\(\s*'(\w{1,9})'\s*,\s*(\w{1,128})\s*\)\s*", re.IGNORECASE | re.ASCII)
# What clients write that limit every question.
_NO_LIMIT = 1_000_000
_ROWS = "no rows are shown, only counts: expected COUNT(*) or COUNT(DISTINCT member), and GROUP BY with the columns"
_DISTINCT = (
    "SELECT DISTINCT without a count is answered of columns whose domain the policy lists, without other conditions: "
    "which values the data have is found by GROUP BY and COUNT(*)"
)
