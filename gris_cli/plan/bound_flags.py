"""What `gris plan bound` makes a plan from: a file of another period, or numbers that the owner states."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import flag
from gris_cli.inputs import named_by, named_errors, number

if TYPE_CHECKING:
    from gris_lab.bound.contributions import BoundedCounts
    from gris_lab.bound.looks import Question


@dataclass(frozen=True)
class DataFlags:
    """The flags that name data."""

    source: Path | None = flag(
        None,
        "Data of another period: a Parquet or CSV file, or a folder or pattern of Parquet.",
        "--input",
        metavar="PATH",
    )
    member: str = flag("", "With --input: the column of members.", metavar="COLUMN")
    elements: str = flag(
        "", "With --input or --choose: the columns that make up an element.", metavar="COLUMN[,COLUMN..]"
    )
    is_other_period: bool = flag(
        False,
        "With --input: say that no question will be about these data. Take a period as long as questions ask for: "
        "bounds of a month are too small for a quarter.",
        "--other-period",
    )
    drop_nulls: bool = flag(False, "Leave out rows without member or element.")
    memory: str = flag(
        "2GB", "How much memory reading may use, about; the rest goes to disk.", metavar="SIZE"
    )

    def counts(self, source: Path, question: Question, bounds: tuple[int, ...]) -> BoundedCounts:
        """Return what bounds leave of the counts of a file.

        Raises:
            typer.BadParameter: A flag is missing, or the file cannot be read.
        """
        from gris_data.bound.source import Columns
        from gris_lab.bound.contributions import DataFile, counts_of_file

        if not self.member or not self.elements:
            raise typer.BadParameter("--input needs --member and --elements")
        if not self.is_other_period:
            raise typer.BadParameter(
                "--input needs --other-period: what is chosen by data may tell of their members, so no question may "
                "be about them"
            )
        columns = Columns(self.member, tuple(self.elements.split(",")))
        data = DataFile(source, columns, self.drop_nulls, self.memory)
        with named_by("--input"):
            return counts_of_file(data, question.k, question.most_names, bounds)


@dataclass(frozen=True)
class StatedFlags:
    """The flags that describe members and elements."""

    members: int = flag(0, "Instead of --input: how many members there are.")
    element_count: int = flag(0, "Instead of --input: how many elements there are.")
    per_member: str = flag(
        "", "Instead of --input: how many elements a member has.", metavar="MEDIAN,P90,P99,LARGEST"
    )
    exponent: Annotated[
        Fraction,
        number("Instead of --input: the element of rank r is held in proportion to r^-NUMBER.", default="1"),
    ] = Fraction(1)

    def counts(self, question: Question, bounds: tuple[int, ...]) -> BoundedCounts:
        """Return what bounds leave of the counts of such members.

        Raises:
            typer.BadParameter: A flag is missing or out of range.
        """
        from gris_lab.bound.stated import STEEPEST, Stated, counts_of_stated

        if not (self.members and self.element_count and self.per_member):
            raise typer.BadParameter("--members, --element-count and --per-member are given together")
        try:
            sizes = tuple(map(int, self.per_member.split(",")))
        except ValueError:
            sizes = ()
        # A float has no room for every number that a flag can spell.
        exponent = float(max(min(self.exponent, Fraction(STEEPEST + 1)), Fraction(-1)))
        with named_errors():
            stated = Stated(self.members, self.element_count, sizes, exponent)
            return counts_of_stated(stated, question.k, question.most_names, bounds)


@dataclass(frozen=True)
class Planned:
    """What bounds leave of the counts, what a plot calls their source, and whether data were read for them."""

    counts: BoundedCounts
    name: str
    is_data: bool


def planned(data: DataFlags, stated: StatedFlags, question: Question, bounds: tuple[int, ...]) -> Planned:
    """Return what bounds leave of what the flags name.

    Raises:
        typer.BadParameter: The flags name nothing, or both; or what they name cannot be used.
    """
    if (data.source is None) != bool(stated.members or stated.element_count or stated.per_member):
        raise typer.BadParameter("give either --input, or --members, --element-count and --per-member")
    if data.source is None:
        return Planned(stated.counts(question, bounds), f"{stated.members} members as stated", is_data=False)
    counts = data.counts(data.source, question, bounds)
    return Planned(counts, f"{data.elements} of {data.source.name}", is_data=True)
