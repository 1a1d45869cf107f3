"""Totals as messages, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2
from numpy.typing import NDArray

from dp_service.releases.histogram import HistogramError
from dp_service.releases.kinds.views import ShownTotals
from dp_service.releases.mechanism_output import TotalsOutput
from dp_service.releases.plan import Plan
from dp_service.server.errors import RequestError
from dp_service.server.messages import aggregate_message, column_values, element_columns
from dp_service.terms import Scalar


def shown_totals_message(plan: Plan, totals: ShownTotals | None) -> dp_pb2.ShownTotals | None:
    """Return the totals that a question shows; None: it asks for none."""
    if totals is None:
        return None
    counts, others = totals.counts, totals.others
    return dp_pb2.ShownTotals(
        column=_column(plan, totals.values),
        noisy_counts=[each.noisy for each in counts],
        interval_lower=[each.lower for each in counts],
        interval_upper=[each.upper for each in counts],
        sums=map(aggregate_message, totals.sums),
        other_counts=[each.noisy for each in others],
        other_lower=[each.lower for each in others],
        other_upper=[each.upper for each in others],
        other_sums=map(aggregate_message, totals.other_sums),
    )


def kept_totals_message(plan: Plan, totals: TotalsOutput | None) -> dp_pb2.KeptTotals | None:
    """Return all totals of a release; None: it has none."""
    if totals is None:
        return None
    return dp_pb2.KeptTotals(
        column=_column(plan, totals.values),
        noisy_counts=totals.counts.tolist(),
        sums=[histogram_pb2.CentredSums(values=column.tolist()) for column in totals.sums],
    )


def kept_totals(message: dp_pb2.Kept, of_elements: NDArray[np.int64]) -> TotalsOutput | None:
    """Return the totals of a kept release; None: it has none.

    Args:
        message: The release; its elements are not needed.
        of_elements: The position of each element's total.

    Raises:
        RequestError: Its column has no values.
    """
    if not message.HasField("totals"):
        return None
    kept = message.totals
    try:
        values = column_values(kept.column)
    except HistogramError:
        raise RequestError("header.kept.totals.column", "expected values") from None
    return TotalsOutput(
        tuple(values),
        np.array(kept.noisy_counts, dtype=np.int64),
        tuple(np.array(each.values, dtype=np.int64) for each in kept.sums),
        of_elements,
    )


def _column(plan: Plan, values: Sequence[Scalar]) -> histogram_pb2.ElementColumn:
    stated = plan.parameters.totals
    if stated is None:
        raise AssertionError("there are totals where the plan says what of")
    return element_columns([plan.columns[stated.place]], [(value,) for value in values])[0]
