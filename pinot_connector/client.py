"""The asynchronous client."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Sequence
from types import TracebackType

from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Cost, Level, level_of, questions_left
from pinot_connector.catalog import Catalog
from pinot_connector.channels import Timeouts
from pinot_connector.client_base import ClientBase
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.endpoints import Address
from pinot_connector.engines.base import Engine
from pinot_connector.errors import InvalidQuestion
from pinot_connector.guarantees import AccountGuarantee, PublishedDomain
from pinot_connector.query_pipeline import Paid, QueryPipeline
from pinot_connector.questions import checked_texts, sql_question
from pinot_connector.results import Explanation, PrivateResult, explanation_of
from pinot_connector.shared_budgets import DEFAULT_SLACK, account_guarantee

DEFAULT_CONFIDENCE = 0.95
DEFAULT_TIMEOUTS = Timeouts()


class AsyncPrivateClient(ClientBase[Awaitable[PrivateResult]]):
    """Asks private questions for one account.

    It sees true counts and belongs on the application's server, never into an analyst's hands. Use it in one event
    loop, with any number of questions at a time. The engine stays the caller's, who closes it.

    Args:
        dp: address of dp_service: "host:port" on a trusted network, or an `Endpoint` behind TLS.
        budget: address of budget_service.
        account: whose budget pays, from the widest segment to the analyst; "a/b" is ("a", "b").
        engine: where the data are.
        confidence: the probability with which each interval covers, strictly between 0.5 and 1.
        timeouts: how long each part may take.

    Raises:
        InvalidQuestion: the account is no text, the confidence no number between 0.5 and 1, or a file of an
            `Endpoint` cannot be used.
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
    ) -> None:
        path = checked_texts("account", account.split("/") if isinstance(account, str) else account)
        _require_confidence(confidence)
        self._closed = asyncio.Event()
        self._noise = DpServiceClient(dp, timeouts)
        self._budget = BudgetServiceClient(budget, path, timeouts)
        self._pipeline = QueryPipeline(self._noise, self._budget, engine, timeouts, confidence)

    def on_behalf_of(self, account: Sequence[str]) -> AsyncPrivateClient:
        """Returns a client by which another account asks and pays; they share connections, and closing one closes both.

        Raises:
            InvalidQuestion: the account is no text.
        """
        other = copy.copy(self)
        other._budget = self._budget.for_account(checked_texts("account", account))
        other._pipeline = self._pipeline.paid_by(other._budget)
        return other

    async def ask(self, question: question_pb2.Question, *, paid: Paid | None = None) -> PrivateResult:
        """Answers a question, once it is paid for; see `Asking.ask`.

        A charge that has begun is finished even if the caller is cancelled meanwhile. `paid` is called with the result
        then too, so that what was paid for need not be lost.
        """
        self._require_open()
        return await self._pipeline.ask(question, paid)

    async def explain(self, question: question_pb2.Question | str) -> Explanation:
        """Tells what a question (or SQL) would cost at most, what part of the budget that is, and what would be done.

        Nothing is asked of the engine, reserved or paid.

        Raises:
            InvalidQuestion, RefusedByPolicy: the question may not be asked.
            AccountUnknown: the account has no budget.
            ServiceUnavailable: one of the services does not answer.
        """
        explanation = await self.estimate(question)
        return explanation.of_budget(await self.remaining())

    async def estimate(self, question: question_pb2.Question | str) -> Explanation:
        """Tells the same as `explain` but for the budget: what a question costs whoever asks it.

        Raises:
            InvalidQuestion, RefusedByPolicy: the question may not be asked.
            ServiceUnavailable: dp_service does not answer.
        """
        self._require_open()
        asked = sql_question(question) if isinstance(question, str) else question
        return explanation_of(await self._noise.estimate(asked))

    async def remaining(self) -> tuple[Level, ...]:
        """Tells the budget: every level that has a limit, from the widest to the account itself.

        Raises:
            AccountUnknown: the account has no budget.
            ServiceUnavailable: budget_service does not answer.
        """
        self._require_open()
        return tuple(level_of(level) for level in await self._budget.levels())

    async def questions_left(self, question: question_pb2.Question | str) -> int | None:
        """Tells how many more questions like this one (or SQL) can be asked for certain: at the worst-case price.

        None if no limit is enforced.

        Raises:
            InvalidQuestion, RefusedByPolicy: the question may not be asked.
            AccountUnknown: the account has no budget.
            ServiceUnavailable: one of the services does not answer.
        """
        explanation = await self.estimate(question)
        return questions_left(await self.remaining(), explanation.worst_case_cost)

    async def guarantee(
        self,
        budget: Cost | None = None,
        *,
        slack: str = DEFAULT_SLACK,
        domains: Sequence[PublishedDomain] = (),
    ) -> AccountGuarantee:
        """Tells how private all is that the account is shown in a window, whatever is asked.

        Counted are the published domains of the served policy and of every policy under which the window was charged.

        Args:
            budget: how much the account may spend; None: its limit.
            slack: the part of delta that buys the better composition, a decimal number.
            domains: published domains that the account saw beside those, such as those of a policy under which it was
                charged nothing.

        Raises:
            InvalidQuestion: a number is out of range.
            AccountUnknown: the account has no budget.
            ServiceRefused: the budget is in another currency than dp_service's policy (`reason` UNIT_MISMATCH), or the
                ledger cannot tell what was published under the window's charges (STATEMENTS_ARCHIVED,
                TOO_MANY_STATEMENTS).
            ServiceUnavailable: one of the services does not answer.
        """
        self._require_open()
        return await account_guarantee(self._noise, self._budget, budget, slack=slack, domains=domains)

    async def catalog(self, table: str = "") -> Catalog:
        """Tells what may be asked: tables, columns with their domains, measures, and the mechanism of each column.

        Args:
            table: only this one; all of them if it is empty.

        Raises:
            RefusedByPolicy: the policy lists no such table.
            ServiceUnavailable: dp_service does not answer.
        """
        self._require_open()
        return await self._noise.catalog(table)

    async def catalog_page(self, request: dp_pb2.GetCatalogRequest) -> dp_pb2.GetCatalogResponse:
        """Returns one page of what may be asked, for whoever hands it on.

        Raises:
            ServiceRefused: the policy was replaced since the first page (`reason` CATALOG_CHANGED).
            GrisError: as for `catalog`.
        """
        self._require_open()
        return await self._noise.catalog_page(request)

    async def close(self) -> None:
        """Cancels what is still being asked, lets it give its reservations back, and closes the connections.

        Closing twice is allowed.
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

    def _require_open(self) -> None:
        if self._closed.is_set():
            raise RuntimeError("the client is closed")


def _require_confidence(confidence: float) -> None:
    # Sent as a message's 0, it would silently mean 0.95.
    if not isinstance(confidence, float) or not 0.5 < confidence < 1:
        raise InvalidQuestion("confidence", "expected a number strictly between 0.5 and 1")
