"""`gris bound`."""

from __future__ import annotations

from pathlib import Path

import typer

from gris_cli.bound.flags import BoundedFlags, EngineFlags, PairsFlags, SourceFlags
from gris_cli.flag_groups import flag, with_flags


@with_flags
def bound(
    *,
    source: SourceFlags,
    copy: BoundedFlags,
    folder: Path | None = flag(
        None,
        "Make the pairs copy instead, or append to it: a row for each member, element and period.",
        "--pairs",
        metavar="DIRECTORY",
    ),
    pairs: PairsFlags,
    engine: EngineFlags,
    as_json: bool,
) -> None:
    """Copy a table: bounded, with at most so many elements of every member, or as pairs. For the owner of the data."""
    from gris_cli.bound.bounded_copy import make_bounded
    from gris_cli.bound.pairs_copy import make_pairs

    if (folder is None) == (not copy.out):
        raise typer.BadParameter("expected one of --out, the bounded copy, and --pairs, the pairs copy")
    if folder is None:
        if pairs != PairsFlags():
            raise typer.BadParameter(
                "expected --attributes, --null-member, --first-attributes, --new-periods-only and --until only with "
                "--pairs"
            )
        make_bounded(source, copy, engine, as_json=as_json)
        return
    if copy.delta_0 is not None or copy.drop_nulls or not source.calendar:
        raise typer.BadParameter("expected --calendar, and neither --delta0 nor --drop-nulls, with --pairs")
    make_pairs(source, folder, pairs, engine, as_json=as_json)
