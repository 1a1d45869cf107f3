"""`gris plan attacks`."""

from __future__ import annotations

from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import named_errors
from gris_cli.plan.flags import (
    CALLS,
    DELTA,
    EPSILON_PER,
    CallsFlag,
    DBarFlag,
    DeltaFlag,
    EpsilonPerFlag,
)


@with_flags
def attacks(
    *,
    epsilon_per: EpsilonPerFlag = EPSILON_PER,
    delta: DeltaFlag = DELTA,
    calls: CallsFlag = CALLS,
    answers: int = flag(30, "How many fresh answers are averaged."),
    d_bar: DBarFlag = 1000,
    as_json: bool,
) -> None:
    """Show an attacker's chances: averaging, differencing, and finding a single member's element."""
    from gris_cli.plan.attack_sheets import attack_sheets
    from gris_cli.sheets import print_sheets

    with named_errors():
        sheets = attack_sheets(epsilon_per, delta, calls=calls, answers=answers, d_bar=d_bar)
    print_sheets(sheets, as_json=as_json)
