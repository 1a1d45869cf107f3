"""The bounded copy of `gris bound --out`."""

from __future__ import annotations

from pathlib import Path

import typer

from gris_cli.bound.flags import BoundedFlags, EngineFlags, SourceFlags
from gris_cli.bound.query_progress import query_progress
from gris_cli.data.bound.bounded_copies import Bounded, BoundedCopyRequest
from gris_cli.data.bound.on_duckdb import bounded_copy
from gris_cli.inputs import file_errors, named_by
from gris_cli.terminal import print_json, say
from pinot_connector.json_values import to_json

TRUE_COUNTS = "These are true counts: for the owner of the data, never for analysts."


def make_bounded(source: SourceFlags, copy: BoundedFlags, engine: EngineFlags, *, as_json: bool) -> None:
    """Make a bounded copy, and print what was done."""
    columns, url = source.columns(), engine.url()
    asked = BoundedCopyRequest(source.table, columns, copy.typical, copy.drop_nulls, engine.memory)
    with named_by("--input"):
        made = _made(source.source, copy.out, asked, url)
    if as_json:
        print_json({"written": copy.out, "typical": asked.typical, **to_json(made)})
        return
    say("written", copy.out)
    say("rows", f"{made.rows}; {made.rows_without_values} without a value")
    say("written", f"{made.pairs} pairs of member and element, with a weight")
    say("members", f"{made.members}, of whom {made.members_bounded} count with less than 1 in each element")
    say("", TRUE_COUNTS)


def _made(source: str, out: str, asked: BoundedCopyRequest, url: str | None) -> Bounded:
    if url is not None:
        from gris_cli.data.bound.on_spark import bounded_copy_on_spark

        return bounded_copy_on_spark(source, out, asked, url)
    if Path(out).suffix != ".parquet":
        raise typer.BadParameter("--out: expected a file named .parquet")
    with file_errors(out, "--out"), query_progress() as work:
        return bounded_copy(Path(source), Path(out), asked, work=work)
