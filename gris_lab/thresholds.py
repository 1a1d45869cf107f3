"""What a threshold reveals to two questions, beside Gris under the same attack: tables, and a picture to show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from textwrap import fill
from typing import Any

from dp_service.accounting.composition import guarantee
from gris_data.sheets import Cell, Column, Sheet, percent, plainly, upwards
from gris_data.thresholds import PairOfQuestions, SingledOut
from gris_lab.accounting.attacks import averaging
from gris_lab.plots import COLOURS, drawn
from pinot_connector.formats import rounded_up

THRESHOLDS = (5, 10, 20, 50, 100, 200, 500, 1000)
_QUESTIONS = 2


@dataclass(frozen=True)
class Attack:
    """What two totals of Gris show of one member, by whose rows alone they differ.

    Attributes:
        epsilon: With `delta`, what both answers together promise every member, by the accounting of budgets.
        delta: The other number.
        odds: By how much both answers can raise or lower anybody's odds that the member has such rows, but for delta.
        right: The chance that who subtracts the answers guesses right, where a coin decided whether the member has any,
            and the member has no other rows of the group.
        right_at_most: The chance of the best guess of who knows everybody else's rows, at most.
    """

    epsilon: float
    delta: float
    odds: float
    right: float
    right_at_most: float


def attack(epsilon_per: Fraction, delta: Fraction, slack: Fraction) -> Attack:
    """Return what becomes of the attack where each of the two questions is a total of distinct members, for one unit.

    Raises:
        ValueError: An argument is out of range; the message names it.
    """
    worth = guarantee(epsilon_per, delta, information=_QUESTIONS, calls=0, slack=slack)
    odds = math.exp(worth.epsilon)
    # The difference is right, or off by the sum of two noises; a guess errs where it is off on the other side.
    exact = averaging(epsilon_per, _QUESTIONS).discrete
    return Attack(worth.epsilon, worth.delta, odds, (1 + exact) / 2, (odds + worth.delta) / (odds + 1))


def threshold_sheets(found: SingledOut, attacked: Attack, k: int) -> dict[str, Sheet]:
    """Return whom each pair of questions singles out, how little a larger threshold helps, and what Gris shows."""
    return {
        "pairs": _pairs_sheet(found, k),
        "thresholds": _thresholds_sheet(found),
        "guesses": _guesses_sheet(attacked, k),
    }


def headline(found: SingledOut, k: int) -> str:
    """Return what the threshold does in one sentence."""
    number = found.by_threshold[k]
    return (
        f"although only groups of {k:,} members or more are shown, two such answers single out {number:,} of "
        f"{found.members:,} members ({percent(_share(number, found))})"
    )


def _thousands(value: Cell) -> str:
    return f"{value:,}" if isinstance(value, int) else plainly(value)


def _share(number: int, found: SingledOut) -> float:
    return number / found.members


def _pairs_sheet(found: SingledOut, k: int) -> Sheet:
    pairs = sorted(found.by_pair, key=lambda each: -each.members)
    return Sheet(
        (
            Column("groups", "by", is_text=True),
            Column("without", "with and without one", is_text=True),
            Column("cells", "differ by one member", _thousands),
            Column("members", "members singled out", _thousands),
            Column("share", "of all", percent),
        ),
        [
            (
                ", ".join(each.groups) or "(all members)",
                each.without,
                each.cells,
                each.members,
                _share(each.members, found),
            )
            for each in pairs
        ],
        (
            (
                "singled out",
                f"both questions are about groups of {k:,} members or more, so both are answered; where they differ by "
                "the rows of one member alone, the difference is what this member did",
            ),
        ),
    )


def _thresholds_sheet(found: SingledOut) -> Sheet:
    return Sheet(
        (
            Column("k", "groups shown from", _thousands),
            Column("members", "members singled out", _thousands),
            Column("share", "of all", percent),
        ),
        [(k, number, _share(number, found)) for k, number in found.by_threshold.items()],
        (("", "by any of the pairs of questions above"),),
    )


def _guesses_sheet(attacked: Attack, k: int) -> Sheet:
    return Sheet(
        (
            Column("answers", "who guesses whether a member has such rows, by", is_text=True),
            Column("right", "is right", percent),
        ),
        _guesses(attacked, k),
        (
            (
                "Gris",
                f"the two answers are ({rounded_up(attacked.epsilon)}, {rounded_up(attacked.delta, 2)})-differentially "
                f"private for every member: they change anybody's odds by a factor of {upwards(attacked.odds)} at "
                "most, whatever else is known",
            ),
        ),
    )


def _guesses(attacked: Attack, k: int) -> list[tuple[str, float]]:
    return [
        ("a coin, without any answer", 0.5),
        ("the difference of two answers of Gris", attacked.right),
        ("Gris at most, knowing everybody else's rows", attacked.right_at_most),
        (f"the difference of two exact answers, groups of {k:,} or more", 1.0),
    ]


def draw_thresholds(found: SingledOut, attacked: Attack, k: int, path: Path, *, source: str) -> None:
    """Draw the share of members that thresholds single out, and beside it how sure the same attack is against Gris."""
    with drawn(path, width=10.5, height=4.8) as figure:
        share = _share(found.by_threshold[k], found)
        rule = f"“Show only groups of {k:,} members or more”"
        figure.suptitle(
            f"{rule} singles out {_labelled(100 * share)} of the members in {source}",
            fontsize=12,
            fontweight="bold",
        )
        example = max(found.by_pair, key=lambda each: each.members)
        figure.supxlabel(_explained(example), fontsize=9)
        left, right = figure.subplots(1, 2)
        _draw_shares(left, found, k)
        _draw_guesses(right, _guesses(attacked, k))


def _explained(example: PairOfQuestions) -> str:
    """Return how two questions single somebody out, in a few words."""
    of = f"about the same {' and '.join(example.groups)}" if example.groups else "about all members"
    return (
        f"Singled out: two questions that are both allowed, {of}, with and without one {example.without}, differ by "
        "the rows of one member alone.\nSubtracting the two answers shows what this member did."
    )


def _draw_shares(axes: Any, found: SingledOut, k: int) -> None:
    shares = {each: 100 * _share(number, found) for each, number in found.by_threshold.items()}
    colours = [COLOURS[1] if each == k else COLOURS[4] for each in shares]
    bars = axes.bar([f"{each:,}" for each in shares], list(shares.values()), color=colours)
    axes.bar_label(bars, [_labelled(each) for each in shares.values()], padding=2)
    axes.set(
        xlabel="smallest group that is shown (members)",
        ylabel="members singled out by two answers [%]",
        title="How large would groups have to be?",
        ylim=(0, 112),
    )
    _without_frame(axes)


def _labelled(share: float) -> str:
    return f"{share:.0f} %" if share >= 10 or not share else f"{share:.1f} %"


def _draw_guesses(axes: Any, guesses: Sequence[tuple[str, float]]) -> None:
    # The worst stands on top.
    names = [fill(name, 24) for name, _ in guesses]
    colours = ("#999999", COLOURS[0], COLOURS[5], COLOURS[1])
    bars = axes.barh(names, [100 * right for _, right in guesses], color=colours)
    axes.bar_label(bars, [f"{100 * right:.3g} %" for _, right in guesses], padding=3)
    axes.axvline(50, color="#666666", linestyle=":", linewidth=1)
    axes.set(
        xlabel="guesses whether this member was there that are right [%]",
        title="How sure is a guess about one member?",
        xlim=(0, 115),
    )
    _without_frame(axes)


def _without_frame(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
