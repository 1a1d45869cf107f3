"""A backup that was restored: refused until the operator confirms, and then nothing that may be lost is free."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits
from budget_service.ledger.outcomes import Charged, Exhausted, Outcome, Reason, Refused
from budget_service.ledger.values import NOTHING, Account, Cost, LevelLimit, Limit, Mode
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import Store, StoreUnusableError
from budget_service.stores.opening import confirm_restored
from budget_service.stores.rollback_guard import Position, fresh_path, load_position, save_position
from budget_service.stores.sqlite.store import SqliteStore, mark_path
from budget_service.stores.write_off import write_off
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    Asked,
    SteppedClock,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.ledger_stores import closing

CONFIGURATION = Configuration.model_validate(
    {
        "accounts": [
            {"path": ["acme"], "limit": {"information": 30, "calls": 9}},
            {
                "path": ["acme", "*"],
                "limit": {"information": 10, "calls": 5},
                "window": "sliding",
                "days": 7,
            },
            {"path": ["watched"], "limit": {"information": 1, "calls": 1}, "mode": "track"},
            {"path": ["named", "dan"], "limit": {"information": 7, "calls": 2}, "window": "never"},
        ],
    }
)
ABOVE, OWN = limit(30, 9), limit(10, 5, days=7)


def on(account: Account, own: Limit = OWN) -> tuple[LevelLimit, ...]:
    """Return the limits that the configuration gives an analyst of the company."""
    return levels(account, own=own, above=ABOVE)


async def restored(tmp_path: Path, clock: SteppedClock) -> Path:
    """Charge, back up, charge again, and restore the backup."""
    path, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await store.apply(*charge("a", Cost(3, 1), on=on(ANALYST)))
        watched = Account(("watched",))
        tracked = levels(watched, own=limit(1, 1, mode=Mode.TRACK))
        await store.apply(*charge("w", Cost(1, 0), account=watched, on=tracked))
    shutil.copyfile(path, backup)
    async with closing(SqliteStore.open(path, clock)) as store:
        await store.apply(*charge("b", Cost(6, 1), on=on(ANALYST)))
        await store.apply(*charge("c", Cost(2, 1), account=COLLEAGUE, on=on(COLLEAGUE)))
    shutil.copyfile(backup, path)
    return path


async def asked_now(store: Store, asked: Asked[Charge]) -> Outcome:
    """Apply a charge by the limits that are stored now."""
    stored = await store.limits(asked.request.account)
    return (await store.apply(*asked.by(AppliedLimits(asked.limits.levels, stored.version)))).outcome


async def confirmed(
    path: Path, limit_of: Callable[[Account], Limit | None], named: list[Account], clock: SteppedClock
) -> int:
    """Confirm a restored ledger."""
    store = SqliteStore.open_restored(path, clock)
    async with closing(store):
        count = await write_off(store, limit_of, named, actor="ops")
        await store.confirm(mark_path(path))
    return count


async def test_a_restored_backup_is_refused_and_says_what_to_do(tmp_path: Path, clock: SteppedClock) -> None:
    """It is behind its mark; asking again does not help."""
    path = await restored(tmp_path, clock)
    for _ in range(2):
        with pytest.raises(StoreUnusableError, match=r"is behind its mark.*--confirm-restored"):
            SqliteStore.open(path, clock)


async def test_a_backup_from_before_a_lower_limit_is_refused(tmp_path: Path, clock: SteppedClock) -> None:
    """Nothing was charged since, but more could be than the administrator allows; also if nothing ever was."""
    path, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    for charges in (0, 1):
        async with closing(SqliteStore.open(path, clock)) as store:
            for index in range(charges):
                await store.apply(*charge(f"a{index}", Cost(3, 1), on=on(ANALYST)))
        shutil.copyfile(path, backup)
        async with closing(SqliteStore.open(path, clock)) as store:
            change = (ANALYST, limit(4, 4))
            await store.apply(
                SetLimits(actor="ops", account=COMPANY, request_id="s", changes=(change,)), NO_LIMITS
            )
        newer = path.read_bytes()
        shutil.copyfile(backup, path)
        with pytest.raises(StoreUnusableError, match=r"is behind its mark.*--confirm-restored"):
            SqliteStore.open(path, clock)
        path.write_bytes(newer)
        await SqliteStore.open(path, clock).close()
        path.unlink()
        mark_path(path).unlink()


async def test_what_killed_services_left_of_marks_is_removed(tmp_path: Path, clock: SteppedClock) -> None:
    """At the next start, but not what another service may be writing; and a write that fails leaves nothing."""
    path = tmp_path / "ledger.db"
    old, new = (mark_path(path).with_name(f"ledger.db.mark.pod-{name}.7.new") for name in ("a", "b"))
    for each in (old, new):
        each.write_text("{")
    os.utime(old, (0, 0))
    await SqliteStore.open(path, clock).close()
    assert not old.exists()
    assert new.exists()
    mark_path(path).unlink()
    mark_path(path).mkdir()
    with pytest.raises(StoreUnusableError, match="cannot be written"):
        save_position(mark_path(path), Position("a", 1))
    assert not fresh_path(mark_path(path)).exists()


async def test_a_ledger_without_its_own_mark_is_refused(tmp_path: Path, clock: SteppedClock) -> None:
    """Restored elsewhere, mixed up with another one, begun anew in its place, or with a mark that is damaged."""
    path, other = tmp_path / "ledger.db", tmp_path / "other.db"
    for each in (path, other):
        await SqliteStore.open(each, clock).close()
    mark = mark_path(path).read_text()
    mark_path(path).unlink()
    with pytest.raises(StoreUnusableError, match="there is no mark"):
        SqliteStore.open(path, clock)
    shutil.copyfile(mark_path(other), mark_path(path))
    with pytest.raises(StoreUnusableError, match="of another ledger"):
        SqliteStore.open(path, clock)
    mark_path(path).write_text("{")
    with pytest.raises(StoreUnusableError, match="cannot be read"):
        SqliteStore.open(path, clock)
    mark_path(path).write_text(mark)
    await SqliteStore.open(path, clock).close()
    path.unlink()
    with pytest.raises(StoreUnusableError, match="of another ledger"):
        SqliteStore.open(path, clock)


async def test_after_confirmation_all_that_was_left_counts_as_spent(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """On each level that was used, was given a limit or is written out; and the journal says so."""
    path = await restored(tmp_path, clock)
    assert await confirmed(path, CONFIGURATION.limit_of, CONFIGURATION.named_levels(), clock) == 3
    async with closing(SqliteStore.open(path, clock)) as store:
        ann = await store.read(ANALYST, on(ANALYST))
        assert [NOTHING, NOTHING] == [each.remaining for each in ann.levels]
        assert isinstance(await asked_now(store, charge("d", Cost(1, 0), on=on(ANALYST))), Exhausted)
        # Nobody knows bob, whose first charge was lost; the company's limit stops him all the same.
        theirs = charge("e", Cost(1, 0), account=COLLEAGUE, on=on(COLLEAGUE))
        assert isinstance(await asked_now(store, theirs), Exhausted)
        dan = Account(("named", "dan"))
        never = levels(dan, own=CONFIGURATION.limits_of(dan, {})[-1].limit)
        assert isinstance(await asked_now(store, charge("f", Cost(1, 0), account=dan, on=never)), Exhausted)
        found = Verification()
        for root in await store.roots():
            await verify(store, root, found)
        assert found.differences == []


async def test_after_confirmation_the_file_that_was_replaced_is_no_longer_the_ledger(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """It knows nothing of what was charged since."""
    path, replaced = tmp_path / "ledger.db", tmp_path / "replaced.db"
    await SqliteStore.open(path, clock).close()
    backup = path.read_bytes()
    async with closing(SqliteStore.open(path, clock)) as store:
        for id_ in "abc":
            await store.apply(*charge(id_, Cost(1, 1), on=on(ANALYST)))
    shutil.copyfile(path, replaced)
    path.write_bytes(backup)
    await confirmed(path, CONFIGURATION.limit_of, [], clock)
    shutil.copyfile(replaced, path)
    with pytest.raises(StoreUnusableError, match="is behind its mark"):
        SqliteStore.open(path, clock)


async def test_a_ledger_whose_mark_is_damaged_can_be_confirmed(tmp_path: Path, clock: SteppedClock) -> None:
    """As the error says; until then the ledger is not opened."""
    path = tmp_path / "ledger.db"
    await SqliteStore.open(path, clock).close()
    mark_path(path).write_text("{")
    with pytest.raises(StoreUnusableError, match="cannot be read"):
        SqliteStore.open(path, clock)
    await confirmed(path, CONFIGURATION.limit_of, [], clock)
    await SqliteStore.open(path, clock).close()
    assert load_position(mark_path(path)) is not None


async def test_what_was_lost_is_over_with_its_window(tmp_path: Path, clock: SteppedClock) -> None:
    """The month on the first, and the sliding one after its days."""
    path = await restored(tmp_path, clock)
    await confirmed(path, CONFIGURATION.limit_of, CONFIGURATION.named_levels(), clock)
    async with closing(SqliteStore.open(path, clock)) as store:
        clock.step(days=6)
        own = levels(own=OWN)
        assert isinstance(await asked_now(store, charge("d", Cost(1, 0), on=own)), Exhausted)
        clock.step(days=12)
        assert isinstance(await asked_now(store, charge("e", Cost(10, 5), on=on(ANALYST))), Charged)


async def test_a_stored_limit_is_the_one_that_is_spent(tmp_path: Path, clock: SteppedClock) -> None:
    """And what a reservation holds is spent with the rest, but not twice."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        change = (COLLEAGUE, limit(4, 4))
        await store.apply(
            SetLimits(actor="ops", account=COMPANY, request_id="s", changes=(change,)), NO_LIMITS
        )
        asked = reserve("r", Cost(1, 1), account=COLLEAGUE, on=levels(COLLEAGUE, own=limit(4, 4)))
        await store.apply(*asked.by(AppliedLimits(asked.limits.levels, clock.now)))
    mark_path(path).unlink()
    only_stored = Configuration.model_validate(
        {"accounts": [{"path": ["other"], "limit": {"information": 1, "calls": 1}}]}
    )
    assert await confirmed(path, only_stored.limit_of, [], clock) == 1
    async with closing(SqliteStore.open(path, clock)) as store:
        status = (await store.read(COLLEAGUE, levels(COLLEAGUE, own=limit(4, 4)))).levels[-1]
        assert (Cost(4, 4), NOTHING) == (status.spent, status.reserved)


@pytest.mark.parametrize("forfeits", [False, True])
async def test_what_was_held_in_a_restored_ledger_never_returns(
    any_store: Store, clock: SteppedClock, *, forfeits: bool
) -> None:
    """It may have been settled in the lost interval; one that has lapsed since is no different."""
    held = reserve("open", Cost(6, 2), on=on(ANALYST), ttl_seconds=600).but(forfeits=forfeits)
    await any_store.apply(*held)
    theirs = reserve("lapses", Cost(3, 1), account=COLLEAGUE, on=on(COLLEAGUE), ttl_seconds=1)
    await any_store.apply(*theirs.but(forfeits=forfeits))
    clock.step(seconds=5)
    await write_off(any_store, CONFIGURATION.limit_of, CONFIGURATION.named_levels(), actor="ops")
    over = Refused(Reason.RESERVATION_OVER)
    assert over == await asked_now(any_store, charge("s", settles="open", on=on(ANALYST)))
    clock.step(seconds=600)
    for account in (ANALYST, COLLEAGUE):
        statuses = (await any_store.read(account, on(account))).levels
        assert [(NOTHING, NOTHING)] * 2 == [(each.remaining, each.reserved) for each in statuses]
        assert [each.maximum for each in statuses] == [each.spent for each in statuses]
    found = Verification()
    await verify(any_store, "acme", found)
    assert found.differences == []


async def test_a_ledger_that_is_removed_while_it_is_used_is_noticed(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """Health says so: what is charged then would be gone with the process."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await store.check()
        path.unlink()
        with pytest.raises(StoreUnusableError, match="is gone"):
            await store.check()


async def test_a_mark_that_cannot_be_written_is_noticed(tmp_path: Path, clock: SteppedClock) -> None:
    """A backup that is restored later would not be known for one."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await store.apply(*charge("c"))
        fresh_path(mark_path(path)).mkdir()
        with pytest.raises(StoreUnusableError, match=r"ledger\.db\.mark cannot be written: Is a directory"):
            await store.check()


async def test_a_ledger_whose_mark_cannot_be_written_is_not_begun(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """It is refused with the reason; when the mark can be written it is taken, and nothing has to be confirmed."""
    path = tmp_path / "ledger.db"
    for _ in range(2):
        fresh_path(mark_path(path)).mkdir(exist_ok=True)
        with pytest.raises(StoreUnusableError, match=r"ledger\.db\.mark cannot be written: Is a directory"):
            SqliteStore.open(path, clock)
    fresh_path(mark_path(path)).rmdir()
    async with closing(SqliteStore.open(path, clock)) as store:
        await store.apply(*charge("c"))
        mark_path(path).unlink()
    # It was written again when the service ended.
    await SqliteStore.open(path, clock).close()
    fresh_path(mark_path(path)).mkdir()
    with pytest.raises(StoreUnusableError, match="cannot be written"):
        SqliteStore.open(path, clock)


async def test_a_ledger_that_is_not_behind_its_mark_is_not_spent_by_mistake(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """Confirmed by the wrong command it keeps what is left; only who says so in words spends it."""
    address, named = f"sqlite:{tmp_path}/ledger.db", [ANALYST]
    with pytest.raises(StoreUnusableError, match="no ledger"):
        await confirm_restored(address, CONFIGURATION.limit_of, named, actor="ops")
    assert not (tmp_path / "ledger.db").exists()
    async with closing(SqliteStore.open(tmp_path / "ledger.db")) as store:
        await store.apply(*charge("a", Cost(3, 1), on=on(ANALYST)))
    for _ in range(2):
        with pytest.raises(StoreUnusableError, match=r"not behind its mark.*--spend-every-budget"):
            await confirm_restored(address, CONFIGURATION.limit_of, named, actor="ops")
    async with closing(SqliteStore.open(tmp_path / "ledger.db")) as store:
        (_, own) = (await store.read(ANALYST, on(ANALYST))).levels
        assert own.remaining == Cost(7, 4)
    asked = confirm_restored(address, CONFIGURATION.limit_of, named, though_nothing_is_lost=True, actor="ops")
    assert await asked == 2


async def test_a_confirmation_needs_a_ledger(tmp_path: Path) -> None:
    """A typing error must not make one."""
    with pytest.raises(StoreUnusableError, match="no ledger"):
        SqliteStore.open_restored(tmp_path / "ledger.db")
    assert not (tmp_path / "ledger.db").exists()
