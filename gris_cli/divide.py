"""`gris divide`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import file_errors, named_by


@with_flags
def divide(
    *,
    policy: Annotated[Path, typer.Argument(metavar="FILE", help="The policy file, with blocks.")],
    data: list[str] = flag(
        [],
        "A table's Parquet file or DuckDB database. Name all tables with blocks at once: a member's block is that of "
        "most of their rows in all of them. Repeatable.",
        metavar="TABLE=PATH",
    ),
    members: Path = flag(
        Path("members.parquet"),
        "Which block each member is of; kept, and added to. Begin another one with a new window of the budget.",
        metavar="FILE",
    ),
    out: Path = flag(Path("divided"), "Where TABLE.parquet is written for each table.", metavar="DIRECTORY"),
    as_json: bool,
) -> None:
    """Copy tables so that each member's rows are of one block of the policy; leave the others out. For the owner."""
    from gris_cli.clients import data_files
    from gris_cli.examples import locations_of
    from gris_cli.terminal import print_json, say
    from gris_data.policies import policy_of
    from gris_data.policy.blocks import divide as divided
    from pinot_connector.json_values import to_json

    files, found = data_files(locations_of(data)), policy_of(policy)
    wanted = {table.name for table in found.tables if table.block is not None}
    if not wanted:
        raise typer.BadParameter(f"expected a policy with blocks (docs/blocks.md), and {policy} has none")
    if other := files.keys() - wanted:
        raise typer.BadParameter(
            f"--data: expected tables with a block, {', '.join(sorted(wanted))}; got {sorted(other)[0]}"
        )
    with named_by("--data"), file_errors(out, "--out"):
        copies = divided(found, files, members, out)
    if as_json:
        print_json({"members": str(members), "written": str(out), "tables": to_json(copies)})
        return
    for each in copies:
        say("written", f"{out / each.table}.parquet: {each.rows_kept:,} of {each.rows:,} rows")
    if left := wanted - files.keys():
        say("not named", f"{', '.join(sorted(left))}: a member may be of another block there")
    say("members", f"{members}: keep it as long as the budget's window, and as private as the tables")
