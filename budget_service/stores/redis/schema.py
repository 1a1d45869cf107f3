"""The schema of a ledger in Redis, and its migrations.

As soon as the version changes, and before anything else does, scripts of services on an older version are refused
(`schema.lua`). Services up to schema 3 did not check this: stop them first.
"""

from __future__ import annotations

import json
from typing import Any

from redis.exceptions import RedisError

from budget_service.ledger.currency import Currency
from budget_service.ledger.migration import OlderRoot
from budget_service.stores.codec import encode_currency
from budget_service.stores.interface import StoreUnavailableError, StoreUnusableError
from budget_service.stores.redis import encoding as text
from budget_service.stores.redis import layout

SCHEMA_VERSION = 10
PAYMENTS_HAVE_NAMES = 3
CHECKPOINTS_HAVE_CURRENCIES = 4
COUNTS_BY_DAY = 8
KNOWS_PARENTS = 9
SCHEMA_KEY = "gris:schema"
SCHEMA = str(SCHEMA_VERSION)
# The schema that is left, as long as not everything is migrated from it.
LEFT_KEY = "gris:schema:left"
PAGE = 1000


async def migrate(client: Any) -> None:
    """Give an empty Redis this schema, or an older ledger; raise StoreUnusableError for a newer one.

    It may be interrupted and begun again. Raises StoreUnavailableError.
    """
    try:
        await client.set(SCHEMA_KEY, SCHEMA, nx=True)
        found = int(await client.get(SCHEMA_KEY))
        if found > SCHEMA_VERSION:
            raise StoreUnusableError(
                f"this Redis has schema {found}, newer than this program's {SCHEMA_VERSION}"
            )
        if found < SCHEMA_VERSION:
            async with client.pipeline(transaction=True) as together:
                await together.set(LEFT_KEY, str(found), nx=True).set(SCHEMA_KEY, SCHEMA).execute()
        if (left := await client.get(LEFT_KEY)) is not None:
            await _convert(client, int(left))
            await client.delete(LEFT_KEY)
    except (RedisError, OSError) as error:
        raise StoreUnavailableError(str(error)) from error


async def require_schema(client: Any) -> None:
    """Return if the ledger still has this program's schema, else raise StoreUnusableError.

    Raises StoreUnavailableError.
    """
    try:
        found = await client.get(SCHEMA_KEY)
    except (RedisError, OSError) as error:
        raise StoreUnavailableError(str(error)) from error
    if found is None:
        raise StoreUnusableError("this Redis was emptied while it was used: the ledger is gone")
    if found != SCHEMA:
        raise StoreUnusableError(
            f"this Redis was brought to schema {found} by another program; this one knows {SCHEMA_VERSION}"
        )


async def _convert(client: Any, left: int) -> None:
    if left < PAYMENTS_HAVE_NAMES:
        await _name_each_payment(client)
    if left < CHECKPOINTS_HAVE_CURRENCIES:
        await _give_each_checkpoint_its_currency(client)
    if left < COUNTS_BY_DAY:
        async for key in client.scan_iter(layout.ROOT_KEYS):
            if layout.name_in_root(key) == "root":
                await _count_by_day(client, layout.root_of(key))
    if left < KNOWS_PARENTS:
        async for key in client.scan_iter(layout.ROOT_KEYS):
            if layout.name_in_root(key) == "root":
                await _note_parents(client, layout.root_of(key))
    # Since schema 4 entries of the journal have fields that an older program would leave out, and since schema 10
    # checkpoints; they need no change.


async def _give_each_checkpoint_its_currency(client: Any) -> None:
    """Up to schema 3 each root had one currency from the beginning."""
    async for key in client.scan_iter("gris:{*}:checkpoint"):
        if layout.name_in_root(key) != "checkpoint":
            continue
        unit_id = await client.hget(key.removesuffix("checkpoint") + "root", "unit_id")
        await client.hset(key, "currency", encode_currency(Currency(unit_id or "")))


async def _name_each_payment(client: Any) -> None:
    """Up to schema 2 a payer had one hash of payments, all of one window; now each payment has a key."""
    async for key in client.scan_iter("gris:{*}:paid:*", _type="hash"):
        if not layout.name_in_root(key).startswith("paid:"):
            continue
        payments: dict[str, str] = await client.hgetall(key)
        expires_in = await client.pttl(key)
        window = payments.pop("window")
        for name, release_id in payments.items():
            kind, _, id_ = name.partition(":")
            await client.set(
                f"{key}//{kind}//{id_}",
                f"{window}:{id_ if kind == 'release' else release_id}",
                px=expires_in if expires_in > 0 else None,
            )
        await client.unlink(key)


async def _note_parents(client: Any, root: str) -> None:
    """Up to schema 8 nobody asked which levels have others below them."""
    async for name, _ in client.hscan_iter(layout.balances_key(root), count=PAGE):
        level = text.parse_account(name)
        if level.depth > 1:
            await client.sadd(layout.parents_key(root), level.level(level.depth - 1).text)


async def _count_by_day(client: Any, root: str) -> None:
    """Up to schema 7 only levels with a limit were counted, and not by the day.

    Nothing changes the ledger meanwhile, and what is written is the same each time: it may be begun again.
    """
    found, last_time = await _older_root(client, root)
    balances = await client.hgetall(layout.balances_key(root))
    # Where this has been done before, it was not done to the end; or the balance is of a newer program's charge.
    old = {level: each for level, each in balances.items() if text.is_of_an_older_schema(each)}
    held = await client.hgetall(layout.reservations_key(root))
    reservations = [text.parse_reservation(id_, each) for id_, each in held.items()]
    migrated = found.migrated(
        {text.parse_account(level): text.parse_older_balance(each) for level, each in old.items()},
        reservations,
        last_time,
    )
    for each in migrated.reservations:
        holds = [[each.account.level(hold.depth).text, str(hold.window_start)] for hold in each.holds]
        kept = json.loads(held[each.reservation_id]) | {"holds": holds}
        await client.hset(layout.reservations_key(root), each.reservation_id, json.dumps(kept))
    for level, balance in migrated.balances.items():
        if level.text not in balances or level.text in old:
            for day in migrated.past[level]:
                await client.hset(layout.days_key(level), str(day.start), text.past_day_text(day))
            await client.hset(layout.balances_key(root), level.text, text.balance_text(balance))


async def _older_root(client: Any, root: str) -> tuple[OlderRoot, int]:
    kept = await client.hgetall(layout.checkpoint_key(root))
    checkpoint = text.parse_checkpoint(root, [each for pair in kept.items() for each in pair])
    found, after = OlderRoot.after(checkpoint), checkpoint.position
    while page := await client.xrange(layout.journal_key(root), f"({after}" if after else "-", count=PAGE):
        for after, fields in page:
            found.add(text.parse_entry(after, [each for pair in fields.items() for each in pair]))
    return found, int(await client.hget(layout.root_key(root), "last_time") or 0)
