"""Answers that cannot be - of an engine or of dp_service - are no results."""

from __future__ import annotations

import pytest
from gris.dp.v1 import dp_pb2

from pinot_connector.engines.base import EngineAnswer
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import (
    IncompleteAnswer,
    IntegrityError,
)

from .asking import Corrupting, Corruption, asking_client, translation_of, untouched
from .lines import relayed
from .world import World


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
        translation = await translation_of(relay.requests("TranslateQuery")[0], world)
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
