"""Rows of a ledger in Redis: one script reads, and another one writes if nobody has written since.

Redis locks nothing. Each write gives the root a revision that it never had before, and a write whose root has another
one than was read is refused: the batch is begun again. That alone decides. So that a service with large batches is not
overtaken every time, one that was overtaken has the root kept for it for a moment: others wait before they read.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec import msgpack

from budget_service.ledger.values import Account
from budget_service.ledger.windows import SECOND, Microseconds
from budget_service.stores.interface import OutcomeUnknownError, StoreError, StoreUnavailableError
from budget_service.stores.redis.layout import key_of, keys_of, row_key
from budget_service.stores.redis.replication import LOST, Replication
from budget_service.stores.redis.scripts import READ, WRITE, Scripts, reading
from budget_service.stores.row_map import Found, OvertakenError, Put, Range, RowKey, Writes

# How long a root is kept at most for the service that was overtaken: it may have died meanwhile.
TURN_MILLISECONDS = 500
# How soon others look again.
LOOK_SECONDS = 0.002

# Beyond every time.
NEVER = 2**53

SILENT = "Redis did not answer in time"
IS_TAKEN = 2


class RedisRows:
    """The rows of a ledger in Redis; see `RowMap`.

    Args:
        loading: Runs the scripts that read.
        writing: Runs the scripts that write.
        replication: What is known of replicas.
        clock: Returns the time that replaces Redis' own, or an empty text.
        answer_seconds: How long Redis may take for all round trips of a transaction together.
    """

    def __init__(
        self,
        loading: Scripts,
        writing: Scripts,
        replication: Replication,
        *,
        clock: Callable[[], str],
        answer_seconds: float,
    ) -> None:
        self._loading = loading
        self._writing = writing
        self._replication = replication
        self._clock = clock
        self._answer_seconds = answer_seconds
        # Of this process alone, so that no two writes choose the same revision.
        self.name = secrets.token_hex(8)
        self._numbers = itertools.count()
        self.overtaken: set[str] = set()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[RedisTransaction]:
        """Begin a transaction that commits nothing; see `RowMap`."""
        yield RedisTransaction(self, "", asyncio.get_running_loop().time() + self._answer_seconds)

    @asynccontextmanager
    async def begin(self, roots: Collection[str]) -> AsyncIterator[RedisTransaction]:
        """Begin a transaction on one root; see `RowMap`."""
        (root,) = roots
        self.require_nothing_lost(StoreUnavailableError)
        with self._replication.changing():
            begun = RedisTransaction(self, root, asyncio.get_running_loop().time() + self._answer_seconds)
            try:
                yield begun
            finally:
                if begun.keeps_turn:
                    # Else others would wait until it expires.
                    with suppress(StoreError):
                        await begun.give_up_turn()

    async def ask(
        self, root: str, keys: Collection[RowKey], ranges: Sequence[Range], turn: str, claims: int
    ) -> Any:
        """Return the answer of `read.lua`, None while the root is kept for another service.

        Args:
            root: The root whose revision is told.
            keys: The keys of rows.
            ranges: Ranges of rows.
            turn: The name of the service that begins a transaction; empty without one.
            claims: For how many milliseconds the root is kept for it; 0 does not keep it.
        """
        asked = {
            "turn": turn,
            "claims": str(claims) if claims else False,
            "clock": self._clock(),
            "keys": [row_key(*key) for key in keys],
            "ranges": [
                (
                    key_of(each.root, "names"),
                    key_of(each.root, "row:"),
                    each.after,
                    each.until,
                    "-1" if each.at_most is None else str(each.at_most),
                )
                for each in ranges
            ],
        }
        named = keys_of(root, "revision", "turn")
        packed = msgpack.encode(asked)
        return await reading(self._loading.of_schema(READ, named, packed, account=Account((root,))))

    async def write(self, root: str, packed: bytes, revision: str, decided_at: Microseconds) -> bool:
        """Write if the root has this revision, and what was decided was decided lately; return whether it was so."""
        keys = keys_of(root, "revision", "turn", "names", "journal")
        # A clock that a test stops is not Redis' own, which has to be known here.
        until = NEVER if self._clock() else decided_at + round(self._answer_seconds * SECOND)
        values = (packed, revision, self.name, str(until))
        answer = await self._writing.of_schema(WRITE, keys, *values, account=Account((root,)))
        if answer == IS_TAKEN:
            raise ValueError("the key of a new row is taken")
        (self.overtaken.discard if answer else self.overtaken.add)(root)
        return bool(answer)

    def next_revision(self) -> str:
        """Return a revision that no root ever had."""
        return f"{self.name}-{next(self._numbers)}"

    def require_nothing_lost(self, error: type[StoreError]) -> None:
        """Return unless the ledger lacks earlier changes, in which case it raises the error."""
        if self._replication.lost:
            raise error(LOST)


class RedisTransaction:
    """A transaction on a root, or on none if it only reads; see `RowTransaction`.

    While it `keeps_turn`, others wait for it.
    """

    def __init__(self, rows: RedisRows, root: str, until: float) -> None:
        self.keeps_turn = False
        self._rows = rows
        self._root = root
        self._until = until
        self._revision: str | None = None
        self._clock: Microseconds = 0

    async def read(self, keys: Collection[RowKey], ranges: Sequence[Range] = ()) -> Found:
        """Return rows; see `RowTransaction`."""
        keys = tuple(keys)
        root = self._root or (keys[0] if keys else ranges[0])[0]
        reply = await self._answer(root, keys, ranges)
        clock, revision, texts, found = reply
        if self._revision is not None and revision != self._revision:
            self._revision = None
            raise OvertakenError
        if self._revision is None:
            self._revision, self._clock = revision, int(clock)
        rows = {key: text for key, text in zip(keys, texts, strict=True) if text is not None}
        for each, flat in zip(ranges, found, strict=True):
            pairs = zip(flat[::2], flat[1::2], strict=True)
            rows.update({(each.root, name): text for name, text in pairs})
        return Found(int(clock), rows)

    async def _answer(self, root: str, keys: Sequence[RowKey], ranges: Sequence[Range]) -> Any:
        if not self._root:
            return await self._rows.ask(root, keys, ranges, "", 0)
        while True:
            self.keeps_turn = self.keeps_turn or root in self._rows.overtaken
            claims = TURN_MILLISECONDS if self.keeps_turn and self._revision is None else 0
            reply = await self._rows.ask(root, keys, ranges, self._rows.name, claims)
            self._rows.require_nothing_lost(StoreUnavailableError)
            if reply is not None:
                return reply
            if asyncio.get_running_loop().time() > self._until:
                raise StoreUnavailableError("others were quicker each time")
            self._rows.overtaken.add(root)
            await asyncio.sleep(LOOK_SECONDS)

    async def commit(self, writes: Writes | None, committed: Callable[[], None]) -> bool:
        """Write all or nothing; see `RowTransaction`.

        Without changes there is nothing to do: Redis answers a reading after what was written before is on the disk.
        """
        if writes is not None:
            packed = msgpack.encode(_commands(writes) | {"revision": self._rows.next_revision()})
            try:
                async with asyncio.timeout_at(self._until):
                    if not await self._rows.write(self._root, packed, self._revision or "", self._clock):
                        return False
            except TimeoutError:
                raise OutcomeUnknownError(SILENT) from None
            self.keeps_turn = False
            self._rows.require_nothing_lost(OutcomeUnknownError)
        committed()
        return True

    async def give_up_turn(self) -> None:
        """Let others go on."""
        packed = msgpack.encode({"puts": [], "deletes": [], "entries": []})
        await self._rows.write(self._root, packed, self._revision or "", self._clock)


def _commands(writes: Writes) -> dict[str, Any]:
    return {
        "puts": [
            (row_key(*each.key), each.text, each.key[1], _milliseconds(each, writes), each.is_new)
            for each in writes.puts
        ],
        "deletes": [(row_key(*key), key[1]) for key in writes.deletes],
        "entries": [(str(each.number), each.text) for each in writes.appends],
    }


def _milliseconds(put: Put, writes: Writes) -> str | None:
    if put.keep_until is None:
        return None
    return str(max(1, math.ceil((put.keep_until - writes.times[put.key[0]]) / 1000)))
