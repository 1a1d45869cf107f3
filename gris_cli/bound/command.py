"""`gris bound`."""

from __future__ import annotations

import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flags import DEFAULT_SPARK, JsonFlag, SparkFlag
from gris_cli.inputs import named_by

if TYPE_CHECKING:
    from gris_data.bound.bounded_copies import Bounded, BoundedCopyRequest

LARGEST_DELTA_0 = 10**6
MEMORY = "2GB"


class Calendar(StrEnum):
    """How long a period is."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class BoundingEngine(StrEnum):
    """Where the copy is made: on this machine, or on Spark."""

    DUCKDB = "duckdb"
    SPARK = "spark"


def bound(
    *,
    source: Annotated[
        str,
        typer.Option(
            "--input",
            metavar="FILE",
            help="The table: Parquet or CSV; on Spark a path to Parquet, or catalog:NAME.",
        ),
    ],
    member: Annotated[str, typer.Option(metavar="COLUMN", help="The column of members.")],
    elements: Annotated[
        str, typer.Option(metavar="COLUMN[,COLUMN..]", help="The columns that make up an element.")
    ],
    delta_0: Annotated[
        int | None,
        typer.Option(
            "--delta0",
            min=1,
            max=LARGEST_DELTA_0,
            metavar="NUMBER",
            help="How many elements of a member are kept in each period; with --out.",
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="The bounded copy, a Parquet file to write or replace; on Spark a directory that is not there.",
        ),
    ] = "",
    table: Annotated[str, typer.Option(metavar="NAME", help="The table's name in the policy.")] = "",
    pairs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Make the pairs copy instead, or append to it: a row for each member, element and period.",
        ),
    ] = None,
    attributes: Annotated[
        str,
        typer.Option(
            metavar="COLUMN[,COLUMN..]",
            help="With --pairs: columns of which every member has one value.",
        ),
    ] = "",
    null_member: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="With --pairs: the member column's null_value in the policy, if it states one.",
        ),
    ] = None,
    first_attributes: Annotated[
        bool,
        typer.Option(
            "--first-attributes",
            help="With --pairs: members whose attribute changed keep the first value, instead of being refused.",
        ),
    ] = False,
    new_periods_only: Annotated[
        bool,
        typer.Option(
            "--new-periods-only",
            help="With --pairs: read no rows of periods that the copy holds; those that came late go unnoticed.",
        ),
    ] = False,
    until: Annotated[
        datetime.datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="DAY",
            help="With --pairs: the first day that is not copied yet. Default: when the present period began.",
        ),
    ] = None,
    period: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="A column that names the period of a row. Default: all rows are one period.",
        ),
    ] = "",
    calendar: Annotated[
        Calendar | None,
        typer.Option(
            help="The periods are those that the days or timestamps of --period fall into: the policy's calendar.",
        ),
    ] = None,
    zone: Annotated[
        str,
        typer.Option(
            metavar="ZONE", help="Where days begin, for timestamps: the time column's zone in the policy."
        ),
    ] = "",
    drop_nulls: Annotated[
        bool, typer.Option("--drop-nulls", help="Leave out rows without member, element or period.")
    ] = False,
    memory: Annotated[
        str,
        typer.Option(metavar="SIZE", help="How much memory DuckDB may use, about; the rest goes to disk."),
    ] = MEMORY,
    engine: Annotated[BoundingEngine, typer.Option(help="Where the copy is made.")] = BoundingEngine.DUCKDB,
    spark: SparkFlag = DEFAULT_SPARK,
    as_json: JsonFlag = False,
) -> None:
    """Copy a table: bounded, with at most so many elements of every member, or as pairs. For the owner of the data."""
    from gris_cli.bound.pairs_command import PairsOptions, make_pairs  # noqa: PLC0415
    from gris_data.bound.bounded_copies import BoundedCopyRequest  # noqa: PLC0415 - `gris --help` should be quick
    from gris_data.bound.source import Columns  # noqa: PLC0415

    if not table:
        raise typer.BadParameter("expected a name", param_hint="--table")
    if (pairs is None) == (not out):
        raise typer.BadParameter("expected one of --out, the bounded copy, and --pairs, the pairs copy")
    if calendar and not period:
        raise typer.BadParameter(
            "expected --period, the column of days or timestamps", param_hint="--calendar"
        )
    if zone and not (calendar and _is_zone(zone)):
        raise typer.BadParameter("expected an IANA zone, with --calendar", param_hint="--zone")
    columns = Columns(member, tuple(elements.split(",")), period, calendar or "", zone)
    if pairs is not None:
        if delta_0 is not None or drop_nulls or not calendar:
            raise typer.BadParameter(
                "expected --calendar, and neither --delta0 nor --drop-nulls, with --pairs"
            )
        options = PairsOptions(
            attributes,
            null_member,
            None if until is None else until.date(),
            first_attributes=first_attributes,
            new_only=new_periods_only,
            spark=spark if engine is BoundingEngine.SPARK else None,
        )
        make_pairs(source, pairs, table, columns, options, memory=_memory(memory, engine), as_json=as_json)
        return
    if delta_0 is None:
        raise typer.BadParameter("expected a number, with --out", param_hint="--delta0")
    if attributes or null_member is not None or until is not None or first_attributes or new_periods_only:
        raise typer.BadParameter(
            "expected --attributes, --null-member, --first-attributes, --new-periods-only and --until only with --pairs"
        )
    asked = BoundedCopyRequest(table, columns, delta_0, drop_nulls, _memory(memory, engine))
    with named_by("--input"):
        if engine is BoundingEngine.SPARK:
            made = _on_spark(source, out, asked, spark)
        else:
            made = _on_this_machine(Path(source), Path(out), asked)
    _print(made, asked, out, as_json=as_json)


def _memory(stated: str, engine: BoundingEngine) -> str:
    if engine is BoundingEngine.SPARK and stated != MEMORY:
        raise typer.BadParameter("--memory is of --engine duckdb; Spark has settings of its own")
    return stated


def _is_zone(zone: str) -> bool:
    from zoneinfo import available_timezones  # noqa: PLC0415 - only here, and slow

    return zone in available_timezones()


def _on_this_machine(source: Path, out: Path, asked: BoundedCopyRequest) -> Bounded:
    from gris_cli.bound.query_progress import query_progress  # noqa: PLC0415
    from gris_data.bound.on_duckdb import bounded_copy  # noqa: PLC0415

    if out.suffix != ".parquet":
        raise typer.BadParameter("expected a file named .parquet", param_hint="--out")
    try:
        with query_progress() as work:
            return bounded_copy(source, out, asked, work=work)
    except OSError as error:
        raise typer.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from None


def _on_spark(source: str, out: str, asked: BoundedCopyRequest, url: str) -> Bounded:
    from gris_data.bound.on_spark import bounded_copy_on_spark  # noqa: PLC0415 - pyspark is an extra

    return bounded_copy_on_spark(source, out, asked, url)


def _print(made: Bounded, asked: BoundedCopyRequest, out: str, *, as_json: bool) -> None:
    from gris_cli.printing import console_of_width, print_json, say  # noqa: PLC0415
    from pinot_connector.json_values import to_json  # noqa: PLC0415

    if as_json:
        print_json({"written": out, "delta_0": asked.delta_0, **to_json(made)})
        return
    console = console_of_width()
    say(console, "written", out)
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
