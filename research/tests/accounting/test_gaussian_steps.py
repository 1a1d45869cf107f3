"""Gaussian steps in the adaptive bound: the law of their noise, the weights of a step, and the game with both kinds."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import islice, pairwise
from statistics import NormalDist

import numpy as np
import pytest
from mpmath import iv, mp, mpf
from numpy.typing import NDArray
from scipy.optimize import brentq

from dp_service.noise.gaussian_price import DISCRETENESS
from dp_service.noise.interval_arithmetic import enclose, interval_context
from research.accounting import adaptive, gaussian_steps
from research.accounting.adaptive import LowerTable, UpperTable, lower_tables, upper_tables
from research.accounting.gaussian_steps import gaussian_step
from tests.unit.dp_service.mechanisms.bounded.laws import gaussian_delta
from tests.support.some import some

Floats = NDArray[np.float64]
E = Fraction(7, 10)
DEFAULT = Fraction("0.15")


def upper(units: int, *, epsilon_per: Fraction = E, resolution: int = 48) -> UpperTable:
    """Return the bounds from above for so many units of either kind."""
    return next(islice(upper_tables(epsilon_per, resolution=resolution, gaussian=True), units, None))


def lower(units: int, *, epsilon_per: Fraction = E, resolution: int = 48) -> LowerTable:
    """Return the bounds from below for so many units of either kind."""
    return next(islice(lower_tables(epsilon_per, resolution=resolution, gaussian=True), units, None))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of mu-GDP at a delta, in closed form."""
    return float(brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0, 200))


def test_an_eleventh_more_variance_is_enough_for_every_variance() -> None:
    """A directed net from 1/11 to 0.9: there v(b) <= b - 1 / m(a)^2 <= 1/11, from Pr[0] at a in intervals.

    m(a)^2 <= 1 / r, r = b - 1/11, says Pr[0] <= 2 Phi(1 / (2 sqrt r)) - 1 = erf(1 / sqrt(8 r)).
    """
    context, step, at = interval_context(120), Fraction(1, 2000), Fraction(1, 11)
    while at < Fraction(9, 10):
        variance, at = enclose(context, at), at + step
        # Terms that are left out make it larger.
        zero = 1 / (1 + 2 * sum(context.exp(-k * k / (2 * variance)) for k in range(1, 12)))
        square = 1 / (8 * enclose(context, at - DISCRETENESS))
        root = context.sqrt(square)
        term = total = root
        if square.a < 30:
            for n in range(1, 120):
                term = term * 2 * square / (2 * n + 1)
                total = total + term
            least = 2 / context.sqrt(context.pi) * context.exp(-square) * total
        else:
            least = 1 - context.exp(-square)
        assert zero.b < least.a


def noise_law(variance: float, reach: int) -> Floats:
    """Return the discrete Gaussian law from -reach to reach."""
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    return weights / float(weights.sum())


def worst_against_gdp(rho: float, more: float, shifts: tuple[int, ...]) -> float:
    """Return the largest delta of some coordinates over that of GDP, noise being `more` wider than D / (2 rho)."""
    one = other = np.ones(1)
    variance = sum(shift**2 for shift in shifts) / (2 * rho) + more
    for shift in shifts:
        reach = math.ceil(9 * math.sqrt(variance)) + 3
        law = noise_law(variance, reach)
        one = np.multiply.outer(one, np.pad(law, (0, shift))).ravel()
        other = np.multiply.outer(other, np.pad(law, (shift, 0))).ravel()
    mu = math.sqrt(2 * rho)
    ratios = []
    for epsilon in np.linspace(0, mu**2 / 2 + 5 * mu, 30):
        promised = gaussian_delta(mu, epsilon)
        if promised > 1e-9:
            found = max(
                np.maximum(0, p - math.exp(epsilon) * q).sum() for p, q in ((one, other), (other, one))
            )
            ratios.append(float(found) / promised)
    return max(ratios)


@pytest.mark.parametrize("shifts", [(1,), (3,), (1, 2), (1, 1, 1)])
@pytest.mark.parametrize("rho", [4.0, 1.5, 0.6, 0.1])
def test_noise_of_a_price_is_gaussian_private_and_is_not_without_the_eleventh(
    rho: float, shifts: tuple[int, ...]
) -> None:
    """Hockey sticks of one to three coordinates, both orders, against G_mu with mu^2 = 2 rho."""
    assert worst_against_gdp(rho, float(DISCRETENESS), shifts) <= 1 + 1e-9
    assert worst_against_gdp(rho, 0.0, shifts) > 1.0005


def interval_normal(x: object) -> object:
    """Enclose Phi(x), by the series 1/2 + phi(x) (x + x^3 / 3 + x^5 / 15 + ..), whose terms have one sign."""
    term = total = x
    for n in range(1, 900):
        term = term * x * x / (2 * n + 1)  # type: ignore[operator]
        total = total + term
    rest = abs(term) * iv.mpf([0, 2])  # type: ignore[arg-type]
    spread = iv.exp(-x * x / 2) / iv.sqrt(2 * iv.pi)  # type: ignore[operator]
    return iv.mpf(1) / 2 + spread * (total + rest * iv.mpf([-1, 1]))


@pytest.mark.parametrize("place", [-200, -63, -1, 0, 1, 40, 180])
def test_a_weight_is_the_mean_of_its_hat_to_the_last_bit(place: int) -> None:
    """Against intervals of sixty digits."""
    step, unit = 0.15 / 48, 48
    found = gaussian_step(step, unit, above=True)
    assert found is not None
    before, iv.dps = iv.dps, 60
    try:
        h = iv.mpf(step) * unit / 2
        logs = [iv.mpf(step) * (place + by) for by in (-1, 0, 1)]
        plain = [interval_normal((each + h**2 / 2) / h) for each in logs]
        weighted = [interval_normal((each - h**2 / 2) / h) for each in logs]
        x = [iv.exp(each) for each in logs]
        cells = [(plain[i + 1] - plain[i], weighted[i + 1] - weighted[i]) for i in (0, 1)]  # type: ignore[operator]
        exact = (cells[0][1] - x[0] * cells[0][0]) / (x[1] - x[0]) + (x[2] * cells[1][0] - cells[1][1]) / (
            x[2] - x[1]
        )
        weight = found.weights[found.reach + place]
        assert float(exact.a) * (1 - 2**-52) <= weight <= float(exact.b) * (1 + 2**-52)
    finally:
        iv.dps = before


def test_the_masses_of_a_step_are_complete() -> None:
    """With what is beyond its reach they are 1 and their mean is 1 from above; from below none is added."""
    for above in (True, False):
        step = gaussian_step(0.15 / 48, 48, above=above)
        assert step is not None
        x = np.exp(np.arange(-step.reach, step.reach + 1) * 0.15 / 48)
        assert step.weights.sum() == pytest.approx(1, abs=1e-12)
        assert (step.weights * x).sum() == pytest.approx(1, abs=1e-12)
        assert step.below < 2**-76
        beyond = math.erfc((step.reach * 0.15 / 48 / 0.075 + 0.0375) / math.sqrt(2)) / 2
        assert (step.weights[-1] >= beyond) == above
    assert gaussian_step(0.15, 1, above=False) is None


def test_bounded_range_is_gaussian_with_a_larger_mu() -> None:
    """Phi^-1 of the ends of a two-point step differ by at most sqrt(2 pi) / 4 e: the premise of tables from below."""
    normal = NormalDist()
    for e in (1e-3, 0.1, 1.0, 5.0):
        for share in np.linspace(0.02, 0.98, 49):
            t = e * share
            p = (math.exp(e) - math.exp(t)) / math.expm1(e)
            gap = normal.inv_cdf(p) - normal.inv_cdf(p * math.exp(-t))
            assert gap <= math.sqrt(2 * math.pi) / 4 * e * (1 + 1e-6)


Value = Callable[[float], float]
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


def game(units: int, x: float, e: float, *, menu: int = 8) -> float:
    """Return the value of the game with both kinds of step, without any table: every history by itself.

    Gaussian steps are of sixty nodes, exact to many digits where the function is smooth; the last step has its own law.
    """
    if not units:
        return max(0.0, 1 - x)
    h = e / 2
    best = [game(units - 1, x, e, menu=menu)]
    for t in np.linspace(0, e, menu + 1)[:-1]:
        p = (math.exp(e) - math.exp(t)) / math.expm1(e)
        best.append(
            p * game(units - 1, x * math.exp(-t), e, menu=menu)
            + (1 - p) * game(units - 1, x * math.exp(e - t), e, menu=menu)
        )
    if units == 1:
        best.append(gaussian_delta(h, math.log(x)))
    else:
        points = x * np.exp(h * NODES - h**2 / 2)
        values = [game(units - 1, point, e, menu=menu) for point in points]
        best.append(float(np.dot(WEIGHTS, values) / WEIGHTS.sum()))
    return max(best)


@pytest.mark.parametrize("units", [1, 2, 3])
def test_no_tree_of_both_kinds_is_worse(units: int) -> None:
    """Trees of up to three steps, each Gaussian or of bounded range, by what happened so far."""
    above, below = upper(units), lower(units)
    for epsilon in (0.0, 0.3, 0.71, 1.3) if units < 3 else (0.0, 0.71):
        found = game(units, math.exp(epsilon), float(E), menu=8 if units < 3 else 3)
        assert found <= above.delta(epsilon) * (1 + 1e-7)
        # Its menu is coarser.
        assert found >= 0.95 * below.delta(epsilon)


@pytest.mark.parametrize("units", [1, 4, 25, 60])
def test_gaussian_steps_alone_are_the_closed_form_and_within_the_tables(units: int) -> None:
    """u units are u steps: sqrt(u) times mu; the game has more to choose from, and not much more to gain."""
    mu = float(E) / 2 * math.sqrt(units)
    above, below = upper(units), lower(units)
    for epsilon in some([0.0, 0.3, 1.0, 2.0, 4.0]):
        alone = gaussian_delta(mu, epsilon)
        assert alone <= above.delta(epsilon)
        if alone > 1e-8:
            assert below.delta(epsilon) <= above.delta(epsilon)
            assert above.delta(epsilon) <= (1.35 if units > 1 else 1.6) * alone
    for slack in ("1e-2", "1e-6", "1e-9"):
        found = gaussian_epsilon(mu, float(slack))
        assert found <= above.epsilon(Fraction(slack)) <= found * 1.02 + 0.12
        assert below.epsilon(Fraction(slack)) <= above.epsilon(Fraction(slack))


def exact_step(table: UpperTable, position: int) -> object:
    """Return to fifty digits E V(x L) at a point, of the function that a table stands for, from cell to cell."""
    step, first = mpf(table.grid.step), table.grid.first
    h = step * table.grid.unit / 2
    values = [mpf(float(each)) for each in (*table.values, table.rest)]
    x = mp.exp((first + position) * step)
    # Below the first point: the line from (0, 1).
    logs = [(i - position) * step for i in range(len(values))]
    plain = [mp.ncdf((each + h**2 / 2) / h) for each in logs]
    weighted = [mp.ncdf((each - h**2 / 2) / h) for each in logs]
    start = mp.exp(first * step)
    total = plain[0] - (1 - values[0]) * x / start * weighted[0]
    for i in range(len(values) - 1):
        low = mp.exp((first + i) * step)
        slope = (values[i + 1] - values[i]) / (low * mp.expm1(step))
        mass, mean = plain[i + 1] - plain[i], x * (weighted[i + 1] - weighted[i])
        total += values[i] * mass + slope * (mean - low * mass)
    return total + values[-1] * (1 - plain[-1])


@pytest.mark.parametrize("e", ["0.15", "1.3"])
def test_rounding_errors_are_covered(e: str) -> None:
    """A new table is at least what fifty digits give for a Gaussian step from the old one."""
    tables = list(islice(upper_tables(Fraction(e), resolution=6, gaussian=True), 4))
    with mp.workdps(50):
        for old, new in pairwise(tables):
            for position in range(-old.grid.first - 12, -old.grid.first + 40, 7):
                exact = exact_step(old, position)
                found = new.values[position] if position < new.values.size else new.rest
                assert exact <= mpf(float(found))


@pytest.mark.parametrize(
    ("units", "least", "most"), [(100, 4.505, 4.519), (300, 8.262, 8.274), (1000, 16.53, 16.56)]
)
def test_known_numbers_come_out(units: int, least: float, most: float) -> None:
    """At 0.15 and 1e-9, from both sides; Gaussian steps alone in closed form are between them."""
    alone = gaussian_epsilon(float(DEFAULT) / 2 * math.sqrt(units), 1e-9)
    below, above = (make(units, epsilon_per=DEFAULT).epsilon(Fraction("1e-9")) for make in (lower, upper))
    assert least <= max(alone, below) <= above <= most
    assert above <= below + 0.02


def test_wrong_steps_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step with too little spread is below what one Gaussian unit has: the closed form says so."""
    alone = gaussian_delta(float(E) / 2, 0.3)
    assert alone <= upper(1).delta(0.3) * (1 + 1e-9)
    genuine = gaussian_steps.gaussian_step

    def narrow(step: float, unit: int, *, above: bool) -> gaussian_steps.GaussianStep | None:
        return genuine(step * 0.9, unit, above=above)

    monkeypatch.setattr(adaptive, "gaussian_step", narrow)
    monkeypatch.setattr(adaptive, "_raise_to_best_in_cells", lambda grid, padded, best: None)
    monkeypatch.setattr(adaptive, "_best_on_grid", lambda grid, padded: np.zeros(padded.size - 2 * grid.unit))
    assert alone > upper(1).delta(0.3)
