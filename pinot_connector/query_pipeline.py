"""The query pipeline: the steps from a question to a result, in the one order that keeps the promise.

    1. have the question translated under the policy of now, and look up its release
    2. if one is kept and paid for, and the account is not closed, it is the result; if one is kept, reserve the worst
       case and go on with step 5
    3. otherwise read the engine's version of the data, reserve the worst case, and run the query on that version
    4. add noise, prepare everything of the result that can fail, have the engine confirm that the answer was whole, and
       keep the release
    5. charge what the release cost; only then is there a result

The two parts of step 3 run at the same time, unless the policy or the client's `reserve_first` wants the reservation
made before the engine is asked; so do noise and confirmation. If either part fails, both end, and noise is drawn only
once the reservation is made. Each step raises rather than go on with less than it needs, and an error after step 1
cancels the reservation. True counts exist only in steps 3 and 4, in local variables (`new_releases`).

A question of two looks runs a second query in between: dp_service names elements from the first answer, and the second
query counts these alone, on the same version of the data. The answer of the first look is confirmed before names are
drawn from it, and the reservation is made again unless it lasts for the second. Whatever ends the question afterwards
settles the reservation with the price of that look before it lapses, unless it cannot depend on the names
(`reservations`).

A question whose release is kept does not read the data: what changed there since must not show. So the engine is asked
once for a question on one version of the data, by one task at a time. A task whose budget others hold gives its turn
back, and an answer of the engine that comes meanwhile is dropped: no account waits for the budget of another one. Once
the reservation is made, it looks again at what is kept. Of a release that is too large only the name is kept: the first
one who asks is shown it, and a repeat is refused without a charge.
"""

from __future__ import annotations

import asyncio
import copy
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector import telemetry
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Charge, Cost, largest_k
from pinot_connector.channels import Timeouts
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engine_calls import EngineCalls
from pinot_connector.engine_queries import engine_query, expected_columns
from pinot_connector.engines.base import Engine, EngineQuery
from pinot_connector.errors import (
    BudgetExhausted,
    DataChanged,
    EngineError,
    HomeUnavailable,
    PlanExpired,
    ReleaseNotRecorded,
    ReleaseStoreFailed,
    ServiceFailed,
    ServiceUnavailable,
)
from pinot_connector.new_releases import BudgetNotFreeError, NewReleases
from pinot_connector.release_store.interface import Found, KeptRelease, ReleaseStore
from pinot_connector.release_store.retention import payment_of
from pinot_connector.reservations import Reservation, finished
from pinot_connector.results import PrivateResult
from pinot_connector.rpc_errors import Service
from pinot_connector.sharpened_questions import SharpenedQuestions
from pinot_connector.shown_releases import ShownRelease, ShownReleases, kept_release, require_whole
from pinot_connector.single_flight import SingleFlight, Turn
from pinot_connector.translations import Translated, Translator

TRIES_ON_MOVING_DATA = 3
PAUSE_SECONDS = 0.2

Paid: TypeAlias = Callable[[PrivateResult], None]
Admission: TypeAlias = Callable[[], Awaitable[None]]


class _KeptMeanwhileError(Exception):
    """The release is not the one that is kept for its question by now."""

    def __init__(self, kept: KeptRelease) -> None:
        super().__init__("another release is kept for this question")
        self.kept = kept


@dataclass(frozen=True)
class _Purchase:
    """Who hears of the charge for a question, and until when its caller waits at the latest."""

    paid: Paid | None
    latest: float


@dataclass(frozen=True)
class _Drawing:
    """What a release is drawn with."""

    asked: Translated
    query: EngineQuery
    reservation: Reservation
    paid: Paid | None


class QueryPipeline:
    """Answers questions, any number at once, for one account on one engine."""

    def __init__(
        self,
        noise: DpServiceClient,
        budget: BudgetServiceClient,
        engine: Engine,
        timeouts: Timeouts,
        *,
        confidence: float,
        releases: ReleaseStore,
        reserve_first: bool = False,
    ) -> None:
        self._budget = budget
        self._engine = EngineCalls(engine, timeouts.engine)
        self._timeouts = timeouts
        self._admission: Admission = _at_once
        self._releases = releases
        self._shown = ShownReleases(noise, confidence)
        self._new = NewReleases(noise, self._engine, confidence=confidence, reserve_first=reserve_first)
        self._translator = Translator(noise, engine, self._engine.version, timeouts.data_version)
        self._questions = SharpenedQuestions(self._translator, noise, releases, self._engine)
        # One task at a time pays for an account's question, and one has the engine asked for a question.
        self._paying: SingleFlight[tuple[tuple[str, ...], str]] = SingleFlight(_is_everyones)
        self._drawing: SingleFlight[str] = SingleFlight(_is_everyones)
        self._running: set[asyncio.Task[Any]] = set()

    def paid_by(self, budget: BudgetServiceClient, admission: Admission | None = None) -> QueryPipeline:
        """Returns a pipeline that another account pays for; everything else, including `close`, is shared.

        It awaits `admission` before a question that is not given from what is kept goes to ledger or engine.
        """
        other = copy.copy(self)
        other._budget = budget
        other._admission = admission or _at_once
        return other

    async def ask(
        self, question: question_pb2.Question, paid: Paid | None = None, wait_seconds: float | None = None
    ) -> PrivateResult:
        """Returns the paid result of a question.

        If data change meanwhile, or the plan expires, the question starts again, at most three times. Once a release is
        being kept or charged, both are finished even if the caller is cancelled.

        Args:
            question: what to ask.
            paid: called with the result once it is charged, even if the caller has been cancelled by then.
            wait_seconds: the longest wait for budget that other questions hold, if it is less than the time-out.

        Raises:
            GrisError: there is no result; see `errors` for what each kind means.
        """
        with self._registered(), telemetry.question():
            latest = math.inf if wait_seconds is None else _now() + wait_seconds
            return await self._ask(question, paid, latest)

    async def close(self) -> None:
        """Cancels the questions that are still running, and waits until their reservations are cancelled.

        Calls that still run in an engine end by their own time-outs; this method does not wait for them.
        """
        asking = set(self._running)
        for task in asking:
            # A second cancellation would interrupt the clean-up that the first one began.
            if not task.cancelling():
                task.cancel()
        if asking:
            await asyncio.wait(asking)
        self._translator.close()
        self._engine.close()
        self._shown.close()

    @contextmanager
    def _registered(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"  # noqa: S101 - for the type checker
        self._running.add(task)
        try:
            yield
        finally:
            self._running.discard(task)

    async def _ask(self, question: question_pb2.Question, paid: Paid | None, latest: float) -> PrivateResult:
        for _ in range(TRIES_ON_MOVING_DATA - 1):
            try:
                return await self._ask_once(question, paid, latest)
            except (DataChanged, PlanExpired):
                self._translator.forget_versions()
                # A replacement of data takes a while to finish.
                await asyncio.sleep(PAUSE_SECONDS)
        return await self._ask_once(question, paid, latest)

    async def _ask_once(
        self, question: question_pb2.Question, paid: Paid | None, latest: float
    ) -> PrivateResult:
        asked = await self._questions.translated(question, self._budget.account)
        purchase = _Purchase(paid, latest)
        if not asked.may_be_repeated:
            await self._admission()
            return await self._charge_for_new(asked, purchase)
        key = (self._budget.account, asked.query_id)
        while True:
            if (before := await self._paid_before(asked)) is not None:
                telemetry.release_looked_up("given")
                if paid is not None:
                    paid(before)
                return before
            turn = self._paying.turn(key)
            if turn is not None:
                break
            await self._paying.wait(key)
        with turn:
            # What is given needs no admission: it has returned by now.
            await self._admission()
            return await self._pay(asked, purchase)

    async def _paid_before(self, asked: Translated) -> PrivateResult | None:
        """Returns what the account has paid for, in this window or an earlier one; the engine is not asked.

        The account has the release already, so nothing more is paid. The ledger is asked at most once a minute whether
        the account is closed. If it is, there is nothing here, so that the question goes to the ledger and is refused
        there. So it is where nobody can say: a region without its home knows what was paid for there.
        """
        found = await self._find(asked.query_id)
        if found is None or found.payment is None:
            return None
        try:
            if await self._budget.is_closed():
                return None
        except HomeUnavailable:
            return None
        columns = expected_columns(asked.translation)
        completed = await self._shown.completed(columns, asked.translation, found.kept, asked.before)
        unit_id = found.kept.content.bill.cost.unit_id
        return completed(Charge(Cost(0, 0, unit_id), ()))

    async def _find(self, query_id: str) -> Found | None:
        """Returns what is kept for a question.

        Raises:
            ReleaseTooLarge: that is only the name of a release; no account is charged, and the engine is not asked.
        """
        found = await self._releases.find(query_id, self._budget.account)
        if found is not None:
            require_whole(found.kept)
        return found

    async def _pay(self, asked: Translated, purchase: _Purchase) -> PrivateResult:
        """Returns the release of a question that the account has yet to pay for, by the ledger's word."""
        try:
            return await self._pay_once(asked, purchase)
        except _KeptMeanwhileError as other:
            kept = other.kept
        try:
            return await self._charge_for_kept(asked, kept, purchase)
        except _KeptMeanwhileError:
            raise ReleaseNotRecorded from None

    async def _pay_once(self, asked: Translated, purchase: _Purchase) -> PrivateResult:
        while True:
            found = await self._kept_or_turn(asked.query_id)
            if isinstance(found, KeptRelease):
                telemetry.release_looked_up("charged")
                return await self._charge_for_kept(asked, found, purchase)
            with found as turn:
                present = await self._translator.on_present_version(asked)
                if present.query_id == asked.query_id:
                    telemetry.release_looked_up("missed")
                    return await self._charge_for_new(present, purchase, turn)
                asked = present

    async def _kept_or_turn(self, query_id: str) -> KeptRelease | Turn:
        """Returns the release that is kept, or the turn to draw one; waits for those who draw it now."""
        while True:
            turn = self._drawing.turn(query_id)
            try:
                # With the turn: the task that had the last one may have kept it since it was looked up.
                found = await self._find(query_id)
            except BaseException:
                if turn is not None:
                    turn.end()
                raise
            if found is None and turn is not None:
                return turn
            if turn is not None:
                turn.end()
            if found is not None:
                return found.kept
            await self._drawing.wait(query_id)

    async def _charge_for_kept(
        self, asked: Translated, kept: KeptRelease, purchase: _Purchase
    ) -> PrivateResult:
        """Charges the account for a release that is kept."""
        async with self._reserving(asked.translation, purchase) as reservation:
            return await self._charge_for(reservation, asked, kept, purchase)

    async def _charge_for(
        self, reservation: Reservation, asked: Translated, kept: KeptRelease, purchase: _Purchase
    ) -> PrivateResult:
        await reservation.made()
        columns = expected_columns(asked.translation)
        shown = await self._shown.shown(columns, asked.translation, kept, asked.before)
        return await finished(self._settled(reservation, shown, purchase.paid))

    async def _charge_for_new(
        self, asked: Translated, purchase: _Purchase, turn: Turn | None = None
    ) -> PrivateResult:
        """Asks the engine, draws a release, and charges the account for it or for the one kept meanwhile."""
        asked = await self._translator.on_present_version(asked)
        query = engine_query(asked.translation, self._engine.engine.dialect)
        if query.requires:
            await self._engine.check(query)
        async with self._reserving(asked.translation, purchase) as reservation:
            drawing = _Drawing(asked, query, reservation, purchase.paid)
            try:
                return await self._draw_and_charge(drawing, turn)
            except BudgetNotFreeError:
                pass
            # Nobody may wait for the budget of another account, so somebody else may draw it meanwhile.
            if turn is not None:
                turn.end()
            await reservation.made()
            found = await self._kept_or_turn(asked.query_id)
            if isinstance(found, KeptRelease):
                return await self._charge_for(reservation, asked, found, purchase)
            with found as again:
                return await self._draw_and_charge(drawing, again)

    async def _draw_and_charge(self, drawing: _Drawing, turn: Turn | None) -> PrivateResult:
        """Draws in this turn, if there are turns; then held budget is not waited for."""
        asked, reservation = drawing.asked, drawing.reservation
        release = await self._new.drawn(asked, drawing.query, reservation, waits=turn is None)

        async def kept_and_charged() -> PrivateResult:
            async with reservation.before_it_lapses():
                shown = await self._kept(asked, release)
            if turn is not None:
                turn.end()
            return await self._settled(reservation, shown, drawing.paid)

        # A caller who leaves in between would leave behind a release that nobody has paid for.
        return await finished(kept_and_charged())

    @asynccontextmanager
    async def _reserving(
        self, translation: dp_pb2.TranslateQueryResponse, purchase: _Purchase
    ) -> AsyncIterator[Reservation]:
        deadline = min(purchase.latest, _now() + self._timeouts.budget_held)
        reserving = Reservation(self._budget, translation, deadline)
        async with _naming_the_largest_k(translation), reserving as reservation:
            yield reservation

    async def _kept(self, asked: Translated, release: dp_pb2.Release) -> ShownRelease:
        """Keeps a new release, and returns the one that is kept for the question: the first."""
        translation, columns = asked.translation, expected_columns(asked.translation)
        made = kept_release(release.kept, version_is_fixed=translation.version_is_fixed)
        if asked.before:
            # What it shows are all looks together.
            first = require_whole(await self._releases.keep(translation.query_id, made))
            return await self._shown.shown(columns, translation, first, asked.before)
        shown = await self._shown.of(translation, release, release.kept)
        if not asked.may_be_repeated:
            return shown
        first = await self._releases.keep(translation.query_id, made)
        # Of two names the first one that was kept counts, even if they are of the same release.
        if (first.is_whole and first.release_id == made.release_id) or first == made:
            return shown
        return await self._shown.shown(columns, translation, require_whole(first))

    async def _settled(
        self, reservation: Reservation, shown: ShownRelease, paid: Paid | None
    ) -> PrivateResult:
        """Charges the account; what calls it must let it end."""
        try:
            charge = await reservation.charge(shown.bill)
        except ReleaseNotRecorded:
            await self._raise_if_another_is_kept(shown.bill)
            raise
        await self._mark_paid(shown.bill.query_id, charge)
        result = shown.completed(charge)
        if paid is not None:
            paid(result)
        return result

    async def _raise_if_another_is_kept(self, refused: dp_pb2.Bill) -> None:
        """Looks up once more what the ledger refused: others may have kept the release that the account paid for."""
        found = await self._find(refused.query_id)
        if found is not None and found.kept.release_id != refused.release_id:
            raise _KeptMeanwhileError(found.kept) from None

    async def _mark_paid(self, query_id: str, charge: Charge) -> None:
        # It is paid for and will be shown. If the mark is lost, the ledger still knows that the account has paid.
        with suppress(ReleaseStoreFailed):
            if (payment := payment_of(charge.remaining)) is not None:
                await self._releases.mark_paid(query_id, self._budget.account, payment)


@asynccontextmanager
async def _naming_the_largest_k(translation: dp_pb2.TranslateQueryResponse) -> AsyncIterator[None]:
    """Adds to a refusal for an exhausted budget the largest k that it would hold."""
    try:
        yield
    except BudgetExhausted as refusal:
        fitting = largest_k(refusal.shortfalls, translation.parameters.k, translation.information_per_element)
        raise BudgetExhausted(refusal.shortfalls, fitting) from None


async def _at_once() -> None:
    """Admit everybody."""


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_everyones(error: BaseException) -> bool:
    """Whether a failure is that of the engine or of dp_service, and so of all who ask the same at the same time."""
    if isinstance(error, EngineError):
        return True
    return isinstance(error, ServiceUnavailable | ServiceFailed) and error.service == Service.DP
