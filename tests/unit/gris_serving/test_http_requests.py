"""Requests over HTTP that are not whole."""

from __future__ import annotations

import pytest
from starlette.types import Message

from gris_serving.http_requests import HttpRules
from gris_serving.refusals import HttpRefusalError


async def test_what_was_read_of_a_sender_who_left_is_no_request() -> None:
    """Else a question would be asked whose sender had not finished it, though what has come is one."""
    coming: list[Message] = [
        {"type": "http.request", "body": b'{"sql": "SELECT 1"}', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return coming.pop(0)

    with pytest.raises(HttpRefusalError, match="one whole request"):
        await HttpRules().body({"type": "http", "headers": []}, receive)
