"""The short form of the campaign `wires`; 100,000 messages go to each port there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.wires.campaign import PORTS, run_campaign


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.usefixtures("starts_processes")
def test_nothing_that_is_sent_harms_a_gateway(tmp_path: Path, port: str) -> None:
    """It lives, answers a good client, stays small, charges and logs nothing that it should not; one seed."""
    report = run_campaign(tmp_path, port, messages=2000, seed=4)
    assert [] == report.faults
    # Something was answered, and something refused.
    assert report.judged.charged > 0
    assert len(report.judged.ends) > 5
