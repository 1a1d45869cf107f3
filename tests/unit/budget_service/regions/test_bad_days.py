"""What a day can bring to a region and its home: the limit holds, and what went wrong is said."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest
from gris_api.budget.v1 import admin_pb2, regions_pb2
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.ledger.values import Account
from budget_service.ledger.windows import DAY, SECOND
from budget_service.stores.interface import StoreUnavailableError
from tests.unit.budget_service.regions.home import ANN, PATH, Home, cost
from tests.unit.budget_service.regions.region_machine import SHARE, RegionMachine, logged, settled


@pytest.mark.parametrize(("days", "counted"), [(30, SHARE), (40, SHARE + 7)])
async def test_a_region_comes_back_after_a_month(days: int, counted: int) -> None:
    """What it had not reported was spent when its lease ended; a home that has forgotten the lease counts it anew."""
    home = Home()
    eu = await RegionMachine(home).start()
    await eu.charge("reported", 5)
    await eu.maintenance.once()
    eu.is_cut = True
    assert (await eu.charge("unreported", 7)).charged.information == 7
    home.ledger.now += days * DAY
    home.ledger.forget()
    show = pb.GetBudgetRequest(account=ANN, with_region_shares=True)
    found = await home.call("GetBudget", show)
    assert not found.region_shares
    assert [(each.region, each.held.information) for each in found.lapsed_shares] == [("eu", SHARE - 5)]
    eu.is_cut = False
    await eu.start()
    await eu.maintenance.once()
    assert await home.counted() == (counted, 0)
    assert (await home.call("GetBudget", show)).lapsed_shares == found.lapsed_shares
    assert not eu.region.records.leases
    recorded = [each.release_id for each in home.ledger.disk.journal if each.release_id]
    assert recorded == ["r-reported", "r-unreported"]
    # It works again, and what was paid for is free.
    assert (await eu.charge("again", 7, "unreported")).already_paid
    assert (await eu.charge("new", 5)).charged.information == 5


async def test_what_a_region_lost_is_shown_in_the_window_that_it_was_spent_in() -> None:
    """Not in the next one, where nothing is spent: not even before a request has written that it lapsed."""
    home = Home()
    eu = await RegionMachine(home).start()
    path = ("acme", "daily")
    assert (await eu.charge("one", 5, path=path)).charged.information == 5
    show = pb.GetBudgetRequest(account=pb.Account(path=path), with_region_shares=True)
    home.ledger.now += 120 * SECOND
    today = await home.call("GetBudget", show)
    assert [each.held.information for each in today.lapsed_shares] == [SHARE]
    assert today.levels[-1].spent.information == SHARE
    home.ledger.now += DAY
    tomorrow = await home.call("GetBudget", show)
    assert tomorrow.levels[-1].spent.information == 0
    assert not tomorrow.lapsed_shares


async def test_two_regions_with_one_name_share_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The second one is served by the home, and says why; each later gives back what it has borrowed itself."""
    home = Home()
    first, second = await RegionMachine(home).start(), await RegionMachine(home).start()
    await first.charge("first")
    assert (await second.charge("second")).charged.information == 5
    assert [each.share.information for each in second.region.records.leases.values()] == [0]
    assert {"region.taken", "lease.refused"} <= set(logged(caplog))
    home.ledger.now += 31 * SECOND
    await second.charge("third")
    assert any(each.share.information for each in second.region.records.leases.values())
    await settled(first, second)
    assert await home.counted() == (15, 0)


async def test_a_home_that_was_set_back_lends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It would lend again what was spent: the region's last lease shows it; a new start of the region ends it."""
    home = Home()
    backup = copy.deepcopy(home.ledger.disk.__dict__ | {"clock": None, "trip": None})
    eu = await RegionMachine(home).start()
    await eu.charge("one", 50)
    await settled(eu)
    assert await home.counted() == (50, 0)
    disk = home.ledger.disk
    disk.__dict__.update(backup | {"clock": disk.clock, "trip": disk.trip})
    assert await home.counted() == (0, 0)
    for number in range(3):
        home.ledger.now += 5 * SECOND
        assert (await eu.charge(f"n{number}")).charged.information == 5
        assert await home.counted() == (5 * number + 5, 0)
    assert not eu.region.records.leases
    assert eu.region.counters.unknown == 3
    # Once a minute is enough for a log.
    assert logged(caplog).count("lease.unknown") == 2
    home.ledger.now += 60 * SECOND
    await eu.start()
    await eu.charge("after")
    assert (await home.counted())[1] > 0


async def test_giving_a_lease_back_teaches_a_home_that_was_set_back_nothing() -> None:
    """It does not know the unused lease that its region had, and goes on lending nothing."""
    lost, later, home = "a" * 32, "b" * 32, Home()
    assert not (await home.give_back(lost, was_granted=True)).was_held
    answer = await home.borrow(later, last=lost)
    assert answer.not_lent == regions_pb2.NOT_LENT_SET_BACK
    assert await home.counted() == (0, 0)


async def test_what_is_held_of_a_home_that_was_set_back_is_granted_no_more() -> None:
    """As soon as one of its accounts asks for more; what was charged from it counts."""
    home = Home()
    backup = copy.deepcopy(home.ledger.disk.__dict__ | {"clock": None, "trip": None})
    eu = await RegionMachine(home).start()
    await eu.charge("one", 50)
    disk = home.ledger.disk
    disk.__dict__.update(backup | {"clock": disk.clock, "trip": disk.trip})
    # More than the share: the region asks for another one.
    await eu.charge("large", SHARE + 10)
    trips = len(eu.trips)
    await eu.charge("two", 5)
    assert len(eu.trips) > trips
    await settled(eu)
    assert await home.counted() == (50 + SHARE + 10 + 5, 0)


async def test_a_request_that_is_repeated_in_another_region_is_paid_for_once() -> None:
    """At once if the first region has reported it, else when it does; its reservation is refused there."""
    home = Home()
    eu, us = await RegionMachine(home, "eu").start(), await RegionMachine(home, "us").start()
    await eu.charge("reported")
    await eu.maintenance.once()
    assert (await us.charge("reported")).already_paid
    eu.is_cut = True
    await eu.charge("unreported", 7)
    assert (await us.charge("unreported", 7)).charged.information == 7
    reserve = pb.ReserveBudgetRequest(account=ANN, max_cost=cost(9), request_id="r", query_id="q-other")
    reserve.ttl.seconds = 10
    held = await eu.asked("ReserveBudget", reserve)
    eu.is_cut = False
    settle = pb.UpdateBudgetRequest(
        account=ANN, cost=cost(9), request_id="s", reservation_id=held.reservation_id, release_id="r-other"
    )
    assert await us.asked("UpdateBudget", settle) == "RESERVATION_OVER"
    home.ledger.now += 20 * SECOND
    await settled(eu, us)
    assert await home.counted() == (5 + 7, 0)


async def test_an_analyst_who_moves_takes_the_whole_budget_along() -> None:
    """What the first region does not use is given back when it is missed, and nothing is spent twice."""
    home = Home()
    eu, us = await RegionMachine(home, "eu").start(), await RegionMachine(home, "us").start()
    await eu.charge("one")
    refusals, spent = [], 5
    for number in range(40):
        found = await us.charge(f"n{number}", 50)
        if isinstance(found, str):
            refusals.append(found)
            # Once it is idle, a region gives back what is missing here.
            home.ledger.now += 16 * SECOND
            await eu.maintenance.once()
            await us.maintenance.once()
        else:
            spent += 50
    assert spent == 955
    assert refusals[0] == "BUDGET_HELD"
    assert refusals[-1] == "BUDGET_EXHAUSTED"
    assert (await eu.charge("again", 5, "n0")).already_paid
    await settled(eu, us)
    assert await home.counted() == (955, 0)


async def test_an_account_that_is_closed_is_charged_in_a_region_until_its_lease_ends(tmp_path: Path) -> None:
    """The home refuses it at once and lends nothing more; what it had lent may still be charged."""
    home = Home(tmp_path / "home.db")
    eu = await RegionMachine(home).start()
    await eu.charge("before")
    await home.call("CloseAccount", admin_pb2.CloseAccountRequest(account=ANN, reason="left", request_id="c"))
    assert (await eu.charge("after", 7)).charged.information == 7
    assert await eu.charge("large", SHARE + 1) == "ACCOUNT_CLOSED"
    home.ledger.now += 61 * SECOND
    assert await eu.charge("later") == "ACCOUNT_CLOSED"
    await home.store.close()


async def test_a_region_whose_clock_is_wrong_borrows_now_and_then_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every question goes to the home, without a loan each, and what was lent is given back at once."""
    home = Home()
    eu = await RegionMachine(home, skew_seconds=3600).start()
    for number in range(10):
        assert (await eu.charge(f"n{number}")).charged.information == 5
    await eu.maintenance.once()
    assert eu.trips.count("BorrowBudget") == eu.region.counters.wrong_clock == 1
    assert await home.counted() == (50, 0)
    assert "region.wrong_clock" in logged(caplog)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_is_set_while_a_share_is_held_spends_no_more_than_the_share(hours: int) -> None:
    """A region that goes on after its lease has ended spends what its home counts as spent already."""
    home = Home()
    eu = await RegionMachine(home).start()
    await eu.charge("one")
    eu.skew_seconds = hours * 3600
    home.ledger.now += 100 * SECOND
    assert await home.counted() == (SHARE, 0)
    eu.is_cut = True
    granted = [await eu.charge(f"n{number}", 50) for number in range(8)]
    spent = sum(each.charged.information for each in granted if not isinstance(each, str))
    assert spent == (150 if hours < 0 else 0)
    assert await home.counted() == (SHARE, 0)
    eu.is_cut = False
    await settled(eu)
    assert await home.counted() == (5 + spent, 0)


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_region_whose_clock_is_ahead_forgets_nothing_that_counts(restarts: bool) -> None:
    """It forgets by the home's time: else, once its clock is right again, a question might be paid for twice."""
    home = Home()
    eu = await RegionMachine(home).start()
    await eu.charge("one", path=("acme", "daily"))
    await eu.charge("large", 800, path=("acme", "daily"))
    eu.skew_seconds = 9 * DAY // SECOND
    if restarts:
        await eu.start()
    known = dict(eu.region.records.paid)
    await eu.maintenance.once()
    assert known
    assert eu.region.records.paid == known
    assert eu.region.records.own[Account(("acme", "daily"))].window_end


async def test_what_was_paid_for_in_windows_that_are_over_is_forgotten() -> None:
    """Not what counts still; the budget of a new window is borrowed as if nothing had been."""
    home = Home()
    eu = await RegionMachine(home).start()
    await eu.charge("one", path=("acme", "daily"))
    await eu.charge("large", 800, path=("acme", "daily"))
    await eu.charge("ann")
    await eu.charge("large-ann", 800)
    records = eu.region.records
    assert len(records.paid) == 4
    await settled(eu)
    home.ledger.now += 3 * DAY
    # The home has to be heard of: what its clock shows counts.
    await eu.charge("later")
    await eu.maintenance.once()
    assert len(records.paid) == 2
    assert set(records.own) == {Account(PATH)}
    again = await eu.start()
    assert set(again.region.records.own) == {Account(PATH)}
    assert (await eu.charge("next", 5, path=("acme", "daily"))).charged.information == 5
    assert (await eu.charge("repeat", 800, "large-ann")).already_paid


async def test_a_region_whose_home_lacks_its_store_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own store is there, and it goes on."""
    home = Home()
    eu = await RegionMachine(home).start()
    await eu.charge("one")
    await eu.maintenance.once()

    async def fail(*_: object) -> None:
        raise StoreUnavailableError("the database is down")

    monkeypatch.setattr(home.ledger, "read", fail)
    assert await eu.asked("GetBudget", pb.GetBudgetRequest(account=ANN)) == "HOME_UNAVAILABLE"
    assert (await eu.charge("two")).charged.information == 5


async def test_a_region_without_its_home_says_that_nobody_states_balances() -> None:
    """Not that the outcome is unknown, as of a charge: nothing is asked to be changed."""
    home = Home()
    eu = await RegionMachine(home).start()
    await eu.charge("one")
    eu.is_cut = True
    for reads in (
        ("GetBudget", pb.GetBudgetRequest(account=ANN)),
        ("CheckBudget", pb.CheckBudgetRequest(account=ANN, cost=cost(5))),
    ):
        assert await eu.asked(*reads) == "HOME_UNAVAILABLE"
    assert await eu.charge("large", 800) == "OUTCOME_UNKNOWN"


async def test_a_caller_that_leaves_while_the_home_charges_leaves_the_note_of_it() -> None:
    """Else the region could charge the repeat once more, from a lease that has room for it by then."""
    home = Home()
    region = await RegionMachine(home).start()
    await region.charge("one", 5)
    home_call, has_charged = home.call, asyncio.Event()

    async def slow(method: str, request: Any) -> Any:
        answer = await home_call(method, request)
        if method == "UpdateBudget":
            has_charged.set()
            await asyncio.sleep(0.05)
        return answer

    home.call = slow  # type: ignore[method-assign]
    leaving = asyncio.create_task(region.charge("left", 500))
    await has_charged.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await asyncio.sleep(0.1)
    assert (len(region.region.records.paid), region.region.counters.forwarded) == (2, 1)
    assert (await region.charge("left", 500)).replayed
    await region.maintenance.report()
    assert (await home.counted())[0] == 505
