"""What is said of intervals, tried against true numbers: each covers as often as its statement says.

A release is drawn many times, each time on another version of the data, so with other noise. Where the statement is of
each interval, all that are shown count; where it is of all together, one that misses spoils its release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import pytest

from dp_service.releases.looks import is_first_look, names_of, second_plan
from dp_service.releases.releasing import Released, release
from dp_service.releases.saying import of_answer
from tests.unit.dp_service.asked_plans import KINDS, histogram_of, plans
from tests.unit.dp_service.identities import KEY

CONFIDENCE = 0.8
DATA = {
    "few large": [900, 500, 480, 60, 40, 3],
    "many equal": [40] * 25,
    "many tiny": [12, 9, 7, 6, 5, 4, 3, 3, 2, 2, *[1] * 15],
}


def missed(released: Released, counts: Mapping[str, int]) -> Iterator[bool]:
    """Yield for each interval whether it misses its number before noise."""
    view = released.shown
    true = [counts[str(element[0])] for element in released.elements]
    if view.intervals is not None:
        for count, low, high in zip(true, view.intervals.lower, view.intervals.upper, strict=True):
            yield not low <= count <= high
    for aggregate in view.aggregates:
        for count, answer in zip(true, aggregate.answers, strict=True):
            assert answer is not None
            yield not answer.lower <= 3 * count <= answer.upper


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover_as_often_as_their_statement_says(kind: str, data: str) -> None:
    """The share of misses is no larger than said, but for what so many draws make of it."""
    counts = {f"n{place:02}": count for place, count in enumerate(DATA[data])}
    said: set[str] = set()
    of_each: list[bool] = []
    of_all: list[bool] = []
    for plan in plans(KINDS[kind], list(counts)):
        found, answer = plan, histogram_of(plan, counts)
        if is_first_look(plan):
            found = second_plan(plan, names_of(plan, answer, KEY), now=0)
            answer = histogram_of(found, counts) if found.row_limit else answer.rows([])
        released = release(found, answer, KEY, confidence=CONFIDENCE)
        statements = of_answer(found, None, released.shown, bottom=released.bottom, confidence=CONFIDENCE)
        said |= {each.code for each in statements if each.code.startswith("intervals.")}
        misses = list(missed(released, counts))
        of_each += misses
        of_all.append(any(misses))
    tried = of_all if "intervals.simultaneous" in said else of_each
    assert said & {"intervals.plain", "intervals.given_shown", "intervals.simultaneous"}
    allowed = 5 * math.sqrt(len(tried) * CONFIDENCE * (1 - CONFIDENCE))
    assert sum(tried) <= len(tried) * (1 - CONFIDENCE) + allowed
