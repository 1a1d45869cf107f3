"""What goes wrong where sums are formed or shown otherwise: each change breaks a promise that is kept without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.support.member_sums import ColumnSum, GroupSums, Row, SummedColumn, group_sums
from tests.support.values import is_usable, steps_of
from tests.unit.dp_service.mechanisms.bounded.laws import ROUNDING_ERROR

from .member_rows import Summing, derived
from .promises import Moments, column, is_positive, moments, where_positive

Members = Sequence[Sequence[Row]]


def is_kept(promise: Moments) -> bool:
    """Return whether a promise is kept."""
    worst = promise.worst()
    return worst.excess <= ROUNDING_ERROR and worst.relative_rho <= 1 + ROUNDING_ERROR


def totals(members: Members, summed: SummedColumn) -> list[int]:
    """Return the clamped total of every member with a usable row."""
    steps = [[summed.steps(row[0]) for row in rows] for rows in members]
    usable = [[step for step in each if step is not None] for each in steps]
    return [summed.bounds.totals(sum(each)) for each in usable if each]


def not_centred(summed: SummedColumn) -> Summing:
    """Return the doubled sum, which moves by up to twice the larger end and not by W."""

    def sums(members: Members) -> GroupSums:
        found = totals(members, summed)
        return GroupSums(len(found), (ColumnSum(2 * sum(found), None),))

    return sums


def of_other_members(summed: SummedColumn) -> Summing:
    """Return 2 SUM(x) - (L + U) COUNT(*), where n counts those with a usable row: COUNT(*) counts everybody."""

    def sums(members: Members) -> GroupSums:
        found = totals(members, summed)
        everybody = sum(bool(rows) for rows in members)
        centred = 2 * sum(found) - summed.bounds.totals.centre * everybody
        return GroupSums(len(found), (ColumnSum(centred, None),))

    return sums


def clamped_after_the_sum(summed: SummedColumn) -> Summing:
    """Return the sum over all members, clamped to what n members can have together."""

    def sums(members: Members) -> GroupSums:
        count, clamp = len(totals(members, summed)), summed.bounds.totals
        values = [row[0] for rows in members for row in rows if is_usable(row[0])]
        total = sum(steps_of(summed.bounds.quantum, value) for value in values if value is not None)
        within = min(max(total, count * clamp.low), count * clamp.high)
        return GroupSums(count, (ColumnSum(2 * within - clamp.centre * count, None),))

    return sums


def rows_clamped_but_not_totals(summed: SummedColumn) -> Summing:
    """Return sums of clamped rows, of which a member may have several."""

    def sums(members: Members) -> GroupSums:
        count = len(totals(members, summed))
        steps = [summed.steps(row[0]) for rows in members for row in rows]
        total = sum(step for step in steps if step is not None)
        return GroupSums(count, (ColumnSum(2 * total - summed.bounds.totals.centre * count, None),))

    return sums


FAR_ABOVE = column((3, 4), (3, 4))


@pytest.mark.parametrize(
    "wrongly", [not_centred, of_other_members, clamped_after_the_sum, rows_clamped_but_not_totals]
)
def test_sums_that_move_by_more_than_the_width_break_their_promise(
    wrongly: Callable[[SummedColumn], Summing],
) -> None:
    """Of totals from 3 to 4: what is centred moves by 1, and everything else by several times that."""
    promise = moments(FAR_ABOVE, values=(None, 3, 90), base=((30, 5),))
    assert is_kept(promise)
    assert replace(promise, summing=wrongly(FAR_ABOVE)).worst().relative_rho > 1.5


def test_sums_of_hidden_groups_break_their_promise() -> None:
    """That there is a sum at all shows that somebody is there."""
    promise = moments(column((0, 2), (0, 2)), values=(0, 1), base=((0, 0),))
    assert is_kept(promise)
    assert replace(promise, hides_sums=False).worst().excess > 0.5


def test_numbers_of_rows_that_are_not_bounded_break_their_promise() -> None:
    """A member with three rows that meet the condition counts as one; over rows as two of three, whichever they are."""
    of_members = column((0, 1), (0, 1))
    promise = where_positive(of_members, of_row=is_positive, values=(-4, 1), base=((30, 0),), most_rows=3)
    unbounded = column((0, 3), (0, 1))
    assert is_kept(promise)
    assert replace(promise, summing=derived([unbounded], is_positive)).worst().relative_rho > 1.5
    over_rows = where_positive(
        of_members, of_row=is_positive, values=(-4, 1), base=((40, 0),), tau=2, most_rows=3
    )
    assert is_kept(over_rows)

    def of_every_row(members: Members) -> GroupSums:
        count = sum(min(len(rows), 2) for rows in members)
        met = sum(int(value > 0) for rows in members for (value,) in rows if isinstance(value, int))
        return GroupSums(count, (ColumnSum(2 * met - count, None),))

    assert replace(over_rows, summing=of_every_row).worst().relative_rho > 1.5


def test_a_condition_that_decides_which_members_count_breaks_the_promise() -> None:
    """n of those that meet it beside a number that is centred by all: a member moves that by more than its share."""
    promise = where_positive(column((0, 1), (0, 1)), of_row=is_positive, values=(-4, 1), base=((30, 0),))

    def of_others(members: Members) -> GroupSums:
        met = [any(is_positive(row[0])[0] for row in rows) for rows in members if rows]
        return GroupSums(sum(met), (ColumnSum(3 * sum(met) - len(met), None),))

    assert is_kept(promise)
    assert replace(promise, summing=of_others).worst().relative_rho > 1.5


def test_more_rows_than_tau_break_sums_over_rows() -> None:
    """Three rows of a member move n by 3 and B by 3 W, where 2 were paid for."""
    summed = column((0, 9), (0, 2))
    promise = moments(summed, values=(2,), base=((40, 0),), tau=2, most_rows=3, most_members=1)
    assert is_kept(promise)

    def every_row(members: Members) -> GroupSums:
        return group_sums(members, [summed], rows_of_member=3)

    assert replace(promise, summing=every_row).worst().relative_rho == pytest.approx(9 / 4, abs=0.04)
