"""From an engine's counts of cells to a release: what is left out, what cannot be an answer, and what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms.selection import Selection
from dp_service.parameters.release import Listing
from dp_service.queries.resolution import Resolution, resolve
from dp_service.releases.histogram import HistogramError, TypedHistogram, checked_histogram
from dp_service.releases.keys import NoiseKey
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.quantiles import CELL_TYPE, quantiles_of
from dp_service.releases.kinds.views import IntervalKind
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.releasing import release, shown
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import ColumnType
from tests.support.queries.quantiles import WHOLES, asked, policy
from tests.support.queries.sums import NOW
from tests.support.some import some

KEY = NoiseKey(bytes(range(32)))
PRECISE = policy(whole=WHOLES[1], epsilon="10")
QUESTION: Resolution = resolve(asked("whole"), PRECISE, now=NOW)
# Cells 0 to 11 of three elements.
ROWS = [("a", 7, 31), *(("a", cell, 30) for cell in (1, 3, 5)), ("b", 11, 30), ("a", 9, 29), ("b", 0, 9)]


def histogram(rows: Sequence[tuple[str, int, int]]) -> TypedHistogram:
    """Return an engine's answer."""
    texts, cells, counts = (list(each) for each in zip(*rows, strict=True)) if rows else ([], [], [])
    types = (ColumnType.STRING, CELL_TYPE)
    return checked_histogram(types, [texts, cells], counts, row_limit=1000)


def released(rows: Sequence[tuple[str, int, int]]) -> tuple[str, list[list[int]]]:
    """Return the id of the release of an answer, and the cells of each quantile."""
    plan = plan_for(QUESTION, "v", KEY, IssueContext(NOW, bytes(32)))
    found = release(plan, histogram(rows), KEY, confidence=0.95, whole=True)
    assert found.elements == [("a",), ("b",), ("z",)]
    assert (found.noisy_counts, found.interval_kind) == (None, IntervalKind.NONE)
    assert (found.cost.information, found.cost.calls) == (4, 0)
    return found.release_id, [column.tolist() for column in found.cells]


def test_quartiles_are_chosen_in_every_element_of_the_domain() -> None:
    """The same answer gives the same release; one member more in a cell gives another one."""
    first = released(ROWS)
    lower, median, upper = first[1]
    assert (lower[:2], median[:2], upper[:2]) == ([3, 11], [5, 11], [7, 11])
    assert all(low <= mid <= high for low, mid, high in some(zip(*first[1], strict=True)))
    assert released(ROWS) == first
    assert released([*ROWS[:-1], ("b", 0, 10)])[0] != first[0]
    assert released([])[0] != first[0]


def test_what_an_engine_says_of_empty_cells_and_other_elements_changes_nothing() -> None:
    """A row outside of the domain is one member's, and decides neither about an answer nor about its noise."""
    assert released([*ROWS, ("b", 1, 0), ("z", 3, 0)]) == released(ROWS)
    assert released([*ROWS, ("elsewhere", 3, 5)]) == released(ROWS)


def test_what_cannot_be_an_answer_is_refused() -> None:
    """Cells that the grid does not have, more members than any table has, and a cut answer."""
    for rows in ([("a", 12, 1)], [("a", -1, 1)], [("elsewhere", 12, 1)]):
        with pytest.raises(HistogramError, match="cells of the grid"):
            released(rows)
    for many in ([("a", 1, 2**38 + 1)], [("a", 1, 2**38), ("a", 0, 1)]):
        with pytest.raises(HistogramError, match="at most 2\\^38 values"):
            released(many)
    with pytest.raises(HistogramError, match="only elements of the domain"):
        kind_of(QUESTION.parameters).histogram(
            histogram([("elsewhere", 3, 5)]), QUESTION.parameters.domain, row_limit=1
        )


def test_a_value_is_the_middle_of_its_cell_and_says_how_far_its_rank_may_be_off() -> None:
    """The order is that of the question, and the errors are larger at a higher confidence."""
    cells = tuple(np.array(column) for column in ([0, 4, 11], [1, 5, 11], [2, 6, 11]))
    drawn = MechanismOutput(Selection(np.arange(3), None, ended_in_bottom=False), cells=cells)
    view = shown(QUESTION.parameters, drawn, confidence=0.95)
    values = [list(map(float, each.values)) for each in view.quantiles]
    assert values == [[-6, -2, 5], [-5, -1, 5], [-4, 0, 5]]
    coarse = resolve(asked("number"), policy(), now=NOW).parameters
    first = shown(coarse, drawn, confidence=0.95).quantiles[1]
    assert (first.lower[0], first.values[0]) == (Fraction(1, 50), (first.lower[0] + first.upper[0]) / 2)
    surer = shown(QUESTION.parameters, drawn, confidence=0.999)
    for less, more in zip(view.quantiles, surer.quantiles, strict=True):
        assert less.rank_error < more.rank_error
        assert less.cuts == more.cuts
    assert [each.cuts for each in view.quantiles] == [((1, Fraction(1, 2)),), (), ((1, Fraction(1, 2)),)]


@pytest.mark.parametrize(
    ("ordered_by", "smallest_first", "rows"),
    [(0, False, (1, 0, 2)), (0, True, (2, 0, 1)), (1, False, (1, 2, 0)), (1, True, (0, 1, 2))],
)
def test_a_list_is_in_the_order_of_a_quantile(
    ordered_by: int, smallest_first: bool, rows: tuple[int, ...]
) -> None:
    """Equal cells are in the order of their elements, and no rank is further off: every element is shown."""
    cells = tuple(np.array(column) for column in ([1, 5, 0], [1, 5, 5], [2, 6, 11]))
    parameters = replace(
        QUESTION.parameters,
        quantiles=replace(quantiles_of(QUESTION.parameters), ordered_by=ordered_by),
        listing=Listing(in_element_order=False, smallest_first=True) if smallest_first else None,
    )
    drawn = MechanismOutput(Selection(np.arange(3), None, ended_in_bottom=False), cells=cells)
    plain, ordered = (shown(each, drawn, confidence=0.95) for each in (QUESTION.parameters, parameters))
    assert (ordered.rows, ordered.count) == (rows, 3)
    for before, after in zip(plain.quantiles, ordered.quantiles, strict=True):
        assert [before.lower[row] for row in rows] == list(after.lower)
        assert before.rank_error == after.rank_error


def test_only_cells_of_the_release_are_accepted() -> None:
    """A kept release comes back from the caller: one with other cells than it can have is refused."""
    selection = Selection(np.arange(3), None, ended_in_bottom=False)
    good = np.array([0, 4, 11])
    for cells in ((), (good, good), (good, good, good[:2]), (good, good, good + 1), (good, good, good - 1)):
        with pytest.raises(ValueError, match="the cells of every quantile"):
            kind_of(QUESTION.parameters).require(MechanismOutput(selection, cells=cells))
