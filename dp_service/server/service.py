"""The RPCs of gris.dp.v1.DpService: they convert messages, call the packages below, and map errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc, question_pb2

from dp_service.queries.answer_columns import CELL_COLUMN
from dp_service.queries.read_columns import bins_read, quantiles_read, values_read
from dp_service.queries.render.dialects import DIALECTS
from dp_service.releases.keys import KeySet, NoiseKey
from dp_service.releases.kinds import kind_of
from dp_service.releases.looks import is_first_look, names_of, second_plan, second_question, without_rows
from dp_service.releases.plan import PLAN_TTL_SECONDS, Plan, sign_plan
from dp_service.releases.release_ids import view_id
from dp_service.releases.releasing import Released, from_the_draw_on, release
from dp_service.releases.translation import FRESH_BYTES, IssueContext, plan_for
from dp_service.releases.usefulness import require_useful
from dp_service.server import responses
from dp_service.server.admission import Admission
from dp_service.server.catalog import catalog_page
from dp_service.server.errors import RequestError, is_expected_error, status_of
from dp_service.server.free_answers import free_answer
from dp_service.server.guarantees import describe_guarantee
from dp_service.server.kept_assembler import begin_showing
from dp_service.server.listing_messages import column_aliases
from dp_service.server.messages import (
    bounded_copy,
    closed_stream,
    cost_message,
    expected_columns,
    read_column,
    read_value,
)
from dp_service.server.parameter_messages import parameters_message
from dp_service.server.pricing import engine_queries, priced
from dp_service.server.question_cache import CachedQuestion, QuestionCache, sql_of
from dp_service.server.question_messages import audience_of
from dp_service.server.served_policy import ServedPolicy
from dp_service.server.show_release import show_release
from dp_service.server.sql_admission import SqlAdmission
from dp_service.server.stream_assembler import Rows, StreamAssembler, begin, drain, receive_stream
from gris_serving.identity import caller_name
from gris_serving.internal_errors import log_internal_error

DATA_VERSION_CHARACTERS = 256
SHORT_ROWS = 50
SHORT_PLAN_BYTES = 2048
"""Histograms and plans up to this size take a few milliseconds, less than handing them to a thread would."""

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
_Received = TypeVar("_Received", bound=Rows)
# The types of messages are left open here: every method has its own.
Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True)
class Environment:
    """The environment of the service: the time in seconds since 1970 (UTC), and fresh random bytes."""

    clock: Callable[[], float]
    entropy: Callable[[int], bytes]

    def now(self) -> int:
        """Return the time in whole seconds."""
        return int(self.clock())


class DpServicer(dp_pb2_grpc.DpServiceServicer):
    """Implements the RPCs. It keeps no state but meanings of questions: a call needs request, policy and keys.

    A call reads the policy once, because it may be replaced at any time. New plans are signed with the current key; a
    plan is priced and released under the key that signed it.
    """

    def __init__(
        self,
        served: ServedPolicy,
        keys: KeySet,
        environment: Environment,
        admission: Admission | None = None,
    ) -> None:
        self._served = served
        self._keys = keys
        self._environment = environment
        self._admission = admission or Admission()
        self._sql_admission = SqlAdmission()
        self._questions = QuestionCache()

    async def TranslateQuery(  # noqa: N802 - the contract's name
        self, request: dp_pb2.TranslateQueryRequest, context: Context
    ) -> dp_pb2.TranslateQueryResponse:
        """Turn a question into a query for an engine and a plan."""
        if self._questions.is_quick(request.question, self._served.content.policy):
            return await self._at_once(context, lambda: self._translate(request))
        return await self._in_thread(context, lambda: self._translate(request), sql_of(request.question))

    async def EstimateCost(  # noqa: N802 - the contract's name
        self, request: dp_pb2.EstimateCostRequest, context: Context
    ) -> dp_pb2.EstimateCostResponse:
        """Return the worst-case cost of a question."""
        return await self._in_thread(context, lambda: self._estimate(request), sql_of(request.question))

    async def DescribeGuarantee(  # noqa: N802 - the contract's name
        self, request: dp_pb2.DescribeGuaranteeRequest, context: Context
    ) -> dp_pb2.DescribeGuaranteeResponse:
        """Return the guarantee of a budget."""
        return await self._in_thread(
            context, lambda: describe_guarantee(request, self._served.content.policy)
        )

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
        """Release a histogram that arrives in chunks."""
        now = self._environment.now()
        assembler, released = await self._streamed(
            context, request_iterator, lambda header: begin(header, self._keys, now=now), self._release
        )
        if isinstance(released, dp_pb2.NextLook):
            yield dp_pb2.AddNoiseResponse(next=released)
            return
        async for part in _written(context, _messages(assembler).stream(released)):
            yield part

    async def ShowRelease(  # noqa: N802 - the contract's name
        self, request_iterator: AsyncIterator[dp_pb2.ShowReleaseRequest], context: Context
    ) -> AsyncIterator[dp_pb2.ShowReleaseResponse]:
        """Show a kept release, which arrives in chunks, under the plan of a question."""
        now = self._environment.now()
        _, parts = await self._streamed(
            context, request_iterator, lambda header: begin_showing(header, self._keys, now=now), show_release
        )
        async for part in _written(context, parts):
            yield part

    async def GetCatalog(  # noqa: N802 - the contract's name
        self, request: dp_pb2.GetCatalogRequest, context: Context
    ) -> dp_pb2.GetCatalogResponse:
        """Return one page of what may be asked."""
        content, now = self._served.content, self._environment.now()
        return await self._in_thread(
            context, lambda: catalog_page(request, content.seen_by(audience_of(request)), now=now)
        )

    def _asked(self, question: question_pb2.Question) -> CachedQuestion:
        # The policy is read once: it may be replaced at any time.
        seen = self._served.content.seen_by(audience_of(question))
        return self._questions.resolve(question, seen.policy, now=self._environment.now())

    def _translate(self, request: dp_pb2.TranslateQueryRequest) -> dp_pb2.TranslateQueryResponse:
        response = self._translated(request)
        response.audience = request.question.audience.name
        return response

    def _translated(self, request: dp_pb2.TranslateQueryRequest) -> dp_pb2.TranslateQueryResponse:
        if not 1 <= len(request.data_version) <= DATA_VERSION_CHARACTERS:
            raise RequestError("data_version", f"expected 1 to {DATA_VERSION_CHARACTERS} characters")
        asked = self._asked(request.question)
        resolution, dialects = asked.resolution, _dialects(request.dialect)
        names = [name for name, _ in resolution.columns]
        if asked.query.explained:
            price = priced(asked)
            return dp_pb2.TranslateQueryResponse(table=resolution.query.table, price=price)
        probed = asked.query.probed
        columns = expected_columns(probed or resolution.columns, column_aliases(asked.query, names))
        if (free := free_answer(asked.query, resolution, columns)) is not None:
            return dp_pb2.TranslateQueryResponse(
                table=resolution.query.table,
                columns=columns,
                parameters=free.shown.parameters,
                free=free,
            )
        require_useful(asked.typical_errors, asked.query.max_error)
        issue_context = IssueContext(self._environment.now(), self._environment.entropy(FRESH_BYTES))
        plan = plan_for(
            resolution,
            request.data_version,
            self._keys.current,
            issue_context,
            policy_statement=asked.policy_statement,
            dialects=dialects,
        )
        kind = kind_of(plan.parameters)
        worst = kind.mechanism.worst_case_cost()
        response = dp_pb2.TranslateQueryResponse(
            plan=sign_plan(plan, self._keys.current),
            engine_queries=asked.engine_queries(dialects),
            table=plan.table,
            columns=columns,
            row_limit=plan.row_limit,
            worst_case_cost=cost_message(worst, plan.paid_by),
            query_id=plan.query_id,
            view_id=view_id(plan.parameters),
            audience_rows=plan.forced.name,
            parameters=parameters_message(plan.parameters),
            reserve_first=resolution.reserve_first,
            count_alias=asked.query.count_alias,
            selected=asked.query.shown,
            reads=map(read_column, resolution.reads),
            sums=map(read_value, values_read(resolution.query)),
            own_counts=len(resolution.query.own_counts),
            quantiles=next(map(read_value, quantiles_read(resolution.query)), None),
            bins=map(read_value, bins_read(resolution.query)),
            requested_k=resolution.requested_k or 0,
            information_per_element=kind.information_per_element,
            version_is_fixed=resolution.fixed_data_version is not None,
            bounded_copy=bounded_copy(resolution.copy),
            stream=closed_stream(resolution.stream),
            unfinished=responses.bill_of(plan, "", worst, self._keys.current),
        )
        response.plan_expires_at.FromSeconds(plan.issued_at + PLAN_TTL_SECONDS)
        return response

    def _estimate(self, request: dp_pb2.EstimateCostRequest) -> dp_pb2.EstimateCostResponse:
        response = priced(self._asked(request.question))
        response.audience = request.question.audience.name
        return response

    def _add_noise_unary(self, request: dp_pb2.AddNoiseUnaryRequest) -> dp_pb2.AddNoiseUnaryResponse:
        assembler = begin(request.header, self._keys, now=self._environment.now())
        if request.histogram.columns or request.histogram.counts:
            assembler.add(request.histogram)
        released = self._release(assembler)
        with from_the_draw_on():
            if isinstance(released, dp_pb2.NextLook):
                return dp_pb2.AddNoiseUnaryResponse(next=released)
            return dp_pb2.AddNoiseUnaryResponse(release=_messages(assembler).whole(released))

    async def _at_once(self, context: Context, work: Callable[[], _Answer]) -> _Answer:
        """Do short work on the event loop: handing it to a thread and back would take nearly as long."""
        try:
            with self._admission.entered():
                return work()
        except Exception as error:
            await _abort(context, error)

    async def _in_thread(self, context: Context, work: Callable[[], _Answer], sql: str = "") -> _Answer:
        """Do the work off the event loop, which must stay free to answer health checks; `sql`: the text it reads."""
        try:
            with self._admission.entered():
                if sql:
                    return await self._sql_admission.read(caller_name(context), sql, work)
                return await asyncio.to_thread(work)
        except Exception as error:
            await _abort(context, error)

    async def _streamed(
        self,
        context: Context,
        requests: AsyncIterator[Any],
        begun: Callable[[Any], _Received],
        work: Callable[[_Received], _Answer],
    ) -> tuple[_Received, _Answer]:
        """Return the rows that a client sends, and what the work makes of them off the event loop."""

        async def begun_soon(header: Any) -> _Received:
            # To read the plan of a large domain takes too long for the event loop.
            is_short = len(header.plan) <= SHORT_PLAN_BYTES
            return begun(header) if is_short else await asyncio.to_thread(begun, header)

        try:
            with self._admission.entered():
                received = await receive_stream(requests, begun_soon)
                return received, await asyncio.to_thread(work, received)
        except Exception as error:
            await drain(requests)
            await _abort(context, error)

    def _release(self, assembler: StreamAssembler) -> Released | dp_pb2.NextLook:
        """Return what may be shown once it is paid for, or what the trusted side has to ask before."""
        plan, histogram, key = assembler.plan, assembler.histogram(), assembler.key
        if not is_first_look(plan):
            return release(plan, histogram, key, confidence=assembler.confidence, whole=assembler.whole)
        names = names_of(plan, histogram, key)
        with from_the_draw_on():
            plan = second_plan(plan, names, now=self._environment.now())
            if plan.row_limit:
                return _next_look(plan, key)
            # No name, so no query: the empty answer is a release as any other.
            rows = without_rows(histogram)
            return release(plan, rows, key, confidence=assembler.confidence, whole=assembler.whole)


async def _written(context: Context, messages: Iterator[_Answer]) -> AsyncIterator[_Answer]:
    """Yield messages about a draw as they are written.

    gRPC would send and log the text of what fails, which may hold numbers.
    """
    while True:
        try:
            with from_the_draw_on():
                message = next(messages, None)
        except Exception as error:
            await _abort(context, error)
        if message is None:
            return
        yield message


def _messages(assembler: StreamAssembler) -> responses.ReleaseMessages:
    return responses.ReleaseMessages(assembler.plan, assembler.confidence, assembler.key)


def _next_look(plan: Plan, key: NoiseKey) -> dp_pb2.NextLook:
    looks = plan.looks
    return dp_pb2.NextLook(
        plan=sign_plan(plan, key),
        engine_queries=engine_queries(second_question(plan), looks.dialects if looks else ()),
        row_limit=plan.row_limit,
    )


def _dialects(named: str) -> tuple[str, ...]:
    if named and named not in DIALECTS:
        raise RequestError("dialect", f"expected one of {', '.join(DIALECTS)}, or nothing for all of them")
    return (named,) if named else tuple(DIALECTS)


def _is_short(request: dp_pb2.AddNoiseUnaryRequest) -> bool:
    """Return whether a release is short enough to delay health checks; it depends on sizes and on no count.

    The interval of an average takes a millisecond, and so does the choice of a quantile: no release of them is short.
    That of a share of counts, or of a part of a funnel, takes up to three, so that of others few rows are.
    """
    is_short_plan = len(request.header.plan) <= SHORT_PLAN_BYTES
    histogram = request.histogram
    of_cells = any(column.name == CELL_COLUMN for column in histogram.columns)
    return is_short_plan and len(histogram.counts) <= SHORT_ROWS and not histogram.sums and not of_cells


async def _abort(context: Context, error: Exception) -> NoReturn:
    if not is_expected_error(error):
        log_internal_error(_log, "The service failed.", error.__cause__ or error)
    await context.abort_with_status(status_of(error))
    raise AssertionError("abort_with_status always raises")
