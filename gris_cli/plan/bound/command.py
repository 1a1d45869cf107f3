"""`gris plan bound`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flags import JsonFlag
from gris_cli.plan.flags import (
    DELTA,
    EPSILON_PER,
    DBarFlag,
    DeltaFlag,
    EpsilonPerFlag,
    OutFlag,
    SeedFlag,
    exact,
    named_errors,
)

if TYPE_CHECKING:
    from gris_cli.plan.bound.sources import Planned
    from gris_lab.bound.choice import Expectations
    from gris_lab.bound.contributions import BoundedCounts
    from gris_lab.bound.looks import Question
    from gris_lab.bound.proposal import TradeOff

# typer copies a list before it hands it over.
UNITS = [5, 10, 20, 50, 100]
NO_BOUNDS: list[int] = []
MOST_UNITS = 10**6
LARGEST_K = 2000
LARGEST_BOUND = 10**6


def bound(
    *,
    source: Annotated[
        Path | None,
        typer.Option(
            "--input", metavar="FILE", dir_okay=False, help="Data of another period: Parquet or CSV."
        ),
    ] = None,
    member: Annotated[str, typer.Option(metavar="COLUMN", help="With --input: the column of members.")] = "",
    elements: Annotated[
        str,
        typer.Option(
            metavar="COLUMN[,COLUMN..]", help="With --input or --choose: the columns that make up an element."
        ),
    ] = "",
    other_period: Annotated[
        bool,
        typer.Option("--other-period", help="With --input: say that no question will be about these data."),
    ] = False,
    drop_nulls: Annotated[
        bool, typer.Option("--drop-nulls", help="Leave out rows without member or element.")
    ] = False,
    memory: Annotated[
        str,
        typer.Option(metavar="SIZE", help="How much memory reading may use, about; the rest goes to disk."),
    ] = "2GB",
    members: Annotated[int, typer.Option(help="Instead of --input: how many members there are.")] = 0,
    element_count: Annotated[
        int, typer.Option("--element-count", help="Instead of --input: how many elements there are.")
    ] = 0,
    per_member: Annotated[
        str,
        typer.Option(
            metavar="MEDIAN,P90,P99,LARGEST", help="Instead of --input: how many elements a member has."
        ),
    ] = "",
    exponent: Annotated[
        Fraction,
        typer.Option(
            parser=exact,
            metavar="NUMBER",
            show_default="1",
            help="Instead of --input: the element of rank r is held in proportion to r^-NUMBER.",
        ),
    ] = Fraction(1),
    k: Annotated[int, typer.Option(min=1, max=LARGEST_K, help="How many elements are asked for.")] = 50,
    units: Annotated[
        list[int],
        typer.Option(
            min=1, max=MOST_UNITS, help="How many information units a question may cost; repeatable."
        ),
    ] = UNITS,
    bounds: Annotated[
        list[int],
        typer.Option(
            "--bound",
            min=1,
            max=LARGEST_BOUND,
            help="A bound to try; repeatable. Default: powers of two up to the most elements of a member.",
        ),
    ] = NO_BOUNDS,
    epsilon_per: EpsilonPerFlag = EPSILON_PER,
    delta: DeltaFlag = DELTA,
    min_count: Annotated[
        int, typer.Option(min=1, max=10**9, help="The smallest count that is considered, by the policy.")
    ] = 1,
    d_bar: DBarFlag = 1000,
    trials: Annotated[int, typer.Option(min=2, max=10**4, help="How often each mechanism runs.")] = 50,
    choose: Annotated[
        bool,
        typer.Option(
            "--choose", help="Print a block with which the service chooses the cheapest way for each k."
        ),
    ] = False,
    seed: SeedFlag = None,
    out: OutFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Propose bounds and units for a top k: one look beside two looks and UnkGumb. For the owner of the data.

    Counts are of distinct members. The data must be of another period than the one that questions are about.
    """
    from dp_service.mechanisms import Currency  # noqa: PLC0415 - `gris --help` should be quick
    from gris_lab.bound.choice import Expectations  # noqa: PLC0415
    from gris_lab.bound.looks import Question  # noqa: PLC0415
    from gris_lab.bound.report import draw_trade_off  # noqa: PLC0415
    from gris_lab.plots import check_plot  # noqa: PLC0415

    check_plot(out)
    if choose and (not elements or "," in elements):
        raise typer.BadParameter("--choose needs --elements with one column, whose counts are expected")
    from gris_cli.plan.bound.sources import DataFlags, StatedFlags, planned  # noqa: PLC0415

    with named_errors():
        question = Question(Currency(epsilon_per, delta), k, min_count, d_bar)
    data = DataFlags(source, member, elements, other_period, drop_nulls, memory)
    stated = StatedFlags(members, element_count, per_member, exponent)
    from_flags = planned(data, stated, question, tuple(sorted(set(bounds))))
    with named_errors():
        made = _tried(from_flags.counts, question, sorted(set(units)), seed, trials)
    if out:
        draw_trade_off(made, question, out, title=f"{from_flags.name}: {trials} runs a point")
    expected = Expectations(from_flags.counts, tuple(sorted(set(units))), elements) if choose else None
    _show(made, from_flags, question, expected, are_given=bool(bounds), as_json=as_json)


def _tried(
    counts: BoundedCounts, question: Question, units: list[int], seed: int | None, trials: int
) -> TradeOff:
    from gris_lab.bound.looks import Sketch, Trials  # noqa: PLC0415
    from gris_lab.bound.proposal import TradeOff, Tried  # noqa: PLC0415
    from gris_lab.bound.search import best_looks  # noqa: PLC0415
    from gris_lab.progress import progress  # noqa: PLC0415
    from gris_lab.simulation import Draws  # noqa: PLC0415

    runs = Trials(counts, question, Draws(seed), trials)
    found = []
    with progress("trying bounds", len(units) + 1) as advance:
        unk_gumb = runs.unk_gumb()
        sketch = Sketch(counts, question, seed or 0)
        advance()
        for each in units:
            looks = best_looks(sketch, question, each)
            found.append(Tried(looks.one, runs.one_look(looks.one)))
            if looks.two:
                found.append(Tried(looks.two, runs.two_looks(looks.two)))
            advance()
    return TradeOff(tuple(found), unk_gumb)


def _show(
    made: TradeOff,
    from_flags: Planned,
    question: Question,
    expected: Expectations | None,
    *,
    are_given: bool,
    as_json: bool,
) -> None:
    from gris_cli.printing import console_of_width, print_json, say  # noqa: PLC0415
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_lab.bound.proposal import (  # noqa: PLC0415
        EXPECTED,
        GIVEN,
        OUTSIDE,
        ROUNDED,
        STATED,
        policy_block,
        proposal,
    )
    from gris_lab.bound.report import proposal_json, trade_off_sheet  # noqa: PLC0415
    from gris_lab.sheets import sheet_rows  # noqa: PLC0415

    proposed = proposal(made, from_flags.counts, question)
    sheet = trade_off_sheet(made, from_flags.counts, question)
    policy = policy_block(proposed.proposed.look, question, expected)
    notes = (
        GIVEN if are_given else ROUNDED,
        *([] if expected is None else [EXPECTED]),
        OUTSIDE if from_flags.is_data else STATED,
    )
    if as_json:
        print_json(
            {"trade_off": sheet_rows(sheet), "proposal": proposal_json(proposed, notes, policy, question)}
        )
        return
    print_sheets({"trade_off": sheet}, as_json=False)
    console = console_of_width()
    say(console, "proposal", proposed.reasons[0])
    for text in (*proposed.reasons[1:], *notes):
        say(console, "", text)
    say(console, "policy", policy)
