"""Sync clients: for programs without an event loop, and for notebooks, which already run one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from gris_api.dp.v1 import question_pb2

from pinot_connector.budgets import Cost, Level
from pinot_connector.catalog import Catalog
from pinot_connector.channels import Timeouts
from pinot_connector.client import DEFAULT_CONFIDENCE, DEFAULT_TIMEOUTS, AsyncPrivateClient
from pinot_connector.client_base import ClientBase
from pinot_connector.endpoints import Address
from pinot_connector.engines.base import Engine
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.guarantees import AccountGuarantee, PublishedDomain
from pinot_connector.release_store import ReleaseStore
from pinot_connector.results import Explanation, PrivateResult
from pinot_connector.shared_budgets import DEFAULT_SLACK

_Value = TypeVar("_Value")


class AsyncClient(Protocol):
    """What an asynchronous client needs for a sync client to drive it."""

    def ask(
        self, question: question_pb2.Question, *, confidence: float | None = None
    ) -> Awaitable[PrivateResult]:
        """Answers a question."""
        ...

    def explain(self, question: question_pb2.Question | str) -> Awaitable[Explanation]:
        """Returns what a question would cost at most."""
        ...

    def remaining(self) -> Awaitable[tuple[Level, ...]]:
        """Returns the budget."""
        ...

    def questions_left(self, question: question_pb2.Question | str) -> Awaitable[int | None]:
        """Returns how many more questions like this one can be asked."""
        ...

    def catalog(self, table: str = "") -> Awaitable[Catalog]:
        """Returns what may be asked."""
        ...

    def close(self) -> Awaitable[None]:
        """Closes the connections."""
        ...


Client = TypeVar("Client", bound=AsyncClient)


class SyncClient(ClientBase[PrivateResult], Generic[Client]):
    """Drives an asynchronous client from synchronous code: every call returns when there is an answer.

    It runs an event loop of its own in a thread of its own, so it also works where a loop is running already. Any
    number of threads may share it.

    Args:
        connect: creates the asynchronous client; called in the loop, to which its channels belong.
    """

    def __init__(self, connect: Callable[[], Client]) -> None:
        async def connected() -> Client:
            return connect()

        self._loop = _LoopThread()
        try:
            self._client = self._loop.run(connected())
        except BaseException:
            self._loop.stop()
            raise

    def ask(self, question: question_pb2.Question, *, confidence: float | None = None) -> PrivateResult:
        """Answers a question that `structured_question` or `sql_question` built.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            question: what to ask.
            confidence: the probability that an interval covers the number before noise, strictly between 0.5 and 1;
                None: that of the client, or of the gateway. Of a release that is paid for, any confidence is free.

        Returns:
            The result, which has been charged; nothing of it is available before.

        Raises:
            InvalidQuestion: the question or the confidence is malformed; `field` says where.
            RefusedByPolicy: the policy forbids the question.
            BudgetExhausted: the budget does not hold the worst-case cost; `shortfalls` says where.
            AccountUnknown: the account has no budget.
            GrisError: there is no result for another reason; see `errors`.

        Example:
            >>> question = structured_question("feedback", "app", k=None)
            >>> result = client.ask(question)
            >>> result.parameters.domain_size
            4
        """
        return self._wait(lambda: self._client.ask(question, confidence=confidence))

    def explain(self, question: question_pb2.Question | str) -> Explanation:
        """Returns what a question would cost at most, its share of the budget, and what would be done.

        Nothing is charged or reserved.

        Guarantee: explaining reads no data, so it reveals nothing about any member beyond what the balance shows.

        Args:
            question: a question that `structured_question` or `sql_question` built, or a question in SQL.

        Returns:
            The explanation: worst-case cost in information units and calls, its shares of every limit, the mechanism's
            parameters, and sentences for people, and, not from a gateway, the queries that engines would run.

        Raises:
            InvalidQuestion: the question is malformed; `field` says where.
            RefusedByPolicy: the policy forbids the question.
            AccountUnknown: the account has no budget.
            ServiceUnavailable: a service, or the gateway, does not answer.

        Example:
            >>> explanation = client.explain("SELECT app, COUNT(DISTINCT member_id) FROM feedback GROUP BY app")
            >>> explanation.worst_case_cost.information, explanation.worst_case_cost.calls
            (4, 0)
        """
        return self._wait(lambda: self._client.explain(question))

    def remaining(self) -> tuple[Level, ...]:
        """Returns the budget; see `AsyncPrivateClient.remaining`."""
        return self._wait(self._client.remaining)

    def questions_left(self, question: question_pb2.Question | str) -> int | None:
        """Returns how many more such questions can be asked; see `AsyncPrivateClient.questions_left`."""
        return self._wait(lambda: self._client.questions_left(question))

    def catalog(self, table: str = "") -> Catalog:
        """Returns what may be asked: tables, columns with their domains, measures, and each column's mechanism.

        Guarantee: the catalogue holds only the policy and published domains, whose price `guarantee` counts; no data
        are read.

        Args:
            table: the name of the only table to describe; empty for all.

        Returns:
            The catalogue, and the currency that costs are in.

        Raises:
            RefusedByPolicy: the policy lists no such table.
            ServiceUnavailable: dp_service, or the gateway, does not answer.

        Example:
            >>> catalog = client.catalog("feedback")
            >>> catalog.tables[0].member
            'member_id'
        """
        return self._wait(lambda: self._client.catalog(table))

    def close(self) -> None:
        """Closes the connections and ends the thread. Closing twice is allowed."""
        self._loop.stop(self._client.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _wait(self, call: Callable[[], Awaitable[_Value]]) -> _Value:
        async def called() -> _Value:
            return await call()

        return self._loop.run(called())


class PrivateClient(SyncClient[AsyncPrivateClient]):
    """`AsyncPrivateClient` for synchronous code, with the same arguments; see `SyncClient`.

    Args:
        dp: address of dp_service: "host:port" on a trusted network, or an `Endpoint` behind TLS.
        budget: address of budget_service, in the same forms.
        account: whose budget pays, from the root account to the analyst; "a/b" is ("a", "b").
        engine: the engine that holds the data.
        confidence: of intervals and of the ranks of quantiles, strictly between 0.5 and 1; the statements of a
            result say of what.
        timeouts: how long each part of a question may take.
        releases: where releases are kept, shared with every client that should give the same answers; the client does
            not close it. None: one store for all clients of the same services in this process: in memory, or that of
            the folder of `EmbeddedServices`.

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
        releases: ReleaseStore | None = None,
    ) -> None:
        super().__init__(
            lambda: AsyncPrivateClient(
                dp=dp,
                budget=budget,
                account=account,
                engine=engine,
                confidence=confidence,
                timeouts=timeouts,
                releases=releases,
            )
        )

    def guarantee(
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
                ledger cannot report what was published under the window's charges (STATEMENTS_ARCHIVED,
                TOO_MANY_STATEMENTS).
            ServiceUnavailable: one of the services does not answer.

        Example:
            >>> guarantee = client.guarantee()
            >>> 0 < guarantee.own.guarantee.epsilon <= guarantee.epsilon
            True
        """
        return self._wait(lambda: self._client.guarantee(budget, slack=slack, domains=domains))


class GatewayClient(SyncClient[AsyncGatewayClient]):
    """`AsyncGatewayClient` for synchronous code, with the same arguments; see `SyncClient`.

    Args:
        gateway: the gateway's address; see `gateway_address`.
        account: whose budget pays: the caller's own account, or one below it where the gateway's rules allow that;
            None: the caller's own.

    Raises:
        InvalidQuestion: the account is no text, or a file of the credentials cannot be used.
        RuntimeError: from every method but `close`, once the client is closed.
    """

    def __init__(self, gateway: Address, *, account: str | Sequence[str] | None = None) -> None:
        super().__init__(lambda: AsyncGatewayClient(gateway, account=account))

    def ask(
        self, question: question_pb2.Question, *, request_id: str = "", confidence: float | None = None
    ) -> PrivateResult:
        """Answers a question that `structured_question` or `sql_question` built.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            question: what to ask.
            request_id: at most 128 printable ASCII characters that name this request. A retry with the same name gets
                the result that was paid for, without a second charge; empty: a retry is another request.
            confidence: the probability that an interval covers the number before noise, strictly between 0.5 and 1;
                None: that of the gateway. Of a release that is paid for, any confidence is free.

        Returns:
            The result, which has been charged; nothing of it is available before.

        Raises:
            InvalidQuestion: the question or the confidence is malformed; `field` says where.
            RefusedByPolicy: the policy forbids the question.
            BudgetExhausted: the budget does not hold the worst-case cost; `shortfalls` says where.
            AccountUnknown: the account has no budget.
            GrisError: there is no result for another reason; see `errors`.

        Example:
            >>> question = structured_question("feedback", "app", k=None)
            >>> result = client.ask(question, request_id="monday-1")
            >>> result.parameters.domain_size
            4
        """
        return self._wait(lambda: self._client.ask(question, request_id=request_id, confidence=confidence))

    def guarantee(self, *, domains: Sequence[PublishedDomain] = ()) -> AccountGuarantee:
        """Returns how private everything is that the account is shown in a window.

        It counts the published domains of the served policy and of every policy under which the window was charged.

        Guarantee: whatever questions are asked, everything that the account is shown in a window is together
        (epsilon, delta)-differentially private for every member; both numbers are rounded up.

        Args:
            domains: further published domains that the account saw, such as those of a policy under which it was
                charged nothing.

        Returns:
            The guarantee: `own` for what the account's budget pays for, `shared` if limits above it reveal more.

        Raises:
            InvalidQuestion: a number is out of range.
            AccountUnknown: the account has no budget.
            ServiceRefused: the budget is in another currency than dp_service's policy (`reason` UNIT_MISMATCH), or the
                ledger cannot report what was published under the window's charges (STATEMENTS_ARCHIVED,
                TOO_MANY_STATEMENTS).
            ServiceUnavailable: the gateway, or a service behind it, does not answer.

        Example:
            >>> guarantee = client.guarantee()
            >>> 0 < guarantee.own.guarantee.epsilon <= guarantee.epsilon
            True
        """
        return self._wait(lambda: self._client.guarantee(domains=domains))


class _LoopThread:
    """An event loop in a daemon thread: a program that does not close its client can still end."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gris-client", daemon=True)
        self._thread.start()
        self._lock = threading.Lock()
        self._stopping = False

    def run(self, work: Coroutine[Any, Any, _Value]) -> _Value:
        with self._lock:
            if self._stopping:
                work.close()
                raise RuntimeError("the client is closed")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            # The question must not go on and be charged after its caller has left.
            future.cancel()
            raise
        except CancelledError:
            raise RuntimeError("the client was closed before there was an answer") from None

    def stop(self, close: Callable[[], Awaitable[None]] | None = None) -> None:
        """Runs `close` as the last task of the loop, and ends the thread; a second call does nothing."""
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
            last = asyncio.run_coroutine_threadsafe(_ended(close), self._loop)
        try:
            last.result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _ended(close: Callable[[], Awaitable[None]] | None) -> None:
    try:
        if close is not None:
            await close()
    finally:
        # Other threads that wait for an answer would wait for ever once the loop has stopped.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
