"""Messages of dp_service about mechanisms, and what they say as values."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeVar

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.engines.base import ColumnType, TimeUnit
from pinot_connector.errors import IntegrityError
from pinot_connector.guarantees import PublishedDomain
from pinot_connector.parameters import (
    Aggregate,
    BoundedBy,
    Consistency,
    Contributions,
    CountNoise,
    GridScale,
    IntervalKind,
    Mechanism,
    MemberValue,
    NamesLook,
    Parameters,
    QuantileColumn,
    Quantiles,
    RankCut,
    Sharpened,
    Shift,
    ShownQuantile,
    SummedColumn,
    Sums,
    TotalOf,
    Totals,
)
from pinot_connector.questions import FUNCTION_NUMBERS, RANK_NUMBERS

_Key = TypeVar("_Key", bound=int)


_Meaning = TypeVar("_Meaning")


COLUMN_TYPES = {
    histogram_pb2.COLUMN_TYPE_STRING: ColumnType.STRING,
    histogram_pb2.COLUMN_TYPE_INT64: ColumnType.INT64,
    histogram_pb2.COLUMN_TYPE_BOOL: ColumnType.BOOL,
    histogram_pb2.COLUMN_TYPE_DATE: ColumnType.DATE,
    histogram_pb2.COLUMN_TYPE_TIMESTAMP: ColumnType.TIMESTAMP,
}


TIME_UNITS = {
    dp_pb2.TIME_UNIT_DAYS: TimeUnit.DAYS,
    dp_pb2.TIME_UNIT_SECONDS: TimeUnit.SECONDS,
    dp_pb2.TIME_UNIT_MILLISECONDS: TimeUnit.MILLISECONDS,
    dp_pb2.TIME_UNIT_MICROSECONDS: TimeUnit.MICROSECONDS,
}


MECHANISMS = {
    dp_pb2.MECHANISM_KNOWN_LAP: Mechanism.KNOWN_LAP,
    dp_pb2.MECHANISM_KNOWN_GUMB: Mechanism.KNOWN_GUMB,
    dp_pb2.MECHANISM_UNK_LAP: Mechanism.UNK_LAP,
    dp_pb2.MECHANISM_UNK_GUMB: Mechanism.UNK_GUMB,
    dp_pb2.MECHANISM_BOUND_GAUSS: Mechanism.BOUND_GAUSS,
    dp_pb2.MECHANISM_BOUND_MOMENTS: Mechanism.BOUND_MOMENTS,
    dp_pb2.MECHANISM_QUANTILE_GUMB: Mechanism.QUANTILE_GUMB,
}


BOUNDED_BY = {
    dp_pb2.BOUNDED_BY_IN_QUERY: BoundedBy.IN_QUERY,
    dp_pb2.BOUNDED_BY_PREPARED: BoundedBy.PREPARED,
    dp_pb2.BOUNDED_BY_ASSUMED: BoundedBy.ASSUMED,
}


INTERVAL_KINDS = {
    dp_pb2.INTERVAL_KIND_NONE: IntervalKind.NONE,
    dp_pb2.INTERVAL_KIND_PLAIN: IntervalKind.PLAIN,
    dp_pb2.INTERVAL_KIND_GIVEN_SHOWN: IntervalKind.GIVEN_SHOWN,
    dp_pb2.INTERVAL_KIND_SIMULTANEOUS: IntervalKind.SIMULTANEOUS,
}


RANK_FUNCTIONS = {number: function for function, number in RANK_NUMBERS.items()}


MEMBER_VALUES = {
    dp_pb2.MEMBER_VALUE_TOTAL: MemberValue.TOTAL,
    dp_pb2.MEMBER_VALUE_MEAN: MemberValue.MEAN,
    dp_pb2.MEMBER_VALUE_LARGEST: MemberValue.LARGEST,
    dp_pb2.MEMBER_VALUE_ONE_ROW: MemberValue.ONE_ROW,
}


GRID_SCALES = {
    dp_pb2.GRID_SCALE_LINEAR: GridScale.LINEAR,
    dp_pb2.GRID_SCALE_GEOMETRIC: GridScale.GEOMETRIC,
    dp_pb2.GRID_SCALE_DATES: GridScale.DATES,
}


TOTAL_OF = {
    dp_pb2.TOTAL_OF_CONTRIBUTIONS: TotalOf.CONTRIBUTIONS,
    dp_pb2.TOTAL_OF_MEMBERS: TotalOf.MEMBERS,
    dp_pb2.TOTAL_OF_ROWS: TotalOf.ROWS,
}


AGGREGATE_FUNCTIONS = {number: function for function, number in FUNCTION_NUMBERS.items()}


COUNT_NOISES = {
    dp_pb2.COUNT_NOISE_NONE: CountNoise.NONE,
    dp_pb2.COUNT_NOISE_DISCRETE_LAPLACE: CountNoise.DISCRETE_LAPLACE,
    dp_pb2.COUNT_NOISE_DISCRETE_GAUSSIAN: CountNoise.DISCRETE_GAUSSIAN,
}


CONSISTENCIES = {
    dp_pb2.CONSISTENCY_KEYED: Consistency.KEYED,
    dp_pb2.CONSISTENCY_FRESH: Consistency.FRESH,
}


def parameters_of(message: dp_pb2.MechanismParameters) -> Parameters:
    """Returns what was resolved for a question.

    Raises:
        IntegrityError: the message holds something that this version does not know.
    """
    return Parameters(
        mechanism=known(MECHANISMS, message.mechanism),
        epsilon_per=exact(message.epsilon_per),
        delta=exact(message.delta) if message.delta else None,
        tau=message.tau,
        delta_l0=message.delta_l0 or None,
        d_bar=message.d_bar or None,
        k=message.k or None,
        domain_size=message.domain_size or None,
        count_noise=known(COUNT_NOISES, message.count_noise),
        noise_scale=exact(message.noise_scale) if message.noise_scale else None,
        consistency=known(CONSISTENCIES, message.consistency),
        contributions=contributions_of(message.contributions) if message.HasField("contributions") else None,
        clipped=message.clipped,
        sums=_sums_of(message.sums) if message.HasField("sums") else None,
        quantiles=_quantiles_of(message.quantiles) if message.HasField("quantiles") else None,
        totals=_totals_of(message.totals) if message.HasField("totals") else None,
        in_element_order=message.in_element_order,
        having=message.having,
    )


def _totals_of(message: dp_pb2.TotalsParameters) -> Totals:
    return Totals(
        column=message.column,
        share=exact(message.share),
        counted=known(TOTAL_OF, message.counted),
        noise_variance=exact(message.noise_variance),
        sum_variances=tuple(map(exact, message.sum_variances)),
    )


def _quantiles_of(message: dp_pb2.Quantiles) -> Quantiles:
    column = quantile_column_of(message.column)
    return Quantiles(
        column=column,
        shown=tuple(
            ShownQuantile(
                function=known(RANK_FUNCTIONS, each.function),
                column=column.name,
                q=exact(each.q) if each.q else None,
                alias=each.alias or None,
                rank_error=exact(each.rank_error),
                cuts=tuple(RankCut(cut.position, exact(cut.part)) for cut in each.cuts),
            )
            for each in message.shown
        ),
        spare_members=message.spare_members or None,
    )


def quantile_column_of(message: dp_pb2.QuantileColumn) -> QuantileColumn:
    """Returns a column whose quantiles are asked for, or may be.

    Raises:
        IntegrityError: the message holds something that this version does not know.
    """
    scale = known(GRID_SCALES, message.scale)
    end = day if scale is GridScale.DATES else exact
    return QuantileColumn(
        name=message.name,
        member_value=known(MEMBER_VALUES, message.member_value),
        quantum=exact(message.quantum),
        scale=scale,
        lower=end(message.lower),
        upper=end(message.upper),
        cells=message.cells,
    )


def day(text: str) -> datetime.date:
    """Returns the day that a message has as YYYY-MM-DD.

    Raises:
        IntegrityError: the text is none.
    """
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise IntegrityError("dp_service sent a day that is none") from None


def _sums_of(message: dp_pb2.Sums) -> Sums:
    return Sums(
        share=exact(message.share),
        columns=tuple(map(summed_column_of, message.columns)),
        aggregates=tuple(
            Aggregate(
                known(AGGREGATE_FUNCTIONS, each.function), each.column, each.alias or None, message.over_rows
            )
            for each in message.aggregates
        ),
        ordered_by=message.ordered_by if message.HasField("ordered_by") else None,
        over_rows=message.over_rows,
    )


def published_of(message: dp_pb2.PublishedDomain) -> PublishedDomain:
    """Returns what a publication cost everyone who may see it."""
    return PublishedDomain(exact(message.rho), exact(message.delta))


def summed_column_of(message: dp_pb2.SummedColumn) -> SummedColumn:
    """Returns a column that is summed, or that questions may sum.

    Raises:
        IntegrityError: the message holds something else than exact numbers.
    """
    return SummedColumn(
        name=message.name,
        quantum=exact(message.quantum),
        lower=exact(message.lower),
        upper=exact(message.upper),
        share=exact(message.share) if message.share else None,
        noise_variance=exact(message.noise_variance) if message.noise_variance else None,
        row_lower=exact(message.row_lower) if message.row_lower else None,
        row_upper=exact(message.row_upper) if message.row_upper else None,
        has_own_count=message.has_own_count,
        count_share=exact(message.count_share) if message.count_share else None,
        count_variance=exact(message.count_variance) if message.count_variance else None,
        published=published_of(message.published) if message.HasField("published") else None,
    )


def contributions_of(message: dp_pb2.Contributions) -> Contributions:
    """Returns how contributions are bounded.

    Raises:
        IntegrityError: the message holds something that this version does not know.
    """
    return Contributions(
        bounded_by=known(BOUNDED_BY, message.bounded_by),
        delta_0=message.delta_0,
        periods=message.periods or None,
        units=message.units,
        min_count=message.min_count or None,
        threshold=message.threshold if message.HasField("threshold") else None,
        noise_variance=exact(message.noise_variance) if message.noise_variance else None,
        names=_names_look_of(message.names) if message.HasField("names") else None,
        shift=_shift_of(message.shift) if message.shift.denominator else None,
        may_shift=message.HasField("shift"),
        sharpened=_sharpened_of(message.sharpened) if message.HasField("sharpened") else None,
        most_sharpening_units=message.most_sharpening_units or None,
        totals_share=exact(message.totals_share) if message.totals_share else None,
        one_value=tuple(message.one_value),
    )


def _sharpened_of(message: dp_pb2.Sharpened) -> Sharpened:
    return Sharpened(
        units_before=tuple(map(exact, message.units_before)),
        denominator=message.denominator,
        noise_variance=exact(message.noise_variance),
        planned=message.planned,
    )


def _shift_of(message: dp_pb2.Shift) -> Shift:
    return Shift(
        factor=message.factor,
        denominator=message.denominator,
        count_variance=exact(message.count_variance),
        total_variance=exact(message.total_variance),
    )


def _names_look_of(message: dp_pb2.NamesLook) -> NamesLook:
    return NamesLook(
        delta_1=message.delta_1,
        units=exact(message.units),
        max_names=message.max_names,
        threshold=message.threshold if message.HasField("threshold") else None,
        noise_variance=exact(message.noise_variance) if message.noise_variance else None,
    )


def exact(text: str) -> Fraction:
    """Returns the number that a text denotes.

    Raises:
        IntegrityError: it denotes none.
    """
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise IntegrityError("dp_service sent something else than an exact number") from None


def known(meanings: Mapping[_Key, _Meaning], value: _Key) -> _Meaning:
    """Returns the meaning of a message's enum value.

    Raises:
        IntegrityError: this version knows none.
    """
    if value not in meanings:
        raise IntegrityError("dp_service says something that this version does not know")
    return meanings[value]
