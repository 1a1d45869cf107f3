"""`gris bound`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flags import JsonFlag

if TYPE_CHECKING:
    from gris_cli.bound.copying import Bounded, Bounding

LARGEST_DELTA_0 = 10**6


def bound(
    *,
    source: Annotated[
        Path, typer.Option("--input", metavar="FILE", dir_okay=False, help="The table: Parquet or CSV.")
    ],
    member: Annotated[str, typer.Option(metavar="COLUMN", help="The column of members.")],
    elements: Annotated[
        str, typer.Option(metavar="COLUMN[,COLUMN..]", help="The columns that make up an element.")
    ],
    delta_0: Annotated[
        int,
        typer.Option(
            "--delta0",
            min=1,
            max=LARGEST_DELTA_0,
            metavar="NUMBER",
            help="How many elements of a member are kept in each period.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", dir_okay=False, help="The Parquet file to write, or to replace.")
    ],
    table: Annotated[str, typer.Option(metavar="NAME", help="The table's name in the policy.")],
    period: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="A column that names the period of a row. Default: all rows are one period.",
        ),
    ] = "",
    drop_nulls: Annotated[
        bool, typer.Option("--drop-nulls", help="Leave out rows without member, element or period.")
    ] = False,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="How much memory may be used, about; the rest goes to disk.")
    ] = "2GB",
    as_json: JsonFlag = False,
) -> None:
    """Copy a table so that every member has at most so many elements, chosen fairly. For the owner of the data."""
    try:
        import duckdb  # noqa: F401, PLC0415 - an extra of its own
    except ModuleNotFoundError:
        raise typer.BadParameter("gris bound needs pip install 'gris-dp[dp,duckdb,cli]'") from None
    from gris_cli.bound.copying import Bounding, bounded_copy  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.bound.query_progress import query_progress  # noqa: PLC0415
    from gris_cli.bound.source import Columns, InputError  # noqa: PLC0415

    columns = Columns(member, tuple(elements.split(",")), period)
    asked = Bounding(table, columns, delta_0, drop_nulls, memory)
    if out.suffix != ".parquet":
        raise typer.BadParameter("expected a file named .parquet", param_hint="--out")
    try:
        with query_progress() as work:
            made = bounded_copy(source, out, asked, work=work)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--input") from None
    except OSError as error:
        raise typer.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from None
    _print(made, asked, out, as_json=as_json)


def _print(made: Bounded, asked: Bounding, out: Path, *, as_json: bool) -> None:
    from gris_cli.printing import console_of_width, print_json, say  # noqa: PLC0415
    from pinot_connector.json_values import to_json  # noqa: PLC0415

    if as_json:
        print_json({"written": str(out), "delta_0": asked.delta_0, **to_json(made)})
        return
    console = console_of_width()
    say(console, "written", str(out))
    say(console, "rows", f"{made.rows_kept} of {made.rows}; {made.rows_without_values} without a value")
    say(console, "pairs", f"{made.pairs_kept} of {made.pairs} ({_percent(made.pairs_kept, made.pairs)})")
    say(
        console,
        "members",
        f"{made.members}, of whom {made.members_bounded} had more than {asked.delta_0} elements",
    )
    say(console, "", "These are true counts: for the owner of the data, never for analysts.")


def _percent(share: int, whole: int) -> str:
    return f"{100 * share / whole:.1f} %" if whole else "none"
