"""Verifies a bundle offline: the signature first, then every file, then what the files say.

What is read is what the manifest names, of the size and the digest that it has, and nothing of it is believed before
the signature. Entries are read one at a time; what is kept of them are sums by level and day.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from google.protobuf.json_format import ParseDict, ParseError
from gris_api.budget.v1 import budget_pb2
from pydantic import ValidationError

from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, capped_sum
from budget_service.ledger.verification import Rebuilt
from budget_service.server.archives import (
    Archive,
    NoArchiveError,
    check_archives,
    digest_of,
    digests_before,
    read_entries,
    readable,
)
from gris_cli.audit.bundle import (
    ACCOUNTS,
    CONFIGURATION,
    LABEL,
    MANIFEST,
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
_NO_ENTRY = (AttributeError, IndexError, NoArchiveError, TypeError, ValueError)


@dataclass
class Checked:
    """What was found: problems, each with the file it is in, and the manifest, if it can be believed."""

    directory: Path
    manifest: Manifest = NO_MANIFEST
    problems: list[tuple[str, str]] = field(default_factory=list)
    compared: int = 0
    not_compared: int = 0

    def note(self, file: str, problem: str) -> None:
        """Keep a problem."""
        self.problems.append((file, problem))


def check(
    directory: Path,
    key: Ed25519PublicKey,
    archives: Sequence[Path] = (),
    before: Path | None = None,
    *,
    without_archives: bool = False,
) -> Checked:
    """Verify a bundle.

    Args:
        directory: The bundle.
        key: The public key of who signs bundles.
        archives: Files of archived journals.
        before: An earlier bundle of the same ledger.
        without_archives: Entries before the first one of the bundle may be missing.
    """
    checked = _check_files(directory, key)
    earlier = None if before is None else _check_files(before, key)
    if earlier is not None:
        for file, problem in earlier.problems:
            checked.note(f"--before: {file}", problem)
    if checked.problems:
        return checked
    paths = [*archives, *([] if earlier is None else _journal_files(earlier))]
    chains = _Chains(checked, readable([*_journal_files(checked), *paths]), without_archives)
    chains.check(paths)
    if earlier is not None:
        chains.check_earlier(earlier.manifest)
    if not checked.problems:
        chains.check_sums()
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


@dataclass
class _Chains:
    """The journals of a bundle with all files that continue them to the past."""

    checked: Checked
    files: Sequence[Archive]
    without_archives: bool

    def check(self, others: Sequence[Path]) -> None:
        """Check that the entries of every file have its digest, and the checkpoints."""
        for each in check_archives([*_journal_files(self.checked), *others]):
            journal = next(
                (one for one in self.checked.manifest.journals if one.file == each.path.name), None
            )
            is_own = each.path.parent == self.checked.directory and journal is not None
            if each.problem and not (is_own and each.archive and self._begins_later(journal)):
                self.checked.note(each.path.name, each.problem)
        for journal in self.checked.manifest.journals:
            self._check_journal(journal)

    def _begins_later(self, journal: Journal | None) -> bool:
        return journal is not None and not digests_before(journal.root, journal.first, self.files)

    def _check_journal(self, journal: Journal) -> None:
        name, note = journal.file or MANIFEST, self.checked.note
        said = (journal.root, journal.first, journal.entries, journal.digest)
        own = [each for each in self.files if each.path == self.checked.directory / journal.file]
        if journal.file and [(each.root, each.first, each.last, each.digest) for each in own] != [said]:
            note(name, f"is not the journal of {journal.root} that {MANIFEST} describes")
        elif self._begins_later(journal):
            self._check_later(journal, name)
        else:
            for number, digest, what in (
                (journal.checkpoint_entries, journal.checkpoint_digest, "its checkpoint"),
                (journal.entries, journal.digest, "what its archives end with"),
            ):
                self.check_point(journal, number, digest, what)

    def _check_later(self, journal: Journal, name: str) -> None:
        """Check a journal of which the entries before are missing by its checkpoint, if that ends with them."""
        missing = (
            f"entries 1 to {journal.first - 1} of {journal.root} are missing: they were archived (--archive)"
        )
        # So many of the file's entries are covered by the checkpoint.
        covered = journal.checkpoint_entries - journal.first + 1
        if not self.without_archives:
            self.checked.note(name, missing)
        elif not 0 <= covered <= journal.entries - journal.first + 1:
            self.checked.note(name, "begins behind its checkpoint; expected at most the next entry")
        elif self._digest_behind(journal, covered) != journal.digest:
            self.checked.note(name, "has entries that do not have its digest")

    def _digest_behind(self, journal: Journal, covered: int) -> str:
        if not journal.file:
            return journal.checkpoint_digest
        return digest_of(self.checked.directory / journal.file, journal.checkpoint_digest, skip=covered)

    def check_point(self, journal: Journal, number: int, digest: str, what: str) -> None:
        """Check the digest of the entries up to one."""
        if number and digests_before(journal.root, number + 1, self.files) != {digest}:
            problem = (
                f"{what} at entry {number} of {journal.root} has another digest than its entries up to there"
            )
            self.checked.note(journal.file or MANIFEST, problem)

    def check_earlier(self, earlier: Manifest) -> None:
        """Check that the journals of an earlier bundle are the beginning of these."""
        later = {each.root: each for each in self.checked.manifest.journals}
        for each in earlier.journals:
            journal = later.get(each.root)
            if journal is None or journal.entries < each.entries:
                number = 0 if journal is None else journal.entries
                problem = f"has {number} entries of {each.root}, and the earlier bundle {each.entries}"
                self.checked.note(MANIFEST, problem)
            elif self._begins_later(journal):
                problem = (
                    f"begins at entry {journal.first} of {each.root}: nothing ties it to the earlier bundle"
                )
                self.checked.note(journal.file or MANIFEST, problem)
            else:
                self.check_point(journal, each.entries, each.digest, "the earlier bundle's end")

    def check_sums(self) -> None:
        """Compare what the ledger said of each level with the sum of its charges."""
        rebuilt = {
            each.root: self._rebuilt(each)
            for each in self.checked.manifest.journals
            if not self._begins_later(each)
        }
        # Accounts of which all entries are archived are in no bundle.
        own = (entry for path in _journal_files(self.checked) for entry in read_entries(path))
        left = {level for entry in own for level in entry.account.levels}
        path = self.checked.directory / ACCOUNTS
        with path.open(encoding="utf-8") as file:
            number = 0
            while line := file.readline(MOST_LINE_CHARACTERS):
                number += 1
                try:
                    left.discard(self._check_level(json.loads(line), rebuilt))
                except (ValueError, KeyError, TypeError, AttributeError, ParseError, RecursionError):
                    self.checked.note(ACCOUNTS, f"line {number}: expected an account and its budget")
        for level in sorted(left):
            self.checked.note(ACCOUNTS, f"does not have {level.text}, which is in the journal")

    def _rebuilt(self, journal: Journal) -> Rebuilt:
        rebuilt = Rebuilt()
        try:
            for entry in self._entries(journal):
                rebuilt.add(entry)
        except _NO_ENTRY:
            self.checked.note(journal.file, "has an entry that no ledger can have")
        return rebuilt

    def _entries(self, journal: Journal) -> Iterator[JournalEntry]:
        """Give all entries of a root, each once: files may overlap after a crash."""
        number = 1
        while number <= journal.entries:
            file = next(
                each for each in self.files if each.root == journal.root and each.first <= number <= each.last
            )
            yield from islice(read_entries(file.path), number - file.first, None)
            number = file.last + 1

    def _check_level(self, line: Any, rebuilt: dict[str, Rebuilt]) -> Account:
        """Check one line, and return whose it is."""
        account, is_changed = Account(tuple(line["account"])), line["changed_meanwhile"]
        said = ParseDict(line.get("budget", {}), budget_pb2.GetBudgetResponse())
        level = next((each for each in said.levels if tuple(each.path) == account.path), None)
        if level is None or is_changed or account.root not in rebuilt or _counts_otherwise(level):
            self.checked.not_compared += 1
            return account
        self.checked.compared += 1
        start = level.window_start.ToMicroseconds()
        spans = rebuilt[account.root].spent.get(account, {})
        spent = capped_sum(cost for day, cost in spans.items() if day >= start)
        for unit, kept, sum_ in (
            ("information units", level.spent.information, spent.information),
            ("calls", level.spent.calls, spent.calls),
        ):
            if kept != sum_:
                problem = f"{account.text} has spent {kept} {unit}, and {sum_} by the journal"
                self.checked.note(ACCOUNTS, problem)
        return account


def _counts_otherwise(level: budget_pb2.Level) -> bool:
    """Return whether what is spent is not the sum of the charges in the level's window."""
    return level.previous_currency or bool(level.remaining_of_blocks)
