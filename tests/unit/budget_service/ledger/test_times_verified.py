"""Verification of a root's time: the last one recorded, and how far it is ahead of the store's clock."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace
from redis.asyncio import Redis

from budget_service.ledger.act import Act
from budget_service.ledger.acts.clock import ResumeClock
from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.acts.currency import ChangeCurrency
from budget_service.ledger.acts.reopen import ReopenAccount
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits
from budget_service.ledger.outcomes import Refused
from budget_service.ledger.values import Cost
from budget_service.ledger.verification import Difference, Sum
from budget_service.ledger.windows import DAY, SECOND, Microseconds
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from tests.support.budget_samples import ANALYST, COMPANY, NOON, Asked, SteppedClock, charge, levels, reserve
from tests.unit.budget_service.closed_ledgers import KINDS, ClosedLedger
from tests.unit.budget_service.trims import trimmed

YEAR = 365 * DAY


class Timed(ClosedLedger):
    """A ledger whose root's time can be changed behind the service's back while it is closed."""

    async def move(self, field: str, by: Microseconds) -> None:
        """Move a time of the root."""
        if self.kind == "redis":
            async with Redis.from_url(self._server.address) as client:
                row = json.loads(await client.get("gris:{acme}:row:roots") or "")
                row["record"][field] += by
                await client.set("gris:{acme}:row:roots", json.dumps(row))
        elif self.kind == "sqlite":
            with contextlib.closing(sqlite3.connect(self._path)) as file, file:
                name = f"$.record.{field}"
                moved = (
                    "UPDATE rows SET text = json_set(text, ?, json_extract(text, ?) + ?) WHERE key = 'roots'"
                )
                file.execute(moved, (name, name, by))
        else:
            moved = (
                "UPDATE gris.rows SET text = jsonb_set(text::jsonb, %s, to_jsonb("
                "(text::jsonb #>> %s)::bigint + %s)) WHERE key = 'roots'"
            )
            path = f"{{record,{field}}}"
            self._server.execute(moved, path, path, by)


@pytest.fixture(params=KINDS)
def ledger(request: pytest.FixtureRequest, tmp_path: Path, clock: SteppedClock) -> Timed:
    """Give the ledger of each store."""
    return Timed(request.param, tmp_path, request, clock)


async def differences(store: Store) -> list[Difference]:
    """Verify the root."""
    await verify(store, COMPANY.root, found := Verification())
    return found.differences


async def refused(store: Store, asked: Asked[Act]) -> bool:
    """Return whether a request is refused, and so again when it is repeated."""
    first, again = await store.apply(*asked), await store.apply(*asked)
    assert again.replayed
    return isinstance(first.outcome, Refused)


async def charged(ledger: Timed, *, is_trimmed: bool) -> None:
    """Make a ledger of one charge, whose entry is trimmed or not, and verify it."""
    await ledger.emptied()
    async with ledger.opened() as store:
        await store.apply(*charge("c"))
        if is_trimmed:
            await trimmed(store)
        assert await differences(store) == []


@pytest.mark.parametrize("is_trimmed", [False, True])
async def test_a_time_that_was_moved_back_is_found(ledger: Timed, *, is_trimmed: bool) -> None:
    """By a second: no entry, trimmed or not, is newer than the last time."""
    await charged(ledger, is_trimmed=is_trimmed)
    await ledger.move("last_time", -SECOND)
    async with ledger.opened() as store:
        assert [Difference(COMPANY, None, Sum.TIME, None, NOON - SECOND, NOON)] == await differences(store)


@pytest.mark.parametrize("is_trimmed", [False, True])
async def test_a_time_that_was_moved_ahead_is_found(ledger: Timed, *, is_trimmed: bool) -> None:
    """To the next window, in which each budget would be fresh."""
    await charged(ledger, is_trimmed=is_trimmed)
    await ledger.move("last_time", YEAR)
    async with ledger.opened() as store:
        # No later than the day on which the balances were used last.
        end = NOON - NOON % DAY + DAY
        assert [Difference(COMPANY, None, Sum.TIME, None, NOON + YEAR, end)] == await differences(store)


@pytest.mark.parametrize("is_trimmed", [False, True])
async def test_a_time_that_runs_ahead_of_the_clock_without_an_entry_is_found(
    ledger: Timed, *, is_trimmed: bool
) -> None:
    """By more, or by less, than an administrator has let it."""
    await ledger.emptied()
    async with ledger.opened() as store:
        await store.apply(*charge("c"))
        if is_trimmed:
            await trimmed(store)
        assert await differences(store) == []
    await ledger.move("ahead", YEAR)
    async with ledger.opened() as store:
        assert [Difference(COMPANY, None, Sum.AHEAD, None, YEAR, 0)] == await differences(store)


async def test_a_clock_that_had_jumped_ahead_is_no_difference(any_store: Store, clock: SteppedClock) -> None:
    """Whatever was done meanwhile: the time of the root stays at the last thing that shows it."""
    await any_store.apply(*charge("c"))
    done: list[Asked[Act]] = [
        charge("more"),
        charge("too much", Cost(11, 1)),
        reserve("r"),
        reserve("forfeited", forfeits=True),
        Asked(SetLimits(actor="ops", account=COMPANY, request_id="none", changes=()), NO_LIMITS),
        Asked(CloseAccount(actor="ops", account=ANALYST, request_id="close", reason="left"), NO_LIMITS),
        Asked(ReopenAccount(actor="ops", account=ANALYST, request_id="reopen", reason="is back"), NO_LIMITS),
    ]
    for months, asked in enumerate(done, 2):
        clock.now = NOON + months * 40 * DAY
        await any_store.apply(*asked)
        clock.now = NOON
        assert await differences(any_store) == []
    resumed = ResumeClock(actor="ops", account=COMPANY, request_id="ahead", true_time=NOON)
    await any_store.apply(resumed, NO_LIMITS)
    clock.step(seconds=5)
    assert await differences(any_store) == []
    await trimmed(any_store)
    assert await differences(any_store) == []


async def test_a_refusal_that_touches_no_balance_leaves_the_time_of_the_root(
    any_store: Store, clock: SteppedClock
) -> None:
    """By a clock that is a year ahead: nothing would show why the time is there, and windows would end."""
    await any_store.apply(*charge("c"))
    by = AppliedLimits(levels(), rules=(levels()[-1].limit.window,))
    clock.now += YEAR
    for request in (
        ResumeClock(actor="ops", account=COMPANY, request_id="1", true_time=NOON),
        ReopenAccount(actor="ops", account=ANALYST, request_id="2", reason="a mistake"),
        ChangeCurrency(actor="ops", account=COMPANY, request_id="3", unit_id=""),
    ):
        assert await refused(any_store, Asked(request, by))
    to_closed = replace(charge("4").limits, closed=ANALYST)
    assert await refused(any_store, charge("4").by(to_closed))
    clock.now = NOON
    assert await differences(any_store) == []
    assert (await any_store.balances("acme", "", 1)).root.last_time == NOON


async def test_a_lapse_is_no_newer_than_the_last_time(any_store: Store, clock: SteppedClock) -> None:
    """An entry of what was forfeited has the time of its lapse, not that at which it was written."""
    await any_store.apply(*reserve("r", forfeits=True))
    clock.step(days=3)
    await any_store.apply(*charge("c"))
    assert await differences(any_store) == []
    assert (await any_store.balances("acme", "", 1)).root.last_time == clock.now
