"""The messages of a caller who is known, and their answers: simple and extended queries.

A question is asked once: where its portal is described or executed, whichever comes first. It is charged then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pygwire import messages
from pygwire.constants import TransactionStatus

from gris_gateway.faces.postgres import errors
from gris_gateway.faces.postgres.errors import PostgresError, notice
from gris_gateway.faces.postgres.results import Answer
from gris_gateway.faces.postgres.session import Prepared, Session, command
from gris_gateway.faces.postgres.texts import Text, statements_in
from gris_gateway.faces.postgres.types import Oid
from gris_gateway.faces.postgres.wire import ConnectionOver, Malformed, Wire, WireRules
from gris_serving.internal_errors import log_internal_error

log = logging.getLogger(__name__)

MOST_STATEMENTS = 500
MOST_STATEMENT_CHARACTERS = 250_000
MOST_PORTALS = 10
_BYTES_OF_A_VALUE = 50
_UNREAD_BYTES = 2**20
_ROWS_AT_ONCE = 1000
# Only after these does a client wait for what it is sent.
_AWAITED = messages.Query | messages.FunctionCall | messages.Sync | messages.Flush


@dataclass
class _Statement:
    text: Text
    prepared: Prepared
    described: messages.RowDescription | None = None
    """The columns that the client has been sent."""


@dataclass
class _Portal:
    statement: _Statement
    bound: messages.Bind
    answer: Answer | None = None


class Conversation:
    """Answers the messages of one connection, one after the other.

    Args:
        wire: The connection.
        session: The caller's statements.
        rules: What the connection may hold.
    """

    def __init__(self, wire: Wire, session: Session, rules: WireRules) -> None:
        self._wire = wire
        self._session = session
        self._rules = rules
        self._statements: dict[str, _Statement] = {}
        self._portals: dict[str, _Portal] = {}
        self._skipping = False
        self._answering: asyncio.Task[None] | None = None
        self._stopping = False

    def cancel(self) -> None:
        """Cancel what is being answered; what that has cost stays charged."""
        if self._answering is not None:
            self._answering.cancel()

    def stop(self) -> None:
        """End once nothing is being answered."""
        self._stopping = True

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being answered."""
        return self._answering is None

    async def run(self) -> None:
        """Answer until the client leaves.

        Raises:
            ConnectionOver: It has left.
            Malformed: It has sent what is no message.
        """
        # One message may wait while another is answered, so that a client that leaves is seen.
        frames: asyncio.Queue[bytes | Exception] = asyncio.Queue(1)
        reading = asyncio.create_task(self._read(frames))
        try:
            await self._wire.sent(self._rules.message_seconds)
            while not self._stopping:
                frame = await frames.get()
                if isinstance(frame, Exception):
                    raise frame
                message = self._wire.taken(frame)
                if isinstance(message, messages.Terminate):
                    return
                await self._answer(message)
                if isinstance(message, _AWAITED) or self._skipping or self._wire.unread > _UNREAD_BYTES:
                    await self._wire.sent(self._rules.message_seconds)
            self._end()
        except asyncio.CancelledError:
            self._end()
            raise
        finally:
            reading.cancel()

    def _end(self) -> None:
        self._wire.send(PostgresError(errors.STOPPING, "the gateway stops").response("FATAL"))

    async def _read(self, frames: asyncio.Queue[bytes | Exception]) -> None:
        try:
            while True:
                await frames.put(
                    await self._wire.frame(self._rules.message_bytes, self._rules.message_seconds)
                )
        except (ConnectionOver, Malformed) as error:
            if isinstance(error, ConnectionOver):
                self.cancel()
            await frames.put(error)

    async def _answer(self, message: messages.PGMessage) -> None:
        is_simple = isinstance(message, messages.Query | messages.FunctionCall)
        if isinstance(message, messages.Sync):
            self._skipping = False
            if self._session.status is TransactionStatus.IDLE:
                self._portals.clear()
        elif not self._skipping:
            failed = await self._failed(message)
            if failed is not None:
                self._wire.send(failed.response())
                self._skipping = not is_simple
        if is_simple or isinstance(message, messages.Sync):
            self._wire.send(messages.ReadyForQuery(self._session.status))

    async def _failed(self, message: messages.PGMessage) -> PostgresError | None:
        """Answer a message, and return why there is none."""
        self._answering = asyncio.create_task(self._answered(message))
        try:
            await asyncio.wait((self._answering,))
            if self._answering.cancelled():
                return PostgresError(
                    errors.CANCELLED, "the question was cancelled; what it had cost by then stays charged"
                )
            self._answering.result()
        except (ConnectionOver, Malformed):
            raise
        except PostgresError as error:
            return error
        except Exception as error:
            # What it says may hold SQL.
            log_internal_error(log, "A statement of a client of PostgreSQL failed.", error)
            return PostgresError(errors.INTERNAL, "the gateway failed; its log says where")
        finally:
            self._answering.cancel()
            self._answering = None
        return None

    async def _answered(self, message: messages.PGMessage) -> None:
        match message:
            case messages.Query():
                await self._query(message.query_string)
            case messages.Parse():
                await self._parse(message)
            case messages.Bind():
                self._bind(message)
            case messages.Describe():
                await self._describe(message.kind, message.name)
            case messages.Execute():
                await self._execute(message.portal, message.max_rows)
            case messages.Close():
                (self._statements if message.kind == "S" else self._portals).pop(message.name, None)
                self._wire.send(messages.CloseComplete())
            case messages.Flush():
                pass
            case messages.FunctionCall():
                raise PostgresError(errors.NOT_SUPPORTED, "functions are not called here: ask by SELECT")
            case _:
                raise PostgresError(errors.PROTOCOL, "expected a query, or one of its parts")

    async def _query(self, sql: str) -> None:
        for text in statements_in(sql) or [Text("")]:
            prepared = await self._prepared(text)
            if prepared.types or text.has_parameters:
                raise PostgresError(
                    errors.SYNTAX, "there is no parameter $1: expected values in the statement"
                )
            answer = await prepared.answer(messages.Bind())
            if answer.described is not None:
                self._wire.send(answer.described)
            await self._send_rows(answer, 0)
            self._complete(answer, answer.sent)
            if self._wire.unread > _UNREAD_BYTES:
                await self._wire.sent(self._rules.message_seconds)
            # A text may have thousands of statements: others have their turn.
            await asyncio.sleep(0)

    async def _prepared(self, text: Text, stated: Sequence[int] = ()) -> Prepared:
        if not text.sql:
            return command(lambda _: Answer(command=""), text)
        if text.first == "DEALLOCATE":
            return command(self._deallocate, text)
        if text.first == "DISCARD":
            return command(self._discard, text)
        return await self._session.prepare(text, stated)

    def _deallocate(self, text: Text) -> Answer:
        name = text.words[-1].said
        for each in [
            each for each in self._statements if name == "ALL" or each.casefold() == name.casefold()
        ]:
            del self._statements[each]
        return Answer(command="DEALLOCATE")

    def _discard(self, text: Text) -> Answer:
        if text.words[-1].said == "ALL":
            self._statements.clear()
        return self._session.reset(text)

    async def _parse(self, message: messages.Parse) -> None:
        texts = statements_in(message.query)
        if len(texts) > 1:
            raise PostgresError(errors.SYNTAX, "expected one statement")
        if message.statement in self._statements and message.statement:
            raise PostgresError(errors.TWO_STATEMENTS, "there is a prepared statement of this name")
        held = sum(len(each.text.sql) for name, each in self._statements.items() if name != message.statement)
        if len(self._statements) >= MOST_STATEMENTS or held + len(message.query) > MOST_STATEMENT_CHARACTERS:
            raise PostgresError(errors.TOO_MUCH, "expected fewer prepared statements: close some")
        text = texts[0] if texts else Text("")
        prepared = await self._prepared(text, message.param_types)
        self._statements[message.statement] = _Statement(text, prepared)
        self._wire.send(messages.ParseComplete())

    def _bind(self, message: messages.Bind) -> None:
        statement = self._statement(message.statement)
        types = statement.prepared.types
        if len(message.param_values) != len(types):
            raise PostgresError(
                errors.PROTOCOL, f"expected {len(types)} parameters, got {len(message.param_values)}"
            )
        if not {0, 1}.issuperset(message.result_formats):
            raise PostgresError(
                errors.NOT_SUPPORTED, "expected text (0) or binary (1) as the form of a column"
            )
        others = [each.bound for name, each in self._portals.items() if name != message.portal]
        if len(others) >= MOST_PORTALS or sum(map(_size, (*others, message))) > self._rules.message_bytes:
            raise PostgresError(
                errors.TOO_MUCH, f"expected at most {MOST_PORTALS} portals, and short ones: close some"
            )
        self._portals[message.portal] = _Portal(statement, message)
        self._wire.send(messages.BindComplete())

    async def _describe(self, kind: str, name: str) -> None:
        if kind == "S":
            statement = self._statement(name)
            columns = statement.described = await statement.prepared.described()
            self._wire.send(
                messages.ParameterDescription([each or Oid.TEXT for each in statement.prepared.types])
            )
        else:
            columns = (await self._answer_of(self._portal(name))).described
        self._wire.send(messages.NoData() if columns is None else columns)

    async def _execute(self, name: str, most: int) -> None:
        portal = self._portal(name)
        answer = await self._answer_of(portal)
        before = answer.sent
        if await self._send_rows(answer, most):
            self._complete(answer, answer.sent - before)
        else:
            self._wire.send(messages.PortalSuspended())

    async def _answer_of(self, portal: _Portal) -> Answer:
        """Return the answer of a portal, asked for once."""
        if portal.answer is None:
            sent = portal.statement.described
            answer = await portal.statement.prepared.answer(portal.bound)
            portal.answer = answer
            if sent is not None and _names_and_types(sent) != _names_and_types(answer.described):
                raise PostgresError(errors.NOT_SUPPORTED, "cached plan must not change result type")
        return portal.answer

    async def _send_rows(self, answer: Answer, most: int) -> bool:
        """Send rows, `most` of them or, if it is 0, all; return whether there are no more."""
        for count, row in enumerate(answer.rows, 1):
            self._wire.send(row)
            answer.sent += 1
            if count == most:
                return False
            if count % _ROWS_AT_ONCE == 0 or self._wire.unread > _UNREAD_BYTES:
                # Others have their turn, and no more is held than is being read.
                await self._wire.sent(self._rules.message_seconds)
                await asyncio.sleep(0)
        return True

    def _complete(self, answer: Answer, count: int) -> None:
        if not answer.command:
            self._wire.send(messages.EmptyQueryResponse())
            return
        for name, value in answer.reported.items():
            self._wire.send(messages.ParameterStatus(name, value))
        if self._session.settings.with_notices:
            self._wire.send(*map(notice, answer.notices))
        counted = f" {count}" if answer.command == "SELECT" else ""
        self._wire.send(messages.CommandComplete(f"{answer.command}{counted}"))

    def _statement(self, name: str) -> _Statement:
        if name not in self._statements:
            raise PostgresError(errors.NO_STATEMENT, "there is no such prepared statement")
        return self._statements[name]

    def _portal(self, name: str) -> _Portal:
        if name not in self._portals:
            raise PostgresError(errors.NO_PORTAL, "there is no such portal")
        return self._portals[name]


def _size(bound: messages.Bind) -> int:
    """Return about how many bytes a portal holds."""
    return sum(_BYTES_OF_A_VALUE + len(each or b"") for each in bound.param_values)


def _names_and_types(described: messages.RowDescription | None) -> list[tuple[str, int]]:
    return [] if described is None else [(each.name, each.type_oid) for each in described.fields]
