"""A histogram inside dp_service: elements with typed columns, and their true counts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.encoding import length_prefixed
from dp_service.terms import ColumnType, Element, Scalar
from dp_service.values.bounds import Clamp

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
class TypedHistogram:
    """Elements in ascending order and their true counts, int64 of shape (n,). It never leaves dp_service.

    `total` is the number of members that the engine's answer counts, also in rows that are left out afterwards; None:
    it was not asked for. `sums` has the centred sums of each column that is summed, int64 of shape (n,), and then the
    own counts of the columns that have some.
    """

    types: tuple[ColumnType, ...]
    elements: list[Element]
    counts: NDArray[np.int64]
    total: int | None = None
    sums: tuple[NDArray[np.int64], ...] = ()

    def __repr__(self) -> str:
        return f"TypedHistogram({len(self.elements)} elements)"

    def with_count(self, least: int) -> TypedHistogram:
        """Return the rows with at least this count, from 1 on: engines differ in whether they return empty groups."""
        return self.rows(np.flatnonzero(self.counts >= least).tolist())

    def rows(self, kept: Sequence[int]) -> TypedHistogram:
        """Return some of the rows, given in ascending order."""
        places = np.array(kept, dtype=np.int64)
        return replace(
            self,
            elements=[self.elements[i] for i in kept],
            counts=self.counts[places],
            sums=tuple(column[places] for column in self.sums),
        )

    def digest(self) -> bytes:
        """Return the SHA-256 of types, elements, counts, sums and total, rows by element; its time depends on no count.

        It depends on true counts: it may enter a keyed function and nothing else.
        """
        columns = [_column_bytes(kind, self.elements, i) for i, kind in enumerate(self.types)]
        numbers = [column.astype(">i8").tobytes() for column in (self.counts, *self.sums)]
        total = () if self.total is None else (b"total", self.total.to_bytes(8, "big"))
        return hashlib.sha256(length_prefixed(b"gris/histogram/v1", *columns, *numbers, *total)).digest()


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
    sums: Sequence[Sequence[int]] = (),
    *,
    row_limit: int,
    first_counts: Sequence[int] | None = None,
    clamps: Sequence[Clamp] = (),
    scales: Sequence[int] = (),
    own_counts: Sequence[int] = (),
) -> TypedHistogram:
    """Check an engine's answer and return it as a histogram, sorted by element.

    The rows must come in descending order of count, as the query asks for them (ties in any order): another order is
    the answer to another query. Elements may not repeat, and counts lie in [0, 2^53]. A centred sum of n members is one
    of n numbers, each within the width of its clamp: another one would move more than was priced. Sums that are not
    centred, and own counts, are of members with other weights than those of the counts.

    Args:
        types: The types of the element columns.
        columns: The values of each column, one for each row.
        counts: The count of each row.
        sums: The centred sums of each column that is summed, one for each row, and then the own counts.
        row_limit: The most rows that there may be.
        first_counts: Of how many members each row's element is the first; None: the query does not ask.
        clamps: The ends of a member's total, for each column that is summed.
        scales: How many steps of a count one of each column's sums is; empty: 1.
        own_counts: The places of the columns that have a count of their own.

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
    # Without columns every row has the element of no values; the zip of nothing would have none.
    elements: list[Element] = list(zip(*columns, strict=True)) if columns else [()] * len(counts)
    # Values of a single column have the order of their elements, and are compared faster.
    keys: Sequence[Scalar | Element] = columns[0] if len(columns) == 1 else elements
    if len(set(keys)) != len(keys):
        raise HistogramError("expected each element once")
    checked = _checked_counts(counts)
    total = None if first_counts is None else _checked_total(first_counts, counts)
    ends = list(zip(clamps, scales or [1] * len(clamps), strict=True))
    checked_sums = _checked_sums(sums, checked, ends, own_counts)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    in_order = tuple(column[order] for column in checked_sums)
    return TypedHistogram(types, [elements[i] for i in order], checked[order], total, in_order)


def _checked_total(first_counts: Sequence[int], counts: Sequence[int]) -> int:
    """Return how many members there are; each counts at least 1 in its first element."""
    if len(first_counts) != len(counts) or not set(map(type, first_counts)) <= {int}:
        raise HistogramError("expected a whole number of first elements in every row")
    if any(not 0 <= first <= count for first, count in zip(first_counts, counts, strict=True)):
        raise HistogramError("expected no element to be the first of more members than it counts")
    total = sum(first_counts)
    if total > MAXIMUM_COUNT:
        raise HistogramError("expected at most 2^53 members")
    return total


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


def _checked_sums(
    sums: Sequence[Sequence[int]],
    counts: NDArray[np.int64],
    clamps: Sequence[tuple[Clamp, int]],
    own_counts: Sequence[int],
) -> list[NDArray[np.int64]]:
    """Return the sums, each of as many members as its column counts, and behind them the own counts."""
    if len(sums) != len(clamps) + len(own_counts):
        raise HistogramError(f"expected sums of {len(clamps)} columns and {len(own_counts)} own counts")
    owned = {
        place: _checked_own(column, counts.size)
        for place, column in zip(own_counts, sums[len(clamps) :], strict=True)
    }
    summed = [
        _checked_column(column, owned.get(place, counts), *clamp)
        for place, (column, clamp) in enumerate(zip(sums, clamps, strict=False))
    ]
    return [*summed, *owned.values()]


def _checked_own(column: Sequence[int], size: int) -> NDArray[np.int64]:
    """Return the counts of a column's own."""
    if len(column) != size or not set(map(type, column)) <= {int}:
        raise HistogramError("expected a whole number of a column's own counts in every row")
    if any(not 0 <= own <= MAXIMUM_COUNT for own in column):
        raise HistogramError("expected counts of a column's own from 0 to 2^53")
    return np.array(column, dtype=np.int64)


def _checked_column(
    column: Sequence[int], counts: NDArray[np.int64], clamp: Clamp, scale: int
) -> NDArray[np.int64]:
    """Return the sums of one column if n members can have them: centred ones are of 2 s - (low + high) each."""
    if len(column) != counts.size:
        raise HistogramError("expected as many sums in every column as there are counts")
    if not set(map(type, column)) <= {int} or any(abs(each) > MAXIMUM_COUNT for each in column):
        raise HistogramError("expected sums that are whole numbers within +-2^53")
    array = np.array(column, dtype=np.int64)
    # Of at most 2^53 members and widths of at most 2^51: floats do not overflow, and tell which are to be compared.
    far = np.flatnonzero(np.abs(array) * (scale * (1 + 2**-40)) >= counts.astype(np.float64) * clamp.width)
    is_beyond = clamp.is_centred and any(
        abs(int(array[row])) * scale > int(counts[row]) * clamp.width for row in far
    )
    # What is rounded can be even or odd.
    is_whole = scale == 1
    if is_beyond or (is_whole and np.any((array - counts * (clamp.centre % 2)) % 2)):
        raise HistogramError("expected sums that so many members can have")
    return array


def over_domain(histogram: TypedHistogram, domain: Sequence[Element], *, row_limit: int) -> TypedHistogram:
    """Return the histogram over a whole known domain, given in ascending order; absent elements count 0.

    Rows outside the domain are left out: their elements must not be named, and refusing the answer would let one
    member's row decide whether there is an answer. They stay in the total, which has to count everyone that some count
    does: a member with a first element outside may have another one inside.

    Raises:
        HistogramError: There are `row_limit` rows, and some are outside the domain: then rows inside it may be missing.
    """
    found = {element: row for row, element in enumerate(histogram.elements)}
    places = np.array([found.pop(element, -1) for element in domain], dtype=np.int64)
    _require_uncut(len(found), histogram, row_limit)
    counts, *sums = (_at(column, places) for column in (histogram.counts, *histogram.sums))
    return replace(histogram, elements=list(domain), counts=counts, sums=tuple(sums))


def _at(column: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number in each place, 0 in the place -1."""
    return np.append(column, 0)[places]


def within(
    histogram: TypedHistogram, values: Sequence[Sequence[Scalar] | None], *, row_limit: int
) -> TypedHistogram:
    """Return the rows whose value in each column is one of those in `values`, None: any; see `over_domain`.

    Raises:
        HistogramError: As `over_domain`.
    """
    held = [(i, frozenset(allowed)) for i, allowed in enumerate(values) if allowed is not None]
    if not held:
        return histogram
    kept = [
        row
        for row, element in enumerate(histogram.elements)
        if all(element[i] in allowed for i, allowed in held)
    ]
    _require_uncut(len(histogram.elements) - len(kept), histogram, row_limit)
    return histogram.rows(kept)


def _require_uncut(outside: int, histogram: TypedHistogram, row_limit: int) -> None:
    if outside and len(histogram.elements) >= row_limit:
        raise HistogramError("expected only elements of the domain that the query asks for")
