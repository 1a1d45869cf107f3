"""Messages that cannot be read: the SDK leaves them without an answer, or repeats in one what was sent."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

UNREADABLE = (
    "expected one JSON-RPC 2.0 message in UTF-8, without lone surrogates, and protocol versions as YYYY-MM-DD"
)
_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_Incoming: TypeAlias = ReadStream[SessionMessage | Exception]


def is_readable(body: bytes) -> bool:
    """Return whether bytes are a message of JSON-RPC, of a version that may be named in an answer."""
    try:
        message = jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        return False
    return names_version(message)


def is_version(text: str) -> bool:
    """Return whether a text has the form of the protocol's versions: answers name the one that was asked for."""
    return _VERSION.fullmatch(text) is not None


def names_version(message: JSONRPCMessage) -> bool:
    """Return whether every version that a message states has the form of one."""
    params = message.params if isinstance(message, JSONRPCRequest | JSONRPCNotification) else None
    meta = (params or {}).get("_meta")
    stated = (
        (params or {}).get("protocolVersion"),
        meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None,
    )
    return all(is_version(each) for each in stated if isinstance(each, str))


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
                elif not names_version(each.message):
                    await outgoing.send(SessionMessage(_unreadable(getattr(each.message, "id", None))))
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
    return _unreadable(found)


def _unreadable(request_id: str | int | None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=PARSE_ERROR, message=UNREADABLE))


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
