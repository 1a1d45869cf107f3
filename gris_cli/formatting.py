"""Names of columns, numbers and totals as text for people."""

from __future__ import annotations

from fractions import Fraction

from pinot_connector import formats
from pinot_connector.questions import AggregateFunction
from pinot_connector.results import PrivateResult
from pinot_connector.value_parameters import Aggregate


def format_aggregate(aggregate: Aggregate) -> str:
    """Return the head of a column of sums or averages: its alias, or what it is."""
    if aggregate.alias is not None:
        return aggregate.alias
    is_average = aggregate.function is AggregateFunction.AVERAGE
    ends = (" of rows", " per row") if aggregate.over_rows else ("", " per member")
    of = f" of {aggregate.column}{ends[is_average]}" if aggregate.column else ""
    where = "" if aggregate.condition is None else f" where condition {aggregate.condition} holds"
    per_count = (
        ""
        if aggregate.per_count is None
        else f", {formats.number(float(aggregate.per_count))} times per count"
    )
    return f"{aggregate.function.value}{of}{where}{per_count}"


def format_total(result: PrivateResult) -> str:
    """Return how many members count in any element, empty where that is no part of the release."""
    if result.total is None:
        return ""
    total = result.total
    return f"{total.noisy_count:,} members count in any of the elements, {formats.interval(total.interval)}"


def format_currency(epsilon_per: Fraction | str, delta: Fraction | str, unit_id: str) -> str:
    """Return what a unit of the budget is."""
    return f"epsilon_per {float(epsilon_per):g}, delta {float(delta):g}; unit {unit_id}"


def format_published(rho: Fraction | str, delta: Fraction | str) -> str:
    """Return what a domain was published for."""
    return f"published at rho {float(rho):g}, delta {float(delta):g}"
