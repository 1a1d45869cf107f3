"""The names of accounts in PostgreSQL: rows that several processes may add and drop at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import psycopg
from msgspec import json
from psycopg import sql

from budget_service.ledger.pseudonyms import NameRow
from budget_service.stores.damaged_rows import read_name
from budget_service.stores.interface import StoreDamagedError, StoreUnavailableError
from budget_service.stores.postgres.connections import OTHERS_WERE_QUICKER, Session
from budget_service.stores.postgres.round_trip import Statement, Values
from budget_service.stores.postgres.statements import BEGIN, COMMIT

BY_NAME = sql.SQL("SELECT name, id, key FROM gris.names WHERE root = %s AND name = ANY(%s::text[])")
BY_ID = sql.SQL("SELECT name, id, key FROM gris.names WHERE root = %s AND id = ANY(%s::text[])")
BELOW = sql.SQL(
    "SELECT name FROM gris.names WHERE root = %s AND name > %s AND name < %s ORDER BY name LIMIT %s"
)
# Names that have a row already are locked, changing nothing: so none is dropped before it is read, and the commit
# waits for a standby even if another process has added them. All lock them in one order.
_ADD = Statement.of(
    "INSERT INTO gris.names SELECT * FROM json_populate_recordset(NULL::gris.names, %(rows)s::json) ORDER BY name "
    "ON CONFLICT (root, name) DO UPDATE SET key = names.key WHERE false"
)
# A statement of its own, since one does not see what others have committed while it waited for them.
_KEPT = Statement.of(
    "SELECT coalesce(json_agg(json_build_array(name, id, key)), '[]')::text FROM gris.names "
    "WHERE root = %(root)s AND name = ANY (ARRAY(SELECT json_array_elements_text(%(names)s::json)))"
)
# A name has one id, so that of a row that was dropped and came anew the id is another one.
_DROP = Statement.of(
    "DELETE FROM gris.names WHERE root = %(root)s AND id = ANY (ARRAY("
    "SELECT id FROM gris.names WHERE root = %(root)s "
    "AND id = ANY (ARRAY(SELECT json_array_elements_text(%(ids)s::json))) ORDER BY name FOR UPDATE))"
)

Sessions: TypeAlias = Callable[[], AbstractAsyncContextManager[Session]]


async def add(sessions: Sessions, root: str, rows: Sequence[NameRow]) -> list[NameRow]:
    """Keep the rows of names that have none yet, and return the row of each name."""
    new = {
        each.name: {"root": root, "name": each.name, "id": each.id, "key": each.key}
        for each in reversed(rows)
    }
    added: Values = {"rows": json.encode(list(new.values()))}
    asked: Values = {"root": root, "names": json.encode(list(new))}
    try:
        async with sessions() as session:
            _, _, found, _ = await session.together((BEGIN, {}), (_ADD, added), (_KEPT, asked), (COMMIT, {}))
    except psycopg.IntegrityError:
        # One of the ids is that of another name.
        raise StoreDamagedError("names", root) from None
    except OTHERS_WERE_QUICKER as error:
        raise StoreUnavailableError(f"others were quicker: {type(error).__name__}") from None
    return [read_name(*row) for row in json.decode(found.get_value(0, 0) or b"[]")]


async def drop(sessions: Sessions, root: str, rows: Sequence[NameRow]) -> None:
    """Remove rows of names."""
    try:
        async with sessions() as session:
            await session.together((_DROP, {"root": root, "ids": json.encode([each.id for each in rows])}))
    except OTHERS_WERE_QUICKER as error:
        raise StoreUnavailableError(f"others were quicker: {type(error).__name__}") from None
