"""The tables of `gris plan guarantee`, `solve` and `deployments`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from dp_service.accounting.calls import CallRule
from dp_service.accounting.composition import Bound, Guarantee, PublishedDomain, guarantees
from dp_service.accounting.epsilon_table import EpsilonTable, file_name, is_held
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
from gris_data.sheets import Column, Sheet, downwards, plainly, upwards
from gris_lab.accounting.deployments import DEPLOYMENTS, Loss
from gris_lab.tables import made_again, table_for, with_adaptive_bound

_BOUNDS = {
    Bound.BASIC: "adding up",
    Bound.DONG_DURFEE_ROGERS: "Dong, Durfee and Rogers 2020, the paper's",
    Bound.DURFEE_ROGERS: "Durfee and Rogers 2019, lemma 4.4",
    Bound.ZCDP: "zCDP, converted tightly",
    Bound.ADAPTIVE: "the smallest for any adaptive choice",
}


@dataclass(frozen=True)
class Budget:
    """A budget and everything that its worth depends on; it counts so many `times`, once in each block of a member.

    `compared` is what is said of a file with whose table it was compared, which was made again without the file.
    """

    epsilon_per: Fraction
    delta: Fraction
    information: int
    calls: int
    slack: Fraction
    gaussian: bool = False
    domains: tuple[PublishedDomain, ...] = ()
    call_rule: CallRule = CallRule.TWICE
    table: EpsilonTable | None = None
    times: int = 1
    compared: str = ""

    def guarantees(self) -> tuple[Guarantee, ...]:
        """Return its worth by each bound that may be used.

        Raises:
            ValueError: An argument is out of range, or the delta of all together reaches 1; the message names it.
        """
        found = guarantees(
            self.epsilon_per,
            self.delta,
            information=self.times * self.information,
            calls=self.times * self.calls,
            slack=self.slack,
            gaussian=self.gaussian,
            domains=self.domains,
            call_rule=self.call_rule,
            table=self.table,
        )
        if any(each.delta >= 1 for each in found):
            # Even publishing all data is (0, 1)-differentially private.
            raise ValueError(
                f"delta of {plainly(self.delta)}, with {self.calls} calls, a slack of {plainly(self.slack)} and "
                f"{len(self.domains)} published domains, adds up to 1 or more, which promises nothing: expected fewer "
                "calls or a smaller delta"
            )
        return found

    def guarantee(self) -> Guarantee:
        """Return the best of them."""
        return min(self.guarantees(), key=lambda each: each.epsilon)


def with_table(budget: Budget, *, quick: bool) -> Budget:
    """Return the budget with the table of its adaptive bound, made if needed.

    Raises:
        ValueError: An argument is out of range; the message names it.
    """
    # What is wrong with the budget is said before a table is made.
    budget.guarantees()
    table = table_for(
        budget.epsilon_per, budget.times * budget.information, gaussian=budget.gaussian, quick=quick
    )
    return replace(budget, table=table)


def with_table_made_again(budget: Budget, path: Path) -> tuple[Budget, bool]:
    """Return the budget with the table of a file, made again without the file, and whether the two agree.

    Raises:
        ValueError: An argument is out of range, or the file holds no table of the budget's currency.
        OSError: The file cannot be read.
    """
    budget.guarantees()
    units = budget.times * budget.information
    made = made_again(path, budget.epsilon_per, units, gaussian=budget.gaussian)
    return replace(budget, table=made.table, compared=made.said), made.agrees


def guarantee_sheet(budget: Budget) -> Sheet:
    """Return what a budget is worth by each bound."""
    best = budget.guarantee()
    rows = [
        (each.bound.value, _BOUNDS[each.bound], each.epsilon, each.delta, each is best or each == best)
        for each in budget.guarantees()
    ]
    is_covered_by_few = budget.gaussian or budget.domains
    only = "bounds that cover neither Gaussian noise nor domains are left out" if is_covered_by_few else ""
    needed = (
        0.0 if budget.table is None else budget.table.needed(budget.times * budget.information, budget.slack)
    )
    is_tight = best.bound is Bound.ADAPTIVE and needed and not budget.domains
    return Sheet(
        (
            Column("bound", "bound", is_text=True),
            Column("by", "by", is_text=True),
            Column("epsilon", "epsilon", upwards),
            Column("delta", "delta"),
            Column("best", "best"),
        ),
        rows,
        (
            (
                "guarantee",
                f"({upwards(best.epsilon)}, {plainly(best.delta)})-DP for every member, rounded up",
            ),
            ("", only),
            ("checks", "; ".join(checks(budget, best))),
            (
                "",
                f"counted {budget.times} times, as a member may be of so many blocks"
                if budget.times > 1
                else "",
            ),
            (
                "",
                f"some mechanisms need {downwards(needed)} at this slack: no bound is below"
                if is_tight
                else "",
            ),
        ),
    )


def checks(budget: Budget, best: Guarantee) -> tuple[str, ...]:
    """Say what of the epsilon of the best bound was checked in whole numbers, and by whom, and what was not."""
    said = (budget.compared,) if budget.compared else ()
    return *_checks(budget, best), *said


def _checks(budget: Budget, best: Guarantee) -> tuple[str, ...]:
    table = budget.table
    if best.bound is not Bound.ADAPTIVE or table is None:
        return ("by a proof on paper; in whole numbers only the adaptive bound is checked",)
    if not table.is_checked:
        return (
            "not checked in whole numbers: only tables of bounded range, with an epsilon_per of at most 1, are",
        )
    found = [
        "its table was made here, and checked in whole numbers"
        if budget.compared
        else "its table was checked in whole numbers by who made it, when it was made; of a file that is read, the "
        "last row is checked again, and all rows where the file is compared"
    ]
    if not is_held(budget.slack / 2 if budget.domains else budget.slack):
        found.append("not checked is what lies between two slacks of the table")
    if budget.domains:
        found.append("not checked is what published domains add")
    return tuple(found)


def table_sheet(table: EpsilonTable, directory: Path) -> Sheet:
    """Return what a table holds, and where it is."""
    return Sheet(
        (
            Column("epsilon_per", "epsilon_per"),
            Column("information", "information units"),
            Column("epsilon", "epsilon at slack 1e-9", upwards),
            Column("file", "file", is_text=True),
        ),
        [
            (
                table.epsilon_per,
                table.units,
                table.epsilon(table.units, Fraction("1e-9")),
                str(directory / file_name(table.epsilon_per, gaussian=table.gaussian)),
            )
        ],
    )


def epsilon_per_sheet(
    target: Target, *, information: int, calls: int, d_bar: int, quick: bool = True
) -> Sheet:
    """Return the largest epsilon_per for two splits of delta, with what an element then needs.

    With `quick` by the bounds that need no table. The split with the lowest threshold is chosen by these.
    """
    split = papers_split(target, calls)
    paper = Solution(epsilon_per_for(target, split, information=information), split)
    best = best_epsilon_per(target, information=information, calls=calls, d_bar=d_bar)
    if not quick:
        paper, best = with_adaptive_bound(target, [paper, best], information=information)
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


def units_sheet(
    target: Target, split: Split, *, epsilon_per: Fraction, table: EpsilonTable | None = None, times: int = 1
) -> Sheet:
    """Return the most information units and the most calls that are worth no more than the target, counted `times`."""
    information = information_for(target, split, epsilon_per=epsilon_per, table=table) // times
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


def deployments_sheet(budget: Budget, *, is_refreshed: bool = True) -> Sheet:
    """Return other deployments' parameters, and this budget's below them: of a month, or all of it."""
    own = budget.guarantee()
    rows = [
        (
            each.name,
            each.model.value,
            " or ".join(_format_loss(loss) for loss in each.per_report),
            _format_loss(each.daily),
            _format_loss(each.monthly),
            f"{each.note} ({each.source})" if each.source else each.note,
        )
        for each in DEPLOYMENTS
    ]
    report = _format_loss(Loss(float(budget.epsilon_per), float(budget.delta)))
    worth = f"({upwards(own.epsilon)}, {plainly(own.delta)})"
    spent = f"{budget.information} and {budget.calls} {'a month' if is_refreshed else 'for good, never refreshed'}"
    rows.append(("this budget", "global", report, "", worth, f"{spent}; by the bound {own.bound.value}"))
    return Sheet(
        tuple(
            Column(key, heading, is_text=True)
            for key, heading in (
                ("name", "deployment"),
                ("model", "model"),
                ("per_report", "one report"),
                ("daily", "a day"),
                ("monthly", "a month"),
                ("note", "remarks"),
            )
        ),
        rows,
        (("source", "table 2 of Rogers et al. 2020, unless a row names its own"),),
    )


def _format_loss(loss: Loss | None) -> str:
    return "" if loss is None else f"({loss.epsilon:g}, {loss.delta:g})"
