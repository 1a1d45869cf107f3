"""Trims: what goes of a journal, what stands for it, and that a verification still finds what was changed."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc
from msgspec import structs

from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.base import Base, counted_since
from budget_service.ledger.chain import next_digest
from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.outcomes import Charged
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import MAX_AMOUNT, Account, Cost, Hold
from budget_service.ledger.verification import Sum
from budget_service.ledger.windows import DAY, Period, WindowRule
from budget_service.server.audit import Verification, verify
from budget_service.server.hosting import administering
from budget_service.server.ledger import Ledger
from budget_service.stores.interface import Store, StoreUnavailableError
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import Tuning
from tests.support.budget_client import failure
from tests.support.budget_samples import (
    ANALYST,
    COMPANY,
    NOON,
    UNIT,
    SteppedClock,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.ledger_stores import closing
from tests.support.log_events import logged_events
from tests.unit.budget_service.limit_settings import SETTINGS
from tests.unit.budget_service.trims import EVERYTHING, base_of_all, trimmed

ON = levels(own=limit(100, 100, days=3), above=limit(1000, 1000))
ROOT: Any = {"path": COMPANY.path}


async def play(store: Store, clock: SteppedClock, name: str, days: int = 4) -> None:
    """Charge and hold something on some days, and let a stranger do so too."""
    for day in range(days):
        await store.apply(*charge(f"{name}{day}", Cost(day + 1, 1), on=ON, release_id=f"{name}{day}"))
        await store.apply(*reserve(f"hold {name}{day}", Cost(2, 1), on=ON))
        stranger = charge(f"{name}{day}", Cost(1, 1), account=Account(("acme0", "eve")))
        await store.apply(*stranger)
        clock.step(days=1)


async def found_in(store: Store, root: str = "acme") -> list[tuple[Sum, int, int]]:
    """Verify a root; return what differs."""
    found = Verification()
    await verify(store, root, found)
    return [(each.sum, each.kept, each.rebuilt) for each in found.differences]


@asynccontextmanager
async def served(store: Store, tuning: Tuning) -> AsyncIterator[Any]:
    """Serve the administrator, whose configuration has windows of a month."""
    async with (
        administering(Ledger(store), SETTINGS, "127.0.0.1:0", tuning=tuning) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield admin_pb2_grpc.BudgetAdminServiceStub(channel)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": EntryKind.SETTLED}, {"account": COMPANY}, {"cost": Cost(1, 3)}, {"unit_id": ""}, {"request_id": "d"},
        {"release_id": "q", "query_id": "rel"}, {"time": 6}, {"holds": (Hold(1, 2),)},
        {"holds": (Hold(1, 2, "a"), Hold(2, 3))}, {"policy_statement": ""}, {"shared_cost": None},
        {"reason": "sub:ann", "actor": "wrong"}, {"change": ""},
    ],
    ids=str,
)  # fmt: skip
def test_the_digest_covers_every_field_of_an_entry(change: dict[str, Any]) -> None:
    """And what stands in which of them, and what came before."""
    entry = JournalEntry(
        kind=EntryKind.DIRECT, account=ANALYST, cost=Cost(3, 1), unit_id=UNIT, request_id="c", release_id="rel",
        query_id="q", time=5, holds=(Hold(1, 2), Hold(2, 3)), policy_statement="s", shared_cost=Cost(9, 2),
        reason="wrong", actor="sub:ann", change="x",
    )  # fmt: skip
    assert next_digest("", entry) != next_digest("", structs.replace(entry, **change))
    assert next_digest("", entry) != next_digest("0" * 64, entry)


async def test_a_verification_begins_from_the_base(any_store: Store, clock: SteppedClock) -> None:
    """It counts the entries that are gone and finds nothing wrong; other roots keep theirs."""
    await play(any_store, clock, "a")
    chain = ""
    for _, entry in await any_store.journal("acme", "", "", 10):
        chain = next_digest(chain, entry)
    base = await trimmed(any_store)
    assert (4, chain) == (base.entries, base.digest)
    assert await any_store.journal("acme", "", "", 10) == []
    assert len(await any_store.journal("acme0", "", "", 10)) == 4
    assert await found_in(any_store) == []
    await play(any_store, clock, "b")
    assert await found_in(any_store) == []
    again = await trimmed(any_store)
    assert (8, True) == (again.entries, again.digest != base.digest)
    assert await found_in(any_store) == []


async def test_what_a_window_counts_or_nobody_has_exported_stays(
    any_store: Store, clock: SteppedClock
) -> None:
    """With windows of a month: the days of this one stay, and of those before what comes after the export."""
    tuning = Tuning(dropped_at_once=3)
    await play(any_store, clock, "old")
    positions = [position for position, _ in await any_store.journal("acme", "", "", 10)]
    clock.step(days=30)
    await play(any_store, clock, "new", days=2)
    async with served(any_store, tuning) as admin:
        asked = pb.TrimJournalRequest(account=ROOT, exported=positions[2])
        assert (3, 3) == ((made := await admin.TrimJournal(asked)).entries, made.dropped)
        assert ["old3", "new0", "new1"] == await names(any_store)
        asked.exported = EVERYTHING
        assert (4, 1) == ((made := await admin.TrimJournal(asked)).entries, made.dropped)
        assert (4, 0) == ((made := await admin.TrimJournal(asked)).entries, made.dropped)
        read = await admin.ReadJournal(pb.ReadJournalRequest(under=ROOT))
    assert (4, ["new0", "new1"]) == (read.trimmed, [each.request_id for each in read.entries])
    assert await found_in(any_store) == []


async def names(store: Store) -> list[str]:
    """Return what is left of a journal."""
    return [entry.request_id for _, entry in await store.journal("acme", "", "", 100)]


def test_a_window_without_an_end_counts_as_the_longest_that_ends() -> None:
    """Of several windows the one that reaches back furthest decides."""
    day, month, never = (WindowRule(each, "UTC") for each in (Period.DAY, Period.MONTH, Period.NEVER))
    sliding = WindowRule(Period.SLIDING, "UTC", 60)
    today = NOON - NOON % DAY
    assert today == counted_since([day], NOON)
    assert today - 59 * DAY == counted_since([day, sliding, month], NOON)
    assert today - 399 * DAY == counted_since([never, sliding], NOON)


async def test_a_crash_between_the_base_and_the_drop_loses_and_doubles_nothing(
    any_store: Store, clock: SteppedClock
) -> None:
    """Entries that the base stands for are skipped, and go with the next trim."""
    await play(any_store, clock, "a")
    await any_store.write_base("acme", await base_of_all(any_store))
    assert len(await any_store.journal("acme", "", "", 10)) == 4
    assert await found_in(any_store) == []
    await play(any_store, clock, "b")
    assert await found_in(any_store) == []
    assert (await trimmed(any_store)).entries == 8
    assert await names(any_store) == []


async def test_a_reading_after_such_a_crash_leaves_out_what_the_base_stands_for(
    any_store: Store, clock: SteppedClock
) -> None:
    """And says so, wherever it begins before the end of that: what was read before has no entry twice or too few."""
    await play(any_store, clock, "a")
    await any_store.write_base("acme", await base_of_all(any_store))
    await play(any_store, clock, "b", days=2)
    positions = [position for position, _ in await any_store.journal("acme", "", "", 10)]
    async with served(any_store, Tuning()) as admin:
        for after, trimmed_, most, read in (
            ("", 4, 2, []), ("", 4, 9, ["b0", "b1"]), (positions[1], 4, 9, ["b0", "b1"]),
            (positions[3], 0, 9, ["b0", "b1"]), (positions[4], 0, 9, ["b1"]),
        ):  # fmt: skip
            page = await admin.ReadJournal(pb.ReadJournalRequest(under=ROOT, after=after, at_most=most))
            assert (trimmed_, read) == (page.trimmed, [each.request_id for each in page.entries])
            assert page.last == (positions[-1] if read else positions[3])
            assert page.is_end == bool(read)


async def test_a_trim_that_fails_says_that_it_may_have_begun_and_the_log_whose_it_was(
    any_store: Store, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once the base is written, something was changed; the next trim does the rest."""
    await play(any_store, clock, "a")
    clock.step(days=60)

    async def failing(_root: str, _most: int) -> int:
        raise StoreUnavailableError("gone")

    asked = pb.TrimJournalRequest(account=ROOT, exported=EVERYTHING, reason="end of month")
    caplog.set_level(logging.INFO)
    async with served(any_store, Tuning()) as admin:
        with monkeypatch.context() as patched:
            patched.setattr(any_store, "drop_trimmed", failing)
            assert (await failure(admin.TrimJournal(asked))).info.reason == "OUTCOME_UNKNOWN"
        assert (4, 4) == ((made := await admin.TrimJournal(asked)).entries, made.dropped)
    attempts = [each for name, each in logged_events(caplog) if name == "ledger.trimmed"]
    assert [("acme", "end of month")] * 2 == [(each["root"], each["reason"]) for each in attempts]


async def test_a_slow_trim_reports_the_base_that_a_quicker_one_has_stored(
    any_store: Store, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not its own, which was not written."""
    await play(any_store, clock, "a")
    clock.step(days=60)
    first, _ = (await any_store.journal("acme", "", "", 1))[0]
    write = any_store.write_base

    async def late(root: str, base: Base) -> None:
        await write(root, await base_of_all(any_store))
        await write(root, base)

    monkeypatch.setattr(any_store, "write_base", late)
    async with served(any_store, Tuning()) as admin:
        made = await admin.TrimJournal(pb.TrimJournalRequest(account=ROOT, exported=first))
    assert (4, (await any_store.base("acme")).digest) == (made.entries, made.digest)


async def test_nothing_is_trimmed_by_windows_that_were_changed_meanwhile(
    any_store: Store, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A longer one may count what a verification has found too old."""
    await play(any_store, clock, "a")
    clock.step(days=60)
    changes = ((ANALYST, limit(9, 9, days=200)),)
    longer = SetLimits(account=COMPANY, request_id="longer", actor="ops", changes=changes)
    read = any_store.balances

    async def busy(root: str, after: str, most: int) -> Any:
        # The first page only tells the time.
        if most > 1:
            await any_store.apply(longer, NO_LIMITS)
        return await read(root, after, most)

    monkeypatch.setattr(any_store, "balances", busy)
    async with served(any_store, Tuning()) as admin:
        asked = pb.TrimJournalRequest(account=ROOT, exported=EVERYTHING)
        assert (await failure(admin.TrimJournal(asked))).info.reason == "STORE_UNAVAILABLE"
    assert (await any_store.base("acme")).entries == 0


async def test_a_root_without_a_limit_is_trimmed_after_the_longest_window(
    any_store: Store, clock: SteppedClock
) -> None:
    """Its limits may come back."""
    await any_store.apply(*charge("c", Cost(1, 1), account=Account(("left", "eve"))))
    asked = pb.TrimJournalRequest(account={"path": ["left"]}, exported=EVERYTHING)
    async with served(any_store, Tuning()) as admin:
        clock.step(days=399)
        assert (await admin.TrimJournal(asked)).dropped == 0
        clock.step(days=1)
        assert (await admin.TrimJournal(asked)).dropped == 1


async def test_an_older_base_does_not_take_the_place_of_a_newer_one(
    any_store: Store, clock: SteppedClock
) -> None:
    """Two administrators trim at once, and one is slow."""
    await play(any_store, clock, "a", days=1)
    slow = await base_of_all(any_store)
    await play(any_store, clock, "b", days=1)
    newer = await trimmed(any_store)
    await any_store.write_base("acme", slow)
    assert newer == await any_store.base("acme")


async def test_what_was_paid_before_a_trim_stays_paid_and_spent(
    any_store: Store, clock: SteppedClock
) -> None:
    """And a level that gets another window finds what it counts of the dropped days."""
    await play(any_store, clock, "a", days=2)
    await trimmed(any_store)
    again = await any_store.apply(*charge("free", Cost(9, 1), on=ON, release_id="a1"))
    assert isinstance(again.outcome, Charged)
    assert again.outcome.already_paid
    never = levels(own=limit(100, 100, period=Period.NEVER), above=limit(1000, 1000))
    assert Cost(3, 2) == (await any_store.read(ANALYST, never)).levels[1].spent
    await any_store.apply(*charge("c", Cost(1, 0), on=never))
    assert Cost(4, 2) == (await any_store.read(ANALYST, never)).levels[1].spent
    assert await found_in(any_store) == []


async def test_dropped_days_may_add_up_to_more_than_a_cost_holds(
    any_store: Store, clock: SteppedClock
) -> None:
    """Each day was within its limit, and both together are more than 64 bits hold: before a trim, and after it."""
    daily = levels(own=limit(MAX_AMOUNT, 9, period=Period.DAY))
    for day in range(4):
        for part in (1, MAX_AMOUNT - 1):
            await any_store.apply(
                *charge(f"{day} {part}", Cost(part, 1), on=daily, release_id=f"{day} {part}")
            )
        clock.step(days=1)
        if day:
            await trimmed(any_store)
            assert await found_in(any_store) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            "UPDATE journal SET text = json_set(text, '$.request_id', 'x') WHERE entry = 5",
            (Sum.JOURNAL, 4, 0),
        ),
        ("DELETE FROM journal WHERE entry = 5", (Sum.JOURNAL, 4, 3)),
        (
            "INSERT INTO journal SELECT 99, root, 99, json_set(text, '$.cost', json('[0,0]')) FROM journal "
            "WHERE entry = 5",
            (Sum.JOURNAL, 4, 5),
        ),
        (
            "UPDATE rows SET text = replace(text, '\"entries\":2', '\"entries\":1') WHERE key = 'bases'",
            (Sum.JOURNAL, 4, 3),
        ),
        (
            "UPDATE rows SET text = json_set(text, '$.record.digest', 'x') WHERE key = 'roots'",
            (Sum.JOURNAL, 4, 0),
        ),
        (
            "UPDATE rows SET text = replace(text, '\"until\":1', '\"until\":9') WHERE key = 'bases'",
            (Sum.JOURNAL, 4, 0),
        ),
        ("UPDATE rows SET text = replace(text, 'false', 'true') WHERE key = 'bases'", (Sum.JOURNAL, 4, 0)),
        (
            "UPDATE rows SET text = replace(text, '\"acme/ann\":[3,', '\"acme/ann\":[2,') WHERE key = 'bases'",
            (Sum.SPENT, 3, 2),
        ),
    ],
    ids=["changed", "removed", "added", "fewer", "digest", "until", "facts", "sums"],
)
async def test_a_journal_that_was_tampered_with_is_found(
    tmp_path: Path, clock: SteppedClock, change: str, found: tuple[Sum, int, int]
) -> None:
    """An entry, the number of entries, the digest of the last, or the sums that stand for dropped ones."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await play(store, clock, "a", days=2)
        await trimmed(store)
        await play(store, clock, "b", days=2)
        assert await found_in(store) == []
    for trigger in ("journal_is_not_changed", "journal_is_not_shortened"):
        run(path, f"DROP TRIGGER {trigger}")
    run(path, change)
    async with closing(SqliteStore.open(path, clock)) as store:
        assert found in await found_in(store)


def run(path: Path, statement: str) -> None:
    """Do something to a ledger by hand."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


async def test_only_trimmed_entries_can_be_removed_from_a_sqlite_journal(
    tmp_path: Path, clock: SteppedClock
) -> None:
    """Also by hand."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await play(store, clock, "a", days=1)
        await store.write_base("acme", await base_of_all(store))
    with pytest.raises(sqlite3.IntegrityError, match="only a trim"):
        run(path, "DELETE FROM journal WHERE root = 'acme0'")
    run(path, "DELETE FROM journal WHERE root = 'acme'")


async def test_a_ledger_that_differs_is_not_trimmed(tmp_path: Path, clock: SteppedClock) -> None:
    """Later verifications must not begin from a wrong base."""
    path = tmp_path / "ledger.db"
    async with closing(SqliteStore.open(path, clock)) as store:
        await play(store, clock, "a", days=1)
        clock.step(days=60)
    run(path, "UPDATE rows SET text = json_set(text, '$[3][0]', 0) WHERE key = 'balances\tacme'")
    async with closing(SqliteStore.open(path, clock)) as store, served(store, Tuning()) as admin:
        error = await failure(admin.TrimJournal(pb.TrimJournalRequest(account=ROOT, exported=EVERYTHING)))
        assert (grpc.StatusCode.FAILED_PRECONDITION, "LEDGER_DIFFERS") == (error.code, error.info.reason)
        assert (Base(), ["a0"]) == (await store.base("acme"), await names(store))


async def test_no_root_is_made_by_a_trim_or_a_verification(any_store: Store) -> None:
    """Who mistypes its name is refused, and nothing is left of that name."""
    nix: Any = {"path": ["nix"]}
    async with served(any_store, Tuning()) as admin:
        for call in (
            admin.TrimJournal(pb.TrimJournalRequest(account=nix, exported="1")),
            admin.VerifyLedger(pb.VerifyLedgerRequest(account=nix)),
        ):
            assert (await failure(call)).code is grpc.StatusCode.NOT_FOUND
    assert await any_store.roots() == []


async def test_a_journal_that_is_trimmed_while_it_is_read_is_read_again(
    any_store: Store, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries may be gone before they were read."""
    await play(any_store, clock, "a")
    base, read = await base_of_all(any_store), any_store.balances

    async def busy(root: str, after: str, most: int) -> Any:
        page = await read(root, after, most)
        monkeypatch.setattr(any_store, "balances", read)
        await any_store.write_base("acme", base)
        assert await any_store.drop_trimmed("acme", 100) == 4
        return page

    monkeypatch.setattr(any_store, "balances", busy)
    assert await found_in(any_store) == []
