"""Answers that cannot be - of an engine or of dp_service - are no results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector import AsyncPrivateClient, new_releases, shown_releases
from pinot_connector.client import DEFAULT_CONFIDENCE
from pinot_connector.element_messages import without
from pinot_connector.engines.base import EngineAnswer
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ChargedUnanswered, IncompleteAnswer, OutcomeUnknown
from pinot_connector.histograms import MAX_ROW_BYTES
from pinot_connector.release_store import MemoryReleaseStore
from pinot_connector.releases import verify
from pinot_connector.results import messages_of
from tests.support.clients import Corrupting, Corruption, asking_client, translation_of, untouched
from tests.support.relay import relayed
from tests.support.two_looks import held_and_spent
from tests.support.world import World, new_account


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


def _cost(release: dp_pb2.Release) -> None:
    for part in (release.bill, release.shown, release.kept.bill):
        part.cost.information += 1


def _calls(release: dp_pb2.Release) -> None:
    for part in (release.bill, release.shown, release.kept.bill):
        part.cost.calls += 1


def _unit(release: dp_pb2.Release) -> None:
    for part in (release.bill, release.shown, release.kept.bill):
        part.cost.unit_id = "f" * 32


def _query(release: dp_pb2.Release) -> None:
    for part in (release.bill, release.shown, release.kept.bill):
        part.query_id = "f" * 64


SPOILT: dict[str, Callable[[dp_pb2.Release], object]] = {
    "costs more": _cost,
    "more calls": _calls,
    "other unit": _unit,
    "other query": _query,
    "cheaper than shown": lambda release: setattr(release.bill.cost, "information", 0),
    "other confidence": lambda release: setattr(release.shown, "confidence", 0.9),
    "other release shown": lambda release: setattr(release.shown, "release_id", "1" * 64),
    "other release kept": lambda release: setattr(release.kept.bill, "release_id", "1" * 64),
    "other price kept": lambda release: setattr(release.kept.bill.cost, "information", 0),
    "other ticket kept": lambda release: setattr(release.kept.bill, "charge_ticket", b"x"),
    "other key kept": lambda release: setattr(release.kept, "key_id", "f" * 16),
    "nothing kept": lambda release: release.ClearField("kept"),
    "no elements kept": lambda release: release.kept.ClearField("elements"),
    "no counts kept": lambda release: release.kept.elements.ClearField("noisy_counts"),
    "sums kept": lambda release: release.kept.elements.sums.add(values=[1]),
    "cells kept": lambda release: release.kept.elements.cells.add(cells=[1]),
    "another column": lambda release: setattr(release.kept.elements.columns[0], "name", "x"),
    "more columns": lambda release: release.kept.elements.columns.add(name="x"),
    "more shown than kept": lambda release: setattr(release.shown, "element_count", 2),
    "more kept than there": lambda release: setattr(release.kept, "element_count", 2),
    "rows beyond": lambda release: release.rows.append(1),
    "counts of its own": lambda release: release.elements.noisy_counts.append(7),
}


@pytest.mark.parametrize("wrong", SPOILT)
async def test_a_release_that_does_not_match_its_plan_is_never_shown(
    world: World, engine: DuckDBEngine, wrong: str
) -> None:
    """Another question, price, release or number of elements than is asked, kept or shown: the full price is paid."""
    async with relayed(world) as relay:
        async with asking_client(world, engine, dp=relay.address) as client:
            await client.top_k("feedback", "article_id", 5)
        translation = await translation_of(relay.requests("TranslateQuery")[-1], world)
        real = _drawn(translation, [0])
        spoilt = _drawn(translation, [0])
        SPOILT[wrong](spoilt.release)
        async with asking_client(world, engine, dp=relay.address) as client:
            relay.replies["AddNoiseUnary"] = spoilt.SerializeToString()
            said = "cost.unit_id: expected [0-9a-f]{32}, got f{32}" if wrong == "other unit" else None
            with pytest.raises(ChargedUnanswered, match=said) as ended:
                await client.top_k("feedback", "article_id", 5)
            assert await held_and_spent(client) == (*ended.value.charged, 0, 0)
            worst = translation.worst_case_cost
            assert ended.value.charged == (worst.information, worst.calls)
            relay.replies["AddNoiseUnary"] = real.SerializeToString()
            assert [9] == [row.noisy_count for row in (await client.top_k("feedback", "article_id", 5)).rows]


async def test_a_release_is_verified_once_however_it_comes(
    world: World, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is drawn, and as it is shown again of what is kept: one that does not match is not shown there either."""
    verified: list[dp_pb2.Release] = []

    def counted(release: dp_pb2.Release, *others: Any) -> None:
        verified.append(release)
        verify(release, *others)

    for module in (new_releases, shown_releases):
        monkeypatch.setattr(module, "verify", counted)
    store = MemoryReleaseStore()
    async with relayed(world) as relay, AsyncExitStack() as stack:

        async def client_of_another_account() -> AsyncPrivateClient:
            """Returns a client that has shown nothing yet."""
            account, dp, budget = new_account(), relay.address, world.budget
            client = AsyncPrivateClient(dp=dp, budget=budget, account=account, engine=engine, releases=store)
            return await stack.enter_async_context(client)

        await (await client_of_another_account()).top_k("feedback", "article_id", 4)
        assert len(verified) == 1
        await (await client_of_another_account()).top_k("feedback", "article_id", 4)
        assert (len(verified), relay.methods.count("ShowRelease")) == (2, 1)
        spoilt = dp_pb2.ShowReleaseResponse(
            shown=verified[-1].elements, end=without(verified[-1], "elements")
        )
        spoilt.end.bill.query_id = "f" * 64
        relay.replies["ShowRelease"] = spoilt.SerializeToString()
        last = await client_of_another_account()
        with pytest.raises(ChargedUnanswered) as ended:
            await last.top_k("feedback", "article_id", 4)
        assert await held_and_spent(last) == (*ended.value.charged, 0, 0)


async def test_what_a_later_version_says_more_is_not_passed_on(world: World, engine: DuckDBEngine) -> None:
    """A gateway sends only what it knows."""
    more = b"\xf8\x7f\x01"  # Field 2047, which is 1.
    async with relayed(world) as relay:
        async with asking_client(world, engine, dp=relay.address) as client:
            await client.top_k("feedback", "article_id", 5)
        translation = await translation_of(relay.requests("TranslateQuery")[-1], world)
        later = _drawn(translation, [0])
        for part in (later.release.shown, later.release.shown.parameters, later.release.elements):
            part.MergeFromString(more)
        relay.replies["AddNoiseUnary"] = later.SerializeToString()
        async with asking_client(world, engine, dp=relay.address) as client:
            sent = messages_of(await client.top_k("feedback", "article_id", 5))
    assert not any(more in message.SerializeToString() for message in sent)


def _drawn(translation: dp_pb2.TranslateQueryResponse, values: list[int]) -> dp_pb2.AddNoiseUnaryResponse:
    """Returns a release of these days, or articles, that keeps every rule."""
    bill = dp_pb2.Bill(query_id=translation.query_id, release_id="0" * 64, cost=translation.worst_case_cost)
    shown = dp_pb2.Shown(
        query_id=bill.query_id,
        release_id=bill.release_id,
        cost=bill.cost,
        element_count=len(values),
        parameters=translation.parameters,
        interval_kind=dp_pb2.INTERVAL_KIND_PLAIN,
        confidence=DEFAULT_CONFIDENCE,
    )
    nines = [9] * len(values)
    elements = dp_pb2.ShownElements(noise_lower=nines, noise_upper=nines)
    kept = dp_pb2.Kept(bill=bill, element_count=len(values), elements=dp_pb2.KeptElements(noisy_counts=nines))
    (column,) = translation.columns
    message = kept.elements.columns.add(name=column.name)
    if column.type == histogram_pb2.COLUMN_TYPE_DATE:
        message.dates.days.extend(values)
    else:
        message.strings.values.extend(map(str, values))
    release = dp_pb2.Release(shown=shown, elements=elements, bill=bill, kept=kept)
    return dp_pb2.AddNoiseUnaryResponse(release=release)


@pytest.mark.parametrize("wrong", ["day", "mechanism", "consistency", "intervals", "number"])
async def test_a_release_that_cannot_be_shown_is_charged_in_full(
    world: World, engine: DuckDBEngine, wrong: str
) -> None:
    """A day that no calendar has, words of a later version, a number that is none."""
    async with relayed(world) as relay:
        async with asking_client(world, engine, dp=relay.address) as client:
            await client.top_k("feedback", "day", 3)
        translation = await translation_of(relay.requests("TranslateQuery")[-1], world)
        async with asking_client(world, engine, dp=relay.address) as client:
            relay.replies["AddNoiseUnary"] = _unshowable(translation, wrong).SerializeToString()
            with pytest.raises(ChargedUnanswered) as ended:
                await client.top_k("feedback", "day", 3)
            assert await held_and_spent(client) == (*ended.value.charged, 0, 0)
            relay.replies["AddNoiseUnary"] = _drawn(translation, [0]).SerializeToString()
            assert 1 == len((await client.top_k("feedback", "day", 3)).rows)


def _unshowable(translation: dp_pb2.TranslateQueryResponse, wrong: str) -> dp_pb2.AddNoiseUnaryResponse:
    response = _drawn(translation, [2**31 - 1 if wrong == "day" else 0])
    shown = response.release.shown
    match wrong:
        case "mechanism":
            shown.parameters.mechanism = 99  # type: ignore[assignment]  # a later version's
        case "consistency":
            shown.parameters.consistency = 99  # type: ignore[assignment]
        case "intervals":
            shown.interval_kind = 99  # type: ignore[assignment]
        case "number":
            shown.parameters.epsilon_per = "1/0"
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
