"""What every store has to do: the same as the pure rules, on any history."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings

from budget_service.ledger.acts.refund import Refund
from budget_service.ledger.outcomes import Charged, Exhausted, Reserved
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import MAX_AMOUNT, Account, Cost, LevelLimit
from budget_service.ledger.windows import SECOND, Period
from budget_service.server.audit import Verification, verify
from budget_service.server.refunds import with_charge
from budget_service.stores.interface import Store
from tests.support.budget_samples import (
    ANALYST,
    NOON,
    Asked,
    SteppedClock,
    cancel,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.examples import examples
from tests.support.ledger_stores import UNHURRIED
from tests.unit.budget_service.histories import HISTORIES, ON_ONE_STORE, Player, Step
from tests.unit.budget_service.memory_store import MemoryStore

# One ledger serves many examples, so that each takes a root of its own.
roots = itertools.count()


def fresh_account() -> Account:
    """Return an account whose root was not used before; braces and colons are there to trip key names."""
    return Account((f"}}{{{next(roots)}:?", "ann"))


@pytest.mark.slow
@pytest.mark.parametrize("any_store", ["sqlite", "redis", "postgres"], indirect=True)
@settings(max_examples=examples(15), **ON_ONE_STORE)
@given(HISTORIES)
async def test_a_store_answers_as_the_pure_rules(
    any_store: Store, clock: SteppedClock, history: list[Step]
) -> None:
    """Each answer and, after each step, each balance is that of the rules in memory."""
    rules, store = await played(any_store, clock, history)
    assert rules == store


async def played(
    any_store: Store, clock: SteppedClock, history: list[Step]
) -> tuple[list[JournalEntry], list[JournalEntry]]:
    """Play a history on the rules and on a store, compare them after each step, and return both journals."""
    clock.now = NOON
    rules = MemoryStore(clock)
    player = Player(fresh_account().root, clock, rewindows=True, refunds=True)
    for step in history:
        request = player.play(step)
        if request is not None and isinstance(request.request, Refund):
            request = Asked(await with_charge(any_store, request.request), request.limits)
        if request is not None:
            answer = await rules.apply(*request)
            assert answer == await any_store.apply(*request)
            player.note(request, answer)
        for account in player.accounts():
            on = player.levels(account)
            assert await rules.read(account, on) == await any_store.read(account, on)
            assert await rules.limits(account) == await any_store.limits(account)
    for store in (rules, any_store):
        found = Verification()
        await verify(store, player.root, found)
        assert (len(rules.entries), []) == (found.entries, found.differences)
    assert await rules.all_limits(player.root) == await any_store.all_limits(player.root)
    written = [entry for _, entry in await any_store.journal(player.root, "", "", 1000)]
    assert written[::-1] == [entry for _, entry in await any_store.latest(player.root, "", 1000)]
    return [*rules.entries], written


async def test_amounts_are_exact_up_to_64_bits(any_store: Store) -> None:
    """Beyond 2^53, where a double would round, one unit still decides."""
    account = fresh_account()
    on = levels(account, own=limit(MAX_AMOUNT, MAX_AMOUNT))
    await any_store.apply(*charge("a", Cost(MAX_AMOUNT - 1, 2**53 + 1), account=account, on=on))
    refused = (await any_store.apply(*charge("b", Cost(2, 0), account=account, on=on))).outcome
    assert isinstance(refused, Exhausted)
    assert refused.shortfalls[0].remaining == 1
    await any_store.apply(*reserve("r", Cost(1, 1_000_000_000), account=account, on=on))
    await any_store.apply(*charge("s", Cost(1, 999_999_999), account=account, on=on, settles="r"))
    status = (await any_store.read(account, on)).levels[-1]
    assert Cost(MAX_AMOUNT, 2**53 + 1_000_000_000) == status.spent


async def test_windows_may_differ_between_levels_and_change(any_store: Store, clock: SteppedClock) -> None:
    """A company by month over an analyst whose windows are of every kind in turn."""
    account = fresh_account()
    rules = MemoryStore(clock)
    above = limit(20, 10, zone="Asia/Tokyo")
    rules_of = [
        *(limit(9, 9, period=period) for period in (Period.DAY, Period.WEEK, Period.NEVER, Period.MONTH)),
        *(limit(9, 9, days=days) for days in (30, 7, 90)),
    ]
    for index, own in enumerate(rules_of * 2):
        on = levels(account, own=own, above=above)
        for name in ("x", "y"):
            asked = charge(
                f"{name}{index}", Cost(4, 1), account=account, on=on, release_id=f"{name}{index % 3}"
            )
            assert await rules.apply(*asked) == await any_store.apply(*asked)
        assert await rules.read(account, on) == await any_store.read(account, on)
        # Less than a month and 35 days in all: stores forget what was paid for before.
        clock.step(days=2)


async def test_a_level_that_is_added_below_a_reservation_changes_neither_its_charge_nor_its_payment(
    any_store: Store,
) -> None:
    """Reserved under {company, month}, settled under {company, month; analyst, day}: it counts in both all along."""
    account = fresh_account()
    company = levels(account.level(1), own=limit(20, 10))
    both = levels(account, own=limit(9, 9, period=Period.DAY), above=limit(20, 10))
    await any_store.apply(*reserve("r", account=account, on=company, query_id="q"))
    settled = await any_store.apply(*charge("c", account=account, on=both, settles="r", release_id="rel"))
    assert isinstance(settled.outcome, Charged)
    assert [Cost(4, 1), Cost(4, 1)] == [status.spent for status in settled.outcome.levels]
    again = (await any_store.apply(*reserve("r2", account=account, on=both, query_id="q"))).outcome
    assert isinstance(again, Reserved)
    assert again.already_paid


async def test_a_level_that_is_added_after_the_window_of_a_reservation_has_no_payment(
    any_store: Store, clock: SteppedClock
) -> None:
    """The reservation's own month is over, so that the settled release is charged there and paid for nowhere."""
    account = fresh_account()
    company = levels(account.level(1), own=limit(20, 10))
    both = levels(account, own=limit(9, 9, period=Period.DAY), above=limit(20, 10))
    clock.step(days=17, seconds=12 * 3600 - 10)
    await any_store.apply(*reserve("r", account=account, on=company, query_id="q"))
    clock.step(seconds=20)
    await any_store.apply(*charge("c", account=account, on=both, settles="r", release_id="rel"))
    again = (await any_store.apply(*reserve("r2", account=account, on=both, query_id="q"))).outcome
    assert isinstance(again, Reserved)
    assert not again.already_paid


async def test_what_is_paid_for_is_known_again_when_a_level_comes_back(any_store: Store) -> None:
    """Payments belong to the window of the last level with a limit, and those of another level do not disturb them."""
    account = fresh_account()
    own = levels(account, own=limit(9, 9, period=Period.DAY))
    company = levels(account.level(1), own=limit(20, 10))
    for name, on, is_paid in (
        ("a", own, False),
        ("b", company, False),
        ("c", own, True),
        ("d", company, True),
    ):
        for release_id in ("rel", f"rel-{name}"):
            asked = charge(name + release_id, Cost(1, 1), account=account, on=on, release_id=release_id)
            charged = (await any_store.apply(*asked)).outcome
            assert isinstance(charged, Charged)
            assert charged.already_paid == (is_paid and release_id == "rel")


async def test_four_levels_pay_together(any_store: Store) -> None:
    """Each level counts the charge of the leaf."""
    account = Account((*fresh_account().path, "\u00e9\U0001f600", "x y"))
    on = tuple(LevelLimit(account.level(depth), limit(10 * depth, 9)) for depth in (1, 2, 3, 4))
    await any_store.apply(*charge("a", Cost(9, 1), account=account, on=on))
    refused = (await any_store.apply(*charge("b", Cost(2, 1), account=account, on=on))).outcome
    assert isinstance(refused, Exhausted)
    assert [missing.depth for missing in refused.shortfalls] == [1]
    assert 4 * [Cost(9, 1)] == [status.spent for status in (await any_store.read(account, on)).levels]


async def test_ids_may_hold_any_character(any_store: Store) -> None:
    """Quotes, newlines, braces, zero bytes and emoji are ordinary in ids."""
    account = fresh_account()
    odd = "\x00\n'\"\\{}:%\u00e9\U0001f600"
    asked = reserve(odd, account=account, query_id=odd)
    assert isinstance((await any_store.apply(*asked)).outcome, Reserved)
    assert await any_store.query_id_of(account, asked.request.reservation_id) == odd
    settled = charge(odd + "2", account=account, settles=odd, release_id=odd)
    assert isinstance((await any_store.apply(*settled)).outcome, Charged)
    assert (await any_store.apply(*settled)).replayed
    again = (await any_store.apply(*reserve("r", account=account, query_id=odd))).outcome
    assert isinstance(again, Reserved)
    assert again.already_paid


async def test_the_question_of_a_reservation_is_told_to_its_account_only(any_store: Store) -> None:
    """An unknown, an ended and a colleague's reservation have no question."""
    account = fresh_account()
    await any_store.apply(*reserve("r", account=account, query_id="q"))
    assert await any_store.query_id_of(account, "hold-r") == "q"
    assert await any_store.query_id_of(Account((account.root, "bob")), "hold-r") is None
    await any_store.apply(*cancel("x", ends="r", account=account))
    assert await any_store.query_id_of(account, "hold-r") is None


async def test_open_reservations_are_counted_until_they_end(any_store: Store, clock: SteppedClock) -> None:
    """Settled, cancelled or lapsed; only those of the roots that are asked about."""
    one, other = fresh_account(), fresh_account()
    for id_, ttl in (("a", 60), ("b", 60), ("c", 10)):
        await any_store.apply(*reserve(id_, Cost(1, 1), account=one, query_id=id_, ttl_seconds=ttl))
    await any_store.apply(*reserve("d", account=other))
    assert await any_store.open_reservations([one.root]) == 3
    assert await any_store.open_reservations([one.root, other.root]) == 4
    await any_store.apply(*cancel("x", ends="a", account=one))
    assert await any_store.open_reservations([one.root]) == 2
    clock.now += 10 * SECOND
    assert await any_store.open_reservations([one.root]) == 1
    await any_store.apply(*charge("y", Cost(1, 1), account=one, settles="b", query_id="b"))
    assert await any_store.open_reservations([one.root]) == 0
    assert await any_store.open_reservations([]) == 0


async def test_of_many_who_want_the_last_unit_exactly_one_wins(any_store: Store) -> None:
    """Fifty at once, by reservation and by direct charge."""
    account = fresh_account()
    on = levels(account, own=limit(10, 10), above=limit(5, 50))
    await any_store.apply(*charge("before", Cost(4, 1), account=account, on=on))
    asked = [
        (reserve if index % 2 else charge)(str(index), Cost(1, 1), account=account, on=on)
        for index in range(50)
    ]
    answers = await asyncio.gather(*(any_store.apply(*request) for request in asked))
    won = [answer for answer in answers if isinstance(answer.outcome, Reserved | Charged)]
    assert len(won) == 1
    assert Cost(0, 48) == (await any_store.read(account, on)).levels[0].remaining


async def test_of_many_repeats_of_one_request_one_has_an_effect(any_store: Store) -> None:
    """Twenty at once with the same id: one first answer, nineteen repeats of it."""
    account = fresh_account()
    answers = await asyncio.gather(*(any_store.apply(*charge("same", account=account)) for _ in range(20)))
    assert sum(answer.replayed for answer in answers) == 19
    assert len({answer.outcome for answer in answers}) == 1
    assert Cost(4, 1) == (await any_store.read(account, levels(account))).levels[-1].spent


async def test_a_cancelled_caller_leaves_no_half_change(any_store: Store) -> None:
    """Whatever became of it, repeating it gives one charge."""
    account = fresh_account()
    for index in range(20):
        task = asyncio.create_task(any_store.apply(*charge(str(index), Cost(0, 0), account=account)))
        await asyncio.sleep(0.0002 * index)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert isinstance(
            (await any_store.apply(*charge(str(index), Cost(0, 0), account=account))).outcome, Charged
        )
    await any_store.check()


async def test_a_check_of_a_store_changes_nothing(any_store: Store) -> None:
    """A store that works passes, and what it holds is what it held."""
    account = fresh_account()
    on = levels(account)
    await any_store.apply(*reserve("r", Cost(1, 1), account=account, on=on))
    before = await any_store.read(account, on)
    await any_store.check()
    assert before == await any_store.read(account, on)


@pytest.mark.parametrize("tuning", [replace(UNHURRIED, expired_at_once=2)])
async def test_more_reservations_than_one_step_ends_lapse_at_once_and_nobody_is_refused_for_them(
    any_store: Store, clock: SteppedClock
) -> None:
    """They are ended in steps before a budget is called exhausted, and the refusal of too much is remembered."""
    on = levels(own=limit(5, 5))
    for index in range(5):
        await any_store.apply(*reserve(f"r{index}", Cost(1, 1), on=on))
    clock.step(seconds=61)
    too_much = charge("too much", Cost(6, 6), on=on)
    refused = await any_store.apply(*too_much)
    assert isinstance(refused.outcome, Exhausted)
    assert refused.outcome.shortfalls[0].remaining == 5
    for index in range(5):
        await any_store.apply(*reserve(f"s{index}", Cost(1, 1), on=on))
    clock.step(seconds=61)
    charged = await any_store.apply(*charge("c", Cost(5, 5), on=on))
    assert isinstance(charged.outcome, Charged)
    assert (await any_store.apply(*too_much)).replayed
    found = Verification()
    await verify(any_store, ANALYST.root, found)
    assert found.differences == []
