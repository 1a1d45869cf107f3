"""Blocks of members: what one block alone pays is no other block's affair, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from budget_service.ledger import case
from budget_service.ledger.account_statement import check
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.currency import ChangeCurrency
from budget_service.ledger.acts.write_off import WriteOff
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import (
    Answer,
    Cancelled,
    Charged,
    CurrencyChanged,
    Exhausted,
    Held,
    Outcome,
    Reason,
    Refused,
    Reserved,
)
from budget_service.ledger.values import (
    MAX_BLOCKS,
    Account,
    Cost,
    InvalidFieldError,
    LevelLimit,
    Limit,
    parse_blocks,
)
from budget_service.ledger.windows import DAY, SECOND, Period
from budget_service.server.admin_messages import entry_message
from budget_service.server.audit import Verification, verify
from budget_service.server.policy_statements import policy_statements_of
from budget_service.server.refunds import with_charge, without_charge
from budget_service.server.responses import budget_message
from budget_service.stores.interface import Store
from budget_service.stores.write_off import write_off
from gris_cli.budget.exhaustion import Exhaustion
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    ONE,
    OTHER_UNIT,
    UNIT,
    Asked,
    SteppedClock,
    cancel,
    charge,
    limit,
    reserve,
)
from tests.unit.budget_service.trims import trimmed

A, B, C = "00000000000000aa", "00000000000000bb", "0123456789abcdef"
OWN, ABOVE = limit(10, 10), limit(16, 16)
ON = (LevelLimit(COMPANY, ABOVE), LevelLimit(ANALYST, OWN))
COLLEAGUES = (LevelLimit(COMPANY, ABOVE), LevelLimit(COLLEAGUE, OWN))


async def outcome(store: Store, asked: Asked[Any]) -> Outcome:
    """Return what a store answers."""
    answer: Answer = await store.apply(*asked)
    return answer.outcome


async def paid(store: Store, id_: str, information: int, *blocks: str, account: Account = ANALYST) -> Outcome:
    """Charge some blocks, or everybody."""
    on = ON if account == ANALYST else COLLEAGUES
    return await outcome(
        store, charge(id_, Cost(information, 0), account=account, on=on, release_id=id_).but(blocks=blocks)
    )


async def left(store: Store, account: Account = ANALYST) -> dict[str, int]:
    """Return what is left to everybody, to each block, and to one that was never named."""
    found = await store.read(account, ON if account == ANALYST else COLLEAGUES)
    asked = {"all": (), "A": (A,), "B": (B,), "C": (C,), "AB": (A, B)}
    return {
        name: min(each.remaining.information for each in found.seen_by(blocks).levels)
        for name, blocks in asked.items()
    }


async def assert_sound(store: Store) -> None:
    """Compare all balances with the journal."""
    found = Verification()
    await verify(store, "acme", found)
    assert found.differences == []


async def test_blocks_do_not_pay_for_each_other(any_store: Store) -> None:
    """What everybody pays counts for each of them, and a question about everybody costs the block with least left."""
    assert isinstance(await paid(any_store, "a", 6, A), Charged)
    assert isinstance(await paid(any_store, "b", 7, B), Charged)
    assert await left(any_store) == {"all": 3, "A": 4, "B": 3, "C": 10, "AB": 3}
    assert isinstance(await paid(any_store, "all", 2), Charged)
    assert await left(any_store) == {"all": 1, "A": 2, "B": 1, "C": 8, "AB": 1}
    assert isinstance(await paid(any_store, "all again", 2), Exhausted)
    assert isinstance(await paid(any_store, "both", 2, A, B), Exhausted)
    assert isinstance(await paid(any_store, "both again", 1, A, B), Charged)
    assert isinstance(await paid(any_store, "c", 8, C), Charged)
    assert await left(any_store) == {"all": 0, "A": 1, "B": 0, "C": 0, "AB": 0}
    await assert_sound(any_store)


async def test_a_charge_says_what_is_left_to_those_who_pay(any_store: Store) -> None:
    """Not what is left to others."""
    await paid(any_store, "a", 6, A)
    found = await paid(any_store, "b", 1, B)
    assert isinstance(found, Charged)
    assert [each.remaining.information for each in found.levels] == [15, 9]
    found = await paid(any_store, "all", 1)
    assert isinstance(found, Charged)
    assert [each.remaining.information for each in found.levels] == [9, 3]


async def test_levels_above_count_the_blocks_of_all_accounts_below(any_store: Store) -> None:
    """A colleague's question about another block does not touch what the company may spend on this one."""
    await paid(any_store, "a", 9, A)
    assert await left(any_store, COLLEAGUE) == {"all": 7, "A": 7, "B": 10, "C": 10, "AB": 7}
    await paid(any_store, "b", 9, B, account=COLLEAGUE)
    assert await left(any_store) == {"all": 1, "A": 1, "B": 7, "C": 10, "AB": 1}
    await assert_sound(any_store)


async def test_one_batch_sees_the_blocks_that_it_opens(any_store: Store) -> None:
    """Of requests that are decided together, a later one about everybody counts what an earlier one has made A pay."""
    together = [paid(any_store, f"a {number}", 3, A) for number in range(4)]
    together += [paid(any_store, f"all {number}", 3) for number in range(4)]
    found = await asyncio.gather(*together)
    assert sum(isinstance(each, Charged) for each in found) == 3
    assert (await left(any_store))["A"] == 1
    await assert_sound(any_store)


async def test_a_reservation_is_settled_by_the_blocks_that_it_was_made_for(any_store: Store) -> None:
    """Fewer would make the others pay nothing; more were not asked whether they have it."""
    await any_store.apply(*reserve("r", Cost(4, 1), on=ON).but(blocks=(A, B)))
    assert await left(any_store) == {"all": 6, "A": 6, "B": 6, "C": 10, "AB": 6}
    settling = charge("s", Cost(3, 1), on=ON, settles="r")
    for number, blocks in enumerate([(), (A,), (A, B, C)]):
        refused = await outcome(any_store, settling.but(request_id=f"s{number}", blocks=blocks))
        assert refused == Refused(Reason.BLOCKS_MISMATCH, (A, B), blocks)
    assert isinstance(await outcome(any_store, settling.but(blocks=(A, B))), Charged)
    assert await left(any_store) == {"all": 7, "A": 7, "B": 7, "C": 10, "AB": 7}
    await assert_sound(any_store)


async def test_what_reservations_hold_is_that_of_their_blocks(any_store: Store, clock: SteppedClock) -> None:
    """It is held, not exhausted, returns when it is cancelled, and is charged when it is forfeited."""
    await any_store.apply(*reserve("a", Cost(8, 1), on=ON, forfeits=True).but(blocks=(A,)))
    await any_store.apply(*reserve("b", Cost(9, 1), on=ON).but(blocks=(B,)))
    assert isinstance(await paid(any_store, "all", 2), Held)
    assert isinstance(await paid(any_store, "c", 2, C), Charged)
    assert await outcome(any_store, cancel("x", ends="b", on=ON)) == Cancelled(Cost(9, 1), UNIT)
    clock.step(seconds=61)
    # Neither of them names the block whose reservation lapses.
    assert isinstance(await paid(any_store, "c2", 1, C), Charged)
    assert await left(any_store) == {"all": 2, "A": 2, "B": 10, "C": 7, "AB": 2}
    assert isinstance(await paid(any_store, "a2", 3, A), Exhausted)
    await assert_sound(any_store)


async def test_each_unit_is_that_of_the_block_with_least_of_it(any_store: Store) -> None:
    """Another block may have spent the calls than the information."""
    for id_, cost, block in (("a", Cost(6, 1), A), ("b", Cost(1, 8), B)):
        await any_store.apply(*charge(id_, cost, on=ON).but(blocks=(block,)))
    status = (await any_store.read(ANALYST, ON)).levels[-1]
    assert (status.spent, status.remaining) == (Cost(6, 8), Cost(4, 2))


async def test_of_blocks_that_are_as_short_the_last_says_when_there_is_budget_again(
    any_store: Store, clock: SteppedClock
) -> None:
    """In whatever order a process happens to have them; all but one could pay a day earlier."""
    on = (LevelLimit(ANALYST, limit(10, 10, days=2)),)
    earlier = [f"{number:016x}" for number in range(7)]
    await any_store.apply(*charge("first", Cost(1, 1), on=on).but(blocks=tuple(earlier)))
    clock.step(days=1)
    await any_store.apply(*charge("second", Cost(1, 1), on=on).but(blocks=(C,)))
    found = await any_store.read(ANALYST, on)
    ends = {block: each.window.end or 0 for block, each in found.blocks[-1].items()}
    assert ends[earlier[0]] < ends[C] == found.levels[-1].window.end
    together = found.seen_by((*earlier, C)).levels[-1]
    assert (together.spent, together.window.end) == (Cost(1, 1), ends[C])


async def test_a_write_off_leaves_nothing_to_any_block(any_store: Store) -> None:
    """Nobody is given for a second time what was lost: not even a block that the ledger has never heard of."""
    await paid(any_store, "a", 6, A)
    await paid(any_store, "all", 1)
    lost = Asked(WriteOff(actor="ops", account=ANALYST, request_id="w"), AppliedLimits(ON[1:]))
    found = await outcome(any_store, lost)
    assert isinstance(found, Charged)
    assert found.charged == Cost(9, 10)
    assert await left(any_store) == dict.fromkeys(("all", "A", "B", "C", "AB"), 0)
    assert isinstance(await paid(any_store, "c", 1, C), Exhausted)
    await assert_sound(any_store)


async def test_a_restored_ledger_takes_no_block_for_an_account(any_store: Store) -> None:
    """All levels are written off, once each."""
    await paid(any_store, "a", 6, A)
    count = await write_off(any_store, lambda level: ABOVE if level == COMPANY else OWN, [], actor="ops")
    assert count == 2
    assert await left(any_store) == dict.fromkeys(("all", "A", "B", "C", "AB"), 0)


async def test_a_refund_is_given_to_those_who_paid(any_store: Store, clock: SteppedClock) -> None:
    """On the day on which they did."""
    await paid(any_store, "a", 6, A, B)
    await paid(any_store, "all", 1)
    clock.step(days=1)
    asked = await with_charge(any_store, without_charge(ANALYST, "a", "wrong", "refund", actor="ops"))
    assert asked.needs().blocks == (A, B)
    assert await outcome(any_store, Asked(asked, AppliedLimits(ON))) == Cancelled(Cost(6, 0), UNIT)
    assert await left(any_store) == dict.fromkeys(("all", "A", "B", "C", "AB"), 9)
    await assert_sound(any_store)


async def test_blocks_that_were_idle_meet_new_windows(any_store: Store, clock: SteppedClock) -> None:
    """A block that paid nothing since its level's window has changed counts by the new one, as its level does."""
    before = (LevelLimit(ANALYST, limit(10, 10, days=2)),)
    await any_store.apply(*charge("a", Cost(6, 0), on=before).but(blocks=(A,)))
    clock.step(days=1)
    await any_store.apply(*charge("b", Cost(5, 0), on=before).but(blocks=(B,)))
    clock.step(days=1)
    found = await any_store.read(ANALYST, before)
    assert [found.seen_by((each,)).levels[0].remaining.information for each in (A, B)] == [10, 5]
    after = (LevelLimit(ANALYST, limit(10, 10, zone="Asia/Kolkata")),)
    await any_store.apply(*charge("c", Cost(1, 0), on=after).but(blocks=(C,)))
    found = await any_store.read(ANALYST, after)
    assert [found.seen_by((each,)).levels[0].remaining.information for each in (A, B, C)] == [4, 5, 9]
    await assert_sound(any_store)


async def test_a_base_holds_the_sums_of_blocks(any_store: Store, clock: SteppedClock) -> None:
    """They are verified without the entries, and the statements of a block's charges count on."""
    stated = charge("a", Cost(2, 0), on=ON).but(blocks=(A,), policy_statement=ONE)
    await any_store.apply(*stated)
    clock.step(days=1)
    await paid(any_store, "b", 1, B)
    base = await trimmed(any_store)
    assert {ANALYST.of_block(each).text for each in (A, B)} <= base.spent.keys()
    await paid(any_store, "c", 1, C)
    await assert_sound(any_store)
    levels = (await any_store.read(ANALYST, ON)).levels
    assert (await policy_statements_of(any_store, ANALYST, levels))[2].statements == (ONE,)


async def test_balances_come_in_pages_with_their_blocks(any_store: Store) -> None:
    """Those of the root too, and none of roots whose names begin alike."""
    for number, account in enumerate([("acme", "ann"), ("acme-b", "ann"), ("acme", "ann b"), ("acme+", "x")]):
        asked = charge(
            f"{number}", Cost(1, 1), account=Account(account), on=(LevelLimit(Account(account), OWN),)
        )
        await any_store.apply(*asked.but(blocks=(A, B)))
    found: set[Account] = set()
    after: str | None = None
    while after != "":
        page = await any_store.balances("acme", after or "", 2)
        found |= {level for level, _ in page.balances}
        after = page.after
    expected = [COMPANY, ANALYST, Account(("acme", "ann b"))]
    assert found == {level.of_block(block) for level in expected for block in ("", A, B)}


async def test_a_root_has_a_bounded_number_of_blocks(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks that it knows may still be asked about, and everybody."""
    monkeypatch.setattr(case, "MAX_BLOCKS_OF_ROOT", 2)
    assert isinstance(await paid(any_store, "a", 1, A), Charged)
    found = await asyncio.gather(paid(any_store, "b", 1, B), paid(any_store, "c", 1, C))
    assert found[1] == Refused(Reason.TOO_MANY_BLOCKS)
    other = reserve("r", Cost(1, 1), account=COLLEAGUE, on=COLLEAGUES).but(blocks=(C,))
    assert await outcome(any_store, other) == Refused(Reason.TOO_MANY_BLOCKS)
    assert isinstance(await paid(any_store, "ab", 1, A, B, account=COLLEAGUE), Charged)
    assert isinstance(await paid(any_store, "all", 1), Charged)
    read = await any_store.read(ANALYST, ON)
    assert check(read, Cost(1, 1), UNIT, ANALYST, (C,)) == Refused(Reason.TOO_MANY_BLOCKS)
    assert check(read, Cost(1, 1), UNIT, ANALYST, (A, B)) is None
    assert check(read, Cost(1, 1), UNIT, ANALYST) is None


async def test_a_refused_request_opens_no_block(any_store: Store) -> None:
    """What was never charged or reserved leaves nothing."""
    assert isinstance(await paid(any_store, "a", 11, A), Exhausted)
    page = await any_store.balances("acme", "", 100)
    assert {level.block for level, _ in page.balances} == {""}


@pytest.mark.parametrize("make", [lambda: reserve("r", on=ON), lambda: charge("r", on=ON)])
async def test_blocks_are_a_part_of_what_was_asked(any_store: Store, make: Callable[[], Asked[Any]]) -> None:
    """The same request for other blocks is another one."""
    asked = make().but(blocks=(A,))
    assert isinstance(await outcome(any_store, asked), Reserved | Charged)
    assert (await any_store.apply(*asked)).replayed
    for other in ((), (B,), (A, B)):
        assert await outcome(any_store, asked.but(blocks=other)) == Refused(Reason.REQUEST_ID_REUSED)


async def test_what_is_left_to_blocks_is_told_where_it_differs(any_store: Store) -> None:
    """Each block that has paid alone, and last what is left to every other one."""
    await paid(any_store, "all", 1)
    found = await any_store.read(ANALYST, ON)
    assert not budget_message(found, ANALYST).levels[1].remaining_of_blocks
    await paid(any_store, "b", 2, B)
    await paid(any_store, "a", 4, A)
    await any_store.apply(*reserve("r", Cost(1, 0), account=COLLEAGUE, on=COLLEAGUES).but(blocks=(C,)))
    levels = budget_message(await any_store.read(ANALYST, ON), ANALYST).levels
    shown = [[(*each.blocks, each.information) for each in level.remaining_of_blocks] for level in levels]
    # What a colleague has reserved above is nobody else's affair.
    assert shown == [[(A, 11), (B, 13), (C, 15), (15,)], [(A, 5), (B, 7), (9,)]]
    assert [level.remaining.information for level in levels] == [11, 5]


async def test_a_budget_is_that_of_the_blocks_that_pay(any_store: Store) -> None:
    """Spent, held, left and over the limit are those of the block that has most of it; the window is theirs too."""
    await paid(any_store, "all", 1)
    await paid(any_store, "a", 6, A)
    await any_store.apply(*reserve("r", Cost(2, 0), on=ON).but(blocks=(B,)))
    lowered = (LevelLimit(COMPANY, ABOVE), LevelLimit(ANALYST, limit(4, 10)))
    found = await any_store.read(ANALYST, lowered)

    def own(*blocks: str) -> tuple[int, int, int, bool]:
        level = budget_message(found.seen_by(blocks), ANALYST).levels[-1]
        shown = (level.spent.information, level.reserved.information, level.remaining.information)
        return *shown, level.over_limit

    assert own() == own(A) == own(A, B) == (7, 0, 0, True)
    assert own(B) == own(B, C) == (1, 2, 1, False)
    assert own(C) == (1, 0, 3, False)


async def test_a_check_is_answered_for_those_who_would_pay(any_store: Store) -> None:
    """As the charge would be."""
    await paid(any_store, "a", 6, A)
    found = await any_store.read(ANALYST, ON)
    assert check(found, Cost(5, 0), UNIT, ANALYST, (B,)) is None
    for blocks in ((), (A,), (A, B)):
        assert isinstance(check(found, Cost(5, 0), UNIT, ANALYST, blocks), Exhausted)


async def test_the_usage_of_an_account_is_that_of_its_worst_block(any_store: Store) -> None:
    """Never a sum over blocks, since no member is of two."""
    for id_, information, blocks in (("a", 3, (A,)), ("b", 4, (B,)), ("all", 2, ()), ("ab", 1, (A, B))):
        await paid(any_store, id_, information, *blocks)
    start = (await any_store.latest("acme", "", 1))[0][1].time // DAY * DAY
    usage = Exhaustion(start, 1, 2)
    for position, entry in await any_store.journal("acme", "", "", 100):
        usage.add(entry_message(entry, position))
    assert [usage.exhausted("information", most) for most in (7, 8)] == [[1], [0]]


@pytest.mark.parametrize(
    ("blocks", "field"),
    [
        ([f"{number:016x}" for number in range(MAX_BLOCKS + 1)], "cost.blocks"),
        ([B, A], "cost.blocks[1]"),
        ([A, A], "cost.blocks[1]"),
        ([A, A.upper()], "cost.blocks[1]"),
        ([""], "cost.blocks[0]"),
        ([A, B, C, "0123456789abcdeg"], "cost.blocks[3]"),
        ([A + "0"], "cost.blocks[0]"),
        (["\u0661" * 16], "cost.blocks[0]"),
        ([A + "\n"], "cost.blocks[0]"),
        (["*" * 16], "cost.blocks[0]"),
    ],
)
def test_other_blocks_are_refused_by_name(blocks: list[str], field: str) -> None:
    """At most 16 of 16 lower-case hexadecimal characters, each once, in order."""
    with pytest.raises(InvalidFieldError) as refused:
        parse_blocks(blocks, "cost.blocks")
    assert refused.value.field == field


def test_good_blocks_are_taken() -> None:
    """None, one or sixteen."""
    most = [f"{number:016x}" for number in range(MAX_BLOCKS)]
    assert [parse_blocks(each, "cost.blocks") for each in ([], [A], most)] == [(), (A,), tuple(most)]


@pytest.mark.parametrize(
    "own", [limit(10, 10, days=30), limit(10, 10, period=Period.WEEK)], ids=["sliding", "week"]
)
async def test_another_division_waits_for_every_block_of_the_one_before(
    any_store: Store, clock: SteppedClock, own: Limit
) -> None:
    """Its blocks may hold the members of others: nothing is left to any while what one has paid still counts."""
    on = (LevelLimit(COMPANY, ABOVE), LevelLimit(ANALYST, own))
    clock.step(days=16)
    before = charge("before", Cost(10, 1), on=on, release_id="before").but(blocks=(A,))
    assert isinstance(await outcome(any_store, before), Charged)
    planned = ChangeCurrency(actor="ops", account=COMPANY, request_id="change", unit_id=OTHER_UNIT)
    limits = AppliedLimits((), 0, tuple(each.limit.window for each in on))
    begins = (await any_store.apply(planned, limits)).outcome
    assert isinstance(begins, CurrencyChanged)
    clock.now = begins.begins_at + 3600 * SECOND
    if own.window.period is Period.WEEK:
        assert own.window.around(clock.now).window.start < begins.begins_at

    def after(id_: str, *blocks: str) -> Asked[Charge]:
        asked = charge(id_, Cost(1, 1), on=on, release_id=id_, unit_id=OTHER_UNIT)
        return asked.but(blocks=blocks)

    for id_, blocks in (("all", ()), ("other", (B,)), ("same", (A,)), ("both", (A, B))):
        assert isinstance(await outcome(any_store, after(id_, *blocks)), Exhausted), blocks
    found = await any_store.read(ANALYST, on)
    assert check(found, Cost(1, 1), OTHER_UNIT, ANALYST, (B,)) is not None
    assert found.seen_by((B,)).levels[1].remaining == found.levels[1].remaining == Cost(0, 0)
    clock.step(days=31)
    assert isinstance(await outcome(any_store, after("later", B)), Charged)
