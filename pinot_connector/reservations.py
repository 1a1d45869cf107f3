"""A reservation as a context manager: whatever happens inside, it is settled or cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Any, TypeVar

from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.budget_service_client import BudgetServiceClient, new_request_id
from pinot_connector.budgets import Charge, Cost
from pinot_connector.errors import (
    BudgetHeld,
    ChargedUnanswered,
    DataChanged,
    GrisError,
    IncompleteAnswer,
    PlanExpired,
    ReleaseNotRecorded,
    ReservationOver,
    ServiceGone,
    ServiceRefused,
    TooManyCalls,
)
from pinot_connector.rpc_errors import Service

ATTEMPTS_TO_SETTLE = 2
# The part of a short reservation that is left for the charge.
MOST_TO_CHARGE = 0.25
# The part of a reservation for each query after which it is made again before noise is drawn.
MOST_BEFORE_THE_DRAW = 0.25

# How dp_service refuses before it draws anything.
_NOTHING_DRAWN = (IncompleteAnswer, PlanExpired, DataChanged, TooManyCalls)

_Value = TypeVar("_Value")

# The event loop itself keeps only weak references to tasks.
_running_work: set[asyncio.Task[Any]] = set()


class Reservation:
    """Holds the worst case of a translated question while the block runs, once `made` has returned.

    If the block ends before `charge` has succeeded, by an error or a cancellation, the reservation is cancelled. If
    cancelling fails, it lapses when its time to live is over.

    Once noise may have been drawn (`from_the_draw_on`), it may decide how the question ends. Then the reservation is
    settled with the full price, unless a service is gone: noise does not decide that. A question of two looks pays for
    that end too, because noise decides whether there is a second query. If the reservation cannot be settled, nothing
    but that is raised. The end comes before it lapses (`before_it_lapses`): one that has lapsed can be charged only if
    it is made again, for which others may have left too little.

    Budget that other reservations hold is waited for, behind the account's questions that wait already.

    Args:
        budget: the ledger, as the account sees it.
        translation: the translated question, with its worst-case cost.
        deadline: how long to wait for budget that others hold, by the clock of the event loop.
    """

    def __init__(
        self, budget: BudgetServiceClient, translation: dp_pb2.TranslateQueryResponse, deadline: float
    ) -> None:
        self._budget = budget
        self._translation = translation
        self._deadline = deadline
        self._queue = budget.queue
        self._request_id = new_request_id()
        self._reserving: asyncio.Task[budget_pb2.ReserveBudgetResponse] | None = None
        self._reservation_id: str | None = None
        self._queries = 2 if translation.parameters.bounded.HasField("names_look") else 1
        self._begun_at = 0.0
        self._bill_if_unanswered: dp_pb2.Bill | None = None

    async def __aenter__(self) -> Reservation:
        if self._queue.is_empty:
            self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._reserving is not None:
            # The reservation may exist already; only the answer names it.
            await _to_its_end(self._cancel_when_known(self._reserving))
        elif self._reservation_id is not None and self._is_given_back(error):
            await _to_its_end(self._cancel(self._reservation_id))
        elif self._reservation_id is not None and self._bill_if_unanswered is not None:
            await self._end_unanswered(self._bill_if_unanswered, error)

    @contextmanager
    def from_the_draw_on(self) -> Iterator[None]:
        """From here on the full price is charged however the question ends, unless dp_service refuses before it draws.

        The reservation must be made, and last for all that follows.
        """
        before, self._bill_if_unanswered = self._bill_if_unanswered, self._translation.unfinished
        try:
            yield
        except GrisError as error:
            if _nothing_was_drawn(error):
                self._bill_if_unanswered = before
            raise

    async def given_back_unless_it_lasts(self) -> None:
        """Cancels a reservation too old for all that follows, to be made again; no noise may be drawn yet."""
        seconds = self._budget.seconds_held(self._queries)
        if (
            self._reservation_id is not None
            and _now() > self._begun_at + seconds * MOST_BEFORE_THE_DRAW * self._queries
        ):
            old, self._reservation_id = self._reservation_id, None
            await _to_its_end(self._cancel(old))

    @asynccontextmanager
    async def before_it_lapses(self) -> AsyncIterator[None]:
        """Ends the block, in which noise is drawn or shown, while there is time to charge.

        Raises:
            ReservationOver: the block took too long.
        """
        seconds = self._budget.seconds_held(self._queries)
        to_charge = min(self._budget.seconds_to_charge, seconds * MOST_TO_CHARGE)
        try:
            async with asyncio.timeout_at(self._begun_at + seconds - to_charge) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise ReservationOver(
                Service.BUDGET,
                f"a reservation of {seconds} s was about to lapse before the question had an answer",
            ) from None

    def _is_given_back(self, error: BaseException | None) -> bool:
        return self._bill_if_unanswered is None or (self._queries == 1 and isinstance(error, ServiceGone))

    async def made(self) -> str:
        """Returns the reservation's id once it is made; no noise may be drawn before.

        Raises:
            BudgetExhausted: the worst case does not fit.
            BudgetHeld: it would fit, but other reservations held the budget until the deadline.
            GrisError: it could not be made for another reason.
        """
        if self._reservation_id is not None:
            return self._reservation_id
        return await self._queue.granted(self._attempt, self._deadline, has_begun=self._reserving is not None)

    async def made_at_once(self) -> bool:
        """Tries once to make it, unless questions of the account wait already; returns whether it is made.

        Raises:
            BudgetExhausted: the worst case does not fit.
            GrisError: it could not be made for another reason.
        """
        if self._reservation_id is None and (self._reserving is not None or self._queue.is_empty):
            with suppress(BudgetHeld):
                await self._attempt()
        return self._reservation_id is not None

    async def charge(self, bill: dp_pb2.Bill) -> Charge:
        """Settles the reservation with what the release cost; nothing may be shown before.

        A reservation that has lapsed is first made again for the whole worst case: if only the actual cost were
        requested now, a refusal would reveal something about noise that has not been paid for.

        Args:
            bill: of the release.

        Returns:
            What was charged, and what is left.

        Raises:
            BudgetExhausted: the reservation lapsed, and the worst case does not fit any more.
            OutcomeUnknown: no answer came that can be read, and the charge may have happened.
        """
        # All of the answer is there: noise does not decide how this ends.
        self._bill_if_unanswered = None
        for _ in range(ATTEMPTS_TO_SETTLE):
            try:
                charge = await self._settle(await self.made(), bill)
            except ReservationOver:
                self._reservation_id = None
            else:
                self._reservation_id = None
                return charge
        raise ReservationOver(Service.BUDGET, "reservations lapse before they can be settled")

    async def _end_unanswered(self, unfinished: dp_pb2.Bill, error: BaseException | None) -> None:
        """Charges the question in full; what noise may have decided is not raised before.

        Raises:
            ChargedUnanswered: the question is charged; the error says what ended it.
            GrisError: it could not be charged. An answer that cannot be charged ends in the same way.
        """
        try:
            charged = await _to_its_end(self._charge_unfinished(unfinished))
        except GrisError as unpaid:
            if isinstance(error, Exception):
                raise unpaid from None
            return
        if charged is not None and isinstance(error, Exception):
            # Only our own errors have texts that may be shown.
            is_ours = isinstance(error, GrisError)
            problem = str(error) if is_ours else "an unexpected error ended the question"
            ended = ChargedUnanswered(problem, charged.information, charged.calls)
            raise ended from (None if is_ours else error)

    async def _charge_unfinished(self, unfinished: dp_pb2.Bill) -> Cost | None:
        """Settles with the full price; returns what was charged, None if the question was paid for before.

        Without a release_id the ledger records no answer of the question, so it can be asked again.
        """
        try:
            return (await self.charge(unfinished)).charged
        except ReleaseNotRecorded:
            return None
        finally:
            if self._reservation_id is not None:
                await self._cancel(self._reservation_id)

    async def _settle(self, held: str, bill: dp_pb2.Bill) -> Charge:
        return await self._budget.charge(
            bill.cost,
            reservation_id=held,
            release_id=bill.release_id,
            query_id=bill.query_id,
            charge_ticket=bill.charge_ticket,
            policy_statement=bill.policy_statement,
        )

    def _begin(self) -> asyncio.Task[budget_pb2.ReserveBudgetResponse]:
        cost, query_id = self._translation.worst_case_cost, self._translation.query_id
        # It begins at the ledger once the request is there: it never lapses earlier than counted from now.
        self._begun_at = _now()
        self._reserving = asyncio.create_task(
            self._budget.reserve(cost, query_id, request_id=self._request_id, queries=self._queries)
        )
        return self._reserving

    async def _attempt(self) -> str:
        """Tries once. The same request is sent again only after a refusal that is not remembered."""
        reserving = self._reserving or self._begin()
        try:
            held = (await asyncio.shield(reserving)).reservation_id
        except BudgetHeld:
            # Nothing was reserved, so there is nothing to cancel.
            self._reserving = None
            raise
        self._reserving, self._reservation_id = None, held
        # Should it lapse, the next one is another request.
        self._request_id = new_request_id()
        return held

    async def _cancel_when_known(self, reserving: asyncio.Task[budget_pb2.ReserveBudgetResponse]) -> None:
        with suppress(GrisError):
            await self._budget.cancel((await reserving).reservation_id)

    async def _cancel(self, held: str) -> None:
        # A charge whose answer was lost may have settled it: then cancelling is refused, as it should be.
        with suppress(GrisError):
            await self._budget.cancel(held)


def _nothing_was_drawn(error: GrisError) -> bool:
    # A refusal without a reason is not dp_service's own.
    is_refusal = isinstance(error, ServiceRefused) and error.reason
    return bool(is_refusal) or isinstance(error, _NOTHING_DRAWN)


async def finished(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Returns the result of work that a cancellation must not stop; a cancellation takes effect when it has ended."""
    task, cancelled = _kept_alive(work), False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            # Another one may follow: a caller may cancel as often as they like.
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()


async def _to_its_end(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Waits for work that a cancellation must not stop; if the waiting is cancelled, the work still goes on."""
    return await asyncio.shield(_kept_alive(work))


def _now() -> float:
    return asyncio.get_running_loop().time()


def _kept_alive(work: Coroutine[Any, Any, _Value]) -> asyncio.Task[_Value]:
    task = asyncio.create_task(work)
    _running_work.add(task)
    task.add_done_callback(_forget)
    return task


def _forget(task: asyncio.Task[Any]) -> None:
    _running_work.discard(task)
    # If the waiting task was cancelled, nobody else retrieves the exception, and asyncio would log that.
    if not task.cancelled():
        task.exception()
