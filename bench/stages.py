"""The steps of a question with a clock on each part."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeVar

from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import cost_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector import Timeouts
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Charge
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engines.base import Engine, EngineAnswer, EngineQuery, ExpectedColumn
from pinot_connector.query_pipeline import QueryPipeline
from pinot_connector.results import PrivateResult
from tests.support.forgetful_store import ForgetfulStore

CONFIDENCE = 0.95
# Many callers keep a small machine busy; a busy ledger is not a dead one.
_TIMEOUTS = Timeouts(budget_silence=10)

_Value = TypeVar("_Value")


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def note(self, stage: str, started: float) -> None:
        self.seconds[stage].append(time.perf_counter() - started)


class _TimedNoise(DpServiceClient):
    def __init__(self, address: str, clock: _Clock) -> None:
        super().__init__(address, _TIMEOUTS)
        self._clock = clock

    async def translate(
        self,
        question: question_pb2.Question,
        data_version: str,
        dialect: str,
        before: dp_pb2.LooksBefore | None = None,
    ) -> dp_pb2.TranslateQueryResponse:
        started = time.perf_counter()
        response = await super().translate(question, data_version, dialect, before)
        self._clock.note("translate", started)
        return response

    async def add_noise(
        self, header: dp_pb2.ReleaseHeader, columns: tuple[ExpectedColumn, ...], answer: EngineAnswer
    ) -> dp_pb2.Release | dp_pb2.NextLook:
        started = time.perf_counter()
        release = await super().add_noise(header, columns, answer)
        self._clock.note("noise", started)
        return release


class _TimedBudget(BudgetServiceClient):
    def __init__(self, address: str, account: Sequence[str], clock: _Clock) -> None:
        super().__init__(address, account, _TIMEOUTS)
        self._clock = clock

    async def reserve(
        self, worst_case: cost_pb2.Cost, query_id: str, *, request_id: str = "", queries: int = 1
    ) -> budget_pb2.ReserveBudgetResponse:
        started = time.perf_counter()
        response = await super().reserve(worst_case, query_id, request_id=request_id, queries=queries)
        self._clock.note("reserve (beside the engine)", started)
        return response

    async def charge(
        self,
        cost: cost_pb2.Cost,
        *,
        reservation_id: str,
        release_id: str,
        query_id: str,
        charge_ticket: bytes,
        policy_statement: str,
    ) -> Charge:
        started = time.perf_counter()
        charge = await super().charge(
            cost,
            reservation_id=reservation_id,
            release_id=release_id,
            query_id=query_id,
            charge_ticket=charge_ticket,
            policy_statement=policy_statement,
        )
        self._clock.note("charge", started)
        return charge


class _TimedEngine:
    def __init__(self, engine: Engine, clock: _Clock) -> None:
        self._engine = engine
        self._clock = clock
        self.dialect = engine.dialect

    def data_version(self, table: str) -> str:
        return self._timed("data version", lambda: self._engine.data_version(table))

    def check(self, query: EngineQuery) -> None:
        self._engine.check(query)

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        return self._timed("engine", lambda: self._engine.run(query, data_version))

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        self._timed("confirm (beside the noise)", lambda: self._engine.confirm(query, answer))

    def close(self) -> None:
        """The engine stays its owner's."""

    def _timed(self, stage: str, call: Callable[[], _Value]) -> _Value:
        started = time.perf_counter()
        value = call()
        self._clock.note(stage, started)
        return value


class TimedPipeline:
    """Asks as a client does, and tells how long each part took."""

    def __init__(self, dp: str, budget: str, engine: Engine) -> None:
        self._clock = _Clock()
        self._noise = _TimedNoise(dp, self._clock)
        self._budget = _TimedBudget(budget, ("bench", "analyst"), self._clock)
        timed = _TimedEngine(engine, self._clock)
        self._pipeline = QueryPipeline(
            self._noise, self._budget, timed, _TIMEOUTS, confidence=CONFIDENCE, releases=ForgetfulStore()
        )

    async def ask(self, question: question_pb2.Question) -> PrivateResult:
        """Returns the paid result of a question."""
        return await self._pipeline.ask(question)

    async def rendered(self, question: question_pb2.Question, dialect: str) -> str:
        """Returns the query that an engine is asked for a question."""
        estimate = await self._noise.estimate(question)
        return next(query.sql for query in estimate.engine_queries if query.dialect == dialect)

    def forget(self) -> None:
        """Forgets what was measured so far."""
        self._clock.seconds.clear()

    def medians_ms(self) -> dict[str, float]:
        """Returns the median of each part in milliseconds."""
        return {stage: statistics.median(each) * 1e3 for stage, each in self._clock.seconds.items()}

    async def close(self) -> None:
        """Closes the connections."""
        await self._pipeline.close()
        await self._noise.close()
        await self._budget.close()
