"""What an account's budget is worth, by the currency that a result was paid in."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.composition import Guarantee, guarantee
from pinot_connector.results import PrivateResult

# The part of delta that better composition costs: the published choice for the default parameters.
SLACK = Fraction(1, 10**9)


@dataclass(frozen=True)
class Worth:
    """Everything shown within a budget's limit is (epsilon, delta)-differentially private for every member."""

    account: str
    information: int
    calls: int
    epsilon: float
    delta: float


def worth_of(result: PrivateResult) -> Worth | None:
    """Return what the limit of the account that paid is worth; None if the result does not tell what a call is."""
    if result.parameters.delta is None:
        return None
    level = result.remaining[-1]
    found: Guarantee = guarantee(
        result.parameters.epsilon_per,
        result.parameters.delta,
        information=level.limit.information,
        calls=level.limit.calls,
        slack=SLACK,
    )
    return Worth("/".join(level.path), level.limit.information, level.limit.calls, found.epsilon, found.delta)
