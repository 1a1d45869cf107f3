"""`gris bound --pairs`."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

import typer

from dp_service.queries.times import Refresh, first_day
from gris_cli.bound.query_progress import query_progress
from gris_cli.inputs import named_by
from gris_cli.printing import console_of_width, print_json, say
from gris_data.bound.pairs_folder import PairsMade
from gris_data.bound.pairs_on_duckdb import pairs_copy
from gris_data.bound.pairs_source import PairsCopyRequest, require_unbounded
from gris_data.bound.source import Columns
from pinot_connector.json_values import to_json


@dataclass(frozen=True)
class PairsOptions:
    """The options that only a pairs copy has, as they were given."""

    attributes: str
    null_member: str | None
    until: datetime.date | None
    first_attributes: bool = False
    new_only: bool = False
    spark: str | None = None
    """The URL of the Spark that makes the copy; None: DuckDB does, on this machine."""


def make_pairs(
    source: str,
    folder: Path,
    table: str,
    columns: Columns,
    options: PairsOptions,
    *,
    memory: str,
    as_json: bool,
) -> None:
    """Make a pairs copy, or append to it, and print what was done."""
    calendar = Refresh(columns.calendar)
    today = datetime.datetime.now(ZoneInfo(columns.zone or "UTC")).date()
    until = options.until or first_day(today, calendar)
    if first_day(until, calendar) != until or until > today:
        raise typer.BadParameter(
            f"expected the first day of a {calendar} that is not ahead", param_hint="--until"
        )
    attributes = tuple(options.attributes.split(",")) if options.attributes else ()
    asked = PairsCopyRequest(
        table,
        columns,
        attributes,
        options.null_member,
        until,
        memory,
        first_attributes=options.first_attributes,
        new_only=options.new_only,
    )
    try:
        with named_by("--input"):
            made = _made(source, folder, asked, options.spark)
    except OSError as error:
        raise typer.BadParameter(f"{folder}: {error.strerror}", param_hint="--pairs") from None
    _print(made, folder, until, as_json=as_json)


def _made(source: str, folder: Path, asked: PairsCopyRequest, spark: str | None) -> PairsMade:
    if spark is None:
        with query_progress() as work:
            return pairs_copy(Path(source), folder, asked, work=work)
    from gris_data.bound.pairs_on_spark import pairs_copy_on_spark  # noqa: PLC0415 - pyspark is an extra

    require_unbounded(Path(source))
    return pairs_copy_on_spark(source, folder, asked, spark)


def _print(made: PairsMade, folder: Path, until: datetime.date, *, as_json: bool) -> None:
    if as_json:
        print_json({"written": str(folder), "until": until.isoformat(), **to_json(made)})
        return
    console, left_out = console_of_width(), made.left_out
    say(console, "written", str(folder))
    say(console, "until", until.isoformat())
    say(console, "pairs", f"{made.pairs} in {made.periods} new periods, of {made.rows} rows")
    say(
        console,
        "left out",
        f"{left_out.member} rows without a member, {left_out.time} without a time, "
        f"{left_out.element} without an element; {made.rows_of_open_periods} are of periods that are still open",
    )
    say(console, "", "These are true counts: for the owner of the data, never for analysts.")
