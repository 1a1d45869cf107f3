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
    QueryBins,
    QueryBucket,
    QueryCase,
    QueryCohorts,
    QueryColumn,
    QueryFirst,
    QueryFunnel,
    QueryLater,
    QueryLookup,
    QueryPart,
    QueryPartOfText,
    QueryTime,
    QueryValue,
    Restriction,
    Some,
    Source,
    TextRestriction,
)
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    QueryDistinct,
    QueryQuantiles,
)
from dp_service.queries.filters import Value
from dp_service.queries.intervals import ordinal
from dp_service.queries.text_functions import Folded, Piece, Prefix, TextFunction

_ROWS_OF_A_MEMBER = "rows of a member"
"""What the salt is of by which one row of a member is chosen: not of its elements."""


def canonical_bytes(query: CanonicalQuery) -> bytes:
    """Return the bytes that identify a question's meaning: typed, length-prefixed, equal only for equal questions."""
    return length_prefixed(
        b"gris/question/v1",
        query.table.encode(),
        query.member.encode(),
        _measure_bytes(query.measure, query.clip),
        length_prefixed(*map(_column_bytes, query.dimensions)),
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
                b"like", _column_bytes(condition.column), condition.pattern.encode(), folds, negated
            )
        case PartCondition():
            numbers = (str(each).encode() for each in condition.numbers)
            times = _restriction_bytes(condition.times)
            return length_prefixed(b"in part", *_source_bytes(condition.source), times, *numbers)
        case _:
            return _restriction_bytes(condition)


def _quantiles_bytes(quantiles: QueryQuantiles) -> bytes:
    grid = quantiles.grid
    return length_prefixed(
        b"gris/quantiles/v1",
        _summed_bytes(quantiles.value),
        quantiles.rule.encode(),
        grid.scale.encode(),
        *(str(number).encode() for number in (grid.low, grid.high, grid.cells)),
        quantiles.salt,
    )


def coordinate_bytes(coordinate: Coordinate) -> bytes:
    """Return the bytes of what is added up beside the count."""
    if isinstance(coordinate, QueryValue):
        return _summed_bytes(coordinate)
    of = (coordinate.counted.encode(), str(coordinate.bounds.totals.high).encode())
    return length_prefixed(b"number of rows", *of, *_met_bytes(coordinate.condition))


def _met_bytes(condition: Condition | None) -> tuple[bytes, ...]:
    return () if condition is None else (condition_bytes(condition),)


def _summed_bytes(value: QueryValue) -> bytes:
    bounds = value.bounds
    ends = (bounds.rows.low, bounds.rows.high, bounds.totals.low, bounds.totals.high)
    null_value = b"" if value.null_value is None else str(value.null_value).encode()
    return length_prefixed(
        value.name.encode(),
        value.type.encode(),
        str(bounds.quantum.size).encode(),
        *(str(end).encode() for end in ends),
        b"own count" if value.has_own_count else b"keep" if value.keeps_nulls else b"drop",
        null_value,
        *_met_bytes(value.condition),
        # A label, for a condition has no such bytes.
        *(
            []
            if value.squares is None
            else [length_prefixed(b"squares", str(value.squares.halvings).encode())]
        ),
    )


def _measure_bytes(measure: Measure | QueryDistinct, clip: int | None) -> bytes:
    if isinstance(measure, QueryDistinct):
        return length_prefixed(b"distinct", _column_bytes(measure.column), str(measure.most).encode())
    return measure.encode() if clip is None else length_prefixed(measure.encode(), str(clip).encode())


def _column_bytes(column: QueryColumn) -> bytes:
    null_value = b"drop" if column.null_value is None else length_prefixed(b"keep", _value(column.null_value))
    # Nothing more for a column of another type: its questions keep the fingerprints that they have.
    stored = () if column.stored is None else (column.stored.name.lower().encode(),)
    return length_prefixed(
        column.name.encode(), column.type.encode(), null_value, *stored, *_source_bytes(column.source)
    )


def _source_bytes(source: Source | None) -> tuple[bytes, ...]:
    """Encode of what a column is a function; a label tells it from the unit of timestamps, which no function has."""
    if source is None:
        return ()
    match source:
        case QueryLookup():
            found = length_prefixed(b"lookup", _column_bytes(source.key), source.hash.encode())
        case QueryBucket(time=time, length=function) | QueryPart(time=time, part=function):
            tag = b"bucket" if isinstance(source, QueryBucket) else b"part"
            found = length_prefixed(tag, _time_bytes(time), function.encode())
        case QueryCase():
            branches = (
                length_prefixed(condition_bytes(condition), _value(value))
                for condition, value in source.branches
            )
            found = length_prefixed(b"case", _value(source.otherwise), *branches)
        case QueryBins(edges=edges, labels=labels):
            numbers = (str(each).encode() for each in (*edges, *labels))
            found = length_prefixed(b"bins", _summed_bytes(source.value), *numbers)
        case QueryPartOfText(column=column, function=function):
            found = length_prefixed(b"part of text", _column_bytes(column), *_text_function_bytes(function))
        case QueryFunnel():
            found = length_prefixed(b"funnel", *map(condition_bytes, source.steps))
        case QueryFirst(cohorts=cohorts) | QueryLater(since=cohorts):
            tag = b"first" if isinstance(source, QueryFirst) else b"later"
            found = length_prefixed(tag, *_cohorts_bytes(cohorts))
    return (found,)


def _text_function_bytes(function: TextFunction) -> tuple[bytes, ...]:
    match function:
        case Folded(upper=upper):
            return (b"upper" if upper else b"lower",)
        case Prefix(length=length):
            return b"prefix", str(length).encode()
        case Piece(separator=separator, place=place):
            return b"piece", separator.encode(), str(place).encode()


def _cohorts_bytes(cohorts: QueryCohorts) -> tuple[bytes, ...]:
    """Encode buckets by where the first one begins; where they end, the restriction of the time column says."""
    return _time_bytes(cohorts.of), cohorts.length.encode(), str(cohorts.starts[0]).encode()


def _time_bytes(time: QueryTime) -> bytes:
    return length_prefixed(_column_bytes(time.column), time.zone.encode(), time.unit.name.lower().encode())


def _value(value: Value) -> bytes:
    """Encode a value; the type of its column is encoded separately."""
    return value.encode() if isinstance(value, str) else str(ordinal(value)).encode()


def _restriction_bytes(restriction: Restriction) -> bytes:
    column = _column_bytes(restriction.column)
    match restriction:
        case TextRestriction():
            tag = b"none of" if restriction.excluded else b"one of"
            return length_prefixed(column, tag, *(text.encode() for text in restriction.values))
        case OrdinalRestriction():
            ends = (end for interval in restriction.intervals for end in (interval.start, interval.end))
            return length_prefixed(column, b"within", *(str(end).encode() for end in ends))
