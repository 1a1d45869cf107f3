"""The alerts about regions fire when they should, as Prometheus' own checker sees it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ALERTS = HERE.parents[1] / "deploy" / "prometheus" / "alerts.yml"


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Prometheus")
def test_alerts_about_regions_fire_when_they_should(tmp_path: Path) -> None:
    """On days with trouble, with the labels that say where; and neither on quiet days nor without regions."""
    shutil.copy(ALERTS, tmp_path)
    shutil.copy(HERE / "region_alerts.yml", tmp_path)
    done = subprocess.run(
        ["promtool", "test", "rules", "region_alerts.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
