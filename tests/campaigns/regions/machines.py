"""Machines that crash, pause and have wrong clocks, their disks, and the network between them."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.act import Act
from budget_service.ledger.limits import AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, LevelLimit
from budget_service.ledger.windows import SECOND, Microseconds
from budget_service.regions.messages import HomeUnavailableError
from budget_service.regions.records import Key, Rows
from budget_service.server.home_client import Answered, HomeStatusError
from budget_service.stores.interface import uncounted
from budget_service.stores.ledger_engine import LedgerEngine
from budget_service.stores.transactions import Changes
from tests.campaigns.regions.loop import now, sleep
from tests.unit.budget_service.memory_transactions import MemoryTransactions

# Noon and a bit less than half a day before midnight, so that some histories see a new day.
BEGINNING: Microseconds = 1_790_000_000 * SECOND
TIMEOUT_SECONDS = 2.0


@dataclass(frozen=True)
class Image:
    """What was on a machine's disk at one time."""

    ledger: dict[str, Any]
    records: dict[Key, bytes]


@dataclass
class Machine:
    """A machine: what is on its disk stays, and a process on it runs until it crashes."""

    name: str
    rng: random.Random
    skew: Microseconds = 0
    generation: int = 0
    # Which process holds the lock of the ledger's file; a crash frees it.
    holder: int | None = None
    running: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    records: dict[Key, bytes] = field(default_factory=dict)
    disk: MemoryTransactions = field(init=False)
    committed: Callable[[Changes], None] = lambda _: None

    def __post_init__(self) -> None:
        """Switch it on."""
        self.running.set()
        self.disk = MemoryTransactions(self.clock)

    def clock(self) -> Microseconds:
        """Return the time by this machine's clock."""
        return true_time() + self.skew

    async def turn(self, generation: int, seconds: float = 0.002) -> None:
        """Take some time; a process that has crashed meanwhile never goes on, and a paused one later."""
        await sleep(self.rng.random() * seconds)
        while not self.running.is_set():
            await self.running.wait()
        if generation != self.generation:
            await asyncio.get_running_loop().create_future()

    def begin(self, work: Any) -> asyncio.Task[Any]:
        """Run work of the present process; a crash cancels it."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def lock(self) -> None:
        """Take the lock of the ledger's file, as a process does when it starts."""
        assert self.holder != self.generation, f"two processes hold the ledger of {self.name}"
        self.holder = self.generation

    def image(self) -> Image:
        """Return what is on the disk now."""
        kept = {name: each for name, each in self.disk.__dict__.items() if name not in ("clock", "trip")}
        return Image(copy.deepcopy(kept), dict(self.records))

    def restore(self, image: Image, *, with_ledger: bool = True) -> None:
        """Put the lease file back as it was, and the ledger too; no process uses them."""
        self.records = dict(image.records)
        if with_ledger:
            self.disk.__dict__.update(copy.deepcopy(image.ledger))

    def crash(self) -> None:
        """End the process as by kill -9."""
        self.generation += 1
        for task in list(self.tasks):
            task.cancel()


def true_time() -> Microseconds:
    """Return the time that no machine knows exactly."""
    return BEGINNING + round(now() * SECOND)


class Ledger:
    """The store of one process on a machine: the real ledger engine over what is on the machine's disk."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._generation = machine.generation
        disk = _Process(machine, machine.generation)
        self._engine = LedgerEngine(disk, by_root=False, most=16, committed=uncounted)

    async def apply(self, request: Act, limits: AppliedLimits) -> Answer:
        """See `Store`."""
        return await self._engine.apply(request, limits)

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """See `Store`."""
        return await self._engine.read(account, levels)

    async def limits(self, _account: Account) -> StoredLimits:
        """No limit is stored in these ledgers."""
        return StoredLimits()

    async def journal(self, root: str, after: str, until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """See `Store`."""
        await self.machine.turn(self._generation)
        numbered = [(str(number), each) for number, each in enumerate(self.machine.disk.journal, 1)]
        return [each for each in numbered[int(after or 0) :] if each[1].account.root == root][:most]

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """See `Store`."""
        await self.machine.turn(self._generation)
        found = self.machine.disk.reservations.get((account.root, reservation_id))
        return found.query_id if found is not None and found.account == account else None


class _Process(MemoryTransactions):
    """A process's way to the disk: it can be held up before each access, and ends with the process."""

    def __init__(self, machine: Machine, generation: int) -> None:
        self.__dict__ = dict(machine.disk.__dict__)
        self._machine, self._generation = machine, generation
        self.trip = self._turn

    async def _turn(self) -> None:
        await self._machine.turn(self._generation)

    async def write(self, changes: Changes, revision: int) -> bool:
        """Write to the disk, and show the machine what is on it now."""
        is_done = await super().write(changes, revision)
        if is_done:
            self._machine.committed(changes)
        return is_done


class MemoryRecordStorage:
    """A region's records on the machine's disk."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._generation = machine, machine.generation

    async def read(self) -> dict[Key, bytes]:
        """Return all rows."""
        return dict(self._machine.records)

    async def write(self, rows: Rows) -> None:
        """Write rows, all or nothing."""
        await self._machine.turn(self._generation)
        for key, value in rows.items():
            self._machine.records.pop(key, None)
            if value is not None:
                self._machine.records[key] = value
        await self._machine.turn(self._generation)

    async def close(self) -> None:
        """Do nothing."""


class AbortedError(Exception):
    """A servicer ended a call with an error."""


class Context:
    """As much of gRPC's context as the services use."""

    def __init__(self) -> None:
        self.status = Status()

    async def abort(self, _code: Any, _message: str, metadata: Any) -> None:
        """Note the status and end the call."""
        self.status = Status.FromString(dict(metadata)["grpc-status-details-bin"])
        raise AbortedError


@dataclass
class Network:
    """The way from a region to the home: it delays, loses, repeats and reorders what is sent."""

    rng: random.Random
    handle: Callable[[str, Message], Awaitable[Message]]
    is_cut: bool = False
    loss: float = 0.0
    repeats: float = 0.0
    slowest: float = 0.2
    counted: Callable[[str], None] = lambda _: None

    async def call(self, method: str, request: Message, answer: type[Answered]) -> Answered:
        """Send a request and wait for its answer; see `Caller`."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Answered] = loop.create_future()
        # The copy that is sent stays as it is.
        sent = type(request).FromString(request.SerializeToString())
        times = 1 + (self.rng.random() < self.repeats)
        self.counted("repeated messages") if times > 1 else None
        tasks = [loop.create_task(self._deliver(method, sent, answered)) for _ in range(times)]
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await answered
        except TimeoutError:
            raise HomeUnavailableError(method) from None
        finally:
            _FORGOTTEN.update(tasks)
            for each in tasks:
                each.add_done_callback(_FORGOTTEN.discard)

    async def _deliver(self, method: str, request: Message, answered: asyncio.Future[Any]) -> None:
        await sleep(self.rng.random() * self.slowest)
        if self._is_lost():
            return
        result: Message | HomeStatusError
        try:
            result = await self.handle(method, request)
        except HomeStatusError as error:
            result = error
        await sleep(self.rng.random() * self.slowest)
        if self._is_lost() or answered.done():
            return
        if isinstance(result, HomeStatusError):
            answered.set_exception(result)
        else:
            answered.set_result(result)

    def _is_lost(self) -> bool:
        if self.is_cut or self.rng.random() < self.loss:
            self.counted("lost messages")
            return True
        return False


# Messages that are still under way, so that nothing forgets them.
_FORGOTTEN: set[asyncio.Task[None]] = set()
