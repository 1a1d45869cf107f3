"""A question's canonical form as JSON: the plan of a first look carries it, so that the second query can be written."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    OrdinalRestriction,
    QueryBucket,
    QueryColumn,
    QueryLookup,
    QueryQuantiles,
    QueryValue,
    Restriction,
    TextRestriction,
)
from dp_service.queries.elements import date_of, timestamp_of
from dp_service.queries.intervals import Interval, ordinal
from dp_service.queries.structured import Measure, Value
from dp_service.queries.times import TimeUnit
from dp_service.terms import ColumnType, GridScale, GridSpec, MemberValue, ValueType
from dp_service.values.bounds import Clamp, ValueBounds
from dp_service.values.quantum import Quantum


def query_to_json(query: CanonicalQuery) -> dict[str, Any]:
    """Return all of a question's meaning as values of JSON."""
    return {
        "table": query.table,
        "member": query.member,
        "dimensions": list(map(_column_to_json, query.dimensions)),
        "measure": query.measure.name,
        "clip": query.clip,
        "restrictions": list(map(_restriction_to_json, query.restrictions)),
        # Nothing more without sums: such plans keep the bytes that they have.
        **({"values": list(map(_summed_to_json, query.values))} if query.values else {}),
        **({} if query.quantiles is None else {"quantiles": _quantiles_to_json(query.quantiles)}),
        **({} if query.bucket is None else {"bucket": _bucket_to_json(query.bucket)}),
        **_lookups_to_json(query),
    }


def query_from_json(body: dict[str, Any]) -> CanonicalQuery:
    """Return the question that `query_to_json` wrote."""
    lookups = {name: _lookup_from_json(each) for name, each in body.get("lookups", {}).items()}
    return CanonicalQuery(
        table=body["table"],
        member=body["member"],
        dimensions=tuple(_column_from_json(each, lookups) for each in body["dimensions"]),
        measure=Measure[body["measure"]],
        clip=body["clip"],
        restrictions=tuple(_restriction_from_json(each, lookups) for each in body["restrictions"]),
        values=tuple(map(_summed_from_json, body.get("values", ()))),
        quantiles=_quantiles_from_json(body["quantiles"]) if "quantiles" in body else None,
        bucket=_bucket_from_json(body["bucket"]) if "bucket" in body else None,
    )


def _lookups_to_json(query: CanonicalQuery) -> dict[str, Any]:
    """Return each looked-up column's lookup, once by the column's name; nothing if there is none."""
    columns = [*query.dimensions, *(each.column for each in query.restrictions)]
    found = {each.name: _lookup_to_json(each.lookup) for each in columns if each.lookup is not None}
    return {"lookups": found} if found else {}


def _lookup_to_json(lookup: QueryLookup) -> dict[str, Any]:
    return {
        "key": _column_to_json(lookup.key),
        "hash": lookup.hash,
        "entries": [[_plain(key), text] for key, text in lookup.entries],
    }


def _lookup_from_json(body: dict[str, Any]) -> QueryLookup:
    key = _column_from_json(body["key"], {})
    entries = [(_value_from_json(value, key.type, None), text) for value, text in body["entries"]]
    return QueryLookup(
        key, tuple((value, text) for value, text in entries if value is not None), body["hash"]
    )


def _summed_to_json(value: QueryValue) -> dict[str, Any]:
    bounds = value.bounds
    return {
        "name": value.name,
        "type": value.type.name,
        "quantum": str(bounds.quantum.size),
        "rows": [bounds.rows.low, bounds.rows.high],
        "totals": [bounds.totals.low, bounds.totals.high],
        "keeps_nulls": value.keeps_nulls,
        "null_value": None if value.null_value is None else str(value.null_value),
        **({"has_own_count": True} if value.has_own_count else {}),
    }


def _summed_from_json(body: dict[str, Any]) -> QueryValue:
    null_value: str | None = body["null_value"]
    return QueryValue(
        name=body["name"],
        type=ValueType[body["type"]],
        bounds=ValueBounds(Quantum(Fraction(body["quantum"])), Clamp(*body["rows"]), Clamp(*body["totals"])),
        keeps_nulls=body["keeps_nulls"],
        null_value=None if null_value is None else Fraction(null_value),
        has_own_count=body.get("has_own_count", False),
    )


def _quantiles_to_json(quantiles: QueryQuantiles) -> dict[str, Any]:
    grid = quantiles.grid
    return {
        "value": _summed_to_json(quantiles.value),
        "rule": quantiles.rule.name,
        "grid": [grid.scale.name, grid.low, grid.high, grid.cells],
        "salt": quantiles.salt.hex(),
    }


def _quantiles_from_json(body: dict[str, Any]) -> QueryQuantiles:
    scale, *numbers = body["grid"]
    return QueryQuantiles(
        _summed_from_json(body["value"]),
        MemberValue[body["rule"]],
        GridSpec(GridScale[scale], *numbers),
        bytes.fromhex(body["salt"]),
    )


def _bucket_to_json(bucket: QueryBucket) -> dict[str, Any]:
    return {
        "column": _column_to_json(bucket.column),
        "length": bucket.length.name,
        "zone": bucket.zone,
        "unit": bucket.unit.name,
    }


def _bucket_from_json(body: dict[str, Any]) -> QueryBucket:
    return QueryBucket(
        _column_from_json(body["column"], {}),
        BucketLength[body["length"]],
        body["zone"],
        TimeUnit[body["unit"]],
    )


def _column_to_json(column: QueryColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type.name,
        "null_value": _plain(column.null_value),
        "stored": None if column.stored is None else column.stored.name,
    }


def _plain(value: Value | None) -> str | int | None:
    return value if value is None or isinstance(value, str) else ordinal(value)


def _column_from_json(body: dict[str, Any], lookups: Mapping[str, QueryLookup]) -> QueryColumn:
    stored = None if body["stored"] is None else TimeUnit[body["stored"]]
    kind = ColumnType[body["type"]]
    null_value = _value_from_json(body["null_value"], kind, stored)
    return QueryColumn(body["name"], kind, null_value, stored, lookups.get(body["name"]))


def _value_from_json(value: str | int | None, kind: ColumnType, stored: TimeUnit | None) -> Value | None:
    if value is None or isinstance(value, str):
        return value
    match kind:
        case ColumnType.BOOL:
            return bool(value)
        case ColumnType.DATE:
            return date_of(value)
        case ColumnType.TIMESTAMP if stored is None:
            return timestamp_of(value)
        case _:
            return value


def _restriction_to_json(restriction: Restriction) -> dict[str, Any]:
    column = _column_to_json(restriction.column)
    match restriction:
        case TextRestriction():
            return {"column": column, "values": restriction.values, "excluded": restriction.excluded}
        case OrdinalRestriction():
            return {"column": column, "intervals": [[each.start, each.end] for each in restriction.intervals]}


def _restriction_from_json(body: dict[str, Any], lookups: Mapping[str, QueryLookup]) -> Restriction:
    column = _column_from_json(body["column"], lookups)
    if "values" in body:
        return TextRestriction(column, tuple(body["values"]), body["excluded"])
    return OrdinalRestriction(column, tuple(Interval(start, end) for start, end in body["intervals"]))
