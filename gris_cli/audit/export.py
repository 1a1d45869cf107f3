"""`gris audit export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag
from gris_cli.flag_groups import flag, required, with_flags
from gris_cli.flags import DEFAULT_BUDGET, BudgetFlag

NewDirectory = Annotated[
    Path,
    typer.Argument(metavar="DIRECTORY", help="The bundle: a directory that is not there yet, or is empty."),
]


@with_flags
def export(
    *,
    directory: NewDirectory,
    signing_key: Path = required("The private key that signs the bundle: Ed25519, PEM.", metavar="PEM"),
    root: str = flag("", "Only this root account.", metavar="NAME"),
    file: list[str] = flag(
        [],
        "A file that says what was in force; repeatable. KIND is policy, which is copied; budget or console, of "
        "which the digest is kept; access or gateway, of which that and who may do what is kept; or metrics, of which "
        "the counts of refusals are kept.",
        metavar="KIND=FILE",
    ),
    dp: str = flag(
        "", "The address of dp_service: state the guarantee of each account too.", metavar="ADDRESS"
    ),
    budget: BudgetFlag = DEFAULT_BUDGET,
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Write a signed bundle for an auditor: journals, checkpoints, budgets, and what configured and refused them."""
    from gris_audit.bundle import fresh_directory, sign
    from gris_audit.configuration import write_configuration
    from gris_cli.audit.collecting import Sources, collect
    from gris_cli.terminal import print_done, printable
    from gris_serving.key_files import KeyFileError, read_signing_key

    try:
        key = read_signing_key(signing_key)
    except KeyFileError as error:
        raise typer.BadParameter(f"--signing-key: {error}") from None
    with fresh_directory(directory) as folder:
        write_configuration(folder, file)
        manifest = collect(folder, Sources(admin=admin, budget=budget, dp=dp), root)
        entries = sum(each.entries for each in manifest.journals)
        sign(folder, key, manifest)
    done = f"wrote {printable(str(directory))}: {len(manifest.journals)} journals up to entry {entries} of all together"
    print_done(done, {"directory": str(directory), **manifest.model_dump()}, as_json=as_json)
