"""`gris plan bound`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import named_errors, number
from gris_cli.plan.bound_flags import DataFlags, Planned, StatedFlags, planned
from gris_cli.plan.flags import DELTA, EPSILON_PER, DBarFlag, DeltaFlag, EpsilonPerFlag, OutFlag, SeedFlag

if TYPE_CHECKING:
    from gris_lab.bound.choice import Expectations
    from gris_lab.bound.contributions import BoundedCounts
    from gris_lab.bound.looks import Question
    from gris_lab.bound.proposal import TradeOff
    from gris_lab.bound.search import Quality

UNITS = (1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 100)
MOST_UNITS = 10**6
LARGEST_K = 2000
LARGEST_BOUND = 10**6
USEFUL_NAMES, USEFUL_ERROR = Fraction("0.95"), Fraction("0.1")


@dataclass(frozen=True)
class SearchFlags:
    """What is asked, which units and bounds are tried, and how often."""

    k: int = flag(50, "How many elements are asked for.", min=1, max=LARGEST_K)
    units: list[int] = flag(
        list(UNITS), "How many information units a question may cost; repeatable.", min=1, max=MOST_UNITS
    )
    bounds: list[int] = flag(
        [],
        "A bound to try; repeatable. Default: powers of two up to the most elements of a member.",
        "--bound",
        min=1,
        max=LARGEST_BOUND,
    )
    right: Annotated[Fraction, number("The part of the names that has to be right.", default="0.95")] = (
        USEFUL_NAMES
    )
    error: Annotated[
        Fraction, number("How far counts may be off on average, as a part of them.", default="0.1")
    ] = USEFUL_ERROR
    epsilon_per: EpsilonPerFlag = EPSILON_PER
    delta: DeltaFlag = DELTA
    min_count: int = flag(1, "The smallest count that is considered, by the policy.", min=1, max=10**9)
    d_bar: DBarFlag = 1000
    trials: int = flag(50, "How often each mechanism runs.", min=2, max=10**4)
    seed: SeedFlag = None

    def quality(self) -> Quality:
        """Return when an answer is useful."""
        from gris_lab.bound.search import Quality

        if not 0 < self.right <= 1:
            raise typer.BadParameter(
                f"--right: expected a part above 0 and up to 1, got {float(self.right):g}"
            )
        if self.error <= 0:
            raise typer.BadParameter(f"--error: expected a part above 0, got {float(self.error):g}")
        return Quality(self.right, self.error)

    def question(self) -> Question:
        """Return the question that is planned."""
        from dp_service.mechanisms import Currency
        from gris_lab.bound.looks import Question

        with named_errors():
            return Question(Currency(self.epsilon_per, self.delta), self.k, self.min_count, self.d_bar)


@with_flags
def bound(
    *,
    data: DataFlags,
    stated: StatedFlags,
    search: SearchFlags,
    choose: bool = flag(False, "Print a block with which the service chooses the cheapest way for each k."),
    out: OutFlag = None,
    as_json: bool,
) -> None:
    """Propose the cheapest bounds and units whose top k is useful, one look or two. For the owner of the data.

    Counts are of distinct members. The data must be of another period than the one that questions are about.
    """
    from gris_lab.bound.choice import Expectations
    from gris_lab.bound.report import draw_trade_off
    from gris_lab.plots import check_plot

    check_plot(out)
    if choose and (not data.elements or "," in data.elements):
        raise typer.BadParameter("--choose needs --elements with one column, whose counts are expected")
    question, units = search.question(), tuple(sorted(set(search.units)))
    from_flags = planned(data, stated, question, tuple(sorted(set(search.bounds))))
    with named_errors():
        made = _tried(from_flags.counts, question, units, search)
    if out:
        draw_trade_off(made, question, out, title=f"{from_flags.name}: {search.trials} runs a point")
    expected = Expectations(from_flags.counts, units, data.elements) if choose else None
    _show(made, from_flags, question, expected, search, as_json=as_json)


def _tried(
    counts: BoundedCounts, question: Question, units: tuple[int, ...], search: SearchFlags
) -> TradeOff:
    from gris_lab.bound.proposal import trade_off
    from gris_lab.progress import progress
    from gris_lab.simulation import Draws

    draws, seed = Draws(search.seed), search.seed or 0
    with progress("trying bounds", len(units) + 1) as advance:
        of, quality = (counts, question, units, search.trials, draws), search.quality()
        return trade_off(*of, seed=seed, quality=quality, advance=advance)


def _show(
    made: TradeOff,
    from_flags: Planned,
    question: Question,
    expected: Expectations | None,
    search: SearchFlags,
    *,
    as_json: bool,
) -> None:
    from gris_cli.sheets import print_sheets
    from gris_cli.terminal import say, say_all
    from gris_lab.bound import proposal
    from gris_lab.bound.report import proposal_json, trade_off_sheet

    proposed = proposal.proposal(made, from_flags.counts, question, search.quality())
    policy = proposal.policy_block(proposed.proposed.look, question, expected)
    notes = (
        proposal.GIVEN if search.bounds else proposal.ROUNDED,
        *([] if expected is None else [proposal.EXPECTED]),
        proposal.OUTSIDE if from_flags.is_data else proposal.STATED,
    )
    sheets = {"trade_off": trade_off_sheet(made, from_flags.counts, question)}
    facts = {"proposal": proposal_json(proposed, notes, policy, question)} if as_json else {}
    print_sheets(sheets, facts, as_json=as_json)
    if not as_json:
        say_all("proposal", (*proposed.reasons, *notes))
        say("policy", policy)
