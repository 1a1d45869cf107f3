"""What to take, and why, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dp_service.queries.policy_types import MAXIMUM_NAMES, NAMES_SHARE
from research.lab.bound.contributions import BoundedCounts
from research.lab.bound.looks import BothLooks, OneLook, Question, Sketch, Trials, Worth
from research.lab.bound.search import USEFUL, Look, Quality, best, best_looks
from research.lab.simulation import Draws


@dataclass(frozen=True)
class Tried:
    """A setting and what it is worth."""

    look: Look
    worth: Worth


@dataclass(frozen=True)
class TradeOff:
    """All that was tried: for each number of units the best looks, and UnkGumb."""

    tried: tuple[Tried, ...]
    unk_gumb: Worth


def trade_off(
    counts: BoundedCounts,
    question: Question,
    units: Sequence[int],
    trials: int,
    draws: Draws,
    *,
    seed: int,
    quality: Quality = USEFUL,
) -> TradeOff:
    """Return what the best looks find for each number of units, beside UnkGumb.

    Args:
        counts: What bounds leave of the counts.
        question: What is asked.
        units: The numbers of units to try.
        trials: How often each mechanism runs.
        draws: What noise is drawn from.
        seed: What the sketches are drawn from.
        quality: When an answer is useful.
    """
    runs = Trials(counts, question, draws, trials)
    found = []
    unk_gumb = runs.unk_gumb()
    sketch = Sketch(counts, question, seed)
    for each in units:
        looks = best_looks(sketch, question, each, quality)
        found.append(Tried(looks.one, runs.one_look(looks.one)))
        if looks.two:
            found.append(Tried(looks.two, runs.two_looks(looks.two)))
    return TradeOff(tuple(found), unk_gumb)


@dataclass(frozen=True)
class Proposal:
    """The setting to take, with the reasons in words."""

    proposed: Tried
    reasons: tuple[str, ...]


def proposal(
    trade_off: TradeOff, counts: BoundedCounts, question: Question, quality: Quality = USEFUL
) -> Proposal:
    """Return the fewest units whose answers are useful; if none are, the fewest that come nearly as close as any."""
    k, worths = question.k, [each.worth for each in trade_off.tried]
    percent = f"{float(100 * quality.error):.3g} %"
    wanted = f"find {math.floor(quality.names * k)} of {k} with counts that are off by {percent}"
    reason = f"the fewest of these units that {wanted} on average"
    reached = quality
    if not any(quality.is_met(worth, k) for worth in worths):
        reached = quality.within_reach(worths, k)
        reason = f"none of these units {wanted} on average, and these come nearly as close as any"
    # Where nothing is shown, whatever the price, nothing is reached.
    useful = [each for each in trade_off.tried if reached.is_met(each.worth, k)] or trade_off.tried
    fewest = min(each.look.units for each in useful)
    chosen = _best([each for each in useful if each.look.units == fewest], k, reached)
    return _with_reasons(chosen, reason, trade_off, counts, question)


def _best(tried: Sequence[Tried], k: int, quality: Quality) -> Tried:
    chosen = best([(each.look, each.worth) for each in tried], k, quality)
    return next(each for each in tried if each.look == chosen)


def _with_reasons(
    chosen: Tried, reason: str, trade_off: TradeOff, counts: BoundedCounts, question: Question
) -> Proposal:
    gumbel = trade_off.unk_gumb
    lines = (
        f"{format_look(chosen.look, question)}: {reason}.",
        f"It finds {format_worth(chosen.worth, question.k)}.",
        f"UnkGumb finds {format_worth(gumbel, question.k)}, for {gumbel.units:.1f} units.",
        *_beside(chosen, trade_off, question),
        _bounds_reason(chosen.look, counts),
    )
    return Proposal(chosen, lines)


def _beside(chosen: Tried, trade_off: TradeOff, question: Question) -> list[str]:
    return [
        f"For as many units {format_look(each.look, question)} finds {format_worth(each.worth, question.k)}."
        for each in trade_off.tried
        if each.look.units == chosen.look.units and each.look != chosen.look
    ]


def _bounds_reason(look: Look, counts: BoundedCounts) -> str:
    """Say what the bounds keep, of members who have so many elements."""
    _, median, _, most, _, largest = counts.heaviness.quantiles
    heavy = f"Half of the members have at most {median} of the elements, nine in ten {most}, the heaviest {largest}."
    if isinstance(look, OneLook):
        kept = counts.kept[counts.bounds.index(look.bound)]
        return f"{heavy} Delta = {look.bound} keeps {kept:.0%} of what they have; a larger one would add noise."
    names = counts.kept[counts.bounds.index(look.names_bound)]
    kept = counts.kept_within[counts.bounds.index(look.counts_bound)]
    return (
        f"{heavy} For names Delta_1 = {look.names_bound} is enough, which keeps {names:.0%} of what they have. "
        f"Delta_2 = {look.counts_bound} keeps {kept:.0%} of what they have of the {counts.most_names} names."
    )


def policy_block(look: Look, question: Question) -> tuple[str, int]:
    """Return what a policy says of a table whose queries bound members so, and what is typical of the column."""
    typical = look.bound if isinstance(look, OneLook) else look.counts_bound
    longest = f", longest_list: {min(question.most_names, MAXIMUM_NAMES)}" if isinstance(look, BothLooks) else ""
    stated = f"units: {look.units}, min_count: {question.min_count}{longest}"
    return f"contributions: {{bound: in_query, {stated}}}", typical


def format_look(look: Look, question: Question) -> str:
    """Return a setting in words."""
    match look:
        case OneLook(units, bound):
            return f"one look with Delta = {bound} and {units} units"
        case BothLooks(units, bound):
            return (
                f"two looks with Delta_1 = {look.names_bound}, Delta_2 = {bound} and {units} units, {NAMES_SHARE} of "
                f"them for at most {question.most_names} names"
            )


def format_worth(worth: Worth, k: int) -> str:
    """Return what a setting finds in words."""
    if worth.error is None:
        return f"nothing of the top {k}"
    return (
        f"{worth.found:.1f} of the top {k}, counts off by {worth.error:.1f}, {worth.error_part:.1%} of them"
    )
