"""The parameters of a release as a message, in the form in which people read them."""

from __future__ import annotations

from fractions import Fraction

from gris_api.dp.v1 import dp_pb2

from dp_service.mechanisms.bounded import CombinedLaw, Shift
from dp_service.parameters.aggregates import SummedValue
from dp_service.parameters.contributions import LooksBefore
from dp_service.releases.kinds import AnyKind
from dp_service.server.listing_messages import name_of_conditions
from dp_service.server.messages import (
    AGGREGATE_FUNCTIONS,
    BOUNDED_BY,
    CONSISTENCIES,
    COUNT_NOISES,
    MECHANISMS,
)
from dp_service.server.quantile_messages import quantiles_message


def parameters_message(kind: AnyKind) -> dp_pb2.MechanismParameters:
    """Return the parameters of a release in the form in which people read them."""
    parameters, noise_scale = kind.parameters, kind.count_scale
    known = parameters.domain is not None
    return dp_pb2.MechanismParameters(
        mechanism=MECHANISMS[parameters.mechanism],
        epsilon_per=str(parameters.epsilon_per),
        delta="" if known else str(parameters.delta),
        tau=parameters.tau,
        delta_l0=parameters.delta_l0 or 0,
        d_bar=parameters.d_bar or 0,
        k=parameters.k or 0,
        domain_size=len(parameters.domain or ()),
        count_noise=dp_pb2.COUNT_NOISE_NONE if noise_scale is None else COUNT_NOISES[parameters.count_noise],
        noise_scale="" if noise_scale is None else str(noise_scale),
        consistency=CONSISTENCIES[parameters.consistency],
        contributions=_contributions(kind),
        clipped=parameters.clips,
        sums=_sums(kind),
        quantiles=quantiles_message(kind),
        in_element_order=parameters.listing is not None and parameters.listing.in_element_order,
        having="" if parameters.listing is None else name_of_conditions(parameters.listing.having),
    )


def _sums(kind: AnyKind) -> dp_pb2.Sums | None:
    stated, mechanism = kind.parameters.sums, kind.moments
    if stated is None or mechanism is None:
        return None
    return dp_pb2.Sums(
        share=str(stated.share),
        columns=[
            _summed_column(column, mechanism.sum_variance(place), mechanism.own_count_variance(place))
            for place, column in enumerate(stated.columns)
        ],
        aggregates=[
            dp_pb2.ShownAggregate(
                function=AGGREGATE_FUNCTIONS[each.function],
                column=stated.columns[each.place].name,
                alias=each.alias,
            )
            for each in stated.asked
        ],
        ordered_by=stated.ordered_by,
        over_rows=kind.parameters.sums_rows,
    )


def _summed_column(
    column: SummedValue, variance: Fraction, of_own_count: Fraction | None
) -> dp_pb2.SummedColumn:
    return dp_pb2.SummedColumn(
        name=column.name,
        quantum=str(column.quantum),
        lower=str(column.low * column.quantum),
        upper=str(column.high * column.quantum),
        share=str(column.share),
        noise_variance=str(variance),
        has_own_count=column.count_share is not None,
        count_share="" if column.count_share is None else str(column.count_share),
        count_variance="" if of_own_count is None else str(of_own_count),
    )


def _contributions(kind: AnyKind) -> dp_pb2.Contributions | None:
    stated, look, shift = kind.parameters.contributions, kind.look, kind.shift
    if stated is None:
        return None
    variance = shift.error_variance if shift is not None else look.variance if look is not None else None
    return dp_pb2.Contributions(
        bounded_by=BOUNDED_BY[stated.bounded_by],
        delta_0=stated.delta_0,
        periods=stated.periods,
        units=stated.units,
        min_count=stated.min_count or 0,
        threshold=None if look is None else look.threshold,
        noise_variance="" if variance is None else str(variance),
        names=_names_look(kind),
        shift=None if shift is None else _shift(shift),
        sharpened=None if stated.before is None or kind.law is None else _sharpened(kind.law, stated.before),
    )


def _sharpened(law: CombinedLaw, before: LooksBefore) -> dp_pb2.Sharpened:
    return dp_pb2.Sharpened(
        units_before=map(str, before.units),
        denominator=law.denominator,
        noise_variance=str(law.variance),
        planned=before.planned,
    )


def _shift(shift: Shift) -> dp_pb2.Shift:
    factor, denominator = shift.factors
    return dp_pb2.Shift(
        factor=factor,
        denominator=denominator,
        count_variance=str(shift.count_variance),
        total_variance=str(shift.total_variance),
    )


def _names_look(kind: AnyKind) -> dp_pb2.NamesLook | None:
    mechanism = kind.first_look
    if mechanism is None:
        return None
    look = mechanism.names_look
    return dp_pb2.NamesLook(
        delta_1=look.bound.delta_0,
        units=str(look.units),
        max_names=mechanism.most_names,
        threshold=look.threshold,
        noise_variance=str(look.variance),
    )
