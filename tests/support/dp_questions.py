"""A policy, questions about it, answers to them, and what dp_service says: the world of these tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2
from grpc_status import rpc_status

from dp_service.releases.keys import NoiseKey
from pinot_connector.dp_service_client import release_of
from pinot_connector.element_messages import without

POLICY = """
epsilon_per: 1
delta: 1e-2
tables:
  engagement:
    member: member_id
    measures: {distinct_members: true, events: {tau: 3, tau_is: assumed}}
    columns:
      article: {type: string, group_by: true, filter: [in, not_in]}
      cohort: {type: string, group_by: true, delta: 1}
      score: {type: int64, group_by: true, domain: [-1, 0, 1]}
      app: {type: string, group_by: true, domain: [line, web], delta: 1}
  drawn_anew:
    member: member_id
    consistency: fresh
    measures: {distinct_members: true}
    columns:
      article: {type: string, group_by: true}
"""
KEY = NoiseKey(b"k" * 32)
ALL_COLUMNS = ["article", "cohort", "score", "app"]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        """Return the time that was set."""
        return self.seconds


class Entropy:
    """Bytes that never repeat."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, size: int) -> bytes:
        """Return the next bytes."""
        self.calls += 1
        return self.calls.to_bytes(size, "big")


def question(by: str = "article", **fields: Any) -> question_pb2.Question:
    """Return a structured question about the table of the tests."""
    defaults: dict[str, Any] = {
        "table": "engagement",
        "measure": question_pb2.MEASURE_DISTINCT_MEMBERS,
        "dimensions": [by],
    }
    if by in {"article", "score"}:
        defaults["k"] = 2
    return question_pb2.Question(structured=question_pb2.HistogramQuery(**(defaults | fields)))


def order_of(by: str = "article", k: int | None = 2, *, table: str = "engagement") -> question_pb2.Question:
    """Return a question for the order of elements without their counts."""
    limit = "" if k is None else f" LIMIT {k}"
    sql = f"SELECT {by} FROM {table} GROUP BY {by} ORDER BY COUNT(DISTINCT member_id) DESC{limit}"  # noqa: S608
    return question_pb2.Question(sql=sql)


async def translated(dp: Any, asked: question_pb2.Question) -> dp_pb2.TranslateQueryResponse:
    """Translate a question for data version v1."""
    request = dp_pb2.TranslateQueryRequest(question=asked, data_version="v1")
    response: dp_pb2.TranslateQueryResponse = await dp.TranslateQuery(request)
    return response


def answer_of(by: str) -> histogram_pb2.Histogram:
    """Return an engine's answer whose counts stand far apart."""
    values: dict[str, Any] = {
        "article": {"strings": {"values": ["a", "b", "c", "d"]}},
        "cohort": {"strings": {"values": ["2018-01", "2018-02", "2018-03", "2018-04"]}},
        "score": {"int64s": {"values": [1, -1]}},
        "app": {"strings": {"values": ["web"]}},
    }
    counts = [900, 600, 300, 3][: len(next(iter(values[by].values()))["values"])]
    return histogram_pb2.Histogram(
        columns=[histogram_pb2.ElementColumn(name=by, **values[by])], counts=counts
    )


def header(plan: dp_pb2.TranslateQueryResponse, data_version: str = "v1") -> dp_pb2.ReleaseHeader:
    """Return the header of a release."""
    return dp_pb2.ReleaseHeader(plan=plan.plan, data_version=data_version)


async def released(dp: Any, asked: question_pb2.Question, by: str) -> dp_pb2.AddNoiseUnaryResponse:
    """Translate, answer and release."""
    plan = await translated(dp, asked)
    response: dp_pb2.AddNoiseUnaryResponse = await dp.AddNoiseUnary(
        dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=answer_of(by))
    )
    return response


def parts(
    plan: dp_pb2.TranslateQueryResponse, chunks: Iterable[histogram_pb2.Histogram], row_count: int
) -> list[dp_pb2.AddNoiseRequest]:
    """Return the messages of a whole stream."""
    head = dp_pb2.AddNoiseRequest(header=header(plan))
    end = dp_pb2.AddNoiseRequest(end=dp_pb2.ReleaseEnd(row_count=row_count))
    return [head, *(dp_pb2.AddNoiseRequest(chunk=chunk) for chunk in chunks), end]


async def streamed(dp: Any, messages: Iterable[dp_pb2.AddNoiseRequest]) -> list[dp_pb2.AddNoiseResponse]:
    """Send a stream and return what comes back."""
    return [response async for response in dp.AddNoise(iter(messages))]


def showing(plan: bytes, kept: dp_pb2.Kept, *, confidence: float = 0.0) -> dp_pb2.ShowReleaseRequest:
    """Return the one message that shows a kept release of one column under a plan.

    Args:
        plan: The plan of the question that shows it.
        kept: The release.
        confidence: Of its intervals.
    """
    (column,) = kept.elements.columns
    elements = list(getattr(column, column.WhichOneof("values") or "").values)
    return dp_pb2.ShowReleaseRequest(
        header=dp_pb2.KeptHeader(plan=plan, confidence=confidence, kept=without(kept, "elements")),
        chunk=dp_pb2.KeptChunk(
            elements=without(kept.elements, "columns"),
            element_ranks=[sorted(elements).index(each) for each in elements],
        ),
        end=dp_pb2.ReleaseEnd(row_count=len(elements)),
    )


async def shown_again(dp: Any, *requests: dp_pb2.ShowReleaseRequest) -> dp_pb2.Release:
    """Send a stream and return the release that comes back."""
    return release_of([response async for response in dp.ShowRelease(iter(requests))])


async def error_of(call: Any) -> tuple[grpc.StatusCode, str, dict[str, str]]:
    """Return code, reason and metadata of the error that a call ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    status = rpc_status.from_call(caught.value)  # type: ignore[arg-type]  # the same methods
    info = error_details_pb2.ErrorInfo()
    assert status is not None
    assert status.details[0].Unpack(info)
    assert info.domain == "gris.dp"
    return caught.value.code(), info.reason, dict(info.metadata)
