"""Checks an engine's answer, and writes it as messages of AddNoise, in chunks if it is large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gris_api.common.v1 import histogram_pb2

from pinot_connector.days import FIRST_DAY, LAST_DAY
from pinot_connector.engines.base import ColumnType, Element, EngineAnswer, EngineQuery, ExpectedColumn
from pinot_connector.errors import IncompleteAnswer

MAX_CHUNK_BYTES = 2**20
# What dp_service takes in one piece, whole or as a chunk.
MAX_ROW_BYTES = 3 * 2**20
MAX_COUNT = 2**53


def checked(query: EngineQuery, answer: EngineAnswer) -> EngineAnswer:
    """Returns the answer if it has the shape that was asked for, whichever engine gave it.

    dp_service checks what needs the plan: types, order, repetition and the domain.

    Raises:
        IncompleteAnswer: too many rows, columns of different lengths, counts out of range, or days that Python does not
            know, which could not be shown once they were paid for.
    """
    if len(answer.counts) > query.row_limit:
        raise IncompleteAnswer("the engine answered with more rows than asked")
    if [len(column) for column in answer.elements] != [len(answer.counts)] * len(query.columns):
        raise IncompleteAnswer("the engine answered with columns that do not belong together")
    if [len(column) for column in answer.sums] != [len(answer.counts)] * (len(query.sums) + query.own_counts):
        raise IncompleteAnswer("the engine answered with sums that do not belong together")
    if any(not -MAX_COUNT <= number <= MAX_COUNT for column in answer.sums for number in column):
        raise IncompleteAnswer("the engine answered with an impossible sum")
    if answer.counts and not 0 <= min(answer.counts) <= max(answer.counts) <= MAX_COUNT:
        raise IncompleteAnswer("the engine answered with an impossible count")
    _check_first_counts(query, answer)
    for column, values in zip(query.columns, answer.elements, strict=True):
        if column.type is ColumnType.DATE and not all(map(_is_day, values)):
            raise IncompleteAnswer("the engine answered with a day outside the years 1 to 9999")
    return answer


def _check_first_counts(query: EngineQuery, answer: EngineAnswer) -> None:
    if len(answer.first_counts) != (len(answer.counts) if query.first_counts else 0):
        raise IncompleteAnswer("the engine answered with columns that do not belong together")
    firsts = zip(answer.first_counts, answer.counts, strict=False)
    if not all(0 <= first <= count for first, count in firsts):
        raise IncompleteAnswer("the engine answered with an impossible count")


def histogram(columns: tuple[ExpectedColumn, ...], answer: EngineAnswer) -> histogram_pb2.Histogram:
    """Returns the whole answer as one message.

    Raises:
        IncompleteAnswer: a value is not of its column's type.
    """
    return _slice(columns, answer, 0, len(answer.counts))


def element_columns(
    columns: tuple[ExpectedColumn, ...], elements: Sequence[Sequence[Element]]
) -> list[histogram_pb2.ElementColumn]:
    """Returns the values of each column as messages."""
    messages = []
    for column, values in zip(columns, elements, strict=True):
        messages.append(histogram_pb2.ElementColumn(name=column.name))
        _fill(messages[-1], column.type, values)
    return messages


def chunks(
    columns: tuple[ExpectedColumn, ...], answer: EngineAnswer, whole_bytes: int
) -> Iterator[histogram_pb2.Histogram]:
    """Yields the answer in messages of at most 1 MiB, in its order.

    A single row that is larger is sent alone. `whole_bytes` is the size of the whole answer as one message; from it the
    size of a chunk is estimated.

    Raises:
        IncompleteAnswer: a single row is too large for any message.
    """
    total = len(answer.counts)
    rows = max(1, total * MAX_CHUNK_BYTES // (2 * max(1, whole_bytes)))
    for start in range(0, total, rows):
        yield from _halved(columns, answer, start, min(start + rows, total))


def _halved(
    columns: tuple[ExpectedColumn, ...], answer: EngineAnswer, start: int, end: int
) -> Iterator[histogram_pb2.Histogram]:
    # Rows differ in size, so a chunk of average rows can still be too large.
    chunk = _slice(columns, answer, start, end)
    size = chunk.ByteSize()
    if size <= MAX_CHUNK_BYTES or end - start == 1:
        if size > MAX_ROW_BYTES:
            raise IncompleteAnswer("the engine answered with a value that is too long")
        yield chunk
        return
    middle = (start + end) // 2
    yield from _halved(columns, answer, start, middle)
    yield from _halved(columns, answer, middle, end)


def _is_day(value: object) -> bool:
    return isinstance(value, int) and FIRST_DAY <= value <= LAST_DAY


def _slice(
    columns: tuple[ExpectedColumn, ...], answer: EngineAnswer, start: int, end: int
) -> histogram_pb2.Histogram:
    message = histogram_pb2.Histogram()
    try:
        for column, values in zip(columns, answer.elements, strict=True):
            _fill(message.columns.add(name=column.name), column.type, values[start:end])
        message.counts.extend(answer.counts[start:end])
        message.first_counts.extend(answer.first_counts[start:end])
        for sums in answer.sums:
            message.sums.add(values=sums[start:end])
    except (TypeError, ValueError):
        # protobuf's own text repeats the value.
        raise IncompleteAnswer("the engine answered with a value of another type than asked") from None
    return message


def _fill(message: histogram_pb2.ElementColumn, kind: ColumnType, values: Sequence[Element]) -> None:
    match kind:
        case ColumnType.STRING:
            message.strings.SetInParent()
            message.strings.values.extend(values)  # type: ignore[arg-type]  # protobuf checks them itself
        case ColumnType.INT64:
            message.int64s.SetInParent()
            message.int64s.values.extend(values)  # type: ignore[arg-type]
        case ColumnType.BOOL:
            message.bools.SetInParent()
            message.bools.values.extend(values)  # type: ignore[arg-type]
        case ColumnType.DATE:
            message.dates.SetInParent()
            message.dates.days.extend(values)  # type: ignore[arg-type]
        case ColumnType.TIMESTAMP:
            raise IncompleteAnswer("the engine answered with timestamps, which are no elements")
