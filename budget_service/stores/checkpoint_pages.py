"""Reads a large checkpoint page by page, because a root of many accounts has as many sums and others wait meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from time import thread_time
from typing import TypeAlias

from budget_service.ledger.values import Account, Cost
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import Microseconds
from budget_service.stores.damaged_rows import reading_row

SUMS_PAGE = 200

# A level, the start of a span, and what was spent in it.
SumRow: TypeAlias = tuple[str, Microseconds, int, int]
BEGINNING: SumRow = ("", 0, 0, 0)


async def checkpoint_in_pages(
    summary: Callable[[], Awaitable[Checkpoint]], page: Callable[[SumRow], Awaitable[Sequence[SumRow]]]
) -> Checkpoint:
    """Return a checkpoint with all its sums.

    Args:
        summary: Returns it without them.
        page: Returns the sums after one, in the order of their levels and spans; none after the last.
    """
    found, before = await summary(), None
    # It may be replaced between two pages.
    while found != before:
        before, last = found, BEGINNING
        spent: dict[Account, dict[Microseconds, Cost]] = {}
        began = thread_time()
        while rows := await page(last):
            add_sums(spent, rows)
            last = rows[-1]
            await asyncio.sleep(thread_time() - began)
            began = thread_time()
        found = await summary()
    return replace(found, spent=spent)


def add_sums(spent: dict[Account, dict[Microseconds, Cost]], rows: Iterable[SumRow]) -> None:
    """Add rows of sums to those of their levels."""
    for level, start, *amounts in rows:
        with reading_row("checkpoint_sums", level):
            spent.setdefault(Account.of_text(level), {})[start] = Cost(*amounts)
