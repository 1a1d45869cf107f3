"""`gris audit verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gris_cli.budget.flags import UNSOUND
from gris_cli.flag_groups import flag, required, with_flags

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
    as_json: bool,
) -> None:
    """Verify a bundle offline: signature, files, digests of journals, and sums. Exit code 1 if anything is wrong."""
    from gris_cli.audit.checking import check
    from gris_cli.audit.reports import facts, sheets
    from gris_cli.sheets import print_sheets
    from gris_serving.key_files import KeyFileError, read_public_key

    try:
        key = read_public_key(public_key)
    except KeyFileError as error:
        raise typer.BadParameter(f"--public-key: {error}") from None
    checked = check(directory, key, archive, before, without_archives=without_archives)
    print_sheets(sheets(checked), facts(checked), as_json=as_json)
    if checked.problems:
        raise typer.Exit(UNSOUND)
