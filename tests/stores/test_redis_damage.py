"""A ledger in Redis of which somebody has changed keys: nothing is decided by it, and nothing is half written."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.values import Cost
from budget_service.ledger.windows import DAY
from budget_service.stores.interface import Store, StoreDamagedError
from budget_service.stores.redis.store import RedisStore
from tests.support.budget_samples import (
    ANALYST,
    COMPANY,
    NOON,
    UNIT,
    Asked,
    SteppedClock,
    cancel,
    charge,
    limit,
    reserve,
)
from tests.support.ledger_stores import closing, empty
from tests.support.redis_server import RedisServer

PREFIX = "gris:{acme}:"
DAY_BEFORE = f"row:days\tacme/ann\t{NOON - DAY // 2}"
CHARGE = charge("c", Cost(1, 1), release_id="rel", query_id="q")
LIMITS = Asked(
    SetLimits(actor="ops", account=COMPANY, request_id="s", changes=((ANALYST, limit(9, 9)),)), NO_LIMITS
)
# A change of a root with a charge of the day before that reads or writes a key.
CHANGES: dict[str, Asked[Any]] = {
    **dict.fromkeys(("revision", "turn", "names", "journal", "row:roots", "row:balances\tacme"), CHARGE),
    **dict.fromkeys((DAY_BEFORE, "row:reservations\thold-held", "row:outcomes\tc"), CHARGE),
    **dict.fromkeys(("row:payments\tacme/ann\trelease\trel", "row:payments\tacme/ann\tquery\tq"), CHARGE),
    "row:limits\tacme/ann": LIMITS,
}
RESERVATION = {
    "reservation_id": "hold-held",
    "account": [["acme", "ann"], ""],
    "request_id": "held",
    "query_id": "q",
    "held": [1, 1],
    "unit_id": UNIT,
    "expires_at": NOON,
    "paid_release_id": "",
    "forfeits": False,
    "holds": [[2, NOON, ""]],
}


@pytest.fixture
async def client(shared_redis: RedisServer) -> AsyncIterator[Any]:
    """Return a client of an empty Redis."""
    await empty(shared_redis.address)
    async with Redis.from_url(shared_redis.address, decode_responses=True) as opened:
        yield opened


@pytest.fixture
async def store(shared_redis: RedisServer, client: Any, clock: SteppedClock) -> AsyncIterator[Store]:
    """Return a ledger with a charge and a reservation of the day before."""
    assert await client.dbsize() == 0
    async with closing(await RedisStore.open(shared_redis.address, clock=clock)) as opened:
        await opened.apply(*charge("before", Cost(1, 1)))
        await opened.apply(*reserve("held", Cost(1, 1), ttl_seconds=600))
        clock.step(days=1)
        yield opened


async def kept(client: Any) -> dict[str, bytes]:
    """Return what Redis holds of the root."""
    return {key: await client.dump(key) for key in await client.keys(f"{PREFIX}*")}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_key_of_another_type_is_damage_before_anything_is_written(
    store: Store, client: Any, name: str
) -> None:
    """Also one that is only written; the text names no account, and the key is there for administrators."""
    key = PREFIX + name
    is_text = name not in ("names", "journal")
    await client.delete(key)
    await (client.hset(key, "a", "b") if is_text else client.set(key, "damaged"))
    before = await kept(client)
    with pytest.raises(StoreDamagedError) as error:
        await store.apply(*CHANGES[name])
    table = name.removeprefix("row:").partition("\t")[0]
    assert (str(error.value), error.value.key) == (f"the ledger is damaged, in {table}", key)
    assert await kept(client) == before


async def test_a_sum_that_is_no_number_is_damage_before_anything_is_written(
    store: Store, client: Any
) -> None:
    """Redis cannot add to it."""
    await client.set(f"{PREFIX}{DAY_BEFORE}", "many")
    before = await kept(client)
    with pytest.raises(StoreDamagedError, match="in days"):
        await store.apply(*CHARGE)
    assert await kept(client) == before


READING = {
    "row:bases": lambda store: store.base("acme"),
    "journal": lambda store: store.latest("acme", "", 10),
    "row:balances\tacme": lambda store: store.balances("acme", "", 10),
    "names": lambda store: store.all_limits("acme"),
}


@pytest.mark.parametrize("name", READING)
async def test_a_key_of_another_type_is_damage_to_who_only_reads(
    store: Store, client: Any, name: str
) -> None:
    """As verification does."""
    await client.delete(PREFIX + name)
    is_text = name not in ("names", "journal")
    await (client.hset(PREFIX + name, "a", "b") if is_text else client.set(PREFIX + name, "damaged"))
    with pytest.raises(StoreDamagedError) as error:
        await READING[name](store)
    assert error.value.key == PREFIX + name


@pytest.mark.parametrize(
    "changed",
    [
        {"holds": [None]},
        {"holds": [[None, 1, ""]]},
        {"holds": ["acme"]},
        {"holds": [{"level": "acme"}]},
        {"holds": None},
        {"query_id": None},
        {"query_id": []},
    ],
)
async def test_a_reservation_that_cannot_be_right_is_damage(
    store: Store, client: Any, changed: dict[str, Any]
) -> None:
    """Whether it is asked for or has lapsed."""
    await client.set(f"{PREFIX}row:reservations\thold-held", json.dumps(RESERVATION | changed))
    for request in (cancel("x", ends="held"), CHARGE):
        with pytest.raises(StoreDamagedError) as error:
            await store.apply(*request)
        assert (error.value.table, error.value.key) == ("reservations", "hold-held")
