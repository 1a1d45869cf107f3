"""The query pipeline: the states of a question, in the one order that keeps the promise; `QueryPipeline._ask` is it.

    1. asked: with a callback for the charge and a longest wait for budget
    2. translated: under the policy of now. What needs no release is shown, also a price that
       SQL asks for alone (EXPLAIN); else its release is looked up. Kept and paid for, by an account that is
       not closed: shown. Kept, not paid for: reserve, then charge. Not kept: go on
    3. reserved: the worst case
    4. read: the engine's answer, on the version of the data that was read before; the engine has confirmed that it was
       whole
    5. drawn: with noise
    6. kept, and chargeable: with everything of the result prepared that can fail
    7. charged: what the release cost
    8. shown: only now is there a result

Each state is a value that the steps to it make. Steps 3 and 4 run at the same time, unless the policy or the
client's `reserve_first` wants the reservation made before the engine is asked. If either part fails, both end. Noise is
drawn only once the reservation is made; it is made again unless it lasts for the steps that follow. Each step raises
rather than go on with less than it needs. An error in steps 3 and 4 cancels the reservation. Whatever ends the question
in steps 5 and 6 settles it with the full price before it lapses, unless that cannot depend on noise (`reservations`).
True counts exist only in steps 4 and 5, in local variables (`new_releases`).

A question of two looks runs a second query in step 5: dp_service names elements from the first answer, and the second
query counts these alone, on the same version of the data.

A question whose release is kept does not read the data: what changed there since must not show. So the engine is asked
once for a question on one version of the data, by one task at a time. A task whose budget others hold gives its turn
back, and an answer of the engine that comes meanwhile is dropped: no account waits for the budget of another one. Once
the reservation is made, it looks again at what is kept. An account's question is paid for by one task at a time, too:
the others are given what it has paid for.
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
from pinot_connector.budgets import Charge, Cost, cost_of, largest_k, require_within
from pinot_connector.channels import Timeouts
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engine_calls import EngineCalls
from pinot_connector.engine_queries import engine_query
from pinot_connector.engines.base import Engine, EngineQuery
from pinot_connector.errors import (
    BudgetExhausted,
    DataChanged,
    EngineError,
    GrisError,
    HomeUnavailable,
    PlanExpired,
    ReleaseNotRecorded,
    ServiceFailed,
    ServiceUnavailable,
)
from pinot_connector.new_releases import Drawn, NewReleases, Reserved
from pinot_connector.release_store.interface import Found, KeptRelease, ReleaseStore
from pinot_connector.release_store.retention import payment_of
from pinot_connector.reservations import Reservation, finished
from pinot_connector.results import PrivateResult, explanation_of, free_result, priced_result
from pinot_connector.rpc_errors import Service
from pinot_connector.shown_releases import Completed, ShownRelease, ShownReleases
from pinot_connector.single_flight import SingleFlight, Turn
from pinot_connector.translations import Translated, Translator, is_free

TRIES_ON_MOVING_DATA = 3
TRIES_TO_CHARGE = 2
PAUSE_SECONDS = 0.2

Paid: TypeAlias = Callable[[PrivateResult], None]
Admission: TypeAlias = Callable[[], Awaitable[None]]
# A question, and the account that pays for it; None: those who draw its release.
_Key: TypeAlias = tuple[str, tuple[str, ...] | None]


@dataclass(frozen=True)
class Asked:
    """A question, who hears of its charge, until when its caller waits for budget at the latest, and the confidence.

    `max_cost`: the most information units that its caller is willing to pay.
    """

    question: question_pb2.Question
    paid: Paid | None
    latest: float
    confidence: float
    max_cost: int | None

    def shown(self, charged: Charged) -> PrivateResult:
        """Returns the result; who is to hear of it does so even if the caller has left."""
        result = charged.completed(charged.charge)
        if self.paid is not None:
            self.paid(result)
        return result


@dataclass(frozen=True)
class Chargeable:
    """A release of a question whose reservation is made, with all of the result that can fail.

    It is in the release store if answers repeat.
    """

    reserved: Reserved
    shown: ShownRelease


@dataclass(frozen=True)
class Charged:
    """What was charged for a release, and the result that this completes."""

    completed: Completed
    charge: Charge


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
        self._admission: Admission = _admitted_at_once
        self._releases = releases
        self._confidence = confidence
        self._views = ShownReleases(noise)
        self._new = NewReleases(noise, self._engine, reserve_first=reserve_first)
        self._translator = Translator(noise, engine, self._engine.version, timeouts.data_version)
        # One task at a time pays for an account's question, and one has the engine asked for a question.
        self._turns: SingleFlight[_Key] = SingleFlight(_is_everyones)
        self._running: set[asyncio.Task[Any]] = set()

    def paid_by(self, budget: BudgetServiceClient, admission: Admission | None = None) -> QueryPipeline:
        """Returns a pipeline that another account pays for; everything else, including `close`, is shared.

        It awaits `admission` before a question that is not given from what is kept goes to ledger or engine.
        """
        other = copy.copy(self)
        other._budget = budget
        other._admission = admission or _admitted_at_once
        return other

    async def ask(
        self,
        question: question_pb2.Question,
        paid: Paid | None = None,
        wait_seconds: float | None = None,
        confidence: float | None = None,
        max_cost: int | None = None,
    ) -> PrivateResult:
        """Returns the paid result of a question.

        If data change meanwhile, or the plan expires, the question starts again, at most three times. Once a release is
        being kept or charged, both are finished even if the caller is cancelled.

        Args:
            question: what to ask.
            paid: called with the result once it is charged, even if the caller has been cancelled by then.
            wait_seconds: the longest wait for budget that other questions hold, if it is less than the time-out.
            confidence: that of the intervals; None: the pipeline's own.
            max_cost: the most information units that it may cost; None: whatever the budget holds.

        Raises:
            GrisError: there is no result; see `errors` for what each kind means.
        """
        with self._registered(), telemetry.question():
            latest = math.inf if wait_seconds is None else _now() + wait_seconds
            asked = Asked(question, paid, latest, confidence or self._confidence, max_cost)
            for _ in range(TRIES_ON_MOVING_DATA - 1):
                with suppress(DataChanged, PlanExpired):
                    return await self._ask(asked)
                self._translator.forget_versions()
                # A replacement of data takes a while to finish.
                await asyncio.sleep(PAUSE_SECONDS)
            return await self._ask(asked)

    async def audience_rows(self, question: question_pb2.Question) -> str | None:
        """Returns the name of the rows that a question's audience is restricted to; None: it may not ask it."""
        return await self._translator.audience_rows(question)

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
        self._views.close()

    @contextmanager
    def _registered(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"  # noqa: S101 - for the type checker
        self._running.add(task)
        try:
            yield
        finally:
            self._running.discard(task)

    async def _ask(self, asked: Asked) -> PrivateResult:
        translated = await self._translator.translated(asked.question)
        if is_free(translated.translation):
            return await self._free(translated.translation, asked.confidence)
        with Turn(self._turns) as paying, Turn(self._turns) as drawing:
            if (paid_before := await self._paid_before(translated, asked.confidence, paying)) is not None:
                return asked.shown(paid_before)
            require_within(asked.max_cost, cost_of(translated.translation.worst_case_cost))
            # What is given needs no admission: it has been returned by now.
            await self._admission()
            translated, found = await self._kept_or_query(translated, drawing)
            for _ in range(TRIES_TO_CHARGE):
                async with self._reserved(translated, asked) as reserved:
                    drawn = await self._drawn(reserved, found, drawing)
                    # A caller who leaves in between would leave behind a release that nobody has paid for.
                    outcome = await finished(self._kept_charged_and_shown(drawn, asked, drawing))
                if isinstance(outcome, PrivateResult):
                    return outcome
                # Others have kept another release meanwhile, and that is the one to charge.
                found = outcome
        raise ReleaseNotRecorded

    async def _free(self, translation: dp_pb2.TranslateQueryResponse, confidence: float) -> PrivateResult:
        """Returns what needs no release; of a price the ledger says which part of the budget it is."""
        if translation.HasField("free"):
            return free_result(translation.free)
        await self._admission()
        price = translation.price
        explanation = explanation_of(price.estimate, price.engine_queries)
        return priced_result(explanation.of_budget(await self._budget.remaining()), confidence)

    async def _paid_before(
        self, translated: Translated, confidence: float, paying: Turn[_Key]
    ) -> Charged | None:
        """Returns what the account has paid for; None: nothing, and this task has the turn to pay for it."""
        if not translated.answers_repeat:
            return None
        key = translated.query_id, self._budget.account
        return await paying.found(key, lambda: self._given(translated, confidence))

    async def _given(self, translated: Translated, confidence: float) -> Charged | None:
        """Returns what the account has paid for, in this window or an earlier one; the engine is not asked.

        The account has the release already, so nothing more is paid. The ledger is asked at most once a minute whether
        the account is closed. If it is, there is nothing here, so that the question goes to the ledger and is refused
        there. So it is where nobody can say: a region without its home knows what was paid for there.
        """
        found = await self._find(translated.query_id)
        try:
            if found is None or found.payment is None or await self._budget.is_closed():
                return None
        except HomeUnavailable:
            return None
        completed = await self._views.completed(translated.translation, found.kept, confidence)
        telemetry.release_looked_up("given")
        unit_id = found.kept.content.bill.cost.unit_id
        return Charged(completed, Charge(Cost(0, 0, unit_id), ()))

    async def _find(self, query_id: str) -> Found | None:
        return await self._releases.find(query_id, self._budget.account)

    async def _find_kept(self, translated: Translated, drawing: Turn[_Key]) -> KeptRelease | None:
        """Returns the release that is kept; None: it is this task's turn to draw one, if it is to be kept at all."""
        if not translated.answers_repeat:
            # The policy may have said otherwise when the turn began.
            drawing.end()
            return None
        found = await drawing.found((translated.query_id, None), lambda: self._find(translated.query_id))
        return None if found is None else found.kept

    async def _kept_or_query(
        self, translated: Translated, drawing: Turn[_Key]
    ) -> tuple[Translated, KeptRelease | EngineQuery]:
        """Returns the release that is kept, or the query to draw one from on the engine's present version."""
        while (kept := await self._find_kept(translated, drawing)) is None:
            present = await self._translator.on_present_version(translated)
            if present.query_id == translated.query_id:
                return present, await self._query(present)
            translated = present
        telemetry.release_looked_up("charged")
        return translated, kept

    async def _query(self, present: Translated) -> EngineQuery:
        if present.answers_repeat:
            telemetry.release_looked_up("missed")
        query = engine_query(present.translation, self._engine.engine.dialect)
        if query.requires:
            await self._engine.check(query)
        return query

    @asynccontextmanager
    async def _reserved(self, translated: Translated, asked: Asked) -> AsyncIterator[Reserved]:
        """Reserves the worst case; a refusal for an exhausted budget says the largest k that it would hold."""
        translation = translated.translation
        # The policy may have another price for it since it was looked up.
        require_within(asked.max_cost, cost_of(translation.worst_case_cost))
        deadline = min(asked.latest, _now() + self._timeouts.budget_held)
        try:
            async with Reservation(self._budget, translation, deadline) as reservation:
                yield Reserved(translated, reservation, asked.confidence)
        except BudgetExhausted as refusal:
            fitting = largest_k(
                refusal.shortfalls, translation.parameters.k, translation.information_per_element
            )
            raise BudgetExhausted(refusal.shortfalls, fitting) from None

    async def _drawn(
        self, reserved: Reserved, found: KeptRelease | EngineQuery, drawing: Turn[_Key]
    ) -> Drawn | Chargeable:
        """Returns a release drawn from what is read, or the one that is kept."""
        while isinstance(found, EngineQuery):
            if (read := await self._new.read(reserved, found)) is not None:
                return await self._new.drawn(read)
            # Nobody may wait for the budget of another account, so somebody else may draw it meanwhile.
            drawing.end()
            await reserved.reservation.made()
            found = await self._find_kept(reserved.translated, drawing) or found
        await reserved.reservation.made()
        return Chargeable(reserved, await self._shown(reserved, found))

    async def _kept_charged_and_shown(
        self, release: Drawn | Chargeable, asked: Asked, drawing: Turn[_Key]
    ) -> PrivateResult | KeptRelease:
        """Returns the result, or the release to charge instead; what calls it must let it end."""
        chargeable = release if isinstance(release, Chargeable) else await self._chargeable(release)
        # Who waits for the release need not wait until this account has paid for it.
        drawing.end()
        charged = await self._charged(chargeable)
        return asked.shown(charged) if isinstance(charged, Charged) else charged

    async def _chargeable(self, drawn: Drawn) -> Chargeable:
        async with drawn.reserved.reservation.before_it_lapses():
            return Chargeable(drawn.reserved, await self._first_kept(drawn))

    async def _first_kept(self, drawn: Drawn) -> ShownRelease:
        """Keeps a new release, and returns the one that is kept for the question: the first."""
        asked, release = drawn.reserved.translated, drawn.release
        made = KeptRelease(release.kept, asked.translation.version_is_fixed)
        shown = await self._views.of(asked.translation, release, release.kept)
        if not asked.answers_repeat:
            return shown
        first = await self._releases.keep(asked.query_id, made)
        return shown if first.release_id == made.release_id else await self._shown(drawn.reserved, first)

    async def _shown(self, reserved: Reserved, kept: KeptRelease) -> ShownRelease:
        with reserved.reservation.from_the_draw_on():
            return await self._views.shown(reserved.translated.translation, kept, reserved.confidence)

    async def _charged(self, release: Chargeable) -> Charged | KeptRelease:
        """Charges the account, or returns the release that it has paid for, if others have kept that one meanwhile."""
        bill = release.shown.bill
        try:
            charge = await release.reserved.reservation.charge(bill)
        except ReleaseNotRecorded:
            found = await self._find(bill.query_id)
            if found is None or found.kept.release_id == bill.release_id:
                raise
            return found.kept
        # It is paid for and will be shown. If the mark is lost, the ledger still knows that the account has paid.
        with suppress(GrisError):
            if (payment := payment_of(charge.remaining)) is not None:
                await self._releases.mark_paid(bill.query_id, self._budget.account, payment)
        return Charged(release.shown.completed, charge)


async def _admitted_at_once() -> None:
    """Admit everybody."""


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_everyones(error: BaseException) -> bool:
    """Whether a failure is that of the engine or of dp_service, and so of all who ask the same at the same time."""
    if isinstance(error, EngineError):
        return True
    return isinstance(error, ServiceUnavailable | ServiceFailed) and error.service == Service.DP
