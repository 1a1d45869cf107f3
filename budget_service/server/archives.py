"""The files of archived journals: how entries are written, and whether they still have their digests.

A file has one line of JSON for each entry, and a last line with the number of all entries of the root up to there and
the digest of all of them. So the digest of a file continues that of the file before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from budget_service.ledger.digests import digest
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account, Cost, Hold
from budget_service.ledger.verification import next_digest

SUFFIX = ".jsonl"
# How much of a root is in the names of its files. With all else they have at most 255 characters.
LONGEST_NAME = 120
# Characters of a digest.
NAMED_BY = 12
MAX_LINE_CHARACTERS = 2**20
"""No line is longer: an entry with the most and the longest blocks has some 100 kB."""

# Written only where an entry has them.
_OF_ACTS = ("reason", "actor", "change")


class NoArchiveError(Exception):
    """A file is no archive, or not a whole one."""


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive by its last line: entries `first` to `last` of a root, and the digest of all up to the last."""

    path: Path
    root: str
    first: int
    last: int
    digest: str


@dataclass(frozen=True, slots=True)
class Checked:
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


def last_line(entries: int, last_digest: str) -> str:
    """Return the last line of a file."""
    return json.dumps({"entries": entries, "digest": last_digest}) + "\n"


def read_archive(path: Path) -> Archive:
    """Return what a file says of itself. Raises NoArchiveError."""
    count, root, end = 0, "", None
    try:
        for _, line in _lines(path):
            if end is not None:
                raise NoArchiveError("has something after its last line")
            if "digest" in line:
                end = int(line["entries"]), str(line["digest"])
            else:
                count, root = count + 1, str(line["account"][0])
    except (KeyError, TypeError, ValueError, IndexError):
        raise NoArchiveError("has a line that is no entry") from None
    if end is None or not count:
        raise NoArchiveError("is no archive, or not a whole one")
    last, last_digest = end
    return Archive(path, root, last - count + 1, last, last_digest)


def readable(paths: Iterable[Path]) -> list[Archive]:
    """Return those of some files that are archives."""
    found: list[Archive] = []
    for path in paths:
        with suppress(NoArchiveError):
            found.append(read_archive(path))
    return found


def digests_before(root: str, first: int, others: Sequence[Archive]) -> frozenset[str]:
    """Return the digest of the entries before the `first`, by other files; several, if they are of several pasts.

    After a crash a file may begin with entries that the one before it has too.
    """
    if first == 1:
        return frozenset(("",))
    own = [each for each in others if each.root == root]
    ends = {each.digest for each in own if each.last == first - 1}
    within = (each for each in own if each.first < first <= each.last)
    return frozenset(ends).union(*(_digests_within(each, first, own) for each in within))


def _digests_within(archive: Archive, first: int, others: Sequence[Archive]) -> set[str]:
    before = digests_before(archive.root, archive.first, others)
    return {digest_of(archive.path, each, most=first - archive.first) for each in before}


def digest_of(path: Path, before: str, *, skip: int = 0, most: int | None = None) -> str:
    """Return the digest of a file's entries, without the first `skip` or up to `most`, after others with `before`."""
    last = before
    for entry in islice(read_entries(path), skip, most):
        last = next_digest(last, entry)
    return last


def read_entries(path: Path) -> Iterator[JournalEntry]:
    """Give the entries of a file. Raises NoArchiveError."""
    for text, line in _lines(path):
        if "digest" not in line:
            yield _entry(text, line)


def check_archives(paths: Iterable[Path]) -> list[Checked]:
    """Check that the entries of each file have the digest that it ends with, continued from the file before it."""
    wanted = list(paths)
    archives = readable(wanted)
    return [_checked(each, archives) for each in wanted]


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


def _checked(path: Path, archives: Sequence[Archive]) -> Checked:
    try:
        found = read_archive(path)
        others = [each for each in archives if each.path != path]
        before = digests_before(found.root, found.first, others)
        is_right = any(digest_of(path, each) == found.digest for each in before)
    except NoArchiveError as error:
        return Checked(path, None, str(error))
    except (AttributeError, TypeError, ValueError):
        return Checked(path, None, "has a line that is no entry")
    if not before:
        return Checked(path, found, f"needs the file that ends with entry {found.first - 1} of {found.root}")
    return Checked(path, found, "" if is_right else "has entries that do not have its digest")


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
