"""A reservation as a context: whatever happens inside, it ends by being settled or given back."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Charge
from pinot_connector.errors import GrisError, ReservationOver
from pinot_connector.rpc_errors import Service

CHARGES_OF_A_LAPSED_RESERVATION = 2

_Value = TypeVar("_Value")

# The event loop itself keeps only weak references to tasks.
_unfinished: set[asyncio.Task[Any]] = set()


class Reservation:
    """Holds the worst case of a translated question while the block runs, as soon as `made` has returned.

    A block that ends without `charge` having succeeded - by an error, by a cancellation - gives the reservation back
    before it is left. If even that fails, the reservation lapses by itself when its time is over.
    """

    def __init__(self, budget: BudgetServiceClient, translation: dp_pb2.TranslateQueryResponse) -> None:
        self._budget = budget
        self._translation = translation
        self._reserving: asyncio.Task[budget_pb2.ReserveBudgetResponse] | None = None
        self._held: str | None = None

    async def __aenter__(self) -> Reservation:
        self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._reserving is not None:
            # The reservation may be made already; only its answer names it.
            await _to_its_end(self._cancel_when_known(self._reserving))
        elif self._held is not None:
            await _to_its_end(self._cancel(self._held))

    async def made(self) -> str:
        """Returns the reservation's id once it stands; nothing may be released before.

        Raises:
            BudgetExhausted: the worst case does not fit.
            GrisError: it could not be made for another reason.
        """
        if self._held is None:
            reserving = self._reserving or self._begin()
            self._held = (await asyncio.shield(reserving)).reservation_id
            self._reserving = None
        return self._held

    async def charge(self, release: dp_pb2.Release) -> Charge:
        """Settles the reservation with what the release cost; only after this may anything be shown.

        A reservation that lapsed meanwhile is made anew for the whole worst case first: were only the actual cost
        asked for now, a refusal would tell something about noise that nobody has paid for.

        Raises:
            BudgetExhausted: the reservation lapsed, and the worst case does not fit any more.
            OutcomeUnknown: no answer came that can be read, and the charge may have happened.
        """
        for _ in range(CHARGES_OF_A_LAPSED_RESERVATION):
            try:
                charge = await self._settle(await self.made(), release)
            except ReservationOver:
                self._held = None
            else:
                self._held = None
                return charge
        raise ReservationOver(Service.BUDGET, "reservations lapse before they can be settled")

    async def _settle(self, held: str, release: dp_pb2.Release) -> Charge:
        return await self._budget.charge(
            release.cost,
            reservation_id=held,
            release_id=release.release_id,
            query_id=release.query_id,
            charge_ticket=release.charge_ticket,
            policy_statement=release.policy_statement,
        )

    def _begin(self) -> asyncio.Task[budget_pb2.ReserveBudgetResponse]:
        cost, query_id = self._translation.worst_case_cost, self._translation.query_id
        self._reserving = asyncio.create_task(self._budget.reserve(cost, query_id))
        return self._reserving

    async def _cancel_when_known(self, reserving: asyncio.Task[budget_pb2.ReserveBudgetResponse]) -> None:
        with suppress(GrisError):
            await self._budget.release((await reserving).reservation_id)

    async def _cancel(self, held: str) -> None:
        # A charge whose answer was lost may have settled it: then this is refused, and both are right.
        with suppress(GrisError):
            await self._budget.release(held)


async def finished(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Returns what work gives that a cancellation must not stop; one that comes is told when the work has ended."""
    task = _kept_alive(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Waits for work that a cancellation must not stop; cancelled, it goes on by itself."""
    await asyncio.shield(_kept_alive(work))


def _kept_alive(work: Coroutine[Any, Any, _Value]) -> asyncio.Task[_Value]:
    task = asyncio.create_task(work)
    _unfinished.add(task)
    task.add_done_callback(_forget)
    return task


def _forget(task: asyncio.Task[Any]) -> None:
    _unfinished.discard(task)
    # If whoever waited has left, nobody else looks at the failure, and asyncio would complain of it.
    if not task.cancelled():
        task.exception()
