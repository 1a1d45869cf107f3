"""Ledgers that older programs wrote while the company had no limit, then one, then none: it is counted all along.

In `ledgers/levels-*` analyst ann was charged 3 times in September, 10 times on 12 October, 5 times on the 13th and
8 times on the 14th, and bob 4 times on the 13th; the company had a limit on the 13th alone. 6 calls are held without
it, and 2 with it. The later ones of each store are the same ledgers, brought up by the program before accounts could be
closed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from redis.asyncio import Redis

from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.outcomes import Cancelled, Charged, Exhausted, Held, LimitsSet, Reason, Refused
from budget_service.ledger.requests import CloseAccount, MoveAccount
from budget_service.ledger.values import NOTHING, Account, Cost
from budget_service.ledger.windows import Period
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from budget_service.stores.postgres.store import PostgresStore
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.sqlite.store import SqliteStore
from tests.budget.conftest import UNHURRIED, closing, empty
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    UNIT,
    SteppedClock,
    cancel,
    charge,
    levels,
    limit,
)

LEDGERS = Path(__file__).parent / "ledgers"
OWN = limit(100, 100)
BOTH = levels(own=OWN, above=limit(45, 45))


# By store, the schemas of the two ledgers.
SCHEMAS = {"sqlite": (8, 9), "redis": (7, 8), "postgres": (5, 7)}


@pytest.fixture(params=[0, 1], ids=["by levels", "before closing"])
def age(request: pytest.FixtureRequest) -> int:
    """Say which of the two ledgers of a store is meant."""
    return int(request.param)


@pytest_asyncio.fixture(params=["sqlite", "redis", "postgres"])
async def older(
    request: pytest.FixtureRequest, tmp_path: Path, clock: SteppedClock, age: int
) -> AsyncIterator[Store]:
    """Open the ledgers of older programs in each store."""
    kept = f"levels-{request.param}-{SCHEMAS[request.param][age]}"
    if request.param == "sqlite":
        for name in ("ledger.db", "ledger.db.mark"):
            shutil.copyfile(LEDGERS / name.replace("ledger", kept), tmp_path / name)
        async with closing(SqliteStore.open(tmp_path / "ledger.db", clock)) as store:
            yield store
    elif request.param == "redis":
        address = request.getfixturevalue("shared_redis").address
        await _load_redis(address, (LEDGERS / f"{kept}.json").read_text())
        async with closing(await RedisStore.open(address, clock=clock)) as store:
            yield store
    else:
        server = request.getfixturevalue("shared_postgres")
        server.forget()
        with psycopg.connect(server.address, autocommit=True) as connection:
            connection.execute((LEDGERS / f"{kept}.sql").read_bytes())
        async with closing(await PostgresStore.open(server.address, clock=clock, tuning=UNHURRIED)) as store:
            yield store


async def _load_redis(address: str, ledger: str) -> None:
    await empty(address)
    client: Any = Redis.from_url(address, decode_responses=True)
    for key, kind, value in json.loads(ledger):
        if kind == "hash":
            await client.hset(key, mapping=value)
        elif kind == "zset":
            await client.zadd(key, value)
        elif kind == "stream":
            for position, fields in value:
                await client.xadd(key, fields, id=position)
        else:
            await client.set(key, value)
    await client.aclose()


async def assert_verified(store: Store) -> None:
    """See that every balance is the sum of the journal."""
    found = Verification()
    await verify(store, COMPANY.root, found)
    assert found.differences == []


async def test_every_level_counts_what_was_charged_below_it(older: Store) -> None:
    """With or without a limit then, by any window, and what is held."""
    await assert_verified(older)
    for above, spent in (
        (limit(45, 45), 27),
        (limit(45, 45, days=2), 17),
        (limit(45, 45, period=Period.NEVER), 30),
        (limit(45, 45, days=40), 30),
    ):
        company, analyst = (await older.read(ANALYST, levels(own=OWN, above=above))).levels
        assert (Cost(spent, spent), Cost(8, 8)) == (company.spent, company.reserved)
        assert (Cost(23, 23), Cost(8, 8)) == (analyst.spent, analyst.reserved)
    (bob,) = (await older.read(COLLEAGUE, levels(COLLEAGUE, own=limit(50, 50, days=7)))).levels
    assert (Cost(4, 4), NOTHING) == (bob.spent, bob.reserved)


async def test_the_limit_holds_from_the_first_request_on(older: Store, clock: SteppedClock) -> None:
    """10 more are allowed; what was held is settled, cancelled or lapses, and what was paid for stays free."""
    free = (await older.apply(*charge("free", Cost(1, 1), on=BOTH, release_id="before3"))).outcome
    assert isinstance(free, Charged)
    assert free.already_paid
    answers = [(await older.apply(*charge(f"new{n}", Cost(1, 1), on=BOTH))).outcome for n in range(12)]
    assert [Charged] * 10 + [Held] * 2 == [type(each) for each in answers]
    settled = (await older.apply(*charge("s", Cost(1, 1), on=BOTH, settles="held0"))).outcome
    assert isinstance(settled, Charged)
    assert [Cost(38, 38), Cost(34, 34)] == [each.spent for each in settled.levels]
    assert Cancelled(Cost(2, 2), UNIT) == (await older.apply(*cancel("x", ends="in both", on=BOTH))).outcome
    await assert_verified(older)
    clock.step(seconds=601)
    refused = (await older.apply(*charge("too much", Cost(8, 8), on=BOTH))).outcome
    assert isinstance(refused, Exhausted)
    assert refused.shortfalls[0].remaining == 7
    clock.step(days=30)
    assert isinstance((await older.apply(*charge("november", Cost(45, 45), on=BOTH))).outcome, Charged)
    await assert_verified(older)


async def test_its_accounts_can_be_moved_and_closed(older: Store, clock: SteppedClock) -> None:
    """With all that they had then."""
    new = Account(("acme", "eve"))
    on = levels(new, own=OWN, above=limit(45, 45))
    before = (await older.read(ANALYST, BOTH)).levels
    moving = MoveAccount(account=ANALYST, target=new, request_id="move", reason="new ids")
    assert LimitsSet(clock.now) == (await older.apply(moving, NO_LIMITS)).outcome
    assert before == (await older.read(new, on)).levels
    asked = charge("free", Cost(1, 1), account=new, on=on, release_id="before3")
    limits = (await older.limits(new)).applied_to(new, on)
    free = (await older.apply(asked.request, limits)).outcome
    assert isinstance(free, Charged)
    assert free.already_paid
    closing_company = CloseAccount(account=COMPANY, request_id="close", reason="the end")
    assert LimitsSet(clock.now + 1) == (await older.apply(closing_company, NO_LIMITS)).outcome
    limits = (await older.limits(new)).applied_to(new, on)
    refused = (await older.apply(charge("late", account=new, on=on).request, limits)).outcome
    assert Refused(Reason.ACCOUNT_CLOSED) == refused
    clock.step(seconds=601)
    await assert_verified(older)
