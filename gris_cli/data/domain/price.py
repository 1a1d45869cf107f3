"""What a published domain costs everyone who sees it: in a budget's units, and as (epsilon, delta)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from dp_service.accounting.rounding import fraction_up
from dp_service.accounting.zcdp import epsilon_of_zcdp
from dp_service.noise.gaussian_price import rho_of_units
from dp_service.queries.currency import Currency
from dp_service.terms import CountNoise
from pinot_connector.budgets import Cost


@dataclass(frozen=True)
class Guarantee:
    """A publication is (epsilon, delta)-DP for adding or removing one member; both are rounded up."""

    epsilon: float
    delta: float


def guarantee_of(rho: Fraction, delta: Fraction) -> Guarantee:
    """Return the guarantee of a delta-approximate rho-zCDP publication, with as much slack again as delta.

    Source: Swanberg et al. 2023, corollary 9, with delta' = delta.

    >>> guarantee_of(Fraction(1, 10), Fraction(1, 10**5)).epsilon < 2
    True
    """
    return Guarantee(epsilon_of_zcdp(rho, delta).value, fraction_up(delta + (1 - delta) * delta))


def price_of(rho: Fraction, delta: Fraction, currency: Currency) -> Cost:
    """Return the price in a currency: information units of rho = epsilon_per^2 / 8 each, calls of delta each.

    Both are rounded up, so the units that a ledger adds up never stand for less than what was published. The noise is
    Gaussian, so it is counted in the currency of Gaussian counts, and a ledger refuses to add it to units of other
    noise.

    >>> currency = Currency.model_validate({"epsilon_per": "0.15", "delta": "1e-10"})
    >>> price_of(Fraction(1, 10), Fraction(1, 10**8), currency).information
    36
    """
    return Cost(
        information=ceil(rho / rho_of_units(currency.epsilon_per, 1)),
        calls=ceil(delta / currency.delta),
        unit_id=currency.model_copy(update={"count_noise": CountNoise.GAUSSIAN}).unit_id,
    )
