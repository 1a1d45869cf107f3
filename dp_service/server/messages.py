"""Converts messages to values and back. It checks only what a message can hold."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar, assert_never

from google.protobuf import timestamp_pb2
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message
from gris_api.common.v1 import cost_pb2, histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.mechanisms.parameters import Cost
from dp_service.queries import asked_numbers, filters
from dp_service.queries.blocks import PaidBy
from dp_service.queries.contributions import PreparedCopy
from dp_service.queries.elements import days_of
from dp_service.queries.read_columns import ReadColumn, ReadValue
from dp_service.queries.render import Feature
from dp_service.queries.resolution import ClosedStream
from dp_service.queries.times import CompleteBy, ReplacedRows, TimeUnit
from dp_service.releases.histogram import HistogramError
from dp_service.releases.kinds.views import AnsweredAggregate, ShownSums
from dp_service.releases.statements import Statement
from dp_service.terms import (
    BoundedBy,
    ColumnType,
    Consistency,
    CountNoise,
    Element,
    MechanismName,
    Scalar,
    ValueType,
)

_Member = TypeVar("_Member", bound=Enum)
_Message = TypeVar("_Message", bound=Message)


def numbers(members: type[_Member], described: EnumDescriptor) -> dict[_Member, Any]:
    """Return the numbers that messages have for the members of an enum: those of their names."""
    prefix = described.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {each: described.values_by_name[f"{prefix}{each.name}"].number for each in members}


def filled(message: _Message, fields: Mapping[str, Any]) -> _Message:
    """Return a message once its fields have what is said of them, by their names.

    Exact numbers are written as texts, members of enums as the numbers of their names, and mappings as messages; what
    is None stays unset.
    """
    described = message.DESCRIPTOR.fields_by_name
    for name, value in fields.items():
        if value is None:
            continue
        if isinstance(value, Mapping):
            part = getattr(message, name)
            part.SetInParent()
            filled(part, value)
        elif described[name].is_repeated:
            _extend(getattr(message, name), value)
        else:
            setattr(message, name, _written(described[name], value))
    return message


def _extend(repeated: Any, values: Iterable[object]) -> None:
    for value in values:
        if isinstance(value, Mapping):
            filled(repeated.add(), value)
        else:
            repeated.append(str(value) if isinstance(value, Fraction) else value)


def _written(field: Any, value: object) -> Any:
    if isinstance(value, Enum):
        return _numbers(type(value), field.enum_type)[value]
    return str(value) if isinstance(value, Fraction) else value


_numbers = cache(numbers)
MEASURES = numbers(asked_numbers.Measure, question_pb2.Measure.DESCRIPTOR)
COLUMN_TYPES = numbers(ColumnType, histogram_pb2.ColumnType.DESCRIPTOR)
TIME_UNITS = numbers(TimeUnit, dp_pb2.TimeUnit.DESCRIPTOR)
MECHANISMS = numbers(MechanismName, dp_pb2.Mechanism.DESCRIPTOR)
BOUNDED_BY = numbers(BoundedBy, dp_pb2.BoundedBy.DESCRIPTOR)
CONSISTENCIES = numbers(Consistency, dp_pb2.Consistency.DESCRIPTOR)
COUNT_NOISES = numbers(CountNoise, dp_pb2.CountNoise.DESCRIPTOR)
FEATURES = numbers(Feature, dp_pb2.EngineFeature.DESCRIPTOR)
_VALUE_TYPES = numbers(ValueType, dp_pb2.ValueType.DESCRIPTOR)
_COMPLETE_BY = numbers(CompleteBy, dp_pb2.CompleteBy.DESCRIPTOR)


def statement_message(statement: Statement) -> dp_pb2.Statement:
    """Return what is said of a question or an answer."""
    return dp_pb2.Statement(
        code=statement.code, text=statement.text, column=statement.column, values=statement.values
    )


def aggregate_message(aggregate: AnsweredAggregate, rows: slice = slice(None)) -> dp_pb2.AggregateValues:
    """Return a sum or an average of some of the elements."""
    # The form is that of all elements, so parts belong together.
    if isinstance(aggregate, ShownSums) and _fits(aggregate):
        steps = dp_pb2.SumSteps(
            values=aggregate.values[rows], lower=aggregate.lower[rows], upper=aggregate.upper[rows]
        )
        return dp_pb2.AggregateValues(steps=steps)
    texts = (
        ("", "", "") if each is None else (str(each.value), str(each.lower), str(each.upper))
        for each in aggregate.answers[rows]
    )
    values, lower, upper = zip(*texts, strict=True) if aggregate.answers[rows] else ((), (), ())
    return dp_pb2.AggregateValues(exact=dp_pb2.ExactNumbers(values=values, lower=lower, upper=upper))


def _fits(sums: ShownSums) -> bool:
    numbers = (*sums.values, *sums.lower, *sums.upper)
    return -(2**63) <= min(numbers, default=0) and max(numbers, default=0) < 2**63


def column_values(message: histogram_pb2.ElementColumn) -> Sequence[Scalar]:
    """Return the values of one column of a message; dates as days since 1970-01-01."""
    match message.WhichOneof("values"):
        case "strings":
            return list(message.strings.values)
        case "int64s":
            return list(message.int64s.values)
        case "bools":
            return list(message.bools.values)
        case "dates":
            return list(message.dates.days)
        case _:
            raise HistogramError("expected values in every element column")


def element_columns(
    columns: Sequence[tuple[str, ColumnType]], elements: Sequence[Element]
) -> list[histogram_pb2.ElementColumn]:
    """Return elements as typed columns, one for each dimension."""
    values: Iterable[Sequence[Scalar]] = zip(*elements, strict=True) if elements else [()] * len(columns)
    return [_element_column(name, kind, column) for (name, kind), column in zip(columns, values, strict=True)]


def _element_column(name: str, kind: ColumnType, values: Sequence[Scalar]) -> histogram_pb2.ElementColumn:
    column = histogram_pb2.ElementColumn(name=name)
    match kind:
        case ColumnType.STRING:
            column.strings.values.extend(values)  # type: ignore[arg-type]  # the histogram's types were checked
            column.strings.SetInParent()
        case ColumnType.INT64:
            column.int64s.values.extend(values)  # type: ignore[arg-type]
            column.int64s.SetInParent()
        case ColumnType.BOOL:
            column.bools.values.extend(values)  # type: ignore[arg-type]
            column.bools.SetInParent()
        case ColumnType.DATE:
            column.dates.days.extend(values)  # type: ignore[arg-type]
            column.dates.SetInParent()
        case ColumnType.TIMESTAMP:
            # No question groups by one, and the policy lists no domain of one.
            raise AssertionError("timestamps are no elements")
        case _:
            assert_never(kind)
    return column


def closed_stream(stream: ClosedStream | None) -> dp_pb2.ClosedStream | None:
    """Return what must hold of the table's stream; None: nothing."""
    if stream is None or stream.time.complete_by is None:
        return None
    return dp_pb2.ClosedStream(
        time_column=stream.time.name,
        start=stream.start,
        end=stream.end,
        complete_by=_COMPLETE_BY[stream.time.complete_by],
        replaced_until_closed=stream.time.replaced_rows is not None,
        offline_days_are_whole=stream.time.offline_part is not None,
        # Only a table whose rows are replaced has a key.
        member_column=stream.member if stream.time.replaced_rows is not None else "",
        replaced_by_same_member=stream.time.replaced_rows is ReplacedRows.UNTIL_CLOSED_BY_SAME_MEMBER,
    )


def bounded_copy(copy: PreparedCopy | None) -> dp_pb2.BoundedCopy | None:
    """Return what the table's file must say of itself; None: nothing."""
    if copy is None:
        return None
    return dp_pb2.BoundedCopy(
        table=copy.table,
        member=copy.member,
        elements=copy.elements,
        typical=copy.typical,
        period=copy.period,
    )


def expected_columns(
    columns: Sequence[tuple[str, ColumnType]], aliases: Sequence[str | None]
) -> list[histogram_pb2.Column]:
    """Return names and types of the element columns, and their aliases; empty: they have none."""
    named = zip(columns, aliases or [None] * len(columns), strict=True)
    return [
        histogram_pb2.Column(name=name, type=COLUMN_TYPES[kind], alias=alias) for (name, kind), alias in named
    ]


def read_column(column: ReadColumn) -> dp_pb2.ReadColumn:
    """Return what a query assumes about a column."""
    message = dp_pb2.ReadColumn(name=column.name)
    if column.type is not None:
        message.type = COLUMN_TYPES[column.type]
    if column.null_value is not None:
        message.null_value.CopyFrom(value_message(column.null_value))
    if column.numbers is not None:
        message.smallest, message.largest = column.numbers.start, column.numbers.end - 1
    if column.stored is not None:
        message.time_unit = TIME_UNITS[column.stored]
    return message


def read_value(value: ReadValue) -> dp_pb2.ReadValue:
    """Return what a query assumes about a column that it sums."""
    null_value = "" if value.null_value is None else str(value.null_value)
    return dp_pb2.ReadValue(name=value.name, type=_VALUE_TYPES[value.type], null_value=null_value)


def value_message(value: filters.Value) -> question_pb2.Value:
    """Return a value of a policy or a question."""
    match value:
        case bool():
            return question_pb2.Value(bool=value)
        case int():
            return question_pb2.Value(int64=value)
        case str():
            return question_pb2.Value(string=value)
        case datetime.datetime():
            timestamp = timestamp_pb2.Timestamp()
            timestamp.FromDatetime(value)
            return question_pb2.Value(timestamp=timestamp)
        case datetime.date():
            return question_pb2.Value(date=days_of(value))


def cost_message(cost: Cost, paid_by: PaidBy) -> cost_pb2.Cost:
    """Return a cost in its currency, with who pays it."""
    return cost_pb2.Cost(
        information=cost.information,
        calls=cost.calls,
        unit_id=paid_by.unit_id,
        blocks=paid_by.blocks,
    )
