"""The RPCs of dp_service over a real gRPC connection: every error, with its code and field."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from tests.support.dp_questions import (
    Clock,
    answer_of,
    error_of,
    header,
    parts,
    question,
    streamed,
    translated,
)

REFUSALS: list[tuple[question_pb2.Question, grpc.StatusCode, str, str]] = [
    (question(table="unknown"), grpc.StatusCode.PERMISSION_DENIED, "rule", "table"),
    (question("unknown"), grpc.StatusCode.PERMISSION_DENIED, "rule", "column"),
    (question("member_id"), grpc.StatusCode.PERMISSION_DENIED, "rule", "member_column"),
    (question(k=0), grpc.StatusCode.INVALID_ARGUMENT, "field", "k"),
    (question(k=-5), grpc.StatusCode.INVALID_ARGUMENT, "field", "k"),
    (question(k=2**62), grpc.StatusCode.INVALID_ARGUMENT, "field", "k"),
    (question("cohort", k=1001), grpc.StatusCode.INVALID_ARGUMENT, "field", "k"),
    (question(measure=0), grpc.StatusCode.INVALID_ARGUMENT, "field", "measure"),
    (question_pb2.Question(), grpc.StatusCode.INVALID_ARGUMENT, "field", "question"),
    (
        question(filters=[{"column": "article"}]),
        grpc.StatusCode.INVALID_ARGUMENT,
        "field",
        "filters.predicate",
    ),
    (question_pb2.Question(sql="DROP TABLE engagement"), grpc.StatusCode.INVALID_ARGUMENT, "field", "sql"),
]


@pytest.mark.parametrize(("asked", "code", "key", "value"), REFUSALS)
async def test_a_bad_question_names_field_or_rule(
    dp: Any, asked: question_pb2.Question, code: grpc.StatusCode, key: str, value: str
) -> None:
    """TranslateQuery and EstimateCost refuse alike, before anything is asked of an engine."""
    translation = dp_pb2.TranslateQueryRequest(question=asked, data_version="v1")
    for call in (dp.TranslateQuery(translation), dp.EstimateCost(dp_pb2.EstimateCostRequest(question=asked))):
        found_code, _, metadata = await error_of(call)
        assert code is found_code
        assert value == metadata[key]


@pytest.mark.parametrize("data_version", ["", "x" * 257])
async def test_a_data_version_is_needed(dp: Any, data_version: str) -> None:
    """Noise is tied to a version of the data: without one there is no translation."""
    request = dp_pb2.TranslateQueryRequest(question=question(), data_version=data_version)
    code, _, metadata = await error_of(dp.TranslateQuery(request))
    assert (code, metadata["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "data_version")


@pytest.mark.parametrize("dialect", ["mysql", "DuckDB", "\u5bb6", "x" * 10_000])
async def test_an_engine_that_nothing_is_written_for_is_refused(dp: Any, dialect: str) -> None:
    """The field is named, and what it may say; what it said is not repeated."""
    request = dp_pb2.TranslateQueryRequest(question=question(), data_version="v1", dialect=dialect)
    code, details, metadata = await error_of(dp.TranslateQuery(request))
    assert (code, metadata["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "dialect")
    assert dialect not in details


async def test_a_forged_or_old_plan_is_refused(dp: Any, clock: Clock) -> None:
    """A touched plan is not authentic; an untouched one lapses after ten minutes."""
    plan = await translated(dp, question())
    forged = dp_pb2.ReleaseHeader(plan=plan.plan[:-1] + b"x", data_version="v1")
    refused = await error_of(dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=forged)))
    assert refused[:2] == (grpc.StatusCode.FAILED_PRECONDITION, "PLAN_NOT_AUTHENTIC")
    clock.seconds += 600
    late = await error_of(dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header(plan))))
    assert late[:2] == (grpc.StatusCode.FAILED_PRECONDITION, "PLAN_EXPIRED")


async def test_data_that_changed_meanwhile_need_a_new_translation(dp: Any) -> None:
    """The version after the query must be the one that was translated for."""
    plan = await translated(dp, question())
    call = dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header(plan, "v2")))
    assert (await error_of(call))[:2] == (grpc.StatusCode.FAILED_PRECONDITION, "DATA_CHANGED")


BAD_ROWS: list[tuple[str, dict[str, Any]]] = [
    ("negative count", {"values": ["a"], "counts": [-1]}),
    ("too large a count", {"values": ["a"], "counts": [2**53 + 1]}),
    ("repeated element", {"values": ["a", "a"], "counts": [2, 1]}),
    ("unsorted counts", {"values": ["a", "b"], "counts": [1, 2]}),
    ("more counts than elements", {"values": ["a"], "counts": [2, 1]}),
    ("more rows than asked for", {"values": [str(i) for i in range(1002)], "counts": [1] * 1002}),
    ("another column", {"name": "cohort", "values": ["a"], "counts": [1]}),
]


@pytest.mark.parametrize(("_", "rows"), BAD_ROWS)
async def test_rows_that_cannot_be_the_answer_are_refused(dp: Any, _: str, rows: dict[str, Any]) -> None:
    """A bad histogram is INVALID_ARGUMENT on field histogram, in one message and in a stream."""
    plan = await translated(dp, question())
    column = histogram_pb2.ElementColumn(name=rows.get("name", "article"), strings={"values": rows["values"]})
    histogram = histogram_pb2.Histogram(columns=[column], counts=rows["counts"])
    unary = dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=histogram))
    for call in (unary, streamed(dp, parts(plan, [histogram], len(rows["counts"])))):
        code, _, metadata = await error_of(call)
        assert (code, metadata["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "histogram")


async def test_rows_are_refused_before_they_take_memory(dp: Any) -> None:
    """Values without counts, and chunks far beyond their size, end the stream at once."""
    plan = await translated(dp, question())
    head = dp_pb2.AddNoiseRequest(header=header(plan))
    column = histogram_pb2.ElementColumn(name="article", strings={"values": ["x"] * 1000})
    uncounted = dp_pb2.AddNoiseRequest(chunk=histogram_pb2.Histogram(columns=[column]))
    wide = histogram_pb2.ElementColumn(name="article", strings={"values": ["x" * 4 * 2**20]})
    too_wide = dp_pb2.AddNoiseRequest(chunk=histogram_pb2.Histogram(columns=[wide], counts=[1]))
    whole = dp_pb2.AddNoiseRequest(chunk=answer_of("article"))
    crowd = histogram_pb2.ElementColumn(name="article", strings={"values": [str(i) for i in range(998)]})
    too_many = dp_pb2.AddNoiseRequest(chunk=histogram_pb2.Histogram(columns=[crowd], counts=[1] * 998))
    for messages, complaint in (
        ([head, uncounted], "as many values"),
        ([head, too_wide], "bytes"),
        ([head, whole, too_many], "rows"),
    ):
        # There is no end: only the chunk itself can have been refused.
        with pytest.raises(grpc.aio.AioRpcError, match=complaint):
            await streamed(dp, messages)


async def test_a_refusal_reaches_a_client_that_is_still_sending(dp: Any) -> None:
    """An expired or foreign plan is named as such, however much comes after it."""
    forged = dp_pb2.AddNoiseRequest(header=dp_pb2.ReleaseHeader(plan=b"forged", data_version="v1"))
    column = histogram_pb2.ElementColumn(name="article", strings={"values": ["x" * 1000] * 1000})
    chunk = dp_pb2.AddNoiseRequest(chunk=histogram_pb2.Histogram(columns=[column], counts=[1] * 1000))
    for _ in range(5):
        refused = await error_of(streamed(dp, [forged, *[chunk] * 30]))
        assert (grpc.StatusCode.FAILED_PRECONDITION, "PLAN_NOT_AUTHENTIC") == refused[:2]


@pytest.mark.slow
async def test_a_client_that_only_waits_is_refused_all_the_same(dp: Any) -> None:
    """A stream that is neither ended nor continued is answered after a moment."""
    call = dp.AddNoise(timeout=20)
    await call.write(dp_pb2.AddNoiseRequest(header=dp_pb2.ReleaseHeader(plan=b"forged")))
    refused = await error_of(call.read())
    assert (grpc.StatusCode.FAILED_PRECONDITION, "PLAN_NOT_AUTHENTIC") == refused[:2]


async def test_an_element_outside_a_known_domain_changes_nothing(dp: Any) -> None:
    """What an engine answers beyond the question decides neither whether there is a release nor what it says."""
    plan = await translated(dp, question("app"))

    async def released(*names: str) -> dp_pb2.AddNoiseUnaryResponse:
        column = histogram_pb2.ElementColumn(name="app", strings={"values": names})
        histogram = histogram_pb2.Histogram(columns=[column], counts=[1] * len(names))
        request = dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=histogram)
        response: dp_pb2.AddNoiseUnaryResponse = await dp.AddNoiseUnary(request)
        return response

    assert await released() == await released("other")


@pytest.mark.parametrize("broken", ["no header", "two headers", "no end", "two ends", "wrong end", "nothing"])
async def test_a_stream_that_is_not_whole_is_refused(dp: Any, broken: str) -> None:
    """Half a stream, or one out of order, releases nothing."""
    plan, answer = await translated(dp, question()), answer_of("article")
    head, chunk, end = parts(plan, [answer], 4)
    wrong = dp_pb2.AddNoiseRequest(end=dp_pb2.ReleaseEnd(row_count=3))
    messages = {
        "no header": [chunk, end],
        "two headers": [head, head, end],
        "no end": [head, chunk],
        "two ends": [head, chunk, end, end],
        "wrong end": [head, chunk, wrong],
        "nothing": [],
    }[broken]
    code, _, metadata = await error_of(streamed(dp, messages))
    assert grpc.StatusCode.INVALID_ARGUMENT is code
    assert metadata["field"] in {"header", "end", "end.row_count"}


@pytest.mark.parametrize("confidence", [0.5, 1.0, -1.0, 2.0, float("nan"), float("inf")])
async def test_a_confidence_that_is_none_is_refused(dp: Any, confidence: float) -> None:
    """Intervals cover with a probability strictly between one half and one."""
    plan = await translated(dp, question())
    bad = dp_pb2.ReleaseHeader(plan=plan.plan, data_version="v1", confidence=confidence)
    code, _, metadata = await error_of(dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=bad)))
    assert (code, metadata["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "header.confidence")
