"""What a question for quantiles releases, and which of them can be answered.

Everything is decided from the question and the policy: the domain of the groups is known, or how many names a first
look keeps at most, and so are the cells, so no row of the data decides whether there is an answer or how long it takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dp_service.parameters.aggregates import QuantilesReleased, ShownQuantile
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.columns import Column
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.terms import CountNoise, MechanismName
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
    table.quantile(query.quantiles[0].column)
    unknown = [column.name for column in dimensions if column.domain is None]
    if unknown and (table.contributions is None or table.contributions.names is None):
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            f"{unknown[0]}: quantiles are offered by columns whose domain the policy lists or names as published, and "
            "by others where its contributions take two looks (names): each element has its own, and which there are "
            "must be known beforehand",
        )
    if dimensions and table.contributions is None:
        raise RefusedByPolicyError(
            Rule.GROUP_BY,
            "quantiles by a column are offered only where the policy bounds contributions: their price grows with the "
            "number of elements in which a member has a value; without GROUP BY they need no bound",
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
    asked = tuple(ShownQuantile(each.function, each.q, each.alias or "") for each in query.quantiles)
    quantum, rule = column.bounds.quantum.size, column.member_value
    released = QuantilesReleased.of(
        column.name, quantum, column.spec, rule, asked, ordered_by=query.ordered_by
    )
    if parameters.domain is None:
        return _of_names(parameters, released)
    groups = len(parameters.domain)
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
    reach = 1 if bounded is None else min(groups, bounded.periods * bounded.delta_0)
    of_all = (
        None
        if bounded is None
        else replace(bounded, shifted=False, names=None, min_count=None, units=reach * released.units)
    )
    return _releasing(replace(parameters, delta_l0=reach, contributions=of_all), released)


def _of_names(parameters: ReleaseParameters, released: QuantilesReleased) -> ReleaseParameters:
    """Return the parameters of quantiles over the names of a first look.

    It keeps as many names as the policy says, or fewer: so many that the limits on choices and cells hold whatever it
    finds. Its units are rounded up, since a price is a whole number; the choices take theirs for every member's most
    elements, however many names there are.
    """
    bounded = parameters.contributions
    if bounded is None or bounded.names is None:
        raise AssertionError("quantiles by columns of an unknown domain take two looks")
    most = min(
        bounded.names.most_names,
        MAXIMUM_CHOICES // len(released.asked),
        MAXIMUM_GROUPED_CELLS // len(Grid.of(released.grid)),
    )
    delta_0 = min(bounded.delta_0, most)
    reach = min(most, bounded.periods * delta_0)
    names = replace(bounded.names, units=Fraction(math.ceil(bounded.names.units)), most_names=most)
    of_names = replace(
        bounded,
        delta_0=delta_0,
        shifted=False,
        names=names,
        units=int(names.units) + reach * released.units,
    )
    return _releasing(replace(parameters, delta_l0=reach, contributions=of_names), released)


def _releasing(parameters: ReleaseParameters, released: QuantilesReleased) -> ReleaseParameters:
    return replace(
        parameters,
        mechanism=MechanismName.QUANTILE_GUMB,
        tau=1,
        with_counts=False,
        count_noise=CountNoise.LAPLACE,
        quantiles=released,
    )
