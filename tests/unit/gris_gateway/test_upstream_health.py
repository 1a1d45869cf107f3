"""Accounts and history, each by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import dp_pb2
from hypothesis import example, given
from hypothesis import strategies as st

from gris_gateway.accounts import AccountError, Caller, OutOfReachError
from gris_gateway.history import History
from pinot_connector.release_store import MemoryReleaseStore, ReleaseStore
from pinot_connector.release_store.interface import DAY
from pinot_connector.release_store.receipts import ReceiptLimits
from pinot_connector.release_store.sqlite import SqliteReleaseStore
from tests.support.release_stores import KEYS

ANA = ("app", "acme", "ana")
FEW, MANY = ReceiptLimits(10, 3, 16), ReceiptLimits(10, 1000, 16)


@pytest.mark.slow
@given(
    st.lists(st.sampled_from([*ANA, "", "..", "*", "Ana", "\u0430na"]) | st.text(max_size=3), max_size=5),
    st.booleans(),
)
@example([*ANA, "x"], False)
def test_whatever_is_named_is_the_callers_own_or_refused(path: list[str], below: bool) -> None:
    """Every accepted path is the caller's own account, or begins with it, segment by segment, where that is let."""
    try:
        account = Caller("x", ANA, accounts_below=below).account(path)
    except (AccountError, OutOfReachError):
        return
    assert account == ANA or (below and account[:3] == ANA)
    assert "*" not in account


class Days:
    """A clock of days, in microseconds."""

    def __init__(self) -> None:
        self.day = 20_000.0

    def __call__(self) -> int:
        """Return microseconds."""
        return int(self.day * DAY)


@pytest.fixture
def days() -> Days:
    """Give a clock."""
    return Days()


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def opening(
    request: pytest.FixtureRequest, tmp_path: Path, days: Days
) -> AsyncIterator[Callable[[ReceiptLimits], History]]:
    """Give a function that opens a history with limits."""
    made: list[ReleaseStore] = []

    def opened(limits: ReceiptLimits) -> History:
        in_memory = request.param == "memory"
        file = tmp_path / "releases.sqlite"
        made.append(
            MemoryReleaseStore(limits, days) if in_memory else SqliteReleaseStore(file, KEYS, limits, days)
        )
        return History(made[-1])

    yield opened
    for each in made:
        await each.close()


@pytest.fixture
def history(opening: Callable[[ReceiptLimits], History]) -> History:
    """Give an empty history that keeps little."""
    return opening(FEW)


def release(k: int, *, request_id: str = "", payload: int = 0, at: float = 20_000) -> app_pb2.PastRelease:
    """Return a result of a release that is not kept, shown on a day."""
    past = app_pb2.PastRelease(request_id=request_id)
    past.released_at.FromMicroseconds(int(at * DAY))
    past.question.structured.k = k
    past.result.shown.release_id = "r"
    past.elements.CopyFrom(dp_pb2.ShownElements(noisy_counts=[2**40] * payload))
    return past


async def kept(history: History, account: tuple[str, ...] = ANA) -> list[int]:
    """Return the k of all that is kept of an account."""
    found, before = [], None
    while True:
        page = await history.page(account, 100, before)
        found += [each.question.structured.k for each in page.releases]
        before = page.after
        if before is None:
            return found


async def test_an_account_keeps_its_newest_results_for_so_many_days(history: History, days: Days) -> None:
    """Beyond the number they are gone, and beyond the time too."""
    for k in (1, 2, 3, 4):
        await history.add(ANA, release(k))
    await history.add(ANA, release(2, at=20_001))
    await history.add(("app", "acme", "bob"), release(9, request_id="id"))
    assert [2, 4, 3] == await kept(history)
    days.day += 11.5
    assert [] == await kept(history)
    assert None is await history.find(("app", "acme", "bob"), "id")


async def test_accounts_and_request_ids_are_never_mixed_up(history: History) -> None:
    """Not by separators, not by case, not by an empty id."""
    await history.add(("a", "b"), release(1, request_id="x"))
    await history.add(("a,b",), release(2))
    for account in (("a", "B"), ("a/b",), ('a", "b',), ("a",), ("a", "b", "")):
        assert [] == await kept(history, account)
        assert None is await history.find(account, "x")
    assert None is await history.find(("a,b",), "")
    found = await history.find(("a", "b"), "x")
    assert found is not None


async def test_a_request_that_is_answered_again_is_kept_once(history: History) -> None:
    """As where its elements were too many to be kept: the newer result takes the place of the older."""
    await history.add(ANA, release(1, request_id="x"))
    await history.add(ANA, release(2))
    await history.add(ANA, release(1, request_id="x"))
    assert [1, 2] == await kept(history)


async def test_pages_are_cut_by_size_too(history: History) -> None:
    """Three results of 2 MiB make three pages."""
    for k in (1, 2, 3):
        await history.add(ANA, release(k, payload=300_000))
    pages, before = [], None
    while True:
        page = await history.page(ANA, 100, before)
        pages.append([each.question.structured.k for each in page.releases])
        before = page.after
        if before is None:
            break
    assert [[3], [2], [1]] == pages


async def filled(
    history: History, account: tuple[str, ...], count: int, *, payload: int, after: int = 0
) -> None:
    """Have so many results of a size kept, with k from 1 on, or from after another."""
    for k in range(after + 1, after + count + 1):
        await history.add(account, release(k, payload=payload))


@pytest.mark.slow
async def test_the_history_stops_growing(opening: Callable[[ReceiptLimits], History]) -> None:
    """An account that fills it alone loses its oldest results once it has reached its size."""
    history = opening(MANY)
    async with asyncio.timeout(60):
        await filled(history, ANA, 299, payload=20_000)
    left = await kept(history)
    assert list(range(299, 299 - len(left), -1)) == left
    # Of 16 MiB there may be a part that is made free ahead, and each takes 120 kB.
    assert 130 <= len(left) <= 139


@pytest.mark.slow
async def test_an_account_that_fills_the_history_loses_nobody_elses_results(
    opening: Callable[[ReceiptLimits], History],
) -> None:
    """Accounts within their share keep all they have; those beyond it are brought down to the same."""
    history = opening(MANY)
    bob, cleo, mallory = ("b",), ("c",), ("m",)
    async with asyncio.timeout(60):
        await filled(history, ANA, 10, payload=1000)
        await filled(history, cleo, 60, payload=20_000)
        await filled(history, mallory, 300, payload=20_000)
        await filled(history, bob, 30, payload=20_000)
        await filled(history, mallory, 99, payload=20_000, after=300)
    assert list(range(10, 0, -1)) == await kept(history)
    assert list(range(30, 0, -1)) == await kept(history, bob)
    theirs, most = await kept(history, cleo), await kept(history, mallory)
    # What these two leave of their quarters the other two have.
    assert min(len(theirs), len(most)) >= 50
    assert abs(len(theirs) - len(most)) <= 3
    assert [60, 399] == [theirs[0], most[0]]
