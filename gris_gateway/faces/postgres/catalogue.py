"""Questions about tables and columns, answered by a PostgreSQL that holds nothing else.

Their text goes there as it is, and nowhere else; questions about data never do. So no answer from here depends on data.

Callers who are offered different tables ask different PostgreSQLs. Each statement has a connection of its own, so that
nothing it sets outlives it, and calls only functions that reach no other connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from pygwire import messages

from gris_gateway.faces.postgres import errors
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
    version_of,
)
from gris_gateway.faces.postgres.errors import PostgresError
from gris_gateway.faces.postgres.types import OID_OF
from gris_serving.reloading_files import SecurityError
from pinot_connector.catalog import TableEntry
from pinot_connector.dbapi.types import KIND_OF_COLUMN

log = logging.getLogger(__name__)

# Its own time-out is shorter.
ANSWER_SECONDS = 4.0
_START_SECONDS = 60.0
_FAILURES = (SecurityError, CatalogueUnreachable, PostgresError, OSError, TimeoutError)
WAIT_SECONDS = 20.0
_LEAVE_SECONDS = 5.0
MOST_LISTS = 16
"""How many different lists of tables there are at a time; a further one takes the place of the least lately asked."""
_REFUSING = "gris_refuses"
_OF_READER = {"default_transaction_read_only": "on", "statement_timeout": "2s", "lock_timeout": "1s"}
# Functions that are not immutable and that no operator or cast calls, but tools do. Each reads this catalogue, its
# settings or the time, and none reads or changes what another connection does.
_CALLED = "|".join(
    (
        "age|array_to_json|array_to_string|concat(_ws)?|convert(_from|_to)?|date_part|date_trunc|extract|format|length",
        "generate_series|jsonb?_.+|make_timestamptz|now|overlaps|quote_(literal|nullable)|row_to_json|timestamptz",
        "statement_timestamp|timezone|to_(char|date|jsonb?|number|timestamp)|transaction_timestamp|enum_(first|last|range)",
        "current_(database|schemas?|setting|user)|getdatabaseencoding|getpgusername|session_user|version|aclexplode",
        "(col|obj|shobj)_description|format_type|has_.+_privilege|oidvectortypes|pg_has_role|to_reg.+|pg_.+_is_visible",
        "pg_(char_to|client)_encoding|pg_encoding_to_char|pg_column_(is_updatable|size)|pg_collation_for|pg_typeof",
        "pg_describe_object|pg_identify_object(_as_address)?|pg_index(|am|_column)_has_property|pg_options_to_table",
        "pg_get_(constraint|function|index|partition_constraint|rule|statisticsobj|trigger|view)def.*|pg_get_partkeydef",
        "pg_get_(expr|function_.+|keywords|object_address|replica_identity_index|serial_sequence|userbyid)",
        "pg_is_in_recovery|pg_is_other_temp_schema|pg_my_temp_schema|pg_partition_(ancestors|tree)|row_security_active",
        "pg_(database|indexes|relation|table|total_relation)_size|pg_relation_is_(publishable|updatable)",
        "pg_(settings_get_flags|show_all_settings|stat_get_live_tuples|sequence_last_value|timezone_(abbrevs|names))",
        "pg_available_extensions|pg_get_publication_tables",
    )
)


class Catalogue:
    """Tables and columns as a policy lists them, in a PostgreSQL for each list: audiences are offered different ones.

    Attributes:
        server_version: What PostgreSQL calls its version; empty: there is none, or it does not say.

    Args:
        programs: The folder of PostgreSQL's programs; None: there are none.
    """

    def __init__(self, programs: Path | None) -> None:
        self.server_version = "" if programs is None else version_of(programs)
        self._programs = programs
        self._turns = asyncio.Semaphore(MOST_CONNECTIONS)
        # By the statements that make them, the one that was asked for last at the end.
        self._lists: OrderedDict[str, asyncio.Task[ListedTables]] = OrderedDict()

    async def listing(self, tables: Iterable[TableEntry]) -> ListedTables:
        """Return what answers questions about the tables that a caller is offered; it is started for the first one.

        Raises:
            PostgresError: Nothing does, or not yet.
        """
        if self._programs is None:
            raise PostgresError(
                errors.NOT_SUPPORTED,
                "the catalogue is not installed, or postgres.catalogue is false: pg_catalog and information_schema are "
                "answered where PostgreSQL's programs are; SELECT * FROM TABLE LIMIT 0 has the columns of a table",
            )
        wanted = ";\n".join(_statements(tables))
        made = self._lists.get(wanted)
        if made is None or _has_ended(made):
            made = self._lists[wanted] = asyncio.create_task(self._made(wanted, self._programs))
        self._lists.move_to_end(wanted)
        while len(self._lists) > MOST_LISTS:
            await _end(self._lists.popitem(last=False)[1])
        try:
            return await asyncio.wait_for(asyncio.shield(made), WAIT_SECONDS)
        except TimeoutError:
            raise PostgresError(errors.NOT_YET, "the catalogue is starting: ask again in a while") from None
        except _FAILURES as error:
            # Questions about data need none of it.
            fields = {"reason": str(error) or type(error).__name__}
            log.warning("Tables are not listed.", extra={"event": "catalogue.missing", "fields": fields})
            said = "the catalogue has failed to start, and is started again: ask again in a while"
            raise PostgresError(errors.NOT_YET, said) from None

    async def _made(self, wanted: str, programs: Path) -> ListedTables:
        process = await prepared(programs, _START_SECONDS)
        try:
            await _run(process, DATABASE, wanted)
        except BaseException:
            await process.end()
            raise
        return ListedTables(process, self._turns)

    async def close(self) -> None:
        """End all that was started."""
        await asyncio.gather(*map(_end, self._lists.values()))


def _has_ended(made: asyncio.Task[ListedTables]) -> bool:
    return made.done() and (
        made.cancelled() or made.exception() is not None or not made.result().process.is_running
    )


async def _end(made: asyncio.Task[ListedTables]) -> None:
    made.cancel()
    with suppress(asyncio.CancelledError, *_FAILURES):
        await (await made).process.end()


class ListedTables:
    """One list of tables and columns, in a PostgreSQL of its own, `process`.

    Args:
        process: The PostgreSQL.
        turns: Bounds how many statements are asked at a time, of all lists.
    """

    def __init__(self, process: CatalogueProcess, turns: asyncio.Semaphore) -> None:
        self.process = process
        self._turns = turns

    async def ask(self, sql: str, types: Sequence[int], bound: messages.Bind | None) -> CatalogueAnswer:
        """Ask it, by a connection that no other statement gets.

        Args:
            sql: The statement.
            types: Those of its parameters that are known.
            bound: The parameters, and the forms of columns; None: only its types and columns are asked.

        Raises:
            PostgresError: It refuses the statement, or is not there.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS), self._turns:
                connection = await CatalogueConnection.opened(self.process, READER)
                try:
                    return await connection.ask(sql, types, bound)
                finally:
                    connection.close()
                    if not connection.is_ready:
                        # It ends by its own time-out, or is ended.
                        asyncio.get_running_loop().call_later(_LEAVE_SECONDS, self._kill, connection.backend)
        except TimeoutError:
            raise PostgresError(errors.CANCELLED, "the catalogue took too long") from None
        except (CatalogueUnreachable, OSError):
            said = "the catalogue has ended, and is started again: ask again"
            raise PostgresError(errors.SYSTEM, said) from None

    def _kill(self, backend: int) -> None:
        """End what does not end by itself: in functions such as `strpos` PostgreSQL looks at no time-out and no signal.

        PostgreSQL then ends all connections of this list, and takes new ones.
        """
        if self.process.is_running:
            with suppress(ProcessLookupError):
                os.kill(backend, signal.SIGKILL)
                log.warning(
                    "A statement about the catalogue did not end, and was ended.",
                    extra={"event": "catalogue.ended"},
                )


async def prepared(programs: Path, seconds: float) -> CatalogueProcess:
    """Return a PostgreSQL whose only database is empty, and a role that has no right there that it must not have."""
    process = CatalogueProcess(programs)
    try:
        async with asyncio.timeout(seconds):
            await process.start()
            await _run(
                process,
                "template1",
                f"ALTER DATABASE postgres RENAME TO {DATABASE}",
                f"CREATE ROLE {READER} LOGIN CONNECTION LIMIT {MOST_CONNECTIONS}",
                *(f"ALTER ROLE {READER} SET {name} = '{value}'" for name, value in _OF_READER.items()),
            )
            templates = ("template0", "template1")
            await _run(
                process,
                DATABASE,
                *(f"ALTER DATABASE {each} IS_TEMPLATE false" for each in templates),
                *(f"DROP DATABASE {each}" for each in templates),
                _WITHOUT_RIGHTS,
            )
    except BaseException:
        await process.end()
        raise
    return process


async def _run(process: CatalogueProcess, database: str, *statements: str) -> None:
    owner = await CatalogueConnection.opened(process, OWNER, database)
    try:
        for each in statements:
            await owner.run(each)
    finally:
        owner.close()


# Of names in this module alone. Rights of built-in functions are taken by their OIDs, whatever they are called; one in
# the place of set_config, which drivers call when they connect, answers what it gets and sets nothing.
_WITHOUT_RIGHTS = f"""
DO $$ DECLARE each record; BEGIN
  FOR each IN SELECT oid::regprocedure AS called FROM pg_proc WHERE NOT (
    provolatile = 'i' OR proname ~ '^({_CALLED})$' OR pronamespace = 'information_schema'::regnamespace
    OR oid IN (SELECT oprcode FROM pg_operator UNION SELECT castfunc FROM pg_cast)
  ) LOOP
    EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', each.called);
  END LOOP;
END $$;
ALTER FUNCTION pg_catalog.set_config(text, text, boolean) RENAME TO {_REFUSING}_set_config;
CREATE FUNCTION pg_catalog.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS $$
  BEGIN
    IF pg_catalog.starts_with(pg_catalog.lower($1), 'gris.') THEN
      RAISE 'set_config: expected SET % = ..', pg_catalog.lower($1) USING ERRCODE = '0A000';
    END IF;
    RETURN $2;
  END $$;
CREATE FUNCTION pg_catalog.{_REFUSING}() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN RAISE 'no rows are here: ask about a table in a statement that names nothing of the catalogue'
    USING ERRCODE = '0A000'; END $$;
REVOKE ALL ON DATABASE {DATABASE} FROM PUBLIC;
GRANT CONNECT ON DATABASE {DATABASE} TO {READER};
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {READER};
REVOKE ALL ON LANGUAGE plpgsql FROM PUBLIC
"""  # noqa: S608


def _statements(tables: Iterable[TableEntry]) -> Iterable[str]:
    """Yield what makes tables of no rows, of which tools find that they may be read, and which refuse it."""
    yield "BEGIN"
    for table in tables:
        columns = {table.member: "text"}
        columns |= {each.name: "double precision" for each in table.values}
        columns |= {each.name: OID_OF[KIND_OF_COLUMN[each.type]].name.lower() for each in table.columns}
        written = ", ".join(f"{_name(name)} {kind}" for name, kind in columns.items())
        yield f"CREATE TABLE public.{_name(table.name)} ({written})"
        # Tools list the tables that may be read. One that is read would be empty, which is not true of its data.
        yield f"ALTER TABLE public.{_name(table.name)} ENABLE ROW LEVEL SECURITY"
        yield f"CREATE POLICY refused ON public.{_name(table.name)} USING (pg_catalog.{_REFUSING}())"
        yield f"GRANT SELECT ON public.{_name(table.name)} TO {READER}"
    yield "COMMIT"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
