"""`gris policy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flags import JsonFlag

app = typer.Typer()


@app.callback()
def policy() -> None:
    """Look at a policy file before it is served."""


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The policy file (YAML).")],
    as_json: JsonFlag = False,
) -> None:
    """Tell every fault of a policy file with its line; of a sound one, what it allows, promises and leaves out."""
    from dp_service.queries.errors import PolicyError  # noqa: PLC0415 - `gris --help` should be quick
    from dp_service.queries.policy import read_policy  # noqa: PLC0415
    from dp_service.releases.mechanism import UnusableParametersError, require_usable  # noqa: PLC0415
    from gris_cli.failures import EXIT_USAGE  # noqa: PLC0415
    from gris_cli.policy_report import print_faults, print_report  # noqa: PLC0415

    try:
        content = file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="FILE") from None
    try:
        found = read_policy(content, str(file))
        require_usable(found.policy)
    except PolicyError as error:
        print_faults(error.problems, content, as_json=as_json)
        raise typer.Exit(EXIT_USAGE) from None
    except UnusableParametersError as error:
        print_faults((found.document.problem(("epsilon_per",), str(error)),), content, as_json=as_json)
        raise typer.Exit(EXIT_USAGE) from None
    print_report(found, as_json=as_json)
