"""Messages whose repeated fields have a value for each element, of any kind: chunks put together, and cut again.

They are read by reflection, so a field that is new needs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from pinot_connector.errors import IntegrityError

CHUNK_BYTES = 2**20

_Elements = TypeVar("_Elements", bound=Message)


def merged(whole: _Elements, chunks: Iterable[_Elements]) -> _Elements:
    """Appends the elements of chunks to a message, which is empty, and returns it.

    Raises:
        IntegrityError: the chunks have other columns than each other, or say different things of all elements.
    """
    whole.SetInParent()
    for number, chunk in enumerate(chunks):
        if number == 0:
            whole.CopyFrom(chunk)
        else:
            _append(whole, chunk)
    return whole


def cut(whole: _Elements, elements: int, most_bytes: int = CHUNK_BYTES) -> Iterator[_Elements]:
    """Yields a message of so many elements in chunks of at most so many bytes, or one element."""
    size = whole.ByteSize()
    if elements <= 1 or size <= most_bytes:
        yield whole
        return
    # Elements differ in size: what is still too large is cut again.
    step = max(1, elements * most_bytes * 7 // (size * 8))
    for start in range(0, elements, step):
        end = min(start + step, elements)
        yield from cut(rows_of(whole, slice(start, end)), end - start, most_bytes)


def rows_of(whole: _Elements, rows: slice) -> _Elements:
    """Returns a message of some of the elements."""
    part = type(whole)()
    _copy(whole, part, rows)
    return part


def without(message: _Elements, left_out: str) -> _Elements:
    """Returns a copy of a message without one of its fields."""
    return type(message)(
        **{each.name: value for each, value in message.ListFields() if each.name != left_out}
    )


def _append(whole: Any, chunk: Any) -> None:
    for field in chunk.DESCRIPTOR.fields:
        before, more = getattr(whole, field.name), getattr(chunk, field.name)
        if field.message_type is None:
            if field.is_repeated:
                before.extend(more)
            elif before != more:
                raise IntegrityError("dp_service answered with other elements than before")
        elif field.is_repeated:
            _require(len(before) == len(more))
            for one, other in zip(before, more, strict=True):
                _append(one, other)
        else:
            _require(whole.HasField(field.name) is chunk.HasField(field.name))
            if chunk.HasField(field.name):
                _append(before, more)


def _copy(whole: Any, part: Any, rows: slice) -> None:
    for field, value in whole.ListFields():
        if field.message_type is None:
            _copy_scalar(field, value, part, rows)
        elif field.is_repeated:
            for each in value:
                _copy(each, getattr(part, field.name).add(), rows)
        else:
            getattr(part, field.name).SetInParent()
            _copy(value, getattr(part, field.name), rows)


def _copy_scalar(field: FieldDescriptor, value: Any, part: Any, rows: slice) -> None:
    if field.is_repeated:
        getattr(part, field.name).extend(value[rows])
    else:
        setattr(part, field.name, value)


def _require(belongs: bool) -> None:
    if not belongs:
        raise IntegrityError("dp_service answered with other columns than before")
