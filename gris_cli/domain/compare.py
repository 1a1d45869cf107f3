"""`gris domain compare`."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.domain.flags import (
    DELTA_0,
    ITERATIONS,
    Delta0Flag,
    MemberFlag,
    RowsFlags,
    delta_flag,
    method_of,
)
from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import named_by, named_errors, number
from gris_cli.plan.flags import OutFlag, SeedFlag

if TYPE_CHECKING:
    from dp_service.partitions import Parameters
    from gris_data.domain.canonical_pairs import Source

# The delta of the paper's own comparison.
DELTA = Fraction(1, 10**5)
ROUNDS = (1, 2, 3, 4, 5)
METHODS = ("gaussian", "sips", "dpsu", "gw", "mad", "mad2r")
MOST_SYNTHETIC = 10**7


@dataclass(frozen=True)
class SourceFlags:
    """The data that methods are compared on."""

    data: Path | None = flag(None, "Parquet, CSV, or a DuckDB database.", metavar="FILE")
    column: str = flag("", "The column of elements.")
    member: MemberFlag = ""
    synthetic: int = flag(0, "Instead of --data: synthetic data of this many members.", metavar="MEMBERS")

    def source(self, rows: RowsFlags) -> Source:
        """Return the data.

        Raises:
            typer.BadParameter: The flags name none, or both.
        """
        from gris_data.domain.canonical_pairs import Source
        from gris_lab.synthetic_data import synthetic

        if (self.data is None) == (self.synthetic == 0):
            raise typer.BadParameter("give either --data with --column and --member, or --synthetic")
        if self.data is None:
            if not 0 < self.synthetic <= MOST_SYNTHETIC:
                raise typer.BadParameter(f"--synthetic expects 1 to {MOST_SYNTHETIC} members")
            return Source(synthetic(self.synthetic, seed=1), "member", "element")
        if not self.member or not self.column:
            raise typer.BadParameter("--data needs --column and --member")
        return Source(
            self.data, self.member, self.column, table=rows.source_table, drops_nulls=rows.drop_nulls
        )


@dataclass(frozen=True)
class GridFlags:
    """What is compared."""

    methods: list[str] = flag(list(METHODS), "A method; repeatable.", "--method")
    rhos: Annotated[list[Fraction], number("A price in zCDP; repeatable.", "--rho")] = field(
        default_factory=lambda: [Fraction(1, 10)]
    )
    iterations: list[int] = flag(list(ROUNDS), "A number of rounds of sips; repeatable.")
    delta: Annotated[Fraction, delta_flag("1e-5")] = DELTA
    delta_0: Delta0Flag = DELTA_0

    def parameters(self) -> list[Parameters]:
        """Return what is compared.

        Raises:
            typer.BadParameter: There is no such method, or rounds are named without the method that has them.
        """
        from dp_service.partitions import Method
        from gris_lab.domain_comparison import grid_of

        methods = list(map(method_of, self.methods))
        has_rounds = Method.SIPS in methods
        if not has_rounds and self.iterations != list(ROUNDS):
            raise typer.BadParameter("--iterations are rounds of sips, which --method leaves out")
        with named_errors():
            return grid_of(
                methods, self.rhos, self.delta, self.delta_0, self.iterations if has_rounds else ()
            )


@with_flags
def compare(
    *,
    flags: SourceFlags,
    rows: RowsFlags,
    grid: GridFlags,
    runs: int = flag(3, "How often each method runs.", min=1, max=1000),
    seed: SeedFlag = None,
    out: OutFlag = None,
    as_json: bool,
) -> None:
    """Show how many elements each method would release. For the owner of the data, never for analysts."""
    from gris_cli.sheets import print_sheets
    from gris_lab.domain_comparison import compared, iterations_sheet, methods_sheet
    from gris_lab.domain_plots import draw_compared
    from gris_lab.plots import check_plot
    from gris_lab.progress import progress

    check_plot(out, curves=max(len(grid.methods), len(grid.rhos)))
    source = flags.source(rows)
    asked = grid.parameters()
    with named_by("--data"), progress("comparing", len(asked) * runs) as advance:
        result = compared(source, asked, runs=runs, seed=seed, advance=advance)
    if out:
        of = f"{flags.column} of {flags.data.name}" if flags.data else f"{flags.synthetic} synthetic members"
        title = f"{of}: delta = {float(grid.delta):g}, {runs} runs a point"
        draw_compared(result, out, iterations=ITERATIONS, title=title)
    sheets = {"methods": methods_sheet(result, ITERATIONS)}
    if (rounds := iterations_sheet(result)).rows:
        sheets["iterations"] = rounds
    print_sheets(sheets, as_json=as_json)
