"""Totals beside a list as messages: those of a result, and what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.engines.base import ExpectedColumn
from pinot_connector.parameter_messages import TOTAL_OF
from pinot_connector.parameters import Totals
from pinot_connector.results import PrivateResult
from pinot_connector.shown_values import AggregateValue, Shown


def totals_message(
    result: PrivateResult,
    column_message: Callable[[ExpectedColumn, Sequence[Shown]], histogram_pb2.ElementColumn],
) -> dp_pb2.ShownTotals | None:
    """Return the totals of a result; None: it has none.

    Args:
        result: The result.
        column_message: Makes a message of a column's values.
    """
    totals, stated = result.totals, result.parameters.totals
    if totals is None or stated is None:
        return None
    column = next(each for each in result.columns if each.name == stated.column)
    sums = range(len(result.parameters.aggregates))
    return dp_pb2.ShownTotals(
        column=column_message(column, [each.value for each in totals]),
        noisy_counts=[each.noisy_count for each in totals],
        interval_lower=[each.interval[0] for each in totals],
        interval_upper=[each.interval[1] for each in totals],
        sums=[_values([each.sums[place] for each in totals]) for place in sums],
        other_counts=[each.other_count for each in totals],
        other_lower=[each.other_interval[0] for each in totals],
        other_upper=[each.other_interval[1] for each in totals],
        other_sums=[_values([each.other_sums[place] for each in totals]) for place in sums],
    )


def totals_parameters(totals: Totals | None) -> dp_pb2.TotalsParameters | None:
    """Return what totals are; None: there are none."""
    if totals is None:
        return None
    return dp_pb2.TotalsParameters(
        column=totals.column,
        share=str(totals.share),
        counted=next(number for number, each in TOTAL_OF.items() if each is totals.counted),
        noise_variance=str(totals.noise_variance),
        sum_variances=map(str, totals.sum_variances),
    )


def _values(values: Sequence[AggregateValue]) -> dp_pb2.AggregateValues:
    return dp_pb2.AggregateValues(
        values=[str(each.value) for each in values],
        lower=[str(each.interval[0]) for each in values],
        upper=[str(each.interval[1]) for each in values],
    )
