"""Verifies a bundle offline: the signature first, then every file, then what the files say.

What is read is what the manifest names, of the size and the digest that it has, and nothing of it is believed before
the signature. Entries are read one at a time; what is kept of them are sums by level and day.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from google.protobuf.json_format import ParseDict, ParseError
from gris_api.budget.v1 import budget_pb2
from pydantic import BaseModel, TypeAdapter, ValidationError

from budget_service.ledger.journal import require_well_formed
from budget_service.ledger.recorded_files import RecordedFile
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Account, capped_sum
from budget_service.ledger.verification import Rebuilt, next_digest
from budget_service.ledger.windows import datetime_of
from budget_service.server.archives import (
    Archive,
    Chain,
    NoArchiveError,
    missing,
)
from gris_cli.audit.bundle import (
    ACCOUNTS,
    CONFIGURATION,
    LABEL,
    MANIFEST,
    METRICS,
    NO_MANIFEST,
    REFUSALS,
    SERVICE,
    SIGNATURE,
    HashedFile,
    Journal,
    Manifest,
    hashed,
)

EXPECTED = (ACCOUNTS, SERVICE, CONFIGURATION, REFUSALS)
MOST_MANIFEST_BYTES = 64 * 2**20
MOST_LINE_CHARACTERS = 16 * 2**20
_NO_ENTRY = (AttributeError, IndexError, NoArchiveError, OverflowError, TypeError, ValueError)


class _File(BaseModel):
    """What is checked of a file of which a bundle has the digest."""

    kind: str
    name: str
    sha256: str


_FILES = TypeAdapter(list[_File])


@dataclass
class Checked:
    """What was found: problems, each with the file it is in, and the manifest, if it can be believed."""

    directory: Path
    manifest: Manifest = NO_MANIFEST
    problems: list[tuple[str, str]] = field(default_factory=list)
    compared: int = 0
    not_compared: int = 0
    recorded: int = 0
    not_recorded: int = 0
    recorded_elsewhere: int = 0

    def note(self, file: str, problem: str) -> None:
        """Keep a problem, if there is one."""
        if problem:
            self.problems.append((file, problem))


def check(
    directory: Path,
    key: Ed25519PublicKey,
    archives: Sequence[Path] = (),
    before: tuple[Path, Ed25519PublicKey] | None = None,
    *,
    without_archives: bool = False,
) -> Checked:
    """Verify a bundle.

    Args:
        directory: The bundle.
        key: The public key of who signs bundles.
        archives: Files of archived journals.
        before: An earlier bundle of the same ledger, and the public key of who signed that.
        without_archives: Entries before the first one of the bundle may be missing.
    """
    checked = _check_files(directory, key)
    earlier = None if before is None else _check_files(*before)
    if earlier is not None:
        for file, problem in earlier.problems:
            checked.note(f"--before: {file}", problem)
    if checked.problems:
        return checked
    bundles = [checked] if earlier is None else [earlier, checked]
    journals = [each for bundle in bundles for each in bundle.manifest.journals]
    chain = Chain(
        [*archives, *(path for bundle in bundles for path in _journal_files(bundle))],
        [(each.root, number) for each in journals for number in (each.entries, each.checkpoint_entries)],
        {
            (each.root, each.checkpoint_entries): each.checkpoint_digest
            for each in journals
            if without_archives
        },
    )
    _check_chain(checked, chain, None if earlier is None else earlier.directory)
    if earlier is not None:
        _check_earlier(checked, earlier.manifest, chain)
    if not checked.problems:
        _check_contents(checked, chain)
    return checked


def _check_files(directory: Path, key: Ed25519PublicKey) -> Checked:
    """Check the signature, and that the directory has what the manifest names and nothing else."""
    checked = Checked(directory)
    try:
        content, signature = (
            _read(directory / name, most) for name, most in ((MANIFEST, MOST_MANIFEST_BYTES), (SIGNATURE, 64))
        )
        key.verify(signature, LABEL + content)
    except OSError as error:
        checked.note(Path(error.filename or directory).name, error.strerror or "cannot be read")
        return checked
    except InvalidSignature:
        checked.note(SIGNATURE, f"is no signature of this {MANIFEST} by this key")
        return checked
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        checked.note(MANIFEST, f"is of another form: {where}: {first['msg']}")
        return checked
    names = {each.name for each in directory.iterdir()}
    for name in sorted(names - manifest.files.keys() - {MANIFEST, SIGNATURE}):
        checked.note(name, f"is not in {MANIFEST}")
    for name, said in sorted(manifest.files.items()):
        if problem := "is missing" if name not in names else _difference(directory / name, said):
            checked.note(name, problem)
    for name in sorted(
        {*EXPECTED, *(each.file for each in manifest.journals if each.file)} - manifest.files.keys()
    ):
        checked.note(MANIFEST, f"does not have {name}")
    roots = [each.root for each in manifest.journals]
    if not roots or len(roots) != len({*roots}):
        checked.note(MANIFEST, "has no journal, or two of one root account")
    checked.manifest = manifest
    return checked


def _read(path: Path, most: int) -> bytes:
    """Return a small file. Raises OSError."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(0, "expected a regular file, and no link", str(path))
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(0, f"expected at most {most} bytes", str(path))
    return content


def _difference(path: Path, said: HashedFile) -> str:
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            return "expected a regular file, and no link"
        if found.st_size != said.size:
            return f"has {found.st_size} bytes; expected {said.size}"
        return "" if hashed(path) == said else "has another content than the one that was signed"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _journal_files(checked: Checked) -> list[Path]:
    return [checked.directory / each.file for each in checked.manifest.journals if each.file]


def _check_chain(checked: Checked, chain: Chain, before: Path | None) -> None:
    """Check that the entries of every file have its digest, and the checkpoints."""
    own = _journal_files(checked)
    for path in chain.paths:
        name = f"--before: {path.name}" if path.parent == before else path.name
        checked.note(name, chain.problem(path))
    for each in checked.manifest.journals:
        path, root = checked.directory / each.file, each.root
        if path in own and chain.problem(path):
            continue
        if path in own and chain.archives[path] != Archive(path, root, each.first, each.entries, each.digest):
            checked.note(each.file, f"is not the journal of {root} that {MANIFEST} describes")
            continue
        points = (
            (each.checkpoint_entries, each.checkpoint_digest, "its checkpoint"),
            (each.entries, each.digest, "what its archives end with"),
        )
        found = (_difference_at(chain, root, *point) for point in points)
        checked.note(each.file or MANIFEST, next(filter(None, found), ""))


def _difference_at(chain: Chain, root: str, number: int, digest: str, what: str) -> str:
    found = chain.digests(root, number)
    if not found:
        return missing(root, number)
    problem = f"{what} at entry {number} of {root} has another digest than its entries up to there"
    return "" if found == {digest} else problem


def _check_earlier(checked: Checked, earlier: Manifest, chain: Chain) -> None:
    """Check that an earlier bundle is one, and that its journals are the beginning of these."""
    if checked.manifest.made_at < earlier.made_at:
        checked.note(MANIFEST, f"was made at {checked.manifest.made_at}, before the one of {earlier.made_at}")
    later = {each.root: each for each in checked.manifest.journals}
    for each in earlier.journals:
        root, journal = each.root, later.get(each.root)
        if journal is None or journal.entries < each.entries:
            number = 0 if journal is None else journal.entries
            checked.note(MANIFEST, f"has {number} entries of {root}, and the earlier bundle {each.entries}")
        elif (first := chain.begins(root, journal.entries)) > each.entries + 1:
            said = f"begins at entry {first} of {root}: nothing ties it to the earlier bundle"
            checked.note(journal.file or MANIFEST, said)
        else:
            said = _difference_at(chain, root, each.entries, each.digest, "the earlier bundle's end")
            checked.note(journal.file or MANIFEST, said)


class OtherPastError(Exception):
    """Of files that cover the same entries, the first one is of another past than the journal."""


@dataclass
class _Journals:
    """What the entries of a bundle say together.

    `rebuilt` are the sums of roots of which all entries are there. `levels` are those of entries in the bundle itself:
    accounts of which all entries are archived are in none. `recorded` has the last digest of a file by root, kind and
    name.
    """

    rebuilt: dict[str, Rebuilt] = field(default_factory=dict)
    levels: set[Account] = field(default_factory=set)
    recorded: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def read(self, chain: Chain, journal: Journal) -> None:
        """Read all entries of a root. Raises one of `_NO_ENTRY`, or OtherPastError."""
        root, first, rebuilt = journal.root, chain.begins(journal.root, journal.entries), Rebuilt()
        digests = chain.digests(root, first - 1)
        for number, entry in enumerate(chain.entries(root, journal.entries), first):
            require_well_formed(entry)
            if entry.account.root != root:
                raise ValueError("an entry of another root account")
            digests = frozenset(next_digest(each, entry) for each in digests)
            if first == 1:
                rebuilt.add(entry)
            if number >= journal.first:
                self.levels.update(entry.account.levels)
            if entry.kind is EntryKind.FILE:
                file = RecordedFile.of_text(entry.change)
                self.recorded[root, file.kind, file.name] = file.sha256
        # Of several pasts each may be sound: what is added up has to be the one that the journal continues.
        if digests and journal.digest not in digests:
            raise OtherPastError
        if first == 1:
            self.rebuilt[root] = rebuilt


def _check_contents(checked: Checked, chain: Chain) -> None:
    """Compare what the ledger said of each level with the sum of its charges, and files with what was recorded."""
    journals = _Journals()
    for each in checked.manifest.journals:
        try:
            journals.read(chain, each)
        except _NO_ENTRY:
            checked.note(each.file or MANIFEST, "has an entry that no ledger can have")
        except OtherPastError:
            problem = f"has other entries of {each.root} than a file that was given: leave out those of another past"
            checked.note(each.file or MANIFEST, problem)
    left = journals.levels
    with (checked.directory / ACCOUNTS).open(encoding="utf-8") as file:
        number = 0
        while line := file.readline(MOST_LINE_CHARACTERS):
            number += 1
            try:
                left.discard(_check_level(checked, json.loads(line), journals.rebuilt))
            except (*_NO_ENTRY, KeyError, ParseError, RecursionError):
                checked.note(ACCOUNTS, f"line {number}: expected an account and its budget")
    for level in sorted(left):
        checked.note(ACCOUNTS, f"does not have {level.text}, which is in the journal")
    try:
        files = _FILES.validate_json((checked.directory / CONFIGURATION).read_bytes())
    except ValidationError:
        checked.note(CONFIGURATION, "expected files, each with kind, name and sha256")
        return
    given = [said for said in files if said.kind != METRICS]
    for said in given:
        _check_file(checked, said, journals.recorded)
    here = {(said.kind, said.name) for said in given}
    checked.recorded_elsewhere = len({(kind, name) for _, kind, name in journals.recorded} - here)


def _check_file(checked: Checked, file: _File, recorded: dict[tuple[str, str, str], str]) -> None:
    kind, name, sha256 = file.kind, file.name, file.sha256
    last = {root: digest for (root, *of), digest in recorded.items() if of == [kind, name]}
    for root, digest in last.items():
        problem = f"{name} is not what was recorded last as this {kind}, in the journal of {root}"
        checked.note(CONFIGURATION, problem if digest != sha256 else "")
    checked.recorded += bool(last)
    checked.not_recorded += not last


def _check_level(checked: Checked, line: Any, rebuilt: dict[str, Rebuilt]) -> Account:
    """Check one line, and return whose it is."""
    account, is_changed = Account(tuple(line["account"])), line["changed_meanwhile"]
    said = ParseDict(line.get("budget", {}), budget_pb2.GetBudgetResponse())
    own = [each for each in (*said.levels, *said.purposes) if tuple(each.path) == account.path]
    has_level = any(not each.purpose for each in own)
    if not has_level or is_changed or account.root not in rebuilt or any(map(_counts_otherwise, own)):
        checked.not_compared += 1
        return account
    checked.compared += 1
    journal = rebuilt[account.root]
    made_at = datetime.fromisoformat(checked.manifest.made_at) + timedelta(seconds=1)
    for level in own:
        counted = account.of_purpose(level.purpose) if level.purpose else account
        if not _is_within(level, journal.time, made_at + said.clock_ahead.ToTimedelta()):
            checked.note(ACCOUNTS, f"{counted.text} has a window that the export is not in")
        _check_spent(checked, counted, level, journal)
    return account


def _check_spent(checked: Checked, counted: Account, level: budget_pb2.Level, journal: Rebuilt) -> None:
    start = level.window_start.ToMicroseconds()
    spent = capped_sum(cost for day, cost in journal.spent.get(counted, {}).items() if day >= start)
    for unit, kept, sum_ in (
        ("information units", level.spent.information, spent.information),
        ("calls", level.spent.calls, spent.calls),
    ):
        if kept != sum_:
            problem = f"{counted.text} has spent {kept} {unit}, and {sum_} by the journal"
            checked.note(ACCOUNTS, problem)


def _is_within(level: budget_pb2.Level, newest: int, made_at: datetime) -> bool:
    """Return whether a level's window can be that of the export, which was made after the newest entry."""
    has_begun = level.window_start.ToDatetime(UTC) <= max(made_at, datetime_of(newest))
    return has_begun and (not level.HasField("window_end") or newest < level.window_end.ToMicroseconds())


def _counts_otherwise(level: budget_pb2.Level) -> bool:
    """Return whether what is spent is not the sum of the charges in the level's window."""
    return level.previous_currency or bool(level.remaining_of_blocks)
