"""From a budget to a guarantee, for analysts who choose each question by the answers so far.

A budget of k information units and l calls pays for at most k epsilon_per-bounded-range mechanisms and l times delta,
or for as much Gaussian noise where a policy permits that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.bounds import Portion, basic, dong_durfee_rogers, rho_of
from dp_service.accounting.calls import delta_of_calls, epsilon_with_calls
from dp_service.accounting.checks import require_epsilon, require_probability, require_units
from dp_service.accounting.rounding import fraction_up, rounded_up
from dp_service.accounting.zcdp import epsilon_of_zcdp
from dp_service.limits import LARGEST_RHO


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
    """(epsilon, delta)-differential privacy for every member; both are upper bounds."""

    epsilon: float
    delta: float


def guarantee(
    epsilon_per: Fraction,
    delta: Fraction,
    *,
    information: int,
    calls: int,
    slack: Fraction,
    gaussian: bool = False,
    domains: Sequence[PublishedDomain] = (),
) -> Guarantee:
    """Return the guarantee of everything that one budget pays for, rounded up.

    Its epsilon is the smaller one of basic composition and of concentrated differential privacy.

    Args:
        epsilon_per: One information unit pays for one epsilon_per-bounded-range mechanism; at most 10.
        delta: What one call pays for.
        information: The information units that may be spent on all questions together.
        calls: The calls that may be spent on them.
        slack: The part of delta that buys the better composition (delta' in the papers).
        gaussian: Whether the policy permits Gaussian noise anywhere. Basic composition does not cover it, for any
            account.
        domains: The published domains that the account can see, over all columns and refreshes in the window.
            A domain is approximate zCDP, which basic composition does not cover either.

    Returns:
        Its delta is the sum of what the calls add, slack, and the domains' deltas, at most 1, which promises nothing.

    Raises:
        ValueError: An argument is out of range; the message names it and says what was expected.
    """
    portion = Portion(epsilon_per, information)
    total = _delta(delta, calls, slack) + sum(each.delta for each in domains)
    rho = rho_of(portion) + sum(each.rho for each in domains)
    epsilon = epsilon_of_zcdp(rho, slack).value if rho else 0.0
    if not gaussian and not domains:
        epsilon = min(epsilon, rounded_up(basic(portion)))
    return _guarantee(epsilon, total, delta, information=information, calls=calls)


def guarantee_of_the_theorem(
    epsilon_per: Fraction, delta: Fraction, *, information: int, calls: int, slack: Fraction
) -> Guarantee:
    """Return the guarantee of a budget by theorem 2 of Rogers et al. 2020, rounded up, which is never stated.

    Arguments and errors are those of `guarantee`. It covers neither Gaussian noise nor published domains.
    """
    portion = Portion(epsilon_per, information)
    total = _delta(delta, calls, slack)
    epsilon = min(rounded_up(basic(portion)), rounded_up(dong_durfee_rogers(portion, slack)))
    return _guarantee(epsilon, total, delta, information=information, calls=calls)


def _delta(delta: Fraction, calls: int, slack: Fraction) -> Fraction:
    require_probability("delta", delta)
    require_units("calls", calls)
    require_probability("slack", slack)
    return delta_of_calls(delta, calls) + slack


def _guarantee(
    epsilon: float, total: Fraction, delta: Fraction, *, information: int, calls: int
) -> Guarantee:
    # Every mechanism is (0, 1)-differentially private, so a larger delta would mean the same.
    return Guarantee(
        epsilon_with_calls(epsilon, delta, information=information, calls=calls),
        fraction_up(min(Fraction(1), total)),
    )
