"""Tables of the adaptive bound are checked in whole numbers by a module that shares nothing with what makes them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from research.accounting import adaptive, certificate
from research.accounting.adaptive import UpperTable, upper_tables
from research.accounting.certificate import BEND_ERROR, BITS, Certificate, CertificateError, Whole
from research.accounting.checked_steps import STEPS_PER_E, StepCheck, budget_epsilon
from tests.support.some import some

E = Fraction("0.15")
SLACK = Fraction("1e-9")
NO_STEPS = np.zeros(0, dtype=np.int32)


def tables(units: int, *, e: Fraction = E, resolution: int = 64) -> list[UpperTable]:
    """Return the tables of no unit to so many."""
    return list(islice(upper_tables(e, resolution=resolution), units + 1))


def whole(table: UpperTable, units: int) -> Whole:
    """Return a table's values as they are checked."""
    return check_of(table).whole(table, units)[0]


def rest_of(table: UpperTable, units: int) -> int:
    """Return a table's value beyond its points."""
    return check_of(table).whole(table, units)[1] + 1


def check_of(table: UpperTable) -> StepCheck:
    """Return the check of the tables of a grid."""
    check = StepCheck.of(E, table)
    assert check is not None
    return check


def require(certified: Certificate, old: UpperTable, new: Whole, units: int) -> None:
    """Check the table of so many units by the one before."""
    certified.require_step(
        whole(old, units - 1), new, rests=(rest_of(old, units - 1), rest_of(old, units) + 4), units=units
    )


def certificate_of(e: Fraction, made: list[UpperTable]) -> Certificate:
    """Return the check of a grid."""
    return Certificate(e, made[0].grid.unit, made[0].grid.first)


@pytest.mark.parametrize(("e", "units"), [("0.15", 30), ("1", 8), ("1/3", 12), ("0.01", 3)])
def test_what_is_made_is_accepted(e: str, units: int) -> None:
    """All tables, from the first on, and the epsilon, which some mechanisms nearly need."""
    found = budget_epsilon(Fraction(e), units, Fraction("1e-6"))
    assert found.is_checked
    assert 0.99 * found.enough - 0.01 < found.needed <= found.enough


@pytest.mark.parametrize("units", [1, 2, 7])
def test_no_value_may_be_less(units: int) -> None:
    """Any value by a hundred-thousandth, wherever it is."""
    made = tables(units)
    certified, values = certificate_of(E, made), whole(made[-1], units)
    require(certified, made[-2], values, units)
    for position in some(range(5, values.size - 1, values.size // 60)):
        less = values.copy()
        less[position:] -= values[position:] // 100_000 + 50
        with pytest.raises(CertificateError, match=f"of {units} units"):
            require(certified, made[-2], np.maximum(less, 0), units)


def test_other_wrong_tables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a smaller e; of a unit less; without the points inside of cells, or all but t = 0."""
    made = tables(6)
    certified = certificate_of(E, made)
    smaller = tables(6, e=E - Fraction(1, 10**6))
    for old, new, units in ((made[4], made[4], 5), (smaller[4], smaller[5], 5), (made[4], smaller[5], 5)):
        with pytest.raises(CertificateError):
            require(certified, old, whole(new, units), units)
    with pytest.raises(CertificateError, match="max"):
        certified.require_start(whole(made[0], 0) - 2**40, 0)
    for name in ("_raise_to_best_in_cells", "_errors"):
        with monkeypatch.context() as patched:
            patched.setattr(adaptive, name, lambda _grid, padded, _best=None: np.zeros(padded.size - 128))
            with pytest.raises(CertificateError):
                budget_epsilon(E, 3, SLACK)


@pytest.mark.parametrize("units", [1, 3])
def test_what_is_accepted_holds_for_every_step(units: int) -> None:
    """The least value that is accepted at a point is above every line, by fractions and many more than the grid's t."""
    made = tables(units, resolution=8)
    certified = certificate_of(E, made)
    old, values = whole(made[-2], units - 1), whole(made[-1], units)
    zero = -certified.first
    for position in some(range(zero - 6, zero + 8 * units - 2, 5)):
        least, most = 0, int(values[position])
        while most - least > 1:
            middle = (least + most) // 2
            tried = values.copy()
            tried[position] = middle
            try:
                require(certified, made[-2], tried, units)
                most = middle
            except CertificateError:
                least = middle
        assert most < values[position]
        assert most >= highest_line(certified, old, position, rest_of(made[-2], units - 1))


def highest_line(
    certified: Certificate, table: Whole, position: int, rest: int, parts: Iterable[int] = range(17)
) -> Fraction:
    """Return the largest value at a point of the lines from x exp(-t) to x exp(e - t), at 16 t for each cell."""
    g, unit = certified.g, certified.unit
    grown, highest = g**unit, Fraction(0)
    ends = [*table.tolist(), *[rest] * (4 * unit)]
    for back in range(1, unit + 1):
        for part in parts:
            share = Fraction(part, 16)
            cell = position - back
            start = ends[cell] + share * (ends[cell + 1] - ends[cell])
            end = ends[cell + unit] + share * (ends[cell + unit + 1] - ends[cell + unit])
            r, q = 1 + share * (g - 1), g**back
            if r <= q <= r * grown:
                highest = max(highest, ((r * grown - q) * start + (q - r) * end) / (r * (grown - 1)))
    return highest


def test_each_inequality_is_checked_by_itself() -> None:
    """Of tables that are even for long: lines between points of the grid, and what a unit less has; bounds."""
    certified = Certificate(E, 8, -40)
    old = np.full(100, 1 << BITS)
    old[50:] = 1 << (BITS - 1)
    margin = int(certified.margin(np.array([1 << (BITS - 1)]))[0])
    new = np.minimum(old + margin, 1 << BITS)
    less, rises, above = new.copy(), old.copy(), new.copy()
    less[70] = old[70] + 2
    rises[20] -= 1
    above[0] += 1
    for after, before, problem in (
        (new, old, "on the grid"),
        (less, old, "that of one unit less"),
        (new, rises, "rises"),
        (above, old, r"not in \[0, 1\]"),
    ):
        with pytest.raises(CertificateError, match=problem):
            certified.require_step(before, after, rests=(0, margin), units=1)


def test_lines_between_points_are_exceeded_by_the_margin() -> None:
    """Which covers what is not looked at inside of cells; falls so small that weights of 30 bits round nothing."""
    certified = Certificate(E, 8, -40)
    low, fall = 1 << (BITS - 1), 1000
    margin = int(certified.margin(np.array([fall]))[0])
    above = low + fall + 2 * margin
    old, new = np.full(100, low), np.full(100, above)
    old[:50] += fall
    # Below the first point v is on the way to 1.
    new[:8] = 1 << BITS
    line = highest_line(certified, old, 52, low, parts=(0,))
    new[52] = line + margin + 1
    certified.require_step(old, new, rests=(low, above), units=1)
    new[52] = line + margin - 1
    with pytest.raises(CertificateError, match="on the grid"):
        certified.require_step(old, new, rests=(low, above), units=1)


@pytest.mark.parametrize("e", [E, Fraction(1), Fraction(1, 100)])
def test_where_lines_bend_is_known_up_to_what_is_said(e: Fraction) -> None:
    """B and C beside fractions, for falls of every size, which the margin covers where that is not enough."""
    certified, generator = Certificate(e, 64, -1000), np.random.default_rng(1)
    bits = generator.integers(1, 56, (3, 400))
    fall, fall_up, drop = generator.integers(0, 2**bits, dtype=np.int64)
    b, c = certified.bends(fall, fall_up, drop)
    grown = certified.g**64
    for at in some(range(400)):
        less, more, over = int(fall[at]), int(fall_up[at]), int(drop[at])
        assert 0 <= (grown - 1) * less + less - more - int(b[at]) < BEND_ERROR
        assert 0 <= int(c[at]) - ((certified.g - 1) * over + less - more) < BEND_ERROR
    assert certified.covered * (certified.g - 1) > 2 * (2 * BEND_ERROR + 8)
    # The factor of a cell is at least 2^55 for what it drops by.
    for fall_of in (1, 2**31, 2**45, 2**55, 2**60):
        exceeded = (certified.covered + BEND_ERROR) * (certified.g - 1) / (4 * (grown - 1))
        margin = int(certified.margin(np.array([fall_of]))[0])
        assert exceeded * Fraction(fall_of, 2**55) <= margin - 1


def test_a_wrong_guess_can_only_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where lines are worst is computed in floats; elsewhere an honest table is not known to be above them."""
    made = tables(3)
    certified, values = certificate_of(E, made), whole(made[3], 3)
    elsewhere, is_above = Certificate._require_elsewhere, Certificate._is_above
    for shift in (-2, 2):
        with monkeypatch.context() as patched:
            patched.setattr(
                Certificate,
                "_require_elsewhere",
                lambda self, b, c, nearest, units, by=shift: elsewhere(
                    self, b, c, np.clip(nearest + by, -2, 65), units
                ),
            )
            with pytest.raises(CertificateError, match="bends"):
                require(certified, made[2], values, 3)
    with monkeypatch.context() as patched:
        patched.setattr(
            Certificate,
            "_is_above",
            lambda self, v, w, j, ahead, part: is_above(
                self, v, w, j, ahead, np.minimum(part + 2**20, 2**24)
            ),
        )
        with pytest.raises(CertificateError, match="within a cell"):
            require(certified, made[2], values, 3)


@pytest.mark.parametrize("slack", ["1e-12", "1e-9", "1e-3"])
def test_an_epsilon_that_is_not_enough_is_refused(slack: str) -> None:
    """A step less than what is told may be enough; three less are not."""
    table = tables(20)[-1]
    check = check_of(table)
    steps = round(check.epsilon(table, Fraction(slack), 20) / float(E) * STEPS_PER_E)
    check.require_epsilon(table, steps, Fraction(slack), 20)
    with pytest.raises(CertificateError, match="not enough"):
        check.require_epsilon(table, steps - 3, Fraction(slack), 20)


def test_the_check_shares_no_code_with_what_it_checks() -> None:
    """It imports nothing of the project."""
    tree = ast.parse(Path(certificate.__file__).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    assert "fractions" in modules
    assert not any(name and name.startswith("dp_service") for name in modules | names)


def test_what_is_not_checked_says_so() -> None:
    """Tables with Gaussian steps, and those of an e for which the weights have too few bits."""
    assert not budget_epsilon(E, 1, SLACK, gaussian=True).is_checked
    assert not budget_epsilon(Fraction(2), 1, SLACK).is_checked
    with pytest.raises(CertificateError, match="at most 1"):
        Certificate(Fraction(2), 64, -100)


def test_the_default_budget_in_small() -> None:
    """100 units of 0.15 need 4.474 at 1e-9, and 4.477 are enough; with Gaussian steps 4.519."""
    found = budget_epsilon(E, 100, SLACK)
    assert 4.474 < found.needed < found.enough < 4.4771
    mixed = budget_epsilon(E, 100, SLACK, gaussian=True)
    assert 4.515 < mixed.needed < mixed.enough < 4.52


def test_rounding_is_to_the_safe_side() -> None:
    """g^unit is at least exp(e), and hardly more."""
    for e, unit in some([(E, 64), (Fraction(1), 8), (Fraction(1, 100), 64)]):
        series = sum(
            (e**each / Fraction(np.prod(range(1, each + 1), dtype=object)) for each in range(1, 40)),
            Fraction(1),
        )
        grown = Certificate(e, unit, -1).g ** unit
        assert series < grown < series + Fraction(1, 10**20)
