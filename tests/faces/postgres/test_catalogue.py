"""The PostgreSQL that lists tables: what one statement about the catalogue can do to another, and how it starts."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql
from pygwire import messages

from gris_gateway.faces.postgres import catalogue as module
from gris_gateway.faces.postgres.catalogue import Catalogue, ListedTables, prepared
from gris_gateway.faces.postgres.catalogue_process import OWNER, READER, CatalogueProcess
from gris_gateway.faces.postgres.errors import PostgresError
from pinot_connector.catalog import ColumnEntry, TableEntry
from pinot_connector.engines.base import ColumnType
from pinot_connector.parameters import Consistency
from tests.support.catalogues import WAIT_SECONDS, catalogue_programs
from tests.support.proc import require_proc
from tests.support.rings import needs

FOUND = catalogue_programs()
pytestmark = pytest.mark.asyncio(loop_scope="module")

COLUMNS = (ColumnEntry("app", ColumnType.STRING, None, (), None, None, None),)
TABLES = (TableEntry("visits", "member", (), None, Consistency.KEYED, COLUMNS),)
# An argument of each type with which a function could do something; of others NULL.
ARGUMENTS = {
    **dict.fromkeys(("text", "name", "cstring", "unknown", "anyelement", "anycompatible", "any"), "app.user"),
    **dict.fromkeys(("anynonarray", "anycompatiblenonarray", "bpchar", "varchar"), "app.user"),
    **dict.fromkeys(("_text", "anyarray", "anycompatiblearray"), "{app.user}"),
    **{"bool": "false", "float8": "0.1", "numeric": "1", "interval": "1 ms", "bytea": "a", "pg_lsn": "0/1"},
    **{"regclass": "pg_class", "regtype": "int4", "regconfig": "simple", "json": "{}", "jsonb": "{}"},
    **{"timestamptz": "2026-01-01", "timestamp": "2026-01-01", "date": "2026-01-01", "xid": "3", "char": "a"},
}
NUMBERS = ("int2", "int4", "int8", "oid")
PSEUDO_TYPES = {
    **dict.fromkeys(("anyelement", "anycompatible", "any", "anynonarray", "anycompatiblenonarray"), "text"),
    **dict.fromkeys(("anyarray", "anycompatiblearray"), "_text"),
    **dict.fromkeys(("anyrange", "anycompatiblerange"), "int4range"),
    **dict.fromkeys(("anymultirange", "anycompatiblemultirange"), "int4multirange"),
}
# gRPC's handlers of forks, registered in the same way, break connections that are in use.
FORKS = """
import asyncio, ctypes, pathlib, sys
from gris_gateway.faces.postgres.catalogue_process import CatalogueProcess

forks = []
handler = ctypes.CFUNCTYPE(None)(lambda: forks.append("fork"))
ctypes.CDLL(None).__register_atfork(handler, None, None, None)

async def main():
    process = CatalogueProcess(pathlib.Path(sys.argv[1]))
    try:
        await process.start()
        assert process.is_running
    finally:
        await process.end()

asyncio.run(main())
print(forks)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
@needs("process", "postgres")
async def process(programs_of_postgres: None) -> AsyncIterator[CatalogueProcess]:
    """Run a PostgreSQL without tables."""
    assert FOUND is not None
    running = await prepared(FOUND, WAIT_SECONDS)
    yield running
    await running.end()


@pytest.fixture
@needs("process", "postgres")
def broken(programs_of_postgres: None) -> Iterator[Path]:
    """Return a folder of programs, whose `initdb` fails while there is a file `fails` beside it."""
    assert FOUND is not None
    folder = Path(tempfile.mkdtemp())
    # PostgreSQL runs as another user where this is root.
    folder.chmod(0o755)
    (folder / "fails").touch()
    (folder / "initdb").write_text(f'#!/bin/sh\n[ ! -e {folder}/fails ] && exec {FOUND}/initdb "$@"\n')
    (folder / "postgres").write_text(f'#!/bin/sh\nexec {FOUND}/postgres "$@"\n')
    for each in ("initdb", "postgres"):
        (folder / each).chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
@needs("process", "postgres")
async def catalogue(programs_of_postgres: None) -> AsyncIterator[Catalogue]:
    """Run a catalogue."""
    running = Catalogue(FOUND)
    yield running
    await running.close()


async def listed(catalogue: Catalogue, tables: tuple[TableEntry, ...] = TABLES) -> ListedTables:
    """Return what lists tables, once it has started."""
    ends = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return await catalogue.listing(tables)
        except PostgresError as error:
            if error.sqlstate != "57P03" or time.monotonic() > ends:
                raise


async def asked(tables: ListedTables, text: str) -> list[tuple[str | None, ...]]:
    """Return the rows that answer a statement."""
    answer = await tables.ask(text, (), messages.Bind())
    return [tuple(None if each is None else each.decode() for each in row.columns) for row in answer.rows]


def connected(process: CatalogueProcess, user: str) -> psycopg.Connection:
    """Connect to it, past the gateway."""
    return psycopg.connect(host=str(process.socket.parent), user=user, dbname="gris", autocommit=True)


def seen(of: psycopg.Connection, by: psycopg.Connection) -> dict[str, list[Any]]:
    """Return what there is of a connection, and of what all connections share.

    Args:
        of: The connection.
        by: One of the owner.
    """
    own = (
        "SELECT name, setting FROM pg_settings WHERE name NOT LIKE 'plpgsql.%'",
        "SELECT current_setting('app.user', true)",
    )
    shared = (
        "SELECT locktype, objid, mode FROM pg_locks WHERE pid <> pg_backend_pid() AND locktype <> 'virtualxid'",
        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gris_reader'",
        "SELECT oid, relname, relnamespace::regnamespace, relacl FROM pg_class ORDER BY 1",
        "SELECT oid, proname, proacl FROM pg_proc ORDER BY 1",
        "SELECT oid FROM pg_largeobject_metadata",
        "SELECT nspname FROM pg_namespace",
        "SELECT datname, datacl FROM pg_database",
        "SELECT rolname, rolconfig FROM pg_roles",
        "SELECT slot_name FROM pg_replication_slots",
        "SELECT relid, seq_scan, n_live_tup FROM pg_stat_all_tables WHERE seq_scan > 0",
    )
    return {
        **{each: of.execute(each).fetchall() for each in own},
        **{each: by.execute(each).fetchall() for each in shared},
    }


def calls(connection: psycopg.Connection, number: int) -> Iterator[sql.Composed]:
    """Yield a call of each function that a connection may execute, with a number where one is expected."""
    functions = connection.execute(
        "SELECT pronamespace::regnamespace::text, proname, prokind, array(SELECT typname::text "
        "FROM unnest(proargtypes) WITH ORDINALITY AS arguments(type, place) JOIN pg_type ON pg_type.oid = type "
        "ORDER BY place) FROM pg_proc "
        "WHERE has_function_privilege(oid, 'EXECUTE') AND NOT 'internal'::regtype = ANY(proargtypes)"
    ).fetchall()
    for schema, name, kind, types in functions:
        arguments = []
        for each in types:
            value = str(number) if each in NUMBERS else ARGUMENTS.get(each)
            cast = sql.Identifier("pg_catalog", PSEUDO_TYPES.get(each, each))
            arguments.append(sql.SQL("{}::{}").format(sql.Literal(value), cast))
        called = sql.SQL("{}({})").format(sql.Identifier(schema, name), sql.SQL(", ").join(arguments))
        yield sql.SQL("SELECT {}{}").format(called, sql.SQL(" OVER ()" if kind == "w" else ""))


async def test_no_function_that_may_be_called_reaches_another_connection_or_stays(
    process: CatalogueProcess,
) -> None:
    """Each is called; settings, locks, sessions, catalogue and statistics are what they were."""
    with (
        connected(process, OWNER) as owner,
        connected(process, READER) as other,
        connected(process, READER) as caller,
    ):
        other.execute('LISTEN "app.user"')
        before = seen(other, owner), seen(caller, owner)
        answered = 0
        for call in calls(other, other.info.backend_pid):
            answered += caller.pgconn.exec_(call.as_bytes(caller)).status == psycopg.pq.ExecStatus.TUPLES_OK
            assert not caller.broken, call.as_string(caller)
        assert answered > 1500
        for was, connection in zip(before, (other, caller), strict=True):
            for query, rows in seen(connection, owner).items():
                assert rows == was[query], query
        assert list(other.notifies(timeout=0)) == []


async def test_no_connection_outlives_its_statement(catalogue: Catalogue) -> None:
    """Answered, refused by its parser, or failed: what it has set is gone with it, and is no other caller's."""
    tables = await listed(catalogue)
    for text in ("SELECT 1", "SELECT", "SELECT 1 / 0"):
        with suppress(PostgresError):
            await asked(tables, text)
    with connected(tables.process, OWNER) as owner:
        ends = time.monotonic() + WAIT_SECONDS
        while owner.execute("SELECT FROM pg_stat_activity WHERE usename = 'gris_reader'").fetchall():
            assert time.monotonic() < ends
            await asyncio.sleep(0.05)


async def test_callers_who_are_offered_other_tables_share_nothing(catalogue: Catalogue) -> None:
    """Each has a PostgreSQL of its own, in which every number is that of the only one."""
    numbers = (
        "SELECT oid, datname, pg_database_size(oid) FROM pg_database",
        "SELECT oid, xmin FROM pg_class WHERE relname IN ('visits', 'orders')",
        "SELECT pg_total_relation_size(oid) FROM pg_class WHERE relname IN ('pg_database', 'pg_authid', 'pg_shdepend')",
        "SELECT pg_describe_object('pg_database'::regclass, oid, 0) FROM generate_series(16384, 16500) AS oid",
    )
    first = await listed(catalogue)
    alone = [await asked(first, each) for each in numbers]
    second = await listed(catalogue, (replace(TABLES[0], name="orders"),))
    named = "SELECT relname FROM pg_class WHERE relname IN ('visits', 'orders')"
    assert [await asked(each, named) for each in (first, second)] == [[("visits",)], [("orders",)]]
    assert [[await asked(each, number) for number in numbers] for each in (first, second)] == [alone, alone]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_catalog.gris_refuses_set_config('statement_timeout', '0', false)",
        "SELECT set_config('GRIS.max_cost', '20', false)",
        "WITH a AS (UPDATE pg_settings SET setting = '0' WHERE name = 'statement_timeout' RETURNING 1) SELECT FROM a",
        "WITH a AS (INSERT INTO visits VALUES ('a') RETURNING 1) SELECT FROM a",
        "WITH a AS (DELETE FROM pg_largeobject RETURNING 1) SELECT FROM a",
        "SELECT FROM pg_class FOR UPDATE",
        "EXPLAIN ANALYZE CREATE TABLE a AS SELECT",
        "SELECT 1 INTO TEMP a",
        "SELECT 1; SELECT 2",
        "DO $$ BEGIN END $$",
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "SET ROLE gris_owner",
        "SET SESSION AUTHORIZATION gris_owner",
        "CREATE EXTENSION dblink",
        "SELECT FROM pg_stat_activity",
        "SELECT FROM pg_locks",
        "SELECT FROM pg_cursors",
        "SELECT FROM pg_prepared_statements",
        "SELECT lo_creat(-1)",
        "SELECT lo_from_bytea(0, 'a')",
        "SELECT pg_notify('a', 'a')",
        "SELECT pg_try_advisory_xact_lock_shared(1)",
        "SELECT pg_cancel_backend(1)",
        "SELECT table_to_xml('visits', true, true, '')",
        "SELECT ts_stat('SELECT to_tsvector(app) FROM visits')",
        "SELECT ts_rewrite('a'::tsquery, 'SELECT app, app FROM visits')",
        "SELECT * FROM visits",
        "SELECT pg_stat_file('.')",
        "SELECT pg_export_snapshot()",
        "SELECT txid_current()",
        "SELECT pg_current_wal_lsn()",
        "SELECT pg_stat_reset()",
        "SELECT setseed(1)",
        "SELECT nextval('a')",
        "SELECT pg_tablespace_size('pg_default')",
        "SELECT pg_sleep_for('1 ms')",
        "SELECT plpgsql_validator(0)",
    ],
)
async def test_what_would_act_is_refused(catalogue: Catalogue, text: str) -> None:
    """Also where a statement reaches PostgreSQL that the session before it would refuse."""
    with pytest.raises(PostgresError) as refused:
        await asked(await listed(catalogue), text)
    assert refused.value.sqlstate in ("42501", "25006", "42601", "0A000", "42P01")


async def test_what_drivers_set_when_they_connect_is_answered(catalogue: Catalogue) -> None:
    """By set_config, which sets nothing."""
    tables = await listed(catalogue)
    setting = (
        "SELECT current_setting('jit'), pg_catalog.set_config('jit', 'on', false), current_setting('jit')"
    )
    assert await asked(tables, setting) == [("off", "on", "off")]


async def test_one_that_fails_to_start_is_started_again(
    broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile it is said what is so: that it starts, that it has failed; nothing says that it is not installed."""
    catalogue = Catalogue(broken)
    try:
        with monkeypatch.context() as hurried:
            hurried.setattr(module, "WAIT_SECONDS", 0)
            with pytest.raises(PostgresError, match="the catalogue is starting") as starting:
                await catalogue.listing(TABLES)
            assert starting.value.sqlstate == "57P03"
            ends = time.monotonic() + WAIT_SECONDS
            hurried.setattr(module, "WAIT_SECONDS", 5)
            said = ""
            while "has failed to start, and is started again" not in said:
                assert time.monotonic() < ends
                await asyncio.sleep(0.05)
                with pytest.raises(PostgresError) as failing:
                    await catalogue.listing(TABLES)
                said = failing.value.message
        (broken / "fails").unlink()
        assert await asked(await listed(catalogue), "SELECT relname FROM pg_class WHERE relname = 'visits'")
    finally:
        await catalogue.close()


async def test_one_that_ends_is_started_again(catalogue: Catalogue) -> None:
    """By the next statement about its tables, with the same tables."""
    tables = await listed(catalogue)
    await tables.process.end()
    with pytest.raises(PostgresError, match="is started again"):
        await asked(tables, "SELECT 1")
    assert await asked(await listed(catalogue), "SELECT relname FROM pg_class WHERE relname = 'visits'")


@pytest.mark.usefixtures("starts_processes", "programs_of_postgres")
async def test_it_starts_without_a_fork_of_its_own_process() -> None:
    """Else connections of the gateway's callers fail while it starts."""
    require_proc()
    command = [sys.executable, "-c", FORKS, str(FOUND)]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


async def test_without_programs_it_is_said_that_it_is_not_installed() -> None:
    """And nothing is started."""
    catalogue = Catalogue(None)
    with pytest.raises(PostgresError, match="is not installed") as missing:
        await catalogue.listing(TABLES)
    assert missing.value.sqlstate == "0A000"
    await catalogue.close()
