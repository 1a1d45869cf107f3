"""A share that has lapsed: what was never granted of it returns to the process that had borrowed it, and only to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from gris_api.budget.v1 import admin_pb2, regions_pb2
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.common.v1 import cost_pb2

from budget_service.ledger.state import EntryKind
from budget_service.ledger.windows import DAY, SECOND
from budget_service.server.home_client import HomeStatusError
from budget_service.stores.write_off import write_off
from tests.unit.budget_service.regions.home import ANN, CONFIGURATION, PATH, Home, cost
from tests.unit.budget_service.regions.region_machine import SHARE, RegionMachine, settled

LEASE = "a" * 32
DAILY = ("acme", "daily")
# What the home charges itself, so that there is enough to be taken for what had lapsed.
OTHERS = pb.UpdateBudgetRequest(
    account=ANN, cost=cost(500, 50), request_id="others", query_id="q-others", release_id="r-others"
)


async def outage(home: Home, path: tuple[str, ...] = PATH, seconds: int = 90) -> RegionMachine:
    """Charge 5 in a region, cut it off, charge 4 more, and wait until its lease is over."""
    eu = await RegionMachine(home).start()
    await eu.charge("before", 5, path=path)
    await eu.maintenance.once()
    eu.is_cut = True
    await eu.charge("during", 4, path=path)
    home.ledger.now += seconds * SECOND
    eu.is_cut = False
    return eu


async def test_what_an_outage_has_left_of_a_share_returns(tmp_path: Path) -> None:
    """Every unit that the region has not charged, with an entry in the journal; it is not shown as lost any more."""
    home = Home(tmp_path / "home.db")
    eu = await outage(home)
    assert await home.counted() == (SHARE, 0)
    show = pb.GetBudgetRequest(account=ANN, with_region_shares=True)
    assert (await home.call("GetBudget", show)).lapsed_shares
    await settled(eu)
    assert await home.counted() == (9, 0)
    assert await home.counted(("acme",)) == (9, 0)
    # What was charged, but not reported when the share ended.
    assert [each.held.information for each in (await home.call("GetBudget", show)).lapsed_shares] == [4]
    entries = [each for _, each in await home.store.journal("acme", "", "", 10)]
    (refund,) = [each for each in entries if each.kind is EntryKind.REFUNDED]
    assert (refund.cost.information, refund.query_id, bool(refund.reason)) == (SHARE - 9, "eu", True)
    assert not (await home.call("VerifyLedger", admin_pb2.VerifyLedgerRequest())).different
    # It is alone with the account still, so that its questions need no home.
    await eu.charge("after")
    trips = len(eu.trips)
    await eu.charge("again")
    assert len(eu.trips) == trips
    await home.store.close()


async def test_a_share_whose_loan_was_never_answered_returns_whole() -> None:
    """The region has granted nothing from it, whatever the home has lent."""
    home = Home()
    eu = await RegionMachine(home).start()
    eu.loses_answers = True
    await eu.charge("lost")
    home.ledger.now += 90 * SECOND
    spent, _ = await home.counted()
    eu.loses_answers = False
    await settled(eu)
    assert spent >= SHARE
    # What the home charged itself, without an answer.
    assert await home.counted() == (spent - SHARE, 0)


async def test_a_region_that_started_again_gets_nothing_back() -> None:
    """It cannot know that its files are those with which it ended."""
    home = Home()
    eu = await outage(home)
    await eu.start()
    await settled(eu)
    assert await home.counted() == (SHARE, 0)
    assert not eu.region.records.leases


async def test_a_ledger_that_was_set_back_while_it_was_used_gets_nothing_back() -> None:
    """The process has seen more than the ledger has."""
    home = Home()
    eu = await RegionMachine(home).start()
    await eu.charge("one", 5)
    backup = dict(eu.disk.balances)
    await eu.charge("two", 7)
    eu.disk.balances |= backup
    home.ledger.now += 90 * SECOND
    await settled(eu)
    assert await home.counted() == (SHARE, 0)


async def test_a_share_returns_to_the_window_that_it_was_spent_in() -> None:
    """Not to the next one of the account, though to the levels above that never end."""
    home = Home()
    eu = await outage(home, DAILY)
    home.ledger.now += DAY
    assert await home.counted(("acme",)) == (SHARE, 0)
    own = pb.UpdateBudgetRequest(
        account=pb.Account(path=DAILY), cost=cost(7), request_id="next", query_id="q", release_id="r"
    )
    await home.call("UpdateBudget", own)
    await settled(eu)
    assert await home.counted(DAILY) == (7, 0)
    assert await home.counted(("acme",)) == (9 + 7, 0)


async def test_a_ledger_that_was_written_off_gives_nothing_back(tmp_path: Path) -> None:
    """What was written off stands for lost charges, and the share may have been given back and spent before."""
    home = Home(tmp_path / "home.db")
    eu = await outage(home)
    await write_off(home.store, CONFIGURATION.limit_of, CONFIGURATION.named_levels(), actor="ops")
    await settled(eu)
    assert await home.counted() == (1000, 0)
    await home.store.close()


@pytest.mark.parametrize("reported", [0, 1])
async def test_a_share_that_is_open_when_a_ledger_is_written_off_is_not_returned_a_second_time(
    tmp_path: Path, reported: int
) -> None:
    """Where the return was lost with the interval, as was what others spent of it; it is held until its end."""
    home = Home(tmp_path / "home.db")
    await home.borrow(LEASE)
    if reported:
        await home.report(LEASE, cost(5))
    await write_off(home.store, CONFIGURATION.limit_of, CONFIGURATION.named_levels(), actor="ops")
    for seconds in (0, 59, 1, 3600):
        home.ledger.now += seconds * SECOND
        found = await home.give_back(LEASE, reported, was_granted=True, charged=cost(5 * reported, reported))
        assert not found.was_held
        assert sum(await home.counted()) == 1000
    assert await home.counted() == (1000, 0)
    await home.store.close()


async def test_a_region_that_has_a_share_goes_on_when_its_home_was_written_off(tmp_path: Path) -> None:
    """What it reports then shows that it had not given the share back; so it does once, after that."""
    home = Home(tmp_path / "home.db")
    await home.borrow(LEASE)
    await write_off(home.store, CONFIGURATION.limit_of, CONFIGURATION.named_levels(), actor="ops")
    assert (await home.report(LEASE, cost(3))).is_known
    returned = (await home.give_back(LEASE, 1, was_granted=True)).returned.information
    assert await home.counted() == (1000 - returned, 0) == (1000 - SHARE + 3, 0)
    await home.store.close()


@pytest.mark.parametrize(
    ("reported", "charged", "returned"),
    [
        (1, cost(5), SHARE - 5),
        (1, cost(9), SHARE - 9),
        (1, None, 0),
        (1, cost(SHARE, 20), 0),
        (1, cost(SHARE + 1), 0),
        (0, cost(0, 0), 0),
        (2, cost(5), 0),
        (1, cost_pb2.Cost(information=5, calls=1, unit_id="f" * 32), 0),
    ],
)
async def test_a_home_returns_what_its_own_memory_of_the_lease_allows(
    reported: int, charged: cost_pb2.Cost | None, returned: int
) -> None:
    """No more than the share without the charges, once, after the last report that it has, in its currency."""
    home = Home()
    granted = await home.borrow(LEASE)
    assert granted.share.calls == 20
    await home.report(LEASE, cost(5))
    await home.call("UpdateBudget", OTHERS)
    home.ledger.now += 90 * SECOND
    for _ in range(2):
        home.ledger.now += 7200 * SECOND
        home.ledger.forget()
        found = await home.give_back(LEASE, reported, was_granted=True, charged=charged)
        assert (found.returned.information, found.was_held) == (returned, returned > 0)
    assert await home.counted() == (500 + SHARE - returned, 0)


async def test_what_is_charged_after_a_lapsed_share_has_returned_counts() -> None:
    """Nothing stands for it any more: two copies have charged, or a region that was set back; nothing returns then."""
    home = Home()
    await home.borrow(LEASE)
    await home.call("UpdateBudget", OTHERS)
    home.ledger.now += 90 * SECOND
    await home.give_back(LEASE, was_granted=True, charged=cost(0, 0))
    for number in (1, 2):
        assert not (await home.report(LEASE, cost(50), number)).is_known
        assert not (await home.give_back(LEASE, number, was_granted=True, charged=cost(0, 0))).was_held
    assert await home.counted() == (600, 0)


async def test_a_grant_that_is_too_old_to_be_remembered_returns_nothing() -> None:
    """Though it is still there: whether it was given back before may be forgotten already."""
    home = Home()
    await home.borrow(LEASE)
    home.ledger.now += 36 * DAY
    assert not (await home.give_back(LEASE, was_granted=True, charged=cost(0, 0))).was_held
    assert await home.counted() == (SHARE, 0)


@pytest.mark.parametrize(
    ("region", "path", "charged"),
    [("eu", PATH, 0), ("eu", PATH, 4), ("eu", ("acme", "anna"), 9), ("us", PATH, 9)],
    ids=["nothing charged", "less than reported", "another account", "another region"],
)
async def test_nothing_returns_of_what_is_recorded_or_to_somebody_else(
    region: str, path: tuple[str, ...], charged: int
) -> None:
    """Not more than was forfeited, only from the account that the share was taken of, and to the region that has it."""
    home = Home()
    others = pb.UpdateBudgetRequest(
        account=pb.Account(path=("acme", "anna")),
        cost=cost(500, 50),
        request_id="x",
        query_id="q",
        release_id="r",
    )
    await home.call("UpdateBudget", others)
    eu = await outage(home)
    (lease,) = eu.region.records.leases.values()
    asked = regions_pb2.ReturnBudgetRequest(
        account=pb.Account(path=path),
        region=region,
        instance=eu.region.records.instance if region == "eu" else "b" * 32,
        lease_id=lease.lease_id,
        reported=lease.reported,
        was_granted=True,
        charged=cost(charged, charged and 2),
    )
    before = [await home.counted(each) for each in (PATH, ("acme", "anna"))]
    if region == "us":
        with pytest.raises(HomeStatusError, match="another region"):
            await home.call("ReturnBudget", asked)
    else:
        assert not (await home.call("ReturnBudget", asked)).was_held
    assert before == [await home.counted(each) for each in (PATH, ("acme", "anna"))]
    await settled(eu)
    assert await home.counted() == (9, 0)
