"""Several prepared statements in one round trip: libpq's pipeline mode, used directly.

psycopg's own pipelines send each statement in a packet of its own, which wakes the server as often. And they end with a
flush behind the sync, which switches off PostgreSQL's time-out of idle transactions until the next statement.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from psycopg.abc import PQGen
from psycopg.errors import OperationalError, error_from_result
from psycopg.generators import fetch_many, send
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

# NULL, a number, or a text.
Value: TypeAlias = int | bool | str | bytes | None
Values: TypeAlias = Mapping[str, Value]

_PARAMETER = re.compile(r"%\((\w+)\)s")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, its name on the server, and the names of its parameters in the order of their numbers."""

    name: bytes
    text: bytes
    parameters: tuple[str, ...]

    @staticmethod
    def of(text: str) -> Statement:
        """Return the statement of a text in which `%(name)s` stands for a parameter."""
        names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
        numbered = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", text).encode()
        # Two programs, or two versions of one, may share a pooler's connection.
        return Statement(b"gris_" + hashlib.sha256(numbered).hexdigest()[:16].encode(), numbered, names)


def round_trip(
    connection: PGconn, prepared: set[bytes], statements: Sequence[tuple[Statement, Values]]
) -> PQGen[list[PGresult]]:
    """Send statements and return what each has found. None is run after one that fails.

    Args:
        connection: The connection, which does nothing else.
        prepared: The names of the statements that the connection has prepared; those that are new are added.
        statements: The statements with their parameters, among others.

    Raises:
        psycopg.Error: One has failed, or the connection is lost.
    """
    connection.enter_pipeline_mode()
    # For each answer, the name that it prepares.
    awaited: list[bytes | None] = []
    for statement, values in statements:
        if statement.name not in prepared:
            connection.send_prepare(statement.name, statement.text)
            awaited.append(statement.name)
        given = [_encoded(values[name]) for name in statement.parameters]
        connection.send_query_prepared(statement.name, given)
        awaited.append(None)
    connection.pipeline_sync()
    yield from send(connection)
    found: list[PGresult] = []
    failed: PGresult | None = None
    for name in awaited:
        results = yield from fetch_many(connection)
        if not results:
            raise OperationalError("the connection is lost")
        result = results[0]
        if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
            # Those behind it say only that they were not run.
            failed = failed or result
            if connection.status == ConnStatus.BAD:
                break
        elif name is not None:
            prepared.add(name)
        else:
            found.append(result)
    if connection.status != ConnStatus.BAD:
        # The answer to the sync.
        yield from fetch_many(connection)
        connection.exit_pipeline_mode()
    if failed is not None:
        raise error_from_result(failed)
    return found


def _encoded(value: Value) -> Any:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else str(value).encode()
