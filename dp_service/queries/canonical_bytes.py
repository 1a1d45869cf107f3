"""The bytes of a canonical question, which name its release."""

from __future__ import annotations

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_columns import (
    Condition,
    Coordinate,
    Every,
    OrdinalRestriction,
    PartCondition,
    PatternCondition,
    QueryValue,
    Restriction,
    Some,
    TextRestriction,
)
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    QueryDistinct,
    QueryQuantiles,
)

_ROWS_OF_A_MEMBER = "rows of a member"
"""What the salt is of by which one row of a member is chosen: not of its elements."""


def canonical_bytes(query: CanonicalQuery) -> bytes:
    """Return the bytes that identify a question's meaning: typed, length-prefixed, equal only for equal questions."""
    return length_prefixed(
        b"gris/question/v1",
        query.table.encode(),
        query.member.encode(),
        _measure_bytes(query.measure, query.clip),
        length_prefixed(*map(bytes, query.dimensions)),
        length_prefixed(*map(_restriction_bytes, query.restrictions)),
        # Nothing more without sums: such questions keep the fingerprints that they have.
        *([length_prefixed(*map(coordinate_bytes, query.values))] if query.values else []),
        *([] if query.quantiles is None else [_quantiles_bytes(query.quantiles)]),
        *(
            [length_prefixed(b"conditions", *map(condition_bytes, query.conditions))]
            if query.conditions
            else []
        ),
    )


def condition_bytes(condition: Condition) -> bytes:
    """Return the bytes of one condition."""
    match condition:
        case Every() | Some():
            tag = b"every" if isinstance(condition, Every) else b"some"
            return length_prefixed(tag, *map(condition_bytes, condition.parts))
        case PatternCondition():
            folds, negated = (b"yes" if each else b"no" for each in (condition.folds, condition.negated))
            return length_prefixed(
                b"like", bytes(condition.column), condition.pattern.encode(), folds, negated
            )
        case PartCondition():
            numbers = (str(each).encode() for each in condition.numbers)
            times = _restriction_bytes(condition.times)
            return length_prefixed(b"in part", bytes(condition.source), times, *numbers)
        case _:
            return _restriction_bytes(condition)


def _quantiles_bytes(quantiles: QueryQuantiles) -> bytes:
    grid = quantiles.grid
    return length_prefixed(
        b"gris/quantiles/v1",
        summed_bytes(quantiles.value),
        quantiles.rule.encode(),
        grid.scale.encode(),
        *(str(number).encode() for number in (grid.low, grid.high, grid.cells)),
        quantiles.salt,
    )


def coordinate_bytes(coordinate: Coordinate) -> bytes:
    """Return the bytes of what is added up beside the count."""
    if isinstance(coordinate, QueryValue):
        return summed_bytes(coordinate)
    of = (coordinate.counted.encode(), str(coordinate.bounds.totals.high).encode())
    return length_prefixed(b"number of rows", *of, *_met_bytes(coordinate.condition))


def _met_bytes(condition: Condition | None) -> tuple[bytes, ...]:
    return () if condition is None else (condition_bytes(condition),)


def summed_bytes(value: QueryValue) -> bytes:
    """Return the bytes of a column whose numbers are read."""
    bounds = value.bounds
    ends = (bounds.rows.low, bounds.rows.high, bounds.totals.low, bounds.totals.high)
    null_value = b"" if value.null_value is None else str(value.null_value).encode()
    return length_prefixed(
        value.name.encode(),
        value.type.encode(),
        str(bounds.quantum.size).encode(),
        *(str(end).encode() for end in ends),
        b"keep" if value.keeps_nulls else b"drop",
        null_value,
        *([f"average of {value.rows or 'totals'}".encode()] if value.has_own_count else []),
        *_met_bytes(value.condition),
    )


def _measure_bytes(measure: Measure | QueryDistinct, clip: int | None) -> bytes:
    if isinstance(measure, QueryDistinct):
        return length_prefixed(b"distinct", bytes(measure.column), str(measure.most).encode())
    return measure.encode() if clip is None else length_prefixed(measure.encode(), str(clip).encode())


def _restriction_bytes(restriction: Restriction) -> bytes:
    column = bytes(restriction.column)
    match restriction:
        case TextRestriction():
            tag = b"none of" if restriction.excluded else b"one of"
            return length_prefixed(column, tag, *(text.encode() for text in restriction.values))
        case OrdinalRestriction():
            ends = (end for interval in restriction.intervals for end in (interval.start, interval.end))
            return length_prefixed(column, b"within", *(str(end).encode() for end in ends))
