"""What callers can make a ledger remember: only what was charged is remembered for long, and budgets bound that."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from budget_service.ledger.act import Act
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.limits import NO_VERSION, AppliedLimits, LimitsChangedError
from budget_service.ledger.outcomes import Answer, Charged, Reserved
from budget_service.ledger.values import NOTHING, Account, Cost
from budget_service.ledger.windows import SECOND
from budget_service.stores.interface import Store
from tests.support.budget_samples import Asked, SteppedClock, cancel, charge, levels, limit, reserve
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer

HOUR_SECONDS = 3600
TTL_SECONDS = 600
ON = levels(own=limit(100, 50), above=limit(200, 90))
PAID = charge("paid", Cost(5, 1), on=ON, release_id="rel", query_id="q")


def reserved_and_cancelled(name: str) -> Iterator[Asked[Act]]:
    """Hold the worst case, and give it back."""
    yield reserve(f"r{name}", Cost(4, 1), on=ON, ttl_seconds=TTL_SECONDS)
    yield cancel(f"x{name}", ends=f"r{name}", on=ON)


def reserved_for_nothing(name: str) -> Iterator[Asked[Act]]:
    """Hold nothing, and let it lapse."""
    yield reserve(f"z{name}", NOTHING, on=ON, ttl_seconds=TTL_SECONDS)


def forfeited_for_nothing(name: str) -> Iterator[Asked[Act]]:
    """Hold nothing, and forfeit it."""
    yield reserve(f"f{name}", NOTHING, on=ON, ttl_seconds=TTL_SECONDS, forfeits=True)


def lapsed(name: str) -> Iterator[Asked[Act]]:
    """Hold the worst case until it lapses."""
    yield reserve(f"l{name}", Cost(4, 1), on=ON, ttl_seconds=TTL_SECONDS)


def settled_for_nothing(name: str) -> Iterator[Asked[Act]]:
    """Hold the worst case, and be charged nothing."""
    yield reserve(f"s{name}", Cost(4, 1), on=ON, ttl_seconds=TTL_SECONDS)
    yield charge(f"t{name}", NOTHING, on=ON, settles=f"s{name}", release_id=f"rel{name}")


def charged_nothing(name: str) -> Iterator[Asked[Act]]:
    """Charge nothing directly."""
    yield charge(f"n{name}", NOTHING, on=ON, release_id=f"rel{name}")


def charged_again(name: str) -> Iterator[Asked[Act]]:
    """Charge a release that is paid for."""
    yield charge(f"a{name}", Cost(5, 1), on=ON, release_id="rel", query_id="q")


def reserved_again(name: str) -> Iterator[Asked[Act]]:
    """Ask a question that is paid for."""
    yield reserve(f"b{name}", Cost(5, 1), on=ON, query_id="q", ttl_seconds=TTL_SECONDS)
    yield charge(f"c{name}", Cost(5, 1), on=ON, settles=f"b{name}", release_id="rel")


def refused(name: str) -> Iterator[Asked[Act]]:
    """Ask for too much, and cancel what was never reserved."""
    yield charge(f"m{name}", Cost(101, 1), on=ON)
    yield cancel(f"o{name}", ends=f"never{name}", on=ON)


FREE: tuple[Callable[[str], Iterator[Asked[Act]]], ...] = (
    reserved_and_cancelled,
    reserved_for_nothing,
    forfeited_for_nothing,
    lapsed,
    settled_for_nothing,
    charged_nothing,
    charged_again,
    reserved_again,
    refused,
)


def drawn_anew(asked: Asked[Act]) -> Asked[Act]:
    """Give a reservation another id, as the service does at each try."""
    if not isinstance(asked.request, Reserve):
        return asked
    return asked.but(reservation_id=f"again-{asked.request.reservation_id}")


@pytest.mark.slow
@pytest.mark.parametrize("act", FREE)
async def test_what_takes_no_budget_is_forgotten_an_hour_after_it_has_ended(
    any_store: Store, clock: SteppedClock, act: Callable[[str], Iterator[Asked[Act]]]
) -> None:
    """Until then a retry is a replay of the first answer; a reservation has ended once it has lapsed."""
    await any_store.apply(*PAID)
    requests = list(act(""))
    first = [await any_store.apply(*each) for each in requests]
    holds = isinstance(first[0].outcome, Reserved)
    clock.step(seconds=HOUR_SECONDS - 1)
    assert [Answer(each.outcome, replayed=True) for each in first] == [
        await any_store.apply(*each) for each in requests
    ]
    clock.step(seconds=1 + TTL_SECONDS * holds)
    later = [await any_store.apply(*drawn_anew(each)) for each in requests]
    assert not any(each.replayed for each in later)
    assert ["paid"] == [entry.request_id for _, entry in await any_store.journal("acme", "", "", 10)]


@pytest.mark.parametrize("request_", [PAID, charge("settled", Cost(1, 1), on=ON, settles="open")])
async def test_what_takes_budget_is_remembered_for_long(
    any_store: Store, clock: SteppedClock, request_: Asked[Act]
) -> None:
    """A charge is never repeated, however late its retry."""
    await any_store.apply(*reserve("open", Cost(4, 1), on=ON))
    first = await any_store.apply(*request_)
    assert isinstance(first.outcome, Charged)
    clock.step(days=50)
    assert Answer(first.outcome, replayed=True) == await any_store.apply(*request_)


async def test_accounts_that_do_not_exist_leave_nothing(any_store: Store) -> None:
    """The service asks only whether such a request was answered before, by limits that no root has."""
    unknown = AppliedLimits(levels(own=limit(0, 0)), NO_VERSION)
    for number in range(5):
        account = Account((f"nobody {number}", "ann"))
        for asked in (charge("c", account=account), reserve("r", account=account)):
            with pytest.raises(LimitsChangedError):
                await any_store.apply(*asked.by(unknown))
    assert await any_store.roots() == []


@pytest.mark.slow
@pytest.mark.parametrize("any_store", ["sqlite", "redis", "postgres"], indirect=True)
async def test_whoever_takes_no_budget_fills_no_store(
    any_store: Store, clock: SteppedClock, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Whatever is asked, again and again for a day: no more is kept than what the last hours have left."""

    async def play(first: int, rounds: int) -> dict[str, int]:
        for number in range(first, first + rounds):
            for act in FREE:
                for each in act(str(number)):
                    await any_store.apply(*each)
            clock.step(seconds=1200)
        return await kept(request, tmp_path)

    await any_store.apply(*PAID)
    early = await play(0, 24)
    late = await play(24, 72)
    assert (1, 2) == (late["journal"], late["payments"])
    assert late["reservations"] <= early["reservations"]
    assert late["outcomes"] <= early["outcomes"]


KINDS = ("outcomes", "payments", "reservations")
COUNTED = ", ".join(f"(SELECT count(*) FROM {{schema}}rows WHERE key LIKE '{kind}%')" for kind in KINDS)  # noqa: S608
COUNTED = f"SELECT {COUNTED}, (SELECT count(*) FROM {{schema}}journal)"  # noqa: S608


async def kept(request: pytest.FixtureRequest, folder: Path) -> dict[str, int]:
    """Count the rows that a store has; of Redis' answers those that it will keep for more than the last hours."""
    store = request.node.callspec.params["any_store"]
    if store == "redis":
        server: RedisServer = request.getfixturevalue("shared_redis")
        return await kept_in_redis(server.address)
    if store == "postgres":
        postgres: PostgresServer = request.getfixturevalue("shared_postgres")
        (counts,) = postgres.execute(COUNTED.format(schema="gris."))
    else:
        # The file has one owner.
        copied = folder / "copied"
        shutil.copytree(folder, copied, ignore=lambda *_: ["copied"], dirs_exist_ok=True)
        with contextlib.closing(sqlite3.connect(copied / "ledger.db")) as reader:
            counts = reader.execute(COUNTED.format(schema="")).fetchone()
    return dict(zip((*KINDS, "journal"), counts, strict=True))


async def kept_in_redis(address: str) -> dict[str, int]:
    """Redis forgets by its own clock, which the test cannot move."""
    brief = HOUR_SECONDS + TTL_SECONDS + 10
    async with Redis.from_url(address, decode_responses=True) as client:
        answers = [each async for each in client.scan_iter("gris:{acme}:row:outcomes*", count=1000)]
        left = [await client.pttl(each) * 1000 / SECOND for each in answers]
        return {
            "outcomes": sum(each > brief or each < 0 for each in left),
            "payments": len(
                [each async for each in client.scan_iter("gris:{acme}:row:payments*", count=1000)]
            ),
            "reservations": await client.zlexcount("gris:{acme}:names", "[reservations", "[reservationz"),
            "journal": await client.xlen("gris:{acme}:journal"),
        }
