"""Guarantees as values; `shared_budgets` determines which budgets make an account's guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Any

from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2

from pinot_connector import formats
from pinot_connector.budgets import Cost
from pinot_connector.errors import IntegrityError
from pinot_connector.json_values import to_json
from pinot_connector.views import called, read_by, view

# Beyond it the exponential overflows; below it a guess is right more than 999 times in 1000.
_LARGEST_EXPONENT = 700
_HARDLY = 0.001


class Sharing(Enum):
    """What an account sees of what others spend on the levels above it.

    NONE: no level above it has a limit. WORST_CASES: every level above counts the worst case of each question, so that
    a charge there does not show how a release ended; how many questions others asked still shows. COSTS: a level above
    counts what each release cost.
    """

    NONE = "none"
    WORST_CASES = "worst_cases"
    COSTS = "costs"


@dataclass(frozen=True)
class PublishedDomain:
    """What one publication of a column's domain costs everyone who may see it: delta-approximate rho-zCDP.

    A text is a decimal number, or a ratio such as 1/10; dp_service reads it.
    """

    rho: Fraction | str
    delta: Fraction | str


@dataclass(frozen=True)
class Guarantee:
    """All that a budget pays for is (epsilon, delta)-differentially private for every member; both are rounded up.

    `domain_count` is how many published domains and bounds are counted, `times` how often the budget is, as a member
    may be of so many blocks.
    """

    epsilon: float
    delta: float
    domain_count: int = 0
    times: int = 1

    @property
    def meaning(self) -> str:
        """What it means for one member, in a sentence.

        Of two tables that differ in one member, chosen by a fair coin, nobody names the right one with a larger chance
        than (e^epsilon + delta) / (e^epsilon + 1), whatever they know besides.
        """
        wrong = (1 - min(self.delta, 1.0)) / (1 + math.exp(min(self.epsilon, _LARGEST_EXPONENT)))
        if wrong < _HARDLY:
            return (
                "In the worst case that rules out little: somebody who knows all else might tell almost surely, from "
                "what is shown, whether one member's data are in the table."
            )
        return (
            "Somebody who knows all else, and guesses from what is shown whether one member's data are in the table, "
            f"is wrong at least {formats.rounded_down_percent(wrong)} of the time; who only guesses, 50 %."
        )

    def __post_init__(self) -> None:
        """Refuses numbers that cannot be a guarantee: every guarantee comes from a service."""
        if not all(math.isfinite(number) and number >= 0 for number in (self.epsilon, self.delta)):
            raise IntegrityError("dp_service described a guarantee that cannot be one")


@dataclass(frozen=True)
class BudgetGuarantee:
    """What is counted of the level `path`, and what that is worth.

    `limit` is the largest limit that was enforced in the window; of a shared level it is for as many windows as the
    account's can meet. None: no limit is enforced. `guarantee` None: nothing bounds what is shown, also if more was
    spent than the limit allows, if none was enforced when charges began, or if charges in the previous currency count.
    """

    path: tuple[str, ...]
    limit: Cost | None
    guarantee: Guarantee | None = field(metadata=called("worth"))


@dataclass(frozen=True)
class AccountGuarantee:
    """The guarantee for everything that an account is shown in a window.

    `own` covers the account's own results. If a level above has a limit, the account also sees what others spend there,
    which depends on what others were shown: `shared`, of the widest such level, is the guarantee of all that the
    account is shown, and never less than `own`. Else that is `own`, and `shared` is None.

    `epsilon` and `delta` are those of all that the account is shown; infinite and 1 where nothing bounds it.
    """

    account: tuple[str, ...] = field(
        metadata=read_by(
            lambda message: tuple(message.account.path), lambda path: budget_pb2.Account(path=path)
        )
    )
    own: BudgetGuarantee
    shared: BudgetGuarantee | None
    sharing: Sharing

    @property
    def holds(self) -> BudgetGuarantee:
        """The one of `own` and `shared` that holds for all that the account is shown."""
        return self.own if self.shared is None else self.shared

    @property
    def epsilon(self) -> float:
        """The epsilon of all that the account is shown, rounded up."""
        return math.inf if self.holds.guarantee is None else self.holds.guarantee.epsilon

    @property
    def delta(self) -> float:
        """The delta of all that the account is shown, rounded up."""
        return 1.0 if self.holds.guarantee is None else self.holds.guarantee.delta

    def to_dict(self) -> dict[str, Any]:
        """Returns it in terms of JSON: `guarantee` is null where nothing bounds what is shown."""
        return {
            "account": list(self.account),
            "own": _plain(self.own),
            "shared": None if self.shared is None else _plain(self.shared),
            "sharing": self.sharing.value,
        }


def covering(one: Guarantee, other: Guarantee) -> Guarantee:
    """Returns a guarantee that is no less than either: of the one with the larger epsilon, with the larger delta."""
    largest = max(one, other, key=lambda each: each.epsilon)
    delta = max(one.delta, other.delta)
    return largest if largest.delta == delta else replace(largest, delta=delta)


def account_guarantee_of(message: app_pb2.GetGuaranteeResponse) -> AccountGuarantee:
    """Returns the guarantee that a gateway reports.

    Raises:
        IntegrityError: it does not state what is shared, or the numbers cannot be a guarantee.
    """
    found = view(AccountGuarantee, message)
    if (found.sharing is Sharing.NONE) == (found.shared is not None):
        raise IntegrityError("the gateway did not say which guarantee holds")
    return found


def _plain(described: BudgetGuarantee) -> dict[str, Any]:
    found = described.guarantee
    return {
        "path": list(described.path),
        "limit": to_json(described.limit),
        "guarantee": None
        if found is None
        else {
            "epsilon": found.epsilon,
            "delta": found.delta,
            "domain_count": found.domain_count,
            "times": found.times,
        },
    }
