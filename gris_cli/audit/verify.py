"""`gris audit verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.budget.flags import UNSOUND
from gris_cli.flag_groups import flag, required, with_flags

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Directory = Annotated[Path, typer.Argument(metavar="DIRECTORY", help="The bundle.")]


@with_flags
def verify(
    *,
    directory: Directory,
    public_key: Path = required("The public key of who signs bundles: Ed25519, PEM.", metavar="PEM"),
    archive: list[Path] = flag(
        [],
        "A file of entries that were archived before the first one of the bundle; repeatable.",
        metavar="FILE",
    ),
    without_archives: bool = flag(False, "Accept that archived entries are missing."),
    before: Path | None = flag(
        None, "An earlier bundle, whose journals have to be the beginning of these.", metavar="DIRECTORY"
    ),
    before_key: Path | None = flag(
        None, "The public key of who signed the earlier bundle, if that is another one.", metavar="PEM"
    ),
    policy_signer: list[Path] = flag(
        [],
        "The public key of who signs policies; then each policy of the bundle has to be signed by one of them, as for "
        "dp_service. Repeatable.",
        metavar="PEM",
    ),
    as_json: bool,
) -> None:
    """Verify a bundle offline: signature, files, digests of journals, and sums. Exit code 1 if anything is wrong."""
    from dp_service.server.policy_signatures import PolicySigners
    from gris_audit.checking import check
    from gris_cli.audit.reports import facts, sheets
    from gris_cli.sheets import print_sheets

    key = _read("--public-key", public_key)
    if before_key is not None and before is None:
        raise typer.BadParameter("--before-key says whose signature an earlier bundle has: --before names it")
    earlier = None if before is None else (before, _read("--before-key", before_key) if before_key else key)
    signers = PolicySigners(tuple([_read("--policy-signer", each) for each in policy_signer]))
    checked = check(directory, key, archive, earlier, without_archives=without_archives, signers=signers)
    print_sheets(sheets(checked), facts(checked), as_json=as_json)
    if checked.problems:
        raise typer.Exit(UNSOUND)


def _read(option: str, path: Path) -> Ed25519PublicKey:
    from gris_serving.key_files import KeyFileError, read_public_key

    try:
        return read_public_key(path)
    except KeyFileError as error:
        raise typer.BadParameter(f"{option}: {error}") from None
