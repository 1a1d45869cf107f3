"""Verifies a bundle offline: the signature first, then every file, then what the files say.

What is read is what the manifest names, of the size and the digest that it has, and nothing of it is believed before
the signature.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import ValidationError

from budget_service.server.archives import EMPTIED, Archive, Chain, missing
from dp_service.server.policy_signatures import ANYBODY, PolicySigners
from gris_audit.bundle import (
    ACCOUNTS,
    CONFIGURATION,
    LABEL,
    MANIFEST,
    NAMES,
    REFUSALS,
    SERVICE,
    SIGNATURE,
    HashedFile,
    Manifest,
    hashed,
)
from gris_audit.checked import Checked
from gris_audit.contents import check_contents
from gris_audit.statements import check_service

EXPECTED = (ACCOUNTS, NAMES, SERVICE, CONFIGURATION, REFUSALS)
MOST_MANIFEST_BYTES = 64 * 2**20


def check(
    directory: Path,
    key: Ed25519PublicKey,
    archives: Sequence[Path] = (),
    before: tuple[Path, Ed25519PublicKey] | None = None,
    *,
    without_archives: bool = False,
    signers: PolicySigners = ANYBODY,
) -> Checked:
    """Verify a bundle.

    Args:
        directory: The bundle.
        key: The public key of who signs bundles.
        archives: Files of archived journals.
        before: An earlier bundle of the same ledger, and the public key of who signed that.
        without_archives: Entries before the first one of the bundle may be missing.
        signers: Who signs policies, if the bundle has to have some, all signed by them.
    """
    checked = _check_files(directory, key)
    checked.signers = signers
    earlier = None if before is None else _check_files(*before)
    if earlier is not None:
        for file, problem in earlier.problems:
            checked.note(f"before: {file}", problem)
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
    folder_before = None if earlier is None else earlier.directory
    _check_chain(checked, chain, folder_before, without_archives=without_archives)
    if earlier is not None:
        _check_earlier(checked, earlier.manifest, chain)
    if not checked.problems:
        check_contents(checked, chain)
        check_service(checked)
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


def _check_chain(checked: Checked, chain: Chain, before: Path | None, *, without_archives: bool) -> None:
    """Check that the entries of every file have its digest, and the checkpoints."""
    own = _journal_files(checked)
    for path in chain.paths:
        name = f"before: {path.name}" if path.parent == before else path.name
        problem = chain.problem(path)
        if not problem and chain.archives[path].is_emptied and not without_archives:
            problem = EMPTIED
        checked.note(name, problem)
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
    if (earlier.made_at, earlier.journals) == (checked.manifest.made_at, checked.manifest.journals):
        checked.note(MANIFEST, "is that of the earlier bundle itself: expected one that was made before")
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
