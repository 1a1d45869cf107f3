"""How questions of two looks end before they are answered, in every order of events, and what that costs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import grpc
import pytest

from gris_gateway.rpc_errors import status_of_error
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.errors import (
    BudgetExhausted,
    ChargedUnanswered,
    EngineGone,
    EngineRefused,
    EngineUnavailable,
    GrisError,
    IncompleteAnswer,
    OutcomeUnknown,
)
from pinot_connector.release_store import MemoryReleaseStore
from tests.support.clients import blocking_client_of, client_of
from tests.support.embedded import UNHURRIED
from tests.support.log_events import everything_logged, logged_events
from tests.support.relay import Swallower, relayed
from tests.support.two_looks import (
    NOTHING,
    SHORT,
    SPENT,
    Between,
    asking,
    fails,
    held_and_spent,
)
from tests.support.world import COFACTS, World, new_account

ARTICLE = "2uoutqfse7c2o"
"""The article that most members have."""


@pytest.mark.parametrize(
    "error",
    [
        EngineGone("gone"),
        EngineUnavailable("took too long"),
        IncompleteAnswer("in part"),
        RuntimeError("of the engine's own"),
    ],
    ids=["gone", "late", "in part", "unexpected"],
)
async def test_an_engine_that_ends_between_the_looks(
    looking_world: World, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """The question is charged in full, also where the engine is gone: noise decides whether it is asked again."""
    async with asking(looking_world, Between(fails(error))) as client:
        with pytest.raises(ChargedUnanswered, match="10 information and 1 call") as ended:
            await client.top_k("fractions", "article_id", 5)
        assert ended.value.charged == (10, 1)
        status_of_error(ended.value)
        # What nobody expected the operator learns, by its type.
        logged = [each["error"] for name, each in logged_events(caplog) if name == "internal_error"]
        assert logged == ([] if isinstance(error, GrisError) else ["RuntimeError"])
        assert "engine's own" not in f"{ended.value} {everything_logged(caplog)}"
        assert await held_and_spent(client) == SPENT


async def test_no_name_is_drawn_from_an_answer_in_part(looking_world: World) -> None:
    """The first answer is confirmed before it leads to names: nothing is asked or paid after it."""

    class InPart(Between):
        def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
            raise IncompleteAnswer("in part")

    async with relayed(looking_world) as relay:
        engine = InPart()
        async with asking(looking_world, engine, dp=relay.address) as client:
            with pytest.raises(IncompleteAnswer):
                await client.top_k("fractions", "article_id", 5)
            assert "AddNoiseUnary" not in relay.methods
            assert len(engine.queries) == 1
            assert await held_and_spent(client) == NOTHING


async def test_a_question_that_ended_can_be_asked_again(looking_world: World) -> None:
    """It counts as not answered: the whole price is paid, for an answer with the same first look."""
    engine = Between(fails(EngineUnavailable("late")))
    async with asking(looking_world, engine) as client:
        with pytest.raises(ChargedUnanswered):
            await client.top_k("fractions", "article_id", 5)
        result = await client.top_k("fractions", "article_id", 5)
        assert result.charged.information == 10
        assert await held_and_spent(client) == (20, 2, 0, 0)
        # The same names in the same order, both times: the second look is the third and last query.
        assert engine.queries[1] == engine.queries[3]


async def test_a_caller_who_leaves_between_the_looks_pays_in_full(looking_world: World) -> None:
    """When they leave may depend on what they would have seen."""
    reached, over = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        over.wait(20)

    async with asking(looking_world, Between(wait)) as client:
        question = asyncio.ensure_future(client.top_k("fractions", "article_id", 5))
        await asyncio.to_thread(reached.wait, 20)
        question.cancel()
        with pytest.raises(asyncio.CancelledError):
            await question
        over.set()
        assert await held_and_spent(client) == SPENT


async def test_a_caller_who_leaves_before_the_first_look_pays_nothing(looking_world: World) -> None:
    """No noise is drawn by then."""
    reached, over = threading.Event(), threading.Event()

    class Waiting(Between):
        def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
            reached.set()
            over.wait(20)
            return super().run(query, data_version)

    async with asking(looking_world, Waiting()) as client:
        question = asyncio.ensure_future(client.top_k("fractions", "article_id", 5))
        await asyncio.to_thread(reached.wait, 20)
        question.cancel()
        with pytest.raises(asyncio.CancelledError):
            await question
        over.set()
        assert await held_and_spent(client) == NOTHING


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED])
async def test_a_dp_service_that_ends_between_the_looks(looking_world: World, code: grpc.StatusCode) -> None:
    """Gone or too late, the question is charged in full."""
    async with relayed(looking_world) as relay:

        def fail_from_now_on() -> None:
            relay.refusals["AddNoiseUnary"] = code

        async with asking(looking_world, Between(fail_from_now_on), dp=relay.address) as client:
            with pytest.raises(ChargedUnanswered):
                await client.top_k("fractions", "article_id", 5)
            assert await held_and_spent(client) == SPENT


@asynccontextmanager
async def budget_wanted(world: World, account: str, *, cancelled: bool) -> AsyncIterator[None]:
    """Ask another question of the account, whose budget holds one of both; it is refused, or cancelled at the end."""
    over = threading.Event()

    class Waiting(Between):
        def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
            over.wait(20 if cancelled else 0)
            return super().run(query, data_version)

    async with asking(world, Waiting(), account=account) as client:
        other = asyncio.ensure_future(client.histogram("fractions", "score"))
        if cancelled:
            await asyncio.sleep(0.5)
        else:
            with pytest.raises(BudgetExhausted):
                await other
        yield
        other.cancel()
        over.set()
        await asyncio.gather(other, return_exceptions=True)


async def test_a_second_look_that_outlives_its_reservation_is_paid_in_full(looking_world: World) -> None:
    """However it ends then, and if another question wants what is left of the budget."""
    ends: list[tuple[str, GrisError | None, str]] = [
        ("none", None, "fractions"),
        ("none", EngineUnavailable("late"), "fractions"),
        ("wants", None, "fractions"),
        ("holds", None, "fractions"),
        ("holds", EngineUnavailable("late"), "fractions"),
        ("holds", EngineGone("gone"), "fractions"),
        ("holds", None, "anew"),
    ]
    spent = await asyncio.gather(*(_outlived(looking_world, *end) for end in ends))
    assert dict.fromkeys(ends, SPENT) == dict(zip(ends, spent, strict=True))


async def _outlived(
    world: World, other: str, error: GrisError | None, table: str
) -> tuple[int, int, int, int]:
    reached, over, account = asyncio.Event(), threading.Event(), new_account("narrow")
    loop = asyncio.get_running_loop()

    def wait() -> None:
        loop.call_soon_threadsafe(reached.set)
        over.wait(30)
        if error is not None:
            raise error

    async with asking(world, Between(wait), account=account, timeouts=SHORT) as client:
        question = asyncio.ensure_future(client.top_k(table, "article_id", 5))
        await reached.wait()
        await asyncio.sleep(2 * SHORT.reservation + 1)
        async with AsyncExitStack() as stack:
            if other != "none":
                await stack.enter_async_context(budget_wanted(world, account, cancelled=other == "holds"))
            over.set()
            with pytest.raises(ChargedUnanswered, match="10 information and 1 call"):
                await question
        return await held_and_spent(client)


async def test_a_reservation_too_old_for_the_second_look_is_made_again_before_names_are_drawn(
    looking_world: World,
) -> None:
    """So the second look has the time of one query, however long the first one took."""

    class SlowAtFirst(Between):
        def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
            if len(self.queries) == 1:
                time.sleep(SHORT.reservation + 0.5)
            super().confirm(query, answer)

    async with relayed(looking_world) as relay:
        engine = SlowAtFirst()
        async with client_of(
            relay.address,
            engine,
            account=new_account("narrow"),
            timeouts=SHORT,
            releases=MemoryReleaseStore(),
        ) as client:
            result = await client.top_k("fractions", "article_id", 5)
            order = [
                each for each in relay.methods if "Budget" in each or "Reservation" in each or "Add" in each
            ]
            assert [each for each in order if each != "GetBudget"] == [
                "ReserveBudget",
                "ReleaseReservation",
                "ReserveBudget",
                "AddNoiseUnary",
                "AddNoiseUnary",
                "UpdateBudget",
            ]
            assert (result.charged.information, await held_and_spent(client)) == (10, (10, 1, 0, 0))
        engine.close()


# No charge arrives within a second; what is held is so for long enough to be seen on a busy machine.
UNCHARGED = replace(SHORT, budget_attempt=1.0, budget=2, reservation=4)


# The time may end within the last attempt, which then says so: by chance, and not each time.
ROUNDS = 5


async def _uncharged(
    looking_world: World, account: str, error: Exception | None
) -> tuple[type[GrisError], str, tuple[str, ...]]:
    """Ask with an engine that fails so between the looks, and return what is seen of the end."""
    for _ in range(ROUNDS):
        engine = Between(fails(error) if error else lambda: None)
        async with relayed(looking_world) as relay:
            for method in ("UpdateBudget", "ReleaseReservation"):
                relay.refusals[method] = grpc.StatusCode.UNAVAILABLE
            async with asking(
                looking_world, engine, budget=relay.address, account=account, timeouts=UNCHARGED
            ) as client:
                with pytest.raises(GrisError) as ended:
                    await client.top_k("fractions", "article_id", 5)
                # The same calls of the ledger one after the other take as long.
                calls = tuple(dict.fromkeys(each for each in relay.methods if each != "GetBudget"))
                assert await held_and_spent(client) == (0, 0, 10, 1)
                await asyncio.sleep(2 * UNCHARGED.reservation + 0.5)
        if "in time" not in str(ended.value):
            break
    return type(ended.value), str(ended.value).replace(relay.address, "ADDRESS"), calls


async def test_nothing_is_shown_of_a_second_look_while_the_first_cannot_be_charged(
    looking_world: World,
) -> None:
    """Without the ledger, every end is the one of an answer that could not be charged, and what was held lapses."""
    errors = (None, EngineUnavailable("late"), IncompleteAnswer("in part"), EngineRefused("refused"))
    accounts = [new_account() for _ in errors]
    ends = await asyncio.gather(
        *(_uncharged(looking_world, account, error) for account, error in zip(accounts, errors, strict=True))
    )
    assert len(set(ends)) == 1
    assert ends[0][0] is OutcomeUnknown
    async with asking(looking_world, Between(), account=accounts[0]) as client:
        result = await client.top_k("fractions", "article_id", 5)
        assert result.charged.information == 10
        assert await held_and_spent(client) == (10, 1, 0, 0)


async def test_an_answer_that_cannot_be_charged_costs_nothing(looking_world: World) -> None:
    """Neither its first look: it is kept, shown to nobody, and paid for once when it is asked for again."""
    async with relayed(looking_world) as relay:
        relay.refusals["UpdateBudget"] = grpc.StatusCode.UNAVAILABLE
        engine = Between()
        async with asking(looking_world, engine, budget=relay.address, timeouts=UNCHARGED) as client:
            with pytest.raises(OutcomeUnknown):
                await client.top_k("fractions", "article_id", 5)
            assert await held_and_spent(client) == NOTHING
            relay.refusals.clear()
            await client.top_k("fractions", "article_id", 5)
            assert await held_and_spent(client) == (10, 1, 0, 0)
        assert len(engine.queries) == 2


@pytest.mark.parametrize("others", ["wait", "spend"])
async def test_a_connector_that_was_paused_until_its_reservation_had_lapsed(
    looking_world: World, others: str
) -> None:
    """It makes it again and pays for its first look; if there is too little left, it shows that and nothing else."""
    loop, account = asyncio.get_running_loop(), new_account("narrow")

    def pause() -> None:
        loop.call_soon_threadsafe(time.sleep, 2 * SHORT.reservation + 4)
        time.sleep(2 * SHORT.reservation + 0.5)
        if others == "spend":
            other = Between()
            with blocking_client_of(looking_world, other, account=account) as client:
                client.histogram("fractions", "score")
            other.close()
        raise EngineUnavailable("late")

    async with asking(looking_world, Between(pause), account=account, timeouts=SHORT) as client:
        with pytest.raises(ChargedUnanswered if others == "wait" else BudgetExhausted):
            await client.top_k("fractions", "article_id", 5)
        assert await held_and_spent(client) == (SPENT if others == "wait" else (10, 0, 0, 0))


async def test_a_charge_of_a_first_look_whose_answers_are_lost_is_charged_once(looking_world: World) -> None:
    """Each retry has the same request id."""
    async with relayed(looking_world) as relay, Swallower(relay.address).listening() as swallower:

        def lose_answers() -> None:
            swallower.swallow(2)
            raise EngineUnavailable("late")

        timeouts = replace(UNHURRIED, budget_attempt=2)
        async with asking(
            looking_world, Between(lose_answers), budget=swallower.address, timeouts=timeouts
        ) as client:
            with pytest.raises(ChargedUnanswered):
                await client.top_k("fractions", "article_id", 5)
            assert await held_and_spent(client) == SPENT
    assert swallower.swallowed == 2


async def test_a_first_look_whose_answer_is_too_late_is_paid_for(looking_world: World) -> None:
    """Its names may be drawn by then."""
    async with relayed(looking_world) as relay:
        relay.refusals["AddNoiseUnary"] = grpc.StatusCode.DEADLINE_EXCEEDED
        engine = Between()
        async with asking(looking_world, engine, dp=relay.address) as client:
            with pytest.raises(ChargedUnanswered):
                await client.top_k("fractions", "article_id", 5)
            assert len(engine.queries) == 1
            assert await held_and_spent(client) == SPENT


def _copy_to(path: Path, *, but: str = "") -> None:
    new = path.with_suffix(".new")
    columns = "member_id, article_id, app, score"
    query = f"SELECT {columns} FROM read_parquet('{COFACTS}') WHERE article_id <> '{but}'"  # noqa: S608
    duckdb.execute(f"COPY ({query}) TO '{new}' (FORMAT parquet)")
    new.replace(path)


@pytest.mark.parametrize("table", ["fractions", "anew"])
async def test_data_that_move_between_the_looks_end_a_question_that_is_paid_for(
    looking_world: World, tmp_path: Path, table: str
) -> None:
    """Names were drawn from the data before: a caller that makes the data move would learn whether there were any."""
    path = tmp_path / "moving.parquet"
    _copy_to(path)
    async with asking(looking_world, Between(lambda: _copy_to(path, but=ARTICLE), path)) as client:
        with pytest.raises(ChargedUnanswered):
            await client.top_k(table, "article_id", 5)
        assert await held_and_spent(client) == SPENT
