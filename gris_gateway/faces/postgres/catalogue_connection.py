"""A connection to the catalogue, by the messages of its client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pygwire import messages
from pygwire.connection import FrontendConnection
from pygwire.exceptions import PygwireError

from gris_gateway.faces.postgres.catalogue_process import DATABASE, CatalogueProcess
from gris_gateway.faces.postgres.errors import NOT_SUPPORTED, TOO_MUCH, PostgresError

MOST_BYTES = 4 * 2**20
_READ_BYTES = 2**16
_PAUSE_SECONDS = 0.05


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


class CatalogueConnection:
    """One connection.

    Attributes:
        backend: The number of the process that answers.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.backend = 0
        self._reader = reader
        self._writer = writer
        self._protocol = FrontendConnection()

    @classmethod
    async def opened(
        cls, process: CatalogueProcess, user: str, database: str = DATABASE
    ) -> CatalogueConnection:
        """Open a connection, once the process takes one.

        Raises:
            CatalogueUnreachable: The process has ended.
        """
        while process.is_running:
            # It does not listen yet, begins again, or another connection has not ended.
            with suppress(CatalogueUnreachable, PostgresError, OSError):
                connection = cls(*await asyncio.open_unix_connection(str(process.socket)))
                try:
                    await connection._log_in(user, database)
                except BaseException:
                    connection.close()
                    raise
                return connection
            await asyncio.sleep(_PAUSE_SECONDS)
        raise CatalogueUnreachable

    async def _log_in(self, user: str, database: str) -> None:
        self._send(messages.StartupMessage({"user": user, "database": database}))
        async for message in self._answers():
            if isinstance(message, messages.BackendKeyData):
                self.backend = message.process_id

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


def _refused(message: messages.ErrorResponse) -> PostgresError:
    position = message.fields.get("P", "")
    # What it takes for a fault of its own is one of the statement: a type that there is not, for example.
    sqlstate = NOT_SUPPORTED if message.code.startswith("XX") else message.code
    return PostgresError(sqlstate, message.message, int(position) if position.isdecimal() else 0)
