"""The names of accounts and persons beside a ledger by ids: their rows, and the ids that stand for them."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from budget_service.ledger.pseudonyms import KEY_BYTES, PERSON, NameRow
from budget_service.ledger.values import Account
from budget_service.stores.interface import Store
from budget_service.stores.renaming import Levels

AT_ONCE = 1000


class Names:
    """Looks up names and ids.

    Attributes:
        ledger: The store by ids, which has the rows.
    """

    def __init__(self, ledger: Store) -> None:
        self.ledger = ledger
        # Of ids that nothing is kept of: a request has the same fingerprint when it is sent again.
        self._own_key = secrets.token_bytes(KEY_BYTES)

    async def rows_of(self, accounts: Sequence[Account]) -> list[NameRow]:
        """Return the rows of accounts of one root that have one."""
        return await self.ledger.named(accounts[0].root, [each.text for each in accounts])

    async def drop_persons(self, account: Account, but: Collection[str] = ()) -> None:
        """Remove the rows of persons who asked for an account that has none itself, but those of some ids."""
        below = await self.ledger.names_below(account.root, account.text)
        persons = [each for each in below if each.startswith(f"{account.text}{PERSON}")]
        rows = chain.from_iterable([await self.ledger.named(account.root, some) for some in pages(persons)])
        await self.ledger.drop_names(account.root, [each for each in rows if each.id not in but])

    async def rows_for(self, root: str, ids: Iterable[str]) -> list[NameRow]:
        """Return the rows of ids, of those that are not forgotten."""
        found = [await self.ledger.names_of(root, some) for some in pages(sorted({*ids}))]
        return list(chain.from_iterable(found))

    async def names_for(self, root: str, levels: Collection[Account]) -> Levels:
        """Return these levels, and blocks of levels, by names; an id that was forgotten stands for itself."""
        ids = [segment for level in levels for segment in level.path[1:]]
        rows = {each.id: each.level.path[-1] for each in await self.rows_for(root, ids)}
        return {
            level: Account((root, *(rows.get(each, each) for each in level.path[1:])), level.block)
            for level in levels
        }

    def are_known(self, levels: Levels) -> bool:
        """Whether each of these has an id in the ledger."""
        return all(
            level.depth == 1 or by_ids.path[-1] != self._unknown(level.text).id
            for level, by_ids in levels.items()
        )

    def _unknown(self, name: str) -> NameRow:
        """Return the row that stands for a name that has none."""
        return NameRow.made(name, self._own_key)

    async def levels_of(self, accounts: Iterable[Account], *, adds: bool = False) -> Levels:
        """Return all levels of accounts of one root by ids; with `adds`, those that are new get one.

        Nothing is kept of other new ones.
        """
        every = {level: None for account in accounts for level in account.of_block("").levels}
        texts = [level.text for level in every if level.depth > 1]
        ids = await self.ids_of(next(iter(every)).root, texts, adds=adds)
        return {level: _by_ids(level, ids) for level in every}

    async def ids_of(self, root: str, names: Sequence[str], *, adds: bool) -> Mapping[str, str]:
        """Return the ids of names of one root; with `adds`, those that are new get one."""
        rows: dict[str, NameRow] = {}
        for some in pages(names):
            found = {each.name: each for each in await self.ledger.named(root, some)}
            if adds and len(found) < len(some):
                new = [
                    NameRow.made(each, secrets.token_bytes(KEY_BYTES)) for each in some if each not in found
                ]
                found |= {each.name: each for each in await self.ledger.add_names(root, new)}
            rows |= found
        return {each: (rows.get(each) or self._unknown(each)).id for each in names}


def pages(texts: Sequence[str]) -> list[Sequence[str]]:
    """Divide many names or ids into parts for single questions."""
    return [texts[first : first + AT_ONCE] for first in range(0, len(texts), AT_ONCE)]


def _by_ids(level: Account, ids: Mapping[str, str]) -> Account:
    return Account((level.root, *(ids[each.text] for each in level.levels[1:])))
