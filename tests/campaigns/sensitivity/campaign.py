"""Draws worlds and asks them; the same number of worlds from the same seed are the same worlds."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from .drawing import World, choosing, worlds
from .measuring import Totals, faults


def campaign(number: int, folder: Path, *, seed_: int = 0) -> Totals:
    """Ask `number` worlds; raises AssertionError, with the smallest world that shows it, if a promise is broken."""
    totals = Totals()

    @seed(seed_)
    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(worlds())
    def ask(world: World) -> None:
        found = faults(world, folder, totals)
        if len(world.rows) % 2 and (other := choosing(world)) is not None:
            found += faults(other, folder, totals)
        assert not found, found

    ask()
    return totals
