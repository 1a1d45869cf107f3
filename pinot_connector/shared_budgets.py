"""The budgets that bound what an account is shown: its own, and the widest one above it.

An account sees its own results, and how much is left at every level above it. What others spend there depends on their
releases: on what each release cost, and, even where worst cases are counted, on which questions their own budgets still
admitted and which they chose to ask. So the guarantee for all that the account is shown is that of the widest level
above it, over as many of its windows as one window of the account can overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budget_windows import MAX_UNITS, counted, counted_within, covers, used
from pinot_connector.budgets import Cost, Level, Mode, cost_of, level_of
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.errors import IntegrityError, InvalidQuestion
from pinot_connector.guarantees import (
    AccountGuarantee,
    BudgetGuarantee,
    Guarantee,
    PublishedDomain,
    Sharing,
    covering,
)
from pinot_connector.views import message_of, view

DEFAULT_SLACK = "1e-9"


async def account_guarantee(
    noise: DpServiceClient,
    ledger: BudgetServiceClient,
    budget: Cost | None = None,
    *,
    slack: str = DEFAULT_SLACK,
    domains: Sequence[PublishedDomain] = (),
) -> AccountGuarantee:
    """Returns the guarantee for everything that the account is shown; see `AsyncPrivateClient.guarantee`."""
    levels = await ledger.levels(with_policy_statements=True)
    budgets = Budgets.of(ledger.account, levels)
    request = budgets.request(budget, slack, domains)
    return budgets.guarantee(budget, None if request is None else await noise.guarantee(request))


@dataclass(frozen=True)
class _StatedLevel:
    """A level, the policy statements that the charges of its window carried, and whether it counts worst cases.

    `largest` is the largest limit that was enforced in the window, as far as the ledger knows; None: at some time none
    was, or charges in the previous currency count.
    """

    level: Level
    statements: Sequence[str]
    worst_case: bool
    largest: Cost | None
    is_of_previous_currency: bool

    @property
    def counted(self) -> Cost | None:
        """What may be paid for in one window; None if nothing bounds it."""
        return counted(self.level, self.largest)


@dataclass(frozen=True)
class Budgets:
    """The budgets whose guarantees make an account's guarantee, as the ledger reports them.

    `own_limit` is that of the level `own_path`; None: no level enforces a limit. `own` is what counts there; None:
    nothing bounds it. `no_budget_holds`: charges in the previous currency count there, so no other budget may stand in
    for it. `spent` was spent by the account itself. `shared` is the widest level above the account; None: there is
    none. `bounding` is what counts there; None: nothing bounds it.
    """

    account: tuple[str, ...]
    own_path: tuple[str, ...]
    own_limit: Cost | None
    own: Cost | None
    no_budget_holds: bool
    spent: Cost | None
    own_statements: Sequence[str]
    shared: Level | None
    shared_statements: Sequence[str]
    bounding: Cost | None
    sharing: Sharing

    @classmethod
    def of(cls, account: tuple[str, ...], messages: Iterable[budget_pb2.Level]) -> Budgets:
        """Returns them from the levels of an account, the root account's first.

        Raises:
            IntegrityError: a level cannot be one.
        """
        levels = [_stated(message) for message in messages]
        enforced = _narrowest_enforced(levels)
        above = [stated for stated in levels if len(stated.level.path) < len(account)]
        shared = above[0] if above else None
        last = enforced or (levels[-1] if levels else None)
        itself = next((each.level for each in levels if each.level.path == account), None)
        return cls(
            account=account,
            own_path=account if enforced is None else enforced.level.path,
            own_limit=None if enforced is None else enforced.level.limit,
            own=None if enforced is None else enforced.counted,
            no_budget_holds=enforced is not None and enforced.is_of_previous_currency,
            spent=None if itself is None else used(itself),
            own_statements=() if last is None else last.statements,
            shared=None if shared is None else shared.level,
            shared_statements=() if shared is None else shared.statements,
            bounding=None
            if shared is None or last is None
            else counted_within(shared.level, shared.counted, last.level),
            sharing=_sharing(above),
        )

    def request(
        self, budget: Cost | None, slack: str, domains: Sequence[PublishedDomain]
    ) -> dp_pb2.DescribeGuaranteeRequest | None:
        """Returns what to ask dp_service; None if nothing has a bound. `budget` stands in for the account's limit.

        Raises:
            InvalidQuestion: the budget cannot be one; the error names the field.
        """
        # Where the account's own limit bounds nothing, one above may still do.
        limit = self._own(budget) or self.bounding
        if limit is None:
            return None
        request = dp_pb2.DescribeGuaranteeRequest(
            unit_id=limit.unit_id,
            information=limit.information,
            calls=limit.calls,
            slack=slack,
            domains=[message_of(dp_pb2.PublishedDomain, each) for each in domains],
            policy_statements=self.own_statements,
        )
        if self.bounding is not None:
            request.shared.information, request.shared.calls = self.bounding.information, self.bounding.calls
            request.shared.policy_statements.extend(self.shared_statements)
        return request

    def guarantee(
        self, budget: Cost | None, response: dp_pb2.DescribeGuaranteeResponse | None
    ) -> AccountGuarantee:
        """Returns the guarantee from dp_service's answer to `request`, None if nothing was asked.

        Raises:
            IntegrityError: the numbers cannot be a guarantee, or the shared one is missing.
        """
        own = BudgetGuarantee(self.own_path, self.own_limit, None)
        limit = self._own(budget)
        if response is not None and limit is not None:
            path = self.own_path if budget is None else self.account
            own = BudgetGuarantee(path, limit, view(Guarantee, response.worth))
        return AccountGuarantee(self.account, own, self._shared(own, response), self.sharing)

    def _own(self, budget: Cost | None) -> Cost | None:
        if budget is None:
            return self.own
        for field, units in (("information", budget.information), ("calls", budget.calls)):
            if not 0 <= units <= MAX_UNITS:
                raise InvalidQuestion(field, "expected 0 to 2^53 units")
        if self.no_budget_holds:
            return None
        if self.spent is not None and not covers(budget, self.spent):
            field = "information" if self.spent.information > budget.information else "calls"
            raise InvalidQuestion(
                field, "expected at least what was spent in the window, and the largest limit it had"
            )
        return budget

    def _shared(
        self, own: BudgetGuarantee, response: dp_pb2.DescribeGuaranteeResponse | None
    ) -> BudgetGuarantee | None:
        level = self.shared
        if level is None:
            return None
        if self.bounding is None:
            return BudgetGuarantee(level.path, level.limit if level.mode is Mode.ENFORCE else None, None)
        if response is None or not response.HasField("shared"):
            raise IntegrityError("dp_service did not describe the shared budget")
        worth = view(Guarantee, response.shared)
        if own.guarantee is not None:
            worth = covering(worth, own.guarantee)
        return BudgetGuarantee(level.path, self.bounding, worth)


def _stated(message: budget_pb2.Level) -> _StatedLevel:
    level = level_of(message)
    is_bounded = message.HasField("largest_limit") and not message.previous_currency
    return _StatedLevel(
        level,
        tuple(message.policy_statements),
        message.worst_case,
        cost_of(message.largest_limit) if is_bounded else None,
        message.previous_currency,
    )


def _sharing(above: Sequence[_StatedLevel]) -> Sharing:
    if not above:
        return Sharing.NONE
    return Sharing.WORST_CASES if all(each.worst_case for each in above) else Sharing.COSTS


def _narrowest_enforced(levels: Sequence[_StatedLevel]) -> _StatedLevel | None:
    return next((each for each in reversed(levels) if each.level.mode is Mode.ENFORCE), None)
