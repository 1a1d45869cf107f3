"""Answers that cannot be - of an engine or of dp_service - are no results."""

from __future__ import annotations

import pytest
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.engines.base import EngineAnswer
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import IncompleteAnswer, IntegrityError, OutcomeUnknown
from pinot_connector.histograms import MAX_ROW_BYTES
from tests.support.clients import Corrupting, Corruption, asking_client, translation_of, untouched
from tests.support.relay import relayed
from tests.support.world import World


def _reversed(answer: EngineAnswer) -> EngineAnswer:
    return EngineAnswer(
        tuple(each[::-1] for each in answer.elements), answer.counts[::-1], answer.data_version
    )


def _repeated(answer: EngineAnswer) -> EngineAnswer:
    (elements,) = answer.elements
    return EngineAnswer(([elements[0], *elements[:-1]],), answer.counts, answer.data_version)


def _negative(answer: EngineAnswer) -> EngineAnswer:
    return EngineAnswer(answer.elements, [*answer.counts[:-1], -1], answer.data_version)


def _too_many(answer: EngineAnswer) -> EngineAnswer:
    (elements,) = answer.elements
    more = [f"more {number}" for number in range(2000)]
    return EngineAnswer(([*elements, *more],), answer.counts + [0] * 2000, answer.data_version)


def _of_other_lengths(answer: EngineAnswer) -> EngineAnswer:
    (elements,) = answer.elements
    return EngineAnswer((elements[:-1],), answer.counts, answer.data_version)


def _of_another_type(answer: EngineAnswer) -> EngineAnswer:
    (elements,) = answer.elements
    return EngineAnswer((list(range(len(elements))),), answer.counts, answer.data_version)


@pytest.mark.parametrize(
    "change", [_reversed, _repeated, _negative, _too_many, _of_other_lengths, _of_another_type]
)
async def test_an_answer_that_cannot_be_is_no_result(world: World, change: Corruption) -> None:
    """Unsorted, repeated, negative, too long, ragged or mistyped: refused, and nothing is paid."""
    engine = Corrupting(world, change)
    async with asking_client(world, engine) as client:
        with pytest.raises(IncompleteAnswer):
            await client.top_k("feedback", "article_id", 5)
        assert await untouched(client)
    engine.close()


@pytest.mark.parametrize("wrong", ["cost", "calls", "unit", "count", "query"])
async def test_a_release_that_does_not_match_its_plan_is_never_shown(
    world: World, engine: DuckDBEngine, wrong: str
) -> None:
    """More than the worst case, another currency, another number of elements, another question: refused."""
    real = dp_pb2.AddNoiseUnaryResponse()
    async with relayed(world) as relay:
        async with asking_client(world, engine, dp=relay.address) as client:
            await client.top_k("feedback", "article_id", 5)
        translation = await translation_of(relay.requests("TranslateQuery")[-1], world)
        real.release.query_id = translation.query_id
        real.release.release_id = "0" * 64
        real.release.cost.CopyFrom(translation.worst_case_cost)
        real.elements.columns.add(name="article_id").strings.SetInParent()
        _spoil(real, wrong)
        relay.replies["AddNoiseUnary"] = real.SerializeToString()
        async with asking_client(world, engine, dp=relay.address) as client:
            with pytest.raises(IntegrityError):
                await client.top_k("feedback", "article_id", 5)
            assert await untouched(client)


def _spoil(response: dp_pb2.AddNoiseUnaryResponse, wrong: str) -> None:
    release = response.release
    match wrong:
        case "cost":
            release.cost.information += 1
        case "calls":
            release.cost.calls += 1
        case "unit":
            release.cost.unit_id = "f" * 32
        case "count":
            release.element_count = 1
        case "query":
            release.query_id = "f" * 64


def _shown(translation: dp_pb2.TranslateQueryResponse, days: list[int]) -> dp_pb2.AddNoiseUnaryResponse:
    """Returns a release of these days that keeps every rule."""
    response = dp_pb2.AddNoiseUnaryResponse()
    response.elements.columns.add(name="day").dates.days.extend(days)
    for values in (
        response.elements.noisy_counts,
        response.elements.interval_lower,
        response.elements.interval_upper,
    ):
        values.extend([9] * len(days))
    release = response.release
    release.query_id, release.release_id = translation.query_id, "0" * 64
    release.element_count = len(days)
    release.cost.CopyFrom(translation.worst_case_cost)
    release.parameters.CopyFrom(translation.parameters)
    release.interval_kind = dp_pb2.INTERVAL_KIND_PLAIN
    return response


@pytest.mark.parametrize("wrong", ["day", "mechanism", "consistency", "intervals", "number"])
async def test_a_release_that_cannot_be_shown_is_never_charged(
    world: World, engine: DuckDBEngine, wrong: str
) -> None:
    """A day that no calendar has, words of a later version, a number that is none: found before anything is paid."""
    async with relayed(world) as relay:
        async with asking_client(world, engine, dp=relay.address) as client:
            await client.top_k("feedback", "day", 3)
        translation = await translation_of(relay.requests("TranslateQuery")[-1], world)
        async with asking_client(world, engine, dp=relay.address) as client:
            relay.replies["AddNoiseUnary"] = _unshowable(translation, wrong).SerializeToString()
            with pytest.raises(IntegrityError):
                await client.top_k("feedback", "day", 3)
            assert await untouched(client)
            relay.replies["AddNoiseUnary"] = _shown(translation, [0]).SerializeToString()
            assert 1 == len((await client.top_k("feedback", "day", 3)).rows)


def _unshowable(translation: dp_pb2.TranslateQueryResponse, wrong: str) -> dp_pb2.AddNoiseUnaryResponse:
    response = _shown(translation, [2**31 - 1 if wrong == "day" else 0])
    release = response.release
    match wrong:
        case "mechanism":
            release.parameters.mechanism = 99  # type: ignore[assignment]  # a later version's
        case "consistency":
            release.parameters.consistency = 99  # type: ignore[assignment]
        case "intervals":
            release.interval_kind = 99  # type: ignore[assignment]
        case "number":
            release.parameters.epsilon_per = "1/0"
    return response


@pytest.mark.parametrize("day", [2**31 - 1, -(2**31)])
async def test_a_day_that_cannot_be_shown_never_gets_noise(world: World, day: int) -> None:
    """An engine that knows more days than Python is found out before dp_service is asked."""

    def change(answer: EngineAnswer) -> EngineAnswer:
        (days,) = answer.elements
        return EngineAnswer(([day, *days[1:]],), answer.counts, answer.data_version)

    engine = Corrupting(world, change)
    async with relayed(world) as relay:
        async with asking_client(world, engine, dp=relay.address) as client:
            with pytest.raises(IncompleteAnswer, match="years 1 to 9999"):
                await client.top_k("feedback", "day", 3)
            assert await untouched(client)
        assert "AddNoiseUnary" not in relay.methods
    engine.close()


async def test_a_value_that_no_message_can_hold_is_the_engines_fault(world: World) -> None:
    """It is found before the stream begins, where gRPC would take the error for a cancellation."""

    def change(answer: EngineAnswer) -> EngineAnswer:
        (elements,) = answer.elements
        return EngineAnswer((["x" * MAX_ROW_BYTES, *elements[1:]],), answer.counts, answer.data_version)

    engine = Corrupting(world, change)
    async with asking_client(world, engine) as client:
        with pytest.raises(IncompleteAnswer, match="too long"):
            await client.top_k("feedback", "article_id", 5)
        assert await untouched(client)
    engine.close()


@pytest.mark.parametrize("wrong", ["mode", "moment"])
async def test_a_charge_whose_answer_cannot_be_read_is_an_unknown_outcome(
    world: World, engine: DuckDBEngine, wrong: str
) -> None:
    """The budget was spent, so this is not one of the errors that cost nothing."""
    answer = budget_pb2.UpdateBudgetResponse()
    level = answer.levels.add(path=["t"], mode=budget_pb2.MODE_ENFORCE)
    if wrong == "mode":
        level.mode = 99  # type: ignore[assignment]  # a later version's
    else:
        level.window_end.seconds = 2**62
    async with relayed(world) as relay:
        relay.replies["UpdateBudget"] = answer.SerializeToString()
        async with asking_client(world, engine, budget=relay.address) as client:
            with pytest.raises(OutcomeUnknown):
                await client.top_k("feedback", "article_id", 5)
