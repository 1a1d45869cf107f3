"""Values become whole steps within public bounds, and members' rows the counts and centred sums of a group."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest

from dp_service.values.bounds import SUMS_IN_DOUBLES, Clamp, require_exact_sums
from dp_service.values.quantum import Quantum, Value
from tests.support.member_sums import ColumnSum, GroupSums, SummedColumn, group_sums
from tests.support.values import bounds_of, is_usable, row_steps, steps_of

CENTS = bounds_of(Fraction("0.01"), (Fraction(-5), Fraction(20)), (Fraction(0), Fraction(30)))
UNUSABLE: tuple[Value, ...] = (
    None,
    math.nan,
    math.inf,
    -math.inf,
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Inf"),
)


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        (Decimal("0.005"), 1),
        (Decimal("0.00499999999999999999999999"), 0),
        (Decimal("-0.005"), 0),
        (Decimal("-0.0051"), -1),
        (0.125, 13),
        (-0.125, -12),
        (7, 700),
        (2**63, 2**63 * 100),
        (Decimal(10) ** 40, 10**42),
    ],
)
def test_a_value_becomes_the_nearest_step(value: Value, steps: int) -> None:
    """Of two that are equally near the upper one, without a limit to their size."""
    assert value is not None
    assert steps_of(Quantum(Fraction("0.01")), value) == steps


def test_floats_are_rounded_as_an_engine_rounds_them() -> None:
    """By one product and one sum in doubles: 1.115 times 100 is a little above 111.5, though 1.115 is below it."""
    assert math.floor(1.115 * 100 + 0.5) == 112
    assert steps_of(Quantum(Fraction("0.01")), 1.115) == 112
    assert steps_of(Quantum(Fraction("0.01")), Decimal("1.1149999999999999911")) == 111
    assert steps_of(Quantum(Fraction(5)), 12.5) == 3


@pytest.mark.parametrize("value", UNUSABLE, ids=repr)
def test_what_is_no_number_does_not_count(value: Value) -> None:
    """NULL, NaN and infinities, of floats and decimals."""
    assert not is_usable(value)
    assert row_steps(CENTS, value) is None


@pytest.mark.parametrize(
    ("value", "steps"),
    [(1e308, 2000), (-1e308, -500), (2**63, 2000), (-(2**63), -500), (Decimal("1e99"), 2000)],
)
def test_a_row_is_clamped_whatever_its_size(value: Value, steps: int) -> None:
    """Nothing overflows: an error would tell of the row."""
    assert row_steps(CENTS, value) == steps


def test_rows_are_clamped_before_they_are_added_and_totals_after() -> None:
    """A row of 10^9 counts as 20, and a total of 40 as 30."""
    column = SummedColumn(CENTS)
    found = group_sums([[(10**9,), (-3,)], [(20,), (20,)], [(-5,)]], [column])
    assert found == GroupSums(3, (ColumnSum(2 * (1700 + 3000 + 0) - 3 * 3000, None),))


@pytest.mark.parametrize("value", UNUSABLE, ids=repr)
def test_a_member_without_a_usable_row_counts_nowhere(value: Value) -> None:
    """Neither in n nor in B; with one usable row it counts with that."""
    column = SummedColumn(CENTS)
    assert group_sums([[(value,)], []], [column]) == GroupSums(0, (ColumnSum(0, None),))
    assert group_sums([[(value,), (1,)]], [column]) == group_sums([[(1,)]], [column])


def test_a_value_may_stand_for_what_is_missing() -> None:
    """Then its row counts, and is clamped as any other."""
    column = SummedColumn(CENTS, stands_for_missing=10**6)
    assert group_sums([[(None,)]], [column]) == group_sums([[(20,)]], [SummedColumn(CENTS)])


def test_a_column_with_a_count_of_its_own_does_not_decide_who_counts() -> None:
    """One that shares n does: what it cannot use counts in no column."""
    own = SummedColumn(CENTS, has_own_count=True)
    found = group_sums([[(1, None)], [(2, 3)], [(None, 4)]], [SummedColumn(CENTS), own])
    assert found == GroupSums(
        2, (ColumnSum(100 * 2 + 200 * 2 - 2 * 3000, None), ColumnSum(2 * 300 - 3000, 1))
    )


def test_over_rows_a_member_of_many_counts_as_tau_rows_of_their_mean() -> None:
    """Rows that do not count have no part in it."""
    column = SummedColumn(CENTS)
    found = group_sums([[(None,), (1,), (2,), (3,)]], [column], rows_of_member=2)
    assert found == GroupSums(2, (ColumnSum(2 * 400 - 2 * 1500, None),))


def test_no_member_moves_a_sum_by_more_than_the_width() -> None:
    """Of totals once, of rows for each of tau, whatever its rows are."""
    values: tuple[Value, ...] = (None, math.nan, -(2**63), -4, 0.3, 15, 1e300)
    column = SummedColumn(CENTS)
    for rows in product(values, repeat=3):
        member = [(value,) for value in rows]
        of_totals, of_rows = group_sums([member], [column]), group_sums([member], [column], rows_of_member=2)
        assert of_totals.count <= 1
        assert abs(of_totals.columns[0].centred) <= CENTS.totals.width * of_totals.count
        assert of_rows.count <= 2
        assert abs(of_rows.columns[0].centred) <= CENTS.rows.width * of_rows.count


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Clamp(3, 3), "low must be below high"),
        (lambda: Clamp(4, 3), "low must be below high"),
        (lambda: Clamp(0, 1.5), "whole steps"),  # type: ignore[arg-type]
        (lambda: Quantum(Fraction(0)), "quantum"),
        (lambda: Quantum(Fraction(-1)), "quantum"),
        (lambda: Quantum(Fraction(3, 2)), "quantum"),
        (lambda: Quantum(Fraction(1, 10**16)), "quantum"),
        (
            lambda: bounds_of(Fraction("0.01"), (Fraction(0), Fraction("1.005")), (Fraction(0), Fraction(1))),
            "divide",
        ),
    ],
)
def test_bounds_that_make_no_sense_are_refused_by_name(make: Callable[[], object], message: str) -> None:
    """L from U on, and a quantum that does not divide a bound."""
    with pytest.raises(ValueError, match=message):
        make()


def test_sums_that_an_engine_could_not_hold_are_refused_from_public_numbers() -> None:
    """With the factor 2: 3 10^6 members of up to 2^31 steps fit 64 bits, and not a double."""
    bounds = bounds_of(Fraction(1), (Fraction(0), Fraction(2**31)), (Fraction(0), Fraction(2**31)))
    require_exact_sums(bounds, members=3 * 10**6, rows_of_member=None, rows=10**6, below=2**63)
    with pytest.raises(ValueError, match="sums must stay below 9007199254740992"):
        require_exact_sums(bounds, members=3 * 10**6, rows_of_member=None, rows=10**6, below=SUMS_IN_DOUBLES)


@pytest.mark.parametrize(
    ("members", "rows_of_member", "rows"), [(2**21, None, 1), (2**11, 2**10, 2**21), (1, None, 2**22)]
)
def test_the_limit_of_doubles_is_met_exactly(members: int, rows_of_member: int | None, rows: int) -> None:
    """Within +-2^31 a member needs 2^32, and 2^21 of them 2^53, which is refused; one member or row less is not."""
    ends = (Fraction(-(2**31)), Fraction(2**31))
    bounds = bounds_of(Fraction(1), ends, ends)

    def check(members: int, rows: int) -> None:
        require_exact_sums(
            bounds, members=members, rows_of_member=rows_of_member, rows=rows, below=SUMS_IN_DOUBLES
        )

    with pytest.raises(ValueError, match="sums"):
        check(members, rows)
    check(max(members - 1, 1), max(rows - 1, 1))


@pytest.mark.slow
def test_sums_in_doubles_lose_a_member_where_integers_do_not() -> None:
    """What the check is for: beyond 2^53 a sum of ones stays where it is, and its order decides what it is."""
    large, ones = float(2**53), [1.0] * 8
    assert sum([large, *ones]) == large
    assert sum([*ones, large]) == large + 8
