"""The asynchronous client."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Sequence
from types import TracebackType

from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector.audiences import Audience, asked_as
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Cost, Level, questions_left
from pinot_connector.catalog import Catalog
from pinot_connector.channels import Timeouts
from pinot_connector.checked_arguments import checked_texts, require_confidence, require_max_cost
from pinot_connector.client_base import ClientBase
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.endpoints import Address
from pinot_connector.engines.base import Engine
from pinot_connector.guarantees import AccountGuarantee, PublishedDomain
from pinot_connector.local_services import DEFAULT_TIMEOUTS, default_timeouts
from pinot_connector.query_pipeline import Admission, Paid, QueryPipeline
from pinot_connector.questions import sql_question
from pinot_connector.release_store import ReleaseStore
from pinot_connector.release_store.default_store import shared_store
from pinot_connector.results import Explanation, PrivateResult, explanation_of
from pinot_connector.shared_budgets import DEFAULT_SLACK, account_guarantee

DEFAULT_CONFIDENCE = 0.95


class AsyncPrivateClient(ClientBase[Awaitable[PrivateResult]]):
    """Asks private questions for one account.

    It sees true counts: run it on the application's server, and never give it to an analyst. Use it in one event loop,
    with any number of questions at a time. It does not close the engine.

    A question that the account has paid for in the window is answered from `releases`: without a charge, and without
    asking the engine.

    Args:
        dp: address of dp_service: "host:port" on a trusted network, or an `Endpoint` behind TLS.
        budget: address of budget_service, in the same forms.
        account: whose budget pays, from the root account to the analyst; "a/b" is ("a", "b").
        engine: the engine that holds the data.
        confidence: of intervals and of the ranks of quantiles, strictly between 0.5 and 1; the statements of a
            result say of what.
        timeouts: how long each part of a question may take; a ledger that this process has started may be silent for
            5 seconds.
        reserve_first: whether the engine is asked only once the budget is reserved, even if the policy does not say so:
            slower by one call, and a question that the budget refuses costs the engine nothing.
        releases: where releases are kept, shared with every client that should give the same answers; the client does
            not close it. None: one store for all clients of the same services in this process: in memory, or that of
            the folder of `EmbeddedServices`.
        audience: as which audience of the policy it asks; needed where the policy states audiences. None: as none.

    Raises:
        InvalidQuestion: the account is no text, the confidence no number between 0.5 and 1, or a file of an
            `Endpoint` cannot be used.
        ReleaseStoreFailed: the store of `EmbeddedServices` cannot be opened.
        RuntimeError: from every method but `close`, once the client is closed.
    """

    def __init__(
        self,
        *,
        dp: Address,
        budget: Address,
        account: str | Sequence[str],
        engine: Engine,
        confidence: float = DEFAULT_CONFIDENCE,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        reserve_first: bool = False,
        releases: ReleaseStore | None = None,
        audience: Audience | None = None,
    ) -> None:
        path = checked_texts("account", account.split("/") if isinstance(account, str) else account)
        require_confidence(confidence)
        if timeouts is DEFAULT_TIMEOUTS:
            timeouts = default_timeouts(budget)
        self._audience = audience
        self._closed = asyncio.Event()
        self._noise = DpServiceClient(dp, timeouts)
        self._budget = BudgetServiceClient(budget, path, timeouts)
        kept = shared_store(dp, budget) if releases is None else releases
        self._pipeline = QueryPipeline(
            self._noise,
            self._budget,
            engine,
            timeouts,
            confidence=confidence,
            releases=kept,
            reserve_first=reserve_first,
        )

    def on_behalf_of(
        self,
        account: Sequence[str],
        *,
        admission: Admission | None = None,
        audience: Audience | None = None,
    ) -> AsyncPrivateClient:
        """Returns a client whose questions another account pays for.

        Both clients share connections; closing one closes both.

        Args:
            account: the path of the other account.
            admission: awaited before a question asks the ledger or has the engine run a query, by a server that bounds
                how many do so at a time. What it raises ends the question.
            audience: as which audience of the policy it asks; None: as none, whatever this client asks as.

        Raises:
            InvalidQuestion: the account is no text.
        """
        other = copy.copy(self)
        other._audience = audience
        other._budget = self._budget.for_account(checked_texts("account", account))
        other._pipeline = self._pipeline.paid_by(other._budget, admission)
        return other

    async def ask(
        self,
        question: question_pb2.Question,
        *,
        confidence: float | None = None,
        max_cost: int | None = None,
        paid: Paid | None = None,
        wait_seconds: float | None = None,
    ) -> PrivateResult:
        """Answers a question that `structured_question` or `sql_question` built.

        A charge that has begun is finished even if the caller is cancelled meanwhile.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            question: what to ask.
            confidence: the probability that an interval covers the number before noise, strictly between 0.5 and 1;
                None: that of the client. Of a release that is paid for, any confidence is free.
            max_cost: the most information units that the question may cost: one whose worst case is more is refused
                before anything is asked. What is paid for stays free. None: whatever the budget holds.
            paid: called with the result once it is charged, even if the caller has been cancelled by then.
            wait_seconds: how long to wait for budget that questions hold which run now; at most, and by default,
                `Timeouts.budget_held`. Questions of one account wait in order.

        Returns:
            The result, which has been charged; nothing of it is available before.

        Raises:
            InvalidQuestion: the question, the confidence or `max_cost` is malformed, or the question may cost more than
                that; `field` says which.
            RefusedByPolicy: the policy forbids the question.
            BudgetExhausted: the budget does not hold the worst-case cost; `shortfalls` says where.
            BudgetHeld: other questions held the budget all that time; it is not exhausted.
            AccountUnknown: the account has no budget.
            GrisError: there is no result for another reason; see `errors`.

        Example:
            >>> question = structured_question("feedback", "app", k=None)
            >>> result = await client.ask(question)
            >>> result.parameters.domain_size
            4
        """
        self._require_open()
        if confidence is not None:
            require_confidence(confidence)
        require_max_cost(max_cost)
        return await self._pipeline.ask(self._as_audience(question), paid, wait_seconds, confidence, max_cost)

    async def explain(self, question: question_pb2.Question | str) -> Explanation:
        """Returns what a question would cost at most, its share of the budget, and what would be done.

        Nothing is charged or reserved.

        Guarantee: explaining reads no data, so it reveals nothing about any member beyond what the balance shows.

        Args:
            question: a question that `structured_question` or `sql_question` built, or a question in SQL.

        Returns:
            The explanation: worst-case cost in information units and calls, its shares of every limit, the mechanism's
            parameters, and sentences for people, with the queries that engines would run.

        Raises:
            InvalidQuestion: the question is malformed; `field` says where.
            RefusedByPolicy: the policy forbids the question.
            AccountUnknown: the account has no budget.
            ServiceUnavailable: one of the services does not answer.

        Example:
            >>> explanation = await client.explain("SELECT app, COUNT(DISTINCT member_id) FROM feedback GROUP BY app")
            >>> explanation.worst_case_cost.information, explanation.worst_case_cost.calls
            (4, 0)
        """
        explanation = await self.estimate(question)
        return explanation.of_budget(await self.remaining())

    async def estimate(self, question: question_pb2.Question | str) -> Explanation:
        """Returns what `explain` returns, without shares of a budget: the same for every account.

        Args:
            question: a question that `structured_question` or `sql_question` built, or a question in SQL.

        Raises:
            InvalidQuestion: the question is malformed; `field` says where.
            RefusedByPolicy: the policy forbids the question.
            ServiceUnavailable: dp_service does not answer.
        """
        self._require_open()
        asked = sql_question(question) if isinstance(question, str) else question
        message = await self._noise.estimate(self._as_audience(asked))
        return explanation_of(message.estimate, message.engine_queries)

    async def remaining(self) -> tuple[Level, ...]:
        """Returns the budget: every level that has a limit, from the root account to the account itself.

        Raises:
            AccountUnknown: the account has no budget.
            ServiceUnavailable: budget_service does not answer.
        """
        self._require_open()
        return await self._budget.remaining()

    async def remaining_of(self, blocks: Sequence[str]) -> tuple[Level, ...]:
        """Returns the budget for questions that these blocks of members pay for; errors as for `remaining`."""
        self._require_open()
        return await self._budget.remaining(blocks)

    async def questions_left(self, question: question_pb2.Question | str) -> int | None:
        """Returns how many more questions like this one the budget certainly pays for, each at its worst-case cost.

        Args:
            question: a question that `structured_question` or `sql_question` built, or a question in SQL.

        Returns:
            A number of questions; None if no limit is enforced.

        Raises:
            InvalidQuestion: the question is malformed; `field` says where.
            RefusedByPolicy: the policy forbids the question.
            AccountUnknown: the account has no budget.
            ServiceUnavailable: one of the services does not answer.
        """
        explanation = await self.estimate(question)
        return questions_left(await self.remaining(), explanation.worst_case_cost)

    async def require_not_closed(self) -> None:
        """Returns if the account may read what it has paid for, by what the ledger said at most a minute ago.

        Raises:
            ServiceRefused: the account, or a level above it, is closed (`reason` ACCOUNT_CLOSED).
            AccountUnknown: the account has no budget.
            ServiceUnavailable: budget_service does not answer, and has not within the last minute.
        """
        self._require_open()
        await self._budget.require_not_closed()

    async def guarantee(
        self,
        budget: Cost | None = None,
        *,
        slack: str = DEFAULT_SLACK,
        domains: Sequence[PublishedDomain] = (),
    ) -> AccountGuarantee:
        """Returns how private everything is that the account is shown in a window.

        It counts the published domains of the served policy and of every policy under which the window was charged.

        Guarantee: whatever questions are asked, everything that the account is shown in a window is together
        (epsilon, delta)-differentially private for every member; both numbers are rounded up.

        Args:
            budget: how much the account may spend, in information units and calls; None: its limit, or the largest one
                that the ledger has recorded in the window. If `budget.yaml` had a larger one, give that; less than what
                was spent is refused.
            slack: the part of delta that advanced composition may use, as a decimal number.
            domains: further published domains that the account saw, such as those of a policy under which it was
                charged nothing.

        Returns:
            The guarantee: `own` for what the account's budget pays for, `shared` if limits above it reveal more.

        Raises:
            InvalidQuestion: a number is out of range.
            AccountUnknown: the account has no budget.
            ServiceRefused: the budget is in another currency than dp_service's policy (`reason` UNIT_MISMATCH), or the
                ledger cannot report what was published under the window's charges (TOO_MANY_STATEMENTS).
            ServiceUnavailable: one of the services does not answer.

        Example:
            >>> guarantee = await client.guarantee()
            >>> 0 < guarantee.own.guarantee.epsilon <= guarantee.epsilon
            True
        """
        self._require_open()
        return await account_guarantee(self._noise, self._budget, budget, slack=slack, domains=domains)

    async def catalog(self, table: str = "") -> Catalog:
        """Returns what may be asked: tables, columns with their domains, measures, and each column's mechanism.

        Guarantee: the catalogue holds only the policy and published domains, whose price `guarantee` counts; no data
        are read.

        Args:
            table: the name of the only table to describe; empty for all.

        Returns:
            The catalogue, and the currency that costs are in.

        Raises:
            RefusedByPolicy: the policy lists no such table.
            ServiceUnavailable: dp_service does not answer.

        Example:
            >>> catalog = await client.catalog("feedback")
            >>> catalog.tables[0].member
            'member_id'
        """
        self._require_open()
        return await self._noise.catalog(table, self._audience)

    async def catalog_page(self, request: dp_pb2.GetCatalogRequest) -> dp_pb2.GetCatalogResponse:
        """Returns one page of the catalogue as a message, for a gateway to pass on.

        Args:
            request: the table (empty: all), the page size in entries (0: the service's own), and a page token.

        Raises:
            ServiceRefused: the policy was replaced since the first page (`reason` CATALOG_CHANGED).
            GrisError: as for `catalog`.
        """
        self._require_open()
        return await self._noise.catalog_page(asked_as(request, self._audience))

    async def offers_all(self) -> bool:
        """Returns whether everybody is offered everything, as the policy states no audiences.

        Raises:
            ServiceUnavailable: dp_service does not answer.
        """
        self._require_open()
        return await self._noise.offers_all()

    async def can_ask(self, question: question_pb2.Question, shown: dp_pb2.Shown) -> bool:
        """Returns whether the client's audience can ask now what was asked when something was shown.

        It cannot if it is restricted to other rows than those of whom it was shown.

        Raises:
            ServiceUnavailable: dp_service does not answer.
        """
        self._require_open()
        rows = await self._pipeline.audience_rows(self._as_audience(question))
        return rows == shown.audience_rows

    async def close(self) -> None:
        """Cancels the questions that are still running, and closes the connections.

        Their reservations are cancelled first. Closing twice is allowed.
        """
        self._closed.set()
        await self._pipeline.close()
        await self._noise.close()
        await self._budget.close()

    async def __aenter__(self) -> AsyncPrivateClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _as_audience(self, question: question_pb2.Question) -> question_pb2.Question:
        return asked_as(question, self._audience)

    def _require_open(self) -> None:
        if self._closed.is_set():
            raise RuntimeError("the client is closed")
