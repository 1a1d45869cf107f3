"""SQL of the accepted subset into the structured form.

    SELECT [dims.., ] count [[AS] alias] [, SUM(value) | AVG(value) [[AS] alias] ..] FROM table [[AS] alias]
    [WHERE conditions joined by AND] [GROUP BY dims..] [ORDER BY count|SUM|AVG DESC [, dims [ASC]]] [LIMIT k]

Without dims and GROUP BY the count is one total. Instead of numbers there may be percentiles (`sql_quantiles`); then
there is neither ORDER BY nor LIMIT.

The count is COUNT(DISTINCT member), for which DISTINCTCOUNT(member), APPROX_COUNT_DISTINCT(member) and
DISTINCTCOUNTHLL(member) are other names - it is exact before noise is added - or COUNT(*). Beside a count of members,
SUM and AVG are over members' totals, one number of each member in each element; beside COUNT(*) they are over rows.
Conditions compare a column with
literals by =, <>, IN, NOT IN, BETWEEN, <, <=, > and >=; OR joins = and IN on one column. GROUP BY may name columns by
position; ORDER BY may name the count, or a sum or an average that is selected, by expression, alias or position. The
count may be left out of the selection if ORDER BY has it: then the question is about the order alone. A column may have
the table's name or alias before it. It may be given an alias behind AS, by which GROUP BY and ORDER BY may name it.
Names are case-sensitive, keywords are not.

`sql_tokens` refuses what a parser would misread, and sqlglot parses the rest. Of its tree, only the kinds of nodes and
arguments named here and in `sql_conditions` and `sql_nodes` are accepted. `sql_grammar` refuses what sqlglot forgives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from dp_service.queries.errors import QuestionError
from dp_service.queries.sql_aliases import alias_name
from dp_service.queries.sql_conditions import parse_conditions
from dp_service.queries.sql_grammar import check_grammar
from dp_service.queries.sql_nodes import Scope, identifier_name, only, plain_name, refuse_node, whole_number
from dp_service.queries.sql_quantiles import is_quantile, selected_quantiles
from dp_service.queries.sql_tokens import COUNTS, Token, check_tokens, refuse
from dp_service.queries.structured import Aggregate, AskedQuantile, Filter, HistogramQuery, Measure
from dp_service.queries.tables import Policy, Table
from dp_service.terms import AggregateFunction

_CLAUSES = (exp.From, exp.Where, exp.Group, exp.Order, exp.Limit)
_NO_TABLE = (
    "expected FROM with a table: SELECT without one, such as SELECT 1, asks for nothing that a policy lists. To test a "
    "connection, read the catalogue, which is free (gris catalog, or catalog() in Python)"
)


@dataclass(frozen=True)
class _Selection:
    """What is between SELECT and FROM; `measure` is None if the count was left out, an alias if there is none."""

    names: tuple[str, ...]
    aliases: tuple[str | None, ...]
    measure: Measure | None
    alias: str | None = field(default=None)
    aggregates: tuple[Aggregate, ...] = ()
    quantiles: tuple[AskedQuantile, ...] = ()

    def column_name(self, node: exp.Expr, scope: Scope) -> str:
        """Return the name of a column that a clause calls by its name or by its alias."""
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            named = identifier_name(node.this)
            if named in self.aliases:
                return self.names[self.aliases.index(named)]
        return scope.column_name(node)


@dataclass(frozen=True)
class _Order:
    """What a list is in the order of: a count, or the aggregate in a place of the selection."""

    measure: Measure | None = None
    aggregate: int | None = None


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
    selection = _selection(select, scope)
    _check_grouping(clauses.get(exp.Group), selection, scope)
    _check_quantiles(selection, clauses)
    ordered = _order(clauses.get(exp.Order), selection, scope)
    measure = selection.measure or ordered.measure
    if measure is None:
        member = scope.table.member
        raise QuestionError(
            "sql", f"expected COUNT(DISTINCT {member}) or COUNT(*), selected last or in ORDER BY"
        )
    return HistogramQuery(
        table=scope.table.name,
        dimensions=selection.names,
        measure=measure,
        filters=_filters(clauses.get(exp.Where), scope),
        k=_limit(clauses.get(exp.Limit)),
        omit_counts=selection.measure is None,
        aggregates=selection.aggregates,
        ordered_by=ordered.aggregate,
        quantiles=selection.quantiles,
        count_alias=selection.alias,
        aliases=selection.aliases if any(selection.aliases) else (),
        in_sql=True,
    )


def _check_quantiles(selection: _Selection, clauses: Mapping[type[exp.Expr], exp.Expr]) -> None:
    """Refuse to order and to cut quantiles: the order would be another choice from the data, at another price."""
    for kind, name in ((exp.Order, "ORDER BY"), (exp.Limit, "LIMIT")):
        if selection.quantiles and kind in clauses:
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


def _selection(select: exp.Select, scope: Scope) -> _Selection:
    if not select.expressions:
        raise QuestionError("sql", "expected SELECT with columns and the count")
    first = next((i for i, each in enumerate(select.expressions) if _is_number(_named(each))), None)
    head, numbers = select.expressions[:first], [] if first is None else select.expressions[first:]
    dimensions = [_dimension(each, scope) for each in head]
    names = tuple(name for name, _ in dimensions)
    aliases = tuple(other for _, other in dimensions)
    if any(is_quantile(_named(each)) for each in numbers):
        quantiles = selected_quantiles(numbers, scope)
        _check_aliases([each for each in (*aliases, *(q.alias for q in quantiles)) if each], None, scope)
        return _Selection(names, aliases, Measure.DISTINCT_MEMBERS, quantiles=quantiles)
    count, alias = _count(numbers, scope)
    if alias in names:
        refuse("an alias that is the name of a column")
    aggregates = tuple(_aggregate(each, scope) for each in numbers[1:])
    given = [each for each in (*aliases, *(each.alias for each in aggregates)) if each is not None]
    _check_aliases(given, alias, scope)
    measure = None if count is None else _measure(count, scope)
    return _Selection(names, aliases, measure, alias, aggregates)


def _count(numbers: Sequence[exp.Expr], scope: Scope) -> tuple[exp.Expr | None, str | None]:
    """Return the count, the first number that is selected, and its alias; None: no number is selected."""
    if not numbers:
        return None, None
    count = _named(numbers[0])
    if not _is_count(count):
        raise QuestionError(
            "sql",
            f"expected COUNT(DISTINCT {scope.table.member}) before SUM and AVG of members' totals, or COUNT(*) before "
            "those of rows: the count comes with them, and costs nothing more",
        )
    return count, _alias_of(numbers[0])


def _aggregate(node: exp.Expr, scope: Scope) -> Aggregate:
    """Return what is selected behind the count."""
    function = _named(node)
    if not isinstance(function, exp.Sum | exp.Avg):
        refuse("a count before a column, or a second count,")
    only(function, "this")
    kind = AggregateFunction.SUM if isinstance(function, exp.Sum) else AggregateFunction.AVERAGE
    return Aggregate(kind, scope.column_name(function.this), _alias_of(node))


def _is_number(node: exp.Expr) -> bool:
    return _is_count(node) or isinstance(node, exp.Sum | exp.Avg) or is_quantile(node)


def _named(node: exp.Expr) -> exp.Expr:
    """Return what an alias names, or the node itself."""
    return node.this if isinstance(node, exp.Alias) else node


def _alias_of(node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Alias):
        return None
    only(node, "this", "alias")
    return alias_name(node.args["alias"])


def _check_aliases(aliases: Sequence[str], count_alias: str | None, scope: Scope) -> None:
    """Refuse a column's alias that could stand for something else as well; engines ignore case, and so does this."""
    columns = {scope.table.member, *(column.name for column in scope.table.columns)}
    folded = [each.casefold() for each in aliases]
    if not set(folded).isdisjoint(map(str.casefold, columns)):
        refuse("an alias that is the name of a column")
    if len({*folded, (count_alias or "").casefold()}) != len(folded) + 1:
        refuse("an alias that is given twice")


def _dimension(node: exp.Expr, scope: Scope) -> tuple[str, str | None]:
    """Return the name of a selected column and its alias; None: it has none but its own name."""
    if not isinstance(node, exp.Alias):
        return scope.column_name(node), None
    only(node, "this", "alias")
    name = scope.column_name(node.this)
    if identifier_name(node.args["alias"]) == name:
        return name, None
    return name, alias_name(node.args["alias"])


def _is_count(node: exp.Expr) -> bool:
    """Return whether a node is a function that counts; `sql_tokens` lets no other function through."""
    named = isinstance(node, exp.Anonymous) and str(node.this).upper() in COUNTS
    return named or isinstance(node, exp.Count | exp.ApproxDistinct)


def _measure(count: exp.Expr, scope: Scope) -> Measure:
    """Return what a count counts: every row, or the distinct members."""
    if isinstance(count, exp.Count):
        only(count, "this", "big_int")
        if isinstance(count.this, exp.Star):
            only(count.this)
            return Measure.EVENTS
        counted = [count.this]
        if isinstance(count.this, exp.Distinct):
            only(count.this, "expressions")
            counted = count.this.expressions
            if _are_members(counted, scope):
                return Measure.DISTINCT_MEMBERS
    else:
        only(count, "this", "expressions")
        counted = count.expressions if isinstance(count, exp.Anonymous) else [count.this]
        if _are_members(counted, scope):
            return Measure.DISTINCT_MEMBERS
    raise QuestionError("sql", _WRONG_COUNT.format(member=scope.table.member))


_WRONG_COUNT = (
    "expected COUNT(DISTINCT {member}) of the table's member column, or COUNT(*): Gris hides who is in the data, so "
    "it counts members and rows, and no values of another column"
)


def _are_members(nodes: list[exp.Expr], scope: Scope) -> bool:
    return [scope.column_name(each) for each in nodes] == [scope.table.member]


def _check_grouping(node: exp.Expr | None, selection: _Selection, scope: Scope) -> None:
    if node is None:
        if selection.names:
            raise QuestionError("sql", _without_grouping(selection, scope.table))
        return
    only(node, "expressions")
    grouped = [_grouped(each, selection, scope) for each in node.expressions]
    if sorted(grouped) != sorted(selection.names):
        raise QuestionError("sql", "expected GROUP BY with exactly the selected columns")


def _without_grouping(selection: _Selection, table: Table) -> str:
    usable = {column.name for column in table.usable_columns if column.group_by}
    # A name that the table does not have may be a value without its quotes, which no message repeats.
    named = f": GROUP BY {', '.join(selection.names)}" if set(selection.names) <= usable else ""
    return f"expected GROUP BY with the selected columns{named}"


def _grouped(node: exp.Expr, selection: _Selection, scope: Scope) -> str:
    """Return the column that a key of GROUP BY names, by its name, its alias or its position in SELECT."""
    position = whole_number(node)
    if position is None:
        return selection.column_name(node, scope)
    if not 1 <= position <= len(selection.names):
        raise QuestionError("sql", f"expected positions of columns in GROUP BY, 1 to {len(selection.names)}")
    return selection.names[position - 1]


def _order(node: exp.Expr | None, selection: _Selection, scope: Scope) -> _Order:
    """Check that the order is by a count, sum or average descending, then by dimensions, and return it."""
    if node is None:
        return _Order()
    only(node, "expressions")
    first, *rest = node.expressions
    key = _ordered(first, descending=True)
    place = _ordering_aggregate(key, selection, scope)
    measure = _ordering_count(key, selection, scope) if place is None else selection.measure
    for each in rest:
        key = _ordered(each, descending=False)
        position = whole_number(key)
        names = selection.names
        if not (1 <= position <= len(names) if position else selection.column_name(key, scope) in names):
            raise QuestionError("sql", "expected ORDER BY with the count and then selected columns")
    return _Order(measure, place)


def _ordering_aggregate(key: exp.Expr, selection: _Selection, scope: Scope) -> int | None:
    """Return the place of the sum or average that ORDER BY names; None: it names none."""
    if isinstance(key, exp.Sum | exp.Avg):
        asked = _aggregate(key, scope)
        if asked not in selection.aggregates:
            raise QuestionError("sql", "expected ORDER BY with a sum or an average that is selected")
        return selection.aggregates.index(asked)
    if (position := whole_number(key)) is not None:
        place = position - len(selection.names) - 2
        return place if 0 <= place < len(selection.aggregates) else None
    if not isinstance(key, exp.Column) or key.args.get("table") is not None:
        return None
    aliases = [each.alias for each in selection.aggregates]
    name = identifier_name(key.this)
    return aliases.index(name) if name in aliases else None


def _ordered(node: exp.Expr, *, descending: bool) -> exp.Expr:
    # Elements are never NULL, so the position of NULLs makes no difference.
    only(node, "this", "desc", "nulls_first")
    if bool(node.args.get("desc")) is not descending:
        raise QuestionError("sql", "expected ORDER BY with the count descending and then columns ascending")
    return node.this  # type: ignore[no-any-return]


def _ordering_count(key: exp.Expr, selection: _Selection, scope: Scope) -> Measure | None:
    if _is_count(key):
        measure = _measure(key, scope)
        if selection.measure not in (None, measure):
            raise QuestionError("sql", "expected ORDER BY with the count that is selected")
        return measure
    position = whole_number(key)
    named = position == len(selection.names) + 1 if position is not None else _alias(key) == selection.alias
    if selection.measure is None or not named:
        raise QuestionError("sql", "expected ORDER BY with the count first")
    return selection.measure


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
