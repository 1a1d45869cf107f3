"""Levels that accounts share may count worst cases, so that nobody sees there how a colleague's release ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.outcomes import Charged
from budget_service.ledger.values import MAX_AMOUNT, NOTHING, Cost
from budget_service.server.audit import Verification, verify
from budget_service.server.hosting import administering, serving
from budget_service.server.ledger import Ledger
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import Store
from gris_cli.budget.exhaustion import Exhaustion
from tests.support.budget_client import account, charging, connected, cost, reserving
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    SteppedClock,
    cancel,
    charge,
    levels,
    limit,
    reserve,
)
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.served import Stub
from tests.unit.budget_service.trims import trimmed

ACCOUNTS: list[dict[str, Any]] = [
    {"path": ["acme"], "limit": {"information": 1000, "calls": 500}},
    {"path": ["acme", "*"], "limit": {"information": 100, "calls": 50}},
]
ACTUAL = Configuration.model_validate({"accounts": ACCOUNTS})
WORST = ACTUAL.model_copy(update={"shared_levels": "worst_case"})
BOTH = levels(ANALYST, own=limit(100, 50), above=limit(1000, 500))
OTHERS = levels(COLLEAGUE, own=limit(100, 50), above=limit(1000, 500))


@asynccontextmanager
async def stub_on(store: Store, configuration: Configuration) -> AsyncIterator[Stub]:
    """Serve a store as a replica with this configuration does."""
    settings = LiveSettings(Settings(configuration))
    async with serving(Ledger(store), settings, "127.0.0.1:0") as address, connected(address) as stub:
        yield stub


async def settled(stub: Stub, held: tuple[int, int], spent: tuple[int, int], who: str = "ann") -> Any:
    """Ask one question whose worst case is `held` and whose release costs `spent`."""
    path = ("acme", who) if who else ("acme",)
    reservation = await stub.ReserveBudget(reserving(cost(*held), path))
    asked = charging(cost(*spent), path, reservation_id=reservation.reservation_id)
    return asked, await stub.UpdateBudget(asked)


async def spent_at(store: Store, configuration: Configuration, who: str = "bob") -> list[tuple[int, int]]:
    """Return what an analyst sees as spent at each level."""
    async with stub_on(store, configuration) as stub:
        found = await stub.GetBudget(pb.GetBudgetRequest(account=account(("acme", who))))
    return [(each.spent.information, each.spent.calls) for each in found.levels]


async def worst_cases(store: Store, configuration: Configuration, who: str = "bob") -> list[bool]:
    """Return for each level whether what is spent there tells nothing of releases."""
    async with stub_on(store, configuration) as stub:
        asked = pb.GetBudgetRequest(account=account(("acme", who)), with_policy_statements=True)
        return [each.worst_case for each in (await stub.GetBudget(asked)).levels]


async def test_a_colleague_sees_the_worst_case_whatever_was_released(any_store: Store) -> None:
    """The same for a release that found nothing and one that found all; the account itself pays what it got."""
    async with stub_on(any_store, WORST) as stub:
        asked, answer = await settled(stub, (9, 2), (1, 1))
        assert cost(1, 1) == answer.charged
        assert [9, 1] == [each.spent.information for each in answer.levels]
        again = await stub.UpdateBudget(asked)
        assert (again.replayed, list(again.levels)) == (True, list(answer.levels))
        await settled(stub, (9, 2), (9, 2), "cleo")
    assert [(18, 4), (0, 0)] == await spent_at(any_store, WORST)
    assert [(18, 4), (1, 1)] == await spent_at(any_store, WORST, "ann")
    assert [True, False] == await worst_cases(any_store, WORST)
    found = Verification()
    await verify(any_store, "acme", found)
    assert (2, []) == (found.entries, found.differences)


async def test_by_default_every_level_counts_what_a_release_cost(any_store: Store) -> None:
    """As it always did, and then no level is said to hide anything."""
    async with stub_on(any_store, ACTUAL) as stub:
        await settled(stub, (9, 2), (1, 1))
    assert [(1, 1), (0, 0)] == await spent_at(any_store, ACTUAL)
    assert [False, False] == await worst_cases(any_store, ACTUAL)


async def test_what_a_charge_counts_stays_as_it_was_written(any_store: Store, clock: SteppedClock) -> None:
    """Replicas with and without the key: the sums stay right, and no level is said to hide what it has shown."""
    async with stub_on(any_store, WORST) as stub:
        await settled(stub, (9, 2), (1, 1))
    assert [True, False] == await worst_cases(any_store, WORST)
    async with stub_on(any_store, ACTUAL) as stub:
        await settled(stub, (9, 2), (1, 1))
    assert [(10, 3), (0, 0)] == await spent_at(any_store, ACTUAL)
    assert [(10, 3), (0, 0)] == await spent_at(any_store, WORST)
    assert [False, False] == await worst_cases(any_store, WORST)
    for _ in range(2):
        assert 2 == (await trimmed(any_store)).entries
    clock.step(days=31)
    async with stub_on(any_store, WORST) as stub:
        await settled(stub, (9, 2), (1, 1))
    assert [True, False] == await worst_cases(any_store, WORST)


async def test_an_account_that_is_charged_itself_shows_those_below_what_it_cost(any_store: Store) -> None:
    """The company's own releases count at its own level as they were, so that it hides nothing then."""
    async with stub_on(any_store, WORST) as stub:
        await settled(stub, (9, 2), (1, 1), "")
    assert [(1, 1), (0, 0)] == await spent_at(any_store, WORST)
    assert [False, False] == await worst_cases(any_store, WORST)


async def test_direct_and_forfeited_charges_count_alike_everywhere(
    any_store: Store, clock: SteppedClock
) -> None:
    """The cost of one was fixed beforehand, that of the other is what was held; what is given back is free again."""
    await any_store.apply(*worst(charge("direct", Cost(3, 1), on=BOTH)))
    await any_store.apply(*reserve("f", Cost(5, 1), on=BOTH, forfeits=True, ttl_seconds=1))
    await any_store.apply(*reserve("g", Cost(7, 1), on=BOTH))
    await any_store.apply(*cancel("back", ends="g", on=BOTH))
    clock.step(seconds=2)
    await any_store.apply(*worst(charge("d2", Cost(1, 0), on=BOTH)))
    assert [(9, 2), (0, 0)] == await spent_at(any_store, WORST)
    assert [True, False] == await worst_cases(any_store, WORST)


async def test_a_reservation_that_lapsed_and_is_made_anew_counts_once(
    any_store: Store, clock: SteppedClock
) -> None:
    """What the connector does: the first one returns whole, the second one counts with its worst case."""
    await any_store.apply(*reserve("r", Cost(9, 2), on=BOTH, ttl_seconds=1))
    clock.step(seconds=2)
    over = await any_store.apply(*worst(charge("late", Cost(1, 1), on=BOTH, settles="r")))
    assert not isinstance(over.outcome, Charged)
    await any_store.apply(*reserve("r2", Cost(9, 2), on=BOTH))
    await any_store.apply(*worst(charge("anew", Cost(1, 1), on=BOTH, settles="r2")))
    assert [(9, 2), (0, 0)] == await spent_at(any_store, WORST)


async def test_a_paid_release_is_free_on_every_level(any_store: Store) -> None:
    """What was reserved for its repeat returns to all of them."""
    await any_store.apply(*reserve("r", Cost(9, 2), on=BOTH, query_id="other"))
    await any_store.apply(*worst(charge("c", Cost(4, 1), on=BOTH, release_id="rel")))
    free = await any_store.apply(*worst(charge("again", Cost(1, 1), on=BOTH, settles="r", release_id="rel")))
    assert isinstance(free.outcome, Charged)
    assert free.outcome.already_paid
    assert [(4, 1), (0, 0)] == await spent_at(any_store, WORST)


async def test_a_charge_never_passes_the_limit_above(any_store: Store) -> None:
    """The worst case was bounded there when it was held, up to the largest amount."""
    on = levels(ANALYST, own=limit(MAX_AMOUNT, 9), above=limit(MAX_AMOUNT, 9))
    await any_store.apply(*reserve("r", Cost(MAX_AMOUNT, 9), on=on))
    answer = await any_store.apply(*worst(charge("c", Cost(1, 1), on=on, settles="r")))
    assert isinstance(answer.outcome, Charged)
    above, own = answer.outcome.levels
    assert (Cost(MAX_AMOUNT, 9), NOTHING) == (above.spent, above.remaining)
    assert Cost(1, 1) == own.spent


async def test_both_costs_are_listed_and_reported(clock: SteppedClock) -> None:
    """ReadJournal says both; a report of a level above counts what that level counts."""
    store, settings = MemoryStore(clock), LiveSettings(Settings(WORST))
    await store.apply(*reserve("r", Cost(9, 2), on=BOTH))
    await store.apply(*worst(charge("c", Cost(1, 1), on=BOTH, settles="r")))
    async with (
        administering(Ledger(store), settings, "127.0.0.1:0") as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        (entry,) = (await stub.ReadJournal(admin_pb2.ReadJournalRequest(under={"path": ["acme"]}))).entries
    assert (cost(1, 1), cost(9, 2)) == (entry.cost, entry.shared_cost)
    for depth, most in ((1, 9), (2, 1)):
        usage = Exhaustion(clock.now, 1, depth)
        usage.add(entry)
        assert ([1], [0]) == (usage.exhausted("information", most), usage.exhausted("information", most + 1))


def worst(asked: Any) -> Any:
    """Return a charge as a service whose levels count worst cases makes it."""
    return asked.but(worst_case_above=True)


@pytest.mark.parametrize("text", ["worst", "true", "none"])
def test_the_key_takes_two_words(text: str) -> None:
    """And says which."""
    with pytest.raises(ValueError, match=r"'actual' or 'worst_case'"):
        Configuration.model_validate({"accounts": ACCOUNTS, "shared_levels": text})
