"""The names of accounts in Redis: written as a charge is, and looked up in hashes of each root."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import msgpack

from budget_service.ledger.pseudonyms import NameRow, bounds_below
from budget_service.ledger.values import Account
from budget_service.stores.damaged_rows import read_name, reading_row
from budget_service.stores.interface import StoreUnavailableError
from budget_service.stores.redis.layout import key_of, keys_of
from budget_service.stores.redis.replication import LOST, Replication
from budget_service.stores.redis.scripts import ADD_NAMES, DROP_NAMES, Script, Scripts, reading

AT_ONCE = "1000"


class RedisNames:
    """See the module.

    Args:
        loading: Reads.
        writing: Runs the scripts that write.
        replication: What is known of replicas.
    """

    def __init__(self, loading: Scripts, writing: Scripts, replication: Replication) -> None:
        self._loading = loading
        self._writing = writing
        self._replication = replication

    async def named(self, root: str, names: Sequence[str]) -> list[NameRow]:
        """Return the rows of names that have one."""
        names = list(dict.fromkeys(names))
        return _read(names, await self._looked_up(root, "names", names))

    async def names_of(self, root: str, ids: Sequence[str]) -> list[NameRow]:
        """Return the rows of ids that have one."""
        names = [name for name in await self._looked_up(root, "ids", ids) if name is not None]
        # One that was dropped meanwhile has no row any more, or another one.
        asked = frozenset(ids)
        return [row for row in await self.named(root, names) if row.id in asked]

    async def names_below(self, root: str, name: str, after: str = "") -> list[str]:
        """Return the names below one: all names of the root are looked through, some at a time."""
        first, last = bounds_below(name)
        first = after or first
        found: set[str] = set()
        cursor = ""
        while cursor != "0":
            page = await self._loading.read("HSCAN", key_of(root, "names"), cursor or "0", "COUNT", AT_ONCE)
            cursor, fields = str(page[0]), page[1]
            found.update(each for each in list(fields)[::2] if first < each < last)
        return sorted(found)

    async def add(self, root: str, rows: Sequence[NameRow]) -> list[NameRow]:
        """Keep the rows of names that have none yet, and return the row of each name."""
        new = {each.name: (each.name, each.id, each.key) for each in reversed(rows)}
        return _read(list(new), await self._write(ADD_NAMES, root, list(new.values())))

    async def drop(self, root: str, rows: Sequence[NameRow]) -> None:
        """Remove rows of names."""
        await self._write(DROP_NAMES, root, [(each.name, each.id) for each in rows])

    async def _looked_up(self, root: str, table: str, fields: Sequence[str]) -> list[Any]:
        if not fields:
            return []
        return list(await self._loading.read("HMGET", key_of(root, table), *fields))

    async def _write(self, script: Script, root: str, rows: Sequence[Any]) -> Any:
        """Return the answer of a script; if it is lost, the next attempt does the same."""
        keys, account = keys_of(root, "names", "ids"), Account((root,))
        self._require_nothing_lost()
        with self._replication.changing():
            writing = self._writing.of_schema(script, keys, msgpack.encode(rows), account=account)
            answer = await reading(writing)
            self._require_nothing_lost()
        return answer

    def _require_nothing_lost(self) -> None:
        if self._replication.lost:
            raise StoreUnavailableError(LOST)


def _read(names: Sequence[str], kept: Sequence[str | None]) -> list[NameRow]:
    """Return the rows of names from what is kept of each."""
    rows: list[NameRow] = []
    for name, text in zip(names, kept, strict=True):
        if text is not None:
            with reading_row("names", name):
                id_, key = text.split(":")
            rows.append(read_name(name, id_, key))
    return rows
