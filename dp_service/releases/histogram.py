"""A histogram inside dp_service: elements with typed columns, and their true counts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.encoding import length_prefixed
from dp_service.terms import ColumnType, Element, Scalar

# A DATE value is its number of days since 1970-01-01.
_TYPE_OF_VALUE = {
    ColumnType.STRING: str,
    ColumnType.INT64: int,
    ColumnType.BOOL: bool,
    ColumnType.DATE: int,
}

MAXIMUM_COUNT = 2**53


class HistogramError(ValueError):
    """A histogram that cannot be the answer to the plan's query; the message holds no value and no count."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.field = "histogram"


@dataclass(frozen=True)
class Histogram:
    """Elements in ascending order and their true counts, int64 of shape (n,). It never leaves dp_service."""

    types: tuple[ColumnType, ...]
    elements: list[Element]
    counts: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Histogram({len(self.elements)} elements)"

    def existing(self) -> Histogram:
        """Return the rows with a count above 0: engines differ in whether they return empty groups."""
        kept = np.flatnonzero(self.counts)
        return Histogram(self.types, [self.elements[i] for i in kept.tolist()], self.counts[kept])

    def digest(self) -> bytes:
        """Return the SHA-256 of types, elements and counts, rows by element. Its running time depends on no count.

        It depends on true counts: it may enter a keyed function and nothing else.
        """
        columns = [_column_bytes(kind, self.elements, i) for i, kind in enumerate(self.types)]
        counts = self.counts.astype(">i8").tobytes()
        return hashlib.sha256(length_prefixed(b"gris/histogram/v1", *columns, counts)).digest()


def _column_bytes(kind: ColumnType, elements: Sequence[Element], position: int) -> bytes:
    values = [element[position] for element in elements]
    if kind is ColumnType.STRING:
        texts = list(map(str.encode, cast("list[str]", values)))
        lengths = np.array(list(map(len, texts)), dtype=">i8").tobytes()
        return length_prefixed(kind.name.encode(), lengths, b"".join(texts))
    return length_prefixed(kind.name.encode(), np.array(values, dtype=">i8").tobytes())


def checked_histogram(
    types: tuple[ColumnType, ...],
    columns: Sequence[Sequence[Scalar]],
    counts: Sequence[int],
    *,
    row_limit: int,
) -> Histogram:
    """Check an engine's answer and return it as a histogram, sorted by element.

    The rows must come in descending order of count, as the query asks for them (ties in any order): another order is
    the answer to another query. Elements may not repeat, and counts lie in [0, 2^53].

    Args:
        types: The types of the element columns.
        columns: The values of each column, one for each row.
        counts: The count of each row.
        row_limit: The most rows that there may be.

    Raises:
        HistogramError: The answer breaks one of these rules.
    """
    if len(columns) != len(types):
        raise HistogramError(f"expected {len(types)} element columns, got {len(columns)}")
    if any(len(column) != len(counts) for column in columns):
        raise HistogramError("expected as many values in every column as there are counts")
    if len(counts) > row_limit:
        raise HistogramError(f"expected at most the plan's {row_limit} rows")
    _check_types(types, columns)
    elements: list[Element] = list(zip(*columns, strict=True))
    # Values of a single column have the order of their elements, and are compared faster.
    keys: Sequence[Scalar | Element] = columns[0] if len(columns) == 1 else elements
    if len(set(keys)) != len(keys):
        raise HistogramError("expected each element once")
    checked = _checked_counts(counts)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return Histogram(types, [elements[i] for i in order], checked[order])


def _check_types(types: tuple[ColumnType, ...], columns: Sequence[Sequence[Scalar]]) -> None:
    for kind, column in zip(types, columns, strict=True):
        if not set(map(type, column)) <= {_TYPE_OF_VALUE[kind]}:
            raise HistogramError(f"expected values of type {kind.name}")


def _checked_counts(counts: Sequence[int]) -> NDArray[np.int64]:
    if not set(map(type, counts)) <= {int}:
        raise HistogramError("expected counts that are whole numbers")
    if counts and (min(counts) < 0 or max(counts) > MAXIMUM_COUNT):
        raise HistogramError("expected counts from 0 to 2^53")
    array = np.array(counts, dtype=np.int64)
    if np.any(array[1:] > array[:-1]):
        raise HistogramError("expected rows in descending order of count, as the query asks for them")
    return array


def over_domain(histogram: Histogram, domain: Sequence[Element], *, row_limit: int) -> Histogram:
    """Return the histogram over a whole known domain, given in ascending order; absent elements count 0.

    Rows outside the domain are left out: their elements must not be named, and refusing the answer would let one
    member's row decide whether there is an answer.

    Raises:
        HistogramError: There are `row_limit` rows, and some are outside the domain: then rows inside it may be missing.
    """
    found = dict(zip(histogram.elements, histogram.counts.tolist(), strict=True))
    counts = [found.pop(element, 0) for element in domain]
    _require_uncut(len(found), histogram, row_limit)
    return Histogram(histogram.types, list(domain), np.array(counts, dtype=np.int64))


def within(histogram: Histogram, values: Sequence[Sequence[Scalar] | None], *, row_limit: int) -> Histogram:
    """Return the rows whose value in each column is one of those in `values`, None: any; see `over_domain`.

    Raises:
        HistogramError: As `over_domain`.
    """
    held = [(i, frozenset(allowed)) for i, allowed in enumerate(values) if allowed is not None]
    kept = [
        row
        for row, element in enumerate(histogram.elements)
        if all(element[i] in allowed for i, allowed in held)
    ]
    _require_uncut(len(histogram.elements) - len(kept), histogram, row_limit)
    return Histogram(histogram.types, [histogram.elements[i] for i in kept], histogram.counts[kept])


def _require_uncut(outside: int, histogram: Histogram, row_limit: int) -> None:
    if outside and len(histogram.elements) >= row_limit:
        raise HistogramError("expected only elements of the domain that the query asks for")
