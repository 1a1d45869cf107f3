"""`gris plan bound`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import named_errors
from gris_cli.plan.bound_flags import DataFlags, Planned, StatedFlags, planned
from gris_cli.plan.flags import DELTA, EPSILON_PER, DBarFlag, DeltaFlag, EpsilonPerFlag, OutFlag, SeedFlag

if TYPE_CHECKING:
    from gris_lab.bound.choice import Expectations
    from gris_lab.bound.contributions import BoundedCounts
    from gris_lab.bound.looks import Question
    from gris_lab.bound.proposal import TradeOff

UNITS = (5, 10, 20, 50, 100)
MOST_UNITS = 10**6
LARGEST_K = 2000
LARGEST_BOUND = 10**6


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
    epsilon_per: EpsilonPerFlag = EPSILON_PER
    delta: DeltaFlag = DELTA
    min_count: int = flag(1, "The smallest count that is considered, by the policy.", min=1, max=10**9)
    d_bar: DBarFlag = 1000
    trials: int = flag(50, "How often each mechanism runs.", min=2, max=10**4)
    seed: SeedFlag = None

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
    """Propose bounds and units for a top k: one look beside two looks and UnkGumb. For the owner of the data.

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
    _show(made, from_flags, question, expected, are_given=bool(search.bounds), as_json=as_json)


def _tried(
    counts: BoundedCounts, question: Question, units: tuple[int, ...], search: SearchFlags
) -> TradeOff:
    from gris_lab.bound.proposal import trade_off
    from gris_lab.progress import progress
    from gris_lab.simulation import Draws

    draws, seed = Draws(search.seed), search.seed or 0
    with progress("trying bounds", len(units) + 1) as advance:
        return trade_off(counts, question, units, search.trials, draws, seed=seed, advance=advance)


def _show(
    made: TradeOff,
    from_flags: Planned,
    question: Question,
    expected: Expectations | None,
    *,
    are_given: bool,
    as_json: bool,
) -> None:
    from gris_cli.sheets import print_sheets
    from gris_cli.terminal import say, say_all
    from gris_lab.bound import proposal
    from gris_lab.bound.report import proposal_json, trade_off_sheet

    proposed = proposal.proposal(made, from_flags.counts, question)
    policy = proposal.policy_block(proposed.proposed.look, question, expected)
    notes = (
        proposal.GIVEN if are_given else proposal.ROUNDED,
        *([] if expected is None else [proposal.EXPECTED]),
        proposal.OUTSIDE if from_flags.is_data else proposal.STATED,
    )
    sheets = {"trade_off": trade_off_sheet(made, from_flags.counts, question)}
    facts = {"proposal": proposal_json(proposed, notes, policy, question)} if as_json else {}
    print_sheets(sheets, facts, as_json=as_json)
    if not as_json:
        say_all("proposal", (*proposed.reasons, *notes))
        say("policy", policy)
