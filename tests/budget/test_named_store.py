"""Two processes remember names, and never what is no longer true of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from budget_service.ledger.limit_requests import MOST_OF_ACCOUNT
from budget_service.ledger.limits import (
    NO_LIMITS,
    AppliedLimits,
    LimitsChangedError,
    StoredLimits,
    TemporaryLimit,
)
from budget_service.ledger.outcomes import Answer, Charged, Exhausted, LimitsSet, Reason, Refused
from budget_service.ledger.pseudonyms import NameRow
from budget_service.ledger.requests import (
    ApproveLimit,
    CloseAccount,
    ForgetAccount,
    MoveAccount,
    RefuseLimit,
    ReopenAccount,
    ReportCharge,
    Request,
    RequestLimit,
    ReturnLease,
    SetLimits,
)
from budget_service.ledger.values import Account, Cost, Mode
from budget_service.server.account_changes import forget_account
from budget_service.server.refunds import without_charge
from budget_service.stores.interface import Store, StoreUnavailableError
from budget_service.stores.named_store import NamedStore
from tests.budget.test_forgetting import ASKER, BELOW, CONFIGURATION, LEAVER
from tests.support.budget_samples import UNIT, SteppedClock, cancel, charge, limit, reserve

ACCOUNT = Account(LEAVER)
LEVELS = CONFIGURATION.limits_of(ACCOUNT, {})
ADMIN: dict[str, Any] = {"account": ACCOUNT, "actor": "ops", "reason": "left"}


async def forget(store: NamedStore, clock: SteppedClock) -> AppliedLimits:
    """Close and forget the account as one process does, and return its limits."""
    await store.apply(CloseAccount(request_id="close", **ADMIN), NO_LIMITS)
    clock.step(days=31)
    await forget_account(ForgetAccount(request_id="forget", **ADMIN), CONFIGURATION, store)
    return (await store.limits(ACCOUNT)).applied_to(ACCOUNT, LEVELS)


async def test_what_a_region_reports_of_an_unknown_name_counts_for_it(any_store: Store) -> None:
    """It has happened, whatever the ledger knows: under an id that the name has from then on."""
    store = NamedStore(any_store)
    account = Account(LEAVER)
    levels = CONFIGURATION.limits_of(account, {})
    report = ReportCharge(
        account=account,
        lease_id="0" * 32,
        number=1,
        cost=Cost(4, 1),
        unit_id=UNIT,
        release_id="rel",
        query_id="q",
    )
    await store.apply(report, AppliedLimits(levels))
    assert Cost(4, 1) == (await NamedStore(any_store).read(account, levels)).levels[-1].spent
    assert 1 == len(await store.rows_of([account]))


async def test_who_asks_is_known_by_every_account(any_store: Store) -> None:
    """One request at a level, whichever account it is for; and who asked while an approval came does not approve."""
    store, level, before = NamedStore(any_store), Account(("acme",)), limit(10, 5)
    given: dict[str, Any] = {"before": before, "wanted": limit(40, 5), "stated": ("40",), "reason": "audit"}
    asked = [
        RequestLimit(account=level, request_id=name, actor=ASKER, asking=Account(("acme", name)), **given)
        for name in ("a", "b")
    ]
    outcomes = [(await store.apply(each, NO_LIMITS)).outcome for each in asked]
    assert Refused(Reason.TOO_MANY_REQUESTS) == outcomes[1] != outcomes[0]
    by_ids = (await any_store.limits(level)).states[level].requests[0]
    approval = ApproveLimit(
        account=level,
        request_id="yes",
        actor=ASKER,
        id=by_ids.id,
        stored=None,
        present=before,
        of_two=False,
    )
    # Nothing was waiting when the ids of who asks were looked up.
    assert Refused(Reason.OTHER_PERSON_NEEDED) == (await any_store.apply(approval, NO_LIMITS)).outcome
    refused = (await store.apply(structs.replace(approval, request_id="own"), NO_LIMITS)).outcome
    assert Refused(Reason.OTHER_PERSON_NEEDED) == refused
    other = structs.replace(approval, request_id="other", actor="sub:ops")
    assert isinstance((await store.apply(other, NO_LIMITS)).outcome, LimitsSet)


async def test_a_limit_that_comes_with_the_name_is_seen(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a version of the root's limits, all that is stored for a name is found, though it got its id in between."""
    store, account = NamedStore(any_store), Account(LEAVER)
    limits, one = any_store.limits, limit(1, 1)

    async def late(asked: Account) -> StoredLimits:
        monkeypatch.setattr(any_store, "limits", limits)
        change = SetLimits(account=account.level(1), request_id="s", actor="ops", changes=((account, one),))
        await NamedStore(any_store).apply(change, NO_LIMITS)
        return await limits(asked)

    monkeypatch.setattr(any_store, "limits", late)
    assert {account: one} == dict((await store.limits(account)).limits)


async def test_who_asks_twice_at_once_is_one(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have looked who waits before either is written, in two processes."""
    level, limits, both = Account(("acme",)), any_store.limits, asyncio.Barrier(2)

    async def together(asked: Account) -> StoredLimits:
        found = await limits(asked)
        if not found.version:
            await both.wait()
        return found

    async def ask(name: str) -> Answer:
        asking = RequestLimit(
            account=level,
            request_id=name,
            actor=ASKER,
            asking=Account(("acme", name)),
            reason="audit",
            stated=("40",),
            before=limit(10, 5),
            wanted=limit(40, 5),
        )
        return await NamedStore(any_store).apply(asking, NO_LIMITS)

    monkeypatch.setattr(any_store, "limits", together)
    answers = [each.outcome for each in await asyncio.gather(ask("a"), ask("b"))]
    assert 1 == answers.count(Refused(Reason.TOO_MANY_REQUESTS))
    assert 1 == len((await limits(level)).states[level].requests)


def asking(**fields: Any) -> RequestLimit:
    """Ask for more for the root account, as the account."""
    given: dict[str, Any] = {
        "account": ACCOUNT.level(1),
        "request_id": "ask",
        "actor": ASKER,
        "asking": ACCOUNT,
    }
    given |= {"reason": "audit", "stated": ("40",), "before": limit(10, 5), "wanted": limit(40, 5)}
    return RequestLimit(**(given | fields))


async def test_a_name_comes_with_what_is_granted(any_store: Store) -> None:
    """Who is refused may have invented it, and be so at will; all that begins an account is granted later."""
    store, target = NamedStore(any_store), ACCOUNT._replace(path=("acme", "new"))
    dear = charge("dear", Cost(10**6, 1), account=ACCOUNT, on=LEVELS)
    held = reserve("held", Cost(10**6, 1), account=ACCOUNT, on=LEVELS)
    outcomes = [(await store.apply(*each)).outcome for each in (dear, held, dear)]
    assert [Exhausted] * 3 == [*map(type, outcomes)]
    move = MoveAccount(request_id="move", target=target, **ADMIN)
    ended = TemporaryLimit(Cost(1, 1), Mode.ENFORCE, limit(1, 1).window, until=1)
    lapsed = ((ACCOUNT, ended),)
    setting = SetLimits(account=ACCOUNT.level(1), request_id="set", actor="ops", changes=lapsed)
    for refused in (move, setting, asking(account=ACCOUNT, wanted=ended), asking(wanted=ended)):
        assert isinstance((await store.apply(refused, NO_LIMITS)).outcome, Refused), refused
    assert [] == await any_store.names_below("acme", "acme")
    granted = await store.apply(*charge("dear", Cost(1, 1), account=ACCOUNT, on=LEVELS))
    assert isinstance(granted.outcome, Charged)
    assert [ACCOUNT.text] == await any_store.names_below("acme", "acme")
    assert Cost(1, 1) == (await NamedStore(any_store).read(ACCOUNT, LEVELS)).levels[-1].spent


async def test_a_retry_brings_no_forgotten_name_again(any_store: Store) -> None:
    """It is answered as before, and approved by nobody: who asked is not known any more."""
    store = NamedStore(any_store)
    answer = await store.apply(asking(), NO_LIMITS)
    await store.drop_persons(ACCOUNT)
    again = await store.apply(asking(), NO_LIMITS)
    assert (again.outcome, again.replayed) == (answer.outcome, True)
    assert [] == await any_store.names_below("acme", "acme")


async def test_nobody_asks_for_an_account_that_is_closed_meanwhile(
    any_store: Store, clock: SteppedClock
) -> None:
    """Whatever its level is, and whenever that was looked up; once it is forgotten, the name is somebody else's."""
    store = NamedStore(any_store)
    await store.apply(*charge("before", Cost(1, 1), account=ACCOUNT, on=LEVELS))
    await store.apply(CloseAccount(request_id="close", **ADMIN), NO_LIMITS)
    refused = (await store.apply(asking(request_id="early"), NO_LIMITS)).outcome
    assert Refused(Reason.ACCOUNT_CLOSED) == refused
    assert [ACCOUNT.text] == await any_store.names_below("acme", "acme")
    await forget(store, clock)
    assert isinstance((await store.apply(asking(), NO_LIMITS)).outcome, LimitsSet)


@pytest.mark.parametrize("then", ["refused", "left", "failing"])
async def test_who_asks_while_the_account_is_forgotten_leaves_no_name(
    any_store: Store, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """Between the look at the account and the request itself; also who leaves then, or whose store fails."""
    store = NamedStore(any_store)
    await store.apply(*charge("before", Cost(1, 1), account=ACCOUNT, on=LEVELS))
    await store.apply(asking(), NO_LIMITS)
    assert 2 == len(await any_store.names_below("acme", "acme"))
    found = store._asker

    async def forgotten_first(actor: str, account: Account) -> str:
        other = NamedStore(any_store)
        await other.apply(CloseAccount(request_id="close", **ADMIN), NO_LIMITS)
        await forget(other, clock)
        for number in range(MOST_OF_ACCOUNT):
            own = asking(
                request_id=f"{number}", actor=f"sub:{number}", asking=Account(("acme", f"u-{number}"))
            )
            await other.apply(own, NO_LIMITS)
        named = await found(actor, account)
        assert (await any_store.names_below("acme", ACCOUNT.text)) != []
        if then == "left":
            raise asyncio.CancelledError
        if then == "failing":
            raise StoreUnavailableError("no network")
        return named

    monkeypatch.setattr(store, "_asker", forgotten_first)
    late = asking(request_id="late", actor="sub:late")
    if then == "refused":
        assert Refused(Reason.TOO_MANY_REQUESTS) == (await store.apply(late, NO_LIMITS)).outcome
    else:
        with pytest.raises((asyncio.CancelledError, StoreUnavailableError)):
            await store.apply(late, NO_LIMITS)
    assert [] == await any_store.names_below("acme", ACCOUNT.text)
    # Those who wait for an answer stay, and so does who asks for an account that nobody has used.
    assert MOST_OF_ACCOUNT == len(await any_store.names_below("acme", "acme"))


async def test_who_was_granted_something_keeps_the_name(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an account that was never charged, also when the next who asks for it leaves before the answer."""
    store = NamedStore(any_store)
    await store.apply(asking(), NO_LIMITS)
    (entry,) = [each for _, each in await store.journal("acme", "", "", 9)]
    refusing = RefuseLimit(
        account=ACCOUNT.level(1), request_id="no", actor="sub:ops", id=entry.query_id, reason="no"
    )
    await store.apply(refusing, NO_LIMITS)

    async def failing(actor: str, account: Account) -> str:
        raise StoreUnavailableError("no network")

    monkeypatch.setattr(store, "_asker", failing)
    with pytest.raises(StoreUnavailableError):
        await store.apply(asking(request_id="late", actor="sub:late"), NO_LIMITS)
    assert ASKER in [each.actor for _, each in await store.journal("acme", "", "", 9)]


async def test_all_of_a_root_may_ask_at_once(any_store: Store) -> None:
    """Each request makes another version of the limits, as of which the others are decided."""
    stores = [NamedStore(any_store) for _ in range(2)]
    names = [f"u-{number}" for number in range(20)]
    answers = await asyncio.gather(
        *(
            stores[index % 2].apply(
                asking(account=Account(("acme", name)), asking=Account(("acme", name)), request_id=name),
                NO_LIMITS,
            )
            for index, name in enumerate(names)
        )
    )
    assert {LimitsSet} == {type(each.outcome) for each in answers}


async def test_what_looks_like_an_id_is_a_reason_as_it_was_written(any_store: Store) -> None:
    """Only who has asked stands for an id there."""
    store = NamedStore(any_store)
    await store.apply(asking(), NO_LIMITS)
    (found,) = (await any_store.limits(ACCOUNT)).states[ACCOUNT.level(1)].requests
    reason = f"as {found.asked_by} (asked for by {found.asked_by}"
    other = asking(actor="sub:other", request_id="other", reason=reason)
    await store.apply(other, NO_LIMITS)
    approval = ApproveLimit(
        account=other.account,
        request_id="yes",
        actor=f"sub:{found.asked_by}",
        id=other.id,
        stored=None,
        present=other.before,
        of_two=False,
    )
    assert isinstance((await store.apply(approval, NO_LIMITS)).outcome, LimitsSet)
    (_, approved), (_, asked) = await store.latest("acme", "", 2)
    assert (reason, "sub:other") == (asked.reason, asked.actor)
    assert (f"{reason} (asked for by sub:other, request {other.id})", approval.actor) == (
        approved.reason,
        approved.actor,
    )


async def test_a_retry_of_who_came_anew_is_answered_by_every_process(
    any_store: Store, clock: SteppedClock
) -> None:
    """Also by one that remembers who had the name before: it was charged."""
    one, other = NamedStore(any_store), NamedStore(any_store)
    before = charge("before", Cost(1, 1), account=ACCOUNT, on=LEVELS)
    await other.apply(*before)
    limits = await forget(one, clock)
    asked = charge("anew", Cost(2, 1), account=ACCOUNT).request
    first = await one.apply(asked, limits)
    again = await other.apply(asked, before.limits)
    assert (again.outcome, again.replayed) == (first.outcome, True)
    assert isinstance(first.outcome, Charged)


async def test_nothing_is_closed_below_a_name_that_was_forgotten_meanwhile(
    any_store: Store, clock: SteppedClock
) -> None:
    """With the name went that of who is below it."""
    store, below = NamedStore(any_store), Account(BELOW)
    team = {**ADMIN, "account": below.level(2)}
    await store.apply(CloseAccount(request_id="close", **team), NO_LIMITS)
    by_ids = (await store.levels_of((below,), adds=True))[below]
    await forget_account(ForgetAccount(request_id="forget", **team), CONFIGURATION, store)
    late = CloseAccount(request_id="late", **{**ADMIN, "account": by_ids})
    assert Refused(Reason.ACCOUNT_FORGOTTEN) == (await any_store.apply(late, NO_LIMITS)).outcome


@pytest.mark.parametrize(
    "request_",
    [
        cancel("x", "gone", account=ACCOUNT).request,
        without_charge(ACCOUNT, "rel", "wrong", "x", actor="ops"),
        ReturnLease(account=ACCOUNT, lease_id="0" * 32, number=0, region="eu"),
        ReopenAccount(request_id="x", **ADMIN),
        ApproveLimit(
            account=ACCOUNT, request_id="x", actor="ops", id="0", stored=None, present=None, of_two=False
        ),
        RefuseLimit(request_id="x", id="0", **ADMIN),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_who_is_unknown_is_refused_alike_by_every_process(any_store: Store, request_: Request) -> None:
    """Also when the same is asked again, and it makes no row of the name."""
    answers = [await NamedStore(any_store).apply(request_, NO_LIMITS) for _ in range(2)]
    assert [True, True] == [isinstance(each.outcome, Refused) for each in answers]
    assert answers[0] == answers[1]
    assert Refused(Reason.REQUEST_ID_REUSED) != answers[0].outcome
    assert [] == await any_store.named("acme", ["/".join(LEAVER)])


async def test_a_hold_of_who_came_anew_is_found_by_every_process(
    any_store: Store, clock: SteppedClock
) -> None:
    """Without it a settlement would need no charge ticket."""
    one, other = NamedStore(any_store), NamedStore(any_store)
    await other.apply(*charge("before", Cost(1, 1), account=ACCOUNT, on=LEVELS))
    limits = await forget(one, clock)
    held = reserve("r", Cost(1, 1), account=ACCOUNT, query_id="q").request
    await one.apply(held, limits)
    assert "q" == await other.query_id_of(ACCOUNT, held.reservation_id)


async def test_what_is_remembered_too_late_is_not_read(
    any_store: Store, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that looked up its account before that was forgotten is refused, and what it remembers is of nobody."""
    one, other = NamedStore(any_store), NamedStore(any_store)
    asked = charge("before", Cost(7, 1), account=ACCOUNT, on=LEVELS)
    await one.apply(*asked)
    named = any_store.named

    async def late(root: str, names: Sequence[str]) -> list[NameRow]:
        found = await named(root, names)
        monkeypatch.setattr(any_store, "named", named)
        anew = charge("anew", Cost(5, 1), account=ACCOUNT)
        await one.apply(anew.request, await forget(one, clock))
        await other.limits(ACCOUNT)
        return found

    monkeypatch.setattr(any_store, "named", late)
    with pytest.raises(LimitsChangedError):
        await other.apply(asked.but(request_id="late").request, asked.limits)
    assert Cost(5, 1) == (await other.read(ACCOUNT, LEVELS)).levels[-1].spent
