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
    if elements <= 1 or whole.ByteSize() <= most_bytes:
        yield whole
        return
    middle = elements // 2
    for part, size in ((slice(0, middle), middle), (slice(middle, elements), elements - middle)):
        yield from cut(rows_of(whole, part), size, most_bytes)


def rows_of(whole: _Elements, rows: slice) -> _Elements:
    """Returns a message of some of the elements."""
    part = type(whole)()
    _copy(whole, part, rows)
    return part


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
