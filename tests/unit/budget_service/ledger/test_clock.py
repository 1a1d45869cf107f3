"""A store's clock that had jumped ahead: the ledger goes on, and no window is opened again; on every store."""

from __future__ import annotations

import pytest

from budget_service.ledger.act import Act
from budget_service.ledger.acts.clock import ResumeClock
from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.outcomes import (
    Answer,
    Charged,
    ClockResumed,
    Exhausted,
    Held,
    Outcome,
    Reason,
    Refused,
)
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import NOTHING, Account, Cost, LevelLimit
from budget_service.ledger.windows import DAY, SECOND, Microseconds
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from tests.support.budget_samples import (
    ANALYST,
    COMPANY,
    NOON,
    Asked,
    SteppedClock,
    charge,
    levels,
    limit,
    reserve,
)

YEAR = 365 * DAY
MONTH = levels()
DAYS = levels(own=limit(10, 5, days=7))


def resume(id_: str, true_time: Microseconds) -> Asked[ResumeClock]:
    """Return a request to let the company's time go on."""
    return Asked(ResumeClock(actor="ops", account=COMPANY, request_id=id_, true_time=true_time), NO_LIMITS)


SPENT_AND_HELD = (("gone", Cost(5, 0)), ("again", Cost(2, 0)))


async def reported(store: Store, asked: Asked[Act]) -> Outcome:
    """Return the outcome of a request."""
    return (await store.apply(*asked)).outcome


async def jumped(store: Store, clock: SteppedClock, on: tuple[LevelLimit, ...] = MONTH) -> None:
    """Spend all there is, jump a year ahead, spend all there is, hold nothing, and go back."""
    await store.apply(*charge("before", Cost(10, 5), on=on))
    clock.now += YEAR
    await store.apply(*charge("ahead", Cost(6, 3), on=on))
    await store.apply(*reserve("held", Cost(3, 1), on=on))
    clock.now = NOON


@pytest.mark.parametrize("on", [MONTH, DAYS], ids=["month", "sliding"])
async def test_time_goes_on_and_what_was_charged_ahead_counts(
    any_store: Store, clock: SteppedClock, on: tuple[LevelLimit, ...]
) -> None:
    """The open window is neither opened again nor frozen: it ends when its rule says, by the ledger's own time."""
    await jumped(any_store, clock, on)
    assert await reported(any_store, resume("c", NOON + 5 * SECOND)) == ClockResumed(YEAR)
    assert isinstance(await reported(any_store, charge("again", Cost(2, 0), on=on)), Held)
    assert isinstance(await reported(any_store, charge("gone", Cost(5, 0), on=on)), Exhausted)
    assert isinstance(await reported(any_store, charge("rest", Cost(1, 0), on=on)), Charged)
    clock.step(seconds=61)
    found = await any_store.read(ANALYST, on)
    assert found.ahead == YEAR
    assert (found.levels[-1].spent, found.levels[-1].reserved) == (Cost(7, 3), NOTHING)
    clock.step(days=6)
    assert isinstance(await reported(any_store, charge("too soon", Cost(10, 0), on=on)), Exhausted)
    clock.step(days=12)
    assert isinstance(await reported(any_store, charge("later", Cost(10, 5), on=on)), Charged)
    verified = Verification()
    await verify(any_store, "acme", verified)
    assert verified.differences == []


async def test_the_ledger_never_goes_back_whatever_the_clock_does_next(
    any_store: Store, clock: SteppedClock
) -> None:
    """A later correction by an hour stops time for an hour, as ever."""
    await jumped(any_store, clock)
    await any_store.apply(*resume("c", NOON))
    clock.step(seconds=3600)
    first = await reported(any_store, reserve("r", Cost(1, 0)))
    clock.step(seconds=-3600)
    second = await reported(any_store, reserve("s", Cost(0, 0)))
    assert getattr(second, "expires_at", 0) == getattr(first, "expires_at", 1)


@pytest.mark.parametrize(
    ("behind", "still"), [(YEAR, YEAR), (60 * SECOND, 60 * SECOND), (60 * SECOND - 1, 0)]
)
async def test_whoever_is_refused_while_time_stands_still_is_told(
    any_store: Store, clock: SteppedClock, behind: Microseconds, still: Microseconds
) -> None:
    """And whoever reads: no window ends and no reservation lapses, until an administrator lets time continue."""
    await jumped(any_store, clock)
    clock.now = NOON + YEAR - behind
    refused, held = [await reported(any_store, charge(id_, cost)) for id_, cost in SPENT_AND_HELD]
    assert isinstance(refused, Exhausted)
    assert isinstance(held, Held)
    found = await any_store.read(ANALYST, MONTH)
    assert [refused.stands_still, held.stands_still, found.stands_still, found.ahead] == [still] * 4
    if still == YEAR:
        await any_store.apply(*resume("c", clock.now))
        found = await any_store.read(ANALYST, MONTH)
        assert (found.stands_still, found.ahead) == (0, YEAR)


async def test_it_is_done_once_and_kept_in_the_journal(any_store: Store, clock: SteppedClock) -> None:
    """A repeat that says another time is the first answer; a second request finds nothing to do."""
    await jumped(any_store, clock)
    first = await any_store.apply(*resume("c", NOON))
    clock.step(seconds=30)
    assert await any_store.apply(*resume("c", NOON + 30 * SECOND)) == Answer(first.outcome, replayed=True)
    assert await reported(any_store, resume("d", clock.now)) == Refused(Reason.CLOCK_NOT_BEHIND)
    kinds = [entry.kind for _, entry in await any_store.journal("acme", "", "", 9)]
    assert kinds.count(EntryKind.CLOCK) == 1


@pytest.mark.parametrize("apart", [-61 * SECOND, 61 * SECOND, -YEAR, YEAR])
async def test_two_clocks_that_disagree_change_nothing(
    any_store: Store, clock: SteppedClock, apart: Microseconds
) -> None:
    """Whichever is wrong: time might jump when it is set right."""
    await jumped(any_store, clock)
    assert await reported(any_store, resume("c", NOON + apart)) == Refused(Reason.CLOCKS_DISAGREE)
    assert (await any_store.read(ANALYST, MONTH)).stands_still == YEAR


async def test_a_clock_that_was_wrong_for_a_while_makes_no_other_root_forget(
    any_store: Store, clock: SteppedClock
) -> None:
    """A charge that was answered is still answered as before, and charged once, when the clock is right again."""
    other = Account(("other", "bob"))
    for account in (ANALYST, other):
        await any_store.apply(*charge("a", account=account, release_id="r"))
    clock.step(days=400)
    for index in range(8):
        await any_store.apply(*charge(f"late{index}", Cost(0, 0), account=other))
    clock.step(days=-400)
    assert (await any_store.apply(*charge("a", release_id="r"))).replayed
    again = (await any_store.apply(*charge("b", release_id="r"))).outcome
    assert isinstance(again, Charged)
    assert again.already_paid
    assert again.levels[-1].spent == Cost(4, 1)


async def test_a_replay_at_a_wrong_time_makes_nothing_out_of_date(
    any_store: Store, clock: SteppedClock
) -> None:
    """It changes nothing, so it is not recorded when it came, and what came before it counts by the recorded time."""
    await any_store.apply(*charge("early", Cost(1, 1), release_id="e"))
    clock.step(days=30)
    await any_store.apply(*charge("a"))
    clock.step(days=25)
    assert (await any_store.apply(*charge("a"))).replayed
    clock.step(days=-25)
    assert (await any_store.apply(*charge("early", Cost(1, 1), release_id="e"))).replayed
