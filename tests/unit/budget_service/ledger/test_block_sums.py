"""What a level knows of its blocks: never less than any of them has, and as much as one has before it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from budget_service.ledger import account_statement, block_sums, case
from budget_service.ledger.account_statement import check
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.refund import Refund
from budget_service.ledger.balances import Balance
from budget_service.ledger.block_sums import BlockPage, BlocksRow, LargestSums, Sums
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import (
    Cancelled,
    Charged,
    Exhausted,
    Held,
    Outcome,
    Reason,
    Refused,
    Reserved,
)
from budget_service.ledger.values import Account, Cost, LevelLimit, Unit
from budget_service.ledger.verification import Difference, Sum
from budget_service.ledger.windows import DaySpan, Period, WindowRule
from budget_service.server.audit import Verification, verify
from budget_service.server.refunds import with_charge, without_charge
from budget_service.stores import row_transactions
from budget_service.stores.interface import Store
from budget_service.stores.row_map import Found, Range, RowKey, RowTransaction
from budget_service.stores.rows import Known
from tests.stores.test_conformance import played
from tests.support.budget_samples import (
    ANALYST,
    COMPANY,
    NOON,
    UNIT,
    Asked,
    SteppedClock,
    cancel,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.examples import examples
from tests.unit.budget_service import histories
from tests.unit.budget_service.histories import HISTORIES, ON_ONE_STORE, Player, Step
from tests.unit.budget_service.memory_store import MemoryStore

NAMES = [f"{number:016x}" for number in range(8)]
PAYING = ((), tuple(NAMES[:3]), tuple(NAMES[3:7]), tuple(NAMES[6:]))
ON = levels(own=limit(10, 10), above=limit(100, 100))
RULE = WindowRule(Period.MONTH, "UTC")
EMPTY = Balance.opened(RULE, RULE.around(NOON))
END_OF_MONTH = EMPTY.window.end or 0


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know few blocks by name, and read two at a time."""
    with monkeypatch.context() as patched:
        patched.setattr(block_sums, "MOST_NAMED", 4)
        patched.setattr(block_sums, "LEAST_NAMED", 4)
        patched.setattr(row_transactions, "BLOCKS_AT_ONCE", 2)
        patched.setattr(row_transactions, "BLOCKS_WITH_DAYS", 2)
        patched.setattr(histories, "PAYING", PAYING)
        yield


async def outcome(store: Store, asked: Asked[Any]) -> Outcome:
    """Return what a store answers."""
    return (await store.apply(*asked)).outcome


def largest(balances: Collection[Balance]) -> Sums:
    """Look at every block."""
    return Sums.most([Sums.of(each) for each in balances])


# A block, what it has spent and holds from now on; or, without a block, that two more are read.
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(NAMES), *[st.integers(0, 9)] * 4),
        st.none(),
    ),
    max_size=60,
)


@pytest.mark.usefixtures("small")
@settings(max_examples=examples(300), **ON_ONE_STORE)
@given(CHANGES)
def test_a_row_says_no_less_than_any_block_has(
    changes: Sequence[tuple[str, int, int, int, int] | None],
) -> None:
    """Whatever rises and falls between the pages; once all are read it says just that, and their number."""
    row = BlocksRow(known=LargestSums(rule=RULE))
    balances: dict[str, Balance] = {}
    # Nothing falls behind the reading from when it began.
    for change in [*changes, *[None] * 6]:
        if change is None:
            after = row.next_page(RULE, 0, NOON)
            blocks = sorted(each for each in balances if each > after)[:2]
            page = BlockPage(COMPANY, after, tuple(map(COMPANY.of_block, blocks)), is_last=len(blocks) < 2)
            row = row.read(page, [(each, balances[each]) for each in blocks], RULE, 0)
        else:
            block, *amounts = change
            spent, reserved = Cost(*amounts[:2]), Cost(*amounts[2:])
            balance = replace(EMPTY, spent=spent, reserved=reserved)
            row = row.noted({block: (balances.get(block), balance)})
            balances[block] = balance
        truth = largest(balances.values())
        assert truth.within(row.known.paying.sums)
        assert row.known.count == sum(not each.is_unused for each in balances.values())
        if row.known.is_reached:
            assert truth == row.known.paying.sums
    assert row.known.is_reached


@pytest.mark.parametrize("rule", [RULE, None])
def test_what_was_just_read_is_known_until_the_day_ends(rule: WindowRule | None) -> None:
    """Whatever window ends before, as one of another zone may: else blocks would be read again and again."""
    late = replace(EMPTY, rule=rule, day=DaySpan(EMPTY.day.start, END_OF_MONTH + 9), today=Cost(1, 0))
    page = BlockPage(COMPANY, "", (COMPANY.of_block(NAMES[0]),), is_last=True)
    row = BlocksRow(known=LargestSums()).read(page, [(NAMES[0], late)], rule, 0)
    assert row.known.holds(rule, 0, late.day.end - 1)
    assert not row.known.holds(rule, 0, late.day.end)


async def assert_decided_as_if_all_were_read(
    store: MemoryStore, account: Account, on: tuple[LevelLimit, ...]
) -> None:
    """Compare what everybody is granted with what is left to the block with least, by reading every block."""
    found = await store.read(account, on)
    unit_id = found.currency.unit_id or UNIT
    for cost in (Cost(1, 0), Cost(0, 1), *[each.remaining for each in found.levels]):
        limits = AppliedLimits(on, store.records[account.root].limits_version)
        asked = charge(f"probe {cost}", cost, account=account, on=on, unit_id=unit_id).by(limits)
        copy = MemoryStore(
            store.clock,
            records={**store.records},
            kept={**store.kept},
            past={level: {**days} for level, days in store.past.items()},
            reservations={**store.reservations},
            rows={**store.rows},
            entries=[*store.entries],
        )
        granted, refusal = await outcome(copy, asked), check(found, cost, unit_id, account)
        assert type(granted) is (Charged if refusal is None else type(refusal))


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@settings(max_examples=examples(60), **ON_ONE_STORE)
@given(HISTORIES)
async def test_everybody_is_decided_as_if_every_block_were_read(history: list[Step]) -> None:
    """Through waits, lapses, refunds, other windows and currencies, and a clock that goes back."""
    clock = SteppedClock()
    player, store = Player("acme", clock, rewindows=True, refunds=True), MemoryStore(clock)
    for step in history:
        asked = player.play(step)
        if asked is not None and isinstance(asked.request, Refund):
            asked = Asked(await with_charge(store, asked.request), asked.limits)
        if asked is not None:
            player.note(asked, await store.apply(*asked))
        if store.records:
            account = player.accounts()[step.who]
            await assert_decided_as_if_all_were_read(store, account, player.levels(account))
    found = Verification()
    await verify(store, "acme", found)
    assert found.differences == []


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("any_store", ["sqlite", "redis", "postgres"], indirect=True)
@settings(max_examples=examples(15), **ON_ONE_STORE)
@given(HISTORIES)
async def test_a_store_reads_blocks_as_the_pure_rules(
    any_store: Store, clock: SteppedClock, history: list[Step]
) -> None:
    """Page by page, with answers and balances like theirs after each step, and rows that verify."""
    rules, store = await played(any_store, clock, history)
    assert rules == store


async def holding(store: Store, names: Sequence[str], cost: Cost) -> None:
    """Reserve a cost for each of some blocks, apart."""
    for name in names:
        asked = reserve(name, cost, on=ON, ttl_seconds=600).but(blocks=(name,))
        assert isinstance(await outcome(store, asked), Reserved)


@pytest.mark.usefixtures("small")
async def test_what_blocks_gave_back_is_noticed_before_everybody_is_refused(any_store: Store) -> None:
    """More blocks than the row knows by name held something; while the last one does, the refusal is right."""
    await holding(any_store, NAMES, Cost(6, 1))
    assert isinstance(await outcome(any_store, charge("early", Cost(5, 1), on=ON)), Held)
    for name in NAMES[1:]:
        await any_store.apply(*cancel(f"x{name}", ends=name, on=ON))
    assert isinstance(await outcome(any_store, charge("one left", Cost(5, 1), on=ON)), Held)
    await any_store.apply(*cancel("last", ends=NAMES[0], on=ON))
    assert isinstance(await outcome(any_store, charge("late", Cost(10, 1), on=ON)), Charged)


@pytest.mark.usefixtures("small")
async def test_what_has_stopped_counting_is_not_counted(any_store: Store, clock: SteppedClock) -> None:
    """The days of blocks that were idle leave a sliding window one by one."""
    on = levels(own=limit(10, 10, days=3))
    for number, name in enumerate(NAMES):
        await any_store.apply(*charge(name, Cost(9 - number, 1), on=on, release_id=name).but(blocks=(name,)))
        clock.step(days=number == 3)
    clock.step(days=1)
    found = await outcome(any_store, charge("both days", Cost(1, 1), on=on))
    assert isinstance(found, Charged)
    assert found.levels[0].spent == Cost(10, 2)
    clock.step(days=1)
    found = await outcome(any_store, charge("second day", Cost(1, 1), on=on))
    assert isinstance(found, Charged)
    assert found.levels[0].spent == Cost(7, 3)


async def test_a_cancelled_reservation_gives_the_place_of_its_block_back(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does one that lapses; nothing is left of a block that was never charged."""
    monkeypatch.setattr(case, "MAX_BLOCKS_OF_ROOT", 3)
    await holding(any_store, NAMES[:3], Cost(1, 1))
    asked = reserve("more", Cost(1, 1), on=ON).but(blocks=(NAMES[3],))
    assert await outcome(any_store, asked) == Refused(Reason.TOO_MANY_BLOCKS)
    assert isinstance(await outcome(any_store, cancel("x", ends=NAMES[0], on=ON)), Cancelled)
    assert {each.block for each, _ in (await any_store.balances("acme", "", 100)).balances} == {
        "",
        *NAMES[1:3],
    }
    assert isinstance(await outcome(any_store, asked.but(request_id="again")), Reserved)
    assert await outcome(any_store, asked.but(request_id="fourth", blocks=(NAMES[4],))) == Refused(
        Reason.TOO_MANY_BLOCKS
    )


async def test_a_block_that_was_charged_keeps_its_days_after_its_last_hold(
    any_store: Store, clock: SteppedClock
) -> None:
    """A longer window may count them; its place is free as soon as its own window does not."""
    on = (LevelLimit(ANALYST, limit(10, 10, period=Period.DAY)),)
    await any_store.apply(*charge("c", Cost(6, 1), on=on, release_id="c").but(blocks=(NAMES[0],)))
    clock.step(days=1)
    await any_store.apply(*reserve("r", Cost(1, 1), on=on).but(blocks=(NAMES[0],)))
    await any_store.apply(*cancel("x", ends="r", on=on))
    longer = (LevelLimit(ANALYST, limit(10, 10, days=7)),)
    assert isinstance(await outcome(any_store, charge("all", Cost(5, 1), on=longer)), Exhausted)
    assert isinstance(await outcome(any_store, charge("fits", Cost(4, 1), on=longer)), Charged)


async def test_what_idle_blocks_have_in_a_longer_window_counts(any_store: Store, clock: SteppedClock) -> None:
    """Their charges had left the window before, and the level was known to have none."""
    shorter, longer = ((LevelLimit(ANALYST, limit(10, 10, days=days)),) for days in (2, 7))
    for id_, days, blocks in (("a", 2, (NAMES[0],)), ("all", 0, ())):
        found = await outcome(
            any_store, charge(id_, Cost(5, 1), on=shorter, release_id=id_).but(blocks=blocks)
        )
        assert isinstance(found, Charged)
        assert found.levels[0].spent == Cost(5, 1)
        clock.step(days=days)
    assert isinstance(await outcome(any_store, charge("more", Cost(1, 1), on=longer)), Exhausted)


async def test_a_hold_of_an_earlier_window_is_forfeited_by_its_block(
    any_store: Store, clock: SteppedClock
) -> None:
    """Another reservation of the block is cancelled in between, in a new window in which nothing else counts."""
    on = (LevelLimit(ANALYST, limit(10, 10, period=Period.DAY)),)
    clock.step(seconds=12 * 3600 - 10)
    old = reserve("old", Cost(6, 1), on=on, forfeits=True).but(blocks=(NAMES[0],))
    assert isinstance(await outcome(any_store, old), Reserved)
    clock.step(seconds=20)
    await any_store.apply(*reserve("new", Cost(1, 1), on=on).but(blocks=(NAMES[0],)))
    await any_store.apply(*cancel("x", ends="new", on=on))
    clock.step(seconds=60)
    longer = (LevelLimit(ANALYST, limit(10, 10, days=7)),)
    assert isinstance(await outcome(any_store, charge("all", Cost(5, 1), on=longer)), Exhausted)
    found = Verification()
    await verify(any_store, "acme", found)
    assert found.differences == []


async def test_places_return_when_a_window_ends_or_a_charge_is_given_back(
    any_store: Store, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks that were charged are counted anew before another one is refused."""
    monkeypatch.setattr(case, "MAX_BLOCKS_OF_ROOT", 2)
    on = levels(own=limit(10, 10, period=Period.DAY), above=limit(100, 100, period=Period.DAY))

    def asked(id_: str, block: str) -> Asked[Charge]:
        return charge(id_, Cost(1, 1), on=on, release_id=id_).but(blocks=(block,))

    assert isinstance(await outcome(any_store, asked("a", NAMES[0])), Charged)
    assert isinstance(await outcome(any_store, asked("b", NAMES[1])), Charged)
    assert await outcome(any_store, asked("c", NAMES[2])) == Refused(Reason.TOO_MANY_BLOCKS)
    refund = await with_charge(any_store, without_charge(ANALYST, "a", "wrong", "refund", actor="ops"))
    assert isinstance(await outcome(any_store, Asked(refund, AppliedLimits(on))), Cancelled)
    assert isinstance(await outcome(any_store, asked("c2", NAMES[2])), Charged)
    assert await outcome(any_store, asked("d", NAMES[3])) == Refused(Reason.TOO_MANY_BLOCKS)
    clock.step(days=1)
    assert isinstance(await outcome(any_store, asked("d2", NAMES[3])), Charged)


class Counted:
    """A transaction that counts the rows that are read."""

    def __init__(self, begun: RowTransaction, found: list[RowKey]) -> None:
        self._begun, self._found = begun, found
        self.commit = begun.commit

    async def read(self, keys: Collection[RowKey], ranges: Sequence[Range] = ()) -> Found:
        """Read, and note which rows."""
        found = await self._begun.read(keys, ranges)
        self._found += found.rows
        return found


@pytest.mark.parametrize("any_store", ["sqlite", "redis", "postgres"], indirect=True)
async def test_a_charge_about_everybody_reads_two_rows_of_a_level(
    any_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many blocks the level has; a ledger that was just opened knows none of them."""
    on = levels(own=limit(9000, 9000), above=limit(9000, 9000))
    for first in range(0, 2000, 16):
        blocks = tuple([f"{number:016x}" for number in range(first, first + 16)])
        asked = charge(f"c{first}", Cost(1 + first % 7, 1), on=on, release_id=f"c{first}").but(blocks=blocks)
        await any_store.apply(*asked)
    found: list[RowKey] = []
    transactions = any_store._engine._store
    rows, begin = transactions._rows, transactions._rows.begin

    @asynccontextmanager
    async def counting(roots: Collection[str]) -> AsyncIterator[Counted]:
        async with begin(roots) as begun:
            yield Counted(begun, found)

    monkeypatch.setattr(rows, "begin", counting)
    transactions.known = Known()
    charged = await outcome(any_store, charge("all", Cost(1, 1), on=on))
    assert isinstance(charged, Charged)
    assert charged.levels[-1].spent == Cost(8, 2)
    expected = {f"{kind}\t{level.text}" for kind in ("balances", "blocks") for level in (COMPANY, ANALYST)}
    assert {key for _, key in found} == {"roots", *expected}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("any_store", ["sqlite", "redis", "postgres"], indirect=True)
async def test_others_have_their_turns_while_blocks_are_read(any_store: Store, clock: SteppedClock) -> None:
    """A root whose blocks take many pages keeps no other root waiting, and its own requests keep their order."""
    on = levels(own=limit(10, 10, period=Period.DAY))
    for name in NAMES:
        await any_store.apply(*charge(name, Cost(1, 1), on=on, release_id=name).but(blocks=(name,)))
    clock.step(days=1)
    answered: list[str] = []

    async def ask(name: str, asked: Asked[Charge]) -> None:
        assert isinstance(await outcome(any_store, asked), Charged)
        answered.append(name)

    lab = Account(("lab",))
    other = charge("l", account=lab, on=levels(lab, own=limit(99, 99)))
    first, second = charge("all", Cost(1, 1), on=on), charge("a", Cost(1, 1), on=on).but(blocks=(NAMES[0],))
    await asyncio.gather(ask("everybody", first), ask("second", second), ask("lab", other))
    assert answered == ["lab", "everybody", "second"]


async def test_a_row_that_says_too_little_is_found(clock: SteppedClock) -> None:
    """By verification, for the block that has more, in each unit."""
    store = MemoryStore(clock)
    await store.apply(*charge("a", Cost(4, 2), on=ON, release_id="a").but(blocks=(NAMES[0],)))
    await store.apply(*charge("b", Cost(3, 2), on=ON, release_id="b").but(blocks=(NAMES[1],)))
    row = store.rows[ANALYST]
    store.rows[ANALYST] = BlocksRow(known=replace(row.known, named={NAMES[1]: row.known.named[NAMES[1]]}))
    found = Verification()
    await verify(store, "acme", found)
    assert found.differences == [
        Difference(ANALYST.of_block(NAMES[0]), Unit.INFORMATION, Sum.BLOCKS, None, 3, 4)
    ]


@pytest.mark.parametrize("any_store", ["sqlite", "redis", "postgres"], indirect=True)
async def test_others_have_their_turns_while_a_statement_is_made(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every block, after each few of them, and it says what it would have said at once."""
    for name in NAMES:
        await any_store.apply(*charge(name, Cost(1, 1), on=ON, release_id=name).but(blocks=(name,)))
    at_once = await any_store.read(ANALYST, ON)
    turns: list[float] = []
    sleep = asyncio.sleep

    async def counted(delay: float) -> None:
        turns.append(delay)
        await sleep(delay)

    monkeypatch.setattr(account_statement, "BLOCKS_AT_ONCE", 2)
    monkeypatch.setattr(asyncio, "sleep", counted)
    assert await any_store.read(ANALYST, ON) == at_once
    assert turns == [0] * 2 * len(ON) * len(NAMES[::2])
