"""The names of a bundle's accounts and of who asked for more budget, a line each, and whether what these say is true.

Journals have ids alone, so that nothing of them changes when a name is forgotten. With the key in its line, anyone can
see that an id was made of this name and of no other.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec.structs import asdict
from pydantic import Field, ValidationError

from budget_service.ledger.account_states import AccountState
from budget_service.ledger.pseudonyms import PERSON, NameRow, ids_in
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import PSEUDONYM, Account, InvalidFieldError
from budget_service.stores.renaming import levels_in, persons_in
from gris_audit.bundle import NAMES, lines_of
from gris_audit.checked import Checked
from gris_serving.documents import Strict


class _Line(Strict):
    root: str
    name: str
    id: Annotated[str, Field(pattern=f"^{PSEUDONYM.pattern}$")]
    key: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]

    @property
    def row(self) -> NameRow:
        """The row of a level below its root, or of a person. Raises InvalidFieldError."""
        row = NameRow(self.name, self.id, self.key)
        level = Account.parse_stored(self.name.partition(PERSON)[0].split("/"), "name")
        if level.root != self.root or (level.depth == 1 and not row.person):
            raise InvalidFieldError("name", "must be below its root")
        return row


@dataclass
class Names:
    """Which name stands behind which id, and the other way round. A root account stands for itself."""

    rows: dict[tuple[str, str], NameRow] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def add(self, row: NameRow) -> str:
        """Keep a row, and return what is wrong with it: nothing if that is empty."""
        root = row.level.root
        if not row.is_bound:
            return f"{row.id} is not the id of this name and key"
        if (root, row.id) in self.rows or row.name in self.ids:
            return "has a name or an id that an earlier line has"
        self.rows[root, row.id], self.ids[row.name] = row, row.id
        return ""

    def add_lines(self, lines: str) -> None:
        """Keep the rows of lines that a service has sent, which may send the name of a level once more."""
        for line in lines.splitlines():
            row = _Line.model_validate_json(line).row
            self.rows[row.level.root, row.id], self.ids[row.name] = row, row.id

    def leave_out(self, levels: Iterable[Account]) -> None:
        """Drop the names of levels of a journal, and of who has asked for them."""
        found = {(level.root, level.path[-1]) for level in levels} & self.rows.keys()
        texts = {self.rows[each].name for each in found}
        for each, row in list(self.rows.items()):
            # What is below a name goes with it, persons and levels that were never used.
            if any(f"{row.name}/".startswith(f"{text}/") for text in texts):
                del self.rows[each]
                self.ids.pop(row.name, None)

    def named(self, level: Account) -> Account | None:
        """Return a level of a journal by its name, None if its id has none here."""
        if level.depth == 1:
            return level
        row = self.rows.get((level.root, level.path[-1]))
        return None if row is None or row.person else row.level

    def levels(self, root: str) -> Iterator[Account]:
        """Give the levels below a root that have a name here, by their names."""
        return (row.level for (of, _), row in self.rows.items() if of == root and not row.person)

    def by_ids(self, named: Account) -> Account | None:
        """Return a level as journals have it, None if one of its names is not here."""
        ids = [self.ids[each.text] for each in named.levels[1:] if each.text in self.ids]
        return Account((named.root, *ids)) if len(ids) == named.depth - 1 else None

    def lines(self) -> Iterator[str]:
        """Give a line for each row."""
        for (root, _), row in self.rows.items():
            yield json.dumps({"root": root, **asdict(row)}) + "\n"


def read_names(checked: Checked) -> Names:
    """Return the names of a bundle, and note what is wrong with their lines by themselves."""
    names = Names()
    for number, line in lines_of(checked.directory / NAMES):
        try:
            problem = names.add(_Line.model_validate_json(line).row)
        except (ValidationError, InvalidFieldError):
            problem = "expected the name of an account or a person, its id and its key"
        checked.note(NAMES, problem and f"line {number}: {problem}")
    return names


@dataclass
class Named:
    """What of journals has names: levels, and persons by root and id, each with the levels that they asked for.

    `words` are all ids of persons, also of who has asked for what was approved.
    """

    levels: set[Account] = field(default_factory=set)
    persons: dict[tuple[str, str], set[Account]] = field(default_factory=lambda: defaultdict(set))
    words: set[tuple[str, str]] = field(default_factory=set)

    def add(self, entry: JournalEntry) -> None:
        """Collect what an entry names."""
        for each in levels_in(entry):
            self.levels.update(each.levels)
        self.words.update((entry.account.root, each) for each in persons_in(entry))
        for id_ in ids_in(entry.actor) if entry.kind is EntryKind.REQUEST else ():
            self.persons[entry.account.root, id_].add(entry.account)


def check_names(checked: Checked, names: Names, named: Named, states: Mapping[Account, AccountState]) -> None:
    """Compare the names of a bundle with its journals, and with who is forgotten according to these.

    Where entries are archived, a bundle has all names of the root: also those that were never used for a charge.
    """
    forgotten = {level for level, state in states.items() if state.is_forgotten}
    above = {each for level in forgotten for each in level.levels}
    for level in sorted(level for level in named.levels if level.depth > 1):
        # With a level, what is below it goes: names that were never used for a charge.
        checked.note(NAMES, _problem(level, names, is_forgotten=not forgotten.isdisjoint(level.levels)))
    for (root, id_), levels in sorted(named.persons.items()):
        for level in sorted(levels):
            row = names.rows.get((root, id_))
            if row is not None and level in forgotten:
                checked.note(
                    NAMES, f"has the name of {id_}, who has asked for {level.text}, which is forgotten"
                )
            # Who asked is forgotten with the account for which they did, which is this level or below it.
            elif row is not None or level not in above:
                checked.note(NAMES, _problem_of_person(id_, row, level, names.named(level)))
    ids = {(level.root, level.path[-1]) for level in named.levels} | named.words
    archived = {each.root for each in checked.manifest.journals if each.first > 1}
    for root, id_ in sorted(each for each in names.rows.keys() - ids if each[0] not in archived):
        checked.note(NAMES, f"has the name of {id_}, which is not in the journal of {root}")


def _problem(level: Account, names: Names, *, is_forgotten: bool) -> str:
    found, above = names.named(level), names.named(level.level(level.depth - 1))
    if is_forgotten:
        return "" if found is None else f"has the name of {level.text}, which is forgotten"
    if found is None:
        return f"does not have the name of {level.text}, which is in the journal and not forgotten"
    if above is not None and found.path[:-1] != above.path:
        return f"has a name of {level.text} that is not below the one of the level above it"
    return ""


def _problem_of_person(id_: str, row: NameRow | None, level: Account, above: Account | None) -> str:
    if row is None or not row.person:
        return f"does not have the name of {id_}, who has asked for {level.text}"
    asking = Account.of_text(row.name.partition(PERSON)[0])
    is_below = above is None or asking.path[: above.depth] == above.path
    return "" if is_below else f"has a name of {id_} that is not below the one of {level.text}"
