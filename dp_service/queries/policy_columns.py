"""The columns that a policy lists: their values, NULLs, domains and conditions."""

from __future__ import annotations

import datetime
import re

from dp_service.queries.columns import Column, Nulls, Operator
from dp_service.queries.elements import timestamp_of
from dp_service.queries.filters import INT64_MINIMUM, Value, fault_of, type_of
from dp_service.queries.policy_domain import PublishedDomain, published_domain
from dp_service.queries.policy_faults import Faults
from dp_service.queries.policy_schema import ColumnSchema
from dp_service.queries.policy_types import PublishedSchema
from dp_service.queries.published_files import PublishedFileError
from dp_service.queries.times import Timestamps, TimeUnit
from dp_service.terms import ColumnType
from gris_serving.yaml_texts import KeyPath

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Whole milliseconds, which every engine's timestamps can hold.
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{3})?Z")

# What Apache Pinot stores where a value is NULL and the schema says nothing. For a day it is the smallest 32-bit
# integer, which is no day at all, so there is no value to write down. For a truth value it is false: rows that are
# false could not be told from those without a value, which count as false there, and on no other engine.
_DEFAULT_NULL_VALUES: dict[ColumnType, Value | None] = {
    ColumnType.STRING: "null",
    ColumnType.INT64: INT64_MINIMUM,
    ColumnType.BOOL: None,
    ColumnType.DATE: None,
    ColumnType.TIMESTAMP: timestamp_of(0),
}


def timestamps_of(schema: ColumnSchema, zone: str) -> Timestamps | None:
    """Return what a column of timestamps holds, in the zone of its table unless it states another; else None."""
    if schema.type is not ColumnType.TIMESTAMP:
        return None
    return Timestamps(None if schema.unit is None else TimeUnit.named(schema.unit), schema.zone or zone)


def column_of(name: str, schema: ColumnSchema, zone: str, path: KeyPath, fault: Faults) -> Column:
    """Return a column as the policy lists it, in the zone of its table; what is wrong with it is reported."""
    null_value = _null_value(schema, (*path, "null_value"), fault)
    published = _published(schema, (*path, "domain"), fault)
    domain = _listed(schema, (*path, "domain"), fault) if published is None else published.values
    if published is not None and schema.nulls is Nulls.DROP:
        # The publication may have included the value that stands for NULL; no answer has it.
        domain = tuple(value for value in published.values if value != null_value)
    column = schema.resolved(
        Column,
        name=name,
        domain=domain,
        null_value=null_value,
        publication=None if published is None else published.publication,
        timestamps=timestamps_of(schema, zone),
        lookup=None,
    )
    _check_nulls(column, path, fault)
    _check_timestamps(schema, path, fault)
    if Operator.RANGE in column.operators and column.type not in _ORDERED_ALIKE:
        # Pinot orders text by UTF-16 code units and DuckDB by code points: a range would not mean the same.
        fault(
            (*path, "filter"),
            "range: expected a column of type int64, date or timestamp, whose order engines agree on",
        )
    return column


_ORDERED_ALIKE = (ColumnType.INT64, ColumnType.DATE, ColumnType.TIMESTAMP)


def _check_timestamps(schema: ColumnSchema, path: KeyPath, fault: Faults) -> None:
    """Refuse what only a column of timestamps can have, and what it cannot."""
    if schema.type is not ColumnType.TIMESTAMP:
        for key in ("unit", "zone"):
            if getattr(schema, key) is not None:
                fault((*path, key), "expected this key only for a column of type timestamp")
        return
    if schema.group_by:
        fault(
            (*path, "group_by"), "expected false: timestamps cannot be grouped by; prepare a column of days"
        )
    if schema.domain is not None or schema.delta is not None:
        key = "delta" if schema.domain is None else "domain"
        fault((*path, key), "expected none: timestamps are not grouped by")
    if any(each is not Operator.RANGE for each in schema.operators):
        fault((*path, "filter"), "expected range alone: conditions on timestamps are ranges")
    if schema.nulls is Nulls.KEEP:
        fault((*path, "nulls"), "expected drop: rows without a timestamp are in no range")


def _check_nulls(column: Column, path: KeyPath, fault: Faults) -> None:
    if column.nulls is Nulls.KEEP and column.null_value is None:
        fault((*path, "null_value"), "expected the value that stands for NULL, since NULLs are kept")
    if column.nulls is Nulls.DROP and column.domain is not None and column.null_value in column.domain:
        fault((*path, "domain"), "expected no null value in the domain, since NULLs are dropped")


def _null_value(schema: ColumnSchema, path: KeyPath, fault: Faults) -> Value | None:
    is_counted = schema.type is ColumnType.TIMESTAMP and schema.unit is not None
    kind = ColumnType.INT64 if is_counted else schema.type
    if schema.null_value is None:
        return _DEFAULT_NULL_VALUES[kind]
    return value_of(schema.null_value, kind, path, fault)


def _listed(schema: ColumnSchema, path: KeyPath, fault: Faults) -> tuple[Value, ...] | None:
    """Return a domain that the policy lists, in element order: code points, numbers, false before true, days."""
    if schema.domain is None or isinstance(schema.domain, PublishedSchema):
        return None
    values = [value_of(raw, schema.type, (*path, i), fault) for i, raw in enumerate(schema.domain)]
    sound = [value for value in values if value is not None]
    if len(set(sound)) != len(sound):
        fault(path, "expected each value once")
    return tuple(sorted(sound))


def _published(schema: ColumnSchema, path: KeyPath, fault: Faults) -> PublishedDomain | None:
    """Return the domain that a file holds, if the policy names one, or report why it cannot be used."""
    named = schema.domain
    if not isinstance(named, PublishedSchema):
        return None
    _, table, _, column, _ = map(str, path)
    try:
        return published_domain(named, fault.directory, table=table, column=column, kind=schema.type)
    except PublishedFileError as error:
        fault((*path, "published"), str(error))
        return None


def value_of(raw: object, expected: ColumnType, path: KeyPath, fault: Faults) -> Value | None:
    """Return a value of the file as one of the column's type, or report a fault and return None."""
    value = _read_as(raw, expected)
    problem = fault_of(value)
    if problem is None and isinstance(value, Value) and type_of(value) is expected:
        return value
    fault(path, problem or f"expected a value of type {expected}{_HINTS.get(expected, '')}")
    return None


_HINTS = {
    ColumnType.STRING: ": put it into quotes",
    ColumnType.DATE: " as YYYY-MM-DD",
    ColumnType.TIMESTAMP: " in UTC as YYYY-MM-DDThh:mm:ssZ",
}


def _read_as(raw: object, expected: ColumnType) -> object:
    """Return a day or a timestamp that a text of the file denotes, or else what the file holds."""
    if not isinstance(raw, str):
        return raw
    try:
        if expected is ColumnType.DATE and _DATE.fullmatch(raw):
            return datetime.date.fromisoformat(raw)
        if expected is ColumnType.TIMESTAMP and _TIMESTAMP.fullmatch(raw):
            return datetime.datetime.fromisoformat(raw)
    except ValueError:
        pass
    return raw
