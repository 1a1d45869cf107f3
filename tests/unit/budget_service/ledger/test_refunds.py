"""An administrator gives back what a release cost whose answer was wrong: once, and never more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc
from msgspec.structs import replace

from budget_service.ledger.acts.write_off import WriteOff
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import Cancelled, Charged, Reason, Refused, Reserved
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import NOTHING, Account, Cost, LevelLimit
from budget_service.ledger.windows import Period
from budget_service.server.audit import Verification, verify
from budget_service.server.hosting import administering
from budget_service.server.ledger import Ledger
from budget_service.server.refunds import with_charge, without_charge
from budget_service.stores.interface import Store
from tests.support.budget_client import cost, failure
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    UNIT,
    Asked,
    SteppedClock,
    charge,
    levels,
    limit,
    reserve,
)
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.served import SETTINGS
from tests.unit.budget_service.trims import trimmed

ON = levels(ANALYST, own=limit(10, 5, days=7), above=limit(30, 9))
NOT_PAID = Refused(Reason.NOT_PAID)


async def refunded(
    store: Store,
    id_: str,
    release_id: str = "rel",
    account: Account = ANALYST,
    on: tuple[LevelLimit, ...] = ON,
) -> Any:
    """Give back a release; return what is answered."""
    asked = without_charge(account, release_id, "wrong rows", id_, actor="ops")
    return (await store.apply(await with_charge(store, asked), AppliedLimits(on))).outcome


async def spent(store: Store) -> list[Cost]:
    """Return what is spent at each level of the analyst."""
    return [each.spent for each in (await store.read(ANALYST, ON)).levels]


async def assert_sound(store: Store) -> None:
    """The journal adds up to the balances."""
    found = Verification()
    await verify(store, ANALYST.root, found)
    assert found.differences == []


async def test_a_refund_leaves_another_release_of_the_question_paid(
    any_store: Store, clock: SteppedClock
) -> None:
    """The question was paid for on two days; under a longer window the first release is given back."""
    daily = levels(ANALYST, own=limit(10, 5, period=Period.DAY), above=limit(30, 9))
    for release_id in ("old", "new"):
        await any_store.apply(*charge(release_id, on=daily, release_id=release_id, query_id="q"))
        clock.step(days=1)
    assert isinstance(await refunded(any_store, "back", "old"), Cancelled)
    again = (await any_store.apply(*reserve("r", on=ON, query_id="q"))).outcome
    assert isinstance(again, Reserved)
    assert again.already_paid


async def test_a_refund_takes_a_charge_off_every_level_once(any_store: Store) -> None:
    """Another one of the same release is refused, and a repeat is the first answer."""
    # As much as is given back, so that it alone could pay for a second refund.
    await any_store.apply(*charge("other", Cost(4, 1), on=ON, release_id="other"))
    await any_store.apply(*reserve("r", Cost(6, 1), on=ON, query_id="q"))
    await any_store.apply(*charge("c", Cost(3, 1), on=ON, settles="r", release_id="rel"))
    assert Cancelled(Cost(3, 1), UNIT) == await refunded(any_store, "back")
    assert [Cost(4, 1)] * 2 == await spent(any_store)
    asked = Asked(without_charge(ANALYST, "rel", "wrong rows", "back", actor="ops"), AppliedLimits(ON))
    again = await any_store.apply(*asked)
    assert (Cancelled(Cost(3, 1), UNIT), True) == (again.outcome, again.replayed)
    assert NOT_PAID == await refunded(any_store, "twice")
    other_reason = await any_store.apply(*asked.but(reason="another"))
    assert Refused(Reason.REQUEST_ID_REUSED) == other_reason.outcome
    assert [Cost(4, 1)] * 2 == await spent(any_store)
    await assert_sound(any_store)
    ((_, entry),) = await any_store.latest(ANALYST.root, "", 1)
    assert (EntryKind.REFUNDED, "wrong rows", Cost(3, 1)) == (entry.kind, entry.reason, entry.cost)


async def test_a_refunded_release_is_charged_again(any_store: Store) -> None:
    """Neither the release nor its question is free any more; paid again, it can be given back again."""
    first = charge("c", Cost(3, 1), on=ON, release_id="rel", query_id="q")
    for round_ in range(3):
        held = (await any_store.apply(*reserve(f"r{round_}", Cost(4, 1), on=ON, query_id="q"))).outcome
        assert isinstance(held, Reserved)
        assert not held.already_paid
        again = charge(f"c{round_}", Cost(3, 1), on=ON, settles=f"r{round_}", release_id="rel")
        charged = (await any_store.apply(*again)).outcome
        assert isinstance(charged, Charged)
        assert not charged.already_paid
        assert Cancelled(Cost(3, 1), UNIT) == await refunded(any_store, f"back{round_}")
        assert [Cost(0, 0)] * 2 == await spent(any_store)
    # Another release of the question is another answer, and no contradiction any more.
    assert isinstance((await any_store.apply(*first.but(release_id="rel2"))).outcome, Charged)
    await assert_sound(any_store)


async def test_a_free_reservation_is_over_once_its_release_is_refunded(any_store: Store) -> None:
    """It holds nothing, so nothing can be shown under it, until the release is paid for again."""
    await any_store.apply(*charge("c", Cost(3, 1), on=ON, release_id="rel", query_id="q"))
    held = (await any_store.apply(*reserve("free", Cost(4, 1), on=ON, query_id="q"))).outcome
    assert isinstance(held, Reserved)
    assert held.already_paid
    assert Cancelled(Cost(3, 1), UNIT) == await refunded(any_store, "back")
    settling = charge("late", Cost(3, 1), on=ON, settles="free", release_id="rel")
    assert Refused(Reason.RESERVATION_OVER) == (await any_store.apply(*settling)).outcome
    assert [Cost(0, 0)] * 2 == await spent(any_store)
    await any_store.apply(*charge("again", Cost(3, 1), on=ON, release_id="rel", query_id="q"))
    paid = (await any_store.apply(*settling.but(request_id="later"))).outcome
    assert isinstance(paid, Charged)
    assert (NOTHING, True) == (paid.charged, paid.already_paid)
    assert [Cost(3, 1)] * 2 == await spent(any_store)
    await assert_sound(any_store)


@pytest.mark.parametrize("held", [Cost(6, 2), None])
async def test_a_level_above_gets_back_what_it_counted(any_store: Store, held: Cost | None) -> None:
    """The worst case where it counted that, whatever the configuration says by now."""
    await any_store.apply(*reserve("r", held or Cost(6, 2), on=ON, query_id="q"))
    asked = charge("c", Cost(1, 1), on=ON, settles="r", release_id="rel")
    await any_store.apply(*asked.but(worst_case_above=held is not None))
    assert [held or Cost(1, 1), Cost(1, 1)] == await spent(any_store)
    assert Cancelled(Cost(1, 1), UNIT) == await refunded(any_store, "back")
    assert [Cost(0, 0)] * 2 == await spent(any_store)
    await assert_sound(any_store)


async def test_only_what_counts_is_given_back(any_store: Store, clock: SteppedClock) -> None:
    """An earlier day of a sliding window does, one that has left does not; nor what somebody else paid for."""
    await any_store.apply(*charge("c", Cost(3, 1), on=ON, release_id="rel"))
    clock.step(days=3)
    await any_store.apply(*charge("d", Cost(2, 1), on=ON, release_id="new"))
    assert NOT_PAID == await refunded(any_store, "unknown", "no such")
    others = levels(COLLEAGUE, own=limit(10, 5, days=7), above=limit(30, 9))
    assert NOT_PAID == await refunded(any_store, "theirs", "rel", COLLEAGUE, others)
    assert Cancelled(Cost(3, 1), UNIT) == await refunded(any_store, "back")
    assert [Cost(2, 1)] * 2 == await spent(any_store)
    clock.step(days=8)
    assert NOT_PAID == await refunded(any_store, "late", "new")
    await assert_sound(any_store)
    # A base adds up charges with their refunds; a charge that is trimmed is no longer known.
    await any_store.apply(*charge("e", Cost(1, 1), on=ON, release_id="trimmed"))
    await any_store.apply(*charge("f", Cost(1, 1), on=ON, release_id="kept"))
    assert Cancelled(Cost(1, 1), UNIT) == await refunded(any_store, "before", "kept")
    await trimmed(any_store)
    assert NOT_PAID == await refunded(any_store, "after", "trimmed")
    await assert_sound(any_store)


async def test_a_stale_look_at_the_journal_gives_back_no_more_than_was_charged(any_store: Store) -> None:
    """The ledger decides: a request that says more than its span has is refused, and changes nothing."""
    await any_store.apply(*charge("c", Cost(3, 1), on=ON, release_id="rel"))
    asked = await with_charge(any_store, without_charge(ANALYST, "rel", "x", "more", actor="ops"))
    too_much = replace(asked, cost=Cost(4, 1))
    assert NOT_PAID == (await any_store.apply(too_much, AppliedLimits(ON))).outcome
    assert [Cost(3, 1)] * 2 == await spent(any_store)
    await assert_sound(any_store)


@pytest.mark.parametrize("lost_at", [ANALYST, COMPANY])
async def test_what_was_charged_before_a_write_off_is_not_given_back(
    any_store: Store, clock: SteppedClock, lost_at: Account
) -> None:
    """The rest was written off for charges that were lost: budget that returns could be spent a second time."""
    await any_store.apply(*charge("c", Cost(3, 1), on=ON, release_id="rel"))
    clock.step(days=1)
    level = next(each for each in ON if each.level == lost_at)
    await any_store.apply(WriteOff(actor="ops", account=lost_at, request_id="w"), AppliedLimits((level,)))
    before = await spent(any_store)
    assert NOT_PAID == await refunded(any_store, "back")
    assert before == await spent(any_store)
    # Not those of another account, nor what is charged later.
    clock.step(days=31)
    await any_store.apply(*charge("d", Cost(2, 1), on=ON, release_id="new"))
    assert Cancelled(Cost(2, 1), UNIT) == await refunded(any_store, "later", "new")
    await assert_sound(any_store)


async def test_a_refund_that_was_answered_before_a_write_off_is_repeated(
    any_store: Store, clock: SteppedClock
) -> None:
    """A repeat gives nothing back, and says what was said: also a day later, as of everything that moves budget."""
    await any_store.apply(*charge("c", Cost(3, 1), on=ON, release_id="rel"))
    assert Cancelled(Cost(3, 1), UNIT) == await refunded(any_store, "back")
    await any_store.apply(WriteOff(actor="ops", account=ANALYST, request_id="w"), AppliedLimits(ON[1:]))
    clock.step(days=1)
    assert Cancelled(Cost(3, 1), UNIT) == await refunded(any_store, "back")


@asynccontextmanager
async def admin_on(store: Store) -> AsyncIterator[Any]:
    """Serve the administrator."""
    async with (
        administering(Ledger(store), SETTINGS, "127.0.0.1:0") as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield admin_pb2_grpc.BudgetAdminServiceStub(channel)


def asking(**fields: Any) -> pb.RefundChargeRequest:
    """Return a request to refund."""
    known: dict[str, Any] = {"account": {"path": ANALYST.path}, "release_id": "rel", "reason": "wrong"}
    return pb.RefundChargeRequest(**(known | {"request_id": "back"} | fields))


async def test_the_administrator_refunds_and_lists_it(any_store: Store) -> None:
    """With its reason; a fault names its field, and what is not paid for is refused by its reason."""
    await any_store.apply(*charge("c", Cost(3, 1), release_id="rel", query_id="q"))
    async with admin_on(any_store) as admin:
        first = await admin.RefundCharge(asking(reason="wrong: 1/3 of the rows, größer"))
        assert (cost(3, 1), False) == (first.refunded, first.replayed)
        assert (await admin.RefundCharge(asking(reason="wrong: 1/3 of the rows, größer"))).replayed
        error = await failure(admin.RefundCharge(asking(request_id="again")))
        assert (grpc.StatusCode.FAILED_PRECONDITION, "NOT_PAID") == (error.code, error.info.reason)
        unreadable = [("reason", f"rows{each}gone") for each in "\n\x1b\u202e\u200b\u2028"]
        missing = [("reason", ""), ("reason", "x" * 257), ("release_id", ""), ("request_id", "")]
        for field, wrong in (*missing, *unreadable):
            error = await failure(admin.RefundCharge(asking(**{field: wrong})))
            assert (grpc.StatusCode.INVALID_ARGUMENT, (field,)) == (error.code, error.fields)
        listed = (await admin.ReadJournal(pb.ReadJournalRequest(under={"path": ["acme"]}))).entries
    assert [pb.CHARGE_KIND_DIRECT, pb.CHARGE_KIND_REFUNDED] == [each.kind for each in listed]
    assert "wrong: 1/3 of the rows, größer" == listed[1].reason


async def test_a_repeat_is_answered_as_before_whatever_was_charged_since(any_store: Store) -> None:
    """A region charges the release once more, which cannot be refunded; the repeat asks for nothing new."""
    await any_store.apply(*charge("c", Cost(3, 1), release_id="rel", query_id="q"))
    async with admin_on(any_store) as admin:
        await admin.RefundCharge(asking())
        await any_store.apply(*charge("lease:1.1", Cost(2, 1), release_id="rel", query_id="q"))
        repeated = await admin.RefundCharge(asking())
        assert (cost(3, 1), True) == (repeated.refunded, repeated.replayed)
        error = await failure(admin.RefundCharge(asking(request_id="again")))
    assert error.info.reason == "CHARGED_IN_REGION"


async def test_a_refund_that_was_slipped_into_the_journal_is_found(clock: SteppedClock) -> None:
    """The balance still has what the journal says was given back."""
    store = MemoryStore(clock)
    await store.apply(*charge("c", Cost(3, 1), on=ON, release_id="rel"))
    await assert_sound(store)
    store.entries.append(replace(store.entries[-1], kind=EntryKind.REFUNDED, request_id="slipped"))
    found = Verification()
    await verify(store, ANALYST.root, found)
    # Both units at both levels, and the number of entries.
    assert 5 == found.different
