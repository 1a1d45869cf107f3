"""`gris domain inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flag_groups import flag, with_flags


@with_flags
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A domain file.")],
    *,
    policy: Path | None = flag(None, "A policy, to state the price in its currency.", metavar="FILE"),
    elements: bool = flag(False, "List the elements too."),
    as_json: bool,
) -> None:
    """Show what a domain file holds and what it cost, and check that it is intact."""
    from gris_cli.data.domain.publishing_flow import inspected
    from gris_cli.domain.reports import print_domain

    made = inspected(file, policy)
    print_domain(made.domain, made.price, made.integrity, as_json=as_json, lists_elements=elements)
