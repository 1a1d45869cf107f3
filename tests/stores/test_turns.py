"""Whose request is decided next, where many wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from budget_service.ledger.values import NOTHING, Account
from budget_service.stores.interface import Store
from budget_service.stores.ledger_engine import LARGE
from budget_service.stores.turns import LATELY_SECONDS, RecentRoots, Turns
from tests.support.budget_samples import charge, levels, limit


def waiting(
    texts: Iterable[str], recent: RecentRoots | None = None
) -> tuple[Turns[str], dict[str, asyncio.Future[None]]]:
    """Let requests wait, each named by its account and a number: `root/account 1`."""
    turns, futures = Turns[str](recent), dict[str, asyncio.Future[None]]()
    for text in texts:
        futures[text] = asyncio.get_running_loop().create_future()
        turns.add(account_of(text), futures[text], text)
    return turns, futures


def account_of(text: str) -> Account:
    """Return the account of a request."""
    return Account(tuple(text.partition(" ")[0].split("/")))


def taken(turns: Turns[str], most: int, share: int | None = None) -> list[str]:
    """Return the requests that are taken."""
    return [text for _, text in turns.take(most, share)]


async def test_roots_take_turns_and_within_a_root_its_accounts_do() -> None:
    """Those of one account keep their order, and who has had a turn is behind all others."""
    turns, _ = waiting(["a/x 1", "a/x 2", "a/x 3", "a/y 1", "b/z 1", "b/z 2", "c/w 1"])
    assert taken(turns, 4) == ["a/x 1", "b/z 1", "c/w 1", "a/y 1"]
    assert taken(turns, 4) == ["b/z 2", "a/x 2", "a/x 3"]
    assert len(turns) == 0


async def test_a_request_that_came_last_is_taken_before_a_thousand_of_another_root() -> None:
    """Wherever in its turn the other root is."""
    turns, _ = waiting(f"a/x {number}" for number in range(1000))
    taken(turns, 3)
    turns.add(Account(("b", "z")), asyncio.get_running_loop().create_future(), "b/z 1")
    assert "b/z 1" in taken(turns, 2)


async def test_no_root_has_more_than_its_share() -> None:
    """However much of the batch is left; the rest is taken in the next ones."""
    turns, _ = waiting([*(f"a/x {number}" for number in range(5)), "b/z 1", "c/w 1", "c/w 2", "c/w 3"])
    assert taken(turns, 7, 2) == ["a/x 0", "b/z 1", "c/w 1", "a/x 1", "c/w 2"]
    assert taken(turns, 2, 2) == ["a/x 2", "c/w 3"]
    assert taken(turns, 7, 1) == ["a/x 3"]
    assert taken(turns, 7) == ["a/x 4"]


async def test_several_roots_ask_until_one_has_asked_alone_for_long() -> None:
    """Whether the requests still wait or not."""
    now = 1000.0
    turns, _ = waiting(["a/x 1", "a/y 1"], RecentRoots(lambda: now))
    assert not turns.several_roots
    turns.add(Account(("b",)), asyncio.get_running_loop().create_future(), "b")
    taken(turns, 3)
    now += LATELY_SECONDS - 1
    assert turns.several_roots
    turns.add(Account(("b",)), asyncio.get_running_loop().create_future(), "b")
    now += 2
    assert not turns.several_roots


async def test_who_leaves_has_no_turn() -> None:
    """Neither does its root, and it may leave again."""
    turns, futures = waiting(["a/x 1", "a/x 2", "b/z 1"])
    for text in ("a/x 1", "b/z 1", "b/z 1"):
        turns.drop(account_of(text), futures[text])
    assert len(turns) == 1
    assert taken(turns, 3) == ["a/x 2"]


@pytest.mark.parametrize("any_store", ["sqlite", "redis", "postgres"], indirect=True)
async def test_one_request_is_answered_before_most_of_a_crowd_of_a_colleague(any_store: Store) -> None:
    """Its account shares the root with the one that has three hundred in flight, and it came last."""

    async def asked(account: Account, name: str) -> None:
        on = levels(account, own=limit(10, 10))
        await any_store.apply(*charge(name, NOTHING, account=account, on=on))

    crowd = [asyncio.create_task(asked(Account(("crowded", "many")), f"m{each}")) for each in range(300)]
    last = asyncio.create_task(asked(Account(("crowded", "one")), "last"))
    await last
    assert sum(each.done() for each in crowd) < 100
    await asyncio.gather(*crowd)


@pytest.mark.parametrize("any_store", ["sqlite", "redis"], indirect=True)
async def test_one_request_shares_its_commit_with_few_of_another_root(any_store: Store) -> None:
    """It comes last, after a hundred, which are too few to be a crowd among themselves."""

    async def asked(account: Account, name: str) -> None:
        on = levels(account, own=limit(10, 10))
        await any_store.apply(*charge(name, NOTHING, account=account, on=on))

    crowd = [asyncio.create_task(asked(Account(("crowded", "many")), f"m{each}")) for each in range(100)]
    await asyncio.create_task(asked(Account(("lone", "one")), "last"))
    assert sum(each.done() for each in crowd) <= LARGE
    await asyncio.gather(*crowd)
