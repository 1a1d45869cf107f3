"""Transactions of one root account in Redis: one script loads, and another one writes if nobody has written since.

Redis locks nothing. Each write gives the root a revision that it never had before, and a write whose root has another
one than was loaded is refused: the batch is begun again. That alone decides. So that a service with large batches is
not overtaken every time, one that was overtaken has the root kept for it for a moment: others wait before they load.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec import msgpack

from budget_service.ledger.balances import PastDay
from budget_service.ledger.values import Account
from budget_service.ledger.windows import SECOND, Microseconds
from budget_service.stores.damaged_rows import read_limit
from budget_service.stores.interface import OutcomeUnknownError, StoreError, StoreUnavailableError
from budget_service.stores.redis import encoding as text
from budget_service.stores.redis.layout import blocks_key, days_key, keys_of, payment_key, request_key
from budget_service.stores.redis.replication import LOST, Replication
from budget_service.stores.redis.scripts import LOAD, WRITE, Scripts, reading
from budget_service.stores.redis.writing import commands
from budget_service.stores.transactions import Changes, Loaded, Wanted

# How long a root is kept at most for the service that was overtaken: it may have died meanwhile.
TURN_MILLISECONDS = 500
# How soon others look again.
LOOK_SECONDS = 0.002

# Beyond every time.
NEVER = 2**53

_LOADED_KEYS = ("root", "balances", "reservations", "ends", "limits", "closed", "turn")
SILENT = "Redis did not answer in time"


class RedisTransactions:
    """The transactions of a ledger in Redis; see `Transactions`.

    Args:
        loading: Runs the scripts that load.
        writing: Runs the scripts that write.
        replication: What is known of replicas.
        clock: Returns the time that replaces Redis' own, or an empty text.
        most_due: How many lapsed reservations are loaded at most.
        answer_seconds: How long Redis may take for both round trips together.
    """

    def __init__(
        self,
        loading: Scripts,
        writing: Scripts,
        replication: Replication,
        *,
        clock: Callable[[], str],
        most_due: int,
        answer_seconds: float,
    ) -> None:
        self._loading = loading
        self._writing = writing
        self._replication = replication
        self._clock = clock
        self._most_due = most_due
        self._answer_seconds = answer_seconds
        # Of this process alone, so that no two writes choose the same revision.
        self._name = secrets.token_hex(8)
        self._numbers = itertools.count()
        self._overtaken: set[str] = set()

    async def load(self, wanted: Wanted) -> Loaded:
        """Return what is wanted as it is now; see `Transactions`."""
        asked = _Asked(wanted, self._clock(), self._most_due)
        return asked.loaded(await self._ask(asked.root, asked.packed()))

    @asynccontextmanager
    async def transaction(self, wanted: Wanted) -> AsyncIterator[RedisTransaction]:
        """Load what is wanted and its revision; see `Transactions`."""
        if self._replication.lost:
            raise StoreUnavailableError(LOST)
        with self._replication.changing():
            begun = await self._begin(_Asked(wanted, self._clock(), self._most_due))
            if self._replication.lost:
                raise StoreUnavailableError(LOST)
            try:
                yield begun
            finally:
                if begun.keeps_turn:
                    # Else others would wait until it expires.
                    with suppress(StoreError):
                        await begun.give_up_turn()

    async def _begin(self, asked: _Asked) -> RedisTransaction:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._answer_seconds
        is_overtaken = asked.root in self._overtaken
        while True:
            packed = asked.packed(self._name, TURN_MILLISECONDS if is_overtaken else 0)
            reply = await self._ask(asked.root, packed)
            if reply is not None:
                return RedisTransaction(self, asked, reply, until, keeps_turn=is_overtaken)
            if loop.time() > until:
                raise StoreUnavailableError("others were quicker each time")
            is_overtaken = True
            await asyncio.sleep(LOOK_SECONDS)

    async def _ask(self, root: str, packed: bytes) -> Any:
        keys = keys_of(root, *_LOADED_KEYS)
        return await reading(self._loading.of_schema(LOAD, keys, packed, account=Account((root,))))

    async def write(self, root: str, packed: bytes, revision: str, decided_at: Microseconds) -> bool:
        """Write if the root has this revision, and what was decided was decided lately; return whether it was so."""
        keys = keys_of(root, "root", "turn")
        # A clock that a test stops is not Redis' own, which has to be known here.
        until = NEVER if self._clock() else decided_at + round(self._answer_seconds * SECOND)
        values = (packed, revision, self._name, str(until))
        is_written = bool(await self._writing.of_schema(WRITE, keys, *values, account=Account((root,))))
        (self._overtaken.discard if is_written else self._overtaken.add)(root)
        return is_written

    def next_revision(self) -> str:
        """Return a revision that no root ever had."""
        return f"{self._name}-{next(self._numbers)}"

    def require_nothing_lost(self) -> None:
        """Return unless what was just written is in a ledger that lacks earlier changes."""
        if self._replication.lost:
            raise OutcomeUnknownError(LOST)


class RedisTransaction:
    """A transaction that has loaded; see `Transaction`. While it `keeps_turn`, others wait for it."""

    def __init__(
        self, transactions: RedisTransactions, asked: _Asked, reply: Any, until: float, *, keeps_turn: bool
    ) -> None:
        self.loaded = asked.loaded(reply)
        self.keeps_turn = keeps_turn
        self._transactions = transactions
        self._root = asked.root
        self._revision = _revision(reply)
        self._until = until
        self._known = frozenset(self.loaded.balances)

    async def commit(self, changes: Changes, committed: Callable[[], None]) -> bool:
        """Write all changes; see `Transaction`.

        Without changes there is nothing to do: Redis answers a reading after what was written before is on the disk.
        """
        if changes:
            revision = self._transactions.next_revision()
            made = commands(self._root, changes, revision, self._known)
            try:
                async with asyncio.timeout_at(self._until):
                    if not await self._write(list(made)):
                        return False
            except TimeoutError:
                raise OutcomeUnknownError(SILENT) from None
            self.keeps_turn = False
            self._transactions.require_nothing_lost()
        committed()
        return True

    async def give_up_turn(self) -> None:
        """Let others go on."""
        await self._write([])

    async def _write(self, made: list[tuple[str, ...]]) -> bool:
        packed = msgpack.encode(made)
        return await self._transactions.write(self._root, packed, self._revision, self.loaded.clock)


@dataclass(slots=True)
class _Asked:
    """What `load.lua` is asked for, and how its answer is read."""

    wanted: Wanted
    clock: str
    most_due: int
    root: str = field(init=False)
    levels: list[Account] = field(init=False)
    # Of which all blocks are wanted.
    whole: list[Account] = field(init=False)
    outcomes: list[str] = field(init=False)

    def __post_init__(self) -> None:
        (self.root,) = self.wanted.roots
        self.levels = list(dict.fromkeys(self.wanted.levels))
        self.whole = list(dict.fromkeys(self.wanted.blocks))
        self.outcomes = list(dict.fromkeys([request_id for _, request_id in self.wanted.outcomes]))

    def packed(self, turn: str = "", claims: int = 0) -> bytes:
        """Return the argument of the script.

        Args:
            turn: The name of the process that begins a transaction; empty without one.
            claims: For how many milliseconds the root is kept for it; 0 does not keep it.
        """
        wanted, root = self.wanted, self.root
        return msgpack.encode(
            {
                "turn": turn,
                "claims": str(claims) if claims else False,
                "clock": self.clock,
                "most_due": str(self.most_due),
                "levels": [level.text for level in self.levels],
                "kept": [
                    *[request_key(root, request_id) for request_id in self.outcomes],
                    *[payment_key(root, *key) for key in wanted.payments],
                ],
                "reservations": [id_ for (_, id_), _ in wanted.reservations],
                "payers": [payment_key(root, payer, "query", "") for _, payer in wanted.reservations],
                "is_administered": bool(wanted.counted),
                "limits": [level.text for level in wanted.limits],
                "closed": [level.text for level in wanted.closed],
                "days": [days_key(level) for level in self.levels] if wanted.history else [],
                "blocks": [(level.text, blocks_key(level), days_key(level)) for level in self.whole],
                "opening": blocks_key(Account((root,))) if wanted.opening else False,
                "has_open": wanted.history,
            }
        )

    def loaded(self, reply: list[Any]) -> Loaded:
        """Return what the script has answered."""
        (
            clock,
            record,
            balances,
            held,
            kept,
            reservations,
            paid,
            due,
            administered,
            past,
            open_,
            *found_blocks,
        ) = reply
        root, wanted = self.root, self.wanted
        found = tuple([text.parse_reservation(id_, each) for id_, each in text.pairs(due)])
        loaded = Loaded(
            clock=int(clock),
            roots={} if record[0] is None else {root: text.parse_root(root, record[1:])},
            balances={
                level: text.parse_balance(level.text, each)
                for level, each in zip(self.levels, balances, strict=True)
                if each is not None
            },
            due={root: found},
            due_further={root} if len(found) == self.most_due else set(),
        )
        blocks, days_of_blocks, count = found_blocks
        for level, each in text.pairs([*held, *blocks]):
            if each is not None:
                loaded.balances[Account.of_text(level)] = text.parse_balance(level, each)
        loaded.note_blocks(self.whole)
        loaded.block_counts = {root: count}
        self._read_kept(kept, loaded)
        for (key, payer), each, payment in zip(wanted.reservations, reservations, paid, strict=True):
            self._read_reservation(loaded, key[1], payer, each, payment)
        if administered:
            self._read_administered(administered, loaded)
        if wanted.history:
            loaded.past = {
                level: _by_start(text.parse_past_days(level.text, days))
                for level, days in zip(self.levels, past, strict=True)
            }
            for (level, _), days in zip(text.pairs(blocks), days_of_blocks, strict=True):
                loaded.past[Account.of_text(level)] = _by_start(text.parse_past_days(level, days))
            loaded.open = {root: tuple([text.parse_reservation(*each) for each in text.pairs(open_)])}
        return loaded

    def _read_kept(self, kept: list[Any], loaded: Loaded) -> None:
        for request_id, each in zip(self.outcomes, kept, strict=False):
            if each is not None:
                loaded.outcomes[self.root, request_id] = text.parse_outcome(request_id, each)
        for key, each in zip(self.wanted.payments, kept[len(self.outcomes) :], strict=True):
            loaded.payments[key] = None if each is None else text.parse_payment(key[2], each)

    def _read_reservation(
        self, loaded: Loaded, id_: str, payer: str, kept: str | None, payment: str | None
    ) -> None:
        if kept is None:
            loaded.reservations[self.root, id_] = None
            return
        found = loaded.reservations[self.root, id_] = text.parse_reservation(id_, kept)
        paid = None if payment is None else text.parse_payment(found.query_id, payment)
        loaded.payments[payer, "query", found.query_id] = paid

    def _read_administered(self, administered: list[Any], loaded: Loaded) -> None:
        count, limits, closed = administered
        loaded.stored_limits = {self.root: count}
        loaded.limits = {
            level: read_limit(level.text, each)
            for level, each in zip(self.wanted.limits, limits, strict=True)
            if each is not None
        }
        loaded.closed = set(map(Account.of_text, closed))


def _revision(reply: list[Any]) -> str:
    return reply[1][0] or ""


def _by_start(days: list[PastDay]) -> dict[Microseconds, PastDay]:
    return {day.start: day for day in days}
