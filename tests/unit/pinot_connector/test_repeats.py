"""What a repeat asks: the policy of now, the engine only if no policy fixes a version; and in later windows as well."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from budget_service.server.hosting import serving
from budget_service.server.ledger import Ledger
from budget_service.stores.sqlite.store import SqliteStore
from pinot_connector import AsyncPrivateClient, PrivateResult, Timeouts
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.errors import AccountUnknown, BudgetExhausted, EngineUnavailable
from pinot_connector.release_store import MemoryReleaseStore
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from pinot_connector.single_flight import SingleFlight, Turn
from pinot_connector.telemetry import recorded_by
from tests.support.budget_samples import SteppedClock
from tests.support.clients import SHORT, Counted, client_of
from tests.support.relay import relayed
from tests.support.release_stores import KEYS
from tests.support.world import World, new_account, write_growing, write_small
from tests.unit.budget_service.served import SETTINGS
from tests.unit.pinot_connector.watched_engine import Watched


class Lookups:
    """Counts lookups."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def question(self, outcome: str, seconds: float) -> None:
        """Does nothing."""

    def engine_call(self, engine: str, step: str, outcome: str) -> None:
        """Does nothing."""

    def budget_wait(self, outcome: str, seconds: float) -> None:
        """Does nothing."""

    def release_lookup(self, outcome: str) -> None:
        """Notes the outcome."""
        self.outcomes.append(outcome)


async def test_a_repeat_of_closed_periods_asks_the_policy_and_no_engine(world: World, tmp_path: Path) -> None:
    """One call to dp_service; the engine is not asked, and the ledger has said with the charge that it is open."""
    write_growing(tmp_path / "growing.parquet", members=1000)
    engine, lookups = Watched({"growing": tmp_path / "growing.parquet"}), Lookups()
    async with relayed(world) as relay:
        client = client_of(relay.address, engine)
        with recorded_by(lookups):
            async with client:
                await client.histogram("growing", "element")
                before, asked = len(relay.methods), list(engine.asked)
                again = await client.histogram("growing", "element")
                assert ["TranslateQuery"] == relay.methods[before:]
                await asyncio.gather(*(client.histogram("growing", "element") for _ in range(3)))
                assert ["TranslateQuery"] == relay.methods[before + 1 :]
                other = client.on_behalf_of(new_account().split("/"))
                await other.histogram("growing", "element")
    assert asked == engine.asked == ["version", "run"]
    assert () == again.remaining
    assert ["missed", *["given"] * 4, "charged"] == lookups.outcomes
    engine.close()


@pytest.mark.parametrize(("seconds", "is_read_again"), [(60.0, False), (0.0, True)])
async def test_without_a_fixed_version_a_recent_reading_of_the_engines_counts(
    world: World, tmp_path: Path, seconds: float, is_read_again: bool
) -> None:
    """While it is recent, neither version nor rows are asked for; afterwards new rows are another question."""
    path = tmp_path / "small.parquet"
    write_small(path, 1000)
    engine = Watched({"small": path})
    client = client_of(world, engine, timeouts=Timeouts(data_version=seconds))
    async with client:
        paid = await client.histogram("small", "element")
        asked = len(engine.asked)
        again = await client.histogram("small", "element")
        assert (["version"] if is_read_again else []) == engine.asked[asked:]
        assert (paid.rows, 0) == (again.rows, again.charged.information)
        write_small(path, 1001)
        later = await client.histogram("small", "element")
        assert is_read_again == (later.query_id != paid.query_id) == (later.charged.information > 0)
    engine.close()


async def test_what_is_kept_is_not_given_to_an_account_that_cannot_pay(world: World, tmp_path: Path) -> None:
    """One without a budget, and one whose budget does not hold the worst case; nothing of the release is shown."""
    write_growing(tmp_path / "growing.parquet", members=1000)
    write_small(tmp_path / "small.parquet", 1000)
    engine = Watched({name: tmp_path / f"{name}.parquet" for name in ("growing", "small")})
    async with client_of(world, engine) as client:
        await client.histogram("growing", "element")
        with pytest.raises(AccountUnknown):
            await client.on_behalf_of(["nowhere", "at-all"]).histogram("growing", "element")
        poor = client.on_behalf_of(new_account("poor").split("/"))
        await poor.histogram("small", "element")
        with pytest.raises(BudgetExhausted):
            await poor.histogram("growing", "element")
    engine.close()


async def test_those_who_wait_for_an_engine_that_fails_fail_with_it(world: World, tmp_path: Path) -> None:
    """Twenty questions at once meet one failure, not twenty time-outs one after the other."""

    class Failing(Watched):
        def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
            self.asked.append("run")
            raise EngineUnavailable("it took too long")

    write_growing(tmp_path / "growing.parquet", members=1000)
    engine = Failing({"growing": tmp_path / "growing.parquet"})
    async with client_of(world, engine, releases=MemoryReleaseStore()) as client:
        asking = [client.histogram("growing", "element") for _ in range(20)]
        results = await asyncio.gather(*asking, return_exceptions=True)
    assert {EngineUnavailable} == set(map(type, results))
    assert engine.asked.count("run") < 20
    engine.close()


async def test_one_turn_at_a_time() -> None:
    """A turn that ends by an error of its own, or by a cancellation, lets the next one begin."""
    flights: SingleFlight[str] = SingleFlight(lambda error: isinstance(error, ZeroDivisionError))
    turn = flights.turn("key")
    assert turn is not None
    assert None is flights.turn("key")
    assert None is not flights.turn("another")
    waiting = asyncio.ensure_future(flights.wait("key"))
    await asyncio.sleep(0)
    turn.end(KeyError())
    await waiting
    turn.end()
    second = flights.turn("key")
    assert second is not None
    waiting = asyncio.ensure_future(flights.wait("key"))
    await asyncio.sleep(0)
    second.end(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await waiting
    await flights.wait("key")


async def test_a_task_is_given_what_is_found_or_the_turn_to_make_it() -> None:
    """One of them makes it, and the others are given it; a turn of another key ends the one before."""
    flights: SingleFlight[str] = SingleFlight(lambda _: False)
    made: list[str] = []

    async def ask(number: int) -> str:
        async def find() -> str | None:
            await asyncio.sleep(0)
            return made[0] if made else None

        with Turn(flights) as turn:
            found = await turn.found("key", find)
            if found is None:
                await asyncio.sleep(0)
                made.append(found := f"made by {number}")
            return found

    assert {"made by 0"} == set(await asyncio.gather(*map(ask, range(5))))
    with Turn(flights) as turn:
        assert turn.taken("key")
        assert turn.taken("another")
        assert None is not flights.turn("key")
    assert None is not flights.turn("another")


async def test_what_an_account_has_paid_for_is_given_for_nothing_in_every_later_window(
    world: World, tmp_path: Path
) -> None:
    """Rows are deleted between them, the store is opened again for each question, and the engine is asked once.

    An account that has not paid pays for the same release in the last window.
    """
    clock, data = SteppedClock(), tmp_path / "growing.parquet"
    write_growing(data, members=1000)
    engine, ledger = Counted({"growing": data}), SqliteStore.open(tmp_path / "ledger.db", clock)

    async def asked(members: int, *, days: int, account: str = "acme/ann") -> PrivateResult:
        write_growing(data, members=members)
        clock.step(days=days)
        store = SqliteReleaseStore(tmp_path / "releases.db", KEYS)
        async with AsyncPrivateClient(
            dp=world.dp, budget=address, account=account, engine=engine, timeouts=SHORT, releases=store
        ) as client:
            result = await client.histogram("growing", "element")
        await store.close()
        return result

    async with serving(Ledger(ledger), SETTINGS, "127.0.0.1:0") as address:
        results = [
            await asked(1000, days=0),
            await asked(999, days=1),
            # The next month, its second day, a year later, and a clock that jumps back.
            await asked(999, days=31),
            await asked(998, days=1),
            await asked(1, days=366),
            await asked(1, days=-400),
            await asked(1, days=0, account="acme/bob"),
        ]
    await ledger.close()
    engine.close()
    assert {(each.release_id, each.rows) for each in results} == {(results[0].release_id, results[0].rows)}
    assert [each.charged.information for each in results] == [1, 0, 0, 0, 0, 0, 1]
    assert engine.runs == 1
