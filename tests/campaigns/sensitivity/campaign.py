"""Draws worlds and asks them; the same number of worlds from the same seed are the same worlds."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.support.fake_pinot import FakePinot

from .measuring import Totals, faults
from .strategies import World, as_audience, worlds
from .streams import StreamTotals, StreamWorld, stream_faults, stream_worlds

DRAWN = settings(
    deadline=None,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


def campaign(number: int, folder: Path, *, seed_: int = 0, before: Totals | None = None) -> Totals:
    """Ask `number` worlds; raises AssertionError, with the smallest world that shows it, if a promise is broken.

    What is looked at is added to what was looked at `before`.
    """
    totals = before or Totals()

    @seed(seed_)
    @settings(DRAWN, max_examples=number)
    @given(worlds())
    def ask(world: World) -> None:
        found = faults(world, folder, totals)
        if len(world.rows) % 4 == 0:
            found += faults(as_audience(world), folder, totals)
        assert not found, found

    ask()
    return totals


def stream_campaign(number: int, *, seed_: int = 0) -> StreamTotals:
    """Ask `number` worlds of tables that take in a stream; raises AssertionError as `campaign` does."""
    totals = StreamTotals()

    @seed(seed_)
    @settings(DRAWN, max_examples=number)
    @given(stream_worlds())
    def ask(world: StreamWorld) -> None:
        found = [*stream_faults(world, pinot, totals)]
        assert not found, found

    with FakePinot().serving() as pinot:
        ask()
    return totals
