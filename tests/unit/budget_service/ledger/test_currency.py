"""A new currency: it begins in a new window, and nothing of the last one is added to it; on every store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from budget_service.ledger.act import Act
from budget_service.ledger.acts.currency import ChangeCurrency
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.currency import Currency, window_before
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits, LimitsChangedError
from budget_service.ledger.outcomes import (
    Answer,
    Cancelled,
    Charged,
    CurrencyChanged,
    Exhausted,
    Outcome,
    Reason,
    Refused,
    Reserved,
)
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import NOTHING, Account, Cost, LevelLimit, Mode
from budget_service.ledger.verification import Rebuilt
from budget_service.ledger.windows import SECOND, Period, WindowRule, microseconds_of
from budget_service.server.audit import Verification, verify
from budget_service.server.responses import budget_message
from budget_service.stores.interface import Store
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    NOON,
    OTHER_UNIT,
    UNIT,
    Asked,
    SteppedClock,
    cancel,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.ledger_stores import UNHURRIED
from tests.unit.budget_service.trims import trimmed

MONTH = levels()
WEEK_OF_DAYS = levels(own=limit(10, 5, days=7))
NOVEMBER = microseconds_of(datetime(2026, 11, 1, tzinfo=UTC))


def change(id_: str, unit_id: str = OTHER_UNIT, on: tuple[LevelLimit, ...] = MONTH) -> Asked[ChangeCurrency]:
    """Return a request to plan a currency for the company, or none."""
    rules = tuple(each.limit.window for each in on)
    return Asked(
        ChangeCurrency(actor="ops", account=COMPANY, request_id=id_, unit_id=unit_id),
        AppliedLimits(rules=rules),
    )


async def reported(store: Store, asked: Asked[Act]) -> Outcome:
    """Return the outcome of a request."""
    return (await store.apply(*asked)).outcome


async def test_a_currency_begins_with_the_month_and_then_only_it_is_taken(
    any_store: Store, clock: SteppedClock
) -> None:
    """Until the last moment of October the old one counts; from the first of November on the new one, from nothing."""
    await any_store.apply(*charge("old", Cost(9, 4)))
    assert await reported(any_store, change("c")) == CurrencyChanged(OTHER_UNIT, NOVEMBER)
    planned = (await any_store.read(ANALYST, MONTH)).currency
    assert planned == Currency(UNIT, 0, OTHER_UNIT, NOVEMBER)
    clock.now = NOVEMBER - 1
    assert await reported(any_store, charge("early", Cost(1, 0), unit_id=OTHER_UNIT)) == Refused(
        Reason.UNIT_MISMATCH
    )
    assert isinstance(await reported(any_store, charge("last", Cost(1, 0))), Charged)
    clock.now = NOVEMBER
    assert await reported(any_store, charge("late", Cost(1, 0))) == Refused(Reason.UNIT_MISMATCH)
    found = await any_store.read(ANALYST, MONTH)
    assert found.currency == Currency(OTHER_UNIT, NOVEMBER)
    assert found.levels[-1].spent == NOTHING
    assert isinstance(await reported(any_store, charge("new", Cost(10, 5), unit_id=OTHER_UNIT)), Charged)


@pytest.mark.parametrize("ends", ["settled", "cancelled", "forfeited", "lapsed"])
async def test_a_reservation_of_the_last_currency_does_nothing_to_the_new_window(
    any_store: Store, clock: SteppedClock, ends: str
) -> None:
    """Whichever way it ends after the moment, it neither spends there nor returns anything."""
    await any_store.apply(*charge("fixes", Cost(1, 1)))
    await any_store.apply(*change("c"))
    clock.now = NOVEMBER - 10_000_000
    await any_store.apply(*reserve("r", Cost(4, 1)).but(forfeits=ends == "forfeited"))
    clock.step(seconds=20)
    if ends == "settled":
        settles = charge("s", Cost(2, 1), settles="r", release_id="rel")
        assert await reported(any_store, settles) == Refused(Reason.UNIT_MISMATCH)
    if ends == "cancelled":
        assert await reported(any_store, cancel("s", ends="r")) == Cancelled(Cost(4, 1), UNIT)
    assert isinstance(await reported(any_store, charge("all", Cost(10, 5), unit_id=OTHER_UNIT)), Charged)
    clock.step(seconds=60)
    assert isinstance(await reported(any_store, charge("more", Cost(1, 0), unit_id=OTHER_UNIT)), Exhausted)
    status = (await any_store.read(ANALYST, MONTH)).levels[-1]
    assert (status.spent, status.reserved) == (Cost(10, 5), NOTHING)
    kinds = [entry.kind for _, entry in await any_store.journal("acme", "", "", 9)]
    assert (EntryKind.FORFEITED in kinds) == (ends == "forfeited")
    await assert_verified(any_store)


async def test_days_of_the_last_currency_close_a_sliding_window_until_the_last_has_left(
    any_store: Store, clock: SteppedClock
) -> None:
    """One small charge is enough, since nobody can say how much of the new limit it is; an unused account goes on."""
    on = WEEK_OF_DAYS
    await any_store.apply(*charge("first", Cost(1, 0), on=on))
    begins_at = NOON // 86_400_000_000 * 86_400_000_000 + 86_400_000_000
    assert await reported(any_store, change("c", on=on)) == CurrencyChanged(OTHER_UNIT, begins_at)
    clock.step(seconds=3600)
    await any_store.apply(*charge("second", Cost(1, 0), on=on))
    clock.step(days=6)
    refused = await reported(any_store, charge("new", Cost(1, 0), on=on, unit_id=OTHER_UNIT))
    assert isinstance(refused, Exhausted)
    (missing,) = refused.shortfalls
    assert (missing.remaining, missing.refreshes_at) == (0, begins_at + 6 * 86_400_000_000)
    theirs = levels(COLLEAGUE, own=on[-1].limit)
    colleague = charge("theirs", Cost(10, 5), account=COLLEAGUE, on=theirs, unit_id=OTHER_UNIT)
    assert isinstance(await reported(any_store, colleague), Charged)
    assert missing.refreshes_at is not None
    clock.now = missing.refreshes_at
    assert isinstance(
        await reported(any_store, charge("now", Cost(10, 5), on=on, unit_id=OTHER_UNIT)), Charged
    )
    await assert_verified(any_store)


async def test_a_level_says_as_long_as_charges_in_the_last_currency_count(
    any_store: Store, clock: SteppedClock
) -> None:
    """What it shows as limit and spent is no budget that could have a guarantee; others are as ever."""
    on = WEEK_OF_DAYS
    await any_store.apply(*charge("first", Cost(1, 0), on=on))
    await any_store.apply(*change("c", on=on))

    async def says(account: Account = ANALYST, on: tuple[LevelLimit, ...] = on) -> list[bool]:
        found = await any_store.read(account, on)
        return [level.previous_currency for level in budget_message(found, account).levels]

    assert [False] == await says()
    clock.step(days=3)
    assert [True] == await says()
    assert [False] == await says(COLLEAGUE, levels(COLLEAGUE, own=on[-1].limit))
    clock.step(days=5)
    assert [False] == await says()


async def test_what_is_held_closes_a_window_too(any_store: Store, clock: SteppedClock) -> None:
    """A week that the month's end cuts: it opens when the reservation is given back, which charges nothing."""
    week = levels(own=limit(10, 5, period=Period.WEEK))
    await any_store.apply(*charge("fixes", Cost(1, 1), account=COLLEAGUE, on=levels(COLLEAGUE)))
    await any_store.apply(*change("c"))
    clock.now = NOVEMBER - 10_000_000
    await any_store.apply(*reserve("r", Cost(1, 0), on=week))
    clock.now = NOVEMBER
    asked = Cost(10, 5)
    assert isinstance(await reported(any_store, charge("a", asked, on=week, unit_id=OTHER_UNIT)), Exhausted)
    await any_store.apply(*cancel("s", ends="r", on=week))
    assert isinstance(await reported(any_store, charge("b", asked, on=week, unit_id=OTHER_UNIT)), Charged)
    await assert_verified(any_store)


@pytest.mark.parametrize("on", [MONTH, WEEK_OF_DAYS], ids=["month", "sliding"])
async def test_what_was_paid_for_in_the_last_currency_is_not_free_in_the_new_one(
    any_store: Store, clock: SteppedClock, on: tuple[LevelLimit, ...]
) -> None:
    """Neither its question nor its release; the very same request is answered as it was, and charges nothing."""
    paid = charge("old", Cost(10, 5), on=on, query_id="q", release_id="rel")
    first = await any_store.apply(*paid)
    planned = await reported(any_store, change("c", on=on))
    assert isinstance(planned, CurrencyChanged)
    clock.now = planned.begins_at
    if on is MONTH:
        held = await reported(any_store, reserve("r", Cost(1, 0), on=on, query_id="q", unit_id=OTHER_UNIT))
        assert isinstance(held, Reserved)
        assert not held.already_paid
        again = await reported(
            any_store, charge("a", Cost(1, 0), on=on, release_id="rel", unit_id=OTHER_UNIT)
        )
        assert isinstance(again, Charged)
        assert (again.charged, again.already_paid) == (Cost(1, 0), False)
    else:
        for asked in (
            reserve("r", Cost(1, 0), on=on, query_id="q", unit_id=OTHER_UNIT),
            charge("a", Cost(1, 0), on=on, release_id="rel", unit_id=OTHER_UNIT),
        ):
            assert isinstance(await reported(any_store, asked), Exhausted)
    assert await any_store.apply(*paid) == Answer(first.outcome, replayed=True)


@pytest.mark.parametrize("mode", [Mode.ENFORCE, Mode.TRACK])
async def test_the_first_day_of_a_currency_counts_where_a_window_has_become_longer(
    any_store: Store, clock: SteppedClock, mode: Mode
) -> None:
    """The longer window is added up from past days, of which that one begins when its currency does."""
    day, days = (
        levels(own=limit(10, 5, mode=mode, **each)) for each in ({"period": Period.DAY}, {"days": 3})
    )
    await any_store.apply(*charge("old", Cost(4, 1), on=day))
    clock.step(days=3)
    planned = await reported(any_store, change("c", on=day))
    assert isinstance(planned, CurrencyChanged)
    clock.now = planned.begins_at
    await any_store.apply(*charge("first", Cost(6, 2), on=day, unit_id=OTHER_UNIT))
    clock.step(days=1)
    await any_store.apply(*charge("second", Cost(1, 1), on=days, unit_id=OTHER_UNIT))
    assert (await any_store.read(ANALYST, days)).levels[-1].spent == Cost(7, 3)
    await assert_verified(any_store)


async def test_a_level_that_only_records_begins_anew_at_once(any_store: Store, clock: SteppedClock) -> None:
    """It never refuses, and its sum is of one currency."""
    on = levels(own=limit(1, 1, mode=Mode.TRACK, days=7))
    await any_store.apply(*charge("old", Cost(9, 4), on=on))
    await any_store.apply(*change("c", on=on))
    clock.step(days=1)
    await any_store.apply(*charge("new", Cost(5, 2), on=on, unit_id=OTHER_UNIT))
    assert (await any_store.read(ANALYST, on)).levels[-1].spent == Cost(5, 2)
    await assert_verified(any_store)


async def test_a_plan_is_made_once_and_can_be_withdrawn_before_its_moment(
    any_store: Store, clock: SteppedClock
) -> None:
    """A repeat is the first answer; another plan waits for the withdrawal; what has begun cannot be withdrawn."""
    await any_store.apply(*charge("fixes", Cost(1, 1)))
    assert await reported(any_store, change("w0", "")) == Refused(Reason.NO_CURRENCY_PLANNED)
    assert await reported(any_store, change("same", UNIT)) == Refused(Reason.UNIT_UNCHANGED)
    planned = await any_store.apply(*change("c"))
    assert await any_store.apply(*change("c")) == Answer(planned.outcome, replayed=True)
    assert await reported(any_store, change("c", "e" * 32)) == Refused(Reason.REQUEST_ID_REUSED)
    assert await reported(any_store, change("d", "e" * 32)) == Refused(Reason.CURRENCY_PLANNED)
    assert await reported(any_store, change("w", "")) == CurrencyChanged("", 0)
    assert (await any_store.read(ANALYST, MONTH)).currency == Currency(UNIT)
    assert await reported(any_store, change("e", "e" * 32)) == CurrencyChanged("e" * 32, NOVEMBER)
    clock.now = NOVEMBER
    assert await reported(any_store, change("w2", "")) == Refused(Reason.NO_CURRENCY_PLANNED)
    assert await reported(any_store, change("f")) == CurrencyChanged(
        OTHER_UNIT, microseconds_of(datetime(2026, 12, 1, tzinfo=UTC))
    )
    entries = [entry for _, entry in await any_store.journal("acme", "", "", 9)]
    assert [entry.unit_id for entry in entries if not entry.kind.is_charge] == [
        OTHER_UNIT,
        "",
        "e" * 32,
        OTHER_UNIT,
    ]
    await assert_verified(any_store)


async def test_a_root_with_a_budget_that_is_never_refreshed_keeps_its_currency(any_store: Store) -> None:
    """And the refusal has a name."""
    on = levels(own=limit(10, 5, period=Period.NEVER), above=limit(50, 20))
    assert await reported(any_store, change("c", on=on)) == Refused(Reason.WINDOW_NEVER_ENDS)


async def test_a_plan_made_with_limits_that_have_changed_is_not_taken(any_store: Store) -> None:
    """The moment would be that of other windows."""
    changes = ((ANALYST, limit(5, 5, period=Period.NEVER)),)
    await any_store.apply(SetLimits(actor="ops", account=COMPANY, request_id="s", changes=changes), NO_LIMITS)
    with pytest.raises(LimitsChangedError):
        await any_store.apply(*change("c"))
    stored = await any_store.all_limits("acme")
    assert (stored.version, dict(stored.limits)) == (NOON, dict(changes))


async def test_a_forfeit_that_has_lapsed_fixes_the_currency_before_another_is_planned(
    any_store: Store, clock: SteppedClock
) -> None:
    """As a charge does: its own currency is no other one, and the journal has the charge before the plan."""
    await any_store.apply(*reserve("f", Cost(2, 1), unit_id=OTHER_UNIT, forfeits=True, ttl_seconds=10))
    clock.step(seconds=11)
    same = (await any_store.apply(*change("same"))).outcome
    assert Refused(Reason.UNIT_UNCHANGED) == same
    assert isinstance((await any_store.apply(*change("another", UNIT))).outcome, CurrencyChanged)
    kinds = [entry.kind for _, entry in await any_store.journal("acme", "", "", 10)]
    assert [EntryKind.FORFEITED, EntryKind.CURRENCY] == kinds
    assert await any_store.open_reservations(["acme"]) == 0


@pytest.mark.parametrize("tuning", [replace(UNHURRIED, expired_at_once=2)])
async def test_all_that_has_lapsed_is_ended_before_a_currency_is_planned(
    any_store: Store, clock: SteppedClock
) -> None:
    """More than one step ends, and only the last one is forfeited."""
    for index in range(5):
        asked = reserve(f"r{index}", Cost(1, 1), unit_id=OTHER_UNIT, forfeits=index == 4)
        await any_store.apply(*asked.but(ttl=(10 + index) * SECOND))
    clock.step(seconds=60)
    assert Refused(Reason.UNIT_UNCHANGED) == (await any_store.apply(*change("same"))).outcome
    assert await any_store.open_reservations(["acme"]) == 0


async def test_the_currency_is_rebuilt_from_a_base(any_store: Store, clock: SteppedClock) -> None:
    """With no entries and the change in effect, the ledger agrees; another currency would be reported."""
    await any_store.apply(*charge("fixes", Cost(1, 1)))
    await any_store.apply(*change("c"))
    await trimmed(any_store)
    clock.now = NOVEMBER
    await any_store.apply(*charge("new", Cost(1, 1), unit_id=OTHER_UNIT))
    await assert_verified(any_store)
    rebuilt = Rebuilt.after(await any_store.base("acme"))
    (found,) = rebuilt.currency_differences(COMPANY, Currency("e" * 32, 5))
    assert (found.unit, found.kept, found.rebuilt) == (None, 5, NOVEMBER)


def test_the_moment_is_the_first_refresh_of_the_coarsest_windows() -> None:
    """Months before weeks and days; of several zones the one that comes first; a day of a sliding window last."""
    tokyo, utc = WindowRule(Period.MONTH, "Asia/Tokyo"), WindowRule(Period.MONTH, "UTC")
    week, sliding = WindowRule(Period.WEEK, "UTC"), WindowRule(Period.SLIDING, "UTC", 30)
    nine_hours = 9 * 3_600_000_000
    assert window_before((week, utc, tokyo, sliding), NOON).end == NOVEMBER - nine_hours
    assert window_before((week, sliding), NOON).end == microseconds_of(datetime(2026, 10, 19, tzinfo=UTC))
    assert window_before((sliding,), NOON).end == microseconds_of(datetime(2026, 10, 15, tzinfo=UTC))
    assert window_before((utc, WindowRule(Period.NEVER, "UTC")), NOON).end is None


async def assert_verified(store: Store) -> None:
    """See that every balance, and the currency, is what the journal says."""
    found = Verification()
    await verify(store, "acme", found)
    assert found.differences == []


async def test_a_level_that_only_tracks_counts_what_was_charged_in_the_new_currency(
    any_store: Store, clock: SteppedClock
) -> None:
    """By a replica that has no limit there, while the week of another one still had charges of the old currency."""
    own = limit(100, 100)
    above = {mode: levels(own=own, above=limit(9, 9, period=Period.WEEK, mode=mode)) for mode in Mode}
    alone = levels(own=own)
    clock.now = NOVEMBER - 3600 * SECOND
    await any_store.apply(*charge("old", Cost(2, 1), on=above[Mode.ENFORCE]))
    await any_store.apply(*change("c", on=alone))
    clock.now = NOVEMBER + SECOND
    await any_store.apply(*charge("new", Cost(5, 1), on=alone, unit_id=OTHER_UNIT))
    refused = charge("refused", Cost(1, 1), on=above[Mode.ENFORCE], unit_id=OTHER_UNIT)
    assert isinstance(await reported(any_store, refused), Exhausted)
    await any_store.apply(*reserve("held", Cost(3, 1), on=alone, unit_id=OTHER_UNIT))
    await any_store.apply(*charge("tracked", Cost(1, 1), on=above[Mode.TRACK], unit_id=OTHER_UNIT))
    company = (await any_store.read(ANALYST, above[Mode.TRACK])).levels[0]
    assert (Cost(6, 2), Cost(3, 1)) == (company.spent, company.reserved)
    await assert_verified(any_store)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
async def test_a_first_charge_counts_in_a_currency_that_began_in_the_middle_of_its_day(
    any_store: Store, clock: SteppedClock, zone: str
) -> None:
    """The account has days of another zone; neither it nor the level above it was ever used, and that has no limit."""
    eve = Account(("acme", "eu", "eve"))
    own = levels(eve, own=limit(10, 5, zone=zone))
    await any_store.apply(*charge("fixes", Cost(1, 1)))
    await any_store.apply(*change("c"))
    clock.now = NOVEMBER + 3600 * SECOND
    everything = charge("all", Cost(10, 5), account=eve, on=own, unit_id=OTHER_UNIT)
    assert isinstance(await reported(any_store, everything), Charged)
    more = charge("more", Cost(1, 0), account=eve, on=own, unit_id=OTHER_UNIT)
    assert isinstance(await reported(any_store, more), Exhausted)
    clock.step(seconds=60)
    with_above = (LevelLimit(eve.level(2), limit(12, 9, zone=zone)), *own)
    found = (await any_store.read(eve, with_above)).levels
    assert [Cost(10, 5), Cost(10, 5)] == [each.spent for each in found]
    await assert_verified(any_store)
