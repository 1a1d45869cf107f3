"""Results that a gateway keeps for the accounts that paid for them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict
from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import question_pb2

from pinot_connector.gateway_client import result_of
from pinot_connector.results import PrivateResult


@dataclass(frozen=True)
class PastResult:
    """A result that was given; its `charged` is nothing if the account had paid for it before.

    Attributes:
        released_at: When it was returned.
        question: What was asked.
        request_id: The request's name; empty: it had none.
        result: The result; without rows if there were too many to keep.
        elements_omitted: Whether there were, or the question is not offered.
        not_offered: Whether the audience of the caller is not offered the question: what is said of it is its name.
    """

    released_at: datetime.datetime
    question: question_pb2.Question
    request_id: str
    result: PrivateResult
    elements_omitted: bool
    not_offered: bool = False

    @classmethod
    def of(cls, message: app_pb2.PastRelease) -> PastResult:
        """Returns the result that a message holds."""
        end = app_pb2.Result()
        end.CopyFrom(message.result)
        chunks = [message.elements]
        if message.elements_omitted:
            # There are no columns either.
            chunks, end.shown.element_count = [], 0
        return cls(
            released_at=message.released_at.ToDatetime(tzinfo=datetime.UTC),
            question=message.question,
            request_id=message.request_id,
            result=result_of(chunks, end),
            elements_omitted=message.elements_omitted,
            not_offered=message.not_offered,
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the result in terms of JSON."""
        return {
            "released_at": self.released_at.isoformat(),
            "question": MessageToDict(self.question, preserving_proto_field_name=True),
            "request_id": self.request_id,
            "elements_omitted": self.elements_omitted,
            **({"not_offered": True} if self.not_offered else {}),
            "result": self.result.to_dict(),
        }
