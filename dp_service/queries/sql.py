"""SQL of the accepted subset into the structured form.

    SELECT [dims.., ] count [[AS] alias] [, SUM(value) | AVG(value) [[AS] alias] ..] FROM table [[AS] alias]
    [WHERE conditions joined by AND] [GROUP BY dims.. | GROUPING SETS ((a, b), (a))] [HAVING conditions on numbers]
    [ORDER BY count|SUM|AVG DESC [, dims [ASC]]] [LIMIT k]

One of dims may be DATE_TRUNC('month', time): then ORDER BY may also be dims [ASC] alone, as it is without ORDER BY.

GROUPING SETS asks for two columns, and for totals by one of them (`sql_totals`); then there is neither ORDER BY nor
LIMIT. Without dims and GROUP BY the count is one total. Instead of numbers there may be percentiles
(`sql_quantiles`); then there is neither ORDER BY nor LIMIT.

The count is COUNT(DISTINCT member), for which DISTINCTCOUNT(member), APPROX_COUNT_DISTINCT(member) and
DISTINCTCOUNTHLL(member) are other names - it is exact before noise is added - or COUNT(*). Beside a count of members,
SUM and AVG are over members' totals, one number of each member in each element; beside COUNT(*) they are over rows.
Conditions compare a column with
literals by =, <>, IN, NOT IN, BETWEEN, <, <=, > and >=; OR joins = and IN on one column. GROUP BY may name columns by
position; ORDER BY may name the count, or a sum or an average that is selected, by expression, alias or position. The
count may be left out of the select list if ORDER BY has it: then the question is about the order alone. A column may
have the table's name or alias before it. It may be given an alias behind AS, by which GROUP BY and ORDER BY may name
it. Names are case-sensitive, keywords are not.

`sql_tokens` refuses what a parser would misread, and sqlglot parses the rest. Of its tree, only the kinds of nodes and
arguments named here and in `sql_conditions` and `sql_nodes` are accepted. `sql_grammar` refuses what sqlglot forgives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from dp_service.parameters.release import HavingCondition
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Filter
from dp_service.queries.sql_aliases import alias_name
from dp_service.queries.sql_conditions import parse_conditions
from dp_service.queries.sql_grammar import check_grammar
from dp_service.queries.sql_having import parse_having
from dp_service.queries.sql_nodes import Scope, identifier_name, only, plain_name, refuse_node, whole_number
from dp_service.queries.sql_select_list import SelectList, aggregate_of, is_count, measure_of, select_list_of
from dp_service.queries.sql_time import is_bucket
from dp_service.queries.sql_tokens import Token, check_tokens, refuse
from dp_service.queries.sql_totals import totals_of
from dp_service.queries.structured import Bucket, HistogramQuery, Measure
from dp_service.queries.tables import Policy, Table

_CLAUSES = (exp.From, exp.Where, exp.Group, exp.Having, exp.Order, exp.Limit)
_NO_TABLE = (
    "expected FROM with a table: SELECT without one, such as SELECT 1, asks for nothing that a policy lists. To test a "
    "connection, read the catalogue, which is free (gris catalog, or catalog() in Python)"
)


@dataclass(frozen=True)
class _Order:
    """What a list is in the order of: a count, or the aggregate in a place of the select list; `ranked`: either."""

    measure: Measure | None = None
    aggregate: int | None = None
    ranked: bool = False


def parse_sql(text: str, policy: Policy) -> HistogramQuery:
    """Parse a question in SQL into the structured form.

    Args:
        text: The statement, with or without a semicolon at its end.
        policy: Provides the table's member column and the types of its columns.

    Raises:
        QuestionError: A construct is not accepted; the message names it.
        RefusedByPolicyError: The policy does not list a name.
    """
    tokens = check_tokens(text)
    query = _question(_parse(text, tokens), policy)
    # Last, because the tree names better what is not accepted.
    check_grammar(tokens)
    return query


def _question(select: exp.Select, policy: Policy) -> HistogramQuery:
    # By exact type: for sqlglot SORT BY and DISTRIBUTE BY are kinds of ORDER BY.
    clauses = {type(node): node for node in select.args.values() if type(node) in _CLAUSES}
    only(select, "expressions", *(key for key, node in select.args.items() if type(node) in _CLAUSES))
    scope = _scope(clauses.get(exp.From), policy)
    select_list = select_list_of(select, scope)
    totals_by = _check_grouping(clauses.get(exp.Group), select_list, scope)
    _check_quantiles(select_list, clauses)
    _check_totals(totals_by, clauses)
    ordered = _order(clauses.get(exp.Order), select_list, scope)
    measure = select_list.measure or ordered.measure
    if measure is None:
        member = scope.table.member
        raise QuestionError(
            "sql", f"expected COUNT(DISTINCT {member}) or COUNT(*), selected last or in ORDER BY"
        )
    return HistogramQuery(
        table=scope.table.name,
        dimensions=select_list.names,
        measure=measure,
        filters=_filters(clauses.get(exp.Where), scope),
        k=_limit(clauses.get(exp.Limit)),
        omit_counts=select_list.measure is None,
        aggregates=select_list.aggregates,
        ordered_by=ordered.aggregate,
        quantiles=select_list.quantiles,
        bucket=None if select_list.bucket is None else Bucket(select_list.bucket, ordered.ranked),
        having=_having(clauses.get(exp.Having), select_list, scope),
        totals_by=totals_by,
        count_alias=select_list.alias,
        aliases=select_list.aliases if any(select_list.aliases) else (),
        in_sql=True,
    )


def _check_quantiles(select_list: SelectList, clauses: Mapping[type[exp.Expr], exp.Expr]) -> None:
    """Refuse to filter, order and cut quantiles: that would be another choice from the data, at another price."""
    for kind, name in ((exp.Having, "HAVING"), (exp.Order, "ORDER BY"), (exp.Limit, "LIMIT")):
        if select_list.quantiles and kind in clauses:
            raise QuestionError(
                "sql",
                f"{name} is not accepted beside percentiles, MIN and MAX: every element of the domain is shown, in its "
                "order; order the result afterwards",
            )


def _parse(text: str, tokens: list[Token]) -> exp.Select:
    # Without the semicolon, after which a second statement would begin.
    whole = text[: tokens[-1].start] if tokens[-1].kind == "end" else text
    position = ""
    try:
        statements = sqlglot.parse(whole)
    except (SqlglotError, RecursionError) as error:
        statements, position = [], _position(error)
    if not statements:
        # Outside of the handler: the parser's message repeats the text, and must not be the context of ours.
        check_grammar(tokens)
        raise QuestionError("sql", f"expected SQL that can be parsed{position}")
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        refuse("a statement other than one plain SELECT")
    return statements[0]


def _position(error: Exception) -> str:
    """Return where the parser stopped, if it says so."""
    first = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    line, column = first.get("line"), first.get("col")
    return f"; the parser stopped in line {line} at character {column}" if line and column else ""


def _scope(node: exp.Expr | None, policy: Policy) -> Scope:
    if node is None:
        raise QuestionError("sql", _NO_TABLE)
    only(node, "this")
    if not isinstance(node.this, exp.Table):
        refuse("a FROM clause other than of one table")
    only(node.this, "this", "alias")
    table = policy.table(plain_name(node.this.this))
    alias = node.this.args.get("alias")
    if alias is None:
        return Scope(table, table.name)
    only(alias, "this")
    return Scope(table, alias_name(alias.this))


def _check_grouping(node: exp.Expr | None, select_list: SelectList, scope: Scope) -> str | None:
    """Check that the groups are of the selected columns, and return of which column totals are asked for, if of any."""
    if node is None:
        if select_list.names:
            raise QuestionError("sql", _without_grouping(select_list, scope.table))
        return None
    only(node, "expressions")
    if any(isinstance(each, exp.GroupingSets) for each in node.expressions):
        return totals_of(node.expressions, select_list, scope)
    grouped = [select_list.at(each, "GROUP BY") or select_list.key(each, scope) for each in node.expressions]
    if len(grouped) != len(select_list.dimensions) or set(grouped) != set(select_list.dimensions):
        raise QuestionError("sql", "expected GROUP BY with exactly the selected columns")
    return None


def _check_totals(totals_by: str | None, clauses: Mapping[type[exp.Expr], exp.Expr]) -> None:
    """Refuse to order and cut a list with totals, for SQL would mix them with the elements, and to filter it."""
    if totals_by is not None and exp.Having in clauses:
        raise QuestionError(
            "sql", "HAVING is not accepted beside GROUPING SETS: totals are beside a whole list"
        )
    for kind, name in ((exp.Order, "ORDER BY"), (exp.Limit, "LIMIT")):
        if totals_by is not None and kind in clauses:
            raise QuestionError(
                "sql",
                f"{name} is not accepted beside GROUPING SETS: it would mix totals with elements, which are in the "
                "order of their counts; a structured question with totals_by takes k",
            )


def _without_grouping(select_list: SelectList, table: Table) -> str:
    usable = {column.name for column in table.usable_columns if column.group_by}
    # A name that the table does not have may be a value without its quotes, which no message repeats.
    named = f": GROUP BY {', '.join(select_list.names)}" if set(select_list.names) <= usable else ""
    return f"expected GROUP BY with the selected columns{named}"


def _order(node: exp.Expr | None, select_list: SelectList, scope: Scope) -> _Order:
    """Check that the order is by a count, sum or average descending, then by dimensions, and return it.

    With a bucket of time it may be by dimensions alone, in their own order.
    """
    if node is None:
        return _Order()
    only(node, "expressions")
    first, *rest = node.expressions
    if select_list.bucket is not None and _is_in_time_order(node.expressions, select_list, scope):
        return _Order()
    key = _ordered(first, descending=True)
    place = _ordering_aggregate(key, select_list, scope)
    measure = _ordering_count(key, select_list, scope) if place is None else select_list.measure
    for each in rest:
        key = _ordered(each, descending=False)
        position = whole_number(key)
        dimensions = select_list.dimensions
        if not (1 <= position <= len(dimensions) if position else select_list.key(key, scope) in dimensions):
            raise QuestionError("sql", "expected ORDER BY with the count and then selected columns")
    return _Order(measure, place, ranked=True)


def _is_in_time_order(keys: Sequence[exp.Expr], select_list: SelectList, scope: Scope) -> bool:
    """Return whether the order is by selected columns and buckets, ascending; they come in the order of SELECT."""
    if not _names_dimension(keys[0].this, select_list, scope):
        return False
    if any(each.args.get("desc") for each in keys):
        raise QuestionError("sql", _TIME_ORDER)
    plain = [_ordered(each, descending=False) for each in keys]
    named = tuple(select_list.at(key, "ORDER BY") or select_list.key(key, scope) for key in plain)
    if named != select_list.dimensions[: len(named)]:
        raise QuestionError("sql", _TIME_ORDER)
    return True


_TIME_ORDER = (
    "expected ORDER BY with the selected columns, ascending and in the order of SELECT: a series is a list in the "
    "order of time. Select DATE_TRUNC(..) first to have all elements of one bucket together"
)


def _names_dimension(key: exp.Expr, select_list: SelectList, scope: Scope) -> bool:
    """Return whether a key of ORDER BY names a selected column or bucket, and no number."""
    if (position := whole_number(key)) is not None:
        return position <= len(select_list.dimensions)
    if is_bucket(key):
        return select_list.key(key, scope) in select_list.dimensions
    if not isinstance(key, exp.Column):
        return False
    numbers = {select_list.alias, *(each.alias for each in select_list.aggregates)} - {None}
    return key.args.get("table") is not None or identifier_name(key.this) not in numbers


def _ordering_aggregate(key: exp.Expr, select_list: SelectList, scope: Scope) -> int | None:
    """Return the place of the sum or average that ORDER BY names; None: it names none."""
    if isinstance(key, exp.Sum | exp.Avg):
        asked = aggregate_of(key, scope)
        if asked not in select_list.aggregates:
            raise QuestionError(
                "sql", "expected ORDER BY and HAVING with a sum or an average that is selected"
            )
        return select_list.aggregates.index(asked)
    if (position := whole_number(key)) is not None:
        place = position - len(select_list.names) - 2
        return place if 0 <= place < len(select_list.aggregates) else None
    if not isinstance(key, exp.Column) or key.args.get("table") is not None:
        return None
    aliases = [each.alias for each in select_list.aggregates]
    name = identifier_name(key.this)
    return aliases.index(name) if name in aliases else None


def _having(node: exp.Expr | None, select_list: SelectList, scope: Scope) -> tuple[HavingCondition, ...]:
    if node is None:
        return ()
    only(node, "this")
    return tuple(parse_having(node.this, lambda key: _having_number(key, select_list, scope)))


def _having_number(key: exp.Expr, select_list: SelectList, scope: Scope) -> int | None:
    """Return the place of the sum or average that a condition of HAVING is on; None: it is on the count."""
    if whole_number(key) is None:
        place = _ordering_aggregate(key, select_list, scope)
        if place is not None or _names_count(key, select_list, scope):
            return place
    raise QuestionError(
        "sql",
        "expected HAVING with the count, a sum or an average that is selected; conditions on columns are in WHERE",
    )


def _names_count(key: exp.Expr, select_list: SelectList, scope: Scope) -> bool:
    if select_list.measure is None:
        return False
    if is_count(key):
        return measure_of(key, scope) is select_list.measure
    is_alias = isinstance(key, exp.Column) and key.args.get("table") is None
    return is_alias and identifier_name(key.this) == select_list.alias


def _ordered(node: exp.Expr, *, descending: bool) -> exp.Expr:
    # Elements are never NULL, so the position of NULLs makes no difference.
    only(node, "this", "desc", "nulls_first")
    if bool(node.args.get("desc")) is not descending:
        raise QuestionError("sql", "expected ORDER BY with the count descending and then columns ascending")
    return node.this  # type: ignore[no-any-return]


def _ordering_count(key: exp.Expr, select_list: SelectList, scope: Scope) -> Measure | None:
    if is_count(key):
        measure = measure_of(key, scope)
        if select_list.measure not in (None, measure):
            raise QuestionError("sql", "expected ORDER BY with the count that is selected")
        return measure
    position = whole_number(key)
    named = (
        position == len(select_list.names) + 1 if position is not None else _alias(key) == select_list.alias
    )
    if select_list.measure is None or not named:
        raise QuestionError("sql", "expected ORDER BY with the count first")
    return select_list.measure


def _alias(key: exp.Expr) -> str:
    """Return the name that a key of ORDER BY consists of: an alias has no table before it."""
    if not isinstance(key, exp.Column):
        refuse_node(key)
    if key.args.get("table") is not None:
        refuse("a table before the alias of the count, or before another column than the count in ORDER BY,")
    only(key, "this")
    return identifier_name(key.this)


def _filters(node: exp.Expr | None, scope: Scope) -> tuple[Filter, ...]:
    if node is None:
        return ()
    only(node, "this")
    return tuple(parse_conditions(node.this, scope))


def _limit(node: exp.Expr | None) -> int | None:
    if node is None:
        return None
    only(node, "expression")
    k = whole_number(node.args["expression"])
    if k is None:
        raise QuestionError("sql", "expected LIMIT with a whole number, how many elements to show")
    return k
