"""The RPCs of gris.dp.v1.DpService: translate messages, call the rooms below, map errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc, question_pb2

from dp_service.queries.policy import Policy
from dp_service.queries.render import render, required_feature
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.keys import KeySet
from dp_service.releases.mechanism import count_noise_scale, mechanism_of
from dp_service.releases.parameters import parameters_of
from dp_service.releases.plan import PLAN_TTL_SECONDS, sign_plan, signing_key, verify_plan
from dp_service.releases.releasing import Released, release
from dp_service.releases.translation import FRESH_BYTES, IssueContext, plan_for
from dp_service.server import responses
from dp_service.server.admission import Admission
from dp_service.server.catalog import catalog_page
from dp_service.server.errors import RequestError, is_foreseen, status_of
from dp_service.server.explanations import explanation
from dp_service.server.guarantees import describe_guarantee, solve_parameters
from dp_service.server.messages import (
    cost_message,
    engine_features,
    expected_columns,
    parameters_message,
    read_column,
    structured_question,
)
from dp_service.server.served_policy import ServedPolicy
from dp_service.server.stream_assembler import StreamAssembler, begin, drain, receive_stream
from gris_serving.internal_errors import log_internal_error

DATA_VERSION_CHARACTERS = 256
SHORT_ROWS = 2000
SHORT_PLAN_BYTES = 2048
"""A histogram and a plan that are no larger take some milliseconds, less than a thread's turn would."""

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
# The context says nothing of messages here: every method has its own.
Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True)
class Environment:
    """What the service takes from the outside: the time in seconds since 1970 (UTC) and fresh random bytes."""

    clock: Callable[[], float]
    entropy: Callable[[int], bytes]

    def now(self) -> int:
        """Return the time in whole seconds."""
        return int(self.clock())


@dataclass(frozen=True)
class _Asked:
    """A question, how the policy resolves it, and what that policy has published."""

    query: HistogramQuery
    resolution: Resolution
    policy_statement: str


class DpServicer(dp_pb2_grpc.DpServiceServicer):
    """Stateless: everything that a call needs is in its request, the policy and the keys.

    A call reads the policy once, for it may be replaced at any moment. Plans are made under the current key; a plan is
    priced and released under the key that sealed it.
    """

    def __init__(
        self, served: ServedPolicy, keys: KeySet, environment: Environment, admission: Admission | None = None
    ) -> None:
        self._served = served
        self._keys = keys
        self._environment = environment
        self._admission = admission or Admission()

    async def TranslateQuery(  # noqa: N802 - the contract's name
        self, request: dp_pb2.TranslateQueryRequest, context: Context
    ) -> dp_pb2.TranslateQueryResponse:
        """Turn a question into a query for an engine and a plan."""
        return await self._in_thread(context, lambda: self._translate(request))

    async def EstimateCost(  # noqa: N802 - the contract's name
        self, request: dp_pb2.EstimateCostRequest, context: Context
    ) -> dp_pb2.EstimateCostResponse:
        """Tell the worst-case price of a question."""
        return await self._in_thread(context, lambda: self._estimate(request))

    async def ComputeCost(  # noqa: N802 - the contract's name
        self, request: dp_pb2.ComputeCostRequest, context: Context
    ) -> dp_pb2.ComputeCostResponse:
        """Tell the price of an outcome."""
        return await self._in_thread(context, lambda: self._compute_cost(request))

    async def DescribeGuarantee(  # noqa: N802 - the contract's name
        self, request: dp_pb2.DescribeGuaranteeRequest, context: Context
    ) -> dp_pb2.DescribeGuaranteeResponse:
        """Tell what a budget is worth."""
        return await self._in_thread(
            context, lambda: describe_guarantee(request, self._served.content.policy)
        )

    async def SolveParameters(  # noqa: N802 - the contract's name
        self, request: dp_pb2.SolveParametersRequest, context: Context
    ) -> dp_pb2.SolveParametersResponse:
        """Tell which currency or budget is worth a guarantee."""
        return await self._in_thread(context, lambda: solve_parameters(request, self._served.content.policy))

    async def AddNoiseUnary(  # noqa: N802 - the contract's name
        self, request: dp_pb2.AddNoiseUnaryRequest, context: Context
    ) -> dp_pb2.AddNoiseUnaryResponse:
        """Release a small histogram."""
        if _is_short(request):
            return await self._at_once(context, lambda: self._add_noise_unary(request))
        return await self._in_thread(context, lambda: self._add_noise_unary(request))

    async def AddNoise(  # noqa: N802 - the contract's name
        self, request_iterator: AsyncIterator[dp_pb2.AddNoiseRequest], context: Context
    ) -> AsyncIterator[dp_pb2.AddNoiseResponse]:
        """Release a histogram that comes in chunks."""
        try:
            with self._admission.entered():
                assembler = await receive_stream(request_iterator, self._keys, now=self._environment.now())
                released = await asyncio.to_thread(self._release, assembler)
        except Exception as error:
            await drain(request_iterator)
            await _abort(context, error)
        for chunk in responses.element_chunks(assembler.plan, released):
            yield dp_pb2.AddNoiseResponse(chunk=chunk)
        end = responses.release_message(assembler.plan, released, assembler.confidence, assembler.key)
        yield dp_pb2.AddNoiseResponse(end=end)

    async def GetCatalog(  # noqa: N802 - the contract's name
        self, request: dp_pb2.GetCatalogRequest, context: Context
    ) -> dp_pb2.GetCatalogResponse:
        """Tell what may be asked, one page of it."""
        content, now = self._served.content, self._environment.now()
        return await self._in_thread(context, lambda: catalog_page(request, content, now=now))

    def _asked(self, question: question_pb2.Question) -> _Asked:
        # One reading of the policy for all of it: it may be replaced at any moment.
        policy = self._served.content.policy
        query = _query(question, policy)
        return _Asked(query, resolve(query, policy, now=self._environment.now()), policy.statement)

    def _translate(self, request: dp_pb2.TranslateQueryRequest) -> dp_pb2.TranslateQueryResponse:
        if not 1 <= len(request.data_version) <= DATA_VERSION_CHARACTERS:
            raise RequestError("data_version", f"expected 1 to {DATA_VERSION_CHARACTERS} characters")
        asked = self._asked(request.question)
        resolution = asked.resolution
        issue_context = IssueContext(self._environment.now(), self._environment.entropy(FRESH_BYTES))
        plan = plan_for(
            resolution,
            request.data_version,
            self._keys.current,
            issue_context,
            policy_statement=asked.policy_statement,
        )
        worst = mechanism_of(plan.parameters).worst_case_cost()
        response = dp_pb2.TranslateQueryResponse(
            plan=sign_plan(plan, self._keys.current),
            engine_queries=_engine_queries(resolution, _dialects(request.dialect)),
            table=plan.table,
            columns=expected_columns(plan.columns),
            row_limit=plan.row_limit,
            worst_case_cost=cost_message(worst, plan.unit_id),
            query_id=plan.query_id,
            parameters=parameters_message(plan.parameters, count_noise_scale(plan.parameters)),
            reserve_first=resolution.reserve_first,
            count_alias=asked.query.count_alias,
            reads=map(read_column, resolution.reads),
        )
        response.plan_expires_at.FromSeconds(plan.issued_at + PLAN_TTL_SECONDS)
        return response

    def _estimate(self, request: dp_pb2.EstimateCostRequest) -> dp_pb2.EstimateCostResponse:
        resolution = self._asked(request.question).resolution
        parameters = parameters_of(resolution)
        worst = mechanism_of(parameters).worst_case_cost()
        message = parameters_message(parameters, count_noise_scale(parameters))
        return dp_pb2.EstimateCostResponse(
            worst_case_cost=cost_message(worst, resolution.currency.unit_id),
            parameters=message,
            explanation=explanation(resolution, message, worst),
            engine_queries=_engine_queries(resolution, DIALECTS),
        )

    def _compute_cost(self, request: dp_pb2.ComputeCostRequest) -> dp_pb2.ComputeCostResponse:
        key = signing_key(request.plan, self._keys)
        plan = verify_plan(request.plan, key, now=self._environment.now())
        try:
            cost = mechanism_of(plan.parameters).cost(request.released, request.ended_in_bottom)
        except ValueError as error:
            raise RequestError("released", str(error)) from error
        return dp_pb2.ComputeCostResponse(cost=cost_message(cost, plan.unit_id))

    def _add_noise_unary(self, request: dp_pb2.AddNoiseUnaryRequest) -> dp_pb2.AddNoiseUnaryResponse:
        assembler = begin(request.header, self._keys, now=self._environment.now())
        if request.histogram.columns or request.histogram.counts:
            assembler.add(request.histogram)
        released = self._release(assembler)
        return dp_pb2.AddNoiseUnaryResponse(
            elements=responses.all_elements(assembler.plan, released),
            release=responses.release_message(assembler.plan, released, assembler.confidence, assembler.key),
        )

    async def _at_once(self, context: Context, work: Callable[[], _Answer]) -> _Answer:
        """Do short work on the event loop: handing it to a thread and back would take a good part of its time again."""
        try:
            with self._admission.entered():
                return work()
        except Exception as error:
            await _abort(context, error)

    async def _in_thread(self, context: Context, work: Callable[[], _Answer]) -> _Answer:
        """Do the work off the event loop, which must stay free to answer health checks."""
        try:
            with self._admission.entered():
                return await asyncio.to_thread(work)
        except Exception as error:
            await _abort(context, error)

    def _release(self, assembler: StreamAssembler) -> Released:
        histogram = assembler.histogram()
        return release(assembler.plan, histogram, assembler.key, confidence=assembler.confidence)


def _query(question: question_pb2.Question, policy: Policy) -> HistogramQuery:
    match question.WhichOneof("form"):
        case "structured":
            return structured_question(question.structured)
        case "sql":
            return parse_sql(question.sql, policy)
        case _:
            raise RequestError("question", "expected one of structured, sql")


def _dialects(named: str) -> Iterable[str]:
    if named and named not in DIALECTS:
        raise RequestError("dialect", f"expected one of {', '.join(DIALECTS)}, or nothing for all of them")
    return [named] if named else DIALECTS


def _engine_queries(resolution: Resolution, dialects: Iterable[str]) -> list[dp_pb2.EngineQuery]:
    return [
        dp_pb2.EngineQuery(
            dialect=dialect,
            sql=render(resolution, dialect),
            requires=engine_features(required_feature(resolution, dialect)),
        )
        for dialect in dialects
    ]


def _is_short(request: dp_pb2.AddNoiseUnaryRequest) -> bool:
    """Tell whether a release takes no longer than health checks may wait: by its rows and its domain, by no count."""
    is_short_plan = len(request.header.plan) <= SHORT_PLAN_BYTES
    return is_short_plan and len(request.histogram.counts) <= SHORT_ROWS


async def _abort(context: Context, error: Exception) -> NoReturn:
    if not is_foreseen(error):
        log_internal_error(_log, "The service failed.", error)
    await context.abort_with_status(status_of(error))
    raise AssertionError("abort_with_status always raises")
