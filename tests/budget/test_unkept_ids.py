"""What a name that has no row leaves in a ledger: nothing, and every process answers it alike."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.outcomes import Charged, Exhausted, LimitsSet, Reason, Refused
from budget_service.ledger.pseudonyms import NameRow, ids_in
from budget_service.ledger.requests import CloseAccount, ReturnLease
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.windows import SECOND
from budget_service.regions.lease import Lease, LendingTerms, NotLent, RegionTotal
from budget_service.regions.lending import Lending
from budget_service.server.limit_cache import LimitCache
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import Store
from budget_service.stores.named_store import NamedStore
from budget_service.tuning import Tuning
from tests.budget.test_forgetting import BELOW, CONFIGURATION
from tests.budget.test_named_store import ACCOUNT, LEVELS, asking
from tests.support.budget_samples import UNIT, SteppedClock, charge, reserve

TEAM, UNKNOWN = Account(BELOW[:2]), Account(BELOW)
OF_UNKNOWN = CONFIGURATION.limits_of(UNKNOWN, {})


async def rowless(store: Store) -> set[str]:
    """Return the ids of balances and requests that have no row."""
    levels = [level for level, _ in (await store.balances("acme", "", 99)).balances]
    states = (await store.all_limits("acme")).states
    ids = {segment for level in (*levels, *states) for segment in level.path[1:]}
    ids |= {id_ for state in states.values() for each in state.requests for id_ in ids_in(each.asked_by)}
    return ids - {each.id for each in await store.names_of("acme", sorted(ids))}


async def test_who_settles_below_a_closed_level_leaves_no_balance(any_store: Store) -> None:
    """Under an id that nobody has."""
    store = NamedStore(any_store)
    closing = CloseAccount(account=TEAM, request_id="close", actor="ops", reason="over")
    await store.apply(closing, NO_LIMITS)
    limits = (await store.limits(UNKNOWN)).applied_to(UNKNOWN, OF_UNKNOWN)
    asked = structs.replace(charge("s", account=UNKNOWN, on=OF_UNKNOWN).request, reservation_id="gone")
    assert Refused(Reason.RESERVATION_OVER) == (await store.apply(asked, limits)).outcome
    assert set() == await rowless(any_store)


async def test_who_is_refused_below_a_closed_level_is_so_by_every_process(any_store: Store) -> None:
    """Also when the same is asked again."""
    closing = CloseAccount(account=TEAM, request_id="close", actor="ops", reason="over")
    await NamedStore(any_store).apply(closing, NO_LIMITS)
    limits = (await NamedStore(any_store).limits(UNKNOWN)).applied_to(UNKNOWN, OF_UNKNOWN)
    asked = charge("c", account=UNKNOWN, on=OF_UNKNOWN).request
    outcomes = [(await NamedStore(any_store).apply(asked, limits)).outcome for _ in range(2)]
    assert [Refused(Reason.ACCOUNT_CLOSED)] * 2 == outcomes


@pytest.mark.parametrize("tuning", [Tuning(expired_at_once=2)])
async def test_what_has_lapsed_ends_without_a_balance_of_who_is_refused(
    any_store: Store, clock: SteppedClock
) -> None:
    """More has lapsed than one decision ends, so that something is written before there is an answer."""
    store = NamedStore(any_store)
    for number in range(5):
        await store.apply(*reserve(f"r{number}", Cost(1, 0), account=ACCOUNT, on=LEVELS))
    clock.step(days=1)
    answer = await store.apply(*charge("dear", Cost(10**6, 1), account=UNKNOWN, on=OF_UNKNOWN))
    assert isinstance(answer.outcome, Exhausted)
    assert set() == await rowless(any_store)


async def test_who_asked_before_has_a_row_for_another_account(any_store: Store, clock: SteppedClock) -> None:
    """Their earlier request has expired, and still waits to be swept."""
    store = NamedStore(any_store)
    await store.apply(asking(), NO_LIMITS)
    clock.step(days=31)
    again = asking(asking=Account(("acme", "other")), request_id="again")
    assert isinstance((await store.apply(again, NO_LIMITS)).outcome, LimitsSet)
    assert set() == await rowless(any_store)


async def test_a_retry_that_overtakes_the_name_is_answered_alike(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has looked for the name before the first attempt, in another process, was granted."""
    asked, named = charge("c", Cost(1, 1), account=ACCOUNT, on=LEVELS), any_store.named

    async def late(root: str, names: Sequence[str]) -> list[NameRow]:
        found = await named(root, names)
        monkeypatch.setattr(any_store, "named", named)
        await NamedStore(any_store).apply(*asked)
        return found

    monkeypatch.setattr(any_store, "named", late)
    answer = await NamedStore(any_store).apply(*asked)
    assert (Charged, True) == (type(answer.outcome), answer.replayed)


async def test_a_lease_that_was_given_up_is_not_lent_later(any_store: Store) -> None:
    """The request for it comes after the one that ends it, for an account that was never used."""
    limits = LimitCache(NamedStore(any_store).store, LiveSettings(Settings(CONFIGURATION)))
    # From now on the root has a currency.
    await limits.apply(charge("first", Cost(1, 1), account=UNKNOWN).request)
    lending, name = Lending(limits), "a" * 32
    over = ReturnLease(account=ACCOUNT, lease_id=name, number=0, region="eu")
    assert await lending.take_back(over, was_granted=False) is None
    terms = LendingTerms(share_percent=50, outstanding_percent=50, length=3600 * SECOND)
    lease = Lease(lease_id=name, account=ACCOUNT, unit_id=UNIT)
    assert NotLent.REFUSED == await lending.lend(lease, "eu", Cost(2, 1), RegionTotal(), terms)
