"""Levels that meet a limit, lose it and meet it again: a charge counts on every level of its account, all along."""

from __future__ import annotations

import pytest

from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits, parse_change
from budget_service.ledger.outcomes import Charged, Exhausted, Held
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import NOTHING, Account, Cost, LevelLimit, Limit
from budget_service.ledger.windows import DAY, SECOND, Period
from budget_service.server.audit import Verification, verify
from budget_service.server.refunds import with_charge, without_charge
from budget_service.stores.interface import Store
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    SteppedClock,
    cancel,
    charge,
    levels,
    limit,
    reserve,
)

ONE = Cost(1, 1)
OWN = limit(100, 100)
ALONE = levels(own=OWN)
PARENT = limit(45, 45)
BOTH = levels(own=OWN, above=PARENT)


async def at(store: Store, on: tuple[LevelLimit, ...], depth: int = 1) -> tuple[Cost, Cost]:
    """Return what is spent and reserved at a level of the analyst."""
    found = await store.read(ANALYST, on)
    (status,) = [each for each in found.levels if each.depth == depth]
    return status.spent, status.reserved


async def spend_until_refused(store: Store, name: str, on: tuple[LevelLimit, ...]) -> int:
    """Charge one unit again and again, and return how often it was allowed."""
    for number in range(200):
        if isinstance((await store.apply(*charge(f"{name}{number}", ONE, on=on))).outcome, Exhausted):
            return number
    raise AssertionError("nothing is ever refused")


async def assert_verified(store: Store) -> None:
    """See that every balance is the sum of the journal."""
    found = Verification()
    await verify(store, COMPANY.root, found)
    assert found.differences == []


async def test_a_first_limit_counts_what_was_charged_and_reserved_before(any_store: Store) -> None:
    """40 charges and 20 open reservations, then a limit of 45 on the level above: not one more, and 5 when they end."""
    for number in range(40):
        await any_store.apply(*charge(f"c{number}", ONE, on=ALONE))
    for number in range(20):
        await any_store.apply(*reserve(f"r{number}", ONE, on=ALONE))
    setting = SetLimits(actor="ops", account=COMPANY, request_id="first", changes=((COMPANY, PARENT),))
    await any_store.apply(setting, NO_LIMITS)
    now = AppliedLimits(BOTH, (await any_store.limits(COMPANY)).version)
    refused = await any_store.apply(*charge("more", ONE, on=BOTH).by(now))
    assert isinstance(refused.outcome, Held)
    assert (Cost(40, 40), Cost(20, 20)) == await at(any_store, BOTH)
    for number in range(20):
        await any_store.apply(*cancel(f"x{number}", ends=f"r{number}", on=BOTH).by(now))
    granted = [
        isinstance((await any_store.apply(*charge(f"d{number}", ONE, on=BOTH).by(now))).outcome, Charged)
        for number in range(7)
    ]
    assert [True] * 5 + [False] * 2 == granted
    await assert_verified(any_store)


async def test_a_limit_that_is_missing_for_a_while_counts_what_was_charged_meanwhile(
    any_store: Store,
) -> None:
    """As while a file without it is in force, or it was removed and is put back."""
    for number in range(20):
        await any_store.apply(*charge(f"a{number}", ONE, on=BOTH))
    await any_store.apply(*reserve("held", Cost(3, 3), on=BOTH))
    for number in range(20):
        await any_store.apply(*charge(f"b{number}", ONE, on=ALONE))
    await any_store.apply(*charge("settles", Cost(2, 2), on=ALONE, settles="held"))
    assert (Cost(42, 42), NOTHING) == await at(any_store, BOTH)
    assert 3 == await spend_until_refused(any_store, "c", BOTH)
    await assert_verified(any_store)


async def test_two_processes_with_different_files_share_one_budget(any_store: Store) -> None:
    """One knows the limit of the company, the other does not: the first refuses once both have spent it."""
    for number in range(30):
        for name, on in (("knows", BOTH), ("does not", ALONE)):
            await any_store.apply(*charge(f"{name}{number}", ONE, on=on))
    spent, _ = await at(any_store, BOTH)
    # 22 times both, then the 45th by the one; the other goes on without the limit.
    assert Cost(53, 53) == spent
    assert isinstance((await any_store.apply(*charge("more", ONE, on=BOTH))).outcome, Exhausted)
    await assert_verified(any_store)


async def test_two_processes_with_different_windows_each_keep_their_own(
    any_store: Store, clock: SteppedClock
) -> None:
    """A day and a month in turn: yesterday's charges count in the month, whichever process asked last."""
    daily = levels(own=OWN, above=limit(10, 10, period=Period.DAY))
    monthly = levels(own=OWN, above=limit(25, 25))
    for day in range(4):
        granted = 0
        for number in range(8):
            for name, on in (("day", daily), ("month", monthly)):
                asked = charge(f"{name}{day}.{number}", ONE, on=on)
                granted += isinstance((await any_store.apply(*asked)).outcome, Charged)
        spent, _ = await at(any_store, monthly)
        today, _ = await at(any_store, daily)
        assert Cost(granted, granted) == today
        assert spent.calls <= 25 or day > 1
        await assert_verified(any_store)
        clock.step(days=1)
    assert isinstance((await any_store.apply(*charge("more", ONE, on=monthly))).outcome, Exhausted)


async def test_a_longer_window_counts_the_days_before(any_store: Store, clock: SteppedClock) -> None:
    """From a day to the month, to the last 7 days, and to one that is never refreshed."""
    daily = levels(own=limit(10, 10, period=Period.DAY))
    for day in range(20):
        await any_store.apply(*charge(f"c{day}", ONE, on=daily))
        clock.step(days=1)
    # It is 3 November, and nothing was charged on that day yet.
    for own, count in (
        (limit(100, 100), 2),
        (limit(100, 100, days=7), 6),
        (limit(100, 100, period=Period.NEVER), 20),
        (limit(100, 100, period=Period.DAY), 0),
    ):
        on = levels(own=own)
        assert (Cost(count, count), NOTHING) == await at(any_store, on, depth=2)
        await any_store.apply(*charge(f"nothing {count}", NOTHING, on=on))
        assert (Cost(count, count), NOTHING) == await at(any_store, on, depth=2)
    await assert_verified(any_store)


async def test_a_day_of_another_zone_counts_as_a_whole_in_a_month_that_begins_on_it(
    any_store: Store, clock: SteppedClock
) -> None:
    """It began as the first of November in Tokyo, and is over on that of Greenwich."""
    tokyo, utc = levels(own=limit(10, 10, zone="Asia/Tokyo")), levels(own=limit(10, 10))
    clock.step(days=17, seconds=8 * 3600)
    await any_store.apply(*charge("a", ONE, on=tokyo))
    clock.step(seconds=3600)
    await any_store.apply(*charge("b", ONE, on=utc))
    clock.step(seconds=19 * 3600)
    await any_store.apply(*charge("c", ONE, on=utc))
    assert (Cost(3, 3), NOTHING) == await at(any_store, utc, depth=2)
    await assert_verified(any_store)


async def test_what_has_lapsed_is_not_counted_at_a_first_limit(any_store: Store, clock: SteppedClock) -> None:
    """The balance is built from the open reservations while the one that has lapsed is ended."""
    await any_store.apply(*reserve("r", ONE, on=ALONE))
    clock.step(seconds=61)
    assert (NOTHING, NOTHING) == await at(any_store, BOTH)
    await any_store.apply(*charge("c", ONE, on=BOTH))
    assert (ONE, NOTHING) == await at(any_store, BOTH)


async def test_what_is_settled_after_its_window_is_paid_for_in_no_longer_one(
    any_store: Store, clock: SteppedClock
) -> None:
    """No answer has said that the release is paid for; under a window of a month it costs once more."""
    daily, monthly = levels(own=limit(10, 10, period=Period.DAY)), levels(own=limit(10, 10))
    clock.now += DAY - clock.now % DAY - 10 * SECOND
    await any_store.apply(*reserve("r", ONE, on=daily))
    clock.step(seconds=20)
    await any_store.apply(*charge("s", ONE, on=daily, settles="r", release_id="rel"))
    again = (await any_store.apply(*charge("again", ONE, on=monthly, release_id="rel"))).outcome
    assert isinstance(again, Charged)
    assert not again.already_paid


async def test_what_was_paid_for_is_known_in_a_longer_window(any_store: Store, clock: SteppedClock) -> None:
    """It is kept beyond its own window, which was over for two weeks."""
    monthly, longer = levels(own=limit(10, 10)), levels(own=limit(10, 10, days=60))
    await any_store.apply(*charge("c", ONE, on=monthly, release_id="rel"))
    clock.step(days=31)
    await any_store.apply(*charge("other", ONE, on=monthly, release_id="other"))
    again = (await any_store.apply(*charge("again", ONE, on=longer, release_id="rel"))).outcome
    assert isinstance(again, Charged)
    assert again.already_paid


async def test_a_reservation_of_yesterday_counts_in_a_longer_window(
    any_store: Store, clock: SteppedClock
) -> None:
    """It was made before midnight under a day, and is settled under a month that has begun to count meanwhile."""
    daily, monthly = levels(own=limit(10, 10, period=Period.DAY)), levels(own=limit(10, 10))
    clock.now += DAY - clock.now % DAY - 10 * SECOND
    await any_store.apply(*reserve("r", Cost(6, 6), on=daily))
    clock.step(seconds=20)
    await any_store.apply(*charge("today", Cost(1, 1), on=daily))
    refused = await any_store.apply(*charge("too much", Cost(4, 4), on=monthly))
    assert isinstance(refused.outcome, Held)
    assert (Cost(1, 1), Cost(6, 6)) == await at(any_store, monthly, depth=2)
    await any_store.apply(*charge("s", Cost(5, 5), on=monthly, settles="r"))
    assert (Cost(6, 6), NOTHING) == await at(any_store, monthly, depth=2)
    await assert_verified(any_store)


async def test_a_level_between_others_counts_all_accounts_below_it(any_store: Store) -> None:
    """Of four levels only the account itself has a limit at first; then each level meets one of its own."""
    ann, bob = Account(("acme", "eu", "team", "ann")), Account(("acme", "eu", "team", "bob"))
    for number, account in enumerate((ann, bob, ann)):
        await any_store.apply(*charge(f"c{number}", Cost(2, 1), account=account, on=levels(account)))
    for depth, spent in ((1, Cost(6, 3)), (2, Cost(6, 3)), (3, Cost(6, 3)), (4, Cost(4, 2))):
        on = (LevelLimit(ann.level(depth), limit(50, 50)), *levels(ann))[: 2 if depth < 4 else 1]
        found = (await any_store.read(ann, on)).levels[0]
        assert spent == found.spent
    await assert_verified(any_store)


async def test_what_was_paid_for_stays_free_when_the_window_changes(
    any_store: Store, clock: SteppedClock
) -> None:
    """As long as its charge counts by the new one."""
    daily, monthly = levels(own=limit(10, 10, period=Period.DAY)), levels(own=limit(10, 10))
    await any_store.apply(*charge("paid", ONE, on=daily, release_id="rel", query_id="q"))
    clock.step(days=1)
    again = (await any_store.apply(*charge("again", ONE, on=monthly, release_id="rel", query_id="q"))).outcome
    assert isinstance(again, Charged)
    assert again.already_paid


async def test_a_changed_limit_leaves_an_entry_with_what_it_was(any_store: Store) -> None:
    """First set, then raised, then removed; for each level of a request one entry."""
    raised = limit(60, 60, days=7)
    steps: list[tuple[tuple[Account, Limit | None], ...]] = [
        ((COMPANY, PARENT), (COLLEAGUE, OWN)),
        ((COMPANY, raised),),
        ((COMPANY, None),),
    ]
    for number, changes in enumerate(steps):
        setting = SetLimits(actor="ops", account=COMPANY, request_id=f"set {number}", changes=changes)
        await any_store.apply(setting, NO_LIMITS)
    entries = [entry for _, entry in await any_store.journal(COMPANY.root, "", "", 10)]
    assert all(entry.kind is EntryKind.LIMIT and entry.cost == NOTHING for entry in entries)
    assert [
        ("set 0", COMPANY, (None, PARENT)),
        ("set 0", COLLEAGUE, (None, OWN)),
        ("set 1", COMPANY, (PARENT, raised)),
        ("set 2", COMPANY, (raised, None)),
    ] == [(entry.request_id, entry.account, parse_change(entry.change)) for entry in entries]
    await assert_verified(any_store)


@pytest.mark.parametrize("own", [limit(100, 100), limit(100, 100, days=7)])
async def test_a_refund_is_taken_off_where_there_is_no_limit_too(
    any_store: Store, clock: SteppedClock, own: Limit
) -> None:
    """Today's and yesterday's; a limit that comes later does not count them."""
    on = levels(own=own)
    for day in range(2):
        await any_store.apply(*charge(f"c{day}", Cost(3, 1), on=on, release_id=f"rel{day}"))
        clock.step(days=1 - day)
    for day in range(2):
        refund = await with_charge(
            any_store, without_charge(ANALYST, f"rel{day}", "wrong", f"back{day}", actor="ops")
        )
        await any_store.apply(refund, AppliedLimits(on))
        assert (Cost(3 * (1 - day), 1 - day), NOTHING) == await at(any_store, levels(own=own, above=PARENT))
    await assert_verified(any_store)


async def test_a_sliding_window_counts_what_another_replica_charged_after_its_midnight(
    any_store: Store, clock: SteppedClock
) -> None:
    """One has no limit there, and days of another zone: its charge leaves as late as others of its day."""
    sliding = limit(10, 10, days=2)
    knows = levels(own=limit(100, 100), above=sliding)
    does_not = levels(own=limit(100, 100, zone="America/Los_Angeles"))
    clock.now += 8 * 3600 * SECOND
    await any_store.apply(*charge("begins the day there", Cost(1, 1), on=does_not))
    await any_store.apply(*charge("the same day here", Cost(1, 1), on=knows))
    clock.step(seconds=6 * 3600)
    await any_store.apply(*charge("the next day here", Cost(6, 6), on=does_not))
    clock.step(seconds=8 * 3600)
    await any_store.apply(*charge("and later", Cost(1, 1), on=knows))
    # The third day by UTC: the first one has left, the second one has not.
    clock.step(days=1)
    assert isinstance((await any_store.apply(*charge("too much", Cost(4, 4), on=knows))).outcome, Exhausted)
    spent, _ = await at(any_store, knows)
    assert spent.calls >= 7
    await assert_verified(any_store)
