"""An administrator closes accounts and opens them again: no budget is made by it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.limits import NO_LIMITS, NO_VERSION, AppliedLimits, LimitsChangedError
from budget_service.ledger.outcomes import (
    Answer,
    Cancelled,
    Charged,
    Exhausted,
    LimitsSet,
    Reason,
    Refused,
    Reserved,
)
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import NOTHING, Account, Cost
from budget_service.stores.interface import Store
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    NOON,
    UNIT,
    SteppedClock,
    cancel,
    charge,
    reserve,
)
from tests.unit.budget_service.account_changes import (
    CLOSED,
    ONE,
    ask,
    assert_sound,
    close,
    for_,
    reopen,
    spent,
)


@pytest.mark.parametrize("level", [ANALYST, COMPANY])
async def test_nothing_begins_under_a_closed_account(any_store: Store, level: Account) -> None:
    """Neither a reservation nor a charge, paid for or not; closed above it is closed too."""
    await ask(any_store, for_(ANALYST, charge, "c", ONE, release_id="rel", query_id="q"))
    assert LimitsSet(NOON) == await close(any_store, level)
    for number, asked in enumerate(
        (
            for_(ANALYST, reserve, "r", ONE),
            for_(ANALYST, reserve, "paid", ONE, query_id="q"),
            for_(ANALYST, charge, "d", ONE),
            for_(ANALYST, charge, "again", ONE, release_id="rel", query_id="q"),
            for_(ANALYST, charge, "nothing", NOTHING),
        )
    ):
        assert CLOSED == (await ask(any_store, asked)).outcome, number
        assert (await ask(any_store, asked)).replayed
    assert [ONE, ONE] == await spent(any_store, ANALYST)
    colleague = (await ask(any_store, for_(COLLEAGUE, charge, "bob", ONE))).outcome
    assert isinstance(colleague, Charged) == (level == ANALYST)
    await assert_sound(any_store)


async def test_what_was_asked_before_the_closing_ends_as_it_would(
    any_store: Store, clock: SteppedClock
) -> None:
    """Settled, cancelled, forfeited or lapsed; a retry of what was answered is answered again."""
    await ask(any_store, for_(ANALYST, charge, "before", ONE, release_id="rel", query_id="q"))
    for name in ("settled", "cancelled", "forfeited", "lapsed"):
        held = await ask(any_store, for_(ANALYST, reserve, name, ONE, forfeits=name == "forfeited"))
        assert isinstance(held.outcome, Reserved)
    free = (await ask(any_store, for_(ANALYST, reserve, "free", ONE, query_id="q"))).outcome
    assert isinstance(free, Reserved)
    assert free.already_paid
    assert LimitsSet(NOON) == await close(any_store, ANALYST)
    again = await ask(any_store, for_(ANALYST, charge, "before", ONE, release_id="rel", query_id="q"))
    assert again.replayed
    assert isinstance(again.outcome, Charged)
    settled = (await ask(any_store, for_(ANALYST, charge, "s", ONE, settles="settled"))).outcome
    assert isinstance(settled, Charged)
    paid = (await ask(any_store, for_(ANALYST, charge, "f", ONE, settles="free", release_id="rel"))).outcome
    assert isinstance(paid, Charged)
    assert paid.already_paid
    cancelled = (await ask(any_store, for_(ANALYST, cancel, "x", ends="cancelled"))).outcome
    assert Cancelled(ONE, UNIT) == cancelled
    clock.step(seconds=61)
    await ask(any_store, for_(COLLEAGUE, charge, "bob", ONE))
    assert [Cost(4, 4), Cost(3, 3)] == await spent(any_store, ANALYST)
    await assert_sound(any_store)


async def test_an_account_that_is_opened_again_has_what_it_had_spent(any_store: Store) -> None:
    """Nothing is given back; a refusal is remembered under its id, as any other is."""
    await ask(any_store, for_(ANALYST, charge, "c", Cost(9, 4)))
    await close(any_store, ANALYST)
    refused = for_(ANALYST, charge, "refused", ONE)
    assert CLOSED == (await ask(any_store, refused)).outcome
    assert LimitsSet(NOON + 1) == await reopen(any_store, ANALYST)
    assert CLOSED == (await ask(any_store, refused)).outcome
    too_much = (await ask(any_store, for_(ANALYST, charge, "d", Cost(2, 1)))).outcome
    assert isinstance(too_much, Exhausted)
    assert isinstance((await ask(any_store, for_(ANALYST, charge, "e", ONE))).outcome, Charged)
    assert not (await any_store.all_limits("acme")).closed
    await assert_sound(any_store)


async def test_an_account_is_closed_and_opened_once(any_store: Store) -> None:
    """A repeat is the first answer, another request is refused, and one id is one change."""
    closing = CloseAccount(actor="ops", account=ANALYST, request_id="close", reason="left")
    assert Refused(Reason.ACCOUNT_NOT_CLOSED) == await reopen(any_store, ANALYST, "too early")
    assert Answer(LimitsSet(NOON), replayed=False) == await any_store.apply(closing, NO_LIMITS)
    assert Answer(LimitsSet(NOON), replayed=True) == await any_store.apply(closing, NO_LIMITS)
    other = replace(closing, reason="another")
    assert Refused(Reason.REQUEST_ID_REUSED) == (await any_store.apply(other, NO_LIMITS)).outcome
    assert CLOSED == await close(any_store, ANALYST, "close again")
    # Only what is closed itself is opened.
    assert LimitsSet(NOON + 1) == await close(any_store, COMPANY, "all")
    assert Refused(Reason.ACCOUNT_NOT_CLOSED) == await reopen(any_store, COLLEAGUE)
    assert LimitsSet(NOON + 2) == await reopen(any_store, ANALYST, "one")
    assert CLOSED == (await ask(any_store, for_(ANALYST, charge, "c", ONE))).outcome
    entries = [entry for _, entry in await any_store.journal("acme", "", "", 10)]
    assert [
        (EntryKind.CLOSE, ANALYST, "left"),
        (EntryKind.CLOSE, COMPANY, "left"),
        (EntryKind.REOPEN, ANALYST, "is back"),
    ] == [(each.kind, each.account, each.reason) for each in entries]
    assert all(each.cost == NOTHING and each.holds == () for each in entries)
    await assert_sound(any_store)


async def test_what_is_decided_by_older_limits_is_looked_up_again(any_store: Store) -> None:
    """So that no process charges a closed account."""
    asked = for_(ANALYST, charge, "late", ONE)
    stored = await any_store.limits(ANALYST)
    before = stored.applied_to(ANALYST, asked.limits.levels)
    await any_store.apply(asked.request, before)
    await close(any_store, ANALYST)
    with pytest.raises(LimitsChangedError):
        await any_store.apply(for_(ANALYST, charge, "later", ONE).request, before)


async def test_limits_of_no_version_close_no_account(any_store: Store) -> None:
    """By them it is only asked whether that was answered before, even of an act that no limit concerns."""
    closing = CloseAccount(actor="ops", account=ANALYST, request_id="close")
    with pytest.raises(LimitsChangedError):
        await any_store.apply(closing, AppliedLimits(version=NO_VERSION))
    answer = await any_store.apply(closing, NO_LIMITS)
    assert answer == replace(
        await any_store.apply(closing, AppliedLimits(version=NO_VERSION)), replayed=False
    )
