"""What a statement is, and who answers it: the session itself, or the gateway as a question."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

from pygwire.constants import TransactionStatus
from pygwire.messages import Bind, RowDescription

from gris_gateway.faces.postgres import errors
from gris_gateway.faces.postgres.catalogue import Catalogue, ListedTables
from gris_gateway.faces.postgres.catalogue_connection import CatalogueAnswer
from gris_gateway.faces.postgres.errors import PostgresError, error_of
from gris_gateway.faces.postgres.parameters import Parameter, count_in, parameters_of, values_of, with_values
from gris_gateway.faces.postgres.results import (
    OF_EXPLANATION,
    Answer,
    Columns,
    answer_of,
    columns_of,
    described,
    table,
)
from gris_gateway.faces.postgres.settings import DATABASE, Settings
from gris_gateway.faces.postgres.texts import Asked, Text, is_of_catalogue
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
_CURSORS = "an answer comes whole, so send its SELECT, by a cursor without a name where a driver names them"
_REFUSED = {
    **dict.fromkeys(("CHECKPOINT", "COPY", "LISTEN", "LOAD", "NOTIFY"), "ask by SELECT"),
    **dict.fromkeys(("DECLARE", "FETCH", "MOVE"), _CURSORS),
    **dict.fromkeys(("PREPARE", "EXECUTE"), "send the SELECT itself, with parameters by the driver"),
}
_ASKING = frozenset(("SELECT", "WITH", "EXPLAIN", "(", "VALUES", "TABLE"))
_CONSTANT = re.compile(
    r"SELECT\s++(?:pg_catalog\s*+\.\s*+)?(?P<name>\w++)\s*+(?:\(\s*+\))?(?:\s++AS\s++(?P<alias>\w++))?",
    re.IGNORECASE,
)
# Settings that SHOW has words for.
_SPOKEN = {"transaction isolation level": "transaction_isolation", "time zone": "timezone"}
_ENDING = frozenset(("COMMIT", "END", "ROLLBACK", "ABORT"))


class Prepared(Protocol):
    """A statement that can be answered, any number of times."""

    @property
    def types(self) -> Sequence[int]:
        """The types of its parameters."""
        ...

    async def described(self) -> RowDescription | None:
        """Return the columns of its answers, without asking for one; None: they have no rows."""
        ...

    async def answer(self, bound: Bind) -> Answer:
        """Return an answer to its parameters."""
        ...


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
            "DISCARD": self.reset,
            "UNLISTEN": lambda _: Answer(command="UNLISTEN"),
            "CLOSE": lambda _: Answer(command="CLOSE CURSOR"),
        }

    def failed(self) -> None:
        """Take down that a statement failed: a transaction goes on only to its end."""
        if self.status is TransactionStatus.IN_TRANSACTION:
            self.status = TransactionStatus.ERROR_TRANSACTION

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
            return Command(text, self._commands[first])
        if first == "SHOW":
            return self._show(text)
        if (constant := self._constant(text)) is not None:
            return constant
        if _WRITING.fullmatch(first):
            raise PostgresError(errors.READ_ONLY, f"{first}: nothing can be written here")
        if first in _REFUSED:
            raise PostgresError(errors.NOT_SUPPORTED, f"{first} is not accepted: {_REFUSED[first]}")
        if first not in _ASKING:
            raise PostgresError(errors.SYNTAX, "expected SELECT .., or EXPLAIN SELECT ..", 1)
        if is_of_catalogue(text):
            found = await self.catalogued(text, stated, None)
            return CatalogueQuestion(self, text, found.types, found.described)
        return await self._question(text, stated)

    def require_going_on(self, text: Text) -> None:
        """Refuse what follows a failed statement of a transaction.

        Raises:
            PostgresError: It does not end the transaction.
        """
        if self.status is TransactionStatus.ERROR_TRANSACTION and text.first not in _ENDING:
            raise PostgresError(errors.ABORTED, "the transaction has failed: expected ROLLBACK")

    async def asked(self, question: Asked) -> PrivateResult:
        """Ask the gateway.

        Raises:
            PostgresError: There is no answer.
        """
        settings = self.settings
        async with self._asking(question) as client:
            return await client.ask(
                sql_question(question.sql), confidence=settings.confidence, max_cost=settings.max_cost
            )

    async def priced(self, question: Asked) -> None:
        """Ask the gateway what a question would cost, and raise what it refuses.

        Raises:
            PostgresError: It would have no answer.
        """
        async with self._asking(question) as client:
            await client.explain(sql_question(question.sql))

    async def catalogued(self, text: Text, types: Sequence[int], bound: Bind | None) -> CatalogueAnswer:
        """Ask the catalogue; arguments as for `Catalogue.ask`.

        Raises:
            PostgresError: There is none, or no answer.
        """
        async with self._asking(None) as client:
            listed = await self._listed(client)
            return await listed.ask(text.without_comments, types, bound)

    async def _listed(self, client: AsyncGatewayClient) -> ListedTables:
        """Return what lists the tables that this session's caller is offered; it is read every few seconds."""
        now = time.monotonic()
        if self._tables is None or not self._tables.is_open or now >= self._tables_until:
            self._tables = await self._catalogue.listing((await client.catalog()).tables)
            self._tables_until = now + FRESH_SECONDS
        return self._tables

    @asynccontextmanager
    async def _asking(self, question: Asked | None) -> AsyncIterator[AsyncGatewayClient]:
        """Admit one call, and raise its errors as clients of PostgreSQL know them."""
        try:
            async with self._admitted() as client:
                yield client
        except (GrisError, HttpRefusalError) as error:
            raise error_of(error, question) from None

    async def _question(self, text: Text, stated: Sequence[int]) -> Question:
        if not (count_in(text) or stated):
            return Question(self, text, ())
        async with self._asking(None) as client:
            return Question(self, text, parameters_of(text, stated, await client.catalog()))

    def _begin(self, text: Text) -> Answer:
        if self.status is TransactionStatus.IDLE:
            self.status = TransactionStatus.IN_TRANSACTION
            self.settings.begin()
        return Answer(command="START TRANSACTION" if text.first == "START" else "BEGIN")

    def _end(self, text: Text) -> Answer:
        # ROLLBACK TO SAVEPOINT ends no transaction.
        if any(each.said == "TO" for each in text.words[1:]):
            self.status = TransactionStatus.IN_TRANSACTION
            return Answer(command="ROLLBACK")
        committed = text.first in ("COMMIT", "END") and self.status is not TransactionStatus.ERROR_TRANSACTION
        if not committed and self.status is not TransactionStatus.IDLE:
            self.settings.roll_back()
        self.status = TransactionStatus.IDLE
        return Answer(command="COMMIT" if committed else "ROLLBACK")

    def _set(self, text: Text) -> Answer:
        return Answer(command="SET", reported=self.settings.set(text.without_comments.strip()))

    def reset(self, text: Text) -> Answer:
        """Do what RESET or DISCARD says."""
        _, _, name = text.without_comments.strip().partition(" ")
        self.settings.reset(name.strip().strip('"') or "all")
        return Answer(command=text.first if text.first == "RESET" else "DISCARD ALL")

    def _show(self, text: Text) -> Constant:
        words = text.without_comments.split()[1:]
        name = _SPOKEN.get(" ".join(words).lower(), " ".join(words).strip('"'))
        self.settings.shown(name)
        # A prepared statement tells what is stated when it is executed.
        return Constant(name, partial(self.settings.shown, name), "SHOW")

    def _constant(self, text: Text) -> Constant | None:
        """Return the answer to what clients ask when they connect."""
        if (one := liveness_column(text.sql)) is not None:
            return Constant(one if one != "1" else "?column?", 1)
        if (found := _CONSTANT.fullmatch(text.sql)) is None:
            return None
        name = found["name"].lower()
        constants = {
            "version": f"PostgreSQL {self.settings.server_version} (Gris)",
            "current_schema": "public",
            "current_database": DATABASE,
            "current_catalog": DATABASE,
            "current_user": self._user,
            "session_user": self._user,
            "user": self._user,
            "pg_advisory_unlock_all": "",
        }
        return Constant(found["alias"] or name, constants[name]) if name in constants else None


@dataclass(frozen=True)
class Constant:
    """A statement that has one answer."""

    name: str
    value: str | int | Callable[[], str]
    command: str = "SELECT"
    types: Sequence[int] = ()

    async def described(self) -> RowDescription:
        """Return its column."""
        return described(self._columns)

    async def answer(self, bound: Bind) -> Answer:
        """Return its row."""
        value = self.value() if callable(self.value) else self.value
        return table(self._columns, [(value,)], bound.result_formats, self.command)

    @property
    def _columns(self) -> Columns:
        return ((self.name, Oid.INT4 if isinstance(self.value, int) else Oid.TEXT),)


@dataclass(frozen=True)
class Command:
    """A statement that changes the session."""

    text: Text
    run: Callable[[Text], Answer]
    types: Sequence[int] = ()

    async def described(self) -> None:
        """Return that it has no rows."""

    async def answer(self, bound: Bind) -> Answer:
        """Do it."""
        del bound
        return self.run(self.text)


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
        question = with_values(self.text, [each.example for each in self.parameters])
        # dp_service reads it as it reads every text, and no engine gets it.
        around = f"SELECT * FROM ({question.sql}\n) AS described LIMIT 0"  # noqa: S608
        try:
            release = await self.session.asked(Asked(around, around, 0))
        except PostgresError:
            # What is wrong with the statement alone.
            await self.session.priced(question)
            raise
        return described(columns_of(release, intervals=self.session.settings.intervals))

    async def answer(self, bound: Bind) -> Answer:
        """Ask it."""
        values = values_of(bound.param_values, bound.param_formats, self.types)
        release = await self.session.asked(with_values(self.text, values))
        return answer_of(release, bound.result_formats, intervals=self.session.settings.intervals)


@dataclass(frozen=True)
class CatalogueQuestion:
    """A statement that the catalogue answers."""

    session: Session
    text: Text
    types: Sequence[int]
    columns: RowDescription | None

    async def described(self) -> RowDescription | None:
        """Return its columns."""
        return self.columns

    async def answer(self, bound: Bind) -> Answer:
        """Ask it."""
        found = await self.session.catalogued(self.text, self.types, bound)
        return Answer(found.described, iter(found.rows), found.command)
