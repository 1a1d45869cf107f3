"""Calls of a gateway, and how they end."""

from __future__ import annotations

from typing import Any

import grpc

from pinot_connector.questions import structured_question

TOP = structured_question("feedback", "article_id", k=10)


async def ended(call: Any) -> grpc.StatusCode:
    """Return how a call ends."""
    try:
        async for _ in call:
            pass
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK
