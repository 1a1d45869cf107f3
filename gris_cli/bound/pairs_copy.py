"""The pairs copy of `gris bound --pairs`."""

from __future__ import annotations

import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import typer

from dp_service.queries.times import Refresh, first_day
from gris_cli.bound.bounded_copy import TRUE_COUNTS
from gris_cli.bound.flags import EngineFlags, PairsFlags, SourceFlags
from gris_cli.bound.query_progress import query_progress
from gris_cli.inputs import file_errors, named_by
from gris_cli.terminal import print_json, say
from gris_data.bound.pairs_folder import PairsMade
from gris_data.bound.pairs_on_duckdb import pairs_copy
from gris_data.bound.pairs_source import PairsCopyRequest, require_unbounded
from pinot_connector.json_values import to_json


def make_pairs(
    source: SourceFlags, folder: Path, flags: PairsFlags, engine: EngineFlags, *, as_json: bool
) -> None:
    """Make a pairs copy, or append to it, and print what was done."""
    columns, url = source.columns(), engine.url()
    until = _until(flags.until, Refresh(columns.calendar), columns.zone or "UTC")
    asked = PairsCopyRequest(
        source.table,
        columns,
        tuple(flags.attributes.split(",")) if flags.attributes else (),
        flags.null_member,
        until,
        engine.memory,
        first_attributes=flags.first_attributes,
        new_only=flags.new_periods_only,
    )
    with file_errors(folder, "--pairs"), named_by("--input"):
        made = _made(source.source, folder, asked, url)
    if as_json:
        print_json({"written": str(folder), "until": until.isoformat(), **to_json(made)})
        return
    left_out = made.left_out
    say("written", str(folder))
    say("until", until.isoformat())
    say("pairs", f"{made.pairs} in {made.periods} new periods, of {made.rows} rows")
    say(
        "left out",
        f"{left_out.member} rows without a member, {left_out.time} without a time, "
        f"{left_out.element} without an element; {made.rows_of_open_periods} are of periods that are still open",
    )
    say("", TRUE_COUNTS)


def _until(stated: datetime.datetime | None, calendar: Refresh, zone: str) -> datetime.date:
    """Return the first day that is not copied yet: of a period, and none ahead."""
    today = datetime.datetime.now(ZoneInfo(zone)).date()
    until = first_day(today, calendar) if stated is None else stated.date()
    if first_day(until, calendar) != until or until > today:
        raise typer.BadParameter(f"--until: expected the first day of a {calendar} that is not ahead")
    return until


def _made(source: str, folder: Path, asked: PairsCopyRequest, url: str | None) -> PairsMade:
    if url is None:
        with query_progress() as work:
            return pairs_copy(Path(source), folder, asked, work=work)
    from gris_data.bound.pairs_on_spark import pairs_copy_on_spark

    require_unbounded(Path(source))
    return pairs_copy_on_spark(source, folder, asked, url)
