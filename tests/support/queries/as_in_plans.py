"""What a plan carries, written and read as a plan is."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter

_Part = TypeVar("_Part")


def carried(part: _Part) -> _Part:
    """Returns a part of a plan as it is after it was written and read."""

    adapter: TypeAdapter[tuple[_Part]] = TypeAdapter(
        tuple[type(part)],  # type: ignore[misc,arg-type]
        config=ConfigDict(ser_json_bytes="hex", val_json_bytes="hex", extra="forbid"),
    )
    return adapter.validate_json(adapter.dump_json((part,), exclude_defaults=True))[0]
