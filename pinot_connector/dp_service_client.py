"""Calls to dp_service."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc, question_pb2

from pinot_connector import telemetry
from pinot_connector.audiences import Audience, asked_as
from pinot_connector.catalog import Catalog
from pinot_connector.catalog_pages import whole_catalog
from pinot_connector.channels import Timeouts, open_channel
from pinot_connector.element_messages import cut, merged
from pinot_connector.endpoints import Address, named
from pinot_connector.engines.base import EngineAnswer, ExpectedColumn, shown_columns
from pinot_connector.errors import (
    GrisError,
    IncompleteAnswer,
    IntegrityError,
    InvalidQuestion,
    OutcomeUnknown,
    RefusedByPolicy,
    ServiceGone,
    ServiceUnavailable,
)
from pinot_connector.histograms import chunks, histogram
from pinot_connector.rpc_errors import Service, error_of_rpc, no_answer, was_never_sent

MAX_UNARY_BYTES = 3 * 2**20

_SERVICE = dp_pb2.DESCRIPTOR.services_by_name["DpService"].full_name
_RETRIED_BY_GRPC = [
    f"{_SERVICE}/{method}"
    for method in (
        "TranslateQuery",
        "EstimateCost",
        "AddNoiseUnary",
        "ShowRelease",
        "GetCatalog",
        "DescribeGuarantee",
    )
]

_Columns = tuple[ExpectedColumn, ...]
_Request = TypeVar("_Request", bound=Message)
_Response = TypeVar("_Response")
_Heard = TypeVar(
    "_Heard", dp_pb2.TranslateQueryResponse, dp_pb2.EstimateCostResponse, dp_pb2.GetCatalogResponse
)


class DpServiceClient:
    """dp_service, as the connector sees it.

    It keeps no state, so gRPC may retry a call that got no answer: another replica gives the same one. Only AddNoise is
    not retried, nor are streams that gRPC does not hold in memory: larger ones.
    """

    def __init__(self, address: Address, timeouts: Timeouts) -> None:
        self._channel = open_channel(address, _RETRIED_BY_GRPC)
        self._stub: dp_pb2_grpc.DpServiceAsyncStub = dp_pb2_grpc.DpServiceStub(self._channel)  # type: ignore[assignment]
        self._timeout = timeouts.dp
        self._address = named(address)

    async def translate(
        self, question: question_pb2.Question, data_version: str, dialect: str
    ) -> dp_pb2.TranslateQueryResponse:
        """Returns an engine's query and the plan for a question on one version of the data."""
        request = dp_pb2.TranslateQueryRequest(question=question, data_version=data_version, dialect=dialect)
        return _heard(await self._call(self._stub.TranslateQuery, request), question)

    async def estimate(self, question: question_pb2.Question) -> dp_pb2.EstimateCostResponse:
        """Returns the worst-case cost of a question."""
        request = dp_pb2.EstimateCostRequest(question=question)
        return _heard(await self._call(self._stub.EstimateCost, request), question)

    async def offers_all(self) -> bool:
        """Returns whether everybody is offered everything, as the policy states no audiences."""
        try:
            await self.catalog_page(dp_pb2.GetCatalogRequest(page_size=1))
        except RefusedByPolicy:
            return False
        return True

    async def guarantee(self, request: dp_pb2.DescribeGuaranteeRequest) -> dp_pb2.DescribeGuaranteeResponse:
        """Returns the guarantee of a budget, and of a shared one if the request names one."""
        return await self._call(self._stub.DescribeGuarantee, request)

    async def catalog(self, table: str, audience: Audience | None = None) -> Catalog:
        """Returns what an audience may ask, of one table or (empty) of all."""

        def page(request: dp_pb2.GetCatalogRequest) -> Awaitable[dp_pb2.GetCatalogResponse]:
            return self.catalog_page(asked_as(request, audience))

        return await whole_catalog(page, table)

    async def catalog_page(self, request: dp_pb2.GetCatalogRequest) -> dp_pb2.GetCatalogResponse:
        """Returns one page of what may be asked."""
        return _heard(await self._call(self._stub.GetCatalog, request), request)

    async def add_noise(
        self, header: dp_pb2.ReleaseHeader, columns: _Columns, answer: EngineAnswer
    ) -> dp_pb2.Release | dp_pb2.NextLook:
        """Returns the release of an engine's answer, in one message, or streamed if it is large.

        If the answer was the first of two looks and named elements, returns the second look instead.

        Raises:
            IncompleteAnswer: a value is too long, or dp_service found that this cannot be the answer to the plan's
                query.
            IntegrityError: the stream stopped before its end.
        """
        request = dp_pb2.AddNoiseUnaryRequest(header=header, histogram=histogram(columns, answer))
        try:
            # The plan counts too: that of a large known domain holds the whole domain, whichever elements are present.
            # What is answered grows with the domain and the number of sums alike, and is streamed whenever there are
            # sums or quantiles: how many elements are present must not decide whether it fits into one message.
            if answer.sums or shown_columns(columns) != columns or request.ByteSize() > MAX_UNARY_BYTES:
                whole_bytes = request.histogram.ByteSize()
                requests = _noise_requests(header, columns, answer, whole_bytes)
                parts = await self._streamed(self._stub.AddNoise, requests)
                return parts[0].next if parts and parts[0].HasField("next") else release_of(parts)
            response = await self._call(self._stub.AddNoiseUnary, request)
            if response.HasField("next"):
                return response.next
            return response.release
        except InvalidQuestion:
            # The question was accepted when it was translated; what is wrong now is the histogram.
            raise IncompleteAnswer("the engine's answer is not one that the query can have") from None

    async def show(self, requests: Sequence[dp_pb2.ShowReleaseRequest]) -> list[dp_pb2.ShowReleaseResponse]:
        """Returns how a question shows a kept release, in parts: `release_of` puts them together.

        Args:
            requests: what `show_requests` returns.
        """
        return await self._streamed(self._stub.ShowRelease, requests)

    async def close(self) -> None:
        """Closes the connection."""
        await self._channel.close()

    async def _streamed(
        self, method: Callable[..., AsyncIterable[_Response]], requests: Sequence[Message]
    ) -> list[_Response]:
        try:
            with telemetry.remote_call(requests[0]) as metadata:
                call = method(iter(requests), timeout=self._timeout, metadata=metadata)
                return [response async for response in call]
        except grpc.RpcError as error:
            raise self._translated(error) from None

    async def _call(self, call: Callable[..., Awaitable[_Response]], request: _Request) -> _Response:
        try:
            with telemetry.remote_call(request) as metadata:
                return await call(request, timeout=self._timeout, metadata=metadata)
        except grpc.RpcError as error:
            raise self._translated(error) from None

    def _translated(self, error: grpc.RpcError) -> GrisError:
        translated = error_of_rpc(Service.DP, error, self._address)
        if not (isinstance(translated, OutcomeUnknown) or was_never_sent(error)):
            return translated
        # dp_service changes nothing, so a lost answer leaves nothing unknown.
        is_gone = isinstance(error, grpc.aio.AioRpcError) and error.code() is grpc.StatusCode.UNAVAILABLE
        return (ServiceGone if is_gone else ServiceUnavailable)(Service.DP, no_answer(error, self._address))


def _heard(response: _Heard, asked: question_pb2.Question | dp_pb2.GetCatalogRequest) -> _Heard:
    """Returns what answers an audience; a dp_service that knows none would answer it everything.

    Raises:
        IntegrityError: it says so of another audience, or of none.
    """
    if response.audience != asked.audience.name:
        raise IntegrityError("dp_service did not say that it answered this audience")
    return response


def release_of(parts: Sequence[dp_pb2.AddNoiseResponse | dp_pb2.ShowReleaseResponse]) -> dp_pb2.Release:
    """Returns the release of which a stream has sent parts.

    Raises:
        IntegrityError: they are no release, or the stream stopped before its end.
    """
    found: dict[str, list[Any]] = {"shown": [], "kept": [], "end": []}
    for each in parts:
        for part, value in each.ListFields():
            if part.name not in found or found["end"]:
                raise IntegrityError("dp_service sent something else than a release")
            found[part.name].append(value)
    if not found["end"]:
        raise IntegrityError("dp_service stopped before the end of a release")
    release: dp_pb2.Release = found["end"][-1]
    merged(release.elements, found["shown"])
    if found["kept"]:
        merged(release.kept.elements, found["kept"])
    return release


def show_requests(header: dp_pb2.KeptHeader, rows: dp_pb2.KeptChunk) -> list[dp_pb2.ShowReleaseRequest]:
    """Returns the messages that ask how to show a kept release.

    Args:
        header: the plan, and the release without its elements.
        rows: all elements, in the order of the release.
    """
    count = len(rows.element_ranks)
    requests = [dp_pb2.ShowReleaseRequest(chunk=chunk) for chunk in cut(rows, count)]
    # What is small is one message: each takes about as long as all else.
    requests[0].header.CopyFrom(header)
    requests[-1].end.row_count = count
    requests[-1].end.SetInParent()
    return requests


def _noise_requests(
    header: dp_pb2.ReleaseHeader, columns: _Columns, answer: EngineAnswer, whole_bytes: int
) -> list[dp_pb2.AddNoiseRequest]:
    # All before the first is sent: gRPC would log an error of a generator, and take it for a cancellation.
    return [
        dp_pb2.AddNoiseRequest(header=header),
        *(dp_pb2.AddNoiseRequest(chunk=chunk) for chunk in chunks(columns, answer, whole_bytes)),
        dp_pb2.AddNoiseRequest(end=dp_pb2.ReleaseEnd(row_count=len(answer.counts))),
    ]
