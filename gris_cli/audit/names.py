"""The names of a bundle's accounts: one line for each id in its journals, and whether what the lines say is true.

Journals have ids alone, so that nothing of them changes when a name is forgotten. With the key in its line, anyone can
see that an id was made of this name and of no other.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec.structs import asdict
from pydantic import Field, ValidationError

from budget_service.ledger.account_states import UNTOUCHED, AccountState
from budget_service.ledger.pseudonyms import NameRow
from budget_service.ledger.values import Account, InvalidFieldError
from gris_cli.audit.bundle import MOST_LINE_CHARACTERS, NAMES
from gris_cli.audit.checked import Checked
from gris_serving.documents import Strict


class _Line(Strict):
    root: str
    name: str
    id: Annotated[str, Field(pattern="^~[A-Za-z0-9_-]{22}$")]
    key: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]

    @property
    def row(self) -> NameRow:
        """The row of a name below its root. Raises InvalidFieldError."""
        level = Account.parse(self.name.split("/"), "name")
        if level.depth == 1 or level.root != self.root:
            raise InvalidFieldError("name", "must be below its root")
        return NameRow(self.name, self.id, self.key)


@dataclass
class Names:
    """Which name stands behind which id, and the other way round. A root account stands for itself."""

    rows: dict[tuple[str, str], NameRow] = field(default_factory=dict)
    ids: dict[Account, str] = field(default_factory=dict)

    def add(self, row: NameRow) -> str:
        """Keep a row, and return what is wrong with it: nothing if that is empty."""
        level = row.level
        if not row.is_bound:
            return f"{row.id} is not the id of this name and key"
        if (level.root, row.id) in self.rows or level in self.ids:
            return "has a name or an id that an earlier line has"
        self.rows[level.root, row.id], self.ids[level] = row, row.id
        return ""

    def add_lines(self, lines: str) -> None:
        """Keep the rows of lines that a service has sent, which may send the name of a level once more."""
        for line in lines.splitlines():
            row = _Line.model_validate_json(line).row
            self.rows[row.level.root, row.id], self.ids[row.level] = row, row.id

    def leave_out(self, levels: Iterable[Account]) -> None:
        """Drop the names of levels of a journal."""
        for level in levels:
            if (row := self.rows.pop((level.root, level.path[-1]), None)) is not None:
                self.ids.pop(row.level, None)

    def named(self, level: Account) -> Account | None:
        """Return a level of a journal by its name, None if its id has none here."""
        if level.depth == 1:
            return level
        row = self.rows.get((level.root, level.path[-1]))
        return None if row is None else row.level

    def by_ids(self, named: Account) -> Account | None:
        """Return a level as journals have it, None if one of its names is not here."""
        ids = [self.ids[each] for each in named.levels[1:] if each in self.ids]
        return Account((named.root, *ids)) if len(ids) == named.depth - 1 else None

    def lines(self) -> Iterator[str]:
        """Give a line for each row."""
        for (root, _), row in self.rows.items():
            yield json.dumps({"root": root, **asdict(row)}) + "\n"


def read_names(checked: Checked) -> Names:
    """Return the names of a bundle, and note what is wrong with their lines by themselves."""
    names, number = Names(), 0
    with (checked.directory / NAMES).open(encoding="utf-8") as file:
        while line := file.readline(MOST_LINE_CHARACTERS):
            number += 1
            try:
                problem = names.add(_Line.model_validate_json(line).row)
            except (ValidationError, InvalidFieldError):
                problem = "expected the name of an account, its id and its key"
            checked.note(NAMES, problem and f"line {number}: {problem}")
    return names


def check_names(
    checked: Checked, names: Names, levels: Collection[Account], states: Mapping[Account, AccountState]
) -> None:
    """Compare the names of a bundle with the levels of its journals, and with who is forgotten according to these."""
    for level in sorted(level for level in levels if level.depth > 1):
        checked.note(NAMES, _problem(level, names, states.get(level, UNTOUCHED)))
    ids = {(level.root, level.path[-1]) for level in levels}
    for root, id_ in sorted(names.rows.keys() - ids):
        checked.note(NAMES, f"has the name of {id_}, which is not in the journal of {root}")


def _problem(level: Account, names: Names, state: AccountState) -> str:
    named, above = names.named(level), names.named(level.level(level.depth - 1))
    if state.is_forgotten:
        return "" if named is None else f"has the name of {level.text}, which is forgotten"
    if named is None:
        return f"does not have the name of {level.text}, which is in the journal and not forgotten"
    if above is not None and named.path[:-1] != above.path:
        return f"has a name of {level.text} that is not below the one of the level above it"
    return ""
