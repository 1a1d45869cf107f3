"""Limits that are set in the ledger: before those of the configuration, at once, and harmless to what is spent."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from budget_service.configuration.budget_file import AccountUnknownError, Configuration
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.limits import (
    NO_LIMITS,
    AppliedLimits,
    LimitsChangedError,
    StoredLimits,
    limit_text,
    parse_limit,
)
from budget_service.ledger.outcomes import Answer, Charged, Exhausted, LimitsSet, Reason, Refused
from budget_service.ledger.values import Account, Cost, Limit, Mode
from budget_service.ledger.windows import DAY, Period
from budget_service.server.limit_cache import LimitCache
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import Store, StoreUnavailableError
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    NOON,
    Asked,
    SteppedClock,
    charge,
    levels,
    limit,
)
from tests.unit.budget_service.limit_settings import CONFIGURATION, SETTINGS
from tests.unit.budget_service.memory_store import MemoryStore


def setting(id_: str, *changes: tuple[Account, Limit | None]) -> Asked[SetLimits]:
    """Return a request to set limits below `acme`."""
    return Asked(SetLimits(actor="ops", account=COMPANY, request_id=id_, changes=changes), NO_LIMITS)


async def charged_by(cache: LimitCache, id_: str, cost: Cost, account: Account = ANALYST) -> Answer:
    """Charge with the limits that a cache holds, as a process does."""
    return await cache.apply(charge(id_, cost, account=account).request)


@pytest.mark.parametrize(
    "kept",
    [limit(3, 2), limit(0, 2**63 - 1, mode=Mode.TRACK, days=400, zone="America/Argentina/Buenos_Aires")],
)
async def test_a_stored_limit_is_found_as_it_was_set(any_store: Store, kept: Limit) -> None:
    """By its level and by those below it; until it is removed."""
    assert StoredLimits() == await any_store.limits(ANALYST)
    assert (
        LimitsSet(NOON) == (await any_store.apply(*setting("a", (COMPANY, kept), (COLLEAGUE, kept)))).outcome
    )
    assert StoredLimits(NOON, {COMPANY: kept}) == await any_store.limits(ANALYST)
    assert StoredLimits(NOON, {COMPANY: kept, COLLEAGUE: kept}) == await any_store.limits(COLLEAGUE)
    await any_store.apply(*setting("b", (COMPANY, None)))
    assert StoredLimits(NOON + 1, {}) == await any_store.limits(ANALYST)
    assert parse_limit(limit_text(kept)) == kept


async def test_a_repeated_change_of_limits_has_no_second_effect(
    any_store: Store, clock: SteppedClock
) -> None:
    """It is remembered for 35 days; other content under its id is refused."""
    first = setting("a", (ANALYST, limit(1, 1)))
    await any_store.apply(*first)
    await any_store.apply(*setting("b", (ANALYST, limit(2, 2))))
    clock.step(days=34)
    assert Answer(LimitsSet(NOON), replayed=True) == await any_store.apply(*first)
    other = await any_store.apply(*setting("a", (ANALYST, None)))
    assert Refused(Reason.REQUEST_ID_REUSED) == other.outcome
    assert (await any_store.limits(ANALYST)).limits == {ANALYST: limit(2, 2)}


async def test_a_request_with_old_limits_has_no_effect(any_store: Store) -> None:
    """The error says that limits have changed since they were read; a retry of an answered request is not checked."""
    await any_store.apply(*charge("before"))
    await any_store.apply(*setting("a", (ANALYST, limit(5, 5))))
    with pytest.raises(LimitsChangedError):
        await any_store.apply(*charge("c"))
    assert (await any_store.apply(*charge("before"))).replayed
    now = charge("c", Cost(1, 1)).by(AppliedLimits(levels(), NOON))
    assert isinstance((await any_store.apply(*now)).outcome, Charged)


async def test_limits_of_one_root_leave_the_others_alone(any_store: Store) -> None:
    """Their requests are not asked again."""
    await any_store.apply(*setting("a", (ANALYST, limit(5, 5))))
    other = Account(("umbrella", "ann"))
    assert isinstance((await any_store.apply(*charge("c", account=other))).outcome, Charged)
    assert StoredLimits() == await any_store.limits(other)


async def test_a_stored_limit_counts_at_once_in_every_process(any_store: Store) -> None:
    """Two processes share a ledger; lowered below what is spent it refuses, removed it is the configuration's.

    A level that meets its first limit counts what was charged below it before.
    """
    one, two = LimitCache(any_store, SETTINGS), LimitCache(any_store, SETTINGS)
    for cache, name in ((one, "a"), (two, "b")):
        assert isinstance((await charged_by(cache, name, Cost(3, 1))).outcome, Charged)
    await any_store.apply(*setting("s", (ANALYST, limit(4, 4))))
    for cache, name in ((one, "c"), (two, "d")):
        assert isinstance((await charged_by(cache, name, Cost(1, 1))).outcome, Exhausted)
        status = (await cache.read(ANALYST)).levels[-1]
        assert (Cost(6, 2), Cost(4, 4), Cost(0, 2)) == (status.spent, status.maximum, status.remaining)
    await any_store.apply(*setting("t", (ANALYST, None), (COMPANY, limit(8, 9, period=Period.NEVER))))
    assert isinstance((await charged_by(one, "e", Cost(2, 1))).outcome, Charged)
    refused = (await charged_by(two, "f", Cost(7, 1))).outcome
    assert isinstance(refused, Exhausted)
    assert [(each.depth, each.remaining) for each in refused.shortfalls] == [(1, 0), (2, 2)]


async def test_a_stored_limit_makes_its_account(any_store: Store) -> None:
    """And its removal ends it, though what was spent stays for the day it comes back."""
    cache = LimitCache(any_store, SETTINGS)
    with pytest.raises(AccountUnknownError):
        await charged_by(cache, "a", Cost(1, 1), COLLEAGUE)
    await any_store.apply(*setting("s", (COLLEAGUE, limit(4, 4))))
    assert isinstance((await charged_by(cache, "a", Cost(1, 1), COLLEAGUE)).outcome, Charged)
    await any_store.apply(*setting("t", (COLLEAGUE, None)))
    for gone in (charged_by(cache, "b", Cost(1, 1), COLLEAGUE), cache.read(COLLEAGUE)):
        with pytest.raises(AccountUnknownError):
            await gone
    await any_store.apply(*setting("u", (COLLEAGUE, limit(4, 4))))
    assert Cost(3, 3) == (await cache.read(COLLEAGUE)).levels[-1].remaining


async def test_an_answer_outlives_its_account(any_store: Store) -> None:
    """A repeat of what was answered finds its answer when the account is gone; whatever else is asked does not."""
    settings = LiveSettings(Settings(CONFIGURATION))
    cache = LimitCache(any_store, settings)
    first = await charged_by(cache, "a", Cost(3, 1))
    others = {"accounts": [{"path": ["acme", "eve"], "limit": {"information": 1, "calls": 1}}]}
    settings.current = Settings(Configuration.model_validate(others))
    assert await charged_by(cache, "a", Cost(3, 1)) == replace(first, replayed=True)
    roots = await any_store.roots()
    for id_, cost, account in (
        ("a", Cost(2, 1), ANALYST),
        ("b", Cost(3, 1), ANALYST),
        ("a", Cost(3, 1), Account(("nobody",))),
    ):
        with pytest.raises(AccountUnknownError):
            await charged_by(cache, id_, cost, account)
    assert roots == await any_store.roots()


async def test_a_root_has_so_many_limits_and_no_more(any_store: Store, clock: SteppedClock) -> None:
    """A refused change changes none; removing is always possible; the refusal is forgotten after an hour."""
    two = AppliedLimits(most_stored=2)
    await any_store.apply(*setting("a", (ANALYST, limit(4, 4)), (COLLEAGUE, limit(4, 4))).by(two))
    refused = setting("b", (ANALYST, limit(1, 1))).by(two)
    assert Refused(Reason.TOO_MANY_LIMITS) == (await any_store.apply(*refused)).outcome
    assert StoredLimits(NOON, {ANALYST: limit(4, 4)}) == await any_store.limits(ANALYST)
    assert LimitsSet(NOON + 1) == (await any_store.apply(*setting("c", (COLLEAGUE, None)).by(two))).outcome
    clock.now += DAY // 24
    assert LimitsSet(clock.now) == (await any_store.apply(*refused)).outcome


async def test_limits_that_never_stand_still_are_unavailable(clock: SteppedClock) -> None:
    """Rather than a loop without end."""

    class Restless(MemoryStore):
        async def limits(self, account: Account) -> StoredLimits:
            return replace(await super().limits(account), version=-1)

    restless = Restless(clock)
    await restless.apply(*setting("a", (ANALYST, limit(4, 4))))
    cache = LimitCache(restless, SETTINGS)
    for call in (charged_by(cache, "c", Cost(1, 1)), cache.read(ANALYST)):
        with pytest.raises(StoreUnavailableError):
            await call
