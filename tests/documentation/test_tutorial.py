"""docs/tutorial: its commands, page after page in one folder, as somebody types them who reads it."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import pytest
import yaml

from tests.documentation.commands import run
from tests.support.pages import DOCS, blocks
from tests.support.paths import ROOT

PAGES = sorted((DOCS / "tutorial").glob("*.md"), key=lambda page: int(page.name.partition("-")[0]))


@pytest.mark.slow
@pytest.mark.usefixtures("starts_processes")
def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    """Every command succeeds after those before it; the question that is repeated costs nothing."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed = {page.name: [run(each, tmp_path) for each in blocks(page.read_text(), "sh")] for page in PAGES}
    assert "charged now: 0 information" in printed["3-noise.md"][0]
    (bottom,) = re.findall(
        r"noisy count exceeds [0-9.]+", " ".join((DOCS / "tutorial/4-names.md").read_text().split())
    )
    assert f"whose {bottom}" in " ".join(printed["4-names.md"][0].split())


def test_what_an_attacker_guesses_follows_from_the_policy() -> None:
    """Two Gaussians that are sqrt(2 rho) apart, of which u units are rho = u epsilon_per^2 / 8; rounded up."""
    epsilon_per = Fraction(
        str(yaml.safe_load((ROOT / "examples/orders/policy.yaml").read_text())["epsilon_per"])
    )
    text = " ".join((DOCS / "tutorial/10-epsilon.md").read_text().split())
    stated = [int(each) for each in re.findall(r"in at most ([0-9]+)", text)]
    units = (20, 100, 600, 3000)
    rights = [NormalDist().cdf(math.sqrt(2 * each * epsilon_per**2 / 8) / 2) for each in units]
    assert stated == [math.ceil(100 * right) for right in rights]
