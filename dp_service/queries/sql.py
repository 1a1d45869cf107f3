"""SQL of the accepted subset into the structured form.

    SELECT dims.., COUNT(DISTINCT member) | COUNT(*) [[AS] alias] FROM table
    [WHERE conditions joined by AND] GROUP BY dims.. [ORDER BY count DESC [, dims [ASC]]] [LIMIT k]

Conditions compare a column with literals by =, <>, IN, NOT IN, BETWEEN, <, <=, > and >=. ORDER BY may name the count by
expression, alias or position. The count may be left out of the selection if ORDER BY has it: then the question is about
the order alone. Names are case-sensitive, keywords are not.

`sql_tokens` refuses what a parser would forgive, and sqlglot parses the rest. Of its tree, only the kinds of nodes and
arguments named here and in `sql_conditions` and `sql_nodes` are accepted.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dp_service.queries.errors import QuestionError
from dp_service.queries.sql_conditions import parse_conditions
from dp_service.queries.sql_nodes import column_name, identifier_name, only, whole_number
from dp_service.queries.sql_tokens import check_tokens, refuse
from dp_service.queries.structured import Filter, HistogramQuery, Measure
from dp_service.queries.tables import Policy, Table

_CLAUSES = (exp.From, exp.Where, exp.Group, exp.Order, exp.Limit)


@dataclass(frozen=True)
class _Selection:
    """What is between SELECT and FROM; `measure` is None if the count was left out."""

    names: tuple[str, ...]
    measure: Measure | None
    alias: str | None


def parse_sql(text: str, policy: Policy) -> HistogramQuery:
    """Parse a question in SQL into the structured form.

    Args:
        text: The statement, with or without a semicolon at its end.
        policy: Provides the table's member column and the types of its columns.

    Raises:
        QuestionError: A construct is not accepted; the message names it.
        RefusedByPolicyError: The policy does not list a name.
    """
    select = _parse(check_tokens(text))
    # By exact type: for sqlglot SORT BY and DISTRIBUTE BY are kinds of ORDER BY.
    clauses = {type(node): node for node in select.args.values() if type(node) in _CLAUSES}
    only(select, "expressions", *(key for key, node in select.args.items() if type(node) in _CLAUSES))
    table = _table(clauses.get(exp.From), policy)
    selection = _selection(select, table)
    _check_grouping(clauses.get(exp.Group), selection.names)
    ordered = _order(clauses.get(exp.Order), selection, table)
    measure = selection.measure or ordered
    if measure is None:
        raise QuestionError(
            "sql", "expected COUNT(DISTINCT member) or COUNT(*), selected last or in ORDER BY"
        )
    return HistogramQuery(
        table=table.name,
        dimensions=selection.names,
        measure=measure,
        filters=_filters(clauses.get(exp.Where), table),
        k=_limit(clauses.get(exp.Limit)),
        omit_counts=selection.measure is None,
        count_alias=selection.alias,
    )


def _parse(text: str) -> exp.Select:
    try:
        statements = sqlglot.parse(text)
    except (SqlglotError, RecursionError):
        # From None: the parser's message repeats the text.
        raise QuestionError("sql", "expected SQL that can be parsed") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        refuse("a statement other than one plain SELECT")
    return statements[0]


def _table(node: exp.Expr | None, policy: Policy) -> Table:
    if node is None:
        raise QuestionError("sql", "expected FROM with a table")
    only(node, "this")
    if not isinstance(node.this, exp.Table):
        refuse("a FROM clause other than of one table")
    only(node.this, "this")
    return policy.table(identifier_name(node.this.this))


def _selection(select: exp.Select, table: Table) -> _Selection:
    if not select.expressions:
        raise QuestionError("sql", "expected SELECT with columns and the count")
    *head, last = select.expressions
    alias = None
    if isinstance(last, exp.Alias) and isinstance(last.this, exp.Count):
        only(last, "this", "alias")
        last, alias = last.this, identifier_name(last.args["alias"])
    counted = isinstance(last, exp.Count)
    names = tuple(column_name(each) for each in (head if counted else select.expressions))
    if alias in names:
        refuse("an alias that is the name of a column")
    return _Selection(names, _measure(last, table) if counted else None, alias)


def _measure(count: exp.Expr, table: Table) -> Measure:
    """Return what a COUNT counts: every row, or the distinct members."""
    only(count, "this", "big_int")
    if isinstance(count.this, exp.Star):
        only(count.this)
        return Measure.EVENTS
    if isinstance(count.this, exp.Distinct):
        only(count.this, "expressions")
        if [column_name(each) for each in count.this.expressions] == [table.member]:
            return Measure.DISTINCT_MEMBERS
    raise QuestionError("sql", "expected COUNT(DISTINCT member) of the table's member column, or COUNT(*)")


def _check_grouping(node: exp.Expr | None, names: tuple[str, ...]) -> None:
    if node is None:
        raise QuestionError("sql", "expected GROUP BY with the selected columns")
    only(node, "expressions")
    grouped = [column_name(each) for each in node.expressions]
    if sorted(grouped) != sorted(names):
        raise QuestionError("sql", "expected GROUP BY with exactly the selected columns")


def _order(node: exp.Expr | None, selection: _Selection, table: Table) -> Measure | None:
    """Check that the order is by count descending, then by dimensions; return the measure if ORDER BY has it."""
    if node is None:
        return None
    only(node, "expressions")
    first, *rest = node.expressions
    measure = _ordering_count(_ordered(first, descending=True), selection, table)
    for each in rest:
        key = _ordered(each, descending=False)
        position = whole_number(key)
        if not (1 <= position <= len(selection.names) if position else column_name(key) in selection.names):
            raise QuestionError("sql", "expected ORDER BY with the count and then selected columns")
    return measure


def _ordered(node: exp.Expr, *, descending: bool) -> exp.Expr:
    # Elements are never NULL, so the position of NULLs makes no difference.
    only(node, "this", "desc", "nulls_first")
    if bool(node.args.get("desc")) is not descending:
        raise QuestionError("sql", "expected ORDER BY with the count descending and then columns ascending")
    return node.this  # type: ignore[no-any-return]


def _ordering_count(key: exp.Expr, selection: _Selection, table: Table) -> Measure | None:
    if isinstance(key, exp.Count):
        measure = _measure(key, table)
        if selection.measure not in (None, measure):
            raise QuestionError("sql", "expected ORDER BY with the count that is selected")
        return measure
    position = whole_number(key)
    named = (
        position == len(selection.names) + 1 if position is not None else column_name(key) == selection.alias
    )
    if selection.measure is None or not named:
        raise QuestionError("sql", "expected ORDER BY with the count first")
    return selection.measure


def _filters(node: exp.Expr | None, table: Table) -> tuple[Filter, ...]:
    if node is None:
        return ()
    only(node, "this")
    return tuple(parse_conditions(node.this, table))


def _limit(node: exp.Expr | None) -> int | None:
    if node is None:
        return None
    only(node, "expression")
    k = whole_number(node.args["expression"])
    if k is None:
        raise QuestionError("sql", "expected LIMIT with a whole number")
    return k
