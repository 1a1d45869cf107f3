"""SQL into the structured form: the words that people, BI tools and language models write for one question.

    SELECT dims.., numbers.. FROM table [[AS] alias] [WHERE conditions]
    [GROUP BY dims.. | ALL | GROUPING SETS ((a, b), (a))] [HAVING conditions on numbers]
    [ORDER BY number DESC [, dims [ASC]]] [LIMIT k | FETCH FIRST k ROWS ONLY]

One of dims may be DATE_TRUNC('month', time): then ORDER BY may also be dims [ASC] alone, as it is without ORDER BY.
Numbers are one count, with sums and averages, or percentiles (`numbers`). A count comes with every sum and average,
whether or not it is selected. Beside a count of members SUM and AVG are over members' totals, one number of each member
in each element; beside COUNT(*) they are over rows, and so is AVG alone. Without dims the count is one total. Without a
number, but with a count in ORDER BY, the question is about the order alone.

GROUPING SETS asks for two columns, and for totals by one of them; then there is neither ORDER BY nor LIMIT, and neither
there is beside percentiles.

Conditions compare a column with literals by =, <>, IN, NOT IN, BETWEEN, <, <=, > and >=; OR joins = and IN on one
column. Comments, a semicolon at the end, conditions that say nothing (1 = 1), and statements around a statement that
only name, filter or order (`wrappers`) have no meaning of their own. Names are case-sensitive, keywords are not.

`tokens` divides a text, `expressions` and `statements` read it by recursive descent into a `tree` and refuse what is no
such statement; what the tree asks for is read here. Everything that is refused is named with its line and column.
"""

from __future__ import annotations

from dp_service.queries.errors import QuestionError
from dp_service.queries.sql import tree
from dp_service.queries.sql.conditions import filters_of, having_of
from dp_service.queries.sql.ordering import Order, order_of, place_of_number, totals_by
from dp_service.queries.sql.places import located, refuse
from dp_service.queries.sql.scope import Scope, integer, scope_of
from dp_service.queries.sql.select_list import SelectList, measure_without_count, select_list_of
from dp_service.queries.sql.statements import StatementReader
from dp_service.queries.sql.tokens import tokens_of
from dp_service.queries.sql.wrappers import flattened
from dp_service.queries.structured import Bucket, HistogramQuery, Measure
from dp_service.queries.tables import Policy


def parse_sql(text: str, policy: Policy) -> HistogramQuery:
    """Read a question in SQL into the structured form.

    Args:
        text: The statement, with or without a semicolon at its end.
        policy: Provides the table's member column and the types of its columns.

    Raises:
        QuestionError: A construct is not accepted; the message names it, and where it stands.
        RefusedByPolicyError: The policy does not list a name.
    """
    return located(lambda: _question(_statement(text), policy), text, policy.names)


def _statement(text: str) -> tree.Select:
    return flattened(StatementReader(tokens_of(text)).statement())


def _question(select: tree.Select, policy: Policy) -> HistogramQuery:
    scope = scope_of(select, policy)
    selected = select_list_of(select, scope)
    totals = totals_by(select, selected, scope)
    _check_clauses(select, selected, totals)
    ordered = order_of(select.order, selected, scope)
    measure = _measure(select, selected, ordered, scope)
    return HistogramQuery(
        table=scope.table.name,
        dimensions=selected.names,
        measure=measure,
        filters=() if select.where is None else filters_of(select.where, scope, selected.names),
        k=None if select.limit is None else integer(select.limit),
        omit_counts=not (selected.count or selected.aggregates or selected.quantiles),
        aggregates=selected.aggregates,
        ordered_by=ordered.aggregate,
        quantiles=selected.quantiles,
        bucket=None if selected.bucket is None else Bucket(selected.bucket, ordered.ranked),
        having=()
        if select.having is None
        else tuple(having_of(select.having, lambda node: place_of_number(node, selected, measure, scope))),
        totals_by=totals,
        count_alias=None if selected.count is None else selected.count.alias,
        aliases=_aliases(selected),
        shown=selected.shown,
        in_sql=True,
    )


def _measure(select: tree.Select, selected: SelectList, ordered: Order, scope: Scope) -> Measure:
    """Return what is counted: what the select list says, or ORDER BY, or what comes with a sum."""
    if selected.count is not None:
        return selected.count.measure
    found = ordered.measure or measure_without_count(selected, select, scope)
    if found is None:
        member = scope.table.member
        refuse(select, f"expected COUNT(DISTINCT {member}) or COUNT(*), selected or in ORDER BY")
    return found


def _aliases(selected: SelectList) -> tuple[str | None, ...]:
    found = tuple(each.alias for each in selected.dimensions)
    return found if any(found) else ()


def _check_clauses(select: tree.Select, selected: SelectList, totals: str | None) -> None:
    """Refuse clauses that would be another choice from the data, at another price."""
    if select.distinct is not None and selected.columns == selected.dimensions:
        refuse(select.distinct, "SELECT DISTINCT is not accepted: GROUP BY with a count finds values")
    clauses = {
        "HAVING": select.having,
        "ORDER BY": select.order[0].value if select.order else None,
        "LIMIT": select.limit,
    }
    for name, clause in clauses.items():
        if clause is not None and selected.quantiles:
            refuse(
                clause,
                f"{name} is not accepted beside percentiles, MIN and MAX: every element of the domain is shown, in its "
                "order; order the result afterwards",
            )
        if clause is not None and totals is not None:
            refuse(clause, _TOTALS[name])


_MIXES = (
    "is not accepted beside GROUPING SETS: it would mix totals with elements, which are in the order of their counts; "
    "a structured question with totals_by takes k"
)
_TOTALS = {
    "HAVING": "HAVING is not accepted beside GROUPING SETS: totals are beside a whole list",
    "ORDER BY": f"ORDER BY {_MIXES}",
    "LIMIT": f"LIMIT {_MIXES}",
}
__all__ = ["QuestionError", "parse_sql"]
