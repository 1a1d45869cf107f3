"""`gris check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import with_flags
from gris_cli.flags import OF_PINOT_FILES, ConnectionFlags
from gris_cli.inputs import file_errors
from gris_cli.policy.flags import DataFlags

if TYPE_CHECKING:
    from dp_service.queries.policy import PolicyFile

PARQUET_MAGIC = b"PAR1"


@with_flags
def check(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The policy file (YAML).")],
    flags: DataFlags,
    connection: Annotated[ConnectionFlags, OF_PINOT_FILES],
    as_json: bool,
) -> None:
    """Show every fault of a policy file with its line; of a valid one, what it allows, promises and leaves out.

    Exit code 1 if the data break a promise of the policy.
    """
    from gris_cli.clients import pinot_access
    from gris_cli.failures import EXIT_UNEXPECTED
    from gris_cli.policy.comparing import compared_with
    from gris_cli.policy.report import print_report

    found = _read_valid(file, as_json=as_json)
    compared = compared_with(found.policy, flags, pinot_access(connection))
    print_report(found, compared, as_json=as_json)
    if not all(promise.is_kept for promise in compared.promises):
        raise typer.Exit(EXIT_UNEXPECTED)


def _read_valid(file: Path, *, as_json: bool) -> PolicyFile:
    """Return a policy; print the faults of one that has some, which ends the command."""
    from dp_service.queries.errors import PolicyError
    from dp_service.queries.policy import read_policy
    from dp_service.releases.kinds import UnusableParametersError, require_usable
    from gris_cli.failures import EXIT_USAGE
    from gris_cli.policy.report import print_faults

    content = _content(file)
    try:
        found = read_policy(content, str(file))
        require_usable(found.policy)
    except PolicyError as error:
        faults = error.problems
    except UnusableParametersError as error:
        faults = (found.document.problem(("epsilon_per",), str(error)),)
    else:
        return found
    print_faults(faults, content, as_json=as_json)
    raise typer.Exit(EXIT_USAGE)


def _content(file: Path) -> bytes:
    """Return what a file holds, unless it is a table's."""
    with file_errors(file, "FILE"):
        content = file.read_bytes()
    if content.startswith(PARQUET_MAGIC):
        raise typer.BadParameter(
            f"FILE: {file} is a Parquet file, and a policy is YAML; gris draft --data {file} writes one "
            "for it"
        )
    return content
