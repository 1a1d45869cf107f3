"""The query pipeline: the steps from a question to a result, in the one order that keeps the promise.

    1. have the policy accept the table, read the engine's version of its data, and have the question translated for it
    2. reserve the worst case, and run the query on that version
    3. add noise, prepare everything of the result that can fail, and have the engine confirm that the answer was whole
    4. charge what the release cost; only then is there a result

The two parts of step 2 run at the same time, unless the policy or the client's `reserve_first` wants the reservation
made before the engine is asked; so do noise and confirmation. If either part fails, both end, and noise is drawn only
once the reservation is made. Each step raises rather than go on with less than it needs, and an error after step 1
cancels the reservation. True counts exist only in steps 2 and 3, in local variables.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias, TypeVar

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector import telemetry
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import largest_k
from pinot_connector.channels import Timeouts
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engines.base import (
    Element,
    Engine,
    EngineAnswer,
    EngineQuery,
    ExpectedColumn,
    Feature,
    ReadColumn,
)
from pinot_connector.errors import (
    BudgetExhausted,
    DataChanged,
    EngineRefused,
    EngineUnavailable,
    IntegrityError,
    PlanExpired,
)
from pinot_connector.histograms import checked
from pinot_connector.releases import Noisy, verify
from pinot_connector.reservations import Reservation, finished
from pinot_connector.results import COLUMN_TYPES, TIME_UNITS, PrivateResult, known, prepared

TRIES_ON_MOVING_DATA = 3
PAUSE_SECONDS = 0.2
MAX_ENGINE_CALLS = 32
MAX_TEXTS = 256

# dp_service needs a version to report which table a question is about and whether it may be asked.
NO_VERSION_YET = "none"

_FEATURES = {dp_pb2.ENGINE_FEATURE_PINOT_MULTISTAGE: Feature.PINOT_MULTISTAGE}
Paid: TypeAlias = Callable[[PrivateResult], None]
Turn: TypeAlias = Callable[[], Awaitable[None]]
_Answer = TypeVar("_Answer")
_Other = TypeVar("_Other")


class QueryPipeline:
    """Answers questions, any number at once, for one account on one engine."""

    def __init__(
        self,
        noise: DpServiceClient,
        budget: BudgetServiceClient,
        engine: Engine,
        timeouts: Timeouts,
        confidence: float,
        *,
        reserve_first: bool = False,
    ) -> None:
        self._noise = noise
        self._budget = budget
        self._engine = engine
        self._timeouts = timeouts
        self._confidence = confidence
        self._reserve_first = reserve_first
        self._turn: Turn = _at_once
        # Tables that the policy lists; the engine is asked about no others.
        self._accepted: set[str] = set()
        self._tables_of_texts: dict[str, str] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._threads = ThreadPoolExecutor(MAX_ENGINE_CALLS, "gris-engine")

    def paid_by(self, budget: BudgetServiceClient, turn: Turn | None = None) -> QueryPipeline:
        """Returns a pipeline that another account pays for; everything else, including `close`, is shared.

        It awaits `turn` before it asks ledger or engine.
        """
        other = copy.copy(self)
        other._budget = budget
        other._turn = turn or _at_once
        return other

    async def ask(self, question: question_pb2.Question, paid: Paid | None = None) -> PrivateResult:
        """Returns the paid result of a question.

        If data change meanwhile, or the plan expires, the question starts again, at most three times. A charge that has
        begun is finished even if the caller is cancelled.

        Args:
            question: what to ask.
            paid: called with the result once it is charged, even if the caller has been cancelled by then.

        Raises:
            GrisError: there is no result; see `errors` for what each kind means.
        """
        with self._registered(), telemetry.question():
            return await self._ask(question, paid)

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
        self._threads.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def _registered(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"  # noqa: S101 - for the type checker
        self._running.add(task)
        try:
            yield
        finally:
            self._running.discard(task)

    async def _ask(self, question: question_pb2.Question, paid: Paid | None) -> PrivateResult:
        for _ in range(TRIES_ON_MOVING_DATA - 1):
            try:
                return await self._ask_once(question, paid)
            except (DataChanged, PlanExpired):
                # A replacement of data takes a while to finish.
                await asyncio.sleep(PAUSE_SECONDS)
        return await self._ask_once(question, paid)

    async def _ask_once(self, question: question_pb2.Question, paid: Paid | None) -> PrivateResult:
        translation, data_version = await self._translate(question)
        query = _engine_query(translation, self._engine.dialect)
        # What was answered without ledger and engine has returned by now: it does not wait for a turn.
        await self._turn()
        if query.requires:
            await self._on_engine("check", lambda: self._engine.check(query))
        async with _naming_the_largest_k(translation), Reservation(self._budget, translation) as reservation:
            if translation.reserve_first or self._reserve_first:
                await reservation.made()
            running = self._on_engine("run", lambda: self._engine.run(query, data_version))
            answer, _ = await _together(running, reservation.made())
            answer = checked(query, answer)
            confirming = self._on_engine("confirm", lambda: self._engine.confirm(query, answer))
            noisy, _ = await _together(self._add_noise(translation, query, answer), confirming)
            completed = prepared(
                query.columns, translation.count_alias or None, noisy, translation.requested_k or None
            )

            async def settled() -> PrivateResult:
                result = completed(await reservation.charge(noisy.release))
                if paid is not None:
                    paid(result)
                return result

            return await finished(settled())

    async def _add_noise(
        self, translation: dp_pb2.TranslateQueryResponse, query: EngineQuery, answer: EngineAnswer
    ) -> Noisy:
        header = dp_pb2.ReleaseHeader(
            plan=translation.plan, data_version=answer.data_version, confidence=self._confidence
        )
        noisy = await self._noise.add_noise(header, query.columns, answer)
        verify(noisy, translation)
        return noisy

    async def _translate(self, question: question_pb2.Question) -> tuple[dp_pb2.TranslateQueryResponse, str]:
        table = await self._accepted_table(question)
        data_version = await self._on_engine("version", lambda: self._engine.data_version(table))
        translation = await self._noise.translate(question, data_version, self._engine.dialect)
        if translation.table != table:
            raise IntegrityError("dp_service translated a question about another table")
        return translation, data_version

    async def _accepted_table(self, question: question_pb2.Question) -> str:
        """Returns the table of a question once the policy has accepted it.

        Each table, and each text of SQL, is looked up only once: only dp_service knows which table a text is about.
        """
        named = question.structured.table or self._tables_of_texts.get(question.sql, "")
        if named in self._accepted:
            return named
        table = (await self._noise.translate(question, NO_VERSION_YET, self._engine.dialect)).table
        if named not in ("", table):
            raise IntegrityError("dp_service translated a question about another table")
        self._accepted.add(table)
        if question.sql:
            self._remember_text(question.sql, table)
        return table

    def _remember_text(self, text: str, table: str) -> None:
        if len(self._tables_of_texts) >= MAX_TEXTS:
            del self._tables_of_texts[next(iter(self._tables_of_texts))]
        self._tables_of_texts[text] = table

    async def _on_engine(self, step: str, call: Callable[[], _Answer]) -> _Answer:
        running = asyncio.get_running_loop().run_in_executor(self._threads, call)
        with telemetry.engine_call(self._engine.dialect, step):
            try:
                # Not asyncio.wait_for: before Python 3.12 it forgets a cancellation that comes with the answer.
                async with asyncio.timeout(self._timeouts.engine):
                    return await running
            except TimeoutError:
                raise EngineUnavailable("the engine took too long") from None


@asynccontextmanager
async def _naming_the_largest_k(translation: dp_pb2.TranslateQueryResponse) -> AsyncIterator[None]:
    """Adds to a refusal for an exhausted budget the largest k that it would hold."""
    try:
        yield
    except BudgetExhausted as refusal:
        fitting = largest_k(refusal.shortfalls, translation.parameters.k, translation.information_per_element)
        raise BudgetExhausted(refusal.shortfalls, fitting) from None


async def _at_once() -> None:
    """Nobody waits for a turn."""


async def _together(one: Awaitable[_Answer], other: Awaitable[_Other]) -> tuple[_Answer, _Other]:
    """Waits for both; the first failure, or a cancellation, ends both."""
    tasks = asyncio.ensure_future(one), asyncio.ensure_future(other)
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _engine_query(translation: dp_pb2.TranslateQueryResponse, dialect: str) -> EngineQuery:
    found = [query for query in translation.engine_queries if query.dialect == dialect]
    if len(found) != 1:
        raise EngineRefused("this engine cannot answer the question")
    columns = tuple(_expected(column) for column in translation.columns)
    requires = frozenset(_required(feature) for feature in found[0].requires)
    reads = tuple(_read(column) for column in translation.reads)
    if not reads:
        raise IntegrityError(
            "dp_service does not say which columns a query names; it is older than this connector"
        )
    return EngineQuery(translation.table, found[0].sql, columns, translation.row_limit, requires, reads)


def _read(column: dp_pb2.ReadColumn) -> ReadColumn:
    kind = None
    if column.type != histogram_pb2.COLUMN_TYPE_UNSPECIFIED:
        kind = known(COLUMN_TYPES, column.type)
    numbers = (column.smallest, column.largest) if column.HasField("smallest") else None
    unit = known(TIME_UNITS, column.time_unit) if column.time_unit else None
    return ReadColumn(column.name, kind, _null_value(column.null_value), numbers, unit)


def _null_value(message: question_pb2.Value) -> Element | None:
    named = message.WhichOneof("kind")
    if named == "timestamp":
        return message.timestamp.ToMicroseconds()
    return None if named is None else getattr(message, named)


def _required(feature: dp_pb2.EngineFeature) -> Feature:
    if feature not in _FEATURES:
        raise EngineRefused("the query requires something of the engine that this version does not know")
    return _FEATURES[feature]


def _expected(column: histogram_pb2.Column) -> ExpectedColumn:
    return ExpectedColumn(column.name, known(COLUMN_TYPES, column.type))
