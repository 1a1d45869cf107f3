"""Tables of epsilons say what the bounds say, rounded up, and refuse bytes that are no table."""

from __future__ import annotations

import hashlib
import io
import math
from dataclasses import replace
from fractions import Fraction
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

from dp_service.accounting.adaptive import upper_tables
from dp_service.accounting.composition import Bound, PublishedDomain, guarantee, guarantees
from dp_service.accounting.epsilon_table import (
    SLACKS,
    BudgetEpsilons,
    EpsilonTable,
    TableError,
    extended,
    file_name,
    new_table,
    table_from,
)
from dp_service.accounting.zcdp import epsilon_of_zcdp

E = Fraction("0.15")
SLACK = Fraction("1e-9")


@pytest.fixture(scope="module")
def table() -> EpsilonTable:
    """Return the table of the default currency for a hundred units."""
    return extended(new_table(E), 100)


@pytest.mark.slow
@pytest.mark.parametrize("units", [0, 1, 7, 100])
@pytest.mark.parametrize("slack", ["1e-9", "4e-9", "1.07e-9", "7.77e-6", "1.01e-13"])
def test_a_table_is_hardly_above_the_bounds_it_is_made_of(
    table: EpsilonTable, units: int, slack: str
) -> None:
    """At the slacks it holds and between them; never below."""
    direct = next(islice(upper_tables(E), units, None)).epsilon(Fraction(slack))
    found = table.epsilon(units, Fraction(slack))
    assert direct <= found <= direct * 1.001 + 1e-9


@pytest.mark.parametrize("units", [1, 7, 100])
@pytest.mark.parametrize("slack", ["1e-9", "1.07e-9", "7.77e-6", "1e-3", "0.5"])
def test_what_is_needed_is_hardly_below_what_is_enough(table: EpsilonTable, units: int, slack: str) -> None:
    """At the slacks that are held they nearly meet; never is more needed than is enough."""
    needed, enough = table.needed(units, Fraction(slack)), table.epsilon(units, Fraction(slack))
    assert needed <= enough
    if Fraction(slack) in SLACKS and units > 1:
        assert enough <= needed + 0.0055


def test_epsilon_falls_with_slack(table: EpsilonTable) -> None:
    """Between two slacks that are held there is no jump, and above the largest one epsilon stays."""
    slacks = [Fraction(f"1e-{power}") * part for power in (12, 9, 5) for part in (1, Fraction(16, 15), 2, 3)]
    found = [table.epsilon(100, slack) for slack in sorted(slacks)]
    assert all(smaller >= larger for smaller, larger in pairwise(found))
    assert table.epsilon(100, Fraction(1, 2)) == table.epsilon(100, SLACKS[-1])


def test_what_a_table_does_not_hold_has_no_epsilon(table: EpsilonTable) -> None:
    """More units, or less slack."""
    assert math.inf == table.epsilon(101, SLACK)
    assert math.inf == table.epsilon(100, Fraction("9.9e-14"))


def test_a_table_that_is_extended_is_the_larger_table(table: EpsilonTable) -> None:
    """Also if it was kept as bytes in between; each unit that is added is reported once."""
    advanced: list[None] = []
    half = extended(new_table(E), 50)
    whole = extended(table_from(half.to_bytes()), 100, lambda: advanced.append(None))
    assert 50 == len(advanced)
    assert np.array_equal(whole.rows.enough, table.rows.enough)
    assert np.array_equal(whole.rows.needed, table.rows.needed)
    assert whole is extended(whole, 60)


def test_one_budget_is_worth_what_its_table_says(table: EpsilonTable) -> None:
    """Without the table; fewer units are bounded by it, more are not."""
    advanced: list[None] = []
    budget = BudgetEpsilons.of(E, 100, advance=lambda: advanced.append(None))
    assert 100 == len(advanced)
    for slack in (SLACK, Fraction("1.07e-9"), Fraction(1, 2)):
        assert table.epsilon(100, slack) == budget.epsilon(100, slack) == budget.epsilon(3, slack)
    assert math.inf == budget.epsilon(101, SLACK) == budget.epsilon(1, Fraction("1e-14"))


def test_a_table_of_thousands_of_units_fits_into_a_configmap(table: EpsilonTable) -> None:
    """Its rows take a few bits for each number, as they bend so little: far below what floats would take."""
    assert len(table.to_bytes()) < 0.2 * table.rows.enough.nbytes + 2 * 8 * table.upper.values.size


def altered(table: EpsilonTable, **parts: object) -> bytes:
    """Return a table's bytes with some parts replaced."""
    with np.load(io.BytesIO(table.to_bytes())) as file:
        values = {name: file[name] for name in file.files}
    changed = io.BytesIO()
    np.savez_compressed(changed, **(values | parts))
    return changed.getvalue() + hashlib.sha256(changed.getvalue()).digest()


def test_bytes_that_are_no_table_are_refused(table: EpsilonTable) -> None:
    """Damaged, foreign, of another version, or with numbers that no table can have."""
    whole = table.to_bytes()
    for content in (b"", b"PK", whole[:-100], whole[:200] + b"x" * 50 + whole[250:]):
        with pytest.raises(TableError, match="damaged"):
            table_from(content)
    for older in (0, 3):
        with pytest.raises(TableError, match="another version"):
            table_from(altered(table, format=np.array([older])))
    with pytest.raises(TableError, match="cannot be right"):
        table_from(altered(table, enough=table.rows.enough[::-1]))
    with pytest.raises(TableError, match="cannot be right"):
        table_from(altered(table, epsilon_per=np.array(["3/10"])))


@pytest.mark.parametrize("part", [0.6, 0.999])
def test_epsilons_that_are_not_enough_are_refused(table: EpsilonTable, part: float) -> None:
    """Though the file is whole, and its numbers rise and fall as they should: the last row is checked when read."""
    enough = (table.rows.enough * part).astype(np.int32)
    rows = replace(table.rows, enough=enough, needed=np.minimum(table.rows.needed, enough))
    with pytest.raises(TableError, match="not enough"):
        table_from(replace(table, rows=rows).to_bytes())


@pytest.fixture(scope="module", params=[False, True], ids=["ranges", "gaussian"])
def small(request: pytest.FixtureRequest) -> EpsilonTable:
    """Return a table of twelve units, without Gaussian steps and with them."""
    return extended(new_table(E, gaussian=request.param), 12)


def with_rows(table: EpsilonTable, rows: slice, enough: Any) -> EpsilonTable:
    """Return a table with other epsilons for some numbers of units."""
    changed = table.rows.enough.copy()
    changed[rows] = enough
    return replace(
        table, rows=replace(table.rows, enough=changed, needed=np.minimum(table.rows.needed, changed))
    )


def test_a_table_whose_rows_contradict_each_other_is_refused(small: EpsilonTable) -> None:
    """One for more units is smaller, or more than e larger; Gaussian steps may make it that."""
    enough = small.rows.enough
    with pytest.raises(TableError, match="cannot be right"):
        table_from(with_rows(small, slice(6, 7), np.maximum(enough[5] - 2, 0)).to_bytes())
    jumps = with_rows(small, slice(2, 12), enough[1]).to_bytes()
    if small.gaussian:
        table_from(jumps)
    else:
        with pytest.raises(TableError, match="cannot be right"):
            table_from(jumps)


def test_a_table_that_would_be_extended_to_too_small_a_one_is_refused(small: EpsilonTable) -> None:
    """What it is extended from is of fewer units, though the file says that it is of as many, or of another e."""
    fewer = extended(new_table(E, gaussian=small.gaussian), 11)
    with pytest.raises(TableError, match="cannot be right"):
        table_from(replace(small, upper=fewer.upper).to_bytes())
    with pytest.raises(TableError, match="is none of the bounds"):
        table_from(replace(small, upper=replace(fewer.upper, rest=small.upper.rest)).to_bytes())
    with pytest.raises(TableError, match="is none of the bounds"):
        table_from(replace(small, lower=fewer.lower).to_bytes())
    with pytest.raises(TableError, match="cannot be right"):
        table_from(replace(small, epsilon_per=E + Fraction(1, 10**14)).to_bytes())


def test_the_last_row_is_that_of_the_bounds(small: EpsilonTable) -> None:
    """Three steps less are refused, also where no check in whole numbers is."""
    less = np.maximum(small.rows.enough[-1] - 3, small.rows.enough[-2])
    with pytest.raises(TableError, match="is none of the bounds" if small.gaussian else "not enough"):
        table_from(with_rows(small, slice(12, 13), less).to_bytes())


def by_bound(table: EpsilonTable | None, *, calls: int = 0, **more: object) -> dict[Bound, float]:
    """Return each bound's epsilon for a hundred units."""
    found = guarantees(
        E,
        Fraction("1e-10"),
        information=100,
        calls=calls,
        slack=SLACK,
        table=table,
        **more,  # type: ignore[arg-type]
    )
    return {each.bound: each.epsilon for each in found}


def test_with_a_table_the_guarantee_is_the_adaptive_bound(table: EpsilonTable) -> None:
    """It is the smallest of five; without a table there are four, and nothing else changes."""
    with_table, without = by_bound(table), by_bound(None)
    assert with_table.pop(Bound.ADAPTIVE) == table.epsilon(100, SLACK) < min(without.values())
    assert with_table == without
    best = guarantee(E, Fraction("1e-10"), information=100, calls=0, slack=SLACK, table=table)
    assert Bound.ADAPTIVE is best.bound


def test_calls_add_their_epsilon_by_either_rule(table: EpsilonTable) -> None:
    """100 ln(1 + 1e-10): the adaptive bound has no proof without it."""
    assert by_bound(table, calls=1)[Bound.ADAPTIVE] - by_bound(table)[Bound.ADAPTIVE] == pytest.approx(1e-8)


def test_gaussian_noise_has_the_bound_of_a_table_with_gaussian_steps(table: EpsilonTable) -> None:
    """One of bounded range alone is refused; the other holds for any noise, and is kept in a file of its own."""
    with pytest.raises(ValueError, match=r"^table must be one with Gaussian steps"):
        by_bound(table, gaussian=True)
    mixed = table_from(extended(new_table(E, gaussian=True), 100).to_bytes())
    assert mixed.gaussian
    assert not table.gaussian
    found = by_bound(mixed, gaussian=True)
    assert {Bound.ZCDP, Bound.ADAPTIVE} == set(found)
    assert table.epsilon(100, SLACK) < found[Bound.ADAPTIVE] < 4.519 < found[Bound.ZCDP]
    assert mixed.needed(100, SLACK) > 4.50
    assert found[Bound.ADAPTIVE] == BudgetEpsilons.of(E, 100, gaussian=True).epsilon(100, SLACK)
    assert file_name(E, gaussian=True) != file_name(E, gaussian=False)


def test_domains_are_added_to_the_adaptive_bound(table: EpsilonTable) -> None:
    """By adding up, each with half of the slack; the smaller of the two bounds is the guarantee."""
    price = Fraction("0.002")
    found = by_bound(table, domains=[PublishedDomain(price / 2, Fraction("1e-9"))] * 2)
    assert {Bound.ZCDP, Bound.ADAPTIVE} == set(found)
    expected = table.epsilon(100, SLACK / 2) + epsilon_of_zcdp(price, SLACK / 2).value
    assert found[Bound.ADAPTIVE] == pytest.approx(expected, rel=1e-12)
    assert found[Bound.ADAPTIVE] >= expected


def test_a_table_of_another_currency_is_refused(table: EpsilonTable) -> None:
    """Its epsilons would be too small, or too large."""
    with pytest.raises(ValueError, match=r"^table must be of epsilon_per"):
        guarantees(Fraction("0.2"), Fraction("1e-10"), information=1, calls=0, slack=SLACK, table=table)
