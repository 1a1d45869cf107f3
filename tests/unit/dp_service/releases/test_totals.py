"""Releases with totals: their noise, their intervals, and the plans that carry them."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms.aggregates import BoundMoments
from dp_service.parameters.aggregates import TotalsReleased
from dp_service.releases.histogram import HistogramError
from dp_service.releases.kinds import kind_of
from dp_service.releases.plan import sign_plan, verify_plan
from dp_service.releases.release_ids import release_specification
from dp_service.releases.releasing import Released, release
from tests.unit.dp_service.identities import KEY
from tests.unit.dp_service.totals import ROWS, TOTALS, histogram, plan_of


def drawn(
    number: int, *, known: bool, k: int | None, confidence: float = 0.8, summed: bool = True
) -> Released:
    """Return one of many releases."""
    plan = plan_of(known=known, k=k, fresh=number.to_bytes(32, "big"), summed=summed)
    return release(plan, histogram(summed=summed), KEY, confidence=confidence)


@pytest.mark.slow
@pytest.mark.parametrize(("known", "k"), [(False, None), (False, 2), (True, 3)])
def test_intervals_of_totals_and_of_what_is_left_cover(known: bool, k: int | None) -> None:
    """Given which elements are shown; 300 releases miss more than a third of the time once in 10^7 runs."""
    missed = {"count": 0, "other": 0, "sum": 0, "other sum": 0}
    tried = 0
    for number in range(300):
        found = drawn(number, known=known, k=k)
        shown, seen = found.shown.totals, set(found.elements)
        assert shown is not None
        for place, value in enumerate(shown.values):
            of_total = [row for row in ROWS if row[0] == value]
            left = [row for row in of_total if row[:2] not in seen]
            tried += 1
            for name, answer, true in (
                ("count", shown.counts[place], sum(row[2] for row in of_total)),
                ("other", shown.others[place], sum(row[2] for row in left)),
                ("sum", shown.sums[0].answers[place], Fraction(sum(row[3] for row in of_total), 2)),
                ("other sum", shown.other_sums[0].answers[place], Fraction(sum(row[3] for row in left), 2)),
            ):
                missed[name] += not answer.lower <= true <= answer.upper
    assert tried > 200
    assert all(count < tried / 3 for count in missed.values()), (missed, tried)
    # They are not so wide that they say nothing.
    assert missed["count"] > tried / 20


def test_totals_have_noise_of_their_own_of_the_variance_that_is_stated() -> None:
    """It is not that of the rows, whose labels it has: with one product in each country the two would be equal."""
    found = [drawn(number, known=True, k=None, summed=False) for number in range(200)]
    mechanism = kind_of(plan_of(known=True, summed=False).parameters).mechanism
    of_totals, of_rows = [], []
    for each in found:
        assert each.shown.totals is not None
        assert each.noisy_counts is not None
        noisy = dict(zip(each.elements, each.noisy_counts.tolist(), strict=True))
        of_totals.append(each.shown.totals.counts[3].noisy)
        of_rows.append(sum(noisy["D", product] for product in "pqr"))
    assert np.var(of_totals) == pytest.approx(float(mechanism.total_variance), rel=0.4)
    assert abs(float(np.corrcoef(of_totals, of_rows)[0, 1])) < 0.3


@pytest.mark.slow
def test_totals_are_of_what_a_shown_element_names() -> None:
    """Over an unknown domain no other one is returned, whole or not; over a known one all are."""
    for number in range(40):
        plan = plan_of(fresh=number.to_bytes(32, "big"))
        whole = release(plan, histogram(), KEY, confidence=0.9, whole=True)
        assert whole.totals is not None
        named = sorted({str(element[0]) for element in whole.elements})
        assert list(whole.totals.values) == named
        assert [whole.totals.values[place] for place in whole.totals.of_elements] == [
            element[0] for element in whole.elements
        ]
    shown = drawn(1, known=True, k=1).shown.totals
    assert shown is not None
    assert shown.values == ("A", "B", "C", "D")


def test_an_answer_with_as_many_rows_as_there_may_be_is_refused() -> None:
    """Some rows could be missing, and a total of the others is not bounded."""
    plan = dataclasses.replace(plan_of(), row_limit=len(ROWS))
    with pytest.raises(HistogramError, match="totals are of all of them"):
        release(plan, histogram(), KEY, confidence=0.9)
    assert release(dataclasses.replace(plan, row_limit=len(ROWS) + 1), histogram(), KEY, confidence=0.9)


def test_a_plan_carries_totals_and_each_part_of_them_is_another_release() -> None:
    """Signed and read again it is the same; without totals, specifications are as they were."""
    plan = plan_of()
    assert verify_plan(sign_plan(plan, KEY), KEY, now=plan.issued_at) == plan
    others = [
        TotalsReleased(1, "product", TOTALS.share, TOTALS.one_value),
        TotalsReleased(0, "country", Fraction(1, 3), TOTALS.one_value),
        TotalsReleased(0, "country", TOTALS.share, one_value=True),
        None,
    ]
    specified = {
        release_specification(b"", dataclasses.replace(plan.parameters, totals=each), drawn_by=(1, 1))
        for each in (TOTALS, *others)
    }
    assert len(specified) == 5


def test_units_are_divided_and_rounded_up_together() -> None:
    """List and totals cost what the list costs alone."""
    mechanism = kind_of(plan_of().parameters).mechanism
    assert isinstance(mechanism.rows, BoundMoments)
    assert (mechanism.rows.units, mechanism.totals.units) == (Fraction(9, 2), Fraction(3, 2))
    assert (mechanism.worst_case_cost().information, mechanism.worst_case_cost().calls) == (6, 1)
