"""Runs calls independently of their callers, and turns every failure into a status.

Work that has begun is finished even if its caller leaves: a deadline or a lost connection never interrupts a commit.
The store finishes a single operation; a task of the server finishes work of several steps. The caller retries with the
same `request_id` and gets the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeAlias, TypeVar

import grpc
from google.rpc.status_pb2 import Status
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.configuration.budget_file import AccountUnknownError, InvisibleNameError
from budget_service.internal_errors import log_internal_error
from budget_service.ledger import ignorable
from budget_service.ledger.values import InvalidFieldError
from budget_service.server import rpc_errors
from budget_service.server.failure_detector import FailureDetector, LastProblem
from budget_service.stores.interface import OutcomeUnknownError, StoreDamagedError, StoreError
from budget_service.tuning import Tuning

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Result = TypeVar("Result")
OfAccount: TypeAlias = (
    pb.CheckBudgetRequest
    | pb.ReserveBudgetRequest
    | pb.UpdateBudgetRequest
    | pb.ReleaseReservationRequest
    | pb.GetBudgetRequest
)

# Clients of gRPC retry UNAVAILABLE within milliseconds by themselves, if they are set up so; not with this trailer.
NO_RETRY = ("grpc-retry-pushback-ms", "-1")

log = logging.getLogger(__name__)


class RequestRunner:
    """The running calls of a server.

    With a `detector`, no call starts while the store does not answer. With `names_damage`, callers are administrators,
    who may know which row of the ledger is damaged.
    """

    def __init__(
        self, detector: FailureDetector | None, tuning: Tuning, *, names_damage: bool = False
    ) -> None:
        self._names_damage = names_damage
        self._running_calls = tuning.running_calls
        self._detector = detector
        self._last_problem = LastProblem()
        self._answering = 0
        self._answering_of: Counter[str] = Counter()
        self._running: set[asyncio.Task[Any]] = set()

    async def answer(
        self, work: Coroutine[Any, Any, Result], context: Context, request: OfAccount | None = None
    ) -> Result:
        """Return the result of `work`, or end the call with the status of its failure.

        `work` is cancelled if the caller leaves, so it may change the ledger by at most one operation of the store.
        Without a `request` it is an administrator's, about all accounts.
        """
        root = "" if request is None else next(iter(request.account.path), "")
        # Each root may have as many calls as are still free for others, so that none of them can take all.
        own, others = self._answering_of[root], self._answering - self._answering_of[root]
        if own >= self._running_calls - self._answering:
            await _refuse(work, context, by_own_root=own > others)
        self._answering += 1
        self._answering_of[root] += 1
        try:
            return await self._watched_by_detector(work)
        except Exception as error:
            await _abort(context, self._status_of(error))
        finally:
            self._answering -= 1
            self._answering_of[root] -= 1
            if not self._answering_of[root]:
                del self._answering_of[root]

    async def finish_and_answer(self, work: Coroutine[Any, Any, Result], context: Context) -> Result:
        """Return the result of `work` as `answer` does, but finish `work` even if the caller leaves."""
        if len(self._running) >= self._running_calls:
            await _refuse(work, context)
        try:
            return await self.finished(self._watched_by_detector(work))
        except Exception as error:
            await _abort(context, self._status_of(error))

    async def finished(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of `work`, a part of a call that goes on if the caller leaves. Raises RefusalError."""
        if len(self._running) >= self._running_calls:
            work.close()
            raise rpc_errors.RefusalError(rpc_errors.overloaded())
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Wait for the running tasks; to be called before the store is closed."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _watched_by_detector(self, work: Coroutine[Any, Any, Result]) -> Result:
        detector = self._detector
        if detector is None:
            return await work
        try:
            await detector.admit()
        except BaseException:
            work.close()
            raise
        detector.began()
        try:
            result = await work
        except (StoreError, asyncio.CancelledError):
            # A caller that leaves without an answer may have waited for a store that hangs.
            detector.request_heartbeat()
            raise
        except rpc_errors.RefusalError:
            detector.answered()
            raise
        finally:
            detector.ended()
        detector.answered()
        return result

    def _status_of(self, error: Exception) -> Status:
        if self._names_damage and isinstance(error, StoreDamagedError):
            # The failure detector has logged it.
            return rpc_errors.ledger_damaged(error.table, error.key)
        if isinstance(error, StoreError) and not isinstance(error, OutcomeUnknownError):
            fields = {"problem": str(error)}
            if self._last_problem.is_to_be_logged(fields["problem"]):
                log.error("The store is unavailable.", extra={"event": "store.unavailable", "fields": fields})
        return _status_of(error)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        # If the caller has left, nothing else retrieves the exception, and asyncio would log a warning.
        if not task.cancelled():
            task.exception()


def _status_of(error: Exception) -> Status:
    match error:
        case rpc_errors.RefusalError():
            return error.status
        case InvalidFieldError():
            return rpc_errors.invalid_field(error)
        case AccountUnknownError():
            return _status_of_unknown(error)
        case OutcomeUnknownError():
            fields = {"problem": str(error)}
            log.error(
                "The store did not say what became of a request.",
                extra={"event": "store.outcome_unknown", "fields": fields},
            )
            return rpc_errors.outcome_unknown()
        case StoreError():
            return rpc_errors.store_unavailable()
    log_internal_error(error)
    return rpc_errors.internal()


def _status_of_unknown(error: AccountUnknownError) -> Status:
    if isinstance(error, InvisibleNameError):
        return rpc_errors.invalid_field(InvalidFieldError(f"account.path[{error.index}]", ignorable.PROBLEM))
    return rpc_errors.account_unknown()


async def _refuse(work: Coroutine[Any, Any, Any], context: Context, *, by_own_root: bool = False) -> NoReturn:
    work.close()
    await _abort(context, rpc_errors.overloaded(by_own_root=by_own_root))


async def _abort(context: Context, status: Status) -> NoReturn:
    code = next(each for each in grpc.StatusCode if each.value[0] == status.code)
    metadata: tuple[tuple[str, str | bytes], ...] = (("grpc-status-details-bin", status.SerializeToString()),)
    if rpc_errors.is_retried_by_clients(status):
        metadata = (*metadata, NO_RETRY)
    await context.abort(code, status.message, metadata)
    raise AssertionError("abort does not return")
