"""A whole release that is kept, and what a question shows of it: the same as if it had been drawn for that question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.mechanisms.parameters import Cost
from dp_service.releases.keys import KeySet
from dp_service.releases.ticket import charge_ticket
from pinot_connector.element_messages import rows_of
from tests.support.dp_questions import (
    ALL_COLUMNS,
    KEY,
    POLICY,
    answer_of,
    error_of,
    header,
    order_of,
    question,
    showing,
    shown_again,
    translated,
)
from tests.support.dp_server import servicer_of, servicer_of_file, serving
from tests.support.publishing import domain_file, policy_of, publication_text
from tests.support.some import some
from tests.unit.dp_service.kept_releases import whole, with_names_and_counts

LAPLACE = ["cohort", "app"]
RANKS = "chunk.element_ranks"
COUNTS = "chunk.elements.noisy_counts"
TABLE = (
    "member: m, measures: {distinct_members: true}, columns: {c: {type: string, group_by: true, delta: 1}}"
)
PERIODS = f"""
epsilon_per: 1
delta: 1e-2
tables:
  open: {{{TABLE}}}
  declared: {{{TABLE}, data_version: one}}
  closed: {{{TABLE}, time: {{column: d, type: date, refresh: month}}}}
""".replace("delta: 1}}, time", "delta: 1}, d: {type: date, filter: [range]}}, time")


async def asking(
    dp: Any, kept: dp_pb2.Kept, asked: question_pb2.Question, confidence: float = 0.0
) -> dp_pb2.ShowReleaseRequest:
    """Return the request to show a kept release as a question does."""
    return showing((await translated(dp, asked)).plan, kept, confidence=confidence)


def in_chunks(request: dp_pb2.ShowReleaseRequest) -> list[dp_pb2.ShowReleaseRequest]:
    """Return a request as a header, two chunks and an end."""
    rows = len(request.chunk.element_ranks)
    parts = [rows_of(request.chunk, each) for each in (slice(0, 1), slice(1, rows))]
    return [
        dp_pb2.ShowReleaseRequest(header=request.header),
        *(dp_pb2.ShowReleaseRequest(chunk=part) for part in parts),
        dp_pb2.ShowReleaseRequest(end=request.end),
    ]


def divided(chunk: dp_pb2.ShowReleaseRequest) -> dp_pb2.ShowReleaseRequest:
    """Return a chunk whose counts are halves."""
    chunk.chunk.elements.noisy_denominator = 2
    return chunk


def views(by: str) -> list[question_pb2.Question]:
    """Return questions that one release answers."""
    if by not in LAPLACE:
        return [question(by)]
    ks = [question(by, k=k) for k in (1, 2, 3, 50)]
    return [question(by), order_of(by, k=None), *ks]


@pytest.mark.slow
@pytest.mark.parametrize("by", ALL_COLUMNS)
@pytest.mark.parametrize("confidence", [0.0, 0.8])
async def test_what_is_shown_of_a_kept_release_is_what_a_new_one_shows(
    dp: Any, by: str, confidence: float
) -> None:
    """Every k, with and without counts: elements, counts, intervals, ending, parameters, price, ticket and ids."""
    for first in some(views(by)):
        kept = (await whole(dp, first, by)).kept
        for asked in some(views(by)):
            head = header(await translated(dp, asked))
            head.confidence = confidence
            request = dp_pb2.AddNoiseUnaryRequest(header=head, histogram=answer_of(by))
            fresh: dp_pb2.Release = (await dp.AddNoiseUnary(request)).release
            shown = await shown_again(dp, await asking(dp, kept, asked, confidence))
            assert fresh == with_names_and_counts(shown, kept)


@pytest.mark.parametrize("by", LAPLACE)
async def test_a_whole_release_is_the_same_whatever_part_of_it_is_shown(dp: Any, by: str) -> None:
    """All of it comes with every k, beside what the question shows of it."""
    full = await whole(dp, question(by), by)
    for asked in some(views(by)):
        found = await whole(dp, asked, by)
        assert full.kept == found.kept
        shows_counts = not asked.sql
        assert len(found.elements.noise_lower) == (found.shown.element_count if shows_counts else 0)


async def test_a_question_whose_version_the_policy_fixes_says_so() -> None:
    """Then its query_id is the same for every version that the engine may have; otherwise it is another."""
    async with serving(servicer_of(PERIODS)) as dp:
        for table, is_fixed in (("open", False), ("declared", True), ("closed", True)):
            asked = question("c", table=table)
            first, second = [
                await dp.TranslateQuery(dp_pb2.TranslateQueryRequest(question=asked, data_version=version))
                for version in ("one", "two")
            ]
            assert is_fixed == first.version_is_fixed == (first.query_id == second.query_id)


async def test_a_kept_release_gets_the_ticket_of_the_policy_of_now(tmp_path: Path) -> None:
    """A policy that published more since is the one that the next account is charged under."""
    first, second = domain_file("one", "1/2", "1/4"), domain_file("two", "1/3", "1/5")
    asked = question("one", table="t", k=1)
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    async with serving(servicer_of_file(policy_of(tmp_path / "before", first))) as before:
        head = header(await translated(before, asked))
        head.keep = True
        strings = histogram_pb2.StringValues(values=["a", "b"])
        histogram = histogram_pb2.Histogram(
            columns=[histogram_pb2.ElementColumn(name="one", strings=strings)], counts=[900, 3]
        )
        request = dp_pb2.AddNoiseUnaryRequest(header=head, histogram=histogram)
        kept = (await before.AddNoiseUnary(request)).release.kept
    async with serving(servicer_of_file(policy_of(tmp_path / "after", first, second))) as after:
        bill = (await shown_again(after, await asking(after, kept, asked))).bill
    assert kept.bill.release_id == bill.release_id
    assert publication_text(first) == kept.bill.policy_statement
    assert {publication_text(first), publication_text(second)} == set(bill.policy_statement.split(","))
    assert bill.charge_ticket == charge_ticket(
        KEY,
        release_id=bill.release_id,
        query_id=bill.query_id,
        cost=Cost(bill.cost.information, bill.cost.calls),
        unit_id=bill.cost.unit_id,
        policy_statement=bill.policy_statement,
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda request: setattr(request.header.kept.bill.cost, "information", 0),
        lambda request: setattr(request.header.kept.bill, "release_id", "0" * 64),
        lambda request: setattr(request.header.kept.bill, "query_id", "0" * 64),
        lambda request: setattr(request.header.kept.bill, "charge_ticket", b"made up"),
        lambda request: setattr(request.header.kept.bill, "policy_statement", "a:1:1/2"),
        lambda request: setattr(request.header.kept.bill.cost, "unit_id", "0" * 32),
    ],
)
async def test_a_release_that_was_not_made_here_gets_no_ticket(dp: Any, change: Any) -> None:
    """Nobody can make a release cheaper, or have another one charged, by way of a kept one."""
    request = await asking(dp, (await whole(dp, question("cohort"), "cohort")).kept, question("cohort"))
    change(request)
    code, reason, _ = await error_of(shown_again(dp, request))
    assert (grpc.StatusCode.FAILED_PRECONDITION, "RELEASE_NOT_AUTHENTIC") == (code, reason)


async def test_the_release_of_another_question_is_refused(dp: Any) -> None:
    """A plan shows the release of its own question only."""
    kept = (await whole(dp, question("cohort"), "cohort")).kept
    request = await asking(dp, kept, question("cohort"))
    request.header.plan = (await translated(dp, question("app"))).plan
    code, reason, _ = await error_of(shown_again(dp, request))
    assert (grpc.StatusCode.FAILED_PRECONDITION, "RELEASE_NOT_AUTHENTIC") == (code, reason)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda request: request.chunk.element_ranks.append(9), RANKS),
        (lambda request: request.chunk.element_ranks.__setitem__(0, request.chunk.element_ranks[1]), RANKS),
        (lambda request: request.chunk.elements.noisy_counts.pop(), COUNTS),
        (lambda request: request.chunk.elements.ClearField("noisy_counts"), COUNTS),
        # Below the threshold that the release states.
        (lambda request: request.chunk.elements.noisy_counts.__setitem__(0, -(10**6)), "chunk.elements"),
        (lambda request: request.chunk.elements.sums.add(values=[1]), "chunk.elements.sums"),
        (lambda request: request.chunk.elements.cells.add(cells=[1]), "chunk.elements.cells"),
        (lambda request: request.header.kept.elements.SetInParent(), "header.kept.elements"),
        (lambda request: setattr(request.header.kept, "element_count", 10**9), "header.kept.element_count"),
        (lambda request: setattr(request.header.kept, "element_count", -1), "header.kept.element_count"),
        (lambda request: setattr(request.header, "confidence", 0.3), "header.confidence"),
        (lambda request: setattr(request.header, "confidence", float("nan")), "header.confidence"),
        (lambda request: setattr(request.end, "row_count", 9), "end.row_count"),
        (lambda request: request.ClearField("header"), "header"),
        (lambda request: request.ClearField("end"), "end"),
        (lambda request: setattr(request.header.kept, "element_count", 5), RANKS),
    ],
)
async def test_a_malformed_release_is_refused_by_field(dp: Any, change: Any, field: str) -> None:
    """What does not belong together is named."""
    request = await asking(dp, (await whole(dp, question("cohort"), "cohort")).kept, question("cohort"))
    change(request)
    code, _, metadata = await error_of(shown_again(dp, request))
    assert (grpc.StatusCode.INVALID_ARGUMENT, field) == (code, metadata["field"])


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        (lambda head, first, rest, end: [head, first, rest], "end"),
        (lambda head, first, rest, end: [head, first, end], "end.row_count"),
        (lambda head, first, rest, end: [first, head, rest, end], "header"),
        (lambda head, first, rest, end: [head, head, first, rest, end], "header"),
        (lambda head, first, rest, end: [head, first, rest, end, end], "end"),
        (lambda head, first, rest, end: [head, first, end, rest], "end.row_count"),
        (lambda head, first, rest, end: [head, first, rest, rest, end], RANKS),
        (lambda head, first, rest, end: [head, first, rest, end, rest], "end"),
        (lambda head, first, rest, end: [head, dp_pb2.ShowReleaseRequest(), first, rest, end], "part"),
        (
            lambda head, first, rest, end: [head, divided(first), rest, end],
            "chunk.elements.noisy_denominator",
        ),
        (lambda head, first, rest, end: [], "end"),
    ],
)
async def test_a_stream_that_is_not_whole_shows_nothing(dp: Any, broken: Any, field: str) -> None:
    """Half a stream, one out of order, and one whose chunks do not belong together are refused by field."""
    request = await asking(dp, (await whole(dp, question("cohort"), "cohort")).kept, question("cohort"))
    assert await shown_again(dp, *in_chunks(request)) == await shown_again(dp, request)
    code, _, metadata = await error_of(shown_again(dp, *broken(*in_chunks(request))))
    assert (grpc.StatusCode.INVALID_ARGUMENT, field) == (code, metadata["field"])


async def test_a_chunk_that_is_too_large_is_refused(dp: Any) -> None:
    """Its size alone is enough."""
    request = await asking(dp, (await whole(dp, question("cohort"), "cohort")).kept, question("cohort"))
    request.chunk.element_ranks.extend([2**40] * 2**19)
    code, _, metadata = await error_of(shown_again(dp, request))
    assert (grpc.StatusCode.INVALID_ARGUMENT, "chunk") == (code, metadata["field"])


async def test_a_streamed_release_is_whole_too(dp: Any) -> None:
    """The stream carries the same as one message."""
    asked = question("cohort", k=1)
    unary = await whole(dp, asked, "cohort")
    head = header(await translated(dp, asked))
    head.keep = True
    messages = [
        dp_pb2.AddNoiseRequest(header=head),
        dp_pb2.AddNoiseRequest(chunk=answer_of("cohort")),
        dp_pb2.AddNoiseRequest(end=dp_pb2.ReleaseEnd(row_count=4)),
    ]
    shown, kept, end = [response async for response in dp.AddNoise(iter(messages))]
    end.end.elements.CopyFrom(shown.shown)
    end.end.kept.elements.CopyFrom(kept.kept)
    assert unary == end.end


async def test_a_release_under_an_expired_plan_is_not_shown() -> None:
    """A plan is only as good as for AddNoise."""
    async with serving(servicer_of(POLICY, KeySet(KEY))) as dp:
        kept = (await whole(dp, question("cohort"), "cohort")).kept
        request = await asking(dp, kept, question("cohort"))
        request.header.plan = b"no plan"
        code, reason, _ = await error_of(shown_again(dp, request))
    assert (grpc.StatusCode.FAILED_PRECONDITION, "PLAN_NOT_AUTHENTIC") == (code, reason)
