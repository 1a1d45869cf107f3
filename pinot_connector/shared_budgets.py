"""The budgets that an account's guarantee is made of: its own, and the one whose costs show it what others were shown.

An account is shown its own results, and how much is left at every level above it. What others' releases cost there
depends on what was released to them, so the guarantee of all that the account is shown is that of the widest level
whose costs show. A level that counts worst cases shows nothing of that kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gris.budget.v1 import budget_pb2
from gris.dp.v1 import dp_pb2

from pinot_connector.budget_calls import BudgetCalls
from pinot_connector.budgets import Cost, Level, Mode, level_of
from pinot_connector.errors import IntegrityError
from pinot_connector.guarantees import (
    AccountGuarantee,
    BudgetGuarantee,
    PublishedDomain,
    Sharing,
    guarantee_of,
)
from pinot_connector.noise_calls import NoiseCalls

DEFAULT_SLACK = "1e-9"


async def account_guarantee(
    noise: NoiseCalls,
    ledger: BudgetCalls,
    budget: Cost | None = None,
    *,
    slack: str = DEFAULT_SLACK,
    domains: Sequence[PublishedDomain] = (),
) -> AccountGuarantee:
    """Returns what is promised for what the ledger's account is shown; see `AsyncPrivateClient.guarantee`."""
    levels = await ledger.levels(with_policy_statements=True)
    budgets = Budgets.of(ledger.account, levels)
    request = budgets.request(budget, slack, domains)
    return budgets.told(budget, None if request is None else await noise.guarantee(request))


@dataclass(frozen=True)
class _Stated:
    """A level, the policy statements that the charges of its window carried, and whether it counts worst cases."""

    level: Level
    statements: Sequence[str]
    worst_case: bool


@dataclass(frozen=True)
class Budgets:
    """The budgets whose worth makes an account's guarantee, as a ledger tells them.

    `own` None: no limit is enforced at any level. `shared` is the level whose costs show, None: there is none; its
    budget is `bounding`, None: no limit is enforced there or above.
    """

    account: tuple[str, ...]
    own: Level | None
    own_statements: Sequence[str]
    shared: Level | None
    bounding: _Stated | None
    sharing: Sharing

    @classmethod
    def of(cls, account: tuple[str, ...], messages: Iterable[budget_pb2.Level]) -> Budgets:
        """Returns them from the levels of an account, from the widest on.

        Raises:
            IntegrityError: a level cannot be one.
        """
        levels = [_stated(message) for message in messages]
        own = _narrowest_enforced(levels)
        above = [stated for stated in levels if len(stated.level.path) < len(account)]
        shown = next((stated for stated in above if not stated.worst_case), None)
        nothing_shows = Sharing.WORST_CASES if above else Sharing.NONE
        last = own or (levels[-1] if levels else None)
        return cls(
            account=account,
            own=None if own is None else own.level,
            own_statements=() if last is None else last.statements,
            shared=None if shown is None else shown.level,
            # What is spent at a level counts at those above it too, so a limit there bounds it as well.
            bounding=None if shown is None else _narrowest_enforced(levels[: levels.index(shown) + 1]),
            sharing=nothing_shows if shown is None else Sharing.COSTS,
        )

    def request(
        self, budget: Cost | None, slack: str, domains: Sequence[PublishedDomain]
    ) -> dp_pb2.DescribeGuaranteeRequest | None:
        """Returns what to ask dp_service; None if nothing has a bound. `budget` stands in for the account's limit."""
        limit = budget or (None if self.own is None else self.own.limit)
        if limit is None:
            return None
        request = dp_pb2.DescribeGuaranteeRequest(
            unit_id=limit.unit_id,
            information=limit.information,
            calls=limit.calls,
            slack=slack,
            domains=[each.message() for each in domains],
            policy_statements=self.own_statements,
        )
        if self.bounding is not None:
            shared = self.bounding.level.limit
            request.shared.information, request.shared.calls = shared.information, shared.calls
            request.shared.policy_statements.extend(self.bounding.statements)
        return request

    def told(
        self, budget: Cost | None, response: dp_pb2.DescribeGuaranteeResponse | None
    ) -> AccountGuarantee:
        """Returns the guarantee from dp_service's answer to `request`, None if nothing was asked.

        Raises:
            IntegrityError: the numbers cannot be a guarantee, or the shared one is missing.
        """
        own = BudgetGuarantee(self.account, None, None)
        if response is not None:
            path = self.account if budget is not None or self.own is None else self.own.path
            limit = budget or (None if self.own is None else self.own.limit)
            own = BudgetGuarantee(path, limit, guarantee_of(response))
        return AccountGuarantee(self.account, own, self._shared(response), self.sharing)

    def _shared(self, response: dp_pb2.DescribeGuaranteeResponse | None) -> BudgetGuarantee | None:
        if self.shared is None:
            return None
        if self.bounding is None:
            return BudgetGuarantee(self.shared.path, None, None)
        if response is None or not response.HasField("shared"):
            raise IntegrityError(
                "dp_service did not describe the shared budget; it is older than this connector"
            )
        level = self.bounding.level
        return BudgetGuarantee(level.path, level.limit, guarantee_of(response.shared))


def _stated(message: budget_pb2.Level) -> _Stated:
    return _Stated(level_of(message), tuple(message.policy_statements), message.worst_case)


def _narrowest_enforced(levels: Sequence[_Stated]) -> _Stated | None:
    return next((each for each in reversed(levels) if each.level.mode is Mode.ENFORCE), None)
