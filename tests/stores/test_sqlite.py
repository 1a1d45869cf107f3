"""What only the SQLite store promises: one owner, a schema that is known, and a journal that stays."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from budget_service.ledger.acts.clock import ResumeClock
from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.outcomes import Charged
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, Cost
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import OutcomeUnknownError, StoreUnavailableError, StoreUnusableError
from budget_service.stores.opening import open_store
from budget_service.stores.row_transactions import PURGED_PER_REQUEST
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from tests.support.budget_samples import (
    ANALYST,
    COMPANY,
    SteppedClock,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.ledger_stores import closing
from tests.support.proc import require_proc
from tests.support.some import some
from tests.unit.budget_service.histories import play_all_kinds_of_charges
from tests.unit.budget_service.memory_store import MemoryStore

OPEN_IT = """
import sys
from pathlib import Path
from budget_service.stores.interface import StoreUnusableError
from budget_service.stores.sqlite.store import SqliteStore
try:
    SqliteStore.open(Path(sys.argv[1]))
except StoreUnusableError as error:
    print(error)
"""

COUNT = (
    "SELECT (SELECT count(*) FROM rows WHERE key LIKE 'outcomes%'), "
    "(SELECT count(*) FROM rows WHERE key LIKE 'payments%'), (SELECT count(*) FROM journal)"
)


def run(path: Path, statement: str) -> None:
    """Do something to a ledger by hand."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


async def test_a_ledger_is_found_again_after_it_was_closed(tmp_path: Path, clock: SteppedClock) -> None:
    """Balances, outcomes, payments and reservations."""
    path = tmp_path / "ledger.db"
    first = charge("c", Cost(3, 1), release_id="rel", query_id="q")
    async with closing(SqliteStore.open(path, clock)) as store:
        await store.apply(*first)
        await store.apply(*reserve("r", Cost(4, 1)))
    async with closing(SqliteStore.open(path, clock)) as store:
        assert (await store.apply(*first)).replayed
        status = (await store.read(ANALYST, levels())).levels[-1]
        assert (Cost(3, 1), Cost(4, 1)) == (status.spent, status.reserved)
        again = (await store.apply(*charge("d", release_id="rel"))).outcome
        assert isinstance(again, Charged)
        assert again.already_paid


def open_elsewhere(path: Path) -> str:
    """Return what another process says that opens the ledger."""
    arguments = [sys.executable, "-c", OPEN_IT, str(path)]
    return subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=30).stdout


@pytest.mark.usefixtures("starts_processes")
async def test_a_second_owner_is_refused(tmp_path: Path) -> None:
    """In the same process, and in another one."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path)):
        with pytest.raises(StoreUnusableError, match="is in use"):
            SqliteStore.open(path)
        assert "is in use" in open_elsewhere(path)
    await SqliteStore.open(path).close()


def modes_in(folder: Path) -> dict[str, int]:
    """Return the permissions of each file."""
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


async def test_only_the_owner_may_read_or_write_a_ledger(tmp_path: Path) -> None:
    """The file and what SQLite keeps beside it."""
    path = tmp_path / "ledger.db"
    before = os.umask(0)
    try:
        async with closing(SqliteStore.open(path)) as store:
            await store.apply(*charge("c"))
            modes = modes_in(tmp_path)
    finally:
        os.umask(before)
    assert modes == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db.mark": 0o600}


async def test_a_ledger_that_anybody_may_write_is_refused(tmp_path: Path) -> None:
    """Whatever it says may be somebody else's word."""
    path = tmp_path / "ledger.db"
    await SqliteStore.open(path).close()
    path.chmod(0o602)
    with pytest.raises(StoreUnusableError, match=r"ledger\.db: anybody may write.*chmod o-w"):
        SqliteStore.open(path)
    path.chmod(0o640)
    await SqliteStore.open(path).close()


def test_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    """SQLite would make a file there that others can read."""
    (tmp_path / "link").symlink_to(tmp_path / "ledger.db")
    with pytest.raises(StoreUnusableError, match="link: No such file"):
        SqliteStore.open(tmp_path / "link")
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("address", ["sqlite::memory:", "sqlite:./:memory:", "sqlite:", "sqlite: "])
async def test_a_ledger_without_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """It would forget everything when it stops."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreUnusableError, match=r"name a file|sqlite:PATH"):
        await open_store(address, allow_volatile=False)


async def test_a_ledger_in_memory_is_opened_for_tests() -> None:
    """If the configuration allows it."""
    async with closing(await open_store("sqlite::memory:", allow_volatile=True)) as store:
        assert isinstance((await store.apply(*charge("c"))).outcome, Charged)


@pytest.mark.parametrize("name", ["no/such/folder/ledger.db", "text"])
def test_what_is_no_ledger_is_refused(tmp_path: Path, name: str) -> None:
    """A folder that is not there, and a file of another kind."""
    (tmp_path / "text").write_text("not a database, and longer than a header " * 100)
    with pytest.raises(StoreUnusableError, match=Path(name).name):
        SqliteStore.open(tmp_path / name)


async def test_the_journal_cannot_be_changed(tmp_path: Path) -> None:
    """Neither updated nor shortened, even by hand."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path)) as store:
        await store.apply(*charge("c"))
    for change in ("UPDATE journal SET text = '{}'", "DELETE FROM journal"):
        with pytest.raises(sqlite3.IntegrityError, match="of the journal"):
            run(path, change)


async def test_balances_can_be_read_by_a_view(tmp_path: Path, clock: SteppedClock) -> None:
    """Each level with what counts and what is held."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await store.apply(*charge("c", Cost(3, 1)))
        await store.apply(*reserve("r", Cost(2, 1)))
    query = "SELECT level, spent_information, spent_calls, reserved_information FROM balances"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert ("acme/ann", 3, 1, 2) in connection.execute(query).fetchall()


async def test_a_failed_write_has_no_effect_and_is_not_remembered(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """A disk that is full, played by a trigger: unavailable, nothing charged; then the same id works."""
    path = tmp_path / "ledger.db"
    on = levels(own=limit(10, 5))
    await SqliteStore.open(path, clock).close()
    run(path, "CREATE TRIGGER full BEFORE INSERT ON rows BEGIN SELECT RAISE(FAIL, 'disk full'); END")
    async with closing(SqliteStore.open(path, clock)) as store:
        with pytest.raises(sqlite3.IntegrityError):
            await store.apply(*charge("c", on=on))
        status = (await store.read(ANALYST, on)).levels[-1]
        assert status.spent == status.reserved == Cost(0, 0)
    run(path, "DROP TRIGGER full")
    async with closing(SqliteStore.open(path, clock)) as store:
        assert not (await store.apply(*charge("c", on=on))).replayed


async def test_a_request_that_fails_does_no_harm_to_those_it_shares_a_commit_with(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """Ten at once, one of which the file refuses: nine are charged, each once."""
    path = tmp_path / "ledger.db"
    on = levels(own=limit(100, 50))
    await SqliteStore.open(path, clock).close()
    run(
        path,
        "CREATE TRIGGER bad BEFORE INSERT ON rows WHEN NEW.key = 'outcomes\tc7' "
        "BEGIN SELECT RAISE(ABORT, 'bad'); END",
    )
    async with closing(SqliteStore.open(path, clock)) as store:
        asked = [charge(f"c{index}", Cost(1, 1), on=on) for index in range(10)]
        answers = await asyncio.gather(*(store.apply(*each) for each in asked), return_exceptions=True)
        failed = [isinstance(answer, sqlite3.IntegrityError) for answer in answers]
        assert failed == [index == 7 for index in range(10)]
        assert Cost(9, 9) == (await store.read(ANALYST, on)).levels[-1].spent
        found = Verification()
        await verify(store, "acme", found)
        assert (9, []) == (found.entries, found.differences)


async def test_a_commit_that_fails_leaves_every_outcome_of_it_unknown_and_a_repeat_settles_it(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """A disk that takes no more, played by a limit on the size of files; when it does again, all is charged once."""
    path = tmp_path / "ledger.db"
    on = levels(own=limit(100, 50))
    asked = [charge(f"c{index}", Cost(1, 1), on=on) for index in range(10)]
    async with closing(SqliteStore.open(path, clock)) as store:
        await store.apply(*charge("before", Cost(1, 1), on=on))
        with files_that_do_not_grow(path.with_name("ledger.db-wal").stat().st_size):
            answers = await asyncio.gather(*(store.apply(*each) for each in asked), return_exceptions=True)
        assert all(isinstance(answer, OutcomeUnknownError) for answer in some(answers))
        assert Cost(1, 1) == (await store.read(ANALYST, on)).levels[-1].spent
        again = await asyncio.gather(*(store.apply(*each) for each in asked))
        assert all(isinstance(answer.outcome, Charged) for answer in some(again))
        assert Cost(11, 11) == (await store.read(ANALYST, on)).levels[-1].spent
    async with closing(SqliteStore.open(path, clock)) as store:
        assert Cost(11, 11) == (await store.read(ANALYST, on)).levels[-1].spent


@contextlib.contextmanager
def files_that_do_not_grow(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_file_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    """A table that is gone, as after damage: an error that says nothing was changed."""
    path = tmp_path / "ledger.db"
    await SqliteStore.open(path).close()
    run(path, "DROP TABLE rows")
    async with closing(SqliteStore.open(path)) as store:
        with pytest.raises(StoreUnavailableError):
            await store.apply(*charge("c"))


async def test_what_is_out_of_date_is_purged_little_by_little(tmp_path: Path, clock: SteppedClock) -> None:
    """Outcomes and payments older than their window and 35 days go once their root is used again; the journal stays."""
    path = tmp_path / "ledger.db"
    many = 3 * PURGED_PER_REQUEST
    # A charge of nothing is remembered for an hour only, and is no payment.
    one, on = Cost(0, 1), levels(own=limit(100, 100))
    async with closing(SqliteStore.open(path, clock)) as store:
        for index in range(many):
            await store.apply(*charge(f"c{index}", one, on=on, release_id=f"rel{index}"))
        clock.step(days=80)
        await store.apply(*charge("late", one, on=on))
    outcomes, payments, entries = counts(path)
    assert (2 * many - PURGED_PER_REQUEST + 1, many + 1) == (outcomes + payments, entries)
    async with closing(SqliteStore.open(path, clock)) as store:
        for index in range(5):
            await store.apply(*charge(f"late{index}", one, on=on))
    assert counts(path) == (6, 0, many + 6)


async def test_what_is_out_of_date_in_a_root_that_nobody_uses_hides_nothing(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """It stays until its root is used; what is out of date elsewhere goes."""
    path = tmp_path / "ledger.db"
    idle, used = Account(("idle", "eve")), Account(("used", "eve"))
    many = 2 * PURGED_PER_REQUEST
    async with closing(SqliteStore.open(path, clock)) as store:
        for index in range(many):
            await store.apply(*charge(f"c{index}", Cost(0, 0), account=idle))
        await store.apply(*charge("old", Cost(0, 0), account=used))
        clock.step(days=80)
        await store.apply(*charge("late", Cost(0, 0), account=used))
    assert counts(path)[0] == many + 1
    async with closing(SqliteStore.open(path, clock)) as store:
        for index in range(2):
            await store.apply(*charge(f"again{index}", Cost(0, 0), account=idle))
    assert counts(path)[0] == 3


@pytest.mark.slow
async def test_reading_many_accounts_does_not_fill_the_memory(tmp_path: Path) -> None:
    """What was read of roots that nobody charges is dropped like the rest, and read again when it is wanted."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, tuning=Tuning(kept_balances=100))) as store:
        await store.apply(*charge("a"))

        async def held(first: int) -> int:
            before = tracemalloc.get_traced_memory()[0]
            for index in range(first, first + 5000):
                account = Account((f"root-{index}",))
                await store.read(account, levels(account))
            return tracemalloc.get_traced_memory()[0] - before

        tracemalloc.start()
        try:
            await held(0)
            # Without a bound it is about a megabyte and a half.
            assert await held(5000) < 200_000
        finally:
            tracemalloc.stop()
        (own,) = (await store.read(ANALYST, levels())).levels
        assert own.spent == Cost(4, 1)


def counts(path: Path) -> tuple[int, int, int]:
    """Return how many outcomes, payments and entries a ledger holds."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        found: tuple[int, int, int] = connection.execute(COUNT).fetchone()
    return found


async def test_many_commits_go_into_the_log_before_it_is_moved_into_the_file(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """More pages than SQLite's own thousand, whose moving all callers would wait for every few commits."""
    path = tmp_path / "ledger.db"
    accounts = [Account(("acme", f"{number:03} {'x' * 60}")) for number in range(100)]
    async with closing(SqliteStore.open(path, clock)) as store:
        before, pages = path.stat(), 0
        for step in range(60):
            asked = (
                charge(f"{step} {each.text}", Cost(1, 1), account=each, on=levels(each, own=limit(99, 99)))
                for each in accounts
            )
            await asyncio.gather(*(store.apply(*each) for each in asked))
            pages = path.with_name("ledger.db-wal").stat().st_size // 4096
            if pages > 2000:
                break
        assert pages > 2000
        assert (before.st_size, before.st_mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)


async def test_nothing_of_a_ledger_is_written_into_another_folder(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """Neither what a large commit has changed, until it is made."""
    rng, big = random.Random(1), levels(own=limit(10**6, 10**6))
    async with closing(SqliteStore.open(tmp_path / "ledger.db", clock)) as store:
        for _ in range(20):
            ids = [f"{rng.getrandbits(512):0128x}" for _ in range(64)]
            await asyncio.gather(*(store.apply(*charge(id_, release_id=id_, on=big)) for id_ in ids))
        opened = files_in_use()
    assert not [each for each in opened if "etilqs" in each]


def files_in_use() -> list[str]:
    """Return the files that this process has opened, those without a name too."""
    require_proc()
    return [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]


async def test_the_journal_is_that_of_the_rules(tmp_path: Path, clock: SteppedClock) -> None:
    """Entry by entry, with the windows each counts in."""
    path, other = tmp_path / "ledger.db", replace(clock)
    rules = MemoryStore(other)
    await play_all_kinds_of_charges(rules, other)
    async with closing(SqliteStore.open(path, clock)) as store:
        await play_all_kinds_of_charges(store, clock)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT root, number, text FROM journal ORDER BY entry").fetchall()
    numbers: Counter[str] = Counter()
    for entry, (root, number, text) in zip(rules.entries, found, strict=True):
        numbers[root] += 1
        assert (entry.account.root, numbers[root]) == (root, number)
        assert entry == msgspec.json.decode(text, type=JournalEntry)


async def test_open_reservations_lapse_by_the_time_of_the_ledger(tmp_path: Path, clock: SteppedClock) -> None:
    """Which goes on ahead of a clock that had jumped: what is over there is not counted as open."""
    async with closing(SqliteStore.open(tmp_path / "ledger.db", clock)) as store:
        clock.step(days=365)
        await store.apply(*reserve("held", Cost(1, 1), ttl_seconds=60))
        clock.step(days=-365)
        await store.apply(
            ResumeClock(actor="ops", account=COMPANY, request_id="resumed", true_time=clock.now), NO_LIMITS
        )
        assert await store.open_reservations([ANALYST.root]) == 1
        clock.step(seconds=61)
        assert await store.open_reservations([ANALYST.root]) == 0


async def test_a_service_that_can_start_no_thread_goes_on_charging(
    tmp_path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine has none left when the first charge comes: no transaction is left open, and each charge is made."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    path, on = tmp_path / "ledger.db", levels(own=limit(100, 50))
    async with closing(SqliteStore.open(path, clock)) as store:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        for index in range(3):
            assert isinstance((await store.apply(*charge(f"c{index}", on=on))).outcome, Charged)
        await store.check()
        monkeypatch.undo()


def test_a_ledger_is_not_opened_where_no_thread_can_be_started(
    tmp_path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, and the file is free for the next try."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(StoreUnavailableError, match="can't start new thread"):
            SqliteStore.open(tmp_path / "ledger.db", clock)
    asyncio.run(SqliteStore.open(tmp_path / "ledger.db", clock).close())
