"""Questions of two looks through the real services: what is counted, what is free, and what an end in between costs.

In the first table the noise is so small that it is always 0, so an answer can be compared with the pure reference.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import grpc
import pytest
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2

from dp_service.bounding.order import kept, table_salt
from gris_gateway.messages import parameters_message
from gris_gateway.rpc_errors import status_of_error
from pinot_connector import AsyncPrivateClient, Timeouts
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import (
    DataChanged,
    EndedBetweenLooks,
    EngineGone,
    EngineUnavailable,
    GrisError,
    IncompleteAnswer,
    PlanExpired,
    ServiceGone,
)
from pinot_connector.parameter_messages import parameters_of
from pinot_connector.release_store import MemoryReleaseStore
from pinot_connector.results import PrivateResult
from tests.support.relay import relayed
from tests.support.rings import needs
from tests.support.world import COFACTS, World, new_account

DELTA_1, DELTA_2, MOST, UNITS = 4, 8, 75, 40_000
_TABLE = """
    member: member_id
    measures: {distinct_members: true, events: {tau: 2, tau_is: clipped}}
    columns:
      member_id: {type: string}
      article_id: {type: string, group_by: true, filter: [in, not_in]}
      app: {type: string, group_by: true}
      score: {type: int64, group_by: true, filter: [in], domain: [-1, 0, 1]}
"""
POLICY = f"""
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  feedback:
    contributions:
      bound: in_query
      delta_0: {DELTA_2}
      units: {UNITS}
      min_count: 3
      names: {{delta_1: {DELTA_1}, share: 0.35, max_names: {MOST}}}{_TABLE}
  many:
    member: member_id
    contributions: {{bound: assumed, delta_0: 1, units: {UNITS}, names: {{share: 0.5, max_names: 10}}}}
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: int64}}
      element: {{type: string, group_by: true}}
  fractions:
    contributions:
      {{bound: in_query, delta_0: 8, units: 10, names: {{delta_1: 4, share: 1/3, max_names: 20}}}}{_TABLE}
  anew:
    consistency: fresh
    contributions:
      {{bound: in_query, delta_0: 8, units: 10, names: {{delta_1: 4, share: 1/3, max_names: 20}}}}{_TABLE}
"""
BUDGET = """
create_at_first_use: true
accounts:
  - path: [t]
    limit: {information: 1000000000, calls: 1000000}
  - path: [t, "*"]
    limit: {information: 100000000, calls: 1000}
  - path: [narrow]
    limit: {information: 1000, calls: 1000}
  - path: [narrow, "*"]
    limit: {information: 15, calls: 5}
"""
Pairs = list[tuple[str, str]]
ARTICLE = "2uoutqfse7c2o"
"""The article that most members have."""
# No end here is one of a slow machine.
UNHURRIED = Timeouts(dp=60, engine=60, budget_attempt=10, budget=30, budget_silence=60, reservation=120)


@pytest.fixture(scope="module")
@needs("process")
def looking_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Both services under the policy above; the ledger demands tickets."""
    folder = tmp_path_factory.mktemp("two looks")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "budget.yaml").write_text(BUDGET)
    with EmbeddedServices(
        policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder / "state"
    ) as services:
        yield World(services.dp_address, services.budget_address, folder)


class Between(DuckDBEngine):
    """DuckDB that writes its queries down and does something before the second one."""

    def __init__(self, before_second: Callable[[], None] = lambda: None, path: Path = COFACTS) -> None:
        super().__init__(dict.fromkeys(("feedback", "fractions", "anew"), path))
        self._before_second = before_second
        self.queries: list[str] = []

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Answers as DuckDB does."""
        self.queries.append(query.sql)
        if len(self.queries) == 2:
            self._before_second()
        return super().run(query, data_version)


@asynccontextmanager
async def asking(
    world: World,
    engine: DuckDBEngine,
    *,
    dp: str = "",
    account: str = "",
    timeouts: Timeouts = UNHURRIED,
) -> AsyncIterator[AsyncPrivateClient]:
    """Give a client with a release store and, unless one is named, an account of its own."""
    async with AsyncPrivateClient(
        dp=dp or world.dp,
        budget=world.budget,
        account=account or new_account(),
        engine=engine,
        timeouts=timeouts,
        releases=MemoryReleaseStore(),
    ) as client:
        yield client
    engine.close()


async def held_and_spent(client: AsyncPrivateClient) -> tuple[int, int, int, int]:
    """Return what the account has spent and what is reserved for it, in information and calls."""
    level = (await client.remaining())[-1]
    return (
        level.spent.information,
        level.spent.calls,
        level.reserved.information,
        level.reserved.calls,
    )


def pairs() -> Pairs:
    """Return members and their articles."""
    query = (
        f"SELECT DISTINCT member_id, article_id FROM read_parquet('{COFACTS}') WHERE member_id IS NOT NULL"  # noqa: S608
    )
    return duckdb.execute(query).fetchall()


def counted(given: Pairs, delta: int) -> list[tuple[str, int]]:
    """Return the counts of articles, each member in at most so many, in descending order; ties by the article."""
    held: dict[str, list[str]] = defaultdict(list)
    for member, article in given:
        held[member].append(article)
    salt = table_salt("feedback", "all")
    counts = Counter(
        article for member, articles in held.items() for article in kept(salt, member, articles, delta)
    )
    return sorted(counts.items(), key=lambda each: (-each[1], each[0].encode()))


def shown(result: PrivateResult) -> list[tuple[str, float | None]]:
    """Return elements and counts."""
    return [(str(row.element[0]), row.noisy_count) for row in result.rows]


async def test_a_release_is_that_of_the_reference_in_two_looks(looking_world: World) -> None:
    """Names by a small bound, then each member bounded again within the names; one charge, one id, free repeats."""
    names = {name for name, _ in counted(pairs(), DELTA_1)[:MOST]}
    within = [(member, article) for member, article in pairs() if article in names]
    expected = counted(within, DELTA_2)
    # A query that bounded nobody, or not within the names, would count otherwise.
    assert expected != counted(within, len(names))
    assert expected != [each for each in counted(pairs(), DELTA_2) if each[0] in names]
    engine = Between()
    async with asking(looking_world, engine) as client:
        whole = await client.histogram("feedback", "article_id")
        assert shown(whole) == expected
        assert len(engine.queries) == 2
        part = await client.top_k("feedback", "article_id", 10)
        more = await client.top_k("feedback", "article_id", 100)
        assert shown(part) == expected[:10]
        assert (more.requested_k, shown(more)) == (100, expected)
        assert {each.release_id for each in (part, more)} == {whole.release_id}
        assert [each.charged.information for each in (whole, part, more)] == [UNITS, 0, 0]
        assert await held_and_spent(client) == (UNITS, 1, 0, 0)
        assert len(engine.queries) == 2
        bounded = whole.parameters.contributions
        assert bounded is not None
        assert bounded.names is not None
        assert (bounded.names.delta_1, bounded.names.max_names) == (DELTA_1, MOST)
        assert parameters_of(parameters_message(whole.parameters)) == whole.parameters


async def test_a_known_domain_takes_one_look(looking_world: World) -> None:
    """All units go into it, and no call."""
    engine = Between()
    async with asking(looking_world, engine) as client:
        result = await client.histogram("feedback", "score")
        assert len(result.rows) == 3
        assert (len(engine.queries), await held_and_spent(client)) == (1, (UNITS, 0, 0, 0))


async def test_a_key_of_several_columns_is_named_whole(looking_world: World) -> None:
    """Elements, and not the values of each column, are what the second look counts."""
    engine = Between()
    async with asking(looking_world, engine) as client:
        result = await client.histogram("feedback", ["article_id", "app"])
        # Two texts in an element: there is room for as many names as the policy says, and each is shown.
        assert len({row.element for row in result.rows}) == MOST
        first, second = (duckdb.execute(_on_file(sql)).fetchall() for sql in engine.queries)
        assert {row.element for row in result.rows} == {(article, app) for article, app, _ in first[:MOST]}
        assert {(*row.element, row.noisy_count) for row in result.rows} == set(second)


def _on_file(sql: str) -> str:
    return sql.replace('"feedback"', f"read_parquet('{COFACTS}')")


async def test_a_first_answer_that_is_streamed_leads_to_a_second_look(
    looking_world: World, tmp_path: Path
) -> None:
    """More than fits into a message; members are bounded by a promise, so only the names make the second query."""
    path = tmp_path / "many.parquet"
    rows = "SELECT i AS member_id, 'an element with a long name ' || (i % 90000) AS element FROM range(180009) AS t(i)"
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    engine = DuckDBEngine({"many": path})
    async with asking(looking_world, engine) as client:
        result = await client.top_k("many", "element", 9)
        assert {(row.element[0], row.noisy_count) for row in result.rows} == {
            (f"an element with a long name {i}", 3) for i in range(9)
        }


async def test_no_name_is_an_empty_answer_that_costs_as_any(looking_world: World) -> None:
    """There is no second query; asked again, it is free."""
    engine = Between()
    async with asking(looking_world, engine) as client:
        for charged in (UNITS, 0):
            result = await client.top_k("feedback", "article_id", 5, where={"article_id": "no such"})
            assert (result.rows, result.charged.information) == ((), charged)
        assert (len(engine.queries), await held_and_spent(client)) == (1, (UNITS, 1, 0, 0))


async def test_two_connectors_draw_the_same_release(looking_world: World) -> None:
    """Without a store that both share: same names, same counts, and the ledger knows that it is paid."""
    account = new_account()
    async with asking(looking_world, Between(), account=account) as client:
        first = await client.top_k("fractions", "article_id", 10)
    async with asking(looking_world, Between(), account=account) as client:
        again = await client.top_k("fractions", "article_id", 10)
    assert (first.rows, first.release_id) == (again.rows, again.release_id)
    assert (first.charged.information, again.charged.information) == (10, 0)


# u_1 is 10/3 units, so 4 are charged.
SPENT = (4, 1, 0, 0)
NOTHING = (0, 0, 0, 0)


def fails(error: GrisError) -> Callable[[], None]:
    """Return what raises an error."""

    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "after"),
    [
        (EngineGone("gone"), NOTHING),
        (EngineUnavailable("took too long"), SPENT),
        (IncompleteAnswer("in part"), SPENT),
    ],
    ids=["gone", "late", "in part"],
)
async def test_an_engine_that_ends_between_the_looks(
    looking_world: World, error: GrisError, after: tuple[int, ...]
) -> None:
    """Gone, it gives all back: no name did that. A time-out and anything else pays for the names."""
    async with asking(looking_world, Between(fails(error))) as client:
        if after == NOTHING:
            with pytest.raises(type(error)):
                await client.top_k("fractions", "article_id", 5)
        else:
            with pytest.raises(EndedBetweenLooks, match="4 information and 1 call") as ended:
                await client.top_k("fractions", "article_id", 5)
            assert ended.value.charged == (4, 1)
        assert await held_and_spent(client) == after


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
        with pytest.raises(EndedBetweenLooks):
            await client.top_k("fractions", "article_id", 5)
        result = await client.top_k("fractions", "article_id", 5)
        assert result.charged.information == 10
        assert await held_and_spent(client) == (14, 2, 0, 0)
        # The same names in the same order, both times: the second look is the third and last query.
        assert engine.queries[1] == engine.queries[3]


async def test_a_caller_who_leaves_between_the_looks_pays_for_the_first(looking_world: World) -> None:
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


@pytest.mark.parametrize(
    ("code", "after"), [(grpc.StatusCode.UNAVAILABLE, NOTHING), (grpc.StatusCode.DEADLINE_EXCEEDED, SPENT)]
)
async def test_a_dp_service_that_ends_between_the_looks(
    looking_world: World, code: grpc.StatusCode, after: tuple[int, ...]
) -> None:
    """Gone, it gives all back; one that is too late is paid for."""
    async with relayed(looking_world) as relay:

        def fail_from_now_on() -> None:
            relay.refusals["AddNoiseUnary"] = code

        async with asking(looking_world, Between(fail_from_now_on), dp=relay.address) as client:
            expected = ServiceGone if after == NOTHING else EndedBetweenLooks
            with pytest.raises(expected):
                await client.top_k("fractions", "article_id", 5)
            assert await held_and_spent(client) == after


# Two looks are held for 4 s, of which 1 s is left for the charge.
SHORT = replace(UNHURRIED, reservation=2)


@asynccontextmanager
async def budget_wanted(world: World, account: str, *, cancelled: bool) -> AsyncIterator[None]:
    """Ask another question of the account that its budget holds only once; it is paid, or cancelled at the end."""
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
            await other
        yield
        other.cancel()
        over.set()
        await asyncio.gather(other, return_exceptions=True)


@pytest.mark.parametrize(
    ("other", "error", "table"),
    [
        ("none", None, "fractions"),
        ("none", EngineUnavailable("late"), "fractions"),
        ("spends", None, "fractions"),
        ("holds", None, "fractions"),
        ("holds", EngineUnavailable("late"), "fractions"),
        ("holds", EngineGone("gone"), "fractions"),
        ("holds", None, "anew"),
    ],
    ids=str,
)
async def test_a_second_look_that_outlives_its_reservation_pays_for_the_first(
    looking_world: World, other: str, error: GrisError | None, table: str
) -> None:
    """However it ends then, and if another question takes what is left of the budget."""
    reached, over, account = threading.Event(), threading.Event(), new_account("narrow")

    def wait() -> None:
        reached.set()
        over.wait(30)
        if error is not None:
            raise error

    async with asking(looking_world, Between(wait), account=account, timeouts=SHORT) as client:
        question = asyncio.ensure_future(client.top_k(table, "article_id", 5))
        assert await asyncio.to_thread(reached.wait, 60)
        await asyncio.sleep(2 * SHORT.reservation + 1)
        async with AsyncExitStack() as stack:
            if other != "none":
                wanted = budget_wanted(looking_world, account, cancelled=other == "holds")
                await stack.enter_async_context(wanted)
            over.set()
            with pytest.raises(EndedBetweenLooks, match="4 information and 1 call"):
                await question
        expected = (14, 1, 0, 0) if other == "spends" else SPENT
        assert await held_and_spent(client) == expected


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
        async with AsyncPrivateClient(
            dp=relay.address,
            budget=relay.address,
            account=new_account("narrow"),
            engine=engine,
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


async def test_a_first_look_whose_answer_is_too_late_is_paid_for(looking_world: World) -> None:
    """Its names may be drawn by then."""
    async with relayed(looking_world) as relay:
        relay.refusals["AddNoiseUnary"] = grpc.StatusCode.DEADLINE_EXCEEDED
        engine = Between()
        async with asking(looking_world, engine, dp=relay.address) as client:
            with pytest.raises(EndedBetweenLooks):
                await client.top_k("fractions", "article_id", 5)
            assert len(engine.queries) == 1
            assert await held_and_spent(client) == SPENT


def _copy_to(path: Path, *, but: str = "") -> None:
    new = path.with_suffix(".new")
    columns = "member_id, article_id, app, score"
    query = f"SELECT {columns} FROM read_parquet('{COFACTS}') WHERE article_id <> '{but}'"  # noqa: S608
    duckdb.execute(f"COPY ({query}) TO '{new}' (FORMAT parquet)")
    new.replace(path)


async def test_data_that_move_between_the_looks_give_all_back_and_are_asked_again(
    looking_world: World, tmp_path: Path
) -> None:
    """Both looks are on one version of the data: the question starts again, and pays once."""
    path = tmp_path / "moving.parquet"
    _copy_to(path)
    async with asking(looking_world, Between(lambda: _copy_to(path, but=ARTICLE), path)) as client:
        result = await client.top_k("fractions", "article_id", 5)
        assert len(result.rows) == 5
        assert ARTICLE not in [name for name, _ in shown(result)]
        assert await held_and_spent(client) == (10, 1, 0, 0)


async def test_every_end_is_paid_for_where_answers_do_not_repeat(
    looking_world: World, tmp_path: Path
) -> None:
    """With fresh noise each try would show other names: a caller that makes the data move would see them all."""
    path = tmp_path / "moving.parquet"
    _copy_to(path)
    async with asking(looking_world, Between(lambda: _copy_to(path, but=ARTICLE), path)) as client:
        with pytest.raises(EndedBetweenLooks):
            await client.top_k("anew", "article_id", 5)
        assert await held_and_spent(client) == SPENT
    async with asking(looking_world, Between(fails(EngineGone("gone")))) as client:
        with pytest.raises(EndedBetweenLooks):
            await client.top_k("anew", "article_id", 5)
        assert await held_and_spent(client) == SPENT


async def test_fresh_answers_have_noise_of_their_own_and_are_charged_each(looking_world: World) -> None:
    """In both looks."""
    async with asking(looking_world, Between()) as client:
        one, other = [await client.top_k("anew", "article_id", 5) for _ in range(2)]
        assert one.release_id != other.release_id
        assert await held_and_spent(client) == (20, 2, 0, 0)


async def test_one_reservation_and_one_charge_carry_both_looks(looking_world: World) -> None:
    """The worst case is reserved before the first look, and nothing is sent to the ledger between the two."""
    async with (
        relayed(looking_world) as relay,
        AsyncPrivateClient(
            dp=relay.address,
            budget=relay.address,
            account=new_account(),
            engine=Between(),
            timeouts=UNHURRIED,
            releases=MemoryReleaseStore(),
        ) as client,
    ):
        await client.top_k("fractions", "article_id", 5)
        order = [each for each in relay.methods if each not in ("TranslateQuery", "GetBudget")]
        assert order == ["ReserveBudget", "AddNoiseUnary", "AddNoiseUnary", "UpdateBudget"]
        (reserved,) = map(budget_pb2.ReserveBudgetRequest.FromString, relay.requests("ReserveBudget"))
        assert (reserved.max_cost.information, reserved.max_cost.calls) == (10, 1)
        # Two queries take twice as long.
        assert reserved.ttl.seconds == 2 * UNHURRIED.reservation
        looks = [
            dp_pb2.AddNoiseUnaryRequest.FromString(each).header for each in relay.requests("AddNoiseUnary")
        ]
        assert looks[0].data_version == looks[1].data_version


def test_a_gateway_says_what_was_charged_and_not_what_failed() -> None:
    """A code that no client tries again by itself: each try would be charged."""
    status = status_of_error(EndedBetweenLooks("the engine took too long", 4, 1))
    assert status.code is grpc.StatusCode.ABORTED
    assert "4 information and 1 call" in status.details
    assert "engine" not in status.details


def test_only_ends_that_names_do_not_decide_are_free() -> None:
    """What is refused, late, broken or no longer honoured is none of them."""
    assert not issubclass(PlanExpired, ServiceGone)
    assert not issubclass(DataChanged, EngineGone)
    assert not issubclass(EngineUnavailable, EngineGone)
