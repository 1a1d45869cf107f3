"""Conversations: what one connection sends, how it ends, and what came back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

PAUSE_SECONDS, SILENCE_SECONDS, MOST_SECONDS = 0.002, 0.15, 30.0


class End(Enum):
    """How a connection ends: it hears what comes; leaves at once; stays open; or waits for every answer."""

    WAIT = auto()
    LEAVE = auto()
    STAY = auto()
    ANSWERED = auto()


@dataclass(frozen=True)
class Conversation:
    """What a connection sends.

    Attributes:
        parts: The bytes, as they are sent one after the other.
        messages: How many messages they hold.
        end: How it ends.
        is_exact: Whether every answer is read, so that what they say was charged was all.
    """

    parts: Sequence[bytes]
    messages: int
    end: End
    is_exact: bool = False


class Hanging(Exception):  # noqa: N818 - it is what happened
    """The gateway neither answers nor ends a connection whose client has sent its last byte."""


@dataclass
class Heard:
    """What came back; `open` is what the client leaves open."""

    content: bytes = b""
    open: asyncio.StreamWriter | None = None


async def spoken(address: str, said: Conversation) -> Heard:
    """Have a conversation with HOST:PORT.

    Raises:
        Hanging: It does not end.
    """
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    heard = Heard()
    reading = asyncio.create_task(_read(reader, heard))
    try:
        async with asyncio.timeout(MOST_SECONDS):
            # One that is refused in the middle of what it sends hears so.
            with suppress(OSError):
                await _send(writer, said.parts)
            if said.end is End.ANSWERED:
                # Its last request says that the connection ends with its answer.
                await reading
            if said.end in (End.WAIT, End.STAY):
                await _until_silent(reading, heard)
            if said.end is End.WAIT:
                with suppress(OSError):
                    writer.write_eof()
                await reading
    except TimeoutError:
        raise Hanging from None
    finally:
        reading.cancel()
        if said.end is End.STAY:
            heard.open = writer
        else:
            writer.transport.abort()
    return heard


async def _send(writer: asyncio.StreamWriter, parts: Sequence[bytes]) -> None:
    for number, part in enumerate(parts):
        writer.write(part)
        await writer.drain()
        if number % 4 == 3:
            # A slow sender, now and then.
            await asyncio.sleep(PAUSE_SECONDS)


async def _read(reader: asyncio.StreamReader, heard: Heard) -> None:
    with suppress(OSError):
        while read := await reader.read(2**16):
            heard.content += read


async def _until_silent(reading: asyncio.Task[None], heard: Heard) -> None:
    """Wait until the gateway has closed the connection, or says nothing more for a while."""
    before = -1
    while len(heard.content) != before and not reading.done():
        before = len(heard.content)
        await asyncio.wait((reading,), timeout=SILENCE_SECONDS)
