"""What is refused where a promise, or a copy that was made before, bounds members, and not the query."""

from __future__ import annotations

from collections.abc import Sequence

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.columns import Column
from dp_service.queries.dimensions import labels_of
from dp_service.queries.errors import RefusedByPolicyError, Rule
from dp_service.queries.functions.function import Function
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.suggestions import listed
from dp_service.queries.tables import Table
from dp_service.terms import BoundedBy


def require_all_rows(function: Function, table: Table) -> None:
    """Refuse a function of all of a member's rows where rows were left out, or a promise is of other elements."""
    block = table.contributions
    bounded = None if block is None else block.bounded_by
    if bounded is BoundedBy.PREPARED:
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"{function} is not offered for the table {table.name}: it has bound: {bounded}, and such a copy has "
            "one row for each member and element; bound: in_query bounds members of the whole table",
        )
    if bounded is BoundedBy.ASSUMED and function.is_several_of_member:
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"{function} is not offered for the table {table.name}: it has bound: {bounded}, which promises nothing "
            "of the buckets that a member comes back in; bound: in_query bounds members in any",
        )


def require_bounded(table: Table) -> None:
    """Refuse bins and parts of texts where it is not the query that bounds members.

    What a copy was bounded in, or what is promised, are elements of columns. How many rows a member has in an element,
    tau, is of the column as well, and several of its values may become one.
    """
    block = table.contributions
    if block is not None and block.bounded_by is not BoundedBy.IN_QUERY:
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"bins and parts of texts are not offered for the table {table.name}: it has bound: "
            f"{block.bounded_by}, which bounds members in elements of columns as they are; bound: in_query bounds them "
            "in any",
        )


def require_bounded_rows(query: HistogramQuery, table: Table, dimensions: Sequence[Column]) -> None:
    """Refuse rows whose number a promise bounds in one element of a column, and not in what is computed of several.

    All elements of a member may have the same looked-up value, and be in the same bucket.
    """
    if query.measure is not Measure.EVENTS or table.clips(query) or not dimensions:
        return
    of_table = {each.name for each in table.own_columns}
    if any(each.name in of_table for each in dimensions):
        return
    labels = zip(labels_of(query.dimensions), query.dimensions, strict=True)
    functions = [label or str(each) for label, each in labels]
    raise RefusedByPolicyError(
        Rule.MEASURE,
        f"COUNT(*) by {listed(functions)} alone is not offered for the table {table.name}: the policy assumes how many "
        "rows a member has in one element of a column of the table (tau_is: assumed), which bounds nothing that is "
        "computed or looked up. It is offered where the query clips (rows, or tau_is: clipped)",
    )
