"""An administrator moves accounts to other names: no budget is made by it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from budget_service.ledger.account_states import (
    MAX_FORMER_NAMES,
    MOVED,
    AccountState,
    parse_state,
    state_text,
)
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits, LimitsChangedError
from budget_service.ledger.outcomes import (
    Answer,
    Cancelled,
    Charged,
    Held,
    LimitsSet,
    Reason,
    Refused,
    Reserved,
)
from budget_service.ledger.requests import (
    CloseAccount,
    MoveAccount,
    SetLimits,
    WriteOff,
)
from budget_service.ledger.state import EntryKind
from budget_service.ledger.usage import Usage
from budget_service.ledger.values import NOTHING, Account, Cost, Unit
from budget_service.ledger.windows import Period
from budget_service.server import audit, checkpoints
from budget_service.server.archives import check_archives
from budget_service.server.audit import Verification, verify
from budget_service.server.policy_statements import ArchivedStatementsError, policy_statements_of
from budget_service.server.refunds import with_charge, without_charge
from budget_service.stores.interface import Store
from tests.budget.account_changes import (
    ABOVE,
    CLOSED,
    NEW,
    ONE,
    OWN,
    THIRD,
    ask,
    assert_sound,
    close,
    for_,
    move,
    on,
    reopen,
    spent,
)
from tests.budget.memory_store import MemoryStore
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
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
    statement,
)


async def test_a_moved_account_keeps_all_it_had(any_store: Store, clock: SteppedClock) -> None:
    """Days of a sliding window, what is held, what was paid for; the level above counts as before."""
    for day in range(3):
        ids = {"release_id": f"rel{day}", "query_id": f"q{day}"}
        await ask(any_store, for_(ANALYST, charge, f"c{day}", Cost(2, 1), **ids))
        await ask(any_store, for_(COLLEAGUE, charge, f"bob{day}", ONE))
        clock.step(days=1)
    for name, cost in (("settled", ONE), ("cancelled", ONE), ("lapses", Cost(1, 0))):
        held = (await ask(any_store, for_(ANALYST, reserve, name, cost))).outcome
        assert isinstance(held, Reserved)
    before = await any_store.read(ANALYST, on(ANALYST))
    assert LimitsSet(clock.now) == await move(any_store)
    assert before.levels == (await any_store.read(NEW, on(NEW))).levels
    (_, old) = (await any_store.read(ANALYST, on(ANALYST))).levels
    assert (NOTHING, NOTHING) == (old.spent, old.reserved)
    free = (await ask(any_store, for_(NEW, charge, "free", ONE, release_id="rel0"))).outcome
    assert isinstance(free, Charged)
    assert free.already_paid
    paid = (await ask(any_store, for_(NEW, reserve, "paid", ONE, query_id="q0"))).outcome
    assert isinstance(paid, Reserved)
    assert paid.already_paid
    too_much = (await ask(any_store, for_(NEW, charge, "more", Cost(2, 2)))).outcome
    assert isinstance(too_much, Held)
    settled = (await ask(any_store, for_(NEW, charge, "s", ONE, settles="settled", release_id="new"))).outcome
    assert isinstance(settled, Charged)
    assert Cancelled(ONE, UNIT) == (await ask(any_store, for_(NEW, cancel, "x", ends="cancelled"))).outcome
    assert [Cost(10, 7), Cost(7, 4)] == await spent(any_store, NEW)
    # What is held lapses with the request of another account.
    clock.step(seconds=61)
    await ask(any_store, for_(COLLEAGUE, charge, "bob", NOTHING))
    await assert_sound(any_store)
    assert [NOTHING] * 2 == [each.reserved for each in (await any_store.read(NEW, on(NEW))).levels]
    clock.step(days=5)
    assert [Cost(10, 7), Cost(3, 2)] == await spent(any_store, NEW)
    await ask(any_store, for_(NEW, charge, "last", NOTHING))
    assert [Cost(10, 7), Cost(3, 2)] == await spent(any_store, NEW)
    await assert_sound(any_store)


async def test_the_old_name_is_closed_for_good(any_store: Store) -> None:
    """Nobody gets a budget of their own under it, and all that is asked under it is refused."""
    await ask(any_store, for_(ANALYST, charge, "c", ONE, release_id="rel", query_id="q"))
    await ask(any_store, for_(ANALYST, reserve, "r", ONE))
    await move(any_store)
    back = await with_charge(any_store, without_charge(ANALYST, "rel", "wrong", "back", actor="ops"))
    for asked in (
        for_(ANALYST, reserve, "a", NOTHING),
        for_(ANALYST, charge, "b", ONE, release_id="rel", query_id="q"),
        for_(ANALYST, charge, "s", ONE, settles="r"),
        for_(ANALYST, cancel, "x", ends="r"),
        Asked(back, AppliedLimits(on(ANALYST))),
    ):
        assert CLOSED == (await ask(any_store, asked)).outcome
    moved = Refused(Reason.ACCOUNT_MOVED)
    assert moved == await close(any_store, ANALYST)
    assert moved == await reopen(any_store, ANALYST)
    assert moved == await move(any_store, id_="again")
    assert Refused(Reason.TARGET_USED) == await move(any_store, NEW, ANALYST, id_="home")
    again = await any_store.apply(
        MoveAccount(actor="ops", account=ANALYST, target=NEW, request_id="move", reason="a new id"), NO_LIMITS
    )
    assert Answer(LimitsSet(NOON), replayed=True) == again
    states = (await any_store.all_limits("acme")).states
    assert {ANALYST: MOVED, NEW: AccountState(former_names=("ann",))} == dict(states)
    await assert_sound(any_store)


async def test_an_account_moves_only_where_nothing_is(any_store: Store) -> None:
    """A name that was used, has a limit, was closed or has accounts below it; and only an account without any."""
    used, limited, closed = COLLEAGUE, Account(("acme", "limited")), Account(("acme", "closed"))
    above = Account(("acme", "[z]"))
    # Of the one Redis would find nothing by a pattern, and of the other something.
    below, resembles = Account((*above.path, "ann")), Account(("acme", "xy", "ann"))
    pattern = Account(("acme", "x?"))
    await ask(any_store, for_(ANALYST, charge, "c", ONE))
    await ask(any_store, for_(used, charge, "bob", NOTHING))
    for number, account in enumerate((below, resembles, pattern)):
        await ask(any_store, charge(f"below {number}", ONE, account=account, on=levels(account)))
    setting = SetLimits(actor="ops", account=COMPANY, request_id="set", changes=((limited, OWN),))
    await any_store.apply(setting, NO_LIMITS)
    await close(any_store, closed)
    for number, target in enumerate((used, limited, closed, above)):
        assert Refused(Reason.TARGET_USED) == await move(any_store, target=target, id_=f"to {number}")
    assert Refused(Reason.HAS_ACCOUNTS_BELOW) == await move(any_store, above, NEW, "above")
    assert Refused(Reason.NOTHING_TO_MOVE) == await move(any_store, THIRD, NEW, "unused")
    assert CLOSED == await move(any_store, closed, NEW, "of a closed one")
    assert LimitsSet(NOON + 2) == await move(any_store, pattern, Account(("acme", "y??")), "a pattern")
    assert LimitsSet(NOON + 3) == await close(any_store, COMPANY, "all")
    assert CLOSED == await move(any_store, id_="under a closed one")
    for target in (COMPANY, Account(("acme", "x", "ann")), Account(("other", "ann"))):
        with pytest.raises(ValueError, match="same level"):
            await move(MemoryStore(SteppedClock()), target=target)
    await assert_sound(any_store)


async def test_a_stored_limit_moves_with_its_account(any_store: Store) -> None:
    """Also if the account was never used; the old name has none any more."""
    own = limit(3, 3, period=Period.DAY)
    setting = SetLimits(
        actor="ops", account=COMPANY, request_id="set", changes=((ANALYST, own), (COMPANY, ABOVE))
    )
    await any_store.apply(setting, NO_LIMITS)
    assert LimitsSet(NOON + 1) == await move(any_store)
    stored = await any_store.all_limits("acme")
    assert {NEW: own, COMPANY: ABOVE} == dict(stored.limits)
    assert {NEW: own, COMPANY: ABOVE} == dict((await any_store.limits(NEW)).limits)
    assert {COMPANY: ABOVE} == dict((await any_store.limits(ANALYST)).limits)


async def test_an_account_may_move_several_times(any_store: Store) -> None:
    """What was paid for under the first name is free under the last; refunds, lists and reports know all names."""
    await ask(any_store, for_(ANALYST, charge, "c", Cost(3, 1), release_id="rel", query_id="q"))
    await move(any_store)
    await ask(any_store, for_(NEW, charge, "d", Cost(2, 1), release_id="rel2"))
    await move(any_store, NEW, THIRD, "again")
    await ask(any_store, for_(THIRD, charge, "e", ONE))
    for release_id in ("rel", "rel2"):
        free = (await ask(any_store, for_(THIRD, charge, release_id, ONE, release_id=release_id))).outcome
        assert isinstance(free, Charged)
        assert free.already_paid
    assert [Cost(6, 3)] * 2 == await spent(any_store, THIRD)
    usage = Usage(NOON, 1, 2)
    await audit.measure(any_store, COMPANY, usage)
    assert ([THIRD], (1,)) == (list(usage.spent), usage.curve(Unit.INFORMATION, 6).exhausted)
    own = Usage(NOON, 1, 2)
    await audit.measure(any_store, THIRD, own)
    assert usage == own
    asked = await with_charge(any_store, without_charge(THIRD, "rel", "wrong", "back", actor="ops"))
    assert (
        Cancelled(Cost(3, 1), UNIT) == (await ask(any_store, Asked(asked, AppliedLimits(on(THIRD))))).outcome
    )
    assert [Cost(3, 2)] * 2 == await spent(any_store, THIRD)
    again = (await ask(any_store, for_(THIRD, reserve, "q again", ONE, query_id="q"))).outcome
    assert isinstance(again, Reserved)
    assert not again.already_paid
    await assert_sound(any_store)


async def test_what_was_written_off_under_an_earlier_name_is_not_given_back(any_store: Store) -> None:
    """Else budget that returns could be spent a second time."""
    await ask(any_store, for_(ANALYST, charge, "c", Cost(3, 1), release_id="rel"))
    await any_store.apply(
        WriteOff(actor="ops", account=ANALYST, request_id="w"), AppliedLimits(on(ANALYST)[1:])
    )
    await move(any_store)
    asked = await with_charge(any_store, without_charge(NEW, "rel", "wrong", "back", actor="ops"))
    refused = (await ask(any_store, Asked(asked, AppliedLimits(on(NEW))))).outcome
    assert Refused(Reason.NOT_PAID) == refused
    await assert_sound(any_store)


async def test_an_account_has_a_bounded_number_of_names(any_store: Store) -> None:
    """Each of them is asked about in an audit."""
    await ask(any_store, for_(ANALYST, charge, "c", ONE))
    name = ANALYST
    for number in range(MAX_FORMER_NAMES):
        target = Account(("acme", f"name {number}"))
        assert LimitsSet(NOON + number) == await move(any_store, name, target, f"move {number}")
        name = target
    assert Refused(Reason.MOVED_TOO_OFTEN) == await move(any_store, name, NEW, "one too many")
    assert MAX_FORMER_NAMES == len((await any_store.limits(name)).states[name].former_names)


async def test_what_is_stored_of_accounts_is_bounded_with_their_limits(any_store: Store) -> None:
    """A closed account counts as one, a moved one as two, a limit as one."""
    few = replace(NO_LIMITS, most_stored=3)
    too_many = Refused(Reason.TOO_MANY_LIMITS)
    await ask(any_store, for_(ANALYST, charge, "c", ONE))
    setting = SetLimits(actor="ops", account=COMPANY, request_id="set", changes=((COMPANY, ABOVE),))
    await any_store.apply(setting, few)
    moving = MoveAccount(actor="ops", account=ANALYST, target=NEW, request_id="move", reason="x")
    closing = CloseAccount(actor="ops", account=COLLEAGUE, request_id="close", reason="x")
    assert too_many == (await any_store.apply(moving, replace(few, most_stored=2))).outcome
    assert LimitsSet(NOON + 1) == (await any_store.apply(replace(moving, request_id="m"), few)).outcome
    assert too_many == (await any_store.apply(closing, few)).outcome
    assert too_many == (await any_store.apply(replace(setting, request_id="s"), few)).outcome
    own = replace(closing, account=NEW, request_id="own")
    assert LimitsSet(NOON + 2) == (await any_store.apply(own, few)).outcome


async def test_a_move_and_what_is_asked_with_it_come_one_after_the_other(any_store: Store) -> None:
    """In one batch: what is decided before it moves too, and what comes behind it finds the old name closed."""
    stored = (await any_store.limits(ANALYST)).applied_to(ANALYST, on(ANALYST))
    moving = MoveAccount(actor="ops", account=ANALYST, target=NEW, request_id="move", reason="x")
    found = await asyncio.gather(
        any_store.apply(for_(ANALYST, charge, "before", ONE).request, stored),
        any_store.apply(for_(ANALYST, reserve, "held", ONE).request, stored),
        any_store.apply(moving, NO_LIMITS),
        any_store.apply(moving, NO_LIMITS),
        any_store.apply(for_(ANALYST, charge, "after", ONE).request, stored),
        return_exceptions=True,
    )
    *_, first, second, late = found
    assert [False, True] == [each.replayed for each in (first, second) if isinstance(each, Answer)]
    assert isinstance(late, LimitsChangedError)
    assert [ONE, ONE] == await spent(any_store, NEW)
    settled = (await ask(any_store, for_(NEW, charge, "s", ONE, settles="held"))).outcome
    assert isinstance(settled, Charged)
    await assert_sound(any_store)


async def test_what_is_used_for_the_first_time_beside_a_move_is_not_overlooked(any_store: Store) -> None:
    """In one batch with it, and right before it: the new name, or an account below the old one."""
    await ask(any_store, for_(ANALYST, charge, "c", ONE))
    below = Account((*ANALYST.path, "below"))
    for number, (account, refusal) in enumerate(
        ((NEW, Reason.TARGET_USED), (below, Reason.HAS_ACCOUNTS_BELOW))
    ):
        asked = charge(f"first {number}", ONE, account=account, on=levels(account))
        target = Account(("acme", f"{NEW.path[-1]}{number or ''}"))
        moving = MoveAccount(actor="ops", account=ANALYST, target=target, request_id=f"m{number}", reason="x")
        _, answer = await asyncio.gather(any_store.apply(*asked), any_store.apply(moving, NO_LIMITS))
        assert Refused(refusal) == answer.outcome
    await assert_sound(any_store)


async def test_of_many_moves_to_one_name_one_wins(any_store: Store) -> None:
    """Two budgets are never added up."""
    accounts = [Account(("acme", f"analyst {number}")) for number in range(8)]
    for number, account in enumerate(accounts):
        await ask(any_store, for_(account, charge, f"c{number}", Cost(number, 1)))
    outcomes = await asyncio.gather(
        *(move(any_store, account, NEW, f"move {number}") for number, account in enumerate(accounts))
    )
    assert 1 == outcomes.count(LimitsSet(NOON))
    assert 7 == outcomes.count(Refused(Reason.TARGET_USED))
    winner = outcomes.index(LimitsSet(NOON))
    assert Cost(winner, 1) == (await spent(any_store, NEW))[-1]
    await assert_sound(any_store)


async def test_a_move_is_added_up_behind_a_checkpoint_and_from_an_archive(
    any_store: Store, clock: SteppedClock, tmp_path: Path
) -> None:
    """Before it, behind it, and archived; each verification and each file is right."""
    await ask(any_store, for_(ANALYST, charge, "c", Cost(3, 1)))
    await checkpoints.make_checkpoint(any_store, "acme")
    clock.step(days=1)
    await move(any_store)
    await ask(any_store, for_(NEW, charge, "d", ONE))
    await close(any_store, COLLEAGUE)
    await assert_sound(any_store)
    await checkpoints.make_checkpoint(any_store, "acme")
    path = await checkpoints.archive(any_store, "acme", tmp_path)
    assert path is not None
    (checked,) = check_archives([path])
    assert ("", 4) == (checked.problem, checked.archive and checked.archive.last)
    await assert_sound(any_store)
    forged = path.read_text().replace("eve", "evi")
    path.write_text(forged)
    assert check_archives([path])[0].problem
    await ask(any_store, for_(NEW, charge, "e", ONE))
    await assert_sound(any_store)


async def test_statements_of_charges_under_an_earlier_name_count(
    any_store: Store, clock: SteppedClock, tmp_path: Path
) -> None:
    """As long as they do; nobody's guarantee gets smaller by a move, nor by a move and an archive."""
    one, two, others = statement(1), statement(2), statement(3)
    await ask(any_store, for_(ANALYST, charge, "c", ONE, policy_statement=one))
    await ask(any_store, for_(COLLEAGUE, charge, "bob", ONE, policy_statement=others))
    await move(any_store)
    await move(any_store, NEW, THIRD, "again")
    await ask(any_store, for_(THIRD, charge, "d", ONE, policy_statement=two))
    found = await policy_statements_of(any_store, THIRD, (await any_store.read(THIRD, on(THIRD))).levels)
    assert {1: (one, two, others), 2: (one, two)} == {depth: each.statements for depth, each in found.items()}
    await checkpoints.make_checkpoint(any_store, "acme")
    await checkpoints.archive(any_store, "acme", tmp_path)
    with pytest.raises(ArchivedStatementsError):
        await policy_statements_of(any_store, THIRD, (await any_store.read(THIRD, on(THIRD))).levels[1:])
    clock.step(days=40)
    await ask(any_store, for_(THIRD, charge, "e", ONE))
    later = await policy_statements_of(any_store, THIRD, (await any_store.read(THIRD, on(THIRD))).levels)
    assert {1: (), 2: ()} == {depth: each.statements for depth, each in later.items()}


@pytest.mark.parametrize("kind", [EntryKind.MOVE, EntryKind.CLOSE])
async def test_an_entry_that_was_slipped_into_the_journal_is_found(
    clock: SteppedClock, kind: EntryKind
) -> None:
    """The balances and states are still those of before."""
    store = MemoryStore(clock)
    await ask(store, for_(ANALYST, charge, "c", ONE))
    slipped = replace(store.entries[-1], kind=kind, cost=NOTHING, holds=(), actor="x", change="acme/eve")
    store.entries.append(slipped)
    found = Verification()
    await verify(store, "acme", found)
    levels = {ANALYST, NEW} if kind is EntryKind.MOVE else {ANALYST}
    assert levels == {each.level for each in found.differences}


async def test_a_balance_that_did_not_move_with_its_entry_is_found(clock: SteppedClock) -> None:
    """And one that moved without an entry."""
    store = MemoryStore(clock)
    await ask(store, for_(ANALYST, charge, "c", ONE))
    await move(store)
    await assert_sound(store)
    store.kept[ANALYST] = store.kept.pop(NEW)
    found = Verification()
    await verify(store, "acme", found)
    assert {ANALYST, NEW} == {each.level for each in found.differences}


def test_the_state_of_an_account_is_the_same_after_it_was_written() -> None:
    """Names may hold any character but a slash; another word is damage."""
    for state in (MOVED, AccountState(), AccountState(True, False, ("a:b", "open", "\\"))):
        assert state == parse_state(state_text(state))
    with pytest.raises(ValueError, match="state"):
        parse_state("shut/ann")
