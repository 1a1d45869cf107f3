"""Budgets by purpose: what charges of one purpose may take of a limit, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from google.rpc.error_details_pb2 import BadRequest
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata
from msgspec.structs import replace

from budget_service.ledger import rules
from budget_service.ledger.account_statement import check
from budget_service.ledger.limits import (
    AppliedLimits,
    TemporaryLimit,
    change_text,
    limit_text,
    parse_change,
    parse_limit,
)
from budget_service.ledger.outcomes import (
    Answer,
    Cancelled,
    Charged,
    Exhausted,
    Held,
    LimitsSet,
    Outcome,
    Reason,
    Refused,
    Reserved,
    Shortfall,
)
from budget_service.ledger.requests import MoveAccount, SetLimits, WriteOff
from budget_service.ledger.values import (
    MAX_AMOUNT,
    Account,
    Cost,
    InvalidFieldError,
    LevelLimit,
    Limit,
    Mode,
    Unit,
    parse_purpose,
    purpose_of,
)
from budget_service.ledger.windows import DAY
from budget_service.server.audit import Verification, verify
from budget_service.server.checkpoints import make_checkpoint
from budget_service.server.policy_statements import policy_statements_of
from budget_service.server.refunds import with_charge, without_charge
from budget_service.server.responses import ChargeResponseBuilders, budget_message
from budget_service.server.rpc_errors import exhausted
from budget_service.server.rpc_errors import refused as refused_by_rule
from budget_service.stores.interface import Store
from pinot_connector.errors import IntegrityError
from pinot_connector.rpc_errors import Service, error_of_rpc
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    NOON,
    ONE,
    UNIT,
    Asked,
    SteppedClock,
    cancel,
    charge,
    limit,
    reserve,
)

A, B = "00000000000000aa", "00000000000000bb"
PAYROLL, SALES = "payroll", "sales"


def with_purposes(limit: Limit, **most: int) -> Limit:
    """Return a limit of which some purposes may take less."""
    return replace(limit, purposes=tuple((name, Cost(each, each)) for name, each in sorted(most.items())))


OWN, ABOVE = limit(20, 20), with_purposes(limit(30, 30), payroll=5)
ON = (LevelLimit(COMPANY, ABOVE), LevelLimit(ANALYST, OWN))
COLLEAGUES = (LevelLimit(COMPANY, ABOVE), LevelLimit(COLLEAGUE, OWN))


async def outcome(store: Store, asked: Asked[Any]) -> Outcome:
    """Return what a store answers."""
    answer: Answer = await store.apply(*asked)
    return answer.outcome


async def paid(
    store: Store,
    id_: str,
    information: int,
    purpose: str = PAYROLL,
    *blocks: str,
    on: tuple[LevelLimit, ...] = ON,
) -> Outcome:
    """Charge for a purpose."""
    asked = charge(id_, Cost(information, 0), account=on[-1].level, on=on, release_id=id_)
    return await outcome(store, asked.but(purpose=purpose, blocks=blocks))


async def left(store: Store, purpose: str, *blocks: str, on: tuple[LevelLimit, ...] = ON) -> int:
    """Return how many information units are left to a purpose."""
    found = await store.read(on[-1].level, on)
    return min(each.remaining.information for each in found.levels_for(blocks, purpose))


async def assert_sound(store: Store) -> None:
    """Compare all balances with the journal."""
    found = Verification()
    await verify(store, "acme", found)
    assert found.differences == []


async def test_a_purpose_has_a_limit_of_its_own_beside_that_of_its_level(any_store: Store) -> None:
    """What counts for payroll counts for the company too; others go on where payroll is exhausted."""
    assert isinstance(await paid(any_store, "p", 4), Charged)
    refused = await paid(any_store, "q", 2)
    assert isinstance(refused, Exhausted)
    assert [(each.depth, each.unit, each.purpose, each.remaining) for each in refused.shortfalls] == [
        (1, Unit.INFORMATION, PAYROLL, 1)
    ]
    # The same answer is remembered, with the purpose.
    assert await paid(any_store, "q", 2) == refused
    assert isinstance(await paid(any_store, "s", 6, SALES), Charged)
    assert isinstance(await paid(any_store, "n", 6, ""), Charged)
    assert isinstance(await paid(any_store, "c", 1, on=COLLEAGUES), Charged)
    assert [await left(any_store, each) for each in (PAYROLL, SALES, "")] == [0, 4, 4]
    assert isinstance(await paid(any_store, "t", 5, SALES), Exhausted)
    await assert_sound(any_store)


async def test_a_charge_tells_what_its_levels_have_left(any_store: Store) -> None:
    """Those of the account, and before each what it has for the purpose; the state of the account has both too."""
    found = await paid(any_store, "p", 4)
    assert isinstance(found, Charged)
    assert [(each.depth, each.purpose, each.remaining.information) for each in found.levels] == [
        (1, PAYROLL, 1),
        (1, "", 26),
        (2, "", 16),
    ]
    asked = charge("p", Cost(4, 0), on=ON, release_id="p").but(purpose=PAYROLL)
    again: Answer = await any_store.apply(*asked)
    assert again == Answer(found, replayed=True)
    sent = ChargeResponseBuilders().filled(found, asked.request, replayed=True)
    assert [(each.purpose, each.limit.information) for each in sent.levels] == [
        (PAYROLL, 5),
        ("", 30),
        ("", 20),
    ]
    builders = ChargeResponseBuilders()
    for purpose in (PAYROLL, "audit"):
        of = [replace(found.levels[0], purpose=purpose), *found.levels[1:]]
        filled = builders.filled(replace(found, levels=tuple(of)), asked.request, replayed=True)
        assert [each.purpose for each in filled.levels] == [purpose, "", ""]
    other = await paid(any_store, "s", 1, SALES)
    assert isinstance(other, Charged)
    assert [(each.purpose, each.remaining.information) for each in other.levels] == [("", 25), ("", 15)]
    message = budget_message(await any_store.read(ANALYST, ON), ANALYST)
    assert [(each.purpose, [*each.path]) for each in message.levels] == [
        ("", ["acme"]),
        ("", ["acme", "ann"]),
    ]
    (shown,) = message.purposes
    amounts = [each.information for each in (shown.limit, shown.spent, shown.reserved, shown.remaining)]
    assert (shown.purpose, [*shown.path], amounts) == (PAYROLL, ["acme"], [5, 4, 0, 1])


async def test_each_level_has_a_limit_of_its_own_for_a_purpose(any_store: Store) -> None:
    """The account's may be the only one, or the smaller one; the state of the account has both."""
    own = LevelLimit(ANALYST, with_purposes(OWN, payroll=3))
    alone, both = (LevelLimit(COMPANY, limit(30, 30)), own), (ON[0], own)
    assert isinstance(await paid(any_store, "p", 2, on=alone), Charged)
    assert [await left(any_store, PAYROLL, on=on) for on in (alone, both)] == [1, 1]
    found = await any_store.read(ANALYST, both)
    assert [(each.depth, each.remaining.information) for each, _ in found.purposes] == [(1, 3), (2, 1)]
    for on in (alone, both):
        refused = await paid(any_store, "q", 2, on=on)
        assert isinstance(refused, Exhausted)
        assert [(each.depth, each.purpose) for each in refused.shortfalls] == [(2, PAYROLL)]
    await assert_sound(any_store)


async def test_a_purpose_of_a_level_that_only_tracks_is_recorded(any_store: Store) -> None:
    """It has the mode of its level: nothing is refused, and what was spent above its limit is shown."""
    tracked = with_purposes(limit(1, 1, mode=Mode.TRACK), payroll=1)
    on = (LevelLimit(COMPANY, tracked), ON[1])
    assert isinstance(await paid(any_store, "p", 9, on=on), Charged)
    ((purpose, _),) = (await any_store.read(ANALYST, on)).purposes
    assert (purpose.mode, purpose.spent, purpose.is_over_limit) == (Mode.TRACK, Cost(9, 0), True)
    await assert_sound(any_store)


async def test_sums_of_purposes_and_blocks_without_a_limit_fit_into_64_bits(any_store: Store) -> None:
    """Where they would not, the charge is refused, and the ledger goes on."""
    on = [(LevelLimit(each, limit(MAX_AMOUNT, 1)),) for each in (ANALYST, COLLEAGUE)]
    assert isinstance(await paid(any_store, "p", MAX_AMOUNT - 1, PAYROLL, A, on=on[0]), Charged)
    assert await paid(any_store, "q", 2, PAYROLL, A, on=on[1]) == Refused(Reason.SUM_OVERFLOW)
    assert isinstance(await paid(any_store, "r", 1, PAYROLL, A, on=on[1]), Charged)
    await assert_sound(any_store)


async def test_what_a_block_has_settled_for_a_purpose_is_paid_for(any_store: Store) -> None:
    """By the account, whose release it is: for nothing under another request."""
    await any_store.apply(*reserve("r", Cost(4, 1), on=ON).but(purpose=PAYROLL, blocks=(A,)))
    settling = charge("s", Cost(3, 1), on=ON, settles="r", release_id="release")
    await any_store.apply(*settling.but(purpose=PAYROLL, blocks=(A,)))
    again = charge("t", Cost(3, 1), on=ON, release_id="release").but(purpose=PAYROLL, blocks=(A,))
    found = await outcome(any_store, again)
    assert isinstance(found, Charged)
    assert (found.charged, found.already_paid) == (Cost(0, 0), True)


async def test_of_two_at_once_at_the_limit_of_a_purpose_one_is_granted(any_store: Store) -> None:
    """The first that is decided: both counts are one atomic step."""
    asked = [
        reserve(f"r{number}", Cost(3, 1), account=on[-1].level, on=on).but(purpose=PAYROLL)
        for number, on in enumerate((ON, COLLEAGUES) * 4)
    ]
    found = await asyncio.gather(*[outcome(any_store, each) for each in asked])
    assert [sum(isinstance(each, kind) for each in found) for kind in (Reserved, Held)] == [1, 7]
    await assert_sound(any_store)


async def test_what_is_reserved_is_settled_for_the_same_purpose(
    any_store: Store, clock: SteppedClock
) -> None:
    """For another one, or none, it is refused; cancelled or lapsed it returns, and forfeited it is spent."""
    await any_store.apply(*reserve("r", Cost(4, 1), on=ON).but(purpose=PAYROLL))
    settling = charge("s", Cost(2, 1), on=ON, settles="r")
    for number, purpose in enumerate(("", SALES)):
        wrong = settling.but(request_id=f"s{number}", purpose=purpose)
        refused = await outcome(any_store, wrong)
        assert refused == Refused(Reason.PURPOSE_MISMATCH, (PAYROLL,), (purpose,))
        assert await any_store.apply(*wrong) == Answer(refused, replayed=True)
    assert isinstance(await paid(any_store, "held", 2), Held)
    assert isinstance(await outcome(any_store, settling.but(purpose=PAYROLL)), Charged)
    assert await left(any_store, PAYROLL) == 3
    await any_store.apply(*reserve("c", Cost(3, 1), on=ON).but(purpose=PAYROLL))
    assert await outcome(any_store, cancel("x", ends="c", on=ON)) == Cancelled(Cost(3, 1), UNIT)
    await any_store.apply(*reserve("l", Cost(1, 1), on=ON).but(purpose=PAYROLL))
    await any_store.apply(*reserve("f", Cost(1, 1), on=ON, forfeits=True).but(purpose=PAYROLL))
    clock.step(seconds=61)
    assert await left(any_store, PAYROLL) == 2
    # Of another purpose, it ends those that have lapsed.
    assert isinstance(await paid(any_store, "o", 1, SALES), Charged)
    assert isinstance(await paid(any_store, "p", 3), Exhausted)
    assert isinstance(await paid(any_store, "q", 2), Charged)
    await assert_sound(any_store)


async def test_a_limit_that_comes_late_counts_what_was_charged_before(
    any_store: Store, clock: SteppedClock
) -> None:
    """A purpose that no limit names counts all the same, today and on the days before, held and spent."""
    plain = (LevelLimit(COMPANY, limit(30, 30)), LevelLimit(ANALYST, OWN))
    assert isinstance(await paid(any_store, "p", 3, on=plain), Charged)
    clock.step(days=1)
    assert isinstance(await paid(any_store, "q", 1, on=plain), Charged)
    assert isinstance(await paid(any_store, "s", 5, SALES, on=plain), Charged)
    await any_store.apply(*reserve("r", Cost(2, 1), on=plain).but(purpose=PAYROLL))
    late = (LevelLimit(COMPANY, with_purposes(limit(30, 30), payroll=7)), *plain[1:])
    assert await left(any_store, PAYROLL, on=late) == 1
    assert isinstance(await paid(any_store, "t", 2, on=late), Held)
    assert isinstance(await paid(any_store, "u", 1, on=late), Charged)
    # Without the limit nothing stands in the way, and with a lower one nothing is left.
    assert isinstance(await paid(any_store, "v", 2, on=plain), Charged)
    lower = (LevelLimit(COMPANY, with_purposes(limit(30, 30), payroll=2)), *plain[1:])
    assert isinstance(await paid(any_store, "w", 1, on=lower), Exhausted)
    assert isinstance(await paid(any_store, "x", 1, SALES, on=lower), Charged)
    await assert_sound(any_store)


async def test_a_purpose_is_refreshed_with_its_level(any_store: Store, clock: SteppedClock) -> None:
    """In a sliding window each day stops counting by itself."""
    on = (LevelLimit(ANALYST, with_purposes(limit(20, 20, days=2), payroll=5)),)
    assert isinstance(await paid(any_store, "a", 3, on=on), Charged)
    clock.step(days=1)
    assert isinstance(await paid(any_store, "b", 2, on=on), Charged)
    refused = await paid(any_store, "c", 1, on=on)
    assert isinstance(refused, Exhausted)
    assert refused.shortfalls[0].refreshes_at == (NOON // DAY + 2) * DAY
    clock.step(days=1)
    assert await left(any_store, PAYROLL, on=on) == 3
    assert isinstance(await paid(any_store, "d", 3, on=on), Charged)
    await assert_sound(any_store)


async def test_blocks_of_a_purpose_do_not_pay_for_each_other(any_store: Store) -> None:
    """A purpose counts as its level does: what everybody paid, and the most of one block."""
    for id_, information, blocks in (("a", 3, (A,)), ("b", 4, (B,)), ("all", 1, ())):
        assert isinstance(await paid(any_store, id_, information, PAYROLL, *blocks), Charged)
    found = [await left(any_store, PAYROLL, *blocks) for blocks in ((), (A,), (B,), (A, B), ("c" * 16,))]
    assert found == [0, 1, 0, 0, 4]
    statement = await any_store.read(ANALYST, ON)
    for blocks, information in (((A,), 1), (("c" * 16,), 4)):
        for more, expected in ((0, type(None)), (1, Exhausted)):
            cost = Cost(information + more, 0)
            assert isinstance(check(statement, cost, UNIT, ANALYST, blocks, purpose=PAYROLL), expected)
            assert check(statement, cost, UNIT, ANALYST, blocks) is None
    assert isinstance(await paid(any_store, "b2", 1, PAYROLL, B), Exhausted)
    assert isinstance(await paid(any_store, "a2", 1, PAYROLL, A), Charged)
    # To those who ask for nothing in particular, blocks of purposes are none of their own.
    assert isinstance(await paid(any_store, "x", 11, ""), Charged)
    await assert_sound(any_store)


async def test_a_refund_is_given_to_the_purpose_that_paid(any_store: Store, clock: SteppedClock) -> None:
    """On the day on which it did."""
    assert isinstance(await paid(any_store, "a", 4, PAYROLL, A), Charged)
    clock.step(days=1)
    asked = await with_charge(any_store, without_charge(ANALYST, "a", "wrong", "refund", actor="ops"))
    assert (purpose_of(asked.holds), asked.blocks) == (PAYROLL, (A,))
    assert await outcome(any_store, Asked(asked, AppliedLimits(ON))) == Cancelled(Cost(4, 0), UNIT)
    assert await left(any_store, PAYROLL) == 5
    await assert_sound(any_store)


async def test_a_moved_account_keeps_what_it_spent_for_a_purpose(
    any_store: Store, clock: SteppedClock
) -> None:
    """On past days too, and what is held; checkpoints have the sums."""
    own = with_purposes(limit(20, 20), payroll=5)
    on = (LevelLimit(ANALYST, own),)
    await paid(any_store, "old", 2, PAYROLL, A, on=on)
    clock.step(days=1)
    await paid(any_store, "new", 1, on=on)
    await any_store.apply(*reserve("r", Cost(1, 1), on=on, ttl_seconds=600).but(purpose=PAYROLL))
    target = Account(("acme", "zoe"))
    moving = MoveAccount(actor="ops", account=ANALYST, target=target, request_id="m", reason="married")
    assert isinstance(await outcome(any_store, Asked(moving, AppliedLimits())), LimitsSet)
    levels = {level for level, _ in (await any_store.balances("acme", "", 1000)).balances}
    assert {level for level in levels if level.path == ANALYST.path} == set()
    assert await left(any_store, PAYROLL, on=(LevelLimit(target, own),)) == 1
    await make_checkpoint(any_store, "acme")
    assert target.of_purpose(PAYROLL) in (await any_store.checkpoint("acme", [target])).spent
    while await any_store.drop_checkpointed("acme", 100):
        pass
    await assert_sound(any_store)


async def test_a_write_off_leaves_nothing_to_a_purpose(any_store: Store) -> None:
    """It spends what the level has left, which has to hold each charge of a purpose too."""
    await paid(any_store, "p", 1)
    lost = Asked(WriteOff(actor="ops", account=COMPANY, request_id="w"), AppliedLimits(ON[:1]))
    assert isinstance(await outcome(any_store, lost), Charged)
    assert isinstance(await paid(any_store, "q", 1), Exhausted)
    await assert_sound(any_store)


async def test_statements_of_a_purpose_are_those_of_its_levels(any_store: Store) -> None:
    """Each counts where its charge does."""
    asked = charge("p", Cost(1, 0), on=ON).but(purpose=PAYROLL, policy_statement=ONE)
    await any_store.apply(*asked)
    found = await policy_statements_of(any_store, ANALYST, (await any_store.read(ANALYST, ON)).levels)
    assert {depth: each.statements for depth, each in found.items()} == {1: (ONE,), 2: (ONE,)}


async def test_a_root_has_a_bounded_number_of_purposes(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count with blocks. What is refused opens none; those that are known or have a limit are still asked for."""
    monkeypatch.setattr(rules, "MAX_BLOCKS_OF_ROOT", 3)
    assert isinstance(await paid(any_store, "big", 21, "invented"), Exhausted)
    page = await any_store.balances("acme", "", 100)
    assert {level.block for level, _ in page.balances} == {""}
    assert isinstance(await paid(any_store, "p", 1, PAYROLL, A), Charged)
    assert await paid(any_store, "q", 1, SALES) == Refused(Reason.TOO_MANY_BLOCKS)
    assert await paid(any_store, "r", 1, PAYROLL, B) == Refused(Reason.TOO_MANY_BLOCKS)
    assert isinstance(await paid(any_store, "s", 1, PAYROLL, A), Charged)
    assert isinstance(await paid(any_store, "t", 1, ""), Charged)


async def test_invented_purposes_keep_out_none_that_has_a_limit(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All who may reserve can invent some, and pay nothing for it."""
    monkeypatch.setattr(rules, "MAX_BLOCKS_OF_ROOT", 1)
    await any_store.apply(*reserve("r", on=ON).but(purpose="invented"))
    await any_store.apply(*cancel("c", ends="r", on=ON))
    own = (LevelLimit(COMPANY, limit(30, 30)), LevelLimit(ANALYST, with_purposes(OWN, audit=5)))
    for on in (ON, own):
        assert await paid(any_store, "s", 1, SALES, on=on) == Refused(Reason.TOO_MANY_BLOCKS)
    assert isinstance(await paid(any_store, "p", 1), Charged)
    # Wherever its limit is.
    assert isinstance(await paid(any_store, "a", 1, "audit", on=own), Charged)


@pytest.mark.parametrize("make", [reserve, charge])
async def test_a_purpose_is_a_part_of_what_was_asked(
    any_store: Store, make: Callable[..., Asked[Any]]
) -> None:
    """The same request for another one is another request."""
    asked = make("r", on=ON).but(purpose=PAYROLL)
    assert isinstance(await outcome(any_store, asked), Reserved | Charged)
    assert (await any_store.apply(*asked)).replayed
    for other in ("", SALES):
        assert await outcome(any_store, asked.but(purpose=other)) == Refused(Reason.REQUEST_ID_REUSED)


async def test_a_stored_limit_has_purposes(any_store: Store) -> None:
    """As an administrator sets it, before the file's; the journal says what it was."""
    stored = TemporaryLimit(*_fields(with_purposes(limit(9, 9), sales=1)), until=NOON + DAY)
    request = SetLimits(account=COMPANY, request_id="set", actor="ops", changes=((COMPANY, ABOVE),))
    assert isinstance(await outcome(any_store, Asked(request, AppliedLimits())), LimitsSet)
    assert (await any_store.limits(ANALYST)).limits == {COMPANY: ABOVE}
    await any_store.apply(replace(request, request_id="t", changes=((COMPANY, stored),)), AppliedLimits())
    found = (await any_store.limits(ANALYST)).limits[COMPANY]
    assert found == replace(stored, then=ABOVE)
    ((_, entry),) = await any_store.latest("acme", "", 1)
    assert parse_change(entry.change) == (ABOVE, found)


def _fields(limit: Limit) -> tuple[Any, ...]:
    return limit.maximum, limit.mode, limit.window, limit.purposes


def test_limits_without_purposes_have_the_text_that_they_had() -> None:
    """So that stored ones stay, and what names purposes is read as it was written."""
    assert limit_text(OWN) == "20:20:enforce:month:0:UTC"
    assert limit_text(ABOVE) == "30:30:enforce:month:0:UTC:payroll,5,5"
    both = with_purposes(limit(1, 2, days=3, zone="Etc/GMT+1"), a=0, b=7)
    for each in (OWN, ABOVE, both, TemporaryLimit(*_fields(both), until=5, then=ABOVE)):
        assert parse_limit(limit_text(each)) == each
    assert parse_change(change_text(ABOVE, both)) == (ABOVE, both)


def test_a_refusal_names_the_purpose() -> None:
    """In the sentence, and apart from it."""
    missing = Shortfall(1, Unit.CALLS, 2, 1, None, PAYROLL)
    status = exhausted(Exhausted(NOON, (missing,)), ANALYST)
    assert "2 calls requested, 1 left for purpose payroll" in status.message
    assert any(b"acme*payroll*:calls" in each.value for each in status.details)


@pytest.mark.parametrize(
    ("refused", "field", "said"),
    [
        (
            Refused(Reason.PURPOSE_MISMATCH, (PAYROLL,), (SALES,)),
            "cost.purpose",
            "expected payroll, got sales",
        ),
        (Refused(Reason.PURPOSE_MISMATCH, (PAYROLL,), ("",)), "cost.purpose", "expected payroll, got none"),
        (Refused(Reason.BLOCKS_MISMATCH, (A, B), ()), "cost.blocks", f"expected {A} {B}, got none"),
    ],
)
def test_a_mismatch_names_what_differs(refused: Refused, field: str, said: str) -> None:
    """To the ledger's clients, and to those of a connector, which have an error of their own."""
    status = refused_by_rule(refused)
    assert status.message.startswith(f"{field} ")
    assert status.message.endswith(f"the reservation's: {said}")
    request = BadRequest()
    assert status.details[1].Unpack(request)
    assert [each.field for each in request.field_violations] == [field]
    sent = Metadata(("grpc-status-details-bin", status.SerializeToString()))
    failed = AioRpcError(StatusCode.INVALID_ARGUMENT, Metadata(), sent, status.message)
    error = error_of_rpc(Service.BUDGET, failed)
    assert (type(error), str(error)) == (IntegrityError, status.message)


@pytest.mark.parametrize(
    "purpose", ["Payroll", "p" * 65, "pay roll", "pay*", "a/b", "p\n", "\u0661", "pay:roll"]
)
def test_other_purposes_are_refused_by_name(purpose: str) -> None:
    """1 to 64 lower-case letters, digits and hyphens."""
    with pytest.raises(InvalidFieldError) as refused:
        parse_purpose(purpose, "cost.purpose")
    assert refused.value.field == "cost.purpose"


@pytest.mark.parametrize("purpose", ["", "p" * 64, "0123456789abcdef", "-"])
def test_good_purposes_are_taken(purpose: str) -> None:
    """None, and one that looks like a block."""
    assert parse_purpose(purpose, "cost.purpose") == purpose
    level = ANALYST.of_purpose(purpose)
    for each in (ANALYST, ANALYST.paid_by(A), *([level, level.paid_by(A)] if purpose else [])):
        assert Account.of_text(each.text) == each
        assert each.purpose == (purpose if each.block.endswith("*") or "*" in each.block else "")
