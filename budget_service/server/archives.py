"""The files of archived journals: how entries are written, and whether they still have their digests.

A file has one line of JSON for each entry, and a last line with the number of all entries of the root up to there and
the digest of all of them. So the digest of a file continues that of the file before it. Of one whose entries are older
than archives keep them only the last line is left, from which the next file goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from budget_service.ledger.digests import digest
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account, Cost, Hold
from budget_service.ledger.verification import next_digest
from budget_service.ledger.windows import Microseconds
from budget_service.stores.mark_file import write_whole

SUFFIX = ".jsonl"
# How much of a root is in the names of its files. With all else they have at most 255 characters.
LONGEST_NAME = 120
# Characters of a digest.
NAMED_BY = 12
MAX_LINE_CHARACTERS = 2**20
"""No line is longer: an entry with the most and the longest blocks has some 100 kB."""

EMPTIED = "has no entries any more: they were older than archives keep them"
"""What is said of an archive that is emptied."""

# Written only where an entry has them.
_OF_ACTS = ("reason", "actor", "change")


class NoArchiveError(Exception):
    """A file is no archive, or not a whole one."""


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive by its last line: entries `first` to `last` of a root, and the digest of all up to the last.

    `time` is that of its newest entry. In an emptied one the first is the one after the last.
    """

    path: Path
    root: str
    first: int
    last: int
    digest: str
    time: Microseconds = field(default=0, compare=False)

    @property
    def is_emptied(self) -> bool:
        """Whether no entry is left."""
        return self.first > self.last


@dataclass(frozen=True, slots=True)
class CheckedArchive:
    """A file, what it says of itself, and what is wrong with it: nothing if `problem` is empty."""

    path: Path
    archive: Archive | None
    problem: str


def entry_line(entry: JournalEntry) -> str:
    """Return the line of an entry."""
    fields: dict[str, Any] = {
        "kind": entry.kind.value,
        "account": list(entry.account.path),
        "information": entry.cost.information,
        "calls": entry.cost.calls,
        "unit_id": entry.unit_id,
        "request_id": entry.request_id,
        "release_id": entry.release_id,
        "query_id": entry.query_id,
        "time": entry.time,
        "holds": [hold if hold.block else hold[:2] for hold in entry.holds],
    }
    if entry.policy_statement:
        fields["policy_statement"] = entry.policy_statement
    if entry.shared_cost is not None:
        fields["shared_cost"] = [entry.shared_cost.information, entry.shared_cost.calls]
    for name in _OF_ACTS:
        if text := getattr(entry, name):
            fields[name] = text
    return json.dumps(fields) + "\n"


def last_line(entries: int, last_digest: str, root: str = "") -> str:
    """Return the last line of a file; it names the `root` where no entry does."""
    named = {"root": root} if root else {}
    return json.dumps({**named, "entries": entries, "digest": last_digest}) + "\n"


def empty_before(time: Microseconds, folder: Path, root: str) -> int:
    """Remove the entries of all archives of a root that have none as new as a time; return how many archives.

    One that was changed stays, for who verifies the archives; so does one in the midst of which another one that stays
    begins, as after a crash. Files before the oldest may be elsewhere.

    Raises:
        OSError: A file cannot be written.
    """
    chain = Chain(archives_of(folder, root))
    whole = [each for each in chain.archives.values() if each.root == root and not each.is_emptied]
    stay = [
        each
        for each in whole
        if each.time >= time or chain.problem(each.path) not in ("", missing(root, each.first - 1))
    ]
    old = [
        each
        for each in whole
        if each not in stay and not any(each.first < other.first <= each.last for other in stay)
    ]
    for each in old:
        write_whole(each.path, last_line(each.last, each.digest, root))
    return len(old)


def read_archive(path: Path) -> Archive:
    """Return what a file says of itself. Raises NoArchiveError."""
    count, root, newest, end = 0, "", 0, None
    try:
        for _, line in _lines(path):
            if end is not None:
                raise NoArchiveError("has something after its last line")
            if "digest" in line:
                end = int(line["entries"]), str(line["digest"])
                root = root or str(line["root"])
            else:
                count, root, newest = count + 1, str(line["account"][0]), max(newest, int(line["time"]))
    except (KeyError, TypeError, ValueError, IndexError):
        raise NoArchiveError("has a line that is no entry") from None
    if end is None or not 0 <= count <= end[0] or not end[0]:
        raise NoArchiveError("is no archive, or not a whole one")
    last, last_digest = end
    return Archive(path, root, last - count + 1, last, last_digest, newest)


def read_entries(path: Path) -> Iterator[JournalEntry]:
    """Give the entries of a file. Raises NoArchiveError."""
    for text, line in _lines(path):
        if "digest" not in line:
            yield _entry(text, line)


class Chain:
    """Files whose entries continue one another's, and so their digests, which are made once for each file.

    After a crash a file may begin with entries that the one before it has too; after a restore there may be files of
    several pasts.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self.archives: dict[Path, Archive] = {}
        self._problems: dict[Path, str] = {}
        for path in paths:
            try:
                self.archives[path] = read_archive(path)
            except NoArchiveError as error:
                self._problems[path] = str(error)
        self._points = {(each.root, each.first - 1) for each in self.archives.values()}
        self._within: dict[Path, dict[int, frozenset[str]]] = {}

    def digests(self, root: str, number: int) -> frozenset[str]:
        """Return the digest of all entries up to a point: several of several pasts, none where it is not known."""
        if not number:
            return frozenset(("",))
        files = self._of(root)
        ends = {each.digest for each in files if each.last == number}
        within = (
            self._followed(each).get(number, frozenset())
            for each in files
            if each.first <= number < each.last
        )
        return frozenset(ends).union(*within)

    def problem(self, path: Path) -> str:
        """Return what is wrong with a file: nothing if its entries have the digest that it ends with."""
        if path not in self._problems:
            self._followed(self.archives[path])
        return self._problems[path]

    def _of(self, root: str) -> list[Archive]:
        return [each for each in self.archives.values() if each.root == root]

    def _followed(self, archive: Archive) -> dict[int, frozenset[str]]:
        """Read a file, note its problem, and return the digests at the points within."""
        if (found := self._within.get(archive.path)) is None:
            found = self._within[archive.path] = {}
            try:
                self._problems[archive.path] = self._follow(archive, found)
            except NoArchiveError as error:
                self._problems[archive.path] = str(error)
            except (AttributeError, TypeError, ValueError):
                self._problems[archive.path] = "has a line that is no entry"
        return found

    def _follow(self, archive: Archive, found: dict[int, frozenset[str]]) -> str:
        root, digests = archive.root, self.digests(archive.root, archive.first - 1)
        for number, entry in enumerate(read_entries(archive.path), archive.first):
            digests = frozenset(next_digest(each, entry) for each in digests)
            if (root, number) in self._points:
                found[number] = digests
        if not digests:
            return missing(root, archive.first - 1)
        return "" if archive.digest in digests else "has entries that do not have its digest"


def missing(root: str, number: int) -> str:
    """Return what is wrong where no file tells the digest of the entries up to one."""
    return f"needs the file that ends with entry {number} of {root}"


def check_archives(paths: Sequence[Path]) -> list[CheckedArchive]:
    """Check that the entries of each file have the digest that it ends with, continued from the file before it."""
    chain = Chain(paths)
    return [CheckedArchive(each, chain.archives.get(each), chain.problem(each)) for each in paths]


def archives_of(folder: Path, root: str) -> list[Path]:
    """Return the files of a folder that are named for a root."""
    return sorted(folder.glob(f"{name_of(root)}.*-*.*{SUFFIX}"))


def name_of(root: str) -> str:
    """Return what the names of a root's files begin with; other roots have others."""
    name = quote(root, safe="")
    if len(name) <= LONGEST_NAME:
        return name
    # Escaped, it may be three times as long as the root, and longer than a file's name may be.
    return f"{name[:LONGEST_NAME]}~{digest((root.encode(),))[:NAMED_BY]}"


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8") as file:
            while text := file.readline(MAX_LINE_CHARACTERS):
                line = json.loads(text)
                if not isinstance(line, dict):
                    raise NoArchiveError("is no archive")
                yield text, line
    except OSError as error:
        raise NoArchiveError(f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise NoArchiveError("is no archive, or not a whole one") from None


def _entry(text: str, line: dict[str, Any]) -> JournalEntry:
    """Return the entry of a line, which has to be the one that is written for it.

    A digest is over texts without their types: an act could be moved into the holds of another, under the same digest.
    """
    try:
        shared = line.get("shared_cost")
        found = JournalEntry(
            kind=EntryKind(line["kind"]),
            account=Account.parse(line["account"], "account"),
            cost=Cost(line["information"], line["calls"]),
            unit_id=line["unit_id"],
            request_id=line["request_id"],
            release_id=line["release_id"],
            query_id=line["query_id"],
            time=line["time"],
            holds=tuple(Hold(*each) for each in line["holds"]),
            policy_statement=line.get("policy_statement", ""),
            shared_cost=None if shared is None else Cost(*shared),
            **{name: line.get(name, "") for name in _OF_ACTS},
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise NoArchiveError("has a line that is no entry") from None
    numbers = (found.time, *(number for hold in found.holds for number in hold[:2]))
    if entry_line(found) != text or any(type(each) is not int for each in numbers):
        raise NoArchiveError("has a line that no ledger writes")
    return found
