"""`gris plan value`: bounds, quantum and grid of a value column, from what is known of its values; it reads no data."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import flag, required, with_flags
from gris_cli.inputs import exact, file_errors, named_errors, number, parts_of
from gris_cli.plan.flags import DELTA, EPSILON_PER, EpsilonPerFlag

if TYPE_CHECKING:
    from gris_data.sheets import Sheet
    from gris_lab.value.choices import Price, Table
    from gris_lab.value.spread import Known

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class ValueFlags:
    """What is known of the values of a column, and which bounds are tried."""

    members: int = required("How many members an element has, about.", metavar="N")
    at: list[str] = flag(
        [],
        "What is known of members' totals: 0.9:250 says that nine of ten have at most 250. Repeatable.",
        metavar="PART:VALUE",
    )
    answer: Path | None = flag(
        None,
        "Instead of --at: what gris ask --json printed for quantiles without --by, which was paid for.",
        metavar="FILE",
        dir_okay=False,
    )
    largest: Annotated[Fraction | None, number("No total is above it, as everybody knows.")] = None
    uppers: Annotated[
        list[Fraction], number("An upper bound to try; by default the known values.", "--upper")
    ] = field(default_factory=list)

    def known(self) -> tuple[Known, ...]:
        """Return how values are spread."""
        from gris_lab.value.spread import released, stated

        if (self.answer is None) is not bool(self.at):
            raise typer.BadParameter("--at or --answer says how values are spread; one of the two")
        if self.answer is None:
            points = (parts_of("--at", "PART:VALUE, such as 0.9:250", each) for each in self.at)
            return stated((exact(part), exact(value)) for part, value in points)
        if self.members < 1:
            raise typer.BadParameter("--members must be at least 1")
        with file_errors(self.answer, "--answer"):
            return released(self.answer.read_text(), self.members)

    def tried(self, known: tuple[Known, ...]) -> list[Fraction]:
        """Return the bounds to try."""
        largest = [self.largest] if self.largest else []
        found = [*(self.uppers or (each.value for each in known if each.value > 0)), *largest]
        if any(each <= 0 for each in found) or not found:
            raise ValueError("--upper must be above 0")
        return found


@dataclass(frozen=True)
class PriceFlags:
    """What a question costs."""

    units: int = flag(20, "The units of a question.", min=1, max=10**6)
    delta_0: int = flag(1, "In how many elements a member counts.", min=1, max=10**6)
    share: Annotated[Fraction, number("The counts' part of the units.", default="1/2")] = HALF
    epsilon_per: EpsilonPerFlag = EPSILON_PER

    def price(self) -> Price:
        """Return the price."""
        from dp_service.mechanisms.parameters import Currency
        from gris_lab.value.choices import Price

        return Price(Currency(self.epsilon_per, DELTA), self.units, self.delta_0, self.share)


@dataclass(frozen=True)
class TableFlags:
    """How large the table can be."""

    max_members: int | None = flag(None, "With --max-rows: which quanta engines can sum.", min=1)
    max_rows: int | None = flag(None, "The most rows that the table ever has.", min=1)
    row_upper: Annotated[
        Fraction | None, number("The most that a row counts with; by default the bound.")
    ] = None

    def table(self) -> Table | None:
        """Return the table; None: no flag says how large it can be."""
        from gris_lab.value.choices import Table

        if self.max_members is None and self.max_rows is None and self.row_upper is None:
            return None
        if self.max_members is None or self.max_rows is None:
            raise typer.BadParameter(
                "--max-members and --max-rows are given together, and --row-upper with them"
            )
        return Table(self.max_members, self.max_rows, self.row_upper)


@with_flags
def value(values: ValueFlags, price: PriceFlags, size: TableFlags, as_json: bool) -> None:
    """Choose bounds, quantum and grid of a value column from what is known of its values; no data are read."""
    from gris_cli.sheets import print_sheets

    with named_errors():
        sheets = _sheets(values, price.price(), size.table())
    print_sheets(sheets, as_json=as_json)


def _sheets(values: ValueFlags, price: Price, table: Table | None) -> dict[str, Sheet]:
    from gris_lab.value.choices import bounds_sheet, grids_sheet, quanta_sheet
    from gris_lab.value.spread import Spread

    known = values.known()
    spread, tried = Spread(values.members, known, values.largest), values.tried(known)
    sheets = {"bounds": bounds_sheet(spread, tried, price)}
    best = next((row[0] for row in sheets["bounds"].rows if row[-1]), None)
    chosen = best if isinstance(best, Fraction) else max(tried)
    if table is not None:
        sheets["quanta"] = quanta_sheet(chosen, table, price)
    sheets["grids"] = grids_sheet(spread, chosen, price.currency)
    return sheets
