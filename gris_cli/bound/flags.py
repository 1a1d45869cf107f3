"""The flags of `gris bound`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

from gris_cli.flag_groups import flag, required
from gris_cli.flags import DEFAULT_SPARK, SparkFlag

if TYPE_CHECKING:
    from gris_cli.data.bound.source import Columns

LARGEST_TYPICAL = 10**6
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


@dataclass(frozen=True)
class SourceFlags:
    """The table that is copied, and its columns."""

    source: str = required(
        "The table: Parquet or CSV; on Spark a path to Parquet, or catalog:NAME.", "--input", metavar="FILE"
    )
    member: str = required("The column of members.", metavar="COLUMN")
    elements: str = required("The columns that make up an element.", metavar="COLUMN[,COLUMN..]")
    table: str = flag("", "The table's name in the policy.", metavar="NAME")
    period: str = flag(
        "", "A column that names the period of a row. Default: all rows are one period.", metavar="COLUMN"
    )
    calendar: Calendar | None = flag(
        None,
        "The periods are those that the days or timestamps of --period fall into: the policy's calendar.",
    )
    zone: str = flag(
        "", "Where days begin, for timestamps: the time column's zone in the policy.", metavar="ZONE"
    )

    def columns(self) -> Columns:
        """Return the columns.

        Raises:
            typer.BadParameter: Flags that others need are missing.
        """
        from gris_cli.data.bound.source import Columns

        if not self.table:
            raise typer.BadParameter("--table: expected a name")
        if self.calendar and not self.period:
            raise typer.BadParameter("--calendar: expected --period, the column of days or timestamps")
        if self.zone and not (self.calendar and _is_zone(self.zone)):
            raise typer.BadParameter("--zone: expected an IANA zone, with --calendar")
        elements = tuple(self.elements.split(","))
        return Columns(self.member, elements, self.period, self.calendar or "", self.zone)


@dataclass(frozen=True)
class BoundedFlags:
    """The bounded copy."""

    typical: int = required(
        "How many elements of a member are kept in each period.",
        "--typical",
        min=1,
        max=LARGEST_TYPICAL,
        metavar="NUMBER",
    )
    out: str = required(
        "The bounded copy, a Parquet file to write or replace; on Spark a directory that is not there.",
        metavar="FILE",
    )
    drop_nulls: bool = flag(False, "Leave out rows without member, element or period.")


@dataclass(frozen=True)
class EngineFlags:
    """Where the copy is made."""

    memory: str = flag(
        MEMORY, "How much memory DuckDB may use, about; the rest goes to disk.", metavar="SIZE"
    )
    engine: BoundingEngine = flag(BoundingEngine.DUCKDB, "Where the copy is made.")
    spark: SparkFlag = DEFAULT_SPARK

    def url(self) -> str | None:
        """Return the URL of the Spark that makes the copy; None: DuckDB does, on this machine."""
        if self.engine is not BoundingEngine.SPARK:
            return None
        if self.memory != MEMORY:
            raise typer.BadParameter("--memory is of --engine duckdb; Spark has settings of its own")
        return self.spark


def _is_zone(zone: str) -> bool:
    from zoneinfo import available_timezones  # only here, and slow

    return zone in available_timezones()
