"""What was published under the charges that count: kept in the journal, and reported level by level."""

from __future__ import annotations

import grpc
import pytest
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.ledger.acts.currency import ChangeCurrency
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import Reason, Refused
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Cost, InvalidFieldError, LevelLimit
from budget_service.ledger.windows import Period
from budget_service.server.messages import parse_statement
from budget_service.server.policy_statements import TooManyStatementsError, policy_statements_of
from budget_service.stores.interface import Store
from budget_service.tuning import DEFAULTS, Tuning
from dp_service.queries.publications import publications_in
from tests.support.budget_client import account, charging, cost, failure, reserving
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    OTHER_UNIT,
    UNREADABLE_STATEMENTS,
    SteppedClock,
    charge,
    levels,
    limit,
    reserve,
    statement,
)
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.policy_service import stub_on
from tests.unit.budget_service.trims import trimmed

BOTH = levels(ANALYST, own=limit(100, 50), above=limit(1000, 500))


async def reported(
    store: Store, on: tuple[LevelLimit, ...] = BOTH, *, tuning: Tuning = DEFAULTS
) -> list[list[str]]:
    """Return the statements of each level of the analyst."""
    found = await store.read(ANALYST, on)
    said = await policy_statements_of(store, ANALYST, found.levels, tuning)
    return [list(each.statements) for each in said.values()]


async def test_each_level_tells_what_was_published_under_its_charges(any_store: Store) -> None:
    """Once, sorted, and only where it is asked for; those of colleagues on the levels above."""
    a, b, c = statement(1), statement(2, 3), statement(4)
    async with stub_on(any_store) as stub:
        held = await stub.ReserveBudget(reserving(cost(2, 1)))
        settled = charging(cost(1, 1), reservation_id=held.reservation_id, policy_statement=statement(2, 3))
        first = await stub.UpdateBudget(settled)
        for said, path in ((a, ("acme", "ann")), (a, ("acme", "ann")), (c, ("acme", "bob"))):
            await stub.UpdateBudget(charging(cost(1, 0), path, policy_statement=said))
        await stub.UpdateBudget(charging(cost(1, 0)))
        found = await stub.GetBudget(pb.GetBudgetRequest(account=account(), with_policy_statements=True))
        assert [[a, b, c], [a, b]] == [list(each.policy_statements) for each in found.levels]
        plain = await stub.GetBudget(pb.GetBudgetRequest(account=account()))
        assert [[], []] == [list(each.policy_statements) for each in plain.levels]
        again = await stub.UpdateBudget(settled)
        assert (again.replayed, list(again.levels)) == (True, list(first.levels))
        settled.policy_statement = statement(9)
        error = await failure(stub.UpdateBudget(settled))
        assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("request_id",))


@pytest.mark.parametrize(
    "text", ["", statement(1), statement(5, 6, 7), "a" * 64 + ":7:3/8", *UNREADABLE_STATEMENTS]
)
def test_the_ledger_takes_the_statements_that_dp_service_reads(text: str) -> None:
    """And no others: one that cannot be read takes the guarantee from all who share a level."""
    try:
        publications_in(text)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(InvalidFieldError, match=r"^policy_statement "):
            parse_statement(text, "policy_statement")
    else:
        assert text == parse_statement(text, "policy_statement")


async def test_what_left_the_window_is_told_no_more(any_store: Store, clock: SteppedClock) -> None:
    """Of a sliding level day by day, of a calendar one with its window; forfeited holds stand between."""
    on = levels(ANALYST, own=limit(100, 50, days=3), above=limit(1000, 500, period=Period.MONTH))
    for day in ("one", "two", "three", "four"):
        lapsing = reserve(f"r-{day}", Cost(1, 0), on=on, forfeits=True, ttl_seconds=1)
        await any_store.apply(*lapsing)
        clock.step(seconds=2)
        await any_store.apply(*charge(day, Cost(1, 0), on=on, policy_statement=day))
        clock.step(days=1)
    assert [["four", "one", "three", "two"], ["four", "three"]] == await reported(any_store, on)
    clock.step(days=20)
    assert [[], []] == await reported(any_store, on)


async def test_a_long_journal_is_read_page_by_page_and_no_further_than_the_window(
    any_store: Store, clock: SteppedClock
) -> None:
    """Whatever the length of a page."""
    for number in range(3):
        await any_store.apply(*charge(f"old{number}", Cost(1, 0), on=BOTH, policy_statement="old"))
    clock.step(days=31)
    for number in range(5):
        await any_store.apply(*charge(f"n{number}", Cost(1, 0), on=BOTH, policy_statement=f"s{number}"))
    expected = [[f"s{number}" for number in range(5)]] * 2
    assert expected == await reported(any_store, tuning=Tuning(statements_page=2))


async def test_a_reservation_that_is_forfeited_late_hides_nothing_behind_it(clock: SteppedClock) -> None:
    """Its entry has the time at which it lapsed, which may be before the window of what was written before it."""
    store = MemoryStore(clock)
    await store.apply(*reserve("r", Cost(1, 0), on=BOTH, forfeits=True, ttl_seconds=1))
    clock.step(days=31)
    await store.apply(*charge("c", Cost(1, 0), on=BOTH, policy_statement="new"))
    # So many may lapse at once that the last ones are written with a later request.
    store.entries.reverse()
    assert [EntryKind.DIRECT, EntryKind.FORFEITED] == [each.kind for each in store.entries]
    assert [["new"], ["new"]] == await reported(store)


async def test_a_settled_charge_counts_in_the_window_that_admitted_it(
    any_store: Store, clock: SteppedClock
) -> None:
    """Settled after the window has ended, its statement belongs to the window before."""
    clock.step(days=17, seconds=43_000)
    await any_store.apply(*reserve("r", Cost(1, 0), on=BOTH, ttl_seconds=600))
    clock.step(seconds=400)
    await any_store.apply(*charge("late", Cost(1, 0), on=BOTH, settles="r", policy_statement="before"))
    await any_store.apply(*charge("new", Cost(1, 0), on=BOTH, policy_statement="new"))
    assert [["new"], ["new"]] == await reported(any_store)


async def test_an_answer_is_whole_or_none(any_store: Store) -> None:
    """More statements than one answer may hold are an error that says so, on the wire too."""
    two = Tuning(max_statements=2)
    for number in range(2):
        await any_store.apply(*charge(f"n{number}", Cost(1, 0), on=BOTH, policy_statement=f"s{number}"))
    assert [["s0", "s1"]] * 2 == await reported(any_store, tuning=two)
    await any_store.apply(*charge("n2", Cost(1, 0), on=BOTH, policy_statement="s2"))
    with pytest.raises(TooManyStatementsError):
        await reported(any_store, tuning=two)
    async with stub_on(any_store, two) as stub:
        asked = pb.GetBudgetRequest(account=account(), with_policy_statements=True)
        error = await failure(stub.GetBudget(asked))
        assert (error.code, error.info.reason) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            "TOO_MANY_STATEMENTS",
        )


async def test_trimmed_charges_that_count_are_not_passed_over(any_store: Store, clock: SteppedClock) -> None:
    """Those of each level, as long as its window reaches back to them."""
    await any_store.apply(*charge("a", Cost(1, 0), on=BOTH, policy_statement="trimmed"))
    await trimmed(any_store)
    await any_store.apply(*charge("b", Cost(1, 0), on=BOTH, policy_statement="later"))
    assert [["later", "trimmed"]] * 2 == await reported(any_store)
    found = await any_store.read(COLLEAGUE, levels(COLLEAGUE))
    assert () == (await policy_statements_of(any_store, COLLEAGUE, found.levels))[2].statements
    clock.step(days=31)
    await any_store.apply(*charge("c", Cost(1, 0), on=BOTH, policy_statement="new"))
    assert [["new"]] * 2 == await reported(any_store)


async def test_trimmed_charges_still_tell_whether_a_sum_hides_costs(any_store: Store) -> None:
    """One that was settled for less than its worst case shows what it cost, for as long as it counts."""
    await any_store.apply(*reserve("r", Cost(5, 1), on=BOTH))
    await any_store.apply(*charge("c", Cost(1, 0), on=BOTH, settles="r"))
    await trimmed(any_store)
    found = await any_store.read(ANALYST, BOTH)
    assert not (await policy_statements_of(any_store, ANALYST, found.levels))[1].has_worst_cases


async def test_count_noise_cannot_change_in_the_middle_of_a_window(
    any_store: Store, clock: SteppedClock
) -> None:
    """Gaussian counts have another unit_id: it is refused until it is planned, and begins with a new window."""
    first = charge("laplace", Cost(1, 0), on=BOTH, policy_statement="laplace")
    await any_store.apply(*first)
    gaussian = charge("gaussian", Cost(1, 0), on=BOTH, unit_id=OTHER_UNIT, policy_statement="gaussian")
    assert Refused(Reason.UNIT_MISMATCH) == (await any_store.apply(*gaussian)).outcome
    planned = ChangeCurrency(actor="ops", account=COMPANY, request_id="plan", unit_id=OTHER_UNIT)
    await any_store.apply(planned, AppliedLimits(rules=(BOTH[0].limit.window,)))
    still = charge("early", Cost(1, 0), on=BOTH, unit_id=OTHER_UNIT, policy_statement="gaussian")
    assert Refused(Reason.UNIT_MISMATCH) == (await any_store.apply(*still)).outcome
    assert [["laplace"]] * 2 == await reported(any_store)
    clock.step(days=31)
    late = charge("late", Cost(1, 0), on=BOTH, policy_statement="laplace")
    assert Refused(Reason.UNIT_MISMATCH) == (await any_store.apply(*late)).outcome
    begun = charge("begun", Cost(1, 0), on=BOTH, unit_id=OTHER_UNIT, policy_statement="gaussian")
    await any_store.apply(*begun)
    assert [["gaussian"]] * 2 == await reported(any_store)
