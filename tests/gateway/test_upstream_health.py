"""Accounts and history, each by itself."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from pathlib import Path

import pytest
from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import dp_pb2
from hypothesis import example, given
from hypothesis import strategies as st

from gris_gateway.accounts import AccountError, Caller, OutOfReachError
from gris_gateway.history import DAY_MICROSECONDS, History, HistoryError, HistoryRetention

ANA = ("app", "acme", "ana")
RETENTION = HistoryRetention(days=10, per_account=3, megabytes=16)


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


def release(
    k: int, *, request_id: str = "", payload: int = 0, charged_from: int | None = None
) -> app_pb2.PastRelease:
    """Return a kept result; `charged_from` is when the window began that it was charged in, in microseconds."""
    past = app_pb2.PastRelease(request_id=request_id)
    past.question.structured.k = k
    past.result.shown.release_id = "r"
    if charged_from is not None:
        past.result.remaining.add().window_start.FromMicroseconds(charged_from)
    past.elements.CopyFrom(dp_pb2.ShownElements(noisy_counts=[2**40] * payload))
    return past


class Days:
    """A clock of days, in microseconds."""

    def __init__(self) -> None:
        self.day = 20_000.0

    def __call__(self) -> int:
        """Return microseconds."""
        return int(self.day * DAY_MICROSECONDS)


async def kept(history: History, account: tuple[str, ...] = ANA) -> list[int]:
    """Return the k of all that is kept of an account."""
    found, before = [], None
    while True:
        page = await history.page(account, 100, before)
        found += [each.question.structured.k for each in page.releases]
        before = page.after
        if before is None:
            return found


async def test_an_account_keeps_its_newest_results_for_so_many_days(tmp_path: Path) -> None:
    """Beyond the number they are gone, and beyond the time too: from the file once the ledger has reached it."""
    days, file = Days(), tmp_path / "history.sqlite"
    history = History(str(file), RETENTION, days)
    for k in (1, 2, 3, 4, 2):
        await history.add(ANA, release(k))
    await history.add(("app", "acme", "bob"), release(9, request_id="id"))
    assert [2, 4, 3] == await kept(history)
    days.day += 10.5
    assert [] == await kept(history)
    assert None is await history.find(("app", "acme", "bob"), "id")
    await history.add(ANA, release(5, charged_from=days()))
    await history.close()
    with sqlite3.connect(file) as db:
        assert [(1,)] == db.execute("SELECT count(*) FROM releases").fetchall()
    db.close()


async def test_a_clock_that_jumps_ahead_removes_nothing(tmp_path: Path) -> None:
    """Ten years ahead by the machine and not by the ledger: less is listed, and back again all of it is."""
    days, file = Days(), tmp_path / "history.sqlite"
    window = days()
    history = History(str(file), RETENTION, days)
    await history.add(ANA, release(1, request_id="id", charged_from=window))
    days.day += 3650
    await history.add(ANA, release(2, charged_from=window))
    # Nor does a gateway that was started meanwhile and has heard nothing of the ledger.
    await history.close()
    history = History(str(file), RETENTION, days)
    await history.add(ANA, release(3))
    assert [3, 2] == await kept(history)
    days.day -= 3650
    assert [3, 2, 1] == await kept(history)
    assert None is not await history.find(ANA, "id")
    await history.close()


async def test_accounts_and_request_ids_are_never_mixed_up(tmp_path: Path) -> None:
    """Not by separators, not by case, not by an empty id."""
    history = History(None, RETENTION, Days())
    await history.add(("a", "b"), release(1, request_id="x"))
    await history.add(("a,b",), release(2))
    for account in (("a", "B"), ("a/b",), ('a", "b',), ("a",), ("a", "b", "")):
        assert [] == await kept(history, account)
        assert None is await history.find(account, "x")
    assert None is await history.find(("a,b",), "")
    found = await history.find(("a", "b"), "x")
    assert found is not None
    await history.close()


async def test_a_request_that_is_answered_again_is_kept_once() -> None:
    """As where its elements were too many to be kept: the newer result takes the place of the older."""
    history = History(None, RETENTION, Days())
    await history.add(ANA, release(1, request_id="x"))
    await history.add(ANA, release(2))
    await history.add(ANA, release(1, request_id="x"))
    assert [1, 2] == await kept(history)
    await history.close()


async def test_a_file_is_private_and_found_again(tmp_path: Path) -> None:
    """Only its owner reads it, and a restart loses nothing."""
    file = tmp_path / "history.sqlite"
    history = History(str(file), RETENTION, Days())
    await history.add(ANA, release(1))
    await history.close()
    assert 0 == file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    history = History(str(file), RETENTION, Days())
    assert [1] == await kept(history)
    await history.close()


async def test_pages_are_cut_by_size_too() -> None:
    """Three results of 2 MiB make three pages."""
    history = History(None, RETENTION, Days())
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
    await history.close()


async def filled(history: History, account: tuple[str, ...], count: int, *, payload: int) -> None:
    """Have so many results of a size kept, with k from 1 on."""
    for k in range(1, count + 1):
        await history.add(account, release(k, payload=payload))


@pytest.mark.slow
async def test_the_file_stops_growing() -> None:
    """An account that fills it alone loses its oldest results once it has reached its size."""
    history = History(None, HistoryRetention(days=10, per_account=1000, megabytes=16), Days())
    async with asyncio.timeout(60):
        await filled(history, ANA, 299, payload=20_000)
    left = await kept(history)
    assert list(range(299, 299 - len(left), -1)) == left
    # Of 16 MiB there is a part that is made free ahead, and each takes 120 kB.
    assert 130 <= len(left) <= 139
    await history.close()


@pytest.mark.slow
async def test_whoever_fills_the_file_loses_nobody_elses_results() -> None:
    """Accounts within their share keep all they have; those beyond it are brought down to the same."""
    history = History(None, HistoryRetention(days=10, per_account=1000, megabytes=16), Days())
    bob, cleo, mallory = ("b",), ("c",), ("m",)
    async with asyncio.timeout(60):
        await filled(history, ANA, 10, payload=1000)
        await filled(history, cleo, 60, payload=20_000)
        await filled(history, mallory, 300, payload=20_000)
        await filled(history, bob, 30, payload=20_000)
        await filled(history, mallory, 99, payload=20_000)
    assert list(range(10, 0, -1)) == await kept(history)
    assert list(range(30, 0, -1)) == await kept(history, bob)
    theirs, most = await kept(history, cleo), await kept(history, mallory)
    # What these two leave of their quarters the other two have.
    assert 50 <= len(theirs) <= len(most) <= len(theirs) + 3
    assert 60 == theirs[0]
    await history.close()


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be looked at" * 10, None])
def test_a_file_that_is_no_history_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """By name, before anything is served."""
    file = tmp_path / "history.sqlite"
    if content is None:
        with sqlite3.connect(file) as db:
            db.execute("PRAGMA user_version = 7")
        db.close()
    else:
        file.write_bytes(content)
    with pytest.raises(HistoryError, match=str(file)):
        History(str(file), RETENTION, Days())
