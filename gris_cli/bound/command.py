"""`gris bound`."""

from __future__ import annotations

from gris_cli.bound.flags import BoundedFlags, EngineFlags, SourceFlags
from gris_cli.flag_groups import with_flags


@with_flags
def bound(
    *,
    source: SourceFlags,
    copy: BoundedFlags,
    engine: EngineFlags,
    as_json: bool,
) -> None:
    """Copy a table, bounded: with at most so many elements of every member. For the owner of the data."""
    from gris_cli.bound.bounded_copy import make_bounded

    make_bounded(source, copy, engine, as_json=as_json)
