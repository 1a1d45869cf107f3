"""Release stores on a disk: what a thief finds there, and files that are foreign, broken, replaced or full."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pinot_connector.errors import ReleaseStoreFailed
from pinot_connector.release_store import Found, ReleaseStore
from pinot_connector.release_store.encryption import StoreKeyError, StoreKeys, read_store_keys
from pinot_connector.release_store.interface import DAY
from pinot_connector.release_store.postgres import PostgresDatabase, PostgresReleaseStore
from pinot_connector.release_store.receipts import ReceiptLimits
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.postgres_server import PostgresServer
from tests.support.release_stores import (
    ANA,
    BOB,
    KEY,
    KEYS,
    MONTHS,
    OTHER_KEY,
    in_month,
    kept,
    key_file,
    new_database,
    receipt,
)


async def filled(store: ReleaseStore) -> None:
    """Keep a release, a payment and a receipt."""
    await store.keep("secret-question", kept())
    await store.mark_paid("secret-question", ANA, in_month(0))
    await store.add_receipt(ANA, receipt("secret-question", request_id="secret-request"))


def content_of(folder: Path) -> bytes:
    """Return all bytes of all files."""
    return b"".join(each.read_bytes() for each in folder.iterdir())


def changed(file: Path, statement: str) -> None:
    """Change a file behind its owner's back."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


async def test_a_thief_learns_neither_who_asked_nor_what_nor_the_answer(tmp_path: Path) -> None:
    """Not from the file, and not from what SQLite keeps beside it; and only its owner may read it."""
    file = tmp_path / "releases.db"
    store = SqliteReleaseStore(file, KEYS)
    await filled(store)
    written = content_of(tmp_path)
    assert 0 == file.stat().st_mode & 0o077
    await store.close()
    for word in (b"secret", b"acme", b"ana", b"k" * 32):
        assert word not in written + file.read_bytes()


async def test_the_file_has_no_row_of_what_is_too_old(tmp_path: Path) -> None:
    """After it was opened again, and nobody has asked meanwhile; a program that only asks removes none."""
    file, limits, now = tmp_path / "releases.db", ReceiptLimits(days=100), [MONTHS[0]]
    for days, kept_for, rows in ((0, limits, 1), (100, limits, 1), (101, None, 1), (101, limits, 0)):
        now[0] = MONTHS[0] + days * DAY
        store = SqliteReleaseStore(file, KEYS, kept_for, clock=lambda: now[0])
        if days == 0:
            await filled(store)
        await store.close()
        with closing(sqlite3.connect(file)) as db:
            assert [(rows,)] == db.execute("SELECT count(*) FROM gris_release_receipts").fetchall()
            assert [(1,)] == db.execute("SELECT count(*) FROM gris_release_payments").fetchall()


@pytest.mark.parametrize("keys", [StoreKeys(OTHER_KEY), StoreKeys(OTHER_KEY, ())])
async def test_a_file_of_another_key_is_refused(tmp_path: Path, keys: StoreKeys) -> None:
    """It is not written over; with its key it opens as before."""
    store = SqliteReleaseStore(tmp_path / "releases.db", KEYS)
    await filled(store)
    await store.close()
    with pytest.raises(ReleaseStoreFailed, match="a key that is not given"):
        SqliteReleaseStore(tmp_path / "releases.db", keys)
    store = SqliteReleaseStore(tmp_path / "releases.db", KEYS)
    assert Found(kept(), in_month(0)) == await store.find("secret-question", ANA)
    await store.close()


async def test_keys_are_rotated(tmp_path: Path) -> None:
    """First the new key is read, then it writes and what was kept is written with it, then the old one can go."""
    for keys in (KEYS, StoreKeys(KEY, (OTHER_KEY,)), StoreKeys(OTHER_KEY, (KEY,)), StoreKeys(OTHER_KEY)):
        store = SqliteReleaseStore(tmp_path / "releases.db", keys, clock=lambda: MONTHS[0])
        await filled(store)
        await store.keep(keys.current.key_id, kept())
        assert Found(kept(), in_month(0)) == await store.find("secret-question", ANA)
        assert None is not await store.receipt(ANA, "secret-request")
        await store.close()
    with pytest.raises(ReleaseStoreFailed, match="a key that is not given"):
        SqliteReleaseStore(tmp_path / "releases.db", KEYS)


async def test_gateways_on_both_sides_of_a_rotation_read_one_another(
    release_postgres: PostgresServer,
) -> None:
    """While one still writes with the old key and the other with the new one."""
    database = new_database(release_postgres)
    before = PostgresReleaseStore(database, StoreKeys(KEY, (OTHER_KEY,)))
    after = PostgresReleaseStore(database, StoreKeys(OTHER_KEY, (KEY,)))
    for number, (one, other) in enumerate(((before, after), (after, before))):
        await one.keep(f"q{number}", kept(f"r{number}"))
        await other.mark_paid(f"q{number}", ANA, in_month(0))
        assert Found(kept(f"r{number}"), in_month(0)) == await one.find(f"q{number}", ANA)
        assert Found(kept(f"r{number}"), in_month(0)) == await other.find(f"q{number}", ANA)
    await before.close()
    await after.close()


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE gris_release_payments SET account = (SELECT account FROM gris_release_receipts WHERE request IS NULL)",
        "UPDATE gris_releases SET content = (SELECT content FROM gris_releases LIMIT 1 OFFSET 1)",
        "UPDATE gris_releases SET content = substr(content, 1, 40)",
        "UPDATE gris_releases SET key_id = 'another'",
    ],
)
async def test_records_that_were_moved_or_changed_are_refused(tmp_path: Path, forgery: str) -> None:
    """Who can write the file, but has no key, gives nobody an answer; the store is never taken for an empty one."""
    file = tmp_path / "releases.db"
    store = SqliteReleaseStore(file, KEYS)
    await filled(store)
    await store.keep("another", kept("another"))
    await store.add_receipt(BOB, receipt())
    changed(file, forgery)

    async def read() -> None:
        for question in ("secret-question", "another"):
            for account in (ANA, BOB):
                await store.find(question, account)

    with pytest.raises(ReleaseStoreFailed):
        await read()
    await store.close()


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be none" * 100, b"SQLite format 3\x00"]
)
async def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    """It is left as it is."""
    file = tmp_path / "releases.db"
    file.write_bytes(content)
    with pytest.raises(ReleaseStoreFailed):
        SqliteReleaseStore(file, KEYS)
    assert content == file.read_bytes()


async def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    """Such as an old history."""
    file = tmp_path / "releases.db"
    changed(file, "CREATE TABLE releases (id INTEGER)")
    with pytest.raises(ReleaseStoreFailed, match="is not a release store"):
        SqliteReleaseStore(file, KEYS)


async def test_a_store_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    """Half of a file, as a copy that did not end leaves it."""
    file, half = tmp_path / "releases.db", tmp_path / "half.db"
    store = SqliteReleaseStore(file, KEYS)
    for number in range(50):
        await store.keep(f"q{number}", kept(elements=200))
    await store.close()
    half.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    async def read() -> None:
        store = SqliteReleaseStore(half, KEYS)
        for number in range(50):
            assert None is not await store.find(f"q{number}", ANA)

    with pytest.raises(ReleaseStoreFailed):
        await read()


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_file_that_is_replaced_in_use_is_noticed(tmp_path: Path, is_there: bool) -> None:
    """Nothing is looked up or kept any more: not even what was just read."""
    file = tmp_path / "releases.db"
    store = SqliteReleaseStore(file, KEYS)
    await filled(store)
    await store.find("secret-question", ANA)
    file.rename(tmp_path / "moved.db")
    if is_there:
        shutil.copy(tmp_path / "moved.db", file)
    with pytest.raises(ReleaseStoreFailed, match="was replaced"):
        await store.find("secret-question", ANA)
    with pytest.raises(ReleaseStoreFailed, match="was replaced"):
        await store.keep("q", kept())
    await store.close()


FULL = """
import asyncio, resource, signal, sys
from pinot_connector.errors import ReleaseStoreFailed
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.release_stores import ANA, KEYS, in_month, kept

async def fill():
    store = SqliteReleaseStore(sys.argv[1], KEYS)
    await store.keep("q", kept())
    await store.mark_paid("q", ANA, in_month(0))
    # No file may grow beyond this: to SQLite, a disk that is full.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    for number in range(1000):
        try:
            await store.keep(f"q{number}", kept(f"r{number}", elements=5000))
        except ReleaseStoreFailed as error:
            print(number, error)
            break
    print((await store.find("q", ANA)).kept.release_id)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print((await store.keep(f"q{number}", kept("made later"))).release_id)
    await store.close()

asyncio.run(fill())
"""


@pytest.mark.usefixtures("starts_processes")
def test_on_a_full_disk_nothing_is_kept_and_nothing_is_lost(tmp_path: Path) -> None:
    """What cannot be kept is an error; what was kept stays, and there is room again once the disk has some."""
    command = [sys.executable, "-c", FULL, str(tmp_path / "releases.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    failed, found, later = done.stdout.splitlines()
    assert int(failed.split(" ", 1)[0]) > 0
    assert failed.split(" ", 1)[1].startswith("the release store cannot be used")
    assert ("r", "made later") == (found, later)


def test_key_files_are_checked_as_noise_keys_are(tmp_path: Path) -> None:
    """Size and permissions; hexadecimal is read too."""
    assert read_store_keys(key_file(tmp_path)).current == KEY
    hexadecimal = key_file(tmp_path, (b"k" * 32).hex().encode() + b"\n", "hexadecimal")
    assert read_store_keys(hexadecimal).current == KEY
    refused: list[tuple[Path, Any]] = [
        (key_file(tmp_path, b"short", "short"), "32 bytes"),
        (key_file(tmp_path, b"z" * 64, "no-number"), "32 bytes"),
        (key_file(tmp_path, name="open", mode=0o404), "others may read it"),
        (key_file(tmp_path, name="written", mode=0o420), "group may write it"),
        (tmp_path / "missing", "No such file"),
    ]
    for path, problem in refused:
        with pytest.raises(StoreKeyError, match=problem):
            read_store_keys(path)
    with pytest.raises(StoreKeyError, match="once"):
        read_store_keys(tmp_path / "releases.key", [hexadecimal])


def test_nothing_is_compiled_for_a_statement_of_a_millisecond(release_postgres: PostgresServer) -> None:
    """PostgreSQL takes what removes old releases for long work, and would compile it for half a second."""
    database = PostgresDatabase(new_database(release_postgres))
    assert [("off",)] == database.run(lambda execute: execute("SHOW jit", {}))
    database.close()


async def test_a_database_that_goes_away_and_comes_back(release_postgres: PostgresServer) -> None:
    """Lost connections are made anew."""
    store = PostgresReleaseStore(new_database(release_postgres), KEYS)
    await filled(store)
    release_postgres.hang_up()
    assert Found(kept(), None) == await store.find("secret-question", BOB)
    release_postgres.hang_up()
    assert "r" == (await store.keep("secret-question", kept("another"))).release_id
    await store.close()


def test_a_database_that_cannot_be_reached_is_refused() -> None:
    """Its own texts, which name the address, are not repeated."""
    with pytest.raises(ReleaseStoreFailed, match="OperationalError"):
        PostgresReleaseStore("host=127.0.0.1 port=1 password=mark connect_timeout=2", KEYS)


_ENDS_WITH_AN_OPEN_STORE = """
import asyncio, atexit, sys
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.release_stores import KEYS, kept

store = SqliteReleaseStore(sys.argv[1], KEYS)
asyncio.run(store.keep("question", kept()))
atexit.register(store.close_now)
"""


@pytest.mark.usefixtures("starts_processes")
def test_a_program_that_ends_with_an_open_store_says_nothing(tmp_path: Path) -> None:
    """At the interpreter's end no thread can be given work any more."""
    command = [sys.executable, "-c", _ENDS_WITH_AN_OPEN_STORE, str(tmp_path / "releases.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == ""
