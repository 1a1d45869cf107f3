"""The RPCs of dp_service over a real gRPC connection: answers, and every error with its code and field."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from gris.common.v1 import histogram_pb2
from gris.dp.v1 import dp_pb2, dp_pb2_grpc, question_pb2
from grpc_status import rpc_status

from dp_service.queries.policy import parse_policy
from dp_service.releases.keys import KeySet, NoiseKey
from dp_service.server.service import DpServicer, Outside

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


@pytest.fixture
def clock() -> Clock:
    """Return the service's clock."""
    return Clock()


@pytest.fixture
async def dp(clock: Clock) -> AsyncIterator[dp_pb2_grpc.DpServiceAsyncStub]:
    """Serve on a free port and return a stub."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 16 * 2**20)])
    servicer = DpServicer(parse_policy(POLICY), KeySet(KEY), Outside(clock, Entropy()))
    dp_pb2_grpc.add_DpServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    limits = [("grpc.max_receive_message_length", 16 * 2**20)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=limits) as channel:
        yield dp_pb2_grpc.DpServiceStub(channel)  # type: ignore[misc]  # one stub class serves both kinds
    await server.stop(None)


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


@pytest.mark.parametrize(
    ("by", "mechanism", "rows", "worst"),
    [
        ("article", dp_pb2.MECHANISM_UNK_GUMB, 1001, (5, 1)),
        ("cohort", dp_pb2.MECHANISM_UNK_LAP, 1001, (1, 1)),
        ("score", dp_pb2.MECHANISM_KNOWN_GUMB, 3, (4, 0)),
        ("app", dp_pb2.MECHANISM_KNOWN_LAP, 2, (1, 0)),
    ],
)
async def test_translation_picks_mechanism_rows_and_price(
    dp: Any, by: str, mechanism: dp_pb2.Mechanism, rows: int, worst: tuple[int, int]
) -> None:
    """Each of the four settings has its mechanism, fetches its rows and reserves its worst case."""
    plan = await translated(dp, question(by))
    estimate = await dp.EstimateCost(dp_pb2.EstimateCostRequest(question=question(by)))
    assert mechanism == plan.parameters.mechanism == estimate.parameters.mechanism
    assert rows == plan.row_limit
    assert worst == (plan.worst_case_cost.information, plan.worst_case_cost.calls)
    assert estimate.worst_case_cost == plan.worst_case_cost
    assert {"duckdb", "pinot"} == {query.dialect for query in plan.engine_queries}


@pytest.mark.parametrize("by", ALL_COLUMNS)
async def test_unary_and_stream_give_the_same_release(dp: Any, by: str) -> None:
    """However the rows travel, in however many chunks, the release is one and the same."""
    unary = await released(dp, question(by), by)
    plan, answer = await translated(dp, question(by)), answer_of(by)
    responses = await streamed(dp, parts(plan, one_row_chunks(answer), len(answer.counts)))
    assert unary.release == responses[-1].end
    assert unary.elements.noisy_counts == [n for r in responses[:-1] for n in r.chunk.noisy_counts]
    assert len(unary.elements.noisy_counts) == unary.release.element_count


def one_row_chunks(answer: histogram_pb2.Histogram) -> Iterable[histogram_pb2.Histogram]:
    """Yield an answer of one column row by row."""
    column = answer.columns[0]
    kind = column.WhichOneof("values")
    assert kind is not None
    for value, count in zip(getattr(column, kind).values, answer.counts, strict=True):
        one = histogram_pb2.ElementColumn(name=column.name, **{kind: {"values": [value]}})
        yield histogram_pb2.Histogram(columns=[one], counts=[count])


@pytest.mark.parametrize("by", ALL_COLUMNS)
async def test_asking_again_gives_the_same_answer_and_the_same_ids(dp: Any, by: str) -> None:
    """Repeating a question averages nothing away."""
    first, second = await released(dp, question(by), by), await released(dp, question(by), by)
    assert first == second


@pytest.mark.parametrize("by", ["cohort", "app"])
async def test_any_k_of_a_laplace_release_is_the_same_release(dp: Any, by: str) -> None:
    """A shorter list of a Laplace mechanism is a part of the longer one, with the same ids and price."""
    whole, cut = await released(dp, question(by), by), await released(dp, question(by, k=1), by)
    assert whole.release.release_id == cut.release.release_id
    assert whole.release.query_id == cut.release.query_id
    assert whole.release.cost == cut.release.cost
    assert whole.elements.noisy_counts[:1] == list(cut.elements.noisy_counts)
    assert cut.release.interval_kind == dp_pb2.INTERVAL_KIND_GIVEN_SHOWN
    assert cut.release.element_count == 1


@pytest.mark.parametrize("by", ["article", "score"])
async def test_another_k_of_a_gumbel_release_is_another_release(dp: Any, by: str) -> None:
    """The Gumbel mechanisms pay for k, so k makes another release with other noise."""
    two, one = await released(dp, question(by), by), await released(dp, question(by, k=1), by)
    assert two.release.release_id != one.release.release_id
    assert two.release.query_id != one.release.query_id


async def test_changed_data_meet_other_noise(dp: Any) -> None:
    """One more member in one count changes the release and its id, under the same query id."""
    plan, answer = await translated(dp, question("cohort")), answer_of("cohort")
    changed = histogram_pb2.Histogram(columns=answer.columns, counts=[901, 600, 300, 3])
    first, second = [
        await dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=rows))
        for rows in (answer, changed)
    ]
    assert first.release.query_id == second.release.query_id
    assert first.release.release_id != second.release.release_id
    assert first.release.bottom != second.release.bottom or first.elements != second.elements


async def test_a_plan_gives_one_release_even_with_fresh_noise(dp: Any) -> None:
    """Sending a fresh plan again repeats its release: a retry is no second look."""
    plan = await translated(dp, question(table="drawn_anew"))
    request = dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=answer_of("article"))
    assert await dp.AddNoiseUnary(request) == await dp.AddNoiseUnary(request)


@pytest.mark.parametrize(("by", "scale"), [("article", "6"), ("cohort", "6"), ("score", "6"), ("app", "6")])
async def test_events_get_noise_for_their_tau(dp: Any, by: str, scale: str) -> None:
    """A member with three events hides behind noise of scale 2 tau / e = 6."""
    plan = await translated(dp, question(by, measure=question_pb2.MEASURE_EVENTS))
    release = (await released(dp, question(by, measure=question_pb2.MEASURE_EVENTS), by)).release
    assert (3, scale) == (plan.parameters.tau, plan.parameters.noise_scale)
    assert (3, scale) == (release.parameters.tau, release.parameters.noise_scale)


IMPOSSIBLE: list[tuple[str, int, bool]] = [
    ("article", 2, True),
    ("article", 3, True),
    ("article", 1, False),
    ("article", -5, True),
    ("article", 2**62, True),
    ("score", 1, False),
    ("score", 2, True),
    ("app", -1, False),
    ("app", 1, True),
    ("cohort", 1001, True),
]


@pytest.mark.parametrize(("by", "count", "ended_in_bottom"), IMPOSSIBLE)
async def test_an_impossible_outcome_has_no_price(
    dp: Any, by: str, count: int, ended_in_bottom: bool
) -> None:
    """ComputeCost answers only what AddNoise could have done."""
    plan = await translated(dp, question(by))
    request = dp_pb2.ComputeCostRequest(plan=plan.plan, released=count, ended_in_bottom=ended_in_bottom)
    code, _, metadata = await error_of(dp.ComputeCost(request))
    assert (grpc.StatusCode.INVALID_ARGUMENT, "released") == (code, metadata["field"])


async def test_fresh_consistency_draws_anew_and_is_never_a_known_question(dp: Any) -> None:
    """With fresh noise every translation is a new question and every release a new one."""
    asked = question(table="drawn_anew")
    first, second = await released(dp, asked, "article"), await released(dp, asked, "article")
    assert first.release.query_id != second.release.query_id
    assert first.release.release_id != second.release.release_id


async def test_omitted_counts_are_not_sent_and_halve_the_price(dp: Any) -> None:
    """Without counts there are neither counts nor intervals, and k + 1 units are the worst case."""
    plan = await translated(dp, question(omit_counts=True))
    release = await released(dp, question(omit_counts=True), "article")
    assert plan.worst_case_cost.information == 3
    assert [] == list(release.elements.noisy_counts) == list(release.elements.interval_lower)
    assert release.release.interval_kind == dp_pb2.INTERVAL_KIND_NONE


@pytest.mark.parametrize("by", ALL_COLUMNS)
async def test_the_price_is_what_compute_cost_says_and_never_above_the_worst_case(dp: Any, by: str) -> None:
    """AddNoise and ComputeCost never disagree."""
    plan = await translated(dp, question(by))
    release = (await released(dp, question(by), by)).release
    computed = await dp.ComputeCost(
        dp_pb2.ComputeCostRequest(
            plan=plan.plan, released=release.element_count, ended_in_bottom=release.ended_in_bottom
        )
    )
    assert release.cost == computed.cost
    assert release.cost.information <= plan.worst_case_cost.information


async def test_an_empty_answer_is_released_as_bottom_alone(dp: Any) -> None:
    """A question that matches nobody is answered privately too, and paid."""
    plan = await translated(dp, question())
    release = await dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header(plan)))
    assert (
        release.release.element_count,
        release.release.ended_in_bottom,
        release.release.cost.information,
    ) == (0, True, 2)


async def test_an_absent_element_of_a_known_domain_is_shown(dp: Any) -> None:
    """Nobody used one app: noise decides what is shown of it, not its absence."""
    release = await released(dp, question("app"), "app")
    assert {"line", "web"} == set(release.elements.columns[0].strings.values)


REFUSALS: list[tuple[question_pb2.Question, grpc.StatusCode, str, str]] = [
    (question(table="unknown"), grpc.StatusCode.PERMISSION_DENIED, "rule", "table"),
    (question("unknown"), grpc.StatusCode.PERMISSION_DENIED, "rule", "column"),
    (question("member_id"), grpc.StatusCode.PERMISSION_DENIED, "rule", "member_column"),
    (question(k=0), grpc.StatusCode.INVALID_ARGUMENT, "field", "k"),
    (question(k=-5), grpc.StatusCode.INVALID_ARGUMENT, "field", "k"),
    (question(k=2**62), grpc.StatusCode.INVALID_ARGUMENT, "field", "k"),
    (question("score", k=4), grpc.StatusCode.INVALID_ARGUMENT, "field", "k"),
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


async def test_a_forged_or_old_plan_is_refused(dp: Any, clock: Clock) -> None:
    """A touched plan is not authentic; an untouched one lapses after ten minutes."""
    plan = await translated(dp, question())
    forged = dp_pb2.ReleaseHeader(plan=plan.plan[:-1] + b"x", data_version="v1")
    refused = await error_of(dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=forged)))
    assert refused[:2] == (grpc.StatusCode.FAILED_PRECONDITION, "PLAN_NOT_AUTHENTIC")
    clock.seconds += 600
    for call in (
        dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header(plan))),
        dp.ComputeCost(dp_pb2.ComputeCostRequest(plan=plan.plan)),
    ):
        assert (await error_of(call))[:2] == (grpc.StatusCode.FAILED_PRECONDITION, "PLAN_EXPIRED")


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


async def test_a_client_that_only_waits_is_refused_all_the_same(dp: Any) -> None:
    """A stream that is neither ended nor continued is answered after a moment."""
    call = dp.AddNoise(timeout=20)
    await call.write(dp_pb2.AddNoiseRequest(header=dp_pb2.ReleaseHeader(plan=b"forged")))
    refused = await error_of(call.read())
    assert (grpc.StatusCode.FAILED_PRECONDITION, "PLAN_NOT_AUTHENTIC") == refused[:2]


async def test_an_element_outside_a_known_domain_is_refused(dp: Any) -> None:
    """The engine answered something the query did not ask for."""
    plan = await translated(dp, question("app"))
    column = histogram_pb2.ElementColumn(name="app", strings={"values": ["other"]})
    histogram = histogram_pb2.Histogram(columns=[column], counts=[1])
    code, _, metadata = await error_of(
        dp.AddNoiseUnary(dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=histogram))
    )
    assert (code, metadata["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "histogram")


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


async def test_a_hundred_thousand_elements_pass_both_ways(dp: Any) -> None:
    """Large histograms travel in chunks far below gRPC's limits."""
    size = 100_000
    domain = ", ".join(f"element-{i:06d}" for i in range(size))
    policy = POLICY + f"      large: {{type: string, group_by: true, domain: [{domain}], delta: 1}}\n"
    large = DpServicer(parse_policy(policy), KeySet(KEY), Outside(Clock(), Entropy()))
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 16 * 2**20)])
    dp_pb2_grpc.add_DpServiceServicer_to_server(large, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(
        f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", 16 * 2**20)]
    ) as channel:
        stub: Any = dp_pb2_grpc.DpServiceStub(channel)
        plan = await translated(stub, question("large", table="drawn_anew"))
        names = [f"element-{i:06d}" for i in range(size)]
        chunks = [
            histogram_pb2.Histogram(
                columns=[
                    histogram_pb2.ElementColumn(name="large", strings={"values": names[i : i + 20_000]})
                ],
                counts=[size - j for j in range(i, i + 20_000)],
            )
            for i in range(0, size, 20_000)
        ]
        responses = await streamed(stub, parts(plan, chunks, size))
    await server.stop(None)
    assert size == responses[-1].end.element_count
    assert len(responses) > 2
    assert max(response.ByteSize() for response in responses) <= 2**20
    assert size == sum(len(response.chunk.noisy_counts) for response in responses[:-1])
