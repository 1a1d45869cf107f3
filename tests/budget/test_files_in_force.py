"""The journal of each root that is used has which files were in force: once, whatever number of processes serve it."""

from __future__ import annotations

import asyncio
import hashlib
import signal
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import grpc
import pytest
from msgspec.structs import replace

from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.recorded_files import RecordedFile
from budget_service.ledger.requests import RecordFile
from budget_service.ledger.values import Account, Cost
from budget_service.server import files_in_force
from budget_service.server.files_in_force import FilesInForce
from budget_service.stores.interface import Store, StoreDamagedError, StoreError, StoreUnavailableError
from budget_service.stores.named_store import NamedStore
from budget_service.stores.sqlite.store import SqliteStore
from tests.budget.conftest import closing
from tests.budget.memory_store import MemoryStore
from tests.budget.test_recorded_files import files_of
from tests.support.budget_client import charging, cost, new_id, stub_of
from tests.support.budget_process import CONFIGURATION, service
from tests.support.budget_samples import SteppedClock, charge, levels, limit
from tests.support.log_events import logged_events
from tests.support.pki import Authority, dns

OTHER = Account(("other",))
ONE = Cost(1, 0)
ANN = Account(("acme", "ann"))
LIMIT = limit(100, 100)


def file(number: int, kind: str = "budget") -> RecordedFile:
    """Return a file."""
    return RecordedFile(kind, hashlib.sha256(bytes([number])).hexdigest(), f"{kind}.yaml")


BEFORE = {"budget": file(1), "access": file(2, "access")}
AFTER = {"budget": file(3), "access": file(2, "access")}


class Process:
    """A process on a ledger, with the files that are in force in it."""

    def __init__(self, ledger: Store, files: Mapping[str, RecordedFile] = BEFORE) -> None:
        self.files = files
        self.recording = FilesInForce(ledger, lambda: self.files)
        self.store = NamedStore(self.recording.store).store

    async def use(self, account: Account = ANN, cost: Cost = ONE) -> None:
        """Charge an account."""
        await self.store.apply(
            *charge(f"{time.monotonic_ns()}", cost, account=account, on=levels(account, LIMIT))
        )

    async def say(self, account: Account = ANN) -> None:
        """Charge an account, and record what has to be recorded."""
        await self.use(account)
        await self.recording.record()


async def said(store: Store, root: str = "acme") -> list[str]:
    """Return what a journal has of files."""
    return [each.change for each in await files_of(store, root)]


def texts(*files: RecordedFile) -> list[str]:
    """Return what a journal has of these."""
    return [each.text for each in files]


async def test_what_is_in_force_is_said_once_where_a_root_is_used(any_store: Store) -> None:
    """By whichever process comes first; others, and those that start later, find it."""
    process, other = Process(any_store), Process(any_store)
    for _ in range(2):
        await process.say()
        await other.say()
    await Process(any_store).say()
    assert texts(*BEFORE.values()) == await said(any_store)
    await other.say(OTHER)
    assert texts(*BEFORE.values()) == await said(any_store, "other")
    entry, *others = [each for root in ("acme", "other") for each in await files_of(any_store, root)]
    assert 4 == len({each.request_id for each in (entry, *others)})
    assert (entry.reason, entry.account, entry.holds) == ("in force", Account(("acme",)), ())
    assert entry.actor.startswith("local:")


async def test_a_change_is_said_and_so_is_its_withdrawal(any_store: Store) -> None:
    """Not of a root that nobody uses meanwhile, and not by a process that still has the file of before."""
    process, behind = Process(any_store), Process(any_store)
    await process.say()
    await process.say(OTHER)
    await behind.say()
    for files in (AFTER, BEFORE, AFTER):
        process.files = files
        await process.say()
        await behind.say()
    assert texts(*BEFORE.values(), file(3), file(1), file(3)) == await said(any_store)
    assert texts(*BEFORE.values()) == await said(any_store, "other")


async def test_processes_that_say_it_at_once_say_it_once(any_store: Store) -> None:
    """And it does not matter which of them is first."""
    processes = [Process(any_store) for _ in range(6)]
    for files in (BEFORE, AFTER, BEFORE):
        for each in processes:
            each.files = files
        await asyncio.gather(*(each.say() for each in processes))
    assert texts(*BEFORE.values(), file(3), file(1)) == await said(any_store)


async def test_what_somebody_has_recorded_is_not_said_again(any_store: Store) -> None:
    """Then the journal has who it was and why; but another name is another file, whatever is in it."""
    await Process(any_store, {}).use()
    for number, name in enumerate(("of-acme.yaml", "budget.yaml")):
        given = replace(file(1), name=name)
        request = RecordFile(
            account=Account(("acme",)), request_id=name, actor="uri:ops", file=given, reason="reviewed"
        )
        await any_store.apply(request, NO_LIMITS)
        if not number:
            await Process(any_store, {"budget": file(2)}).say()
    await Process(any_store, {"budget": file(1)}).say()
    names = [(each.change, each.actor) for each in await files_of(any_store, "acme")]
    assert [("of-acme.yaml", True), ("budget.yaml", False), ("budget.yaml", True)] == [
        (change.rpartition(":")[2], actor == "uri:ops") for change, actor in names
    ]


async def test_a_process_looks_again_whether_another_said_something_else(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an hour: the other one may be gone."""
    now = 0.0
    monkeypatch.setattr(files_in_force, "monotonic", lambda: now)
    process, canary = Process(any_store), Process(any_store, AFTER)
    await process.say()
    await canary.say()
    await process.say()
    assert texts(*BEFORE.values(), file(3)) == await said(any_store)
    now = files_in_force.SAID_FOR_SECONDS
    await process.say()
    assert texts(*BEFORE.values(), file(3), file(1)) == await said(any_store)


async def test_who_is_refused_makes_no_root(any_store: Store) -> None:
    """A journal that begins with files would be of a name that somebody made up."""
    process = Process(any_store)
    await process.use(Account(("made up", "x")), cost=Cost(1000, 1))
    await process.recording.record()
    assert [] == await any_store.journal("made up", "", "", 9)


async def test_who_ends_in_the_midst_records_the_rest(clock: SteppedClock) -> None:
    """Of all roots that were used; and nothing is read where nothing is to be recorded."""
    ledger = MemoryStore(clock)
    process, silent = (
        Process(Slow(ledger, 0.05).of),
        Process(Failing(ledger, StoreError("x"), ["r-0"]).of, {}),
    )
    for number in range(6):
        await process.use(Account((f"r-{number}", "x")))
        await silent.use(Account((f"r-{number}", "x")))
    await silent.recording.record()
    recording = asyncio.create_task(process.recording.record())
    await asyncio.sleep(0.12)
    recording.cancel()
    await asyncio.gather(recording, return_exceptions=True)
    assert [] == await said(ledger, "r-5")
    await process.recording.finish()
    assert [texts(*BEFORE.values())] * 6 == [await said(ledger, f"r-{number}") for number in range(6)]


async def test_who_ends_while_the_store_hangs_ends(
    clock: SteppedClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says that something is left."""
    monkeypatch.setattr(files_in_force, "FINISH_SECONDS", 0.1)
    process = Process(Slow(MemoryStore(clock), 60.0).of)
    await process.use()
    await process.recording.finish()
    assert [("file.not_recorded", {"problem": "stopped"})] == logged_events(caplog)


class Slow:
    """A store in which a page is read slowly."""

    def __init__(self, store: Store, seconds: float) -> None:
        self.store, self.seconds = store, seconds

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)

    @property
    def of(self) -> Store:
        """This as a store."""
        return cast(Store, self)

    async def latest(self, root: str, before: str, most: int) -> object:
        """Read slowly."""
        await asyncio.sleep(self.seconds)
        return await self.store.latest(root, before, most)


class Failing:
    """A store that cannot be read for some roots."""

    def __init__(self, store: Store, error: Exception, roots: Sequence[str]) -> None:
        self.store, self.error, self.roots = store, error, roots

    @property
    def of(self) -> Store:
        """This as a store."""
        return cast(Store, self)

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)

    async def latest(self, root: str, before: str, most: int) -> object:
        """Fail, or read."""
        if root in self.roots:
            raise self.error
        return await self.store.latest(root, before, most)


@pytest.mark.parametrize("error", [StoreUnavailableError("SECRET"), StoreDamagedError("journal", "SECRET")])
async def test_what_fails_is_tried_again_and_logged_once(
    clock: SteppedClock, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """A row that cannot be read keeps no other root from its entry."""
    ledger = MemoryStore(clock)
    failing = Failing(ledger, error, ["acme"])
    process = Process(failing.of)
    await process.use(OTHER)
    await process.say()
    is_damaged = isinstance(error, StoreDamagedError)
    assert (is_damaged, []) == (bool(await said(ledger, "other")), await said(ledger))
    await process.recording.record()
    assert [("file.not_recorded", {"problem": type(error).__name__})] == logged_events(caplog)
    failing.roots = []
    await process.recording.record()
    assert [texts(*BEFORE.values())] * 2 == [await said(ledger), await said(ledger, "other")]
    failing.roots = ["acme"]
    process.files = AFTER
    await process.say()
    assert 2 == len(logged_events(caplog))


async def test_a_long_journal_is_not_read_to_its_beginning(
    clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond some pages it is said again, in one hour once."""
    monkeypatch.setattr(files_in_force, "PAGE", 5)
    monkeypatch.setattr(files_in_force, "PAGES", 2)
    store, budget = MemoryStore(clock), {"budget": file(1)}
    await Process(store, budget).say()
    for count in (8, 10):
        for _ in range(count):
            await Process(store, budget).use()
        await Process(store, budget).say()
        assert 1 == len(await said(store))
    tomorrow = SimpleNamespace(now=lambda _: datetime(2100, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(files_in_force, "datetime", tomorrow)
    await Process(store, budget).say()
    assert 2 == len(await said(store))


async def _until(log: Path, event: str, count: int) -> None:
    async with asyncio.timeout(20):
        while log.read_text().count(event) < count:  # noqa: ASYNC110, ASYNC240 - another process writes it
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("wanted", [True, False])
async def test_a_service_says_which_budget_and_access_file_are_in_force(tmp_path: Path, wanted: bool) -> None:
    """With the bytes that it has read, also after one of them was replaced."""
    configuration = CONFIGURATION.replace("records_files: false", f"records_files: {str(wanted).lower()}")
    authority = Authority.new(tmp_path)
    (certificate, key), caller = authority.server(), authority.client(dns("app.example.org"))
    access = tmp_path / "who may.yaml"
    access.write_text('certificates: {"dns:app.example.org": [spend]}\n')
    ledger, log = tmp_path / "ledger.db", tmp_path / "log"
    expected = list[str]()

    def expect(kind: str, name: str, path: Path) -> None:
        expected.append(f"{kind}:{hashlib.sha256(path.read_bytes()).hexdigest()}:{name}")

    async def use(address: str, *, waits: bool = True) -> None:
        id_ = new_id()
        request = charging(cost(1, 0), request_id=id_, release_id=id_, query_id=id_)
        async with grpc.aio.secure_channel(address, caller.for_channel()) as channel:
            await stub_of(channel).UpdateBudget(request)
        await asyncio.sleep(2 * files_in_force.INTERVAL_SECONDS if waits else 0)

    paths = {
        "access": access,
        "tls-certificate": certificate,
        "tls-key": key,
        "tls-client-ca": authority.ca_file,
    }
    options = [word for name, path in paths.items() for word in (f"--{name}", str(path))]
    with service(tmp_path, f"sqlite:{ledger}", *options, configuration=configuration) as running:
        budget = tmp_path / "budget.yaml"
        expect("budget", "budget.yaml", budget)
        expect("access", "who_may.yaml", access)
        await use(running.address)
        budget.write_text(f"{configuration}# reviewed\r\n")
        await _until(log, "settings.reloaded", 1)
        expect("budget", "budget.yaml", budget)
        await use(running.address)
        access.write_text(f"{access.read_text()}# one more line\n")
        expect("access", "who_may.yaml", access)
        await use(running.address, waits=False)
        running.end(signal.SIGTERM)
    async with closing(SqliteStore.open(ledger)) as store:
        assert (expected if wanted else []) == await said(store)
