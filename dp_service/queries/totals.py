"""What a question for totals releases besides its list: which totals, and which part of the units they take.

Nothing here depends on data: whether there is an answer, and what it costs, follow from the question and the policy.
"""

from __future__ import annotations

from dataclasses import replace

from dp_service.parameters.aggregates import TotalsReleased
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.sums import MAXIMUM_VALUES_SHOWN
from dp_service.queries.tables import Table


def releasing_totals(parameters: ReleaseParameters, query: HistogramQuery, table: Table) -> ReleaseParameters:
    """Return the parameters with the totals that the question asks for, if it asks for any.

    Raises:
        RefusedByPolicyError: The policy offers no totals, or answers the question in two looks.
        QuestionError: There are more totals than can be shown.
    """
    if query.totals_by is None:
        return parameters
    bounded = parameters.contributions
    stated = None if table.contributions is None else table.contributions.totals
    if bounded is None or stated is None:
        raise _refused(f"the policy offers no totals for the table {table.name} (contributions.totals)")
    if bounded.names is not None:
        raise _refused(
            "totals are offered beside lists of one look: the second of two looks counts only what the first one "
            "named, and a total of that is no total"
        )
    place = query.dimensions.index(query.totals_by)
    _require_few(parameters, place, len(query.aggregates))
    over = query.dimensions[1 - place]
    return replace(
        parameters,
        # Counts relative to the number of all members would have noise in common.
        contributions=replace(bounded, shifted=False),
        totals=TotalsReleased(place, query.totals_by, stated.share, over in stated.one_value),
    )


def _require_few(parameters: ReleaseParameters, place: int, sums: int) -> None:
    """Refuse a known domain of more totals than intervals are computed for; of others only those in the list show."""
    most = MAXIMUM_VALUES_SHOWN // max(1, sums)
    if parameters.domain is None:
        return
    found = len({element[place] for element in parameters.domain})
    if found > most:
        raise QuestionError(
            "totals_by", f"expected a column whose domain has at most {most} values here, got {found}"
        )


def _refused(message: str) -> RefusedByPolicyError:
    return RefusedByPolicyError(Rule.MEASURE, message)
