"""The client for programs without an event loop, and for notebooks, whose loop is taken."""

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
from pinot_connector.results import Explanation, PrivateResult
from pinot_connector.shared_budgets import DEFAULT_SLACK

_Value = TypeVar("_Value")


class AsyncClient(Protocol):
    """What a client must have to be driven from ordinary code."""

    def ask(self, question: question_pb2.Question) -> Awaitable[PrivateResult]:
        """Answers a question."""
        ...

    def explain(self, question: question_pb2.Question | str) -> Awaitable[Explanation]:
        """Tells what a question would cost at most."""
        ...

    def remaining(self) -> Awaitable[tuple[Level, ...]]:
        """Tells the budget."""
        ...

    def questions_left(self, question: question_pb2.Question | str) -> Awaitable[int | None]:
        """Tells how many more questions like this one can be asked."""
        ...

    def catalog(self, table: str = "") -> Awaitable[Catalog]:
        """Tells what may be asked."""
        ...

    def close(self) -> Awaitable[None]:
        """Closes the connections."""
        ...


Client = TypeVar("Client", bound=AsyncClient)


class SyncClient(ClientBase[PrivateResult], Generic[Client]):
    """An asynchronous client for ordinary code: the same questions, each answered before the call returns.

    It drives an event loop of its own in a thread of its own, so it also works where a loop is running already. Any
    number of threads may share it.

    Args:
        connect: makes the client; called in the loop, to which its channels belong.
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

    def ask(self, question: question_pb2.Question) -> PrivateResult:
        """Answers a question, once it is paid for; see `Asking.ask`."""
        return self._wait(lambda: self._client.ask(question))

    def explain(self, question: question_pb2.Question | str) -> Explanation:
        """Tells what a question would cost at most, and of the budget; see `AsyncPrivateClient.explain`."""
        return self._wait(lambda: self._client.explain(question))

    def remaining(self) -> tuple[Level, ...]:
        """Tells the budget; see `AsyncPrivateClient.remaining`."""
        return self._wait(self._client.remaining)

    def questions_left(self, question: question_pb2.Question | str) -> int | None:
        """Tells how many more questions like this one can be asked; see `AsyncPrivateClient.questions_left`."""
        return self._wait(lambda: self._client.questions_left(question))

    def catalog(self, table: str = "") -> Catalog:
        """Tells what may be asked; see `AsyncPrivateClient.catalog`."""
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
    """`AsyncPrivateClient` for ordinary code, with the same arguments; see `SyncClient`."""

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
        super().__init__(
            lambda: AsyncPrivateClient(
                dp=dp, budget=budget, account=account, engine=engine, confidence=confidence, timeouts=timeouts
            )
        )

    def guarantee(
        self,
        budget: Cost | None = None,
        *,
        slack: str = DEFAULT_SLACK,
        domains: Sequence[PublishedDomain] = (),
    ) -> AccountGuarantee:
        """Tells how private all is that the account is shown; see `AsyncPrivateClient.guarantee`."""
        return self._wait(lambda: self._client.guarantee(budget, slack=slack, domains=domains))


class GatewayClient(SyncClient[AsyncGatewayClient]):
    """`AsyncGatewayClient` for ordinary code, with the same arguments; see `SyncClient`."""

    def __init__(self, gateway: Address, *, account: str | Sequence[str] | None = None) -> None:
        super().__init__(lambda: AsyncGatewayClient(gateway, account=account))

    def ask(self, question: question_pb2.Question, *, request_id: str = "") -> PrivateResult:
        """Answers a question, once it is paid for; see `AsyncGatewayClient.ask`."""
        return self._wait(lambda: self._client.ask(question, request_id=request_id))

    def guarantee(self, *, domains: Sequence[PublishedDomain] = ()) -> AccountGuarantee:
        """Tells how private all is that the account is shown; see `AsyncGatewayClient.guarantee`."""
        return self._wait(lambda: self._client.guarantee(domains=domains))


class _LoopThread:
    """An event loop in a thread. The thread does not keep a program alive that forgot to close its client."""

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
            # The question must not go on and be charged for somebody who has left.
            future.cancel()
            raise
        except CancelledError:
            raise RuntimeError("the client was closed before there was an answer") from None

    def stop(self, close: Callable[[], Awaitable[None]] | None = None) -> None:
        """Lets `close` run as the last work of the loop, and ends the thread; a second call does nothing."""
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
        # Whoever still waits in another thread would wait for ever once the loop stands still.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
