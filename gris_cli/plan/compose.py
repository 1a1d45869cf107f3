"""`gris plan compose`."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import named_errors, number
from gris_cli.plan.flags import (
    OutFlag,
    QuickFlag,
)

COMPOSED_EPSILONS = [Fraction("0.1")]
COMPOSED_COUNTS = [100, 1000]


@with_flags
def compose(
    *,
    epsilons: Annotated[
        list[Fraction], number("The epsilon_per of one mechanism; repeatable.", "--epsilon-per")
    ] = COMPOSED_EPSILONS,
    counts: list[int] = flag(
        COMPOSED_COUNTS, "How many mechanisms; repeatable.", "--count", min=1, max=10**4
    ),
    delta: Annotated[Fraction, number("The delta of all together.", default="1e-6")] = Fraction("1e-6"),
    out: OutFlag = None,
    quick: QuickFlag = False,
    as_json: bool,
) -> None:
    """Compare composition bounds. The figure is figure 1 of Durfee and Rogers 2019: what bounded range gains."""
    from dp_service.accounting.bounds import Portion
    from gris_cli.sheets import print_sheets
    from gris_lab.composition import compose_sheet, composed, ratios
    from gris_lab.plots import check_plot, draw_composition
    from gris_lab.progress import progress
    from gris_lab.tables import table_for

    check_plot(out, curves=len(epsilons))
    with named_errors():
        portions = [Portion(epsilon_per, count) for epsilon_per in epsilons for count in counts]
        tables = {each: table_for(each, max(counts), quick=quick) for each in epsilons}
        with progress("composing", len(portions)) as advance:
            sheet = compose_sheet(portions, delta, tables, advance)
        if out:
            steps = sorted({1 + step * (max(counts) - 1) // 199 for step in range(200)})
            with progress("drawing", len(epsilons) * len(steps)) as advance:
                found = list(ratios(epsilons, steps, delta, tables, advance))
            bounds = composed(epsilons[0], steps, delta, tables)
            title = f"Composition at a delta of at most {float(delta):g}; no data enter"
            draw_composition(found, epsilons[0], bounds, out, title=title)
    print_sheets({"composition": sheet}, as_json=as_json)
