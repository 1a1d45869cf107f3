"""What a caller of ShowRelease or AddNoise can send or get that ends outside of the promised errors."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.releases.kinds.parts import covering
from dp_service.releases.kinds.views import IntervalKind
from pinot_connector.dp_service_client import release_of
from pinot_connector.element_messages import cut, without
from tests.support.dp_questions import error_of, header, question, showing, shown_again, translated
from tests.support.dp_server import servicer_of, serving
from tests.unit.dp_service.kept_releases import whole

TOTALS = """
epsilon_per: 1
delta: 1e-3
count_noise: gaussian
tables:
  t:
    member: m
    contributions: {bound: in_query, typical: 2, units: 6, min_count: 1, totals: {}}
    measures: {distinct_members: true}
    columns:
      m: {type: string}
      country: {type: string, group_by: true}
      item: {type: string, group_by: true}
"""
BY_TWO = question_pb2.Question(
    structured=question_pb2.HistogramQuery(
        table="t",
        measure=question_pb2.MEASURE_DISTINCT_MEMBERS,
        dimensions=["country", "item"],
        totals_by="country",
    )
)


async def with_totals(dp: Any, countries: list[str]) -> tuple[bytes, dp_pb2.Release]:
    """Return plan and whole release of a question with totals."""
    plan = await translated(dp, BY_TWO)
    head = header(plan)
    head.keep = True
    columns = [
        histogram_pb2.ElementColumn(name=name, strings=histogram_pb2.StringValues(values=values))
        for name, values in (("country", countries), ("item", ["a"] * len(countries)))
    ]
    rows = histogram_pb2.Histogram(columns=columns, counts=[900] * len(countries))
    sent = [
        dp_pb2.AddNoiseRequest(header=head),
        *(dp_pb2.AddNoiseRequest(chunk=chunk) for chunk in cut(rows, len(countries))),
        dp_pb2.AddNoiseRequest(end=dp_pb2.ReleaseEnd(row_count=len(countries))),
    ]
    return plan.plan, release_of([response async for response in dp.AddNoise(iter(sent))])


async def request_with_totals(dp: Any) -> dp_pb2.ShowReleaseRequest:
    """Return the request to show a release of two elements and two totals."""
    plan, release = await with_totals(dp, ["A", "B"])
    kept = release.kept
    countries = list(kept.elements.columns[0].strings.values)
    return dp_pb2.ShowReleaseRequest(
        header=dp_pb2.KeptHeader(plan=plan, kept=without(kept, "elements")),
        chunk=dp_pb2.KeptChunk(
            elements=without(kept.elements, "columns"),
            element_ranks=[sorted(countries).index(each) for each in countries],
        ),
        end=dp_pb2.ReleaseEnd(row_count=2),
    )


def of_another_type(request: dp_pb2.ShowReleaseRequest) -> None:
    """Make the column of the totals one of numbers."""
    request.header.kept.totals.column.int64s.values.extend([1, 2])


def beyond(request: dp_pb2.ShowReleaseRequest) -> None:
    """Make what is left of a total a number that no message holds."""
    request.chunk.elements.noisy_counts[:] = [2**63 - 1] * 2
    request.header.kept.totals.noisy_counts[:] = [-(2**63)] * 2


@pytest.mark.parametrize("change", [of_another_type, beyond])
async def test_what_fails_while_the_answer_is_written_is_an_error_of_ours(change: Any) -> None:
    """gRPC would send, and log, the text of the exception; such texts hold numbers of the release."""
    async with serving(servicer_of(TOTALS)) as dp:
        request = await request_with_totals(dp)
        await shown_again(dp, request)
        change(request)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await shown_again(dp, request)
    assert caught.value.code() in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL}
    assert "Unexpected" not in (caught.value.details() or "")


@pytest.mark.parametrize("place", [2, -1, -(2**63), 2**63 - 1])
async def test_a_total_that_there_is_not_is_refused(place: int) -> None:
    """Nor does a position count from the end."""
    async with serving(servicer_of(TOTALS)) as dp:
        request = await request_with_totals(dp)
        request.chunk.elements.total_positions[0] = place
        code, _, metadata = await error_of(shown_again(dp, request))
    assert (grpc.StatusCode.INVALID_ARGUMENT, "chunk.elements") == (code, metadata["field"])


@pytest.mark.slow
async def test_a_release_with_many_totals_can_be_sent() -> None:
    """150,000 totals of 60 letters are no more than their elements, which travel in chunks."""
    async with serving(servicer_of(TOTALS)) as dp:
        _, release = await with_totals(dp, [f"{number:060}" for number in range(150_000)])
    assert release.kept.element_count > 0


@pytest.mark.parametrize("part", ["information", "calls"])
async def test_a_price_below_nothing_is_not_authentic(dp: Any, part: str) -> None:
    """It is no internal error."""
    kept = (await whole(dp, question("cohort"), "cohort")).kept
    setattr(kept.bill.cost, part, -1)
    request = showing((await translated(dp, question("cohort"))).plan, kept)
    code, reason, _ = await error_of(shown_again(dp, request))
    assert (grpc.StatusCode.FAILED_PRECONDITION, "RELEASE_NOT_AUTHENTIC") == (code, reason)


def test_no_statement_says_that_an_interval_always_covers() -> None:
    """A confidence is strictly below 1, so no sentence rounds it to 100 %."""
    said = covering(IntervalKind.PLAIN, 0.9999999)
    assert "100 %" not in said.text
    assert said.values == ("99.99999 %",)
