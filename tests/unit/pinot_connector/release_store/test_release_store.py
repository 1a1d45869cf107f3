"""What every release store promises, in memory, in a SQLite file and in PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from gris_api.dp.v1 import dp_pb2

from pinot_connector.errors import ReleaseStoreFailed
from pinot_connector.release_store import Found, KeptRelease, MemoryReleaseStore, Payment, ReleaseStore
from pinot_connector.release_store.database_store import MAX_RELEASE_BYTES
from pinot_connector.release_store.interface import DAY
from pinot_connector.release_store.postgres import PostgresReleaseStore
from pinot_connector.release_store.receipts import ReceiptLimits
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.release_stores import ANA, BOB, KEYS, MONTHS, in_month, kept, new_database, receipt

LIMITS = ReceiptLimits(days=10, per_account=3, megabytes=1)


class Clock:
    """A clock that a test sets."""

    now = MONTHS[0]

    def __call__(self) -> int:
        """Return the time that was set."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Give a clock at the start of the first month."""
    return Clock()


@pytest_asyncio.fixture(params=["memory", "sqlite", "postgres"])
async def opening(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> AsyncIterator[Callable[[], ReleaseStore]]:
    """Give a function that opens the same store again, where that means anything."""
    made: list[ReleaseStore] = []
    if request.param == "memory":
        memory = MemoryReleaseStore(LIMITS, clock)
        make: Callable[[], Any] = lambda: memory  # noqa: E731
    elif request.param == "sqlite":
        make = lambda: SqliteReleaseStore(tmp_path / "releases.db", KEYS, LIMITS, clock)  # noqa: E731
    else:
        database = new_database(request.getfixturevalue("release_postgres"))
        make = lambda: PostgresReleaseStore(database, KEYS, LIMITS, clock)  # noqa: E731

    def opened() -> ReleaseStore:
        made.append(make())
        return made[-1]

    yield opened
    for each in made:
        await each.close()


@pytest.fixture
def store(opening: Callable[[], ReleaseStore]) -> ReleaseStore:
    """Give an empty store."""
    return opening()


async def test_the_first_release_that_is_kept_stays(store: ReleaseStore) -> None:
    """Paid for or not, and whichever account asks; another question has none."""
    first = await store.keep("q", kept("first"))
    second = await store.keep("q", kept("second"))
    assert "first" == first.release_id == second.release_id
    assert Found(kept("first"), None) == await store.find("q", ANA)
    await store.mark_paid("q", ANA, in_month(0))
    assert Found(kept("first"), in_month(0)) == await store.find("q", ANA)
    assert Found(kept("first"), None) == await store.find("q", BOB)
    assert None is await store.find("other", ANA)


@pytest.mark.slow
async def test_a_release_that_no_database_takes_is_refused(store: ReleaseStore) -> None:
    """A store in memory keeps it; the others say so before anything is charged, and keep nothing else instead."""
    large = KeptRelease(dp_pb2.Kept(key_id="0" * MAX_RELEASE_BYTES), True)
    if isinstance(store, MemoryReleaseStore):
        assert await store.keep("q", large) is large
        return
    with pytest.raises(ReleaseStoreFailed, match="more than 268435456 bytes is not kept"):
        await store.keep("q", large)
    assert await store.find("q", ANA) is None


async def test_what_is_kept_is_there_when_the_store_is_opened_again(
    opening: Callable[[], ReleaseStore],
) -> None:
    """Release, payment and receipt."""
    store = opening()
    await store.keep("q", kept())
    await store.mark_paid("q", ANA, in_month(0))
    await store.add_receipt(ANA, receipt("q", request_id="x", k=2))
    await store.close()
    again = opening()
    assert Found(kept(), in_month(0)) == await again.find("q", ANA)
    assert "r" == (await again.keep("q", kept("another"))).release_id
    assert receipt_k(await again.receipt(ANA, "x")) == 2


def receipt_k(shown: Any) -> int:
    """Return how many elements a receipt shows."""
    assert shown is not None
    return len(shown.elements.columns[0].strings.values)


async def test_stores_that_keep_at_the_same_moment_agree(opening: Callable[[], ReleaseStore]) -> None:
    """Two gateways with one question: both show the release of one of them."""
    one, other = opening(), opening()
    for number in range(10):
        first, second = await asyncio.gather(
            one.keep(f"q{number}", kept("one")), other.keep(f"q{number}", kept("other"))
        )
        assert first.release_id == second.release_id
        await asyncio.gather(
            one.mark_paid(f"q{number}", ANA, in_month(0)), other.mark_paid(f"q{number}", BOB, in_month(0))
        )
        assert Found(first, in_month(0)) == await one.find(f"q{number}", BOB)


async def test_a_later_window_replaces_an_earlier_one_only(store: ReleaseStore) -> None:
    """A mark that comes late does not shorten what was paid for; a window that never ends stays."""
    await store.keep("q", kept())
    for payment in (in_month(1), in_month(0)):
        await store.mark_paid("q", ANA, payment)
    assert Found(kept(), in_month(1)) == await store.find("q", ANA)
    await store.mark_paid("q", ANA, Payment(MONTHS[1], None))
    await store.mark_paid("q", ANA, in_month(2))
    assert Found(kept(), Payment(MONTHS[1], None)) == await store.find("q", ANA)


async def test_nothing_is_removed_that_can_be_asked_about(store: ReleaseStore) -> None:
    """A fixed version under the noise key in use: for years, and whether anyone has paid or not."""
    await store.keep("paid", kept())
    await store.keep("unpaid", kept())
    await store.mark_paid("paid", ANA, in_month(0))
    await store.keep("later", kept())
    for month in (1, 20, 40):
        await store.mark_paid("later", BOB, in_month(month))
    assert None is not await store.find("paid", ANA)
    assert None is not await store.find("unpaid", ANA)


@pytest.mark.parametrize("is_fixed", [True, False])
async def test_a_release_is_removed_once_its_window_is_long_over(store: ReleaseStore, is_fixed: bool) -> None:
    """If its version is the engine's own, or its noise key has been replaced: 35 days after the window, not before."""
    await store.keep("q", kept(fixed=is_fixed))
    await store.mark_paid("q", ANA, in_month(0))
    await store.keep("new", kept(noise_key="n" if not is_fixed else "another"))
    for month, is_kept in ((1, True), (2, True), (3, False)):
        await store.mark_paid("new", BOB, in_month(month))
        assert is_kept == (await store.find("q", BOB) is not None)


async def test_the_clock_of_the_machine_removes_nothing(store: ReleaseStore, clock: Clock) -> None:
    """It jumps ahead by ten years: what was paid for is still there, and back again nothing is different."""
    await store.keep("q", kept(fixed=False))
    await store.mark_paid("q", ANA, in_month(0))
    clock.now += 3650 * DAY
    await store.keep("other", kept(fixed=False))
    await store.mark_paid("other", BOB, in_month(0))
    assert Found(kept(fixed=False), in_month(0)) == await store.find("q", ANA)
    clock.now -= 2 * 3650 * DAY
    assert Found(kept(fixed=False), in_month(0)) == await store.find("q", ANA)


NEVER = Payment(0, None)


async def listed(store: ReleaseStore, account: tuple[str, ...] = ANA) -> list[int]:
    """Return how many elements each thing shows that an account was shown, newest first."""
    return [each.question.structured.k for each in (await store.receipts(account, 9, None)).releases]


@pytest.mark.parametrize("payment", [in_month(0), NEVER])
@pytest.mark.parametrize("by", ["opening", "a new receipt", "the hour"])
async def test_receipts_are_removed_once_their_days_are_over(
    opening: Callable[[], ReleaseStore], clock: Clock, payment: Payment, by: str
) -> None:
    """Of every account, also under a budget that is never refreshed: a clock that is set back shows that they are gone.

    Release and payment stay.
    """
    store = opening()
    await store.keep("q", kept())
    await store.mark_paid("q", ANA, payment)
    await store.add_receipt(ANA, receipt(request_id="mine", k=1))
    clock.now += 9 * DAY
    await store.add_receipt(ANA, receipt(k=2, at=clock.now))
    await store.remove_old_receipts()
    assert [2, 1] == await listed(store)
    clock.now += 2 * DAY
    if by == "opening" and not isinstance(store, MemoryReleaseStore):
        await store.close()
        store = opening()
    elif by == "a new receipt":
        await store.add_receipt(ANA, receipt("q", k=3, at=clock.now))
    else:
        await store.remove_old_receipts()
    clock.now = MONTHS[0]
    assert ([3, 2] if by == "a new receipt" else [2]) == await listed(store)
    assert await store.receipt(ANA, "mine") is None
    assert Found(kept(), payment) == await store.find("q", ANA)


async def test_a_clock_that_is_ahead_removes_receipts_alone(store: ReleaseStore, clock: Clock) -> None:
    """Ten years: what was listed is gone early, and what was paid for is still given for nothing."""
    await store.keep("q", kept(fixed=False))
    await store.mark_paid("q", ANA, in_month(0))
    before = (await store.statistics()).releases
    for account in (ANA, BOB):
        await store.add_receipt(account, receipt("q"))
    clock.now += 3650 * DAY
    await store.remove_old_receipts()
    clock.now -= 3650 * DAY
    assert [] == await listed(store) == await listed(store, BOB)
    assert Found(kept(fixed=False), in_month(0)) == await store.find("q", ANA)
    assert before == (await store.statistics()).releases


async def test_an_unpaid_release_is_kept_for_as_long_as_a_ledger_may_name_it(store: ReleaseStore) -> None:
    """Longer than any window slides."""
    await store.keep("q", kept(fixed=False))
    await store.keep("new", kept())
    for month, is_kept in ((1, True), (14, True), (16, False)):
        await store.mark_paid("new", BOB, in_month(month))
        assert is_kept == (await store.find("q", BOB) is not None)


async def test_a_receipt_shows_what_was_shown(store: ReleaseStore) -> None:
    """Its elements are the first of what is kept; one that has them itself is shown as it is."""
    await store.keep("q", kept())
    await store.add_receipt(ANA, receipt("q", request_id="x", k=2))
    shown = await store.receipt(ANA, "x")
    assert shown is not None
    assert ["secret-element-0", "secret-element-1"] == list(shown.elements.columns[0].strings.values)
    assert ([3, 2], [0, 1]) == (list(shown.elements.noisy_counts), list(shown.elements.noise_lower))
    alone = receipt(request_id="alone", k=1)
    await store.add_receipt(ANA, alone)
    assert alone.shown == await store.receipt(ANA, "alone")


async def test_receipts_belong_to_their_account(store: ReleaseStore) -> None:
    """Not by separators, not by an empty id."""
    await store.add_receipt(("a", "b"), receipt(request_id="x"))
    await store.add_receipt(("a,b",), receipt())
    for account in (("a", "B"), ("a/b",), ("a",), ("a", "b", "")):
        assert () == (await store.receipts(account, 10, None)).releases
        assert None is await store.receipt(account, "x")
    assert None is await store.receipt(("a,b",), "")


async def test_an_account_lists_its_newest_receipts_for_so_many_days(
    store: ReleaseStore, clock: Clock
) -> None:
    """A repeat takes the place of the first; beyond the number and the time they are not listed."""
    for k in (1, 2, 3, 4, 2):
        await store.add_receipt(ANA, receipt(k=k))
    first = await store.receipts(ANA, 2, None)
    assert [2, 4] == [each.question.structured.k for each in first.releases]
    rest = await store.receipts(ANA, 2, first.after)
    assert ([3], None) == ([each.question.structured.k for each in rest.releases], rest.after)
    clock.now += 11 * DAY
    assert () == (await store.receipts(ANA, 10, None)).releases


async def test_receipts_never_push_a_release_out(store: ReleaseStore) -> None:
    """However many there are, releases and payments stay."""
    await store.keep("q", kept())
    await store.mark_paid("q", ANA, in_month(0))
    for number in range(30):
        large = receipt(request_id=f"{number}")
        large.shown.question.sql = "x" * 200_000
        await store.add_receipt((f"account-{number % 7}",), large)
    statistics = await store.statistics()
    assert 1 == statistics.releases
    assert Found(kept(), in_month(0)) == await store.find("q", ANA)
    listed = [len((await store.receipts((f"account-{number}",), 10, None)).releases) for number in range(7)]
    assert 0 < sum(listed) <= 6


async def test_a_payment_for_what_is_not_kept_is_nothing(store: ReleaseStore) -> None:
    """As for a release with fresh noise; what is kept later is not paid for."""
    await store.mark_paid("q", ANA, in_month(0))
    await store.keep("q", kept())
    assert Found(kept(), None) == await store.find("q", ANA)


async def test_a_store_says_how_much_it_keeps(store: ReleaseStore) -> None:
    """Releases, those that nobody has paid for, and bytes."""
    before = await store.statistics()
    for name in ("a", "b", "c"):
        await store.keep(name, kept(elements=2000))
    await store.mark_paid("a", ANA, in_month(0))
    after = await store.statistics()
    assert (0, 0) == (before.releases, before.unpaid)
    assert (3, 2) == (after.releases, after.unpaid)
    assert after.size_bytes > before.size_bytes + 60_000
