"""An audience learns nothing of what it is not offered: policy, SQL and engine together."""

from __future__ import annotations

from pathlib import Path

import pytest

from .audiences import AudienceTotals, audience_campaign

WORLDS = 2
MOST = 30
ENOUGH = 5


@pytest.mark.slow
def test_audiences_are_answered_as_if_there_were_nothing_else(tmp_path: Path) -> None:
    """Neither counts nor refusals differ from those of a world without the other rows and columns."""
    totals = AudienceTotals()
    for seed in range(MOST):
        totals = audience_campaign(WORLDS, tmp_path, seed_=seed, before=totals)
        if (seen := min(totals.fewer, totals.refused, totals.empty)) >= ENOUGH:
            break
    assert seen >= ENOUGH, f"too little was seen: {totals}"
