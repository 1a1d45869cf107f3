"""Totals beside the rows of a drill-down, and "other": what the rows that are shown leave out.

A release is over pairs (a, b), such as country and product, and totals are over all b of each a. Totals are a release
of their own, with a part of the units: one more Gaussian coordinate for each a. What is added up is contributions, and
all of a member's may be in one total. So it moves a total by at most Delta_0 tau (P Delta_0 tau over P periods), and
all totals together by no more than that: D = (Delta_0 tau P)^2 in squared l2 distance. A SUM moves by W for each
contribution, as it does in a row. In effect totals are `BoundMoments` over rows, Delta_0 tau P of them in one group,
whose groups are known: those that the rows name.

*Members, or contributions.* A member that has several b counts several times in a total: these are contributions. Only
where the policy says that a member has one value of b does a total count members; then it moves no more than the
rows do.

*Which totals are shown.* Over a known domain all. Over an unknown one those whose a some shown row has: that follows
from what was released. A total is never added up from shown rows, which were selected.

*Other* is the total less what is shown of it: post-processing. It may be negative, as all noisy counts may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_service.mechanisms.aggregates.bound_moments import BoundMoments
from dp_service.mechanisms.bounded.contribution_bound import ContributionBound, Counted
from dp_service.mechanisms.parameters import Cost


def total_bound(bound: ContributionBound, *, has_one_value: bool) -> ContributionBound:
    """Return what a member can change of the totals by a, given what it can change of rows (a, b).

    `has_one_value`: the policy says that a member has one value of b, so that totals count members.

    >>> total_bound(ContributionBound(8, 2, 1, Counted.EVENTS), has_one_value=False).squared_distance
    256
    >>> total_bound(ContributionBound(8), has_one_value=True).squared_distance
    8
    """
    if has_one_value:
        return bound
    return ContributionBound(1, bound.delta_0 * bound.tau * bound.periods, 1, Counted.EVENTS)


@dataclass(frozen=True)
class DrillDown:
    """Rows by (a, b) and totals by a, each with its part of the units.

    Guarantee: that of the rows and that of the totals together: delta-approximate zCDP with the sum of their rho, as
    the totals are drawn with noise of their own. Cost: the units of both, and one call if the rows have an unknown
    domain.

    Raises:
        ValueError: The totals have a threshold, another currency, or a bound that is not that of the rows' totals.
    """

    rows: BoundMoments
    totals: BoundMoments
    has_one_value: bool = False

    def __post_init__(self) -> None:
        if self.totals.min_count is not None:
            raise ValueError("totals must be over the groups that the rows name, without a threshold")
        if self.totals.currency != self.rows.currency:
            raise ValueError("totals must have the currency of the rows")
        if self.totals.bound != total_bound(self.rows.bound, has_one_value=self.has_one_value):
            raise ValueError("totals must have the bound that `total_bound` gives")
        if [column.clamp for column in self.totals.columns] != [column.clamp for column in self.rows.columns]:
            raise ValueError("totals must be of the columns of the rows, with their clamps")

    @property
    def rho(self) -> Fraction:
        """The zCDP of both."""
        return self.rows.rho + self.totals.rho

    def worst_case_cost(self) -> Cost:
        """Return the units of both, rounded up together, and the call of the rows."""
        units = self.rows.units + self.totals.units
        return Cost(
            information=-(-units.numerator // units.denominator), calls=self.rows.worst_case_cost().calls
        )


def named_totals(shown: Sequence[int]) -> list[int]:
    """Return which totals are shown over an unknown domain, given the a of every shown row: each once, ascending."""
    return sorted(set(shown))


def other(total: Fraction, shown: Sequence[Fraction]) -> Fraction:
    """Return what is left of a total when the rows that are shown of it are taken away.

    >>> other(Fraction(100), [Fraction(60), Fraction(55, 2)])
    Fraction(25, 2)
    """
    return total - sum(shown, Fraction(0))
