"""A release store in PostgreSQL, for several gateways."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

import psycopg

from pinot_connector.errors import ReleaseStoreFailed
from pinot_connector.release_store.database import Execute
from pinot_connector.release_store.database_store import DatabaseReleaseStore
from pinot_connector.release_store.encryption import StoreKeys
from pinot_connector.release_store.interface import Microseconds
from pinot_connector.release_store.memory import wall_clock
from pinot_connector.release_store.receipts import ReceiptLimits

THREADS = 4
CONNECT_SECONDS = 5
STATEMENT_MILLISECONDS = 10_000

# PostgreSQL overestimates some statements, such as the removal of old releases: its JIT would take half a second for a
# millisecond of work.
_SETTINGS = f"-c statement_timeout={STATEMENT_MILLISECONDS} -c jit=off"

# Any number that no other program uses for its locks in the same database.
_LOCK = 0x6772697372656C73
_PARAMETER = re.compile(r":([a-z_]+)")
_Answer = TypeVar("_Answer")


class PostgresReleaseStore(DatabaseReleaseStore):
    """Keeps releases in a PostgreSQL database, encrypted. Several gateways share it.

    Args:
        connection: what psycopg connects to, such as "host=db dbname=gris user=gateway".
        keys: the keys of the store; `read_store_keys` reads them.
        receipts: how many receipts are kept, for a program that adds some. None: the defaults, and opening the store
            removes none, which another program keeps.
        clock: returns microseconds since 1970 (UTC); decides only which receipts are kept.

    Raises:
        ReleaseStoreFailed: the database cannot be used, or was written with keys that are not given.
    """

    def __init__(
        self,
        connection: str,
        keys: StoreKeys,
        receipts: ReceiptLimits | None = None,
        clock: Callable[[], Microseconds] = wall_clock,
    ) -> None:
        super().__init__(PostgresDatabase(connection), keys, receipts, clock)


class PostgresDatabase:
    """A PostgreSQL database, with a connection for each thread."""

    threads = THREADS
    bytes_type = "BYTEA"
    id_type = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"

    def __init__(self, connection: str) -> None:
        self._target = connection
        self._own = threading.local()
        self._all: list[psycopg.Connection] = []
        self._lock = threading.Lock()

    def has_tables(self, execute: Execute) -> bool:
        """Returns whether the database has the tables of a release store."""
        ((found,),) = execute("SELECT to_regclass('gris_release_store_schema')::text", {})
        return found is not None

    def lock(self, execute: Execute) -> None:
        """Waits until no other transaction holds the lock."""
        execute("SELECT pg_advisory_xact_lock(:lock)", {"lock": _LOCK})

    def run(self, work: Callable[[Execute], _Answer]) -> _Answer:
        """Returns what the work returns in a transaction; a lost connection is made once more."""
        for is_last in (False, True):
            try:
                return self._run_once(work)
            except psycopg.Error as error:
                # Its texts may repeat values.
                problem = f"{type(error).__name__} {error.sqlstate or ''}".strip()
                if is_last or not isinstance(error, psycopg.OperationalError):
                    break
        raise ReleaseStoreFailed(f"the release store cannot be used: {problem}")

    def check(self) -> None:
        """Does nothing: a database is not replaced like a file."""

    def size_bytes(self) -> int:
        """Returns how many bytes the tables and their indexes take."""
        tables = ("gris_releases", "gris_release_payments", "gris_release_receipts")

        def measured(execute: Execute) -> int:
            return sum(
                int(execute("SELECT pg_total_relation_size(:name::regclass)", {"name": name})[0][0])
                for name in tables
            )

        return self.run(measured)

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            for connection in self._all:
                with suppress(psycopg.Error):
                    connection.close()
            self._all.clear()

    def _run_once(self, work: Callable[[Execute], _Answer]) -> _Answer:
        connection = self._connected()

        def execute(statement: str, values: Any) -> list[tuple[Any, ...]]:
            cursor = connection.execute(_postgres(statement), values or None)
            return cursor.fetchall() if cursor.description is not None else []

        try:
            with connection.transaction():
                return work(execute)
        except psycopg.OperationalError:
            self._forget(connection)
            raise

    def _connected(self) -> psycopg.Connection:
        known: psycopg.Connection | None = getattr(self._own, "connection", None)
        if known is not None and not known.closed:
            return known
        made = psycopg.connect(
            self._target,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            options=_SETTINGS,
        )
        self._own.connection = made
        with self._lock:
            self._all.append(made)
        return made

    def _forget(self, connection: psycopg.Connection) -> None:
        with self._lock, suppress(ValueError):
            self._all.remove(connection)
        self._own.connection = None
        with suppress(psycopg.Error):
            connection.close()


@lru_cache(maxsize=256)
def _postgres(statement: str) -> Any:
    """Returns a statement with its parameters as psycopg writes them."""
    return _PARAMETER.sub(r"%(\1)s", statement.replace("::", "\0")).replace("\0", "::")
