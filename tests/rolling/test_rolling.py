"""A rolling restart of both services under load loses nothing."""

from __future__ import annotations

from pathlib import Path

from tests.rolling.replicas import running_replicas
from tests.rolling.restarting import restart_under_load


async def test_a_rolling_restart_under_load_loses_no_call(tmp_path: Path) -> None:
    """Four processes are replaced one after the other; `make rolling` does it again and again."""
    with running_replicas(tmp_path, drain_seconds=1) as replicas:
        totals = await restart_under_load(replicas, rounds=1)
    assert not totals.lost
    assert totals.exit_codes == [0, 0, 0, 0]
    assert set(totals.answered) == {"question", "EstimateCost", "UpdateBudget", "GetBudget"}
    assert totals.answered.total() > 500
