"""How a restored SQLite ledger is put into use again: what was left of every budget counts as spent."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from budget_service.ledger.limits import parse_limit
from budget_service.ledger.loss import Spent, spend_the_rest
from budget_service.ledger.state import RootRecord
from budget_service.ledger.values import Account, Limit
from budget_service.ledger.windows import Microseconds
from budget_service.stores import sqlite_rows as rows
from budget_service.stores.interface import Clock, StoreUnusableError, system_clock
from budget_service.stores.sqlite_file import connect
from budget_service.stores.sqlite_mark import write_mark


def confirm_restored(
    path: Path,
    limit_of: Callable[[Account], Limit | None],
    named: Iterable[Account],
    clock: Clock = system_clock,
) -> int:
    """Spend what is left on every level that was used, has a stored limit or is `named`; return on how many.

    `limit_of` gives the configuration's limit of a level. Raises StoreUnusableError.
    """
    if not path.exists():
        raise StoreUnusableError(f"{path}: there is no ledger to confirm")
    with contextlib.closing(connect(path)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            stored = _stored_limits(connection)
            levels = {*_used_levels(connection), *stored, *named}
            limits = ((level, stored.get(level) or limit_of(level)) for level in sorted(levels, key=_text))
            count = sum(_spend(connection, level, limit, clock()) for level, limit in limits if limit)
            write_mark(connection, path)
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise StoreUnusableError(f"{path}: {error}") from error
    return count


def _spend(connection: sqlite3.Connection, level: Account, limit: Limit, clock: Microseconds) -> bool:
    row = connection.execute("SELECT * FROM balances WHERE level = ?", (level.text,)).fetchone()
    root = rows.find_root(connection, level.root)
    now = root.now(clock)
    spent = spend_the_rest(level, limit, rows.read_balance(*row) if row else None, root.currency.unit_id, now)
    if spent is not None:
        _write(connection, level, spent, replace(root, last_time=now))
    return spent is not None


def _write(connection: sqlite3.Connection, level: Account, spent: Spent, root: RootRecord) -> None:
    write = connection.execute
    write("INSERT OR REPLACE INTO roots VALUES (?, ?, ?, ?, ?, ?, ?)", rows.root_row(level.root, root))
    balance = rows.balance_row(level, spent.balance)
    write("INSERT OR REPLACE INTO balances VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", balance)
    entry = rows.journal_row(spent.entry)
    write("INSERT INTO journal VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", entry)


def _stored_limits(connection: sqlite3.Connection) -> dict[Account, Limit]:
    found = connection.execute("SELECT level, limit_text FROM limits")
    return {_account(level): parse_limit(text) for level, text in found}


def _used_levels(connection: sqlite3.Connection) -> list[Account]:
    return [_account(level) for (level,) in connection.execute("SELECT level FROM balances")]


def _account(text: str) -> Account:
    return Account(tuple(text.split("/")))


def _text(level: Account) -> str:
    return level.text
