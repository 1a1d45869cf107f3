"""Sync clients: for programs without an event loop, and for notebooks, which already run one."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError, Future
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from pinot_connector import forks
from pinot_connector.audiences import Audience
from pinot_connector.channels import Timeouts
from pinot_connector.client import DEFAULT_CONFIDENCE, AsyncPrivateClient
from pinot_connector.client_base import ClientBase
from pinot_connector.endpoints import Address
from pinot_connector.engines.base import Engine
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.local_services import DEFAULT_TIMEOUTS
from pinot_connector.release_store import ReleaseStore
from pinot_connector.results import PrivateResult

_Value = TypeVar("_Value")
_Arguments = ParamSpec("_Arguments")


class Closable(Protocol):
    """What an asynchronous client needs for a sync client to drive it, beside the methods that are called."""

    def close(self) -> Awaitable[None]:
        """Closes the connections."""
        ...


Client = TypeVar("Client", bound=Closable)


def blocking(
    method: Callable[Concatenate[Any, _Arguments], Awaitable[_Value]],
) -> Callable[Concatenate[Any, _Arguments], _Value]:
    """Return the method of a sync client that waits for the asynchronous client's method of the same name.

    It has the same arguments and says the same of itself, without `await`.
    """

    @wraps(method)
    def called(self: Any, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Value:
        value: _Value = self._wait(lambda client: getattr(client, method.__name__)(*arguments, **named))
        return value

    called.__doc__ = (method.__doc__ or "").replace("await ", "")
    return called


class SyncClient(ClientBase[PrivateResult], Generic[Client]):
    """Drives an asynchronous client from synchronous code: every call returns when there is an answer.

    It runs an event loop of its own in a thread of its own, so it also works where a loop is running already. Any
    number of threads may share it.

    Args:
        connect: creates the asynchronous client; called in the loop, to which its channels belong.
    """

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._running_calls = 0
        self._closed = False
        self._driven: _DrivenClient[Client] | None = _DrivenClient(connect)

    ask = blocking(AsyncPrivateClient.ask)
    explain = blocking(AsyncPrivateClient.explain)
    remaining = blocking(AsyncPrivateClient.remaining)
    questions_left = blocking(AsyncPrivateClient.questions_left)
    catalog = blocking(AsyncPrivateClient.catalog)

    def close(self) -> None:
        """Closes the connections and ends the thread. Closing twice is allowed."""
        with forks.starting:
            self._closed = True
            driven, self._driven = self._driven, None
        if driven is not None:
            driven.stop()

    def close_if_idle(self) -> None:
        """Closes the connections and ends the thread until the next call, unless a call is running.

        The caller holds `forks.starting`.
        """
        if self._driven is not None and not self._running_calls:
            self._driven.stop()
            self._driven = None

    def _wait(self, call: Callable[[Client], Awaitable[_Value]]) -> _Value:
        """Returns what a call of the asynchronous client gives."""
        with forks.starting:
            if self._closed:
                raise RuntimeError("the client is closed")
            forks.require_usable()
            if self._driven is None:
                self._driven = _DrivenClient(self._connect)
            future = self._driven.start(call)
            self._running_calls += 1
        try:
            return future.result()
        except KeyboardInterrupt:
            # The question must not go on and be charged after its caller has left.
            future.cancel()
            raise
        except CancelledError:
            raise RuntimeError("the client was closed before there was an answer") from None
        finally:
            with forks.starting:
                self._running_calls -= 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


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
        audience: see `AsyncPrivateClient`.

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
        audience: Audience | None = None,
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
                audience=audience,
            )
        )

    guarantee = blocking(AsyncPrivateClient.guarantee)


class GatewayClient(SyncClient[AsyncGatewayClient]):
    """`AsyncGatewayClient` for synchronous code, with the same arguments; see `SyncClient`.

    It may be created before a fork, unless a call is running then: parent and child open connections of their own.

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
        forks.close_before_forks(self)

    ask = blocking(AsyncGatewayClient.ask)
    guarantee = blocking(AsyncGatewayClient.guarantee)


class _DrivenClient(Generic[Client]):
    """A client with its event loop, in a daemon thread: a program that does not close its client can still end."""

    def __init__(self, connect: Callable[[], Client]) -> None:
        async def connected() -> Client:
            return connect()

        self._process = os.getpid()
        self._client: Client | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gris-client", daemon=True)
        self._thread.start()
        try:
            self._client = asyncio.run_coroutine_threadsafe(connected(), self._loop).result()
        except BaseException:
            self.stop()
            raise

    def start(self, call: Callable[[Client], Awaitable[_Value]]) -> Future[_Value]:
        """Starts a call; its future has what it gives."""

        async def called(client: Client) -> _Value:
            return await call(client)

        assert self._client is not None, "it is connected"  # noqa: S101 - for the type checker
        return asyncio.run_coroutine_threadsafe(called(self._client), self._loop)

    def stop(self) -> None:
        """Closes the client as the last task of the loop, and ends the thread."""
        # In the child of a fork there is no such thread.
        if self._process != os.getpid():
            return
        last = asyncio.run_coroutine_threadsafe(_ended(self._client), self._loop)
        try:
            last.result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _ended(client: Closable | None) -> None:
    try:
        if client is not None:
            await client.close()
    finally:
        # Other threads that wait for an answer would wait for ever once the loop has stopped.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
