"""What a field of a request held that is not allowed, for its error: numbers, and of most texts only how long they are.

No text is quoted but the name of a time zone: it may be that of an account or of a person, or a literal of a query.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf.message import Message

_ZONE = re.compile("[A-Za-z0-9_+/-]{1,40}")
_STEP = re.compile(r"([a-z_0-9]+)(?:\[([0-9]+)\])?")


def got(request: Message, path: str) -> str:
    """Return what stands at a path such as `changes[0].limit.zone`; empty if there is nothing to say."""
    holder: Any = request
    steps = path.split(".")
    for number, step in enumerate(steps, 1):
        found = _STEP.fullmatch(step)
        field = None
        if found is not None and isinstance(holder, Message):
            field = holder.DESCRIPTOR.fields_by_name.get(found[1])
        if found is None or field is None:
            return ""
        is_last = number == len(steps)
        if is_last and found[2] is None:
            return _described(holder, field)
        holder = getattr(holder, field.name)
        if found[2] is not None:
            if int(found[2]) >= len(holder):
                return ""
            holder = holder[int(found[2])]
            if is_last:
                return _of_value(holder, field)
    return ""


def _described(holder: Message, field: Any) -> str:
    value = getattr(holder, field.name)
    if field.is_repeated:
        return f"{len(value)} {'entry' if len(value) == 1 else 'entries'}"
    if field.message_type is not None and not holder.HasField(field.name):
        return "nothing"
    return _of_value(value, field)


def _of_value(value: Any, field: Any) -> str:
    if isinstance(value, str | bytes):
        return _of_text(value, field.name)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if field.message_type is not None:
        # Of Duration and Timestamp, also of those that cannot be written as text.
        return f"{value.seconds + value.nanos / 10**9:.12g} seconds" if hasattr(value, "nanos") else ""
    return str(value)


def _of_text(value: str | bytes, name: str) -> str:
    if not value:
        return "nothing"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if name == "zone" and _ZONE.fullmatch(value):
        return value
    characters, size = len(value), len(value.encode(errors="replace"))
    return f"{characters} characters" + ("" if size == characters else f", {size} bytes")
