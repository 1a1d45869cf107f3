"""Results and prices as the gateway's messages."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import cost_pb2, histogram_pb2
from gris_api.dp.v1 import dp_pb2

from gris_gateway.totals_messages import totals_message, totals_parameters
from pinot_connector.budgets import Cost, Level, Mode, Share
from pinot_connector.days import days_of
from pinot_connector.engines.base import ColumnType, ExpectedColumn
from pinot_connector.guarantees import (
    BOUND_NUMBERS,
    SHARING_NUMBERS,
    AccountGuarantee,
    BudgetGuarantee,
    Guarantee,
)
from pinot_connector.parameter_messages import (
    BOUNDED_BY,
    COLUMN_TYPES,
    CONSISTENCIES,
    COUNT_NOISES,
    INTERVAL_KINDS,
    MECHANISMS,
)
from pinot_connector.parameters import Contributions, NamesLook, Parameters, Sharpened, Sums
from pinot_connector.quantile_messages import quantile_values, quantiles_message
from pinot_connector.questions import FUNCTION_NUMBERS
from pinot_connector.releases import write_counts
from pinot_connector.results import (
    Accuracy,
    Alternative,
    Explanation,
    PrivateResult,
    Row,
    Total,
)
from pinot_connector.shown_values import Shown, ShownValue

CHUNK_BYTES = 2**20
# A noisy count, its interval and the tags around them, at most.
ROW_OVERHEAD_BYTES = 40
# At most: a sum or an average with its interval, three quotients of numbers with up to 40 digits.
AGGREGATE_BYTES = 256

_MODES = {Mode.ENFORCE: budget_pb2.MODE_ENFORCE, Mode.TRACK: budget_pb2.MODE_TRACK}

_Number = TypeVar("_Number", bound=int)
_Meaning = TypeVar("_Meaning")


def result_message(result: PrivateResult) -> app_pb2.Result:
    """Return everything about a result except its elements."""
    return app_pb2.Result(
        columns=[
            histogram_pb2.Column(
                name=column.name, type=_number(COLUMN_TYPES, column.type), alias=column.alias
            )
            for column in result.columns
        ],
        count_alias=result.count_alias or "",
        element_count=len(result.rows),
        ended_in_bottom=result.ended_in_bottom,
        bottom=result.bottom,
        parameters=parameters_message(result.parameters),
        interval_kind=_number(INTERVAL_KINDS, result.interval_kind),
        confidence=result.confidence,
        cost=cost_message(result.cost),
        charged=cost_message(result.charged),
        remaining=map(level_message, result.remaining),
        data_version=result.data_version,
        release_id=result.release_id,
        query_id=result.query_id,
        key_id=result.key_id,
        requested_k=result.requested_k or 0,
        total=None if result.total is None else _total(result.total),
        totals=totals_message(result, _column),
    )


def _total(total: Total) -> dp_pb2.NoisyTotal:
    lower, upper = total.interval
    return dp_pb2.NoisyTotal(count=total.noisy_count, interval_lower=lower, interval_upper=upper)


def element_chunks(result: PrivateResult) -> Iterator[dp_pb2.ReleasedElements]:
    """Yield the elements in messages of at most 1 MiB or one row; one empty message if there are none."""
    widest = max((_row_bytes(row) for row in result.rows), default=1)
    rows = max(1, CHUNK_BYTES // widest)
    for start in range(0, max(1, len(result.rows)), rows):
        yield _elements(result, result.rows[start : start + rows])


def all_elements(result: PrivateResult) -> dp_pb2.ReleasedElements:
    """Return the elements in one message."""
    return _elements(result, result.rows)


def explanation_message(explanation: Explanation) -> app_pb2.ExplainResponse:
    """Return what a question would cost; the engines' queries stay with the operator."""
    return app_pb2.ExplainResponse(
        worst_case_cost=cost_message(explanation.worst_case_cost),
        parameters=parameters_message(explanation.parameters),
        explanation=explanation.sentences,
        shares=map(share_message, explanation.shares),
        requested_k=explanation.requested_k or 0,
        alternatives=map(_alternative, explanation.alternatives),
        accuracy=None if explanation.accuracy is None else _accuracy(explanation.accuracy),
    )


def _accuracy(accuracy: Accuracy) -> dp_pb2.ExpectedAccuracy:
    # What is None stays unset.
    return dp_pb2.ExpectedAccuracy(**asdict(accuracy))


def _alternative(alternative: Alternative) -> dp_pb2.Alternative:
    return dp_pb2.Alternative(
        parameters=parameters_message(alternative.parameters),
        worst_case_cost=cost_message(alternative.worst_case_cost),
        chosen=alternative.chosen,
        finds_all=alternative.finds_all,  # type: ignore[arg-type]  # None leaves it unset
    )


def share_message(share: Share) -> app_pb2.BudgetShare:
    """Return the share of one level's budget that a question takes."""
    return app_pb2.BudgetShare(
        path=share.path,
        unit=share.unit,
        cost=share.cost,
        limit=share.limit,
        remaining=share.remaining,
        mode=_MODES[share.mode],
    )


def level_message(level: Level) -> budget_pb2.Level:
    """Return one level of a budget."""
    return budget_pb2.Level(
        path=level.path,
        limit=cost_message(level.limit),
        spent=cost_message(level.spent),
        reserved=cost_message(level.reserved),
        remaining=cost_message(level.remaining),
        mode=_MODES[level.mode],
        window_start=_timestamp(level.window_start),
        window_end=_timestamp(level.window_end),
        over_limit=level.over_limit,
    )


def guarantee_message(guarantee: AccountGuarantee) -> app_pb2.GetGuaranteeResponse:
    """Return the guarantee for what an account is shown."""
    return app_pb2.GetGuaranteeResponse(
        account=budget_pb2.Account(path=guarantee.account),
        own=_budget_guarantee(guarantee.own),
        shared=None if guarantee.shared is None else _budget_guarantee(guarantee.shared),
        sharing=SHARING_NUMBERS[guarantee.sharing],
    )


def _budget_guarantee(guarantee: BudgetGuarantee) -> app_pb2.BudgetGuarantee:
    return app_pb2.BudgetGuarantee(
        path=guarantee.path,
        limit=None if guarantee.limit is None else cost_message(guarantee.limit),
        worth=None if guarantee.guarantee is None else _worth(guarantee.guarantee),
    )


def _worth(guarantee: Guarantee) -> dp_pb2.BudgetWorth:
    return dp_pb2.BudgetWorth(
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        bound=BOUND_NUMBERS[guarantee.bound],
        composed=[
            dp_pb2.ComposedEpsilon(bound=BOUND_NUMBERS[bound], epsilon=epsilon)
            for bound, epsilon in guarantee.composed.items()
        ],
        domain_count=guarantee.domain_count,
    )


def cost_message(cost: Cost) -> cost_pb2.Cost:
    """Return a cost."""
    return cost_pb2.Cost(information=cost.information, calls=cost.calls, unit_id=cost.unit_id)


def parameters_message(parameters: Parameters) -> dp_pb2.MechanismParameters:
    """Return what was resolved for a question."""
    return dp_pb2.MechanismParameters(
        mechanism=_number(MECHANISMS, parameters.mechanism),
        epsilon_per=str(parameters.epsilon_per),
        delta=_exact(parameters.delta),
        tau=parameters.tau,
        delta_l0=parameters.delta_l0 or 0,
        d_bar=parameters.d_bar or 0,
        k=parameters.k or 0,
        domain_size=parameters.domain_size or 0,
        count_noise=_number(COUNT_NOISES, parameters.count_noise),
        noise_scale=_exact(parameters.noise_scale),
        consistency=_number(CONSISTENCIES, parameters.consistency),
        contributions=None if parameters.contributions is None else _contributions(parameters.contributions),
        clipped=parameters.clipped,
        sums=None if parameters.sums is None else _sums(parameters.sums),
        quantiles=None if parameters.quantiles is None else quantiles_message(parameters.quantiles),
        totals=totals_parameters(parameters.totals),
        in_element_order=parameters.in_element_order,
        having=parameters.having,
    )


def _sums(sums: Sums) -> dp_pb2.Sums:
    return dp_pb2.Sums(
        share=str(sums.share),
        columns=[
            dp_pb2.SummedColumn(
                name=column.name,
                quantum=str(column.quantum),
                lower=str(column.lower),
                upper=str(column.upper),
                share=_exact(column.share),
                noise_variance=_exact(column.noise_variance),
                has_own_count=column.has_own_count,
                count_share=_exact(column.count_share),
                count_variance=_exact(column.count_variance),
            )
            for column in sums.columns
        ],
        aggregates=[
            dp_pb2.ShownAggregate(
                function=FUNCTION_NUMBERS[each.function], column=each.column, alias=each.alias or ""
            )
            for each in sums.aggregates
        ],
        ordered_by=sums.ordered_by,
        over_rows=sums.over_rows,
    )


def _contributions(contributions: Contributions) -> dp_pb2.Contributions:
    return dp_pb2.Contributions(
        bounded_by=_number(BOUNDED_BY, contributions.bounded_by),
        delta_0=contributions.delta_0,
        periods=contributions.periods or 0,
        units=contributions.units,
        min_count=contributions.min_count or 0,
        threshold=contributions.threshold,
        noise_variance=_exact(contributions.noise_variance),
        names=None if contributions.names is None else _names_look(contributions.names),
        shift=_shift(contributions),
        sharpened=None if contributions.sharpened is None else _sharpened(contributions.sharpened),
        most_sharpening_units=contributions.most_sharpening_units or 0,
        totals_share=_exact(contributions.totals_share),
        one_value=contributions.one_value,
    )


def _sharpened(sharpened: Sharpened) -> dp_pb2.Sharpened:
    return dp_pb2.Sharpened(
        units_before=map(str, sharpened.units_before),
        denominator=sharpened.denominator,
        noise_variance=str(sharpened.noise_variance),
        planned=sharpened.planned,
    )


def _shift(contributions: Contributions) -> dp_pb2.Shift | None:
    shift = contributions.shift
    if shift is None:
        return dp_pb2.Shift() if contributions.may_shift else None
    return dp_pb2.Shift(
        factor=shift.factor,
        denominator=shift.denominator,
        count_variance=str(shift.count_variance),
        total_variance=str(shift.total_variance),
    )


def _names_look(names: NamesLook) -> dp_pb2.NamesLook:
    return dp_pb2.NamesLook(
        delta_1=names.delta_1,
        units=str(names.units),
        max_names=names.max_names,
        threshold=names.threshold,
        noise_variance=_exact(names.noise_variance),
    )


def _elements(result: PrivateResult, rows: Sequence[Row]) -> dp_pb2.ReleasedElements:
    with_counts = [row for row in rows if row.noisy_count is not None and row.interval is not None]
    message = dp_pb2.ReleasedElements(
        columns=[
            _column(column, [row.element[index] for row in rows])
            for index, column in enumerate(result.columns)
        ],
        interval_lower=[row.interval[0] for row in with_counts if row.interval],
        interval_upper=[row.interval[1] for row in with_counts if row.interval],
    )
    columns = [list(column) for column in zip(*(row.values for row in rows), strict=True)]
    columns = columns or [[] for _ in result.parameters.values]
    if result.parameters.quantiles is None:
        message.aggregates.extend(map(_aggregate_values, columns))
    else:
        message.quantiles.extend(map(quantile_values, columns, result.rank_errors))
    bounded = result.parameters.contributions
    denominator = 1 if bounded is None else bounded.denominator
    # A count is the float nearest to its numerator over this, of which rounding gives the numerator back.
    write_counts(message, [round((row.noisy_count or 0) * denominator) for row in with_counts], denominator)
    return message


def _aggregate_values(values: Sequence[ShownValue | None]) -> dp_pb2.AggregateValues:
    """Return a sum or an average of all rows; what is not shown is an empty text."""
    message = dp_pb2.AggregateValues()
    for each in values:
        message.values.append("" if each is None else str(each.value))
        message.lower.append("" if each is None else str(each.interval[0]))
        message.upper.append("" if each is None else str(each.interval[1]))
    return message


def _column(column: ExpectedColumn, values: Sequence[Shown]) -> histogram_pb2.ElementColumn:
    message = histogram_pb2.ElementColumn(name=column.name)
    match column.type:
        case ColumnType.STRING:
            message.strings.values.extend(str(value) for value in values)
        case ColumnType.INT64:
            message.int64s.values.extend(value for value in values if isinstance(value, int))
        case ColumnType.BOOL:
            message.bools.values.extend(bool(value) for value in values)
        case ColumnType.DATE:
            message.dates.days.extend(days_of(value) for value in values if isinstance(value, datetime.date))
        case ColumnType.TIMESTAMP:
            # No question groups by one, and no catalogue has a domain of one.
            raise AssertionError("timestamps are no elements")
    # A column without values still has a type.
    if not values:
        getattr(message, _FIELDS[column.type]).SetInParent()
    return message


_FIELDS = {
    ColumnType.STRING: "strings",
    ColumnType.INT64: "int64s",
    ColumnType.BOOL: "bools",
    ColumnType.DATE: "dates",
}


def _row_bytes(row: Row) -> int:
    elements = sum(len(value.encode()) + 6 if isinstance(value, str) else 11 for value in row.element)
    return ROW_OVERHEAD_BYTES + AGGREGATE_BYTES * len(row.values) + elements


def _exact(number: Fraction | None) -> str:
    return "" if number is None else str(number)


def _timestamp(timestamp: datetime.datetime | None) -> Timestamp | None:
    if timestamp is None:
        return None
    message = Timestamp()
    message.FromDatetime(timestamp)
    return message


def _number(meanings: Mapping[_Number, _Meaning], meaning: _Meaning) -> _Number:
    """Return the message's number for a meaning."""
    return next(number for number, each in meanings.items() if each is meaning)
