"""`gris plan value`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flags import JsonFlag
from gris_cli.plan.flags import DELTA, EPSILON_PER, EpsilonPerFlag, exact, named_errors

if TYPE_CHECKING:
    from gris_lab.value.spread import Known

# typer copies a list before it hands it over.
NO_POINTS: list[str] = []
NO_BOUNDS: list[Fraction] = []
HALF = Fraction(1, 2)


def value(
    *,
    members: Annotated[int, typer.Option(metavar="N", help="How many members an element has, about.")],
    at: Annotated[
        list[str],
        typer.Option(
            metavar="PART:VALUE",
            help="What is known of members' totals: 0.9:250 says that nine of ten have at most 250. Repeatable.",
        ),
    ] = NO_POINTS,
    answer: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Instead of --at: what gris ask --json printed for quantiles without --by, which was paid for.",
        ),
    ] = None,
    largest: Annotated[
        Fraction | None,
        typer.Option(parser=exact, metavar="NUMBER", help="No total is above it, as everybody knows."),
    ] = None,
    uppers: Annotated[
        list[Fraction],
        typer.Option(
            "--upper",
            parser=exact,
            metavar="NUMBER",
            help="An upper bound to try; by default the known values.",
        ),
    ] = NO_BOUNDS,
    units: Annotated[int, typer.Option(min=1, max=10**6, help="The units of a question.")] = 20,
    delta_0: Annotated[
        int, typer.Option("--delta-0", min=1, max=10**6, help="In how many elements a member counts.")
    ] = 1,
    share: Annotated[
        Fraction,
        typer.Option(
            parser=exact, metavar="NUMBER", show_default="1/2", help="The counts' part of the units."
        ),
    ] = HALF,
    epsilon_per: EpsilonPerFlag = EPSILON_PER,
    max_members: Annotated[
        int | None, typer.Option(min=1, help="With --max-rows: which quanta engines can sum.")
    ] = None,
    max_rows: Annotated[
        int | None, typer.Option(min=1, help="The most rows that the table ever has.")
    ] = None,
    row_upper: Annotated[
        Fraction | None,
        typer.Option(
            parser=exact, metavar="NUMBER", help="The most that a row counts with; by default the bound."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Choose bounds, quantum and grid of a value column from what is known of its values; no data are read."""
    from dp_service.mechanisms.parameters import Currency  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_lab.value.choices import (  # noqa: PLC0415
        Price,
        Table,
        bounds_sheet,
        grids_sheet,
        quanta_sheet,
    )
    from gris_lab.value.spread import Spread  # noqa: PLC0415

    if (max_members is None) != (max_rows is None) or (row_upper is not None and max_rows is None):
        raise typer.BadParameter("--max-members and --max-rows are given together, and --row-upper with them")
    with named_errors():
        known = _known(at, answer, members)
        spread = Spread(members, known, largest)
        tried = [
            *(uppers or (each.value for each in known if each.value > 0)),
            *([largest] if largest else []),
        ]
        if any(each <= 0 for each in tried) or not tried:
            raise ValueError("--upper must be above 0")
        price = Price(Currency(epsilon_per, DELTA), units, delta_0, share)
        sheets = {"bounds": bounds_sheet(spread, tried, price)}
        best = next((row[0] for row in sheets["bounds"].rows if row[-1]), None)
        chosen = best if isinstance(best, Fraction) else max(tried)
        if max_members is not None and max_rows is not None:
            sheets["quanta"] = quanta_sheet(chosen, Table(max_members, max_rows, row_upper), price)
        sheets["grids"] = grids_sheet(spread, chosen, price.currency)
    print_sheets(sheets, as_json=as_json)


def _known(at: list[str], answer: Path | None, members: int) -> tuple[Known, ...]:
    from gris_lab.value.spread import released, stated  # noqa: PLC0415 - `gris --help` should be quick

    if (answer is None) is not bool(at):
        raise typer.BadParameter("--at or --answer says how values are spread; one of the two")
    if answer is None:
        return stated(map(_point, at))
    if members < 1:
        raise typer.BadParameter("--members must be at least 1")
    try:
        return released(answer.read_text(), members)
    except OSError as error:
        raise typer.BadParameter(f"--answer: {answer}: {error.strerror}") from None


def _point(text: str) -> tuple[Fraction, Fraction]:
    part, colon, number = text.partition(":")
    if not colon:
        raise typer.BadParameter(f"--at expects PART:VALUE, such as 0.9:250, got {text}")
    return exact(part), exact(number)
