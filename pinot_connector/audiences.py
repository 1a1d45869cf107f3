"""As which audience of the policy a client asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from gris_api.dp.v1 import dp_pb2, question_pb2

_Asked = TypeVar("_Asked", question_pb2.Question, dp_pb2.GetCatalogRequest)


@dataclass(frozen=True)
class Audience:
    """An audience of the policy, by its name there, and the values of the names in it.

    It decides what may be asked and of which rows: what serves callers derives it from who they are, and from
    nothing that they send.
    """

    name: str
    values: Mapping[str, str] = field(default_factory=dict)


def asked_as(message: _Asked, audience: Audience | None) -> _Asked:
    """Returns a message as an audience asks it, whatever it says of audiences itself."""
    if audience is None and not message.HasField("audience"):
        return message
    asked = type(message)()
    asked.CopyFrom(message)
    asked.ClearField("audience")
    if audience is not None:
        values = [
            question_pb2.AudienceValue(name=name, value=value) for name, value in audience.values.items()
        ]
        asked.audience.CopyFrom(question_pb2.Audience(name=audience.name, values=values))
    return asked
