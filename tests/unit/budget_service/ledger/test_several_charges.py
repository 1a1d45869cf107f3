"""Several charges in one request: all of them or none, each as if it were made alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.outcomes import Charged, Exhausted, Reason, Refused
from budget_service.ledger.values import NOTHING, Cost
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store
from tests.support.budget_samples import ANALYST, NOON, OTHER_UNIT, UNIT, Asked, SteppedClock, charge, levels
from tests.unit.budget_service.memory_store import MemoryStore

ON = levels()
LEFT = Cost(10, 5)


def several(id_: str, *costs: Cost, first: int = 0, unit_id: str = UNIT) -> Asked[Charge]:
    """Return a request for releases r0, r1 .. of the questions q0, q1 .., from the `first` on."""
    one, *more = [
        charge(id_, each, release_id=f"r{at}", query_id=f"q{at}", unit_id=unit_id).request
        for at, each in enumerate(costs, first)
    ]
    return Asked(replace(one, further=tuple(more)), charge(id_).limits)


async def spent(store: Store) -> Cost:
    """Return what the analyst has spent."""
    return (await store.read(ANALYST, ON)).levels[-1].spent


async def test_all_are_charged_and_each_is_paid_for(any_store: Store) -> None:
    """A repeat is answered as it was first; each alone is free afterwards, also beside one that is not."""
    asked = several("a", Cost(4, 1), Cost(3, 1), Cost(2, 1))
    first = await any_store.apply(*asked)
    assert isinstance(first.outcome, Charged)
    assert (first.outcome.charged, first.outcome.already_paid) == (Cost(9, 3), False)
    assert first.outcome.each == (Cost(4, 1), Cost(3, 1), Cost(2, 1))
    assert await any_store.apply(*asked) == replace(first, replayed=True)
    alone = (await any_store.apply(*charge("b", Cost(3, 1), release_id="r1", query_id="q1"))).outcome
    assert isinstance(alone, Charged)
    assert alone.already_paid
    mixed = (await any_store.apply(*several("c", Cost(2, 1), Cost(1, 1), first=2))).outcome
    assert isinstance(mixed, Charged)
    assert (mixed.charged, mixed.already_paid, mixed.each) == (Cost(1, 1), False, (NOTHING, Cost(1, 1)))
    free = (await any_store.apply(*several("d", Cost(9, 9), Cost(9, 9)))).outcome
    assert isinstance(free, Charged)
    assert (free.charged, free.already_paid, free.each) == (NOTHING, True, (NOTHING, NOTHING))
    assert await spent(any_store) == Cost(10, 4)
    journal = [(each.release_id, each.cost) for _, each in await any_store.journal("acme", "", "", 9)]
    assert journal == [("r0", Cost(4, 1)), ("r1", Cost(3, 1)), ("r2", Cost(2, 1)), ("r3", Cost(1, 1))]
    await verify(any_store, "acme", found := Verification())
    assert found.differences == []


@pytest.mark.parametrize(
    "costs", [(Cost(6, 1), Cost(5, 1)), (Cost(1, 3), Cost(1, 3)), (Cost(1, 1), Cost(11, 1))]
)
async def test_none_is_charged_if_they_do_not_fit_together(any_store: Store, costs: tuple[Cost, ...]) -> None:
    """Though the first alone would; the refusal names the sum."""
    refused = (await any_store.apply(*several("a", *costs))).outcome
    assert isinstance(refused, Exhausted)
    total = sum(costs, start=NOTHING)
    assert all(each.requested == total.of(each.unit) for each in refused.shortfalls)
    assert (await spent(any_store), await any_store.journal("acme", "", "", 9)) == (NOTHING, [])
    assert isinstance((await any_store.apply(*several("b", costs[0]))).outcome, Charged)


async def test_one_that_contradicts_refuses_all(any_store: Store) -> None:
    """Another release of a question that is paid for; another currency; other content under an id."""
    await any_store.apply(*charge("a", Cost(1, 1), release_id="old", query_id="q1"))
    asked = several("b", Cost(1, 1), Cost(1, 1))
    assert (await any_store.apply(*asked)).outcome == Refused(Reason.RELEASE_MISMATCH)
    other = several("c", Cost(1, 1), Cost(1, 1), first=5, unit_id=OTHER_UNIT)
    assert (await any_store.apply(*other)).outcome == Refused(Reason.UNIT_MISMATCH)
    await any_store.apply(*several("d", Cost(1, 1), Cost(1, 1), first=5))
    for changed in (several("d", Cost(1, 1), Cost(2, 1), first=5), several("d", Cost(1, 1), first=5)):
        assert (await any_store.apply(*changed)).outcome == Refused(Reason.REQUEST_ID_REUSED)
    assert await spent(any_store) == Cost(3, 3)


@given(
    paid=st.sets(st.integers(0, 4)),
    costs=st.lists(st.builds(Cost, st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=5),
)
async def test_together_they_are_what_each_is_alone(paid: set[int], costs: list[Cost]) -> None:
    """Whatever was paid for before: the same state after all of them, or the one before them."""
    together, alone = MemoryStore(SteppedClock(NOON)), MemoryStore(SteppedClock(NOON))
    for store in (together, alone):
        for at in sorted(paid):
            await store.apply(*several(f"before{at}", Cost(1, 0), first=at))
    before = (await spent(together), together.paid_releases.copy(), len(together.entries))
    outcome = (await together.apply(*several("all", *costs))).outcome
    singles = [
        (await alone.apply(*several(f"s{at}", each, first=at))).outcome for at, each in enumerate(costs)
    ]
    if all(isinstance(each, Charged) for each in singles):
        assert isinstance(outcome, Charged)
        assert together.kept == alone.kept
        assert (together.paid_releases, together.paid_queries) == (alone.paid_releases, alone.paid_queries)
        each = [single.charged for single in singles if isinstance(single, Charged)]
        assert (outcome.each or (outcome.charged,)) == tuple(each)
    else:
        assert isinstance(outcome, Exhausted)
        assert before == (await spent(together), together.paid_releases, len(together.entries))
