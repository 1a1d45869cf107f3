"""A list that is too large to be kept or sent ends before: by what was released, and with intervals that say so."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dp_service.mechanisms.selection import Selection, selection_thresholds
from dp_service.releases.histogram import checked_histogram
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.cutting import MAX_TOTALS, fitting_list, fitting_totals
from dp_service.releases.kinds.moments import Moments
from dp_service.releases.kinds.totals import WithTotals
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.releasing import release
from tests.unit.dp_service import totals
from tests.unit.dp_service.identities import KEY

COUNTS = [90, 80, 80, 80, 10]


def drawn() -> MechanismOutput:
    """Return a release of five elements with a sum each, above a threshold of 5."""
    places = np.array([4, 0, 1, 2, 3], dtype=np.int64)
    counts = np.array(COUNTS, dtype=np.int64)
    return MechanismOutput(Selection(places, counts, ended_in_bottom=False, bottom=5), sums=(counts * 2,))


@pytest.mark.parametrize(
    ("most", "kept", "bottom"), [(1, 1, 80), (2, 1, 80), (3, 1, 80), (4, 4, 10), (5, 5, 5)]
)
def test_totals_that_do_not_fit_end_the_list(most: int, kept: int, bottom: int) -> None:
    """With all elements that count as much as the first one without a total: what is kept exceeds that count."""
    found = fitting_totals(["b", "c", "d", "e", "a"], drawn(), most)
    assert found.selection.noisy_counts is not None
    assert found.selection.noisy_counts.tolist() == COUNTS[:kept]
    assert [column.tolist() for column in found.sums] == [[2 * count for count in COUNTS[:kept]]]
    assert found.selection.bottom == bottom
    thresholds = selection_thresholds(found.selection, kept)
    assert thresholds is not None
    assert thresholds.tolist() == [bottom + 1] * kept


def test_totals_with_long_texts_end_the_list_sooner() -> None:
    """They travel in one message; a total that several elements have counts once."""
    for last, fit in (("é", 5), ("xy", 5), ("xyz", 4)):
        found = fitting_totals(["é", "é", "é", last, "é"], drawn(), most_bytes=4)
        assert found.selection.indices.size == fit


def test_a_list_with_long_texts_ends_where_it_is_full() -> None:
    """One whose texts could be long, and are not, is whole."""
    elements = [(name,) for name in "abcde"]
    assert fitting_list(elements, drawn(), 5 * 21).selection.indices.size == 5
    assert fitting_list(elements, drawn(), 5 * 21 - 1).selection.indices.size == 4


def test_a_release_with_totals_is_cut_before_they_are_drawn() -> None:
    """It costs what every release of the plan costs, and has the totals of what is left of it."""
    plan = dataclasses.replace(totals.plan_of(k=None, summed=False), row_limit=2 * MAX_TOTALS)
    countries = [f"c{number}" for number in range(MAX_TOTALS + 50)]
    counts = range(100 * MAX_TOTALS, 0, -50)[: len(countries)]
    rows = checked_histogram(
        totals.TYPES, [countries, ["p"] * len(countries)], counts, row_limit=plan.row_limit
    )
    whole = release(plan, rows, KEY, confidence=0.9, whole=True)
    assert whole.totals is not None
    assert whole.bottom is not None
    assert whole.noisy_counts is not None
    assert MAX_TOTALS - 5 < len(whole.totals.values) <= MAX_TOTALS
    assert (whole.noisy_counts > whole.bottom).all()
    assert {element[0] for element in whole.elements} == set(whole.totals.values)
    small = release(plan, totals.histogram(summed=False), KEY, confidence=0.9, whole=True)
    assert whole.cost == small.cost


def test_sums_of_a_list_that_is_cut_hold_given_where_it_is() -> None:
    """As its counts do: each element is kept because its count exceeds the first one that is left out."""
    kind = kind_of(totals.plan_of(k=None).parameters)
    assert isinstance(kind, WithTotals)
    assert isinstance(kind.rows, Moments)
    counts = np.array([90, 80, 70], dtype=np.int64)
    places = np.arange(3, dtype=np.int64)
    whole = MechanismOutput(Selection(places, counts, ended_in_bottom=False, bottom=5), sums=(counts * 2,))
    cut = fitting_totals(["a", "b", "c"], whole, 2)
    assert [kind.rows.released(each).threshold for each in (whole, cut)] == [5, 70]
