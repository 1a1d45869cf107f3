"""A bundle for auditors: a folder whose manifest has the digest of every file, and a signature of the manifest.

The journal of each root is a file as archives are (`budget_service.server.archives`). The signature is Ed25519 over
`LABEL` and the content of the manifest, so that no other signature of the same key passes for one of a bundle.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, TextIO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import Field

from gris_data.errors import InputError
from gris_data.private_files import PRIVATE, PRIVATE_DIRECTORY, flush, write_new
from gris_serving.documents import Strict

LABEL = b"gris audit bundle 1\0"
MANIFEST = "manifest.json"
SIGNATURE = f"{MANIFEST}.sig"
ACCOUNTS = "accounts.jsonl"
NAMES = "names.jsonl"
SERVICE = "service.json"
CONFIGURATION = "configuration.json"
GUARANTEES = "guarantees.jsonl"
REFUSALS = "refusals.json"
METRICS = "metrics"
"""The kind of files that say what was refused; by files of the other kinds services decide."""
MOST_LINE_BYTES = 16 * 2**20
"""No line about an account is longer."""

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=0, lt=2**63)]


class HashedFile(Strict):
    """The size of a file and the SHA-256 of its content."""

    size: Number
    sha256: Digest


class Journal(Strict):
    """The journal of a root: entries `first` to `entries` are in `file`, which is empty where all are archived.

    `digest` is that of all entries from the first one ever, and the checkpoint's of those that it covers.
    """

    root: str
    file: str
    first: Number
    entries: Number
    digest: Digest | Literal[""]
    checkpoint_entries: Number
    checkpoint_digest: Digest | Literal[""]


class Manifest(Strict):
    """What a bundle holds, who has made it (as the ledger has authenticated them) and when."""

    format: Literal["gris-audit-1"]
    gris: str
    made_at: Annotated[str, Field(pattern=r"^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$")]
    made_by: str
    every_root: bool
    journals: list[Journal]
    files: dict[str, HashedFile]


NO_MANIFEST = Manifest.model_construct(
    format="gris-audit-1", gris="", made_at="", made_by="", every_root=False, journals=[], files={}
)
"""That of a bundle which cannot be believed."""


def opened(path: Path) -> TextIO:
    """Open a file of the bundle to write more into it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, PRIVATE), "a", encoding="utf-8")


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Give the lines of a file of the bundle with their numbers; nothing says yet that they are text."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MOST_LINE_BYTES):
            number += 1
            yield number, line


def hashed(path: Path) -> HashedFile:
    """Return size and digest of a regular file; what a link leads to is not read. Raises OSError."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return HashedFile(size=file.tell(), sha256=digest)


@contextmanager
def fresh_directory(target: Path) -> Iterator[Path]:
    """Give an empty folder beside `target`, which gets that name in the end; after an error nothing is left of it.

    Raises:
        InputError: `target` is there and not empty, or cannot be written.
    """
    try:
        if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
            raise InputError(f"{target} is there: expected a directory that is not, or an empty one")
        target = target.resolve()
        beside = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
        beside.mkdir(mode=PRIVATE_DIRECTORY)
        try:
            yield beside
            flush(beside)
            beside.rename(target)
            flush(target.parent)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise InputError(f"{target}: {error.strerror}") from None


def sign(folder: Path, key: Ed25519PrivateKey, manifest: Manifest) -> None:
    """Write the manifest of a bundle whose files are all written, and last its signature."""
    content = (manifest.model_dump_json(indent=1) + "\n").encode()
    write_new(folder / MANIFEST, content)
    for each in folder.iterdir():
        flush(each)
    write_new(folder / SIGNATURE, key.sign(LABEL + content))
    flush(folder / SIGNATURE)
