"""The ledger's tables in PostgreSQL, and what a server must promise to keep one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import AsyncConnection, sql

from budget_service.stores.interface import StoreUnavailableError, StoreUnusableError, require_schema
from budget_service.stores.postgres.connections import Session
from budget_service.tuning import Tuning

SCHEMA_VERSION = 17
MIN_SERVER_VERSION = 140000

SQL = Path(__file__).parent / "sql"
TABLES = (SQL / "tables.sql").read_bytes()

# Any number that other programs of the database are unlikely to lock.
INSTALLATION_LOCK = 0x67726973

_PROMISES = sql.SQL(
    "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean, "
    "current_setting('server_version_num')::integer, current_setting('server_encoding'), "
    "current_setting('fsync')::boolean, current_setting('full_page_writes')::boolean, "
    "current_setting('synchronous_commit')"
)

# A promoted standby has a higher timeline than the primary that it followed.
_SYNCHRONOUS = sql.SQL(
    "SELECT current_setting('synchronous_standby_names') <> '', "
    "pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), "
    "(SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')), "
    "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer"
)


async def require_promises(session: Session, *, allow_volatile: bool) -> None:
    """Return if the server takes writes and keeps what it has acknowledged, else raise StoreUnusableError."""
    ((read_only, version, encoding, fsync, full_pages, commit),) = await session.rows(_PROMISES)
    if read_only:
        raise StoreUnusableError("this PostgreSQL is a standby or read-only and takes no writes")
    if version < MIN_SERVER_VERSION:
        raise StoreUnusableError("this PostgreSQL is older than version 14")
    if encoding != "UTF8":
        raise StoreUnusableError("the encoding of this database must be UTF8")
    if allow_volatile:
        return
    if not (fsync and full_pages):
        raise StoreUnusableError("this PostgreSQL may lose its data: set fsync and full_page_writes to on")
    if commit not in ("on", "remote_apply"):
        raise StoreUnusableError(
            f"this PostgreSQL may forget charges (synchronous_commit is {commit}): set it to on or remote_apply"
        )


async def require_synchronous(session: Session) -> int:
    """Return the timeline of the server if a standby has whatever it acknowledges.

    Raises:
        StoreUnusableError: It is not set up so, or this user may not see it.
        StoreUnavailableError: No such standby is connected now.
    """
    ((is_set, may_look, standbys, timeline),) = await session.rows(_SYNCHRONOUS)
    if not is_set:
        raise StoreUnusableError(
            "synchronous=required, and this PostgreSQL replicates asynchronously: set synchronous_standby_names"
        )
    if not may_look:
        raise StoreUnusableError(
            "synchronous=required, and the user of this address may not see the standbys: "
            "GRANT pg_read_all_stats to it"
        )
    if not standbys:
        raise StoreUnavailableError(
            "synchronous=required, and no synchronous standby of this PostgreSQL is connected"
        )
    return int(timeline)


async def install(session: Session, tuning: Tuning) -> None:
    """Make the tables if they are missing; several processes may do so at once.

    Raises StoreUnusableError if the ledger has another schema, StoreUnavailableError if it cannot be done.
    """
    connection = session.connection
    try:
        async with asyncio.timeout(tuning.installation_seconds), connection.transaction():
            # A process that waits for another one's tables is not stuck.
            await connection.execute("SET LOCAL statement_timeout = 0")
            # A process that is held up between two statements keeps others from starting, and none from charging.
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (INSTALLATION_LOCK,))
            await _install_tables(connection)
    except TimeoutError:
        raise StoreUnavailableError("the ledger cannot be installed: another process is at it") from None
    except psycopg.errors.InsufficientPrivilege:
        raise StoreUnusableError("the user of this address may not create the ledger's schemas") from None
    except psycopg.Error as error:
        raise StoreUnavailableError(
            f"the ledger cannot be installed: {type(error).__name__} ({error.sqlstate})"
        ) from None


async def _install_tables(connection: AsyncConnection[Any]) -> None:
    if await _first(connection, "SELECT to_regclass('gris.schema') IS NULL"):
        await connection.execute(TABLES)
        await connection.execute("INSERT INTO gris.schema VALUES (%s)", (SCHEMA_VERSION,))
    found = await _first(connection, "SELECT version FROM gris.schema")
    require_schema("this PostgreSQL", found, SCHEMA_VERSION)


async def _first(connection: AsyncConnection[Any], query: LiteralString, *parameters: str) -> Any:
    ((found,),) = await (await connection.execute(query, parameters)).fetchall()
    return found
