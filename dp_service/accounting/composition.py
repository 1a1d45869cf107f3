"""From a budget to a guarantee, for analysts who choose each question by the answers so far.

A budget of k information units and l calls pays for at most k epsilon_per-bounded-range mechanisms and l times delta,
or for as much Gaussian noise where a policy permits that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from dp_service.accounting.bounds import Portion, basic, dong_durfee_rogers, durfee_rogers, rho_of
from dp_service.accounting.calls import CallRule, delta_of_calls, epsilon_with_calls
from dp_service.accounting.checks import require_epsilon, require_probability, require_units
from dp_service.accounting.epsilon_table import AdaptiveEpsilons
from dp_service.accounting.rounding import fraction_up, rounded_up
from dp_service.accounting.zcdp import epsilon_of_zcdp
from dp_service.limits import LARGEST_RHO


class Bound(StrEnum):
    """The composition bound that an epsilon comes from."""

    BASIC = "basic"
    DONG_DURFEE_ROGERS = "dong_durfee_rogers"
    DURFEE_ROGERS = "durfee_rogers"
    ZCDP = "zcdp"
    ADAPTIVE = "adaptive"


@dataclass(frozen=True)
class PublishedDomain:
    """The price of one publication of a domain, for everyone who sees it: it is delta-approximate rho-zCDP.

    Raises:
        ValueError: Not 0 < rho <= 10^24, or not 0 < delta < 1; the message names the argument.
    """

    rho: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        require_epsilon("rho", self.rho, at_most=LARGEST_RHO)
        require_probability("delta", self.delta)


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy for every member; both are upper bounds. `bound` names that of epsilon."""

    epsilon: float
    delta: float
    bound: Bound


def guarantee(
    epsilon_per: Fraction,
    delta: Fraction,
    *,
    information: int,
    calls: int,
    slack: Fraction,
    gaussian: bool = False,
    domains: Sequence[PublishedDomain] = (),
    call_rule: CallRule = CallRule.TWICE,
    table: AdaptiveEpsilons | None = None,
) -> Guarantee:
    """Return the guarantee of everything that one budget pays for, rounded up: the smallest of `guarantees`.

    Arguments and errors are those of `guarantees`.
    """
    found = guarantees(
        epsilon_per,
        delta,
        information=information,
        calls=calls,
        slack=slack,
        gaussian=gaussian,
        domains=domains,
        call_rule=call_rule,
        table=table,
    )
    return min(found, key=lambda each: each.epsilon)


def guarantees(
    epsilon_per: Fraction,
    delta: Fraction,
    *,
    information: int,
    calls: int,
    slack: Fraction,
    gaussian: bool = False,
    domains: Sequence[PublishedDomain] = (),
    call_rule: CallRule = CallRule.TWICE,
    table: AdaptiveEpsilons | None = None,
) -> tuple[Guarantee, ...]:
    """Return the guarantee of one budget by each bound that applies, rounded up; all of them hold.

    Args:
        epsilon_per: One information unit pays for one epsilon_per-bounded-range mechanism; at most 10.
        delta: What one call pays for.
        information: The information units that may be spent on all questions together.
        calls: The calls that may be spent on them.
        slack: The part of delta that buys the better composition (delta' in the papers).
        gaussian: Whether the policy permits Gaussian noise anywhere. Then only zCDP and the adaptive bound with
            Gaussian steps cover it, for every account.
        domains: The published domains that the account can see, over all columns and refreshes in the window.
            A domain is approximate zCDP. The adaptive bound adds their epsilon at half of `slack`; the three bounds
            for bounded range alone are left out.
        call_rule: Whether calls add 2 calls delta or calls delta. Both add a little epsilon to every bound: `calls`
            proves the second, which is less.
        table: The epsilons of this currency by the adaptive bound, with Gaussian steps if `gaussian`. Without one, or
            where it holds none for so many units and this slack, the bound is left out.

    Returns:
        One guarantee for each bound. Its delta is the sum of what the calls add, slack, and the domains' deltas, at
        most 1, which promises nothing.

    Raises:
        ValueError: An argument is out of range; the message names it and says what was expected.
    """
    portion = Portion(epsilon_per, information)
    require_probability("delta", delta)
    require_units("calls", calls)
    require_probability("slack", slack)
    added = delta_of_calls(call_rule, delta, calls) + slack + sum(each.delta for each in domains)
    # Every mechanism is (0, 1)-differentially private, so a larger delta would mean the same.
    total_delta = fraction_up(min(Fraction(1), added))
    epsilons = {Bound.ZCDP: _zcdp_epsilon(portion, slack, domains)}
    if not gaussian and not domains:
        epsilons |= _bounded_range_epsilons(portion, slack)
    if table is not None:
        if gaussian and not table.gaussian:
            raise ValueError("table must be one with Gaussian steps, as the policy permits Gaussian noise")
        epsilons |= _adaptive_epsilon(table, portion, slack, domains)
    return tuple(
        Guarantee(
            epsilon_with_calls(epsilons[bound], delta, information=information, calls=calls),
            total_delta,
            bound,
        )
        for bound in Bound
        if bound in epsilons
    )


def _bounded_range_epsilons(portion: Portion, slack: Fraction) -> dict[Bound, float]:
    return {
        Bound.BASIC: rounded_up(basic(portion)),
        Bound.DONG_DURFEE_ROGERS: rounded_up(dong_durfee_rogers(portion, slack)),
        Bound.DURFEE_ROGERS: durfee_rogers([portion], slack),
    }


def _adaptive_epsilon(
    table: AdaptiveEpsilons, portion: Portion, slack: Fraction, domains: Sequence[PublishedDomain]
) -> dict[Bound, float]:
    """Return the adaptive bound, if the table has it, with the epsilon of the domains added: their slack is half."""
    if table.epsilon_per != portion.epsilon_per:
        raise ValueError(
            f"table must be of epsilon_per {portion.epsilon_per}, got one of {table.epsilon_per}"
        )
    if not domains:
        found = table.epsilon(portion.information, slack)
    else:
        rho = sum((each.rho for each in domains), Fraction(0))
        own = table.epsilon(portion.information, slack / 2)
        found = math.nextafter(own + epsilon_of_zcdp(rho, slack / 2).value, math.inf)
    return {Bound.ADAPTIVE: found} if math.isfinite(found) else {}


def _zcdp_epsilon(portion: Portion, slack: Fraction, domains: Sequence[PublishedDomain]) -> float:
    rho = rho_of(portion) + sum(each.rho for each in domains)
    return epsilon_of_zcdp(rho, slack).value if rho else 0.0
