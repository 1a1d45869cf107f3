"""What the files of a bundle say, compared with one another: journals, names, what accounts have, and files in force.

Entries are read one at a time; what is kept of them are sums by level and day.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from google.protobuf.json_format import ParseDict, ParseError
from gris_api.budget.v1 import budget_pb2

from budget_service.ledger.journal import require_well_formed
from budget_service.ledger.recorded_files import RecordedFile, journal_name
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Account, capped_sum
from budget_service.ledger.verification import Rebuilt, next_digest
from budget_service.ledger.windows import SECOND, Microseconds, datetime_of, microseconds_of
from budget_service.server.archives import Chain, NoArchiveError
from gris_audit.bundle import (
    ACCOUNTS,
    CONFIGURATION,
    MANIFEST,
    METRICS,
    NAMES,
    Journal,
    lines_of,
)
from gris_audit.checked import Checked
from gris_audit.names import Named, Names, check_names, read_names
from gris_audit.standing import Standing
from gris_audit.statements import GivenFile, check_copies, read_given_files

_NO_ENTRY = (AttributeError, IndexError, NoArchiveError, OverflowError, TypeError, ValueError)


CLOCKS_DIFFER: Microseconds = 60 * SECOND
"""By how much the clock of who exports may differ from the ledger's."""


class _Recorded(NamedTuple):
    """When a file was recorded last, not later than the bundle was made, in which root, and its digest."""

    is_past: bool
    time: int
    root: str
    sha256: str


class OtherPastError(Exception):
    """Of files that cover the same entries, the first one is of another past than the journal."""


@dataclass
class _Journals:
    """What the entries of a bundle say together.

    `rebuilt` are the sums of roots of which all entries are there. `named` is what has names in the bundle. `standing`
    says who of them is forgotten, or closed, and which limits were set. `recorded` has the last digest of a file by
    kind and name, with when and in which root it was recorded.
    """

    rebuilt: dict[str, Rebuilt] = field(default_factory=dict)
    named: Named = field(default_factory=Named)
    standing: Standing = field(default_factory=Standing)
    recorded: dict[tuple[str, str], _Recorded] = field(default_factory=dict)

    def read(self, chain: Chain, journal: Journal, made_at: Microseconds) -> None:
        """Read all entries of a root, in a bundle of that time. Raises one of `_NO_ENTRY`, or OtherPastError."""
        root, first, rebuilt = journal.root, chain.begins(journal.root, journal.entries), Rebuilt()
        digests = chain.digests(root, first - 1)
        for entry in chain.entries(root, journal.entries):
            require_well_formed(entry)
            if entry.account.root != root:
                raise ValueError("an entry of another root account")
            digests = frozenset(next_digest(each, entry) for each in digests)
            if first == 1:
                rebuilt.add(entry)
            self.standing.add(entry)
            self.named.add(entry)
            if entry.kind is EntryKind.FILE:
                file = RecordedFile.of_text(entry.change)
                # A journal has nothing of the time in which its root is not used. The time of a root may be ahead.
                found = _Recorded(entry.time <= made_at, entry.time, root, file.sha256)
                before = self.recorded.get((file.kind, file.name), found)
                self.recorded[file.kind, file.name] = found if found[:2] >= before[:2] else before
        # Of several pasts each may be sound: what is added up has to be the one that the journal continues.
        if digests and journal.digest not in digests:
            raise OtherPastError
        if first == 1:
            self.rebuilt[root] = rebuilt


def check_contents(checked: Checked, chain: Chain) -> None:
    """Compare names and what the ledger said of each level with the journals, and files with what was recorded."""
    journals, names = _Journals(), read_names(checked)
    made_at = _latest(checked.manifest.made_at)
    for each in checked.manifest.journals:
        try:
            journals.read(chain, each, made_at)
        except _NO_ENTRY:
            checked.note(each.file or MANIFEST, "has an entry that no ledger can have")
        except OtherPastError:
            problem = f"has other entries of {each.root} than a file that was given: leave out those of another past"
            checked.note(each.file or MANIFEST, problem)
        checked.not_given += chain.begins(each.root, each.entries) - 1
    # What accounts have is said by their names: it is compared where these are those of the journals.
    if not checked.problems:
        check_names(checked, names, journals.named, journals.standing.states.states)
    if not checked.problems:
        _check_accounts(checked, journals, names)
    _check_recorded(checked, journals.recorded)


def _latest(made_at: str) -> Microseconds:
    """Return the latest time that a ledger's clock may have shown when a bundle was made; 0: it says no time."""
    try:
        return microseconds_of(datetime.fromisoformat(made_at)) + CLOCKS_DIFFER
    except ValueError:
        return 0


def _check_accounts(checked: Checked, journals: _Journals, names: Names) -> None:
    roots = [each.root for each in checked.manifest.journals]
    left = {level for root in roots for level in (Account((root,)), *names.levels(root))}
    for number, line in lines_of(checked.directory / ACCOUNTS):
        try:
            left.discard(_check_level(checked, json.loads(line), journals, names))
        except (*_NO_ENTRY, KeyError, ParseError, RecursionError):
            checked.note(ACCOUNTS, f"line {number}: expected an account and its budget")
    for text in sorted(level.text for level in left):
        checked.note(ACCOUNTS, f"does not have {text}, which is in the journal or in {NAMES}")


def _check_recorded(checked: Checked, recorded: dict[tuple[str, str], _Recorded]) -> None:
    files = read_given_files(checked)
    check_copies(checked, files)
    given = [said for said in files if said.kind != METRICS]
    for said in given:
        _check_file(checked, said, recorded)
    here = {(said.kind, journal_name(said.name)) for said in given}
    checked.recorded_elsewhere = len(recorded.keys() - here)


def _check_file(checked: Checked, file: GivenFile, recorded: dict[tuple[str, str], _Recorded]) -> None:
    last = recorded.get((file.kind, journal_name(file.name)))
    if last is None:
        checked.not_recorded += 1
        return
    problem = f"{file.name} is not what was recorded last as this {file.kind}, in the journal of {last.root}"
    checked.note(CONFIGURATION, problem if last.sha256 != file.sha256 else "")
    checked.recorded += 1


def _check_level(checked: Checked, line: Any, journals: _Journals, names: Names) -> Account:
    """Check one line, and return whose it is."""
    account, is_changed = Account(tuple(line["account"])), line["changed_meanwhile"]
    said = ParseDict(line.get("budget", {}), budget_pb2.GetBudgetResponse())
    by_ids = names.by_ids(account)
    if by_ids is None:
        checked.note(ACCOUNTS, f"has {account.text}, which has no line in {NAMES}")
        return account
    rebuilt = journals.rebuilt
    is_whole, stated = account.root in rebuilt, said.clock_ahead.ToMicroseconds()
    known = journals.standing.clock_ahead(account.root, is_whole=is_whole)
    ahead = stated if known is None else known
    if "budget" in line and not is_changed:
        until = _latest(checked.manifest.made_at) + ahead
        for problem in journals.standing.problems(account, by_ids, said, until, is_whole=is_whole):
            checked.note(ACCOUNTS, problem)
        if stated != ahead:
            problem = f"{account.text} has a clock that is ahead by other than the last entry about it says"
            checked.note(ACCOUNTS, problem)
    own = [each for each in (*said.levels, *said.purposes) if tuple(each.path) == account.path]
    has_level = any(not each.purpose for each in own)
    if not has_level or is_changed or not is_whole or any(map(_counts_otherwise, own)):
        checked.not_compared += 1
        return account
    checked.compared += 1
    journal = rebuilt[account.root]
    made_at = datetime.fromisoformat(checked.manifest.made_at) + timedelta(seconds=1, microseconds=ahead)
    for level in own:
        if not _is_within(level, journal.time, made_at):
            text = _of_purpose(account, level).text
            checked.note(ACCOUNTS, f"{text} has a window that the export is not in")
        _check_spent(checked, account, by_ids, level, journal)
    return account


def _of_purpose(account: Account, level: budget_pb2.Level) -> Account:
    return account.of_purpose(level.purpose) if level.purpose else account


def _check_spent(
    checked: Checked, account: Account, by_ids: Account, level: budget_pb2.Level, journal: Rebuilt
) -> None:
    start = level.window_start.ToMicroseconds()
    days = journal.spent.get(_of_purpose(by_ids, level), {})
    spent = capped_sum(cost for day, cost in days.items() if day >= start)
    for unit, kept, sum_ in (
        ("information units", level.spent.information, spent.information),
        ("calls", level.spent.calls, spent.calls),
    ):
        if kept != sum_:
            text = _of_purpose(account, level).text
            checked.note(ACCOUNTS, f"{text} has spent {kept} {unit}, and {sum_} by the journal")


def _is_within(level: budget_pb2.Level, newest: int, made_at: datetime) -> bool:
    """Return whether a level's window can be that of the export, which was made after the newest entry."""
    has_begun = level.window_start.ToDatetime(UTC) <= max(made_at, datetime_of(newest))
    return has_begun and (not level.HasField("window_end") or newest < level.window_end.ToMicroseconds())


def _counts_otherwise(level: budget_pb2.Level) -> bool:
    """Return whether what is spent is not the sum of the charges in the level's window."""
    return level.previous_currency or bool(level.remaining_of_blocks)
