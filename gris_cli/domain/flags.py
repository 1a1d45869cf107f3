"""The flags that commands of `gris domain` share, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gris_cli.flag_groups import flag
from gris_cli.inputs import number

if TYPE_CHECKING:
    from dp_service.partitions import Method

TYPICAL = 100
ITERATIONS = 3

MemberFlag = Annotated[str, typer.Option(help="The column of members.")]
TypicalFlag = Annotated[
    int,
    typer.Option("--typical", metavar="NUMBER", help="How many elements of a member count in each round."),
]


def delta_flag(default: str) -> Any:
    """Return the flag of a delta; `default` is what its help shows."""
    return number("The probability that the guarantee fails for a member.", default=default)


@dataclass(frozen=True)
class RowsFlags:
    """Which rows of a source are read."""

    source_table: str = flag("", "The table of a DuckDB database.")
    drop_nulls: bool = flag(False, "Leave out rows without member or element.")


def method_of(name: str) -> Method:
    """Return the method of that name."""
    from dp_service.partitions import Method

    if name not in list(Method):
        raise typer.BadParameter(f"--method expects one of {', '.join(Method)}")
    return Method(name)
