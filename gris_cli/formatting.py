"""Mechanisms, parameters, intervals and budgets as text for people."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from pinot_connector.engines.base import BUCKET_COLUMN
from pinot_connector.parameters import (
    Aggregate,
    Contributions,
    CountNoise,
    IntervalKind,
    Mechanism,
    MemberValue,
    Parameters,
    Quantiles,
    Sharpened,
    ShownQuantile,
    SummedColumn,
    Sums,
)
from pinot_connector.questions import AggregateFunction
from pinot_connector.results import Explanation, PrivateResult

if TYPE_CHECKING:
    from gris_cli.expectations import Expectation

_MECHANISMS = {
    Mechanism.KNOWN_LAP: "Laplace noise on every element of a known domain",
    Mechanism.KNOWN_GUMB: "the exponential mechanism over a known domain, once for each place",
    Mechanism.UNK_LAP: "Laplace noise and a noisy threshold; the domain is not known",
    Mechanism.UNK_GUMB: "the exponential mechanism with a private threshold; the domain is not known",
    Mechanism.BOUND_GAUSS: "Gaussian noise on every count of bounded contributions",
    Mechanism.BOUND_MOMENTS: "Gaussian noise on every count and sum of bounded contributions, in one release",
    Mechanism.QUANTILE_GUMB: "the exponential mechanism over the cells of a public grid, once for each quantile",
}
# How dp_service's sentences on pairs copies begin.
_OF_COPIES = ("The prepared copy ", "Members whose attribute changed ")
_COUNT_NOISES = {
    CountNoise.NONE: "no noise",
    CountNoise.DISCRETE_LAPLACE: "discrete Laplace noise of scale",
    CountNoise.DISCRETE_GAUSSIAN: "discrete Gaussian noise of sigma",
}


def format_mechanism(parameters: Parameters) -> str:
    """Return the mechanism as text."""
    return f"{parameters.mechanism.value}: {_MECHANISMS[parameters.mechanism]}"


def format_parameters(parameters: Parameters) -> str:
    """Return the parameters as text, and what each of them means."""
    return "; ".join(_format_parameters(parameters))


def _format_parameters(parameters: Parameters) -> Iterator[str]:
    yield f"epsilon_per {_format_number(parameters.epsilon_per)} for one information unit"
    if parameters.delta is not None:
        yield f"delta {_format_number(parameters.delta)} for one call"
    reach = parameters.delta_l0
    elements = "any number of elements" if reach is None else f"at most {format_count(reach, 'element')}"
    yield f"a member changes {elements} (Delta), each by at most {parameters.tau} (tau)"
    if parameters.d_bar is not None:
        yield f"only the largest are looked at: {format_count(parameters.d_bar, 'element')} (d_bar)"
    if parameters.domain_size is not None:
        yield f"a domain of {format_count(parameters.domain_size, 'element')}"
    bounded = parameters.contributions
    if bounded is not None and bounded.threshold is not None:
        yield (
            f"all elements are looked at that count at least {bounded.min_count}, and those above {bounded.threshold} "
            "with their noise are shown"
        )
    if bounded is not None and bounded.names is not None:
        names = bounded.names
        yield (
            f"a first look, for {_format_number(names.units)} units and with a member in at most {names.delta_1}, "
            f"names at most {format_count(names.max_names, 'element')}: those above {names.threshold} with its noise, "
            f"of all that count at least {bounded.min_count}"
        )
    if bounded is not None and bounded.shift is not None:
        shift = bounded.shift
        yield (
            f"counts are released relative to the number of members: {shift.denominator} times each count less "
            f"{shift.factor} times that number, and the number itself; so counts are multiples of "
            f"1/{shift.denominator}, and their noise is the sum of two draws"
        )
    if parameters.sharpened is not None:
        yield from _format_sharpened(parameters.sharpened)
    if parameters.noise_scale is not None:
        law = _COUNT_NOISES[parameters.count_noise]
        of = "" if parameters.sharpened is None else " of this look"
        yield f"{law} {float(parameters.noise_scale):.4g} in each count{of}"
    for column in () if parameters.sums is None else parameters.sums.columns:
        yield f"noise of sigma {_sigma_of_sum(column, parameters.contributions):.4g} in each sum of {column.name}"


def _format_sharpened(sharpened: Sharpened) -> Iterator[str]:
    units = ", ".join(map(_format_number, sharpened.units_before))
    yield f"looks before this one at the same elements took {units} units for counts"
    yield f"noise of sigma {float(sharpened.noise_variance) ** 0.5:.4g} in each combined count"


def _sigma_of_sum(column: SummedColumn, contributions: Contributions | None) -> float:
    """Return the standard deviation of a sum, half of B + (lower + upper) N, in the units of its column."""
    of_counts = column.count_variance
    if of_counts is None and contributions is not None:
        of_counts = contributions.noise_variance
    variance = (column.noise_variance or 0) * column.quantum**2 + (of_counts or 0) * (
        column.lower + column.upper
    ) ** 2
    return math.sqrt(variance) / 2


def format_contributions(contributions: Contributions | None) -> str:
    """Return how contributions are bounded and what that means for counts, empty if they are not."""
    if contributions is None:
        return ""
    return (
        f"{contributions}; so are the intervals, whose lower ends also hold for the counts without a bound and whose "
        "upper ends do not"
    )


def format_sharpened(parameters: Parameters) -> str:
    """Return how many looks counts are of, and what their intervals mean; empty if there is one."""
    return "" if parameters.sharpened is None else str(parameters.sharpened)


def format_sums(sums: Sums | None) -> str:
    """Return what sums and averages are of, empty if there are none."""
    if sums is None:
        return ""
    bounds = ", ".join(
        f"{column.name} between {format_exact(column.lower)} and {format_exact(column.upper)}"
        for column in sums.columns
    )
    first = None if sums.ordered_by is None else sums.aggregates[sums.ordered_by]
    order = "" if first is None else f"; the list is in the order of {format_aggregate(first)}"
    if sums.over_rows:
        return f"they are of rows, and so are the intervals: each row counts with {bounds}{order}"
    return (
        "they are of members' totals, and so are the intervals: each member counts in an element with its total, of "
        f"{bounds}{order}"
    )


def format_quantiles(parameters: Parameters) -> str:
    """Return what quantiles are of, empty if there are none."""
    quantiles = parameters.quantiles
    if quantiles is None:
        return ""
    column = quantiles.column
    lower, upper = format_exact(column.lower), format_exact(column.upper)
    bounded = "" if parameters.contributions is None else f"; {parameters.left_out[-1]}"
    return (
        f"of one value for each member, {_MEMBER_VALUES[column.member_value]} of {column.name}, among {column.cells} "
        f"public cells from {lower} to {upper}; shown are the middle and the ends of the cell that was chosen, which "
        f"say nothing where no member has a value{bounded}"
    )


_MEMBER_VALUES = {
    MemberValue.TOTAL: "the total",
    MemberValue.MEAN: "the mean",
    MemberValue.LARGEST: "the largest",
    MemberValue.ONE_ROW: "one row, chosen by a hash,",
}


def format_rank_error(shown: ShownQuantile, error: Fraction) -> str:
    """Return within how many members a rank is, and which part of those in other cells comes on top."""
    part = sum((cut.part for cut in shown.cuts), Fraction(0))
    return f"{float(error):.4g}{f' + {float(part):.2g} c' if part else ''}"


def _format_ranks(result: PrivateResult, quantiles: Quantiles) -> str:
    """Return what the cells and ranks of quantiles mean."""
    percent = f"{100 * result.confidence:g} %"
    cuts = any(shown.cuts for shown in quantiles.shown)
    beside = "; c is how many members are in the fullest cell of another quantile" if cuts else ""
    spare = (
        ""
        if quantiles.spare_members is None
        else f"; about the smallest and the largest value are those at rank {quantiles.spare_members} from the end, so "
        "that no member's own value decides"
    )
    bounded = (
        ""
        if result.parameters.contributions is None
        else "; members are those that are left in an element once contributions are bounded"
    )
    return (
        f"with {percent} the wanted ranks of an element are together within so many members of the ranks that the "
        f"cells hold{bounded}{beside}{spare}"
    )


def format_aggregate(aggregate: Aggregate) -> str:
    """Return the head of a column of sums or averages: its alias, or what it is."""
    if aggregate.alias is not None:
        return aggregate.alias
    is_average = aggregate.function is AggregateFunction.AVERAGE
    ends = (" of rows", " per row") if aggregate.over_rows else ("", " per member")
    return f"{aggregate.function.value} of {aggregate.column}{ends[is_average]}"


def format_missing_averages(result: PrivateResult) -> str:
    """Return why averages are missing, empty if none is."""
    missing = sum(None in row.values for row in result.rows)
    if not missing:
        return ""
    return f"{format_count(missing, 'element')} may have no member, as far as their counts say: no average is shown"


def format_exact(number: Fraction | datetime.date) -> str:
    """Return a number that a policy states as the decimal that it is, and a day as YYYY-MM-DD."""
    if isinstance(number, datetime.date):
        return number.isoformat()
    return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"


def format_clipping(parameters: Parameters) -> str:
    """Return that rows beyond tau are left out, empty if none are."""
    return parameters.left_out[0] if parameters.clipped else ""


def format_interval_kind(result: PrivateResult) -> str:
    """Return what the confidence intervals cover, as text."""
    if result.parameters.quantiles is not None:
        return _format_ranks(result, result.parameters.quantiles)
    percent = f"{100 * result.confidence:g} %"
    if result.interval_kind is IntervalKind.NONE:
        return "no counts were asked for, so there are no intervals"
    if result.interval_kind is IntervalKind.GIVEN_SHOWN:
        return (
            f"each interval covers the number before noise with {percent}, given that its element is shown; counts "
            "close to the threshold say little, so their intervals reach down to the smallest possible count"
        )
    if result.interval_kind is IntervalKind.SIMULTANEOUS:
        return (
            f"the intervals of all counts cover the numbers before noise together with {percent}, and so do those of "
            "each column's values, also of what is not shown: the list was cut in another order than that of its "
            "counts, or filtered by what was released"
        )
    # Which buckets come first in time was not picked.
    is_series = any(column.name == BUCKET_COLUMN for column in result.columns)
    if result.mechanism is Mechanism.KNOWN_LAP and _is_cut(result.parameters) and not is_series:
        return f"each interval covers the number before noise with {percent} before the largest were picked, not after"
    ranked = result.mechanism in (Mechanism.KNOWN_GUMB, Mechanism.UNK_GUMB)
    apart = "; order and counts carry noise apart, so counts may disagree with the order" if ranked else ""
    return f"each interval covers the number before noise with {percent}{apart}"


def format_total(result: PrivateResult) -> str:
    """Return how many members count in any element, empty where that is no part of the release."""
    if result.total is None:
        return ""
    lower, upper = result.total.interval
    return f"{result.total.noisy_count} members count in any of the elements, {lower} to {upper}"


def format_totals(parameters: Parameters) -> str:
    """Return what totals are, empty where there are none."""
    totals = parameters.totals
    if totals is None:
        return ""
    sums = () if parameters.sums is None else parameters.sums.columns
    noise = "".join(
        f", {_sigma_of_total(column, variance, parameters):.4g} in each sum of {column.name}"
        for column, variance in zip(sums, totals.sum_variances, strict=False)
    )
    return (
        f"by {totals.column}, of {totals.counted.value}, for {format_exact(totals.share)} of the units; noise of sigma "
        f"{math.sqrt(totals.noise_variance):.4g} in each count{noise}; other is a total less the elements of "
        "it that are shown, and may be negative"
    )


def _sigma_of_total(column: SummedColumn, variance: Fraction, parameters: Parameters) -> float:
    """Return the standard deviation of a sum of a total: its column's, with the noise of totals."""
    bounded, totals = parameters.contributions, parameters.totals
    if bounded is None or totals is None:
        return 0.0
    own = column.count_variance
    if own is not None and bounded.noise_variance:
        # Counts take the same parts of the units in totals as in the list.
        own = own * totals.noise_variance / bounded.noise_variance
    return _sigma_of_sum(
        replace(
            column, noise_variance=variance, count_variance=totals.noise_variance if own is None else own
        ),
        bounded,
    )


def format_cut_intervals(result: PrivateResult) -> str:
    """Return what an interval says whose whole range lay below the smallest possible count, empty if there is none."""
    ends = [
        row.interval[0]
        for row in result.rows
        if row.interval is not None
        and row.noisy_count is not None
        and row.noisy_count < row.interval[0] == row.interval[1]
    ]
    if not ends:
        return ""
    return (
        f"no count shown here is below {ends[0]} before noise, so {ends[0]} to {ends[0]} stands where a whole interval "
        f"was below it: noise as large as that meets at most {100 * (1 - result.confidence):g} % of counts. The count "
        "before noise is likely small; that it is exact is not said"
    )


def _is_cut(parameters: Parameters) -> bool:
    """Return whether fewer elements are shown than a known domain has."""
    return parameters.k is not None and parameters.k < (parameters.domain_size or 0)


def format_ending(result: PrivateResult) -> str:
    """Return why the ranking ends where it does, empty if it is complete."""
    if not result.ended_in_bottom:
        return ""
    threshold = "" if result.bottom is None else f" (noisy threshold {result.bottom})"
    return f"ended in bottom{threshold}: nothing below may be shown"


def format_lowered_k(shown: PrivateResult | Explanation) -> str:
    """Return that fewer elements are shown than were asked for, empty if as many are."""
    if shown.parameters.cut_for_sums:
        return shown.parameters.cut_for_sums
    if shown.requested_k is None:
        return ""
    return f"at most {shown.parameters.k} elements of the {shown.requested_k} asked for, as the policy says"


def format_threshold(expectation: Expectation) -> str:
    """Return which counts will be found, empty where there is no threshold."""
    if expectation.found_half is None or expectation.found_mostly is None:
        return ""
    if expectation.is_fixed:
        return (
            f"an element passes it with 50 % if its count is {expectation.found_half}, with 95 % from "
            f"{expectation.found_mostly} on"
        )
    return (
        f"an element passes it with 50 % if its count is {expectation.found_half} above the count at rank d_bar + 1 "
        f"(0 if there are fewer elements), with 95 % from {expectation.found_mostly} on"
    )


def format_width(expectation: Expectation) -> str:
    """Return how exact counts will be, empty without counts."""
    if expectation.half_width is None:
        return ""
    mean = (
        "" if expectation.mean_error is None else f", and is off by {expectation.mean_error:.3g} on average"
    )
    within = f"by its noise alone a count is off by at most {expectation.half_width} with 95 %"
    return f"{within}{mean}; close to a threshold less surely"


def format_expected_prices(explanation: Explanation, expectation: Expectation) -> str:
    """Return what a question costs on average, as far as that does not depend on the data."""
    if not expectation.prices:
        return "the same, whatever is found"
    parameters = explanation.parameters
    each = 1 if parameters.noise_scale is None else 2
    price = f"2 information and {each} for each element found"
    unknown = "how many that are is in the data, which only an answer shows"
    cases = (
        f"if all {parameters.k} counts lie {case.above} above the count at rank d_bar + 1, {case.found:.3g} are found "
        f"and {case.information:.3g} information paid"
        for case in expectation.prices
    )
    return "; ".join((price, unknown, *cases))


def format_order(expectation: Expectation) -> str:
    """Return how reliable the order is, empty where the counts alone decide it."""
    if expectation.ordered_mostly is None:
        return ""
    return f"two counts that lie {expectation.ordered_mostly} apart are ranked in their order before noise with 95 %"


def format_count(number: int, what: str) -> str:
    """Return a number with its noun, for nouns whose plural takes an s."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def _format_number(value: Fraction) -> str:
    return f"{float(value):g}"


def format_copy(explanation: Explanation) -> str:
    """Return that a pairs copy answers in the place of the table, empty if none does."""
    return " ".join(each for each in explanation.sentences if each.startswith(_OF_COPIES))
