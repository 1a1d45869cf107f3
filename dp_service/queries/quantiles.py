"""What a question for quantiles releases, and which of them can be answered.

Everything is decided from the question and the policy: the domain of the groups is known, and so are the cells, so no
row of the data decides whether there is an answer or how long it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dp_service.parameters.aggregates import QuantilesReleased, ShownQuantile
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.advice import median, per_member
from dp_service.queries.asked_numbers import AskedQuantile
from dp_service.queries.columns import Column
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.terms import CountNoise, MechanismName, MemberValue, ValueType
from dp_service.values.cells import Grid

MAXIMUM_CHOICES = 2_000
"""How many values are chosen at most, all elements together: more would take longer than seconds."""
MAXIMUM_GROUPED_CELLS = 1_000_000
"""How many cells all elements have together at most, which is how many rows an engine answers with."""


def require_quantiles(query: HistogramQuery, table: Table, dimensions: Sequence[Column]) -> None:
    """Check that the policy lets a question's quantiles be asked for, in these groups; of others nothing is checked.

    Raises:
        RefusedByPolicyError: It lists no such column, the groups have no domain, or nothing bounds in how many of them
            a member has a value.
    """
    if not query.quantiles:
        return
    _require_values(query.quantiles[0], table)
    unknown = [column.name for column in dimensions if column.domain is None]
    if unknown:
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"{unknown[0]}: quantiles are offered by columns whose domain the policy lists or names as published: "
            "each element has its own, and which there are must be known beforehand. Of all rows, a median is "
            f"{median(table, query.quantiles[0].column)}",
        )
    if dimensions and table.contributions is None:
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            "quantiles by a column are offered only where the policy bounds contributions: their price grows with the "
            "number of elements in which a member has a value; without GROUP BY they need no bound",
        )


def _require_values(asked: AskedQuantile, table: Table) -> None:
    """Check that the policy says how many rows of a member count, or that its rows can be added up."""
    column = table.quantile(asked.column)
    of_members = per_member(table, "PERCENTILE(value, 50)", f"MAX({column.name})")
    if asked.of is MemberValue.ROWS and not table.measures.counts_rows:
        raise RefusedByPolicyError(
            Rule.MEASURE,
            f"quantiles, MIN and MAX of {column.name} are over rows, of which the policy does not say how many of a "
            f"member count (measures.rows); of one value for each member they are offered: {of_members}",
        )
    if asked.of not in (MemberValue.TOTAL, MemberValue.MEAN):
        return
    if column.type is ValueType.DATE or table.contributions is None or table.contributions.sums is None:
        raise RefusedByPolicyError(
            Rule.MEASURE,
            f"quantiles of members' sums and averages of {column.name} are offered of numbers, and where the policy "
            f"has contributions.sums with max_rows; of each member's largest value they are offered: {of_members}",
        )


def releasing_quantiles(
    parameters: ReleaseParameters, query: HistogramQuery, table: Table
) -> ReleaseParameters:
    """Return the parameters of a release of quantiles, if the question asks for any.

    Raises:
        QuestionError: There are too many elements for so many quantiles or cells.
    """
    if not query.quantiles:
        return parameters
    column = table.quantile(query.quantiles[0].column)
    rule = query.quantiles[0].of
    asked = tuple(ShownQuantile(each.function, each.q, each.alias or "") for each in query.quantiles)
    released = QuantilesReleased.of(
        column.name,
        column.bounds.quantum.size,
        column.cells_of(rule),
        rule,
        asked,
        ordered_by=query.ordered_by,
    )
    groups = len(parameters.domain or ())
    if groups * len(asked) > MAXIMUM_CHOICES:
        raise QuestionError(
            "quantiles",
            f"expected at most {MAXIMUM_CHOICES} values, all elements together, got {groups * len(asked)}",
        )
    if groups * len(Grid.of(released.grid)) > MAXIMUM_GROUPED_CELLS:
        raise QuestionError(
            "dimensions",
            f"expected at most {MAXIMUM_GROUPED_CELLS} cells, all elements together; {groups} elements with "
            f"{len(Grid.of(released.grid))} cells each have more",
        )
    bounded = parameters.contributions
    reach = 1 if bounded is None else min(groups, bounded.typical)
    of_all = None if bounded is None else replace(bounded, shifted=False, units=reach * released.units)
    return replace(
        parameters,
        delta_l0=reach,
        contributions=of_all,
        mechanism=MechanismName.QUANTILE_GUMB,
        with_counts=False,
        count_noise=CountNoise.LAPLACE,
        quantiles=released,
    )
