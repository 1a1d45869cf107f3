"""A limit on the bytes of SQL that are read at a time, of each caller and of all together.

Reading takes 6 microseconds of processor time a byte, so the longest text takes 1.5 seconds. A caller who sends many
of them at once must not keep others waiting for longer than one of them takes. Bytes count until the text has been
read, also where its caller has left by then.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from dp_service.queries.sql.places import MAXIMUM_LENGTH

MAX_BYTES_OF_ALL = 4 * MAXIMUM_LENGTH

_Answer = TypeVar("_Answer")


class TooMuchSqlError(Exception):
    """The limit of bytes is reached; nothing of the refused text was read."""


class SqlAdmission:
    """Counts the bytes of SQL that are being read, in one event loop.

    Args:
        most: The most bytes of one caller; the longest text that is accepted has to fit.
        most_of_all: The most bytes of all callers together.
    """

    def __init__(self, most: int = MAXIMUM_LENGTH, most_of_all: int = MAX_BYTES_OF_ALL) -> None:
        self._most = most
        self._most_of_all = most_of_all
        self._held: Counter[str] = Counter()

    async def read(self, caller: str, text: str, work: Callable[[], _Answer]) -> _Answer:
        """Do the work that reads a text, off the event loop.

        Args:
            caller: Who sent it.
            text: The SQL.
            work: Reads it, and does what follows from it.

        Raises:
            TooMuchSqlError: Too many bytes are being read already.
        """
        length = len(text.encode())
        # What is longer is refused before it is read.
        size = length if length <= MAXIMUM_LENGTH else 0
        self._require_room(caller, size)
        self._held[caller] += size
        reading = asyncio.create_task(asyncio.to_thread(work))
        reading.add_done_callback(lambda _: self._give_back(caller, size))
        # A thread cannot be stopped, and what it still reads must count.
        return await asyncio.shield(reading)

    def _require_room(self, caller: str, size: int) -> None:
        held = self._held[caller]
        if size and held + size > self._most:
            raise TooMuchSqlError(
                f"sql: got {size:,} bytes beside {held:,} of this caller that are being read, expected at most "
                f"{self._most:,} at a time; nothing was begun, try again in a moment"
            )
        if size and self._held.total() + size > self._most_of_all:
            raise TooMuchSqlError(
                f"sql: got {size:,} bytes, and with those of other callers more than {self._most_of_all:,} would be "
                "read at a time; nothing was begun, try again in a moment"
            )

    def _give_back(self, caller: str, size: int) -> None:
        self._held[caller] -= size
        if not self._held[caller]:
            del self._held[caller]
