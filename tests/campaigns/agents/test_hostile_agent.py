"""The short form of the campaign; the campaign `agents` asks 500 questions and plays 400 games."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.agents.campaign import run_campaign
from tests.campaigns.agents.game import play
from tests.campaigns.agents.session import ANSWERED, REPEATED

GAMES = 40
"""Of each kind: enough that a sure winner breaks the promise."""


@pytest.mark.usefixtures("starts_processes")
def test_a_hostile_agent_spends_its_own_budget_and_nothing_else(tmp_path: Path) -> None:
    """Of 100 attempts those that cost something end with its limit, and none is answered that should not be."""
    report = run_campaign(tmp_path, questions=100)
    assert [] == report.faults()
    assert report.totals.ended("budget_exhausted") > 0
    # It asked the same in other words twenty times, and paid once.
    same = report.totals.of("the same in other words")
    assert same[ANSWERED] <= 1 < same[REPEATED]
    assert report.totals.ended("invalid_question") > 0
    assert report.totals.ended("refused_by_policy") > 0


@pytest.mark.usefixtures("starts_processes")
def test_a_whole_budget_tells_no_more_of_one_member_than_its_limit_promises(tmp_path: Path) -> None:
    """The guesses of an agent that knows all but one member prove less; with hardly any noise they prove more."""
    (tmp_path / "as it is").mkdir()
    (tmp_path / "without noise").mkdir()
    games = play(tmp_path / "as it is", GAMES)
    assert games.keeps_its_promise
    without = play(tmp_path / "without noise", GAMES, epsilon_per="10", promised=games.promised)
    assert not without.keeps_its_promise
