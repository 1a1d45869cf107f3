"""Migrates a PostgreSQL ledger to schema 7, in which every level counts by the day."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection, sql

from budget_service.ledger.migration import Migrated, OlderRoot
from budget_service.stores.postgres import audit
from budget_service.stores.postgres import encoding as text

PAGE = 1000
ALL = 2**31 - 1
_LAST_TIME = sql.SQL("SELECT last_time FROM gris.roots WHERE root = %s")
_FORGET_BALANCES = sql.SQL("DELETE FROM gris.balances WHERE level = ANY (%s)")
_BALANCES = sql.SQL(
    "INSERT INTO gris.balances SELECT * FROM json_populate_recordset(NULL::gris.balances, %s::json)"
)
_DAYS = sql.SQL("INSERT INTO gris.days SELECT * FROM json_populate_recordset(NULL::gris.days, %s::json)")
_HOLDS = sql.SQL(
    "UPDATE gris.reservations SET holds = ARRAY("
    "SELECT each FROM json_populate_recordset(NULL::gris.hold, %s::json) AS each) "
    "WHERE root = %s AND reservation_id = %s"
)


async def count_by_day(connection: AsyncConnection[Any]) -> None:
    """Work out the days of every level, in the transaction that is open."""
    for (root,) in await (await connection.execute(audit.ROOTS)).fetchall():
        await _write(connection, root, await _migrated(connection, root))


async def _migrated(connection: AsyncConnection[Any], root: str) -> Migrated:
    checkpoint = await audit.load_checkpoint(connection, root)
    found, after = OlderRoot.after(checkpoint), checkpoint.position
    while True:
        asked = audit.journal_parameters(root, after, "", PAGE)
        page = await (await connection.execute(audit.JOURNAL, asked)).fetchall()
        for _, row in page:
            found.add(audit.read_entry(row))
        if len(page) < PAGE:
            break
        after = str(page[-1][0])
    parameters = audit.balances_parameters(root, "", ALL)
    ((*row,),) = await (await connection.execute(audit.BALANCES, parameters)).fetchall()
    every = audit.read_page(tuple(row), ALL)
    ((last_time,),) = await (await connection.execute(_LAST_TIME, (root,))).fetchall()
    return found.migrated(dict(every.balances), every.reservations, last_time)


async def _write(connection: AsyncConnection[Any], root: str, found: Migrated) -> None:
    await connection.execute(_FORGET_BALANCES, ([level.text for level in found.balances],))
    await connection.execute(_BALANCES, (text.balances_text(found.balances),))
    await connection.execute(_DAYS, (text.past_text(found.past),))
    for held in found.reservations:
        holds = text.holds_text(held.account, held.holds)
        await connection.execute(_HOLDS, (holds, root, text.escaped(held.reservation_id)))
