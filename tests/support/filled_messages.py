"""Messages of which every field is set."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_KINDS: dict[int, Any] = {
    FieldDescriptor.TYPE_STRING: "3",
    FieldDescriptor.TYPE_BYTES: b"x",
    FieldDescriptor.TYPE_BOOL: True,
    FieldDescriptor.TYPE_DOUBLE: 0.5,
}


def filled(
    message: Message, without: frozenset[str] = frozenset(), chosen: frozenset[str] = frozenset()
) -> None:
    """Sets every field to something else than its default, and every list to one entry.

    Of a choice what is chosen is set, otherwise the first one.
    """
    for field in message.DESCRIPTOR.fields:
        if field.name in without or not is_chosen(field, chosen):
            continue
        if field.message_type is not None:
            part = getattr(message, field.name)
            part = part.add() if field.is_repeated else part
            # One without fields is set, too.
            part.SetInParent()
            filled(part, without, chosen)
            continue
        # The services' times are in microseconds.
        value = 1000 if field.name == "nanos" else _KINDS.get(field.type, 1)
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)


def is_chosen(field: Any, chosen: frozenset[str]) -> bool:
    """Returns whether `filled` sets a field: one that is no part of a choice, or that of the choice's fields."""
    if field.containing_oneof is None:
        return True
    names = [each.name for each in field.containing_oneof.fields]
    chosen_one: bool = field.name == next((name for name in names if name in chosen), names[0])
    return chosen_one
