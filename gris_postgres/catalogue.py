"""Questions about tables and columns, answered by a PostgreSQL that holds nothing else.

Their text goes there as it is, and nowhere else; questions about data never do. So no answer from here depends on data.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pygwire import messages
from pygwire.connection import FrontendConnection
from pygwire.exceptions import PygwireError

from gris_postgres.catalogue_process import DATABASE, MOST_CONNECTIONS, OWNER, READER, CatalogueProcess
from gris_postgres.errors import CANCELLED, NOT_SUPPORTED, SYSTEM, TOO_MUCH, PostgresError
from pinot_connector.catalog import Catalog, TableEntry
from pinot_connector.engines.base import ColumnType

# Its own time-out is shorter.
ANSWER_SECONDS = 4.0
MOST_BYTES = 4 * 2**20
_MOST_CHARACTERS = 50_000
_READ_BYTES = 2**16
_FRESH_SECONDS = 5.0
_TRIES, _PAUSE_SECONDS = 200, 0.05
# It starts, or a connection that was given up has not ended yet.
_NOT_YET = ("57P03", "53300")
_TYPES = {
    ColumnType.STRING: "text",
    ColumnType.INT64: "bigint",
    ColumnType.BOOL: "boolean",
    ColumnType.DATE: "date",
    ColumnType.TIMESTAMP: "timestamptz",
}
_REFUSING = "gris_refuses"
_OF_READER = {"default_transaction_read_only": "on", "statement_timeout": "2s", "lock_timeout": "1s"}
# By these a role could lift its limits, hold others up or reach what is outside of its transaction.
_NOT_CALLED = " OR ".join(
    (
        "proname IN ('pg_notify', 'pg_cancel_backend', 'pg_terminate_backend', 'pg_export_snapshot')",
        "proname IN ('pg_current_logfile', 'pg_reload_conf', 'currval', 'nextval', 'setval')",
        *(
            f"proname LIKE '{each}'"
            for each in (
                *(
                    "pg_sleep%",
                    "pg_%advisory%",
                    "pg_ls%",
                    "pg_read%",
                    "pg_stat%file",
                    "pg_log%",
                    "pg_replication%",
                ),
                *("lo_%", "lo%write", "dblink%", "%_to_xml%"),
            )
        ),
    )
)


@dataclass(frozen=True)
class CatalogueAnswer:
    """What it answers.

    Attributes:
        types: Those of the statement's parameters.
        described: The columns; None: there are no rows.
        rows: The rows.
        command: What it calls the statement, without a count.
    """

    types: Sequence[int]
    described: messages.RowDescription | None
    rows: Sequence[messages.DataRow]
    command: str


class CatalogueUnreachable(Exception):  # noqa: N818 - it is what happened
    """The process has ended, or says what is no message."""


class Catalogue:
    """Tables and columns as a policy lists them.

    Args:
        process: The PostgreSQL.
        server_version: What it calls itself.
    """

    def __init__(self, process: CatalogueProcess, server_version: str) -> None:
        self.server_version = server_version
        self._process = process
        self._turns = asyncio.Semaphore(MOST_CONNECTIONS)
        self._idle: list[_Connection] = []
        self._holding = ""
        self._known_until = -1.0
        self._holding_lock = asyncio.Lock()

    async def require_current(self, read: Callable[[], Awaitable[Catalog]]) -> None:
        """Hold the tables of the policy that is served now.

        Args:
            read: Reads the catalogue of the gateway.

        Raises:
            PostgresError: The process does not answer.
        """
        async with self._holding_lock:
            if time.monotonic() < self._known_until:
                return
            catalog = await read()
            wanted = ";\n".join(_statements(catalog.tables))
            if wanted != self._holding:
                try:
                    await self._hold(wanted)
                except (CatalogueUnreachable, OSError):
                    raise _gone() from None
                self._holding = wanted
            self._known_until = time.monotonic() + _FRESH_SECONDS

    async def _hold(self, statements: str) -> None:
        owner = await _Connection.opened(self._process.socket, OWNER)
        try:
            await owner.run(statements)
        finally:
            owner.close()

    async def ask(self, sql: str, types: Sequence[int], bound: messages.Bind | None) -> CatalogueAnswer:
        """Ask it.

        Args:
            sql: The statement.
            types: Those of its parameters that are known.
            bound: The parameters, and the forms of columns; None: only its types and columns are asked.

        Raises:
            PostgresError: It refuses the statement, or is not there.
        """
        if len(sql) > _MOST_CHARACTERS:
            raise PostgresError(
                TOO_MUCH, f"expected at most {_MOST_CHARACTERS:,} characters about the catalogue"
            )
        try:
            async with asyncio.timeout(ANSWER_SECONDS), self._connection() as connection:
                return await connection.ask(sql, types, bound)
        except TimeoutError:
            raise PostgresError(CANCELLED, "the catalogue took too long") from None
        except (CatalogueUnreachable, OSError):
            raise _gone() from None

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[_Connection]:
        async with self._turns:
            connection = (
                self._idle.pop() if self._idle else await _Connection.opened(self._process.socket, READER)
            )
            try:
                yield connection
            except PostgresError:
                # It was refused in the protocol's order.
                if connection.is_ready:
                    self._idle.append(connection)
                else:
                    connection.close()
                raise
            except BaseException:
                # What it had begun ends with its connection.
                connection.close()
                raise
            self._idle.append(connection)

    async def prepare(self) -> None:
        """Make the role that asks, and take from it what it must not call."""
        owner = await _Connection.opened(self._process.socket, OWNER, "postgres")
        try:
            await owner.run(f"CREATE DATABASE {DATABASE}")
            await owner.run(f"CREATE ROLE {READER} LOGIN CONNECTION LIMIT {MOST_CONNECTIONS}")
            for name, value in _OF_READER.items():
                await owner.run(f"ALTER ROLE {READER} SET {name} = '{value}'")
            await owner.run(f"REVOKE ALL ON DATABASE {DATABASE}, postgres, template1 FROM PUBLIC")
            await owner.run(f"GRANT CONNECT ON DATABASE {DATABASE} TO {READER}")
        finally:
            owner.close()
        owner = await _Connection.opened(self._process.socket, OWNER)
        try:
            await owner.run(_WITHOUT_RIGHTS)
        finally:
            owner.close()

    def close(self) -> None:
        """Close its connections."""
        for each in self._idle:
            each.close()


@asynccontextmanager
async def catalogue_of(programs: Path) -> AsyncIterator[Catalogue]:
    """Run a catalogue while the block runs.

    Raises:
        SecurityError: Its process does not start.
    """
    async with CatalogueProcess(programs) as process:
        connection = await _Connection.opened(process.socket, OWNER, "postgres")
        version = connection.parameters.get("server_version", "")
        connection.close()
        catalogue = Catalogue(process, version)
        await catalogue.prepare()
        try:
            yield catalogue
        finally:
            catalogue.close()


# Of names in this module alone. Drivers call set_config when they connect: it answers what it gets, and sets nothing.
_WITHOUT_RIGHTS = f"""
DO $$ DECLARE each record; BEGIN
  FOR each IN SELECT oid::regprocedure AS called FROM pg_proc WHERE {_NOT_CALLED} LOOP
    EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', each.called);
  END LOOP;
END $$;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {READER};
CREATE OR REPLACE FUNCTION pg_catalog.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT $2';
CREATE FUNCTION pg_catalog.{_REFUSING}() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN RAISE 'no rows are here: ask about a table in a statement that names nothing of the catalogue'
    USING ERRCODE = '0A000'; END $$;
REVOKE ALL ON LANGUAGE plpgsql FROM PUBLIC
"""  # noqa: S608


def _statements(tables: Iterable[TableEntry]) -> Iterable[str]:
    """Yield what makes tables of no rows, of which tools find that they may be read, and which refuse it."""
    yield "BEGIN"
    yield f"DROP OWNED BY {READER}; GRANT CONNECT ON DATABASE {DATABASE} TO {READER}"
    yield "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
    yield f"GRANT USAGE ON SCHEMA public TO {READER}"
    for table in tables:
        columns = {table.member: "text"}
        columns |= {each.name: "double precision" for each in table.values}
        columns |= {each.name: _TYPES[each.type] for each in table.columns}
        written = ", ".join(f"{_name(name)} {kind}" for name, kind in columns.items())
        yield f"CREATE TABLE public.{_name(table.name)} ({written})"
        # Tools list the tables that may be read. One that is read would be empty, which is not true of its data.
        yield f"ALTER TABLE public.{_name(table.name)} ENABLE ROW LEVEL SECURITY"
        yield f"CREATE POLICY refused ON public.{_name(table.name)} USING (pg_catalog.{_REFUSING}())"
        yield f"GRANT SELECT ON public.{_name(table.name)} TO {READER}"
    yield "COMMIT"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Connection:
    """One connection to the catalogue, by the messages of its client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.parameters: dict[str, str] = {}
        self._reader = reader
        self._writer = writer
        self._protocol = FrontendConnection()

    @classmethod
    async def opened(cls, socket: Path, user: str, database: str = DATABASE) -> _Connection:
        """Open a connection.

        Raises:
            CatalogueUnreachable: The process does not answer, or has no connection left.
        """
        # The socket is there a moment before it is listened to.
        for _ in range(_TRIES):
            try:
                reader, writer = await asyncio.open_unix_connection(str(socket))
            except OSError:
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            connection = cls(reader, writer)
            try:
                await connection._log_in(user, database)
            except PostgresError as error:
                connection.close()
                if error.sqlstate not in _NOT_YET:
                    raise CatalogueUnreachable from None
                await asyncio.sleep(_PAUSE_SECONDS)
            except BaseException:
                connection.close()
                raise
            else:
                return connection
        raise CatalogueUnreachable

    async def _log_in(self, user: str, database: str) -> None:
        self._send(messages.StartupMessage({"user": user, "database": database}))
        async for message in self._answers():
            if isinstance(message, messages.ParameterStatus):
                self.parameters[message.name] = message.value

    @property
    def is_ready(self) -> bool:
        """Whether another statement can be asked."""
        return self._protocol.is_ready

    async def run(self, sql: str) -> None:
        """Run statements of this module."""
        self._send(messages.Query(sql))
        async for _ in self._answers():
            pass

    async def ask(self, sql: str, types: Sequence[int], bound: messages.Bind | None) -> CatalogueAnswer:
        """Ask a statement, or only for its types and columns."""
        parts: list[messages.PGMessage] = [
            messages.Parse("", sql, list(types)),
            messages.Describe("S", ""),
        ]
        if bound is not None:
            parts.append(messages.Bind("", "", bound.param_formats, bound.param_values, bound.result_formats))
            parts += [messages.Describe("P", ""), messages.Execute("", 0)]
        self._send(*parts, messages.Sync())
        found, command = list(types), ""
        described: messages.RowDescription | None = None
        rows: list[messages.DataRow] = []
        async for message in self._answers():
            match message:
                case messages.ParameterDescription():
                    found = message.type_oids
                case messages.RowDescription():
                    described = message
                case messages.DataRow():
                    rows.append(message)
                case messages.CommandComplete():
                    command = message.tag.rstrip("0123456789").rstrip()
        return CatalogueAnswer(found, described, rows, command)

    async def _answers(self) -> AsyncIterator[messages.PGMessage]:
        """Yield what it says until it is ready; then raise what it has refused."""
        refused: PostgresError | None = None
        heard = 0
        while True:
            read = await self._reader.read(_READ_BYTES)
            heard += len(read)
            if not read:
                raise refused or CatalogueUnreachable
            if heard > MOST_BYTES:
                raise PostgresError(TOO_MUCH, f"expected an answer of at most {MOST_BYTES:,} bytes")
            try:
                said = list(self._protocol.receive(read))
            except PygwireError:
                raise CatalogueUnreachable from None
            for message in said:
                if isinstance(message, messages.ErrorResponse):
                    refused = _refused(message)
                yield message
            if refused is not None and not self._protocol.is_active:
                raise refused
            if self._protocol.is_ready:
                if refused is not None:
                    raise refused
                return

    def _send(self, *parts: messages.PGMessage) -> None:
        self._writer.write(b"".join(map(self._protocol.send, parts)))

    def close(self) -> None:
        """Close it."""
        self._writer.close()


def _gone() -> PostgresError:
    return PostgresError(SYSTEM, "the catalogue does not answer")


def _refused(message: messages.ErrorResponse) -> PostgresError:
    position = message.fields.get("P", "")
    # What it takes for a fault of its own is one of the statement: a type that there is not, for example.
    sqlstate = NOT_SUPPORTED if message.code.startswith("XX") else message.code
    return PostgresError(sqlstate, message.message, int(position) if position.isdecimal() else 0)
