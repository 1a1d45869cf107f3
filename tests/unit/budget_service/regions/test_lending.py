"""What a home ledger lends, and what it takes from those who say that they have borrowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.rpc import code_pb2
from gris_api.budget.v1 import admin_pb2, regions_pb2
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.common.v1 import cost_pb2

from budget_service.ledger.windows import SECOND
from budget_service.server.home_client import HomeStatusError
from budget_service.server.hosting import METHODS
from budget_service.server.lending_service import SERVICE_NAME
from gris_serving.authorisation import Role
from gris_serving.tokens import TokenError
from tests.unit.budget_service.regions.home import ANN, CONFIGURATION, Home, cost

LEASE, OTHER = "a" * 32, "b" * 32


async def test_a_region_is_lent_only_what_the_home_holds() -> None:
    """A question that was paid for and has the region's name makes no lease free."""
    home = Home()
    charge = pb.UpdateBudgetRequest(
        account=ANN, cost=cost(10), request_id="first", query_id="eu", release_id="r"
    )
    await home.call("UpdateBudget", charge)
    granted = await home.borrow(LEASE)
    assert granted.share.information > 0
    assert await home.counted() == (10, granted.share.information)
    await home.report(LEASE, cost(90))
    assert await home.counted() == (100, granted.share.information - 90)


async def test_only_its_own_region_reports_a_lease_or_gives_it_back() -> None:
    """Another one that has learned of its id is refused, and takes no number of its charges."""
    home = Home()
    share = (await home.borrow(LEASE)).share.information
    for call in (home.report(LEASE, cost(90), region="us"), home.give_back(LEASE, region="us")):
        with pytest.raises(HomeStatusError, match="another region"):
            await call
    assert await home.counted() == (0, share)
    assert (await home.report(LEASE, cost(90))).is_known
    returned = await home.give_back(LEASE, reported=1)
    assert (returned.was_held, returned.returned.information) == (True, share - 90)


async def test_a_ledger_that_lends_nothing_takes_no_report() -> None:
    """Without `leases` every method for regions is refused: one call could spend a whole budget there, and more."""
    home = Home(configuration=CONFIGURATION.model_copy(update={"leases": None}))
    for call in (home.report(LEASE, cost(5001)), home.give_back(LEASE), home.borrow(LEASE)):
        with pytest.raises(HomeStatusError, match="has no `leases`") as refused:
            await call
        assert refused.value.status.code == code_pb2.FAILED_PRECONDITION
    assert await home.counted() == (0, 0)
    assert not home.ledger.disk.journal


async def test_a_charge_of_a_lease_that_a_home_does_not_know_counts() -> None:
    """A home that was set back has forgotten what it lent; what was charged there has happened."""
    home = Home()
    assert not (await home.report(LEASE, cost(5001))).is_known
    assert await home.counted() == (5001, 0)


async def test_a_token_may_end_while_its_call_is_served() -> None:
    """The region is refused as any caller is whose token has ended, and nothing is lent to it."""

    def ended(_: object) -> frozenset[str]:
        raise TokenError("the token has expired")

    home = Home(regions_of=ended)
    with pytest.raises(HomeStatusError, match="expired") as refused:
        await home.borrow(LEASE)
    assert refused.value.status.code == code_pb2.UNAUTHENTICATED
    assert await home.counted() == (0, 0)


async def test_a_lease_that_never_arrived_is_given_back_and_granted_no_more() -> None:
    """It holds nothing, but nobody is granted it later that it was granted."""
    home = Home()
    assert not (await home.give_back(LEASE)).returned.information
    assert (await home.borrow(LEASE)).not_lent
    assert await home.counted() == (0, 0)


@pytest.mark.parametrize("is_known", [True, False])
async def test_no_report_makes_an_account_unreadable(is_known: bool) -> None:
    """Sums that would not fit are cut, with room for what is held: leases still lapse, and nothing more is granted."""
    home = Home()
    for lease in (LEASE, OTHER):
        assert (await home.borrow(lease)).share.information
    named = LEASE if is_known else "c" * 32
    for number in (1, 2):
        reported = await home.report(named, cost(2**63 - 1, calls=2**63 - 1), number)
        assert not reported.is_known
    home.ledger.now += 3600 * SECOND
    spent, held = await home.counted()
    assert (spent > 2**62, held) == (True, 0)
    assert (await home.borrow("d" * 32)).not_lent
    assert not (await home.report(named, cost(5), 3)).charged.calls


async def test_what_was_charged_in_a_region_is_not_refunded(tmp_path: Path) -> None:
    """The region would go on giving the release for nothing; a charge at the home is refunded as ever."""
    home = Home(tmp_path / "home.db")
    await home.borrow(LEASE)
    await home.report(LEASE, cost(50))
    charge = pb.UpdateBudgetRequest(account=ANN, cost=cost(7), request_id="at-home", release_id="r")
    await home.call("UpdateBudget", charge)
    with pytest.raises(HomeStatusError, match="charged in a region"):
        await home.refund("r-aaaa-1")
    assert await home.refund("r") == 7
    assert (await home.counted())[0] == 50
    await home.store.close()


async def test_the_first_share_fixes_the_currency_of_its_root(tmp_path: Path) -> None:
    """In another one nothing is lent or charged, so that no amounts of two currencies are added up."""
    other, home = "f" * 32, Home(tmp_path / "home.db")
    # Nothing is lent by a lease that is given back before it was asked for.
    await home.give_back(OTHER)
    granted = await home.borrow(LEASE)
    assert granted.share.information
    assert (await home.borrow("c" * 32, unit_id=other)).not_lent == regions_pb2.NOT_LENT_REFUSED
    charge = pb.UpdateBudgetRequest(
        account=ANN,
        cost=cost_pb2.Cost(information=7, calls=1, unit_id=other),
        request_id="other",
        release_id="r",
    )
    with pytest.raises(HomeStatusError, match="another currency"):
        await home.call("UpdateBudget", charge)
    assert await home.counted() == (0, granted.share.information)
    for reported in (0, 1):
        if reported:
            assert (await home.report(LEASE, cost(9))).is_known
        checked = await home.call("VerifyLedger", admin_pb2.VerifyLedgerRequest())
        assert not checked.different
    await home.store.close()


def test_what_regions_ask_needs_a_role_of_its_own() -> None:
    """A caller that may only spend can neither report charges nor return what others hold."""
    asked = {method for method, role in METHODS.roles.items() if role is Role.REGION}
    assert asked == {f"/{SERVICE_NAME}/{each}" for each in ("BorrowBudget", "ReportCharges", "ReturnBudget")}
