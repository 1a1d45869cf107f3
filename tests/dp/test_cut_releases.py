"""A list that is too large to be kept or sent ends before: by what was released, and with intervals that say so."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms.selection import Selection, selection_thresholds
from dp_service.releases.kinds import cutting, kind_of
from dp_service.releases.kinds.moments import Moments
from dp_service.releases.kinds.totals import WithTotals
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.releasing import release
from tests.dp import test_totals as totals
from tests.dp.identities import KEY

COUNTS = [90, 80, 80, 80, 10]


def drawn() -> MechanismOutput:
    """Return a release of five elements with a sum each, above a threshold of 5."""
    places = np.array([4, 0, 1, 2, 3], dtype=np.int64)
    counts = np.array(COUNTS, dtype=np.int64)
    return MechanismOutput(Selection(places, counts, ended_in_bottom=False, bottom=5), sums=(counts * 2,))


@pytest.mark.parametrize(
    ("most", "kept", "bottom"), [(1, 1, 80), (2, 1, 80), (3, 1, 80), (4, 4, 10), (5, 5, 5)]
)
def test_totals_that_do_not_fit_end_the_list(
    most: int, kept: int, bottom: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all elements that count as much as the first one without a total: what is kept exceeds that count."""
    monkeypatch.setattr(cutting, "MAX_TOTALS", most)
    found = cutting.fitting_totals(["b", "c", "d", "e", "a"], drawn())
    assert found.selection.noisy_counts is not None
    assert found.selection.noisy_counts.tolist() == COUNTS[:kept]
    assert [column.tolist() for column in found.sums] == [[2 * count for count in COUNTS[:kept]]]
    assert found.selection.bottom == bottom
    thresholds = selection_thresholds(found.selection, kept)
    assert thresholds is not None
    assert thresholds.tolist() == [bottom + 1] * kept


def test_totals_with_long_texts_end_the_list_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """They travel in one message; a total that several elements have counts once."""
    monkeypatch.setattr(cutting, "MAX_TOTALS_BYTES", 4)
    assert cutting.fitting_totals(["é", "é", "é", "é", "é"], drawn()).selection.indices.size == 5
    assert cutting.fitting_totals(["é", "é", "é", "xy", "é"], drawn()).selection.indices.size == 5
    assert cutting.fitting_totals(["é", "é", "é", "xyz", "é"], drawn()).selection.indices.size == 4


def test_a_list_with_long_texts_ends_where_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose texts could be long, and are not, is whole."""
    elements = [(name,) for name in "abcde"]
    monkeypatch.setattr(cutting, "MAX_LIST_BYTES", 5 * 21)
    assert cutting.fitting_list(elements, drawn()).selection.indices.size == 5
    monkeypatch.setattr(cutting, "MAX_LIST_BYTES", 5 * 21 - 1)
    assert cutting.fitting_list(elements, drawn()).selection.indices.size == 4


def test_a_release_with_totals_is_cut_before_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs what it costs whole, and has the totals of what is left of it."""
    monkeypatch.setattr(cutting, "MAX_TOTALS", 1)
    plan = totals.plan_of(k=None)
    whole = release(plan, totals.histogram(), KEY, confidence=0.9, whole=True)
    assert whole.totals is not None
    assert len(whole.totals.values) == 1
    assert whole.bottom is not None
    assert whole.noisy_counts is not None
    assert (whole.noisy_counts > whole.bottom).all()
    assert {element[0] for element in whole.elements} == set(whole.totals.values)
    monkeypatch.undo()
    uncut = release(plan, totals.histogram(), KEY, confidence=0.9, whole=True)
    assert (uncut.cost, uncut.release_id) == (whole.cost, whole.release_id)
    assert uncut.elements[: len(whole.elements)] == whole.elements
    assert len(uncut.elements) > len(whole.elements)
    assert Fraction(whole.cost.information) == 6


def test_sums_of_a_list_that_is_cut_hold_given_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its counts do: each element is kept because its count exceeds the first one that is left out."""
    kind = kind_of(totals.plan_of(k=None).parameters)
    assert isinstance(kind, WithTotals)
    assert isinstance(kind.rows, Moments)
    counts = np.array([90, 80, 70], dtype=np.int64)
    places = np.arange(3, dtype=np.int64)
    whole = MechanismOutput(Selection(places, counts, ended_in_bottom=False, bottom=5), sums=(counts * 2,))
    monkeypatch.setattr(cutting, "MAX_TOTALS", 2)
    cut = cutting.fitting_totals(["a", "b", "c"], whole)
    assert [kind.rows.released(each).threshold for each in (whole, cut)] == [5, 70]
