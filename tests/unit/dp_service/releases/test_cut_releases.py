"""A list that is too large to be kept or sent ends before: by what was released, and with intervals that say so."""

from __future__ import annotations

import numpy as np
import pytest

from dp_service.mechanisms.selection import Selection, selection_thresholds
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.cutting import fitting_list
from dp_service.releases.kinds.moments import Moments
from dp_service.releases.mechanism_output import MechanismOutput
from tests.unit.dp_service import summed_plans

COUNTS = [90, 80, 80, 80, 10]


def drawn() -> MechanismOutput:
    """Return a release of five elements with a sum each, above a threshold of 5."""
    places = np.array([4, 0, 1, 2, 3], dtype=np.int64)
    counts = np.array(COUNTS, dtype=np.int64)
    return MechanismOutput(Selection(places, counts, ended_in_bottom=False, bottom=5), sums=(counts * 2,))


@pytest.mark.parametrize(
    ("most", "kept", "bottom"), [(1, 1, 80), (2, 1, 80), (3, 1, 80), (4, 4, 10), (5, 5, 5)]
)
def test_elements_that_do_not_fit_end_the_list(most: int, kept: int, bottom: int) -> None:
    """With all elements that count as much as the first one that does not fit: what is kept exceeds that count."""
    found = fitting_list([(name,) for name in "abcde"], drawn(), 21 * most)
    assert found.selection.noisy_counts is not None
    assert found.selection.noisy_counts.tolist() == COUNTS[:kept]
    assert [column.tolist() for column in found.sums] == [[2 * count for count in COUNTS[:kept]]]
    assert found.selection.bottom == bottom
    thresholds = selection_thresholds(found.selection, kept)
    assert thresholds is not None
    assert thresholds.tolist() == [bottom + 1] * kept


def test_a_list_with_long_texts_ends_where_it_is_full() -> None:
    """One whose texts could be long, and are not, is whole."""
    elements = [(name,) for name in "abcde"]
    assert fitting_list(elements, drawn(), 5 * 21).selection.indices.size == 5
    assert fitting_list(elements, drawn(), 5 * 21 - 1).selection.indices.size == 4


def test_sums_of_a_list_that_is_cut_hold_given_where_it_is() -> None:
    """As its counts do: each element is kept because its count exceeds the first one that is left out."""
    kind = kind_of(summed_plans.plan_of().parameters)
    assert isinstance(kind, Moments)
    counts = np.array([90, 80, 70], dtype=np.int64)
    places = np.arange(3, dtype=np.int64)
    whole = MechanismOutput(Selection(places, counts, ended_in_bottom=False, bottom=5), sums=(counts * 2,))
    cut = fitting_list([("a",), ("b",), ("c",)], whole, 2 * 21)
    assert [kind.released(each).threshold for each in (whole, cut)] == [5, 70]
