"""Limits that end by themselves: exactly at their time by the ledger's clock, and then what was before holds again."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2

from budget_service.configuration.budget_file import AccountUnknownError, Configuration
from budget_service.ledger.limits import (
    NO_LIMITS,
    TemporaryLimit,
    change_text,
    limit_text,
    parse_change,
    parse_limit,
)
from budget_service.ledger.outcomes import Charged, Exhausted, LimitsSet, Reason, Refused, Reserved
from budget_service.ledger.requests import SetLimits
from budget_service.ledger.values import Account, Cost, LevelLimit, Limit, Mode
from budget_service.ledger.windows import SECOND, Microseconds, Period
from budget_service.regions.lease import MAX_OUTLIVING, LendingTerms, end_of
from budget_service.server.audit import Verification, verify, verify_checkpointed
from budget_service.server.checkpoints import make_checkpoint
from budget_service.server.failure_detector import FailureDetector
from budget_service.server.hosting import administering
from budget_service.server.limit_cache import LimitCache
from budget_service.server.limit_history import LimitHistory
from budget_service.server.policy_statements import policy_statements_of
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import Store
from budget_service.stores.write_off import write_off
from tests.budget.account_changes import move
from tests.budget.conftest import UNHURRIED
from tests.budget.limit_settings import CONFIGURATION, SETTINGS
from tests.budget.memory_store import MemoryStore
from tests.budget.policy_service import stub_on
from tests.support.budget_client import account, failure
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    NOON,
    SteppedClock,
    charge,
    limit,
    reserve,
)

HOUR: Microseconds = 3600 * SECOND
END = NOON + HOUR
UNIT = Cost(1, 0)
# What the configuration has for the analyst.
CONFIGURED = limit(10, 5)


def temporary(
    maximum: int, until: Microseconds = END, then: Limit | None = None, **more: Any
) -> TemporaryLimit:
    """Return a limit that ends."""
    found = limit(maximum, 5, **more)
    return TemporaryLimit(found.maximum, found.mode, found.window, until=until, then=then)


async def set_to(store: Store, id_: str, new: Limit | None, level: Account = ANALYST) -> object:
    """Set a limit, or remove it."""
    request = SetLimits(actor="ops", account=level.level(1), request_id=id_, changes=((level, new),))
    return (await store.apply(request, NO_LIMITS)).outcome


async def spent_by(cache: LimitCache, id_: str, information: int, by: Account = ANALYST) -> bool:
    """Charge by the limits that a process has cached; return whether it was granted."""
    outcome = (await cache.apply(charge(id_, Cost(information, 0), account=by).request)).outcome
    assert isinstance(outcome, Charged | Exhausted)
    return isinstance(outcome, Charged)


async def assert_verified(store: Store) -> None:
    """The ledger agrees with its journal, and with its checkpoint if there is one."""
    found = Verification()
    await verify(store, "acme", found)
    await verify_checkpointed(store, "acme", found)
    assert [] == found.differences


@pytest.mark.parametrize("before", [None, limit(3, 5)])
@pytest.mark.parametrize("is_raised", [True, False])
async def test_it_ends_exactly_at_its_time_in_every_process(
    any_store: Store, clock: SteppedClock, before: Limit | None, is_raised: bool
) -> None:
    """A microsecond before it counts; at its time the override or the configuration before it holds, cached or not."""
    cached, lasting = LimitCache(any_store, SETTINGS), (before or CONFIGURED).maximum.information
    held = lasting + 5 if is_raised else lasting - 2
    if before is not None:
        await set_to(any_store, "before", before)
    assert isinstance(await set_to(any_store, "raised", temporary(held)), LimitsSet)
    assert await spent_by(cached, "first", held - 1)
    clock.now = END - 1
    fresh = LimitCache(any_store, SETTINGS)
    for cache in (cached, fresh):
        statement = await cache.read(ANALYST)
        assert (held, {2: END}) == (statement.levels[-1].maximum.information, statement.ends)
        assert not await spent_by(cache, f"more than {id(cache)}", 2)
    assert await spent_by(fresh, "last", 1)
    clock.now = END
    later = LimitCache(any_store, SETTINGS)
    for number, cache in enumerate((cached, fresh, later)):
        statement = await cache.read(ANALYST)
        assert (lasting, {}) == (statement.levels[-1].maximum.information, statement.ends)
        assert await spent_by(cache, f"at {number}", 1) == (not is_raised and number < 2)
    await assert_verified(any_store)
    await make_checkpoint(any_store, "acme")
    await assert_verified(any_store)


async def test_a_clock_that_goes_back_before_its_end_brings_it_back(
    any_store: Store, clock: SteppedClock
) -> None:
    """As long as nothing was written by the later time: what is in force is what the ledger's time says."""
    cache = LimitCache(any_store, SETTINGS)
    await set_to(any_store, "lowered", temporary(4))
    clock.now = END
    assert 10 == (await cache.read(ANALYST)).levels[-1].maximum.information
    clock.now = END - 1
    assert 4 == (await cache.read(ANALYST)).levels[-1].maximum.information
    clock.now = END
    assert 10 == (await cache.read(ANALYST)).levels[-1].maximum.information
    clock.now = END - 1
    assert not await spent_by(cache, "more", 5)
    clock.now = END
    assert await spent_by(cache, "later", 5)
    clock.now = END - 1
    assert await spent_by(cache, "the ledger's time stays", 5)


async def test_an_account_that_it_made_is_gone_with_it(any_store: Store, clock: SteppedClock) -> None:
    """What was charged stays; a request that was answered is answered again."""
    cache = LimitCache(any_store, SETTINGS)
    await set_to(any_store, "made", temporary(5), COLLEAGUE)
    assert await spent_by(cache, "a", 2, COLLEAGUE)
    clock.now = END
    with pytest.raises(AccountUnknownError):
        await cache.apply(charge("b", UNIT, account=COLLEAGUE).request)
    with pytest.raises(AccountUnknownError):
        await LimitCache(any_store, SETTINGS).read(COLLEAGUE)
    assert (await cache.apply(charge("a", Cost(2, 0), account=COLLEAGUE).request)).replayed


async def test_a_later_change_replaces_it(any_store: Store, clock: SteppedClock) -> None:
    """A permanent one for good; another temporary one keeps what was set for good; a removal leaves the file's."""
    cache = LimitCache(any_store, SETTINGS)

    async def maximum() -> int:
        return (await cache.read(ANALYST)).levels[-1].maximum.information

    await set_to(any_store, "good", limit(3, 5))
    await set_to(any_store, "one", temporary(20))
    await set_to(any_store, "two", temporary(30, END + HOUR))
    clock.now = END
    assert 30 == await maximum()
    clock.now = END + HOUR
    assert 3 == await maximum()
    # It is over, and still what was set for good is what follows.
    await set_to(any_store, "three", temporary(40, END + 2 * HOUR))
    assert 40 == await maximum()
    await set_to(any_store, "four", limit(50, 5))
    clock.now = END + 2 * HOUR
    assert 50 == await maximum()
    await set_to(any_store, "five", temporary(60, END + 3 * HOUR))
    await set_to(any_store, "six", None)
    assert 10 == await maximum()
    clock.now = END + 3 * HOUR
    assert 10 == await maximum()


@pytest.mark.parametrize("until", [0, NOON - 1, NOON])
async def test_one_that_is_over_already_is_refused(any_store: Store, until: Microseconds) -> None:
    """By the ledger's time, with all changes of the request."""
    assert Refused(Reason.LIMIT_ENDED) == await set_to(any_store, "late", temporary(20, until))
    assert ({}, []) == (
        (await any_store.limits(ANALYST)).limits,
        await any_store.journal("acme", "", "", 9),
    )


async def test_what_was_reserved_before_its_end_is_settled_after(
    any_store: Store, clock: SteppedClock
) -> None:
    """As after any limit that is lowered; nothing new is admitted."""
    cache = LimitCache(any_store, SETTINGS)
    await set_to(any_store, "raised", temporary(20))
    clock.now = END - SECOND
    assert isinstance((await cache.apply(reserve("held", Cost(15, 1)).request)).outcome, Reserved)
    clock.now = END + SECOND
    settling = charge("settled", Cost(15, 1), settles="held").request
    assert isinstance((await cache.apply(settling)).outcome, Charged)
    assert not await spent_by(cache, "more", 1)
    await assert_verified(any_store)


async def test_another_window_ends_with_it(any_store: Store, clock: SteppedClock) -> None:
    """What was charged meanwhile counts in the window of the limit that holds again."""
    cache = LimitCache(any_store, SETTINGS)
    assert await spent_by(cache, "a", 6)
    await set_to(any_store, "raised", temporary(4, period=Period.DAY))
    clock.step(seconds=60)
    assert not await spent_by(cache, "b", 1)
    clock.now = END
    assert await spent_by(cache, "c", 4)
    assert not await spent_by(cache, "d", 1)
    await assert_verified(any_store)


async def test_it_goes_along_when_the_account_is_moved(any_store: Store, clock: SteppedClock) -> None:
    """With its end, and with what follows."""
    target = Account((*COMPANY.path, "zoe"))
    settings = LiveSettings(
        Settings(
            Configuration.model_validate(
                {"accounts": [{"path": list(target.path), "limit": {"information": 7, "calls": 5}}]}
            )
        )
    )
    await set_to(any_store, "good", limit(3, 5))
    await set_to(any_store, "raised", temporary(20))
    await move(any_store, ANALYST, target)
    cache = LimitCache(any_store, settings)
    assert 20 == (await cache.read(target)).levels[-1].maximum.information
    clock.now = END
    assert 3 == (await cache.read(target)).levels[-1].maximum.information


async def test_nothing_is_left_after_it_either_where_a_ledger_was_restored(
    any_store: Store, clock: SteppedClock
) -> None:
    """What was charged in the lost interval may have been charged under any of the two limits."""
    await set_to(any_store, "lowered", temporary(4))
    await LimitCache(any_store, SETTINGS).apply(charge("a", UNIT).request)
    assert 1 == await write_off(any_store, CONFIGURATION.limit_of, [ANALYST], actor="local:ops")
    clock.now = END
    cache = LimitCache(any_store, SETTINGS)
    assert Cost(0, 0) == (await cache.read(ANALYST)).levels[-1].remaining
    await assert_verified(any_store)


async def largest(store: Store, present: Limit) -> Cost | None:
    """Return the largest limit that the analyst had in the window, as the service finds it."""
    levels = (await store.read(ANALYST, (LevelLimit(ANALYST, present),))).levels
    history: LimitHistory = (await policy_statements_of(store, ANALYST, levels))[2].limits
    return history.largest(present, CONFIGURATION.limit_of, (await store.limits(ANALYST)).limits[ANALYST])


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_a_guarantee_counts_it_after_its_end(
    any_store: Store, clock: SteppedClock, is_replaced: bool
) -> None:
    """No entry says that it has ended, which may be in a later window than the one in which it was set."""
    day = limit(9, 5, period=Period.DAY)
    midnight = NOON + 12 * HOUR
    await set_to(any_store, "good", day)
    await set_to(any_store, "raised", temporary(50, midnight + HOUR, period=Period.DAY))
    clock.now = midnight + HOUR // 2
    assert await spent_by(LimitCache(any_store, SETTINGS), "a", 1)
    clock.now = midnight + HOUR
    if is_replaced:
        await set_to(any_store, "again", day)
    assert Cost(50, 5) == await largest(any_store, day)
    clock.now = midnight + 25 * HOUR
    assert await spent_by(LimitCache(any_store, SETTINGS), "b", 1)
    assert Cost(9, 5) == await largest(any_store, day)


async def test_the_service_says_when_it_ends(clock: SteppedClock) -> None:
    """And what it was, in the list of changes; a guarantee counts it when it is over."""
    store = MemoryStore(clock)
    detector = FailureDetector(store)
    serving = administering(store, SETTINGS, "127.0.0.1:0", detector=detector, tuning=UNHURRIED)
    async with serving as address, grpc.aio.insecure_channel(address) as channel, stub_on(store) as stub:
        admin: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        new = pb.Limit(information=20, calls=5, mode=budget_pb2.MODE_ENFORCE, period=pb.PERIOD_MONTH)
        new.until.FromMicroseconds(END)
        change = pb.LimitChange(path=ANALYST.path, limit=new)
        await admin.SetLimits(pb.SetLimitsRequest(changes=[change], request_id="s", reason="a report"))
        change.limit.until.FromMicroseconds(NOON)
        error = await failure(admin.SetLimits(pb.SetLimitsRequest(changes=[change], request_id="late")))
        assert "LIMIT_ENDED" == error.info.reason
        (entry,) = (await admin.ListCharges(pb.ListChargesRequest(account=account(ANALYST.path)))).charges
        assert (END, 20) == (entry.limit_after.until.ToMicroseconds(), entry.limit_after.information)
        await LimitCache(store, SETTINGS).apply(charge("a", UNIT).request)
        asked = budget_pb2.GetBudgetRequest(account=account(ANALYST.path), with_policy_statements=True)
        level = (await stub.GetBudget(asked)).levels[-1]
        assert (END, 20, 20) == (
            level.limit_until.ToMicroseconds(),
            level.limit.information,
            level.largest_limit.information,
        )
        clock.now = END
        level = (await stub.GetBudget(asked)).levels[-1]
        assert (False, 10, 20) == (
            level.HasField("limit_until"),
            level.limit.information,
            level.largest_limit.information,
        )


async def test_what_it_bounds_is_not_bounded_after_it(clock: SteppedClock) -> None:
    """A change that relies on it is refused: accounts created at first use would have no end some day."""
    limits = {"limit": {"information": 9, "calls": 9}}
    content = {
        "create_at_first_use": True,
        "accounts": [
            {"path": ["acme"], **limits},
            {"path": ["acme", "eu"], **limits},
            {"path": ["acme", "eu", "*"], **limits},
        ],
    }
    settings = LiveSettings(Settings(Configuration.model_validate(content)))
    store = MemoryStore(clock)
    serving = administering(store, settings, "127.0.0.1:0", detector=FailureDetector(store), tuning=UNHURRIED)
    open_, bound = (
        pb.Limit(information=9, calls=9, mode=mode, period=pb.PERIOD_MONTH)
        for mode in (budget_pb2.MODE_TRACK, budget_pb2.MODE_ENFORCE)
    )
    bound.until.FromMicroseconds(END)
    async with serving as address, grpc.aio.insecure_channel(address) as channel:
        admin: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)

        async def changed(id_: str, new: pb.Limit, *path: str) -> Any:
            change = pb.LimitChange(path=path, limit=new)
            return await admin.SetLimits(pb.SetLimitsRequest(changes=[change], request_id=id_))

        await changed("open", open_, "acme")
        await changed("bounded for a while", bound, "acme")
        error = await failure(changed("open the other", open_, "acme", "eu"))
        assert "ACCOUNTS_WITHOUT_END" == error.info.reason
        both = [
            pb.LimitChange(path=["acme"], limit=bound),
            pb.LimitChange(path=["acme", "eu"], limit=open_),
        ]
        error = await failure(admin.SetLimits(pb.SetLimitsRequest(changes=both, request_id="both")))
        assert "ACCOUNTS_WITHOUT_END" == error.info.reason


def test_a_lease_does_not_outlive_it_by_more_than_a_reservation() -> None:
    """The region would go on granting by a limit that is over."""
    terms = LendingTerms(share_percent=10, outstanding_percent=50, length=HOUR)
    for until, expected in ((NOON + HOUR // 2, NOON + HOUR // 2), (NOON + SECOND, NOON + MAX_OUTLIVING)):
        rules = (LevelLimit(COMPANY, limit(9, 9)), LevelLimit(ANALYST, temporary(9, until)))
        assert expected == end_of(rules, NOON, terms)
    assert NOON + HOUR == end_of((LevelLimit(COMPANY, limit(9, 9)),), NOON, terms)


@pytest.mark.parametrize("then", [None, limit(3, 2, mode=Mode.TRACK, days=7, zone="Asia/Tokyo")])
def test_its_text_holds_all_of_it(then: Limit | None) -> None:
    """Alone, and in a change of the journal."""
    kept = temporary(9, END, then)
    assert kept == parse_limit(limit_text(kept))
    for change in ((kept, then), (then, kept), (kept, None), (kept, kept)):
        assert change == parse_change(change_text(*change))
    with pytest.raises(ValueError, match="values to unpack"):
        parse_limit(limit_text(kept).rpartition(";")[0])
