"""The short form of the campaign; the campaign `chaos` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.chaos.campaign import Plan, run
from tests.campaigns.chaos.checker import Finding
from tests.campaigns.chaos.stage import STAGES

CHARGES = 400
KILLS = 3
PAIR = "postgres-pair"


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("store", [store for store in STAGES if store != PAIR])
async def test_nothing_is_lost_or_overspent_under_kills_and_broken_connections(
    store: str, tmp_path: Path
) -> None:
    """Every promise of the checker holds after kill -9, pauses and lost replies under load."""
    assert () == await findings(store, tmp_path)


@pytest.mark.usefixtures("starts_postgres")
async def test_nothing_is_lost_or_overspent_when_a_standby_takes_the_place_of_its_primary(
    tmp_path: Path,
) -> None:
    """The same with PostgreSQL that replicates synchronously, where whatever is killed has a successor."""
    assert () == await findings(PAIR, tmp_path)


async def findings(store: str, folder: Path) -> tuple[Finding, ...]:
    """Run a short campaign, see that it tried everything, and return what it found."""
    result = await run(Plan(store, CHARGES, KILLS, seed=1), folder)
    assert result.report.acknowledged >= CHARGES
    assert result.report.replays >= CHARGES
    assert result.service_kills + result.store_kills >= KILLS
    assert result.others_stuck == 0
    # The others keep no lock between two round trips.
    assert (result.held_up > 0) == (store == "postgres")
    assert result.late > 0
    assert result.returned > 0
    # Only one is a file that somebody can exchange.
    assert (result.exchanged > 0) == (store == "sqlite")
    assert result.served_on == 0
    return result.report.findings
