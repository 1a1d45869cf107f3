"""The short form of the campaign; `make chaos` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.chaos.campaign import Plan, run
from tests.campaigns.chaos.stage import STAGES

CHARGES = 400
KILLS = 3


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("store", STAGES)
async def test_nothing_is_lost_or_overspent_under_kills_and_broken_lines(store: str, tmp_path: Path) -> None:
    """Every promise of the checker holds after kill -9, pauses and lost replies under load."""
    result = await run(Plan(store, CHARGES, KILLS, seed=1), tmp_path)
    assert result.report.findings == ()
    assert result.report.acknowledged >= CHARGES
    assert result.report.replays >= CHARGES
    assert result.service_kills + result.store_kills >= KILLS
    assert result.others_stuck == 0
    # The others keep no lock between two round trips.
    assert (result.held_up > 0) == (store == "postgres")
    assert result.late > 0
    # Only one is a file that somebody can exchange.
    assert (result.exchanged > 0) == (store == "sqlite")
    assert result.served_on == 0
