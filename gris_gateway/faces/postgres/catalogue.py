"""Questions about tables and columns, answered by a PostgreSQL that holds nothing else.

Their text goes there as it is, and nowhere else; questions about data never do. So no answer from here depends on data.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from pygwire import messages

from gris_gateway.faces.postgres.catalogue_connection import (
    CatalogueAnswer,
    CatalogueConnection,
    CatalogueUnreachable,
)
from gris_gateway.faces.postgres.catalogue_process import (
    DATABASE,
    MOST_CONNECTIONS,
    OWNER,
    READER,
    CatalogueProcess,
)
from gris_gateway.faces.postgres.errors import CANCELLED, SYSTEM, TOO_MUCH, PostgresError
from gris_serving.reloading_files import SecurityError
from pinot_connector.catalog import TableEntry
from pinot_connector.engines.base import ColumnType

log = logging.getLogger(__name__)

# Its own time-out is shorter.
ANSWER_SECONDS = 4.0
_LEAVE_SECONDS = 5.0
_MOST_CHARACTERS = 50_000
MOST_LISTS = 64
"""How many different lists of tables there are at a time; a further one takes the place of the least lately asked."""
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


class Catalogue:
    """Tables and columns as a policy lists them, in a database for each list: audiences are offered different ones.

    Args:
        process: The PostgreSQL.
        server_version: What it calls itself.
    """

    def __init__(self, process: CatalogueProcess, server_version: str) -> None:
        self.server_version = server_version
        self._process = process
        self._turns = asyncio.Semaphore(MOST_CONNECTIONS)
        # By the statements that make them, the one that was asked for last at the end.
        self._lists: OrderedDict[str, ListedTables] = OrderedDict()
        self._numbers = itertools.count(1)
        self._making = asyncio.Lock()

    async def listing(self, tables: Iterable[TableEntry]) -> ListedTables:
        """Return what answers questions about the tables that a caller is offered.

        Raises:
            PostgresError: The process does not answer.
        """
        wanted = ";\n".join(_statements(tables))
        async with self._making:
            try:
                if wanted not in self._lists:
                    self._lists[wanted] = await self._made(wanted)
                self._lists.move_to_end(wanted)
                while len(self._lists) > MOST_LISTS:
                    _, oldest = self._lists.popitem(last=False)
                    oldest.close()
                    await self._run("postgres", f"DROP DATABASE {oldest.database} WITH (FORCE)")
            except (CatalogueUnreachable, OSError):
                raise _gone() from None
            return self._lists[wanted]

    async def _made(self, statements: str) -> ListedTables:
        database = f"{DATABASE}_{next(self._numbers)}"
        await self._run(
            "postgres",
            f"CREATE DATABASE {database} TEMPLATE {DATABASE}",
            f"REVOKE ALL ON DATABASE {database} FROM PUBLIC",
            f"GRANT CONNECT ON DATABASE {database} TO {READER}",
        )
        await self._run(database, statements)
        return ListedTables(self._process.socket, database, self._turns)

    async def prepare(self) -> None:
        """Make the role that asks, and an empty database in which it has no right that it must not have."""
        await self._run(
            "postgres",
            f"CREATE DATABASE {DATABASE}",
            f"CREATE ROLE {READER} LOGIN CONNECTION LIMIT {MOST_CONNECTIONS}",
            *(f"ALTER ROLE {READER} SET {name} = '{value}'" for name, value in _OF_READER.items()),
            f"REVOKE ALL ON DATABASE {DATABASE}, postgres, template1 FROM PUBLIC",
        )
        await self._run(DATABASE, _WITHOUT_RIGHTS)

    async def _run(self, database: str, *statements: str) -> None:
        owner = await CatalogueConnection.opened(self._process.socket, OWNER, database)
        try:
            for each in statements:
                await owner.run(each)
        finally:
            owner.close()

    def close(self) -> None:
        """Close its connections."""
        for each in self._lists.values():
            each.close()


class ListedTables:
    """One list of tables and columns, in a database of its own.

    Args:
        socket: Where PostgreSQL listens.
        database: The database.
        turns: Bounds how many statements are asked at a time, of all lists.
    """

    def __init__(self, socket: Path, database: str, turns: asyncio.Semaphore) -> None:
        self.database = database
        self._socket = socket
        self._turns = turns
        self.is_open = True
        self._idle: list[CatalogueConnection] = []

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
    async def _connection(self) -> AsyncIterator[CatalogueConnection]:
        async with self._turns:
            connection = (
                self._idle.pop()
                if self._idle
                else await CatalogueConnection.opened(self._socket, READER, self.database)
            )
            try:
                yield connection
            except PostgresError:
                # It was refused in the protocol's order.
                if connection.is_ready:
                    self._idle.append(connection)
                else:
                    self._give_up(connection)
                raise
            except BaseException:
                self._give_up(connection)
                raise
            self._idle.append(connection)

    def _give_up(self, connection: CatalogueConnection) -> None:
        """Close a connection; what it had begun ends by its own time-out, or is ended."""
        connection.close()
        asyncio.get_running_loop().call_later(_LEAVE_SECONDS, self._end, connection.backend)

    def _end(self, backend: int) -> None:
        """End what does not end by itself: in functions such as `strpos` PostgreSQL looks at no time-out and no signal.

        PostgreSQL then begins anew, with all of its connections.
        """
        with suppress(ProcessLookupError):
            if not self.is_open:
                return
            os.kill(backend, signal.SIGKILL)
            log.warning(
                "A statement about the catalogue did not end, and was ended.",
                extra={"event": "catalogue.ended"},
            )
            while self._idle:
                self._idle.pop().close()

    def close(self) -> None:
        """Close its connections."""
        self.is_open = False
        for each in self._idle:
            each.close()


@asynccontextmanager
async def catalogue_of(programs: Path) -> AsyncIterator[Catalogue]:
    """Run a catalogue while the block runs.

    Raises:
        SecurityError: Its process does not start.
    """
    async with CatalogueProcess(programs) as process:
        try:
            connection = await CatalogueConnection.opened(process.socket, OWNER, "postgres")
            version = connection.parameters.get("server_version", "")
            connection.close()
            catalogue = Catalogue(process, version)
            await catalogue.prepare()
        except CatalogueUnreachable:
            raise SecurityError("postgres.catalogue: it does not answer") from None
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
CREATE OR REPLACE FUNCTION pg_catalog.current_database() RETURNS name LANGUAGE sql AS 'SELECT ''{DATABASE}''::name';
CREATE OR REPLACE FUNCTION pg_catalog.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS $$
  BEGIN
    IF pg_catalog.starts_with(pg_catalog.lower($1), 'gris.') THEN
      RAISE 'set_config: expected SET % = ..', pg_catalog.lower($1) USING ERRCODE = '0A000';
    END IF;
    RETURN $2;
  END $$;
REVOKE SELECT ON pg_catalog.pg_shdepend, pg_catalog.pg_stat_database FROM PUBLIC;
CREATE FUNCTION pg_catalog.{_REFUSING}() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN RAISE 'no rows are here: ask about a table in a statement that names nothing of the catalogue'
    USING ERRCODE = '0A000'; END $$;
REVOKE ALL ON LANGUAGE plpgsql FROM PUBLIC
"""  # noqa: S608


def _statements(tables: Iterable[TableEntry]) -> Iterable[str]:
    """Yield what makes tables of no rows, of which tools find that they may be read, and which refuse it."""
    yield "BEGIN"
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


def _gone() -> PostgresError:
    return PostgresError(SYSTEM, "the catalogue does not answer")
