"""The tables of `gris plan guarantee` and `gris plan solve`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.composition import Guarantee, PublishedDomain, guarantee
from dp_service.accounting.solving import (
    Solution,
    Split,
    Target,
    best_epsilon_per,
    calls_for,
    epsilon_per_for,
    information_for,
    papers_split,
)
from gris_cli.data.sheets import Column, Sheet, plainly, upwards


@dataclass(frozen=True)
class Budget:
    """A budget and everything that its worth depends on; it counts so many `times`, once in each block of a member."""

    epsilon_per: Fraction
    delta: Fraction
    information: int
    calls: int
    slack: Fraction
    gaussian: bool = False
    domains: tuple[PublishedDomain, ...] = ()
    times: int = 1

    def guarantee(self) -> Guarantee:
        """Return its worth.

        Raises:
            ValueError: An argument is out of range, or the delta of all together reaches 1; the message names it.
        """
        found = guarantee(
            self.epsilon_per,
            self.delta,
            information=self.times * self.information,
            calls=self.times * self.calls,
            slack=self.slack,
            gaussian=self.gaussian,
            domains=self.domains,
        )
        if found.delta >= 1:
            # Even publishing all data is (0, 1)-differentially private.
            raise ValueError(
                f"delta of {plainly(self.delta)}, with {self.calls} calls, a slack of {plainly(self.slack)} and "
                f"{len(self.domains)} published domains, adds up to 1 or more, which promises nothing: expected fewer "
                "calls or a smaller delta"
            )
        return found


def guarantee_sheet(budget: Budget) -> Sheet:
    """Return what a budget is worth."""
    found = budget.guarantee()
    private = f"({upwards(found.epsilon)}, {plainly(found.delta)})-DP for every member, rounded up"
    blocks = f"counted {budget.times} times, as a member may be of so many blocks" if budget.times > 1 else ""
    return Sheet(
        (Column("epsilon", "epsilon", upwards), Column("delta", "delta")),
        [(found.epsilon, found.delta)],
        (("guarantee", private), ("", blocks)),
    )


def epsilon_per_sheet(target: Target, *, information: int, calls: int, d_bar: int) -> Sheet:
    """Return the largest epsilon_per for two splits of delta, with what an element then needs."""
    split = papers_split(target, calls)
    paper = Solution(epsilon_per_for(target, split, information=information), split)
    best = best_epsilon_per(target, information=information, calls=calls, d_bar=d_bar)
    return Sheet(
        (
            Column("split", "split of delta", is_text=True),
            Column("epsilon_per", "epsilon_per"),
            Column("delta", "delta of a call"),
            Column("slack", "slack"),
            Column("height", f"threshold at d_bar = {d_bar}"),
        ),
        [
            (name, each.epsilon_per, each.split.delta, each.split.slack, each.height(d_bar))
            for name, each in (("the paper's", paper), ("lowest threshold", best))
        ],
        (("threshold", "how far bottom lies above the count at its rank, for tau = 1"),),
    )


def units_sheet(target: Target, split: Split, *, epsilon_per: Fraction, times: int = 1) -> Sheet:
    """Return the most information units and the most calls that are worth no more than the target, counted `times`."""
    information = information_for(target, split, epsilon_per=epsilon_per) // times
    row = (epsilon_per, split.delta, split.slack, information, calls_for(target, split) // times)
    return Sheet(
        (
            Column("epsilon_per", "epsilon_per"),
            Column("delta", "delta of a call"),
            Column("slack", "slack"),
            Column("information", "information at most"),
            Column("calls", "calls at most"),
        ),
        [row],
    )
