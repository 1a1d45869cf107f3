"""Values as a plan carries them: days and timestamps say what they are, for they are texts in JSON."""

from __future__ import annotations

import datetime
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from dp_service.queries.filters import Value


def _tagged(value: Value) -> object:
    """Return a value as JSON has it; days and timestamps with what they are, for they are texts there."""
    match value:
        case datetime.datetime():
            return {"at": value.isoformat()}
        case datetime.date():
            return {"day": value.isoformat()}
    return value


def _untagged(value: object) -> object:
    match value:
        case {"at": str(text)}:
            return datetime.datetime.fromisoformat(text)
        case {"day": str(text)}:
            return datetime.date.fromisoformat(text)
    return value


PlanValue = Annotated[Value, PlainSerializer(_tagged), PlainValidator(_untagged)]
"""A value that a plan carries."""
