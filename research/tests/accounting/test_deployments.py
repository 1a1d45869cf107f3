"""The table of other deployments is the paper's, and its arithmetic holds."""

from __future__ import annotations

import pytest

from dp_service.accounting.composition import Guarantee
from research.accounting.deployments import DEPLOYMENTS, Loss, Model, deployments_sheet

DAYS = 30
# Reports a day, by what the notes say.
REPORTS = {"Google RAPPOR": 48, "Apple Safari": 2, "Apple emojis": 1, "Microsoft telemetry": 4}


def test_a_month_is_thirty_days() -> None:
    """Where both are published, the month is thirty times the day, to the digits that are printed."""
    for each in DEPLOYMENTS:
        if each.daily and each.monthly:
            assert each.monthly.epsilon == pytest.approx(DAYS * each.daily.epsilon, rel=1e-3)


@pytest.mark.parametrize("name", REPORTS)
def test_a_day_is_the_sum_of_its_reports(name: str) -> None:
    """For the systems whose number of reports a day is published."""
    (found,) = [each for each in DEPLOYMENTS if each.name.startswith(name)]
    assert found.daily is not None
    assert found.daily.epsilon == pytest.approx(REPORTS[name] * found.per_report[0].epsilon, rel=2e-3)


def test_the_paper_compares_seven_deployments() -> None:
    """Four of them local, three global; who published others is said in their rows."""
    assert [Model.LOCAL] * 4 + [Model.GLOBAL] * 3 == [each.model for each in DEPLOYMENTS if not each.source]
    own = Guarantee(33.79, 7e-9)
    rows = deployments_sheet(own, Loss(0.15, 1e-10), "3000 and 30 a month").rows
    assert rows[-1][:5] == ("this budget", "global", "(0.15, 1e-10)", "", "(33.79, 7e-09)")
    for each in DEPLOYMENTS:
        if each.source:
            assert [f"{each.note} ({each.source})"] == [row[-1] for row in rows if row[0] == each.name]
