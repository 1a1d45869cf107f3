"""What a statement is, and who answers it: the session itself, or the gateway as a question."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pygwire.constants import TransactionStatus
from pygwire.messages import Bind, RowDescription

from gris_gateway.faces.postgres import errors
from gris_gateway.faces.postgres.catalogue import Catalogue, ListedTables
from gris_gateway.faces.postgres.catalogue_connection import CatalogueAnswer
from gris_gateway.faces.postgres.errors import PostgresError, error_of
from gris_gateway.faces.postgres.parameters import Parameter, parameters_of, values_of, with_values
from gris_gateway.faces.postgres.results import (
    OF_EXPLANATION,
    Answer,
    answer_of,
    columns_of,
    described,
    table,
)
from gris_gateway.faces.postgres.settings import DATABASE, Settings
from gris_gateway.faces.postgres.texts import Text, is_of_catalogue
from gris_gateway.faces.postgres.types import Oid
from gris_serving.refusals import HttpRefusalError
from pinot_connector.errors import GrisError
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.liveness import liveness_column
from pinot_connector.questions import sql_question
from pinot_connector.results import PrivateResult

Admitted: TypeAlias = Callable[[], AbstractAsyncContextManager[AsyncGatewayClient]]
"""Admits one call of the session's caller, and yields the client by which it asks."""

FRESH_SECONDS = 5.0
"""How long a session takes the list of its tables for true."""
SERVER_VERSION = "15.0"
"""What it is for clients, where no catalogue has a version of its own."""
_WRITING = re.compile(
    "ALTER|ANALYZE|CALL|CLUSTER|COMMENT|CREATE|DELETE|DO|DROP|GRANT|IMPORT|INSERT|LOCK|MERGE|REASSIGN|REFRESH|REINDEX|"
    "REVOKE|SECURITY|TRUNCATE|UPDATE|VACUUM"
)
_ASKING = frozenset(("SELECT", "WITH", "EXPLAIN", "(", "VALUES", "TABLE"))
_CONSTANT = re.compile(
    r"SELECT\s++(?:pg_catalog\s*+\.\s*+)?(?P<name>\w++)\s*+(?:\(\s*+\))?(?:\s++AS\s++(?P<alias>\w++))?",
    re.IGNORECASE,
)
# Settings that SHOW has words for.
_SPOKEN = {"transaction isolation level": "transaction_isolation", "time zone": "timezone"}


class Session:
    """The statements of one caller.

    Args:
        admitted: Admits its calls.
        user: What the client is called.
        catalogue: What answers questions about tables and columns.
    """

    def __init__(self, admitted: Admitted, user: str, catalogue: Catalogue) -> None:
        self.settings = Settings(catalogue.server_version or SERVER_VERSION)
        self.status = TransactionStatus.IDLE
        self._admitted = admitted
        self._user = user
        self._catalogue = catalogue
        self._tables: ListedTables | None = None
        self._tables_until = 0.0
        self._commands: dict[str, Callable[[Text], Answer]] = {
            "BEGIN": self._begin,
            "START": self._begin,
            "COMMIT": self._end,
            "END": self._end,
            "ROLLBACK": self._end,
            "ABORT": self._end,
            "SAVEPOINT": lambda _: Answer(command="SAVEPOINT"),
            "RELEASE": lambda _: Answer(command="RELEASE"),
            "SET": self._set,
            "RESET": self.reset,
            "UNLISTEN": lambda _: Answer(command="UNLISTEN"),
            "CLOSE": lambda _: Answer(command="CLOSE CURSOR"),
        }

    async def prepare(self, text: Text, stated: Sequence[int] = ()) -> Prepared:
        """Return a statement that can be answered.

        Args:
            text: The statement.
            stated: The types of parameters that the client states; 0: it does not.

        Raises:
            PostgresError: Nothing answers it.
        """
        first = text.first or text.words[0].written[:1]
        if first in self._commands:
            return command(self._commands[first], text)
        if first == "SHOW":
            return self._show(text)
        if (constant := self._constant_of(text)) is not None:
            return constant
        if _WRITING.fullmatch(first):
            raise PostgresError(errors.READ_ONLY, f"{first}: nothing can be written here")
        if first not in _ASKING:
            said = "expected SELECT .., or EXPLAIN SELECT ..: parameters and cursors are the driver's, without names"
            raise PostgresError(errors.SYNTAX, said, 1)
        if is_of_catalogue(text):
            return await self._catalogued(text, stated)
        return await self._question(text, stated)

    async def asked(self, sql: str, text: Text | None, above: int = 0) -> PrivateResult:
        """Ask the gateway; arguments as for `error_of`.

        Raises:
            PostgresError: There is no answer.
        """
        settings = self.settings
        async with self._asking(text, above) as client:
            return await client.ask(
                sql_question(sql), confidence=settings.confidence, max_cost=settings.max_cost
            )

    async def _catalogued(self, text: Text, stated: Sequence[int]) -> Known:
        """Return a statement that the catalogue answers."""
        sql = text.without_comments

        async def asked(types: Sequence[int], bound: Bind | None) -> CatalogueAnswer:
            async with self._asking() as client:
                return await (await self._listed(client)).ask(sql, types, bound)

        prepared = await asked(stated, None)

        async def answer(bound: Bind) -> Answer:
            found = await asked(prepared.types, bound)
            return Answer(found.described, iter(found.rows), found.command)

        return Known(answer, prepared.described, prepared.types)

    async def _listed(self, client: AsyncGatewayClient) -> ListedTables:
        """Return what lists the tables that this session's caller is offered; it is read every few seconds."""
        now = time.monotonic()
        if self._tables is None or not self._tables.process.is_running or now >= self._tables_until:
            self._tables = await self._catalogue.listing((await client.catalog()).tables)
            self._tables_until = now + FRESH_SECONDS
        return self._tables

    @asynccontextmanager
    async def _asking(self, text: Text | None = None, above: int = 0) -> AsyncIterator[AsyncGatewayClient]:
        """Admit one call, and raise its errors as clients of PostgreSQL know them."""
        try:
            async with self._admitted() as client:
                yield client
        except (GrisError, HttpRefusalError) as error:
            raise error_of(error, text, above) from None

    async def _question(self, text: Text, stated: Sequence[int]) -> Question:
        if not (text.has_parameters or stated):
            return Question(self, text, ())
        async with self._asking() as client:
            return Question(self, text, parameters_of(text, stated, await client.catalog()))

    def _begin(self, text: Text) -> Answer:
        if self.status is TransactionStatus.IDLE:
            self.status = TransactionStatus.IN_TRANSACTION
            self.settings.begin()
        return Answer(command="START TRANSACTION" if text.first == "START" else "BEGIN")

    def _end(self, text: Text) -> Answer:
        # ROLLBACK TO SAVEPOINT ends no transaction.
        if any(each.said == "TO" for each in text.words[1:]):
            return Answer(command="ROLLBACK")
        is_committed = text.first in ("COMMIT", "END")
        if not is_committed and self.status is not TransactionStatus.IDLE:
            self.settings.roll_back()
        self.status = TransactionStatus.IDLE
        return Answer(command="COMMIT" if is_committed else "ROLLBACK")

    def _set(self, text: Text) -> Answer:
        return Answer(command="SET", reported=self.settings.set(text.without_comments.strip()))

    def reset(self, text: Text) -> Answer:
        """Do what RESET or DISCARD says."""
        _, _, name = text.without_comments.strip().partition(" ")
        self.settings.reset(name.strip().strip('"') or "all")
        return Answer(command=text.first if text.first == "RESET" else "DISCARD ALL")

    def _show(self, text: Text) -> Known:
        words = text.without_comments.split()[1:]
        name = _SPOKEN.get(" ".join(words).lower(), " ".join(words).strip('"'))
        return _constant(name, partial(self.settings.shown, name), "SHOW")

    def _constant_of(self, text: Text) -> Known | None:
        """Return the answer to what clients ask when they connect."""
        if (one := liveness_column(text.sql)) is not None:
            return _constant(one if one != "1" else "?column?", lambda: 1)
        if (found := _CONSTANT.fullmatch(text.sql)) is None:
            return None
        name = found["name"].lower()
        constants = {
            "version": f"PostgreSQL {self.settings.server_version} (Gris)",
            "current_schema": "public",
            "current_database": DATABASE,
            "current_user": self._user,
            "session_user": self._user,
            "pg_advisory_unlock_all": "",
        }
        if name not in constants:
            return None
        return _constant(found["alias"] or name, lambda: constants[name])


@dataclass(frozen=True)
class Known:
    """A statement whose columns are known before it is answered.

    Attributes:
        run: Answers it.
        columns: Those of its answers; None: they have no rows.
        types: Those of its parameters.
    """

    run: Callable[[Bind], Awaitable[Answer]]
    columns: RowDescription | None = None
    types: Sequence[int] = ()

    async def described(self) -> RowDescription | None:
        """Return its columns."""
        return self.columns

    async def answer(self, bound: Bind) -> Answer:
        """Answer it."""
        return await self.run(bound)


def command(run: Callable[[Text], Answer], text: Text) -> Known:
    """Return a statement that changes the session."""

    async def answer(_: Bind) -> Answer:
        return run(text)

    return Known(answer)


def _constant(name: str, value: Callable[[], str | int], done: str = "SELECT") -> Known:
    """Return a statement that has one answer, which is read when it is executed."""
    columns = ((name, Oid.INT4 if isinstance(value(), int) else Oid.TEXT),)

    async def answer(bound: Bind) -> Answer:
        return table(columns, [(value(),)], bound.result_formats, done)

    return Known(answer, described(columns))


@dataclass(frozen=True)
class Question:
    """A statement that the gateway answers."""

    session: Session
    text: Text
    parameters: Sequence[Parameter]

    @property
    def types(self) -> Sequence[int]:
        """The types of its parameters."""
        return [each.oid for each in self.parameters]

    async def described(self) -> RowDescription:
        """Return its columns, as a question without rows has them, which is free."""
        if self.text.first == "EXPLAIN":
            return described(OF_EXPLANATION)
        sql = with_values(self.text, [each.example for each in self.parameters])
        # dp_service reads it as it reads every text, and no engine gets it.
        around = f"SELECT * FROM (\n{sql}\n) AS described LIMIT 0"  # noqa: S608
        release = await self.session.asked(around, self._placed, 1)
        return described(columns_of(release, intervals=self.session.settings.intervals))

    async def answer(self, bound: Bind) -> Answer:
        """Ask it."""
        values = values_of(bound.param_values, bound.param_formats, self.types)
        release = await self.session.asked(with_values(self.text, values), self._placed)
        return answer_of(release, bound.result_formats, intervals=self.session.settings.intervals)

    @property
    def _placed(self) -> Text | None:
        """What errors have a place in; values move what stands behind them."""
        return None if self.parameters else self.text


Prepared: TypeAlias = Known | Question
"""A statement that can be answered, any number of times."""
