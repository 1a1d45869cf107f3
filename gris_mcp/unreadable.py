"""Messages that cannot be read: the SDK leaves them without an answer, or repeats in one what was sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

UNREADABLE = "expected one JSON-RPC 2.0 message in UTF-8, without lone surrogates"

_Incoming: TypeAlias = ReadStream[SessionMessage | Exception]


def is_readable(body: bytes) -> bool:
    """Return whether bytes are a message of JSON-RPC."""
    try:
        jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        return False
    return True


@asynccontextmanager
async def answering_unreadable(
    incoming: _Incoming, outgoing: WriteStream[SessionMessage]
) -> AsyncIterator[_Incoming]:
    """Yield the messages that can be read; the others are answered here, or their sender would wait for ever."""
    passed_on, readable = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def pass_on() -> None:
        async with passed_on:
            async for each in incoming:
                if isinstance(each, Exception):
                    await outgoing.send(SessionMessage(_answer(each)))
                else:
                    await passed_on.send(each)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on)
        yield readable
        tasks.cancel_scope.cancel()


def _answer(error: Exception) -> JSONRPCError:
    """Return the answer to a message that cannot be read, by its id as far as that can be."""
    ids = (_id_of(each) for each in _sent(error))
    found = next((each for each in ids if each is not None), None)
    return JSONRPCError(jsonrpc="2.0", id=found, error=ErrorData(code=PARSE_ERROR, message=UNREADABLE))


def _sent(error: Exception) -> Iterator[Any]:
    if isinstance(error, ValidationError):
        for each in error.errors(include_url=False, include_context=False):
            yield each["input"]


def _id_of(sent: Any) -> str | int | None:
    if isinstance(sent, str):
        try:
            # It reads lone surrogates too.
            sent = json.loads(sent)
        except (ValueError, RecursionError):
            return None
    found = sent.get("id") if isinstance(sent, dict) else None
    is_id = isinstance(found, int) or (isinstance(found, str) and found.isprintable())
    return found if is_id and not isinstance(found, bool) else None
