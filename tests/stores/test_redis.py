"""What only the Redis store meets: crashes, silence, wrong settings and a clock of its own."""

from __future__ import annotations

import asyncio
import itertools
import time
import traceback
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from budget_service.ledger.acts.clock import ResumeClock
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.outcomes import Answer, Charged, Exhausted
from budget_service.ledger.values import NOTHING, Account, Cost, Limit
from budget_service.ledger.windows import DAY, SECOND, Period, Window
from budget_service.stores.interface import (
    OutcomeUnknownError,
    Store,
    StoreUnavailableError,
    StoreUnusableError,
)
from budget_service.stores.opening import open_store
from budget_service.stores.redis import rows
from budget_service.stores.redis.schema import SCHEMA_VERSION
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.row_map import Writes
from budget_service.tuning import Tuning
from tests.support.budget_samples import (
    ANALYST,
    COMPANY,
    Asked,
    SteppedClock,
    cancel,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.ledger_stores import closing, empty
from tests.support.log_events import logged_events
from tests.support.redis_server import DURABLE, RedisServer, redis_cluster, redis_server
from tests.support.some import some
from tests.unit.budget_service.trims import base_of_all

ACCOUNT = Account(("only-redis", "ann"))
OWN = levels(ACCOUNT)
commands = rows._commands


async def spent(store: Store, account: Account = ACCOUNT) -> Cost:
    """Return what an account has spent."""
    return (await store.read(account, levels(account))).levels[-1].spent


def is_now(window: Window) -> bool:
    """Tell whether a window is open by this machine's clock."""
    assert window.end is not None
    return window.start <= time.time_ns() // 1000 < window.end


@pytest.mark.usefixtures("starts_redis")
async def test_a_killed_redis_is_noticed_at_once_and_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    """Unavailable while it is down; after its restart the charge is there and its repeat is known."""
    with redis_server(tmp_path) as server:
        async with closing(await RedisStore.open(server.address)) as store:
            await store.apply(*charge("c", account=ACCOUNT))
            server.kill()
            began = time.monotonic()
            # A connection that has just broken may be noticed only by using it; then the outcome is unknown.
            with pytest.raises((StoreUnavailableError, OutcomeUnknownError)):
                await store.apply(*charge("d", account=ACCOUNT))
            for call in (store.apply(*charge("d", account=ACCOUNT)), store.read(ACCOUNT, OWN), store.check()):
                with pytest.raises(StoreUnavailableError):
                    await call
            assert time.monotonic() - began < 2
            server.start()
            assert (await store.apply(*charge("c", account=ACCOUNT))).replayed
            assert not (await store.apply(*charge("d", account=ACCOUNT))).replayed
            assert await spent(store) == Cost(8, 2)


@pytest.mark.usefixtures("starts_redis")
async def test_a_silent_redis_leaves_the_outcome_unknown_only_once_a_charge_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silent while it is to load, it has changed nothing; repeated with the same id, what was sent is made once."""
    with redis_server(tmp_path) as server:
        tuning = Tuning(redis_answer_seconds=0.3)
        async with closing(await RedisStore.open(server.address, tuning=tuning)) as store:
            # A connection that has yet to be made sends nothing.
            assert await spent(store) == NOTHING
            with server.frozen(), pytest.raises(StoreUnavailableError):
                await store.apply(*charge("b", account=ACCOUNT))
            with ExitStack() as silence, monkeypatch.context() as patched:

                def made(writes: Writes) -> dict[str, Any]:
                    silence.enter_context(server.frozen())
                    return commands(writes)

                patched.setattr(rows, "_commands", made)
                with pytest.raises(OutcomeUnknownError):
                    await store.apply(*charge("c", account=ACCOUNT))
            assert isinstance((await store.apply(*charge("c", account=ACCOUNT))).outcome, Charged)
            assert await spent(store) == Cost(4, 1)


@pytest.mark.usefixtures("starts_redis")
async def test_a_redis_that_is_killed_under_charges_has_each_one_that_it_acknowledged(tmp_path: Path) -> None:
    """With appendonly and appendfsync always: acknowledged <= spent <= acknowledged + unknown, every repeat known."""
    on = levels(ACCOUNT, own=limit(10**6, 10**6))
    asked = [charge(f"c{index}", Cost(1, 1), account=ACCOUNT, on=on) for index in range(20_000)]
    acknowledged: dict[str, Answer] = {}
    under_load = asyncio.Event()
    with redis_server(tmp_path) as server:
        async with closing(await RedisStore.open(server.address)) as store:

            async def caller(start: int) -> None:
                for request in asked[start::8]:
                    acknowledged[request.request.request_id] = await store.apply(*request)
                    if len(acknowledged) == 500:
                        under_load.set()

            callers = [asyncio.create_task(caller(start)) for start in range(8)]
            await under_load.wait()
            server.kill()
            ended = await asyncio.gather(*callers, return_exceptions=True)
            assert all(isinstance(each, OutcomeUnknownError | StoreUnavailableError) for each in ended)
            server.start()
            found = (await store.read(ACCOUNT, on)).levels[-1].spent.calls
            unknown = sum(isinstance(each, OutcomeUnknownError) for each in ended)
            assert len(acknowledged) <= found <= len(acknowledged) + unknown
            for request in asked:
                if first := acknowledged.get(request.request.request_id):
                    assert await store.apply(*request) == Answer(first.outcome, replayed=True)


SNAPSHOTS_ONLY = ("--save", "60 1", "--appendonly", "no")


@pytest.mark.usefixtures("starts_redis")
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--maxmemory-policy", "allkeys-lru", "--appendonly", "yes"), "noeviction"),
        (("--save", "", "--appendonly", "no"), "forgets"),
        (SNAPSHOTS_ONLY, "--appendonly yes"),
    ],
)
async def test_a_redis_that_would_forget_is_refused(
    tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    """Snapshots are not enough: what came after the last one is gone when Redis is killed."""
    with redis_server(tmp_path, options) as server, pytest.raises(StoreUnusableError, match=complaint):
        await RedisStore.open(server.address)


@pytest.mark.usefixtures("starts_redis")
async def test_a_redis_cluster_is_refused_by_name(tmp_path: Path) -> None:
    """Whichever of its servers is named; nothing is written into it."""
    with redis_cluster(tmp_path) as nodes:
        for node in some(nodes):
            with pytest.raises(StoreUnusableError, match="Redis Cluster"):
                await RedisStore.open(node.address)
            async with Redis.from_url(node.address) as client:
                assert await client.dbsize() == 0


@pytest.mark.usefixtures("starts_redis")
@pytest.mark.parametrize(
    ("setting", "value", "complaint"),
    [("maxmemory-policy", "allkeys-lru", "noeviction"), ("appendonly", "no", "--appendonly yes")],
)
async def test_a_setting_that_turns_bad_is_reported_by_the_check(
    tmp_path: Path, setting: str, value: str, complaint: str
) -> None:
    """And so by health."""
    with redis_server(tmp_path, (*DURABLE, "--save", "60 1")) as server:
        async with closing(await RedisStore.open(server.address)) as store:
            client = Redis.from_url(server.address)
            await client.config_set(setting, value)
            await client.aclose()
            with pytest.raises(StoreUnusableError, match=complaint):
                await store.check()


@pytest.mark.usefixtures("starts_redis")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (DURABLE, ""),
        (("--appendonly", "yes", "--appendfsync", "everysec"), "a power failure loses up to about a second"),
        (
            ("--appendonly", "yes", "--appendfsync", "no"),
            "a power failure loses what the system has not written",
        ),
        (SNAPSHOTS_ONLY, "every charge since its last snapshot"),
    ],
)
async def test_what_a_redis_can_lose_is_said_at_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: tuple[str, ...], said: str
) -> None:
    """In one warning; nothing is said of one that loses nothing."""
    with redis_server(tmp_path, options) as server:
        await (await RedisStore.open(server.address, allow_volatile=options == SNAPSHOTS_ONLY)).close()
    events = logged_events(caplog)
    assert [event for event, _ in events] == (["store.can_lose_charges"] if said else [])
    assert all(said in fields["problem"] for _, fields in events)


@pytest.mark.usefixtures("starts_redis")
async def test_a_full_redis_is_unavailable_and_nothing_is_changed(tmp_path: Path) -> None:
    """The error that memory is full comes before the first write."""
    with redis_server(tmp_path) as server:
        async with closing(await RedisStore.open(server.address)) as store:
            client = Redis.from_url(server.address)
            await client.config_set("maxmemory", "1")
            with pytest.raises(StoreUnavailableError):
                await store.apply(*charge("c", account=ACCOUNT))
            await client.config_set("maxmemory", "0")
            await client.aclose()
            assert not (await store.apply(*charge("c", account=ACCOUNT))).replayed


@pytest.mark.parametrize("schema", [str(SCHEMA_VERSION + 1), None])
async def test_a_program_that_still_runs_when_the_schema_moves_changes_nothing(
    shared_redis: RedisServer, clock: SteppedClock, schema: str | None
) -> None:
    """It would write what it knows; nor does it begin a new ledger in a Redis that was emptied under it."""
    await empty(shared_redis.address)
    client: Any = Redis.from_url(shared_redis.address, decode_responses=True)
    async with closing(await RedisStore.open(shared_redis.address, clock=clock)) as store:
        await store.apply(*charge("before", Cost(1, 1)))
        await store.apply(*reserve("held", Cost(1, 1)))
        await store.check()
        base = await base_of_all(store)
        if schema is None:
            await client.flushall()
        else:
            await client.set("gris:schema", schema)
        kept = {key: await client.dump(key) for key in await client.keys("gris:*")}
        reported = ResumeClock(actor="ops", account=COMPANY, request_id="t", true_time=clock.now)
        limits = SetLimits(actor="ops", account=COMPANY, request_id="s", changes=((ANALYST, limit(9, 9)),))
        for request in (
            charge("c"),
            reserve("r"),
            cancel("x", ends="held"),
            Asked(limits, NO_LIMITS),
            Asked(reported, NO_LIMITS),
        ):
            with pytest.raises(StoreUnavailableError, match="another schema"):
                await store.apply(*request)
        for change in (store.write_base("acme", base), store.drop_trimmed("acme", 9)):
            with pytest.raises(StoreUnavailableError, match="another schema"):
                await change
        with pytest.raises(StoreUnusableError):
            await store.check()
        assert kept == {key: await client.dump(key) for key in await client.keys("gris:*")}
    await empty(shared_redis.address)
    await client.aclose()


async def test_no_charge_is_forgotten_sooner_than_five_weeks_after_its_window(
    shared_redis: RedisServer, clock: SteppedClock
) -> None:
    """By Redis' own clock: so far ahead may that be wrong for a while without an answer or a payment being lost."""
    await empty(shared_redis.address)
    client: Any = Redis.from_url(shared_redis.address, decode_responses=True)
    async with closing(await RedisStore.open(shared_redis.address, clock=clock)) as store:
        await store.apply(*charge("c", Cost(1, 1), release_id="r", query_id="q"))
        (status,) = (await store.read(ANALYST, levels())).levels
    end = status.window.end
    assert end is not None
    names = ("row:outcomes\tc", "row:payments\tacme/ann\trelease\tr", "row:payments\tacme/ann\tquery\tq")
    for name in names:
        left = await client.pttl(f"gris:{{acme}}:{name}") * 1000
        # What the test takes itself is off.
        assert left > end - clock.now + 35 * DAY - 60 * SECOND
    await client.aclose()


async def test_an_id_that_looks_like_a_key_is_no_root(shared_redis: RedisServer, clock: SteppedClock) -> None:
    """Callers choose their ids, and keys end with them."""
    await empty(shared_redis.address)
    odd = ("}:row:roots", "}:row:bases", "x:row:roots", "\troots")
    async with closing(await RedisStore.open(shared_redis.address, clock=clock)) as store:
        for id_ in odd:
            await store.apply(*charge(id_, Cost(1, 1), release_id=id_, query_id=id_))
        assert await store.roots() == ["acme"]


@pytest.mark.parametrize(
    "address",
    [
        "redis://:hush#word@127.0.0.1:1/0",
        "redis://:12345#word@127.0.0.1:1/0",
        "redis://user:12345#word@127.0.0.1:1/0",
        "redis://hush#word@127.0.0.1:1/0",
        "redis://:hush/word@127.0.0.1:1/0",
        "redis://:12345/word@127.0.0.1:1/0",
        "redis://:hush?word@127.0.0.1:1/0",
        "redis://:12345?word@127.0.0.1:1/0",
        "redis://:hush[word@127.0.0.1:1/0",
        "redis://:hush\u2100word@127.0.0.1:1/0",
        "redis://:hush-word@127.0.0.1:notaport/0",
        "redis://:hush%23word@127.0.0.1:1/0",
    ],
)
async def test_no_error_shows_any_part_of_a_password(address: str) -> None:
    """Not even where an unescaped character makes a piece of it look like a port or a host."""
    with pytest.raises((StoreUnavailableError, StoreUnusableError)) as error:
        await open_store(address, allow_volatile=False)
    # Python shows what an exception was raised from, so that nothing may hang there either.
    shown = "".join(traceback.format_exception(error.value)[-1:]) + str(error.value.__cause__)
    assert not any(word in shown for word in ("hush", "word@", "12345", "notaport"))
    assert "%23" in shown or "127.0.0.1:1" in shown


@pytest.mark.parametrize("address", ["redis://127.0.0.1:1/0", "redis://127.0.0.1:notaport"])
async def test_an_address_without_a_redis_is_refused(address: str) -> None:
    """Whether nobody is there or it is no address."""
    with pytest.raises((StoreUnavailableError, StoreUnusableError)):
        await RedisStore.open(address)


async def test_time_is_that_of_redis(shared_redis: RedisServer) -> None:
    """Windows and lapses are by its clock."""
    account = Account(("redis-time", "ann"))
    daily = levels(account, own=limit(10, 5, period=Period.DAY))
    async with closing(await RedisStore.open(shared_redis.address)) as store:
        held = await store.apply(*reserve("r", account=account, on=daily, ttl_seconds=1))
        assert not held.replayed
        window = (await store.read(account, daily)).levels[-1].window
        assert is_now(window)
        await store.apply(*cancel("x", ends="r", account=account, on=daily))


async def test_all_keys_of_a_root_share_a_slot_whatever_its_name(
    shared_redis: RedisServer, clock: SteppedClock
) -> None:
    """A brace in the name cannot end the tag."""
    account = Account(("}a{b}", "ann"))
    await empty(shared_redis.address)
    async with closing(await RedisStore.open(shared_redis.address, clock=clock)) as store:
        await store.apply(*reserve("r", account=account))
        await store.apply(*charge("c", account=account, settles="r", release_id="rel"))
        await store.apply(*reserve("r2", account=account))
        client = Redis.from_url(shared_redis.address, decode_responses=True)
        keys = [key async for key in client.scan_iter("gris:{%7Da%7Bb%7D}:*")]
        await client.aclose()
    assert len(keys) == 13


@pytest.mark.parametrize(("own", "days"), [(limit(10, 5), 17.5), (limit(10, 5, days=60), 59.5)])
async def test_outcomes_and_payments_expire_and_balances_do_not(
    shared_redis: RedisServer, clock: SteppedClock, own: Limit, days: float
) -> None:
    """35 days after the window, or after the day on which what was charged leaves a sliding one."""
    await empty(shared_redis.address)
    async with closing(await RedisStore.open(shared_redis.address, clock=clock)) as store:
        await store.apply(*charge("c", on=levels(own=own), release_id="rel"))
        client = Redis.from_url(shared_redis.address, decode_responses=True)
        kept = {key: await client.ttl(f"gris:{{acme}}:{key}") for key in KEYS}
        await client.aclose()
    expected = days * 86_400 + 35 * 86_400
    assert [expected, expected, -1, -1] == [kept[key] for key in KEYS]


KEYS = ("row:outcomes\tc", "row:payments\tacme/ann\trelease\trel", "row:balances\tacme/ann", "journal")


LAST_UNIT = levels(Account(("overtaken", "ann")), own=limit(2, 2))


async def test_who_is_overtaken_decides_again_and_then_has_its_turn(
    shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another service takes a unit between the load and the write of one, and has to wait before it takes the last."""
    await empty(shared_redis.address)
    one, other = [await RedisStore.open(shared_redis.address) for _ in range(2)]
    begun, commits = rows.RedisTransaction.commit, itertools.count()
    second: list[asyncio.Task[Answer]] = []

    def taken(store: Store, name: str) -> Coroutine[Any, Any, Answer]:
        return store.apply(*charge(name, Cost(1, 1), account=LAST_UNIT[-1].level, on=LAST_UNIT))

    async def commit(self: rows.RedisTransaction, *changes: Any) -> bool:
        match next(commits):
            case 0:
                await taken(other, "first")
            case 2:
                second.append(asyncio.create_task(taken(other, "second")))
                await asyncio.sleep(0.1)
                assert not second[0].done()
        return await begun(self, *changes)

    async with closing(one), closing(other):
        monkeypatch.setattr(rows.RedisTransaction, "commit", commit)
        assert isinstance((await taken(one, "overtaken")).outcome, Charged)
        assert isinstance((await second[0]).outcome, Exhausted)
        assert (await one.read(LAST_UNIT[-1].level, LAST_UNIT)).levels[-1].spent == Cost(2, 2)


async def test_a_write_that_arrives_too_late_is_not_done(
    shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis stops between a load and its write, and runs the write when the window may be over."""
    await empty(shared_redis.address)
    with ExitStack() as stopped:

        def made_while_redis_stops(writes: Writes) -> dict[str, Any]:
            stopped.enter_context(shared_redis.frozen())
            return commands(writes)

        tuning = Tuning(redis_answer_seconds=0.3)
        async with closing(await RedisStore.open(shared_redis.address, tuning=tuning)) as store:
            # The first write opens the connection.
            await store.apply(*charge("first", account=Account(("only-redis", "ben"))))
            with monkeypatch.context() as patched:
                patched.setattr(rows, "_commands", made_while_redis_stops)
                with pytest.raises(OutcomeUnknownError):
                    await store.apply(*charge("c", account=ACCOUNT))
            await asyncio.sleep(0.1)
            stopped.close()
            assert await spent(store) == NOTHING
            assert not (await store.apply(*charge("c", account=ACCOUNT))).replayed


async def test_a_turn_that_nobody_gives_up_ends_by_itself(shared_redis: RedisServer) -> None:
    """Its service has died, or is held up: what it writes later is refused as any write that was overtaken."""
    await empty(shared_redis.address)
    async with (
        Redis.from_url(shared_redis.address) as client,
        closing(await RedisStore.open(shared_redis.address)) as store,
    ):
        await client.set("gris:{acme}:turn", "somebody", px=rows.TURN_MILLISECONDS)
        answers = [asyncio.create_task(store.apply(*charge(f"c{each}", Cost(1, 1)))) for each in range(3)]
        assert all(isinstance(each.outcome, Charged) for each in await asyncio.gather(*answers))
        assert await client.exists("gris:{acme}:turn") == 0


async def test_a_charge_that_the_journal_does_not_take_has_changed_nothing(shared_redis: RedisServer) -> None:
    """Entries come first."""
    await empty(shared_redis.address)
    async with (
        Redis.from_url(shared_redis.address) as client,
        closing(await RedisStore.open(shared_redis.address)) as store,
    ):
        await client.xadd("gris:{acme}:journal", {"last": "there is"}, id=f"{2**64 - 1}-{2**64 - 1}")
        with pytest.raises(StoreUnavailableError):
            await store.apply(*charge("c", Cost(1, 1)))
        assert 1 == len([key async for key in client.scan_iter("gris:{acme}:*")])


async def test_a_change_of_which_a_part_failed_has_an_unknown_outcome(
    shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis takes nothing back: here it refuses the last row."""
    await empty(shared_redis.address)

    def with_one_too_many(writes: Writes) -> dict[str, Any]:
        made = commands(writes)
        made["puts"].append(("gris:{acme}:row:x", "", "x", "-1", False))
        return made

    monkeypatch.setattr(rows, "_commands", with_one_too_many)
    async with closing(await RedisStore.open(shared_redis.address)) as store:
        with pytest.raises(OutcomeUnknownError, match="a part of a change"):
            await store.apply(*charge("c", Cost(1, 1)))
