"""Ways in which a container goes away."""

from __future__ import annotations

import asyncio

import pytest

from tests.containers.stack import Placed

OUTAGE_SECONDS = 2.0
ways = pytest.mark.parametrize("killed", [pytest.param(True, id="killed"), pytest.param(False, id="cut off")])


async def take_away(victim: Placed, *, killed: bool) -> None:
    """Have a container go away, and come back."""
    if killed:
        await asyncio.to_thread(victim.restart)
        return
    await asyncio.to_thread(victim.cut_off)
    await asyncio.sleep(OUTAGE_SECONDS)
    await asyncio.to_thread(victim.reconnect)
