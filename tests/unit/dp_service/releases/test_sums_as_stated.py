"""Questions that sum are answered by one look with counts of their own, whatever the policy offers for counts alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dp_service.mechanisms.aggregates import BoundMoments
from dp_service.mechanisms.bounded import Shift
from dp_service.mechanisms.selection import Selection
from dp_service.queries.asked_numbers import Measure, sum_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.views import IntervalKind
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.releasing import shown
from tests.support.queries.as_in_plans import carried

POLICY = parse_policy("""
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  t:
    member: m
    contributions:
      bound: in_query
      units: 20
      sums: {max_members: 1000, max_rows: 100000}
    measures: {distinct_members: true}
    columns:
      m: {type: string}
      page: {type: string, group_by: true, typical: 3, domain: [a, b, c]}
    values:
      amount: {type: int64, lower: 0, upper: 10}
""")
COUNTS = HistogramQuery("t", ("page",), Measure.DISTINCT_MEMBERS)
SUMS = HistogramQuery("t", ("page",), Measure.DISTINCT_MEMBERS, aggregates=(sum_of("amount"),))
SELECTION = Selection(np.array([2, 0, 1]), np.array([90, 50, 30]), ended_in_bottom=False)
NOISY_SUMS = np.array([100, 20, -40])


def test_counts_beside_sums_are_not_relative_to_their_total() -> None:
    """The shift is for counts alone: a question that sums neither asks who is first nor releases a total."""
    counts, sums = (resolve(each, POLICY, now=0) for each in (COUNTS, SUMS))
    assert isinstance(kind_of(counts.parameters).mechanism, Shift)
    assert isinstance(kind_of(sums.parameters).mechanism, BoundMoments)
    for dialect in DIALECTS:
        assert Feature.FIRST_COUNTS in required_features(counts, dialect)
        assert Feature.FIRST_COUNTS not in required_features(sums, dialect)
        assert (
            "gris_first_count" in render(counts, dialect),
            "gris_first_count" in render(sums, dialect),
        ) == (
            True,
            False,
        )


def test_sums_and_a_total_are_shown_only_of_a_release_that_has_them() -> None:
    """A kept release comes back from the caller: one with parts of another is refused."""
    counts, sums = (resolve(each, POLICY, now=0).parameters for each in (COUNTS, SUMS))
    assert shown(counts, MechanismOutput(SELECTION, total=60), confidence=0.95).total is not None
    assert len(shown(sums, MechanismOutput(SELECTION, sums=(NOISY_SUMS,)), confidence=0.95).aggregates) == 1
    for parameters, drawn in (
        (counts, MechanismOutput(SELECTION)),
        (counts, MechanismOutput(SELECTION, total=60, sums=(NOISY_SUMS,))),
        (sums, MechanismOutput(SELECTION)),
        (sums, MechanismOutput(SELECTION, total=60, sums=(NOISY_SUMS,))),
        (sums, MechanismOutput(SELECTION, sums=(NOISY_SUMS[:2],))),
        (sums, MechanismOutput(SELECTION, sums=(NOISY_SUMS, NOISY_SUMS))),
    ):
        with pytest.raises(ValueError, match=r"expected the sums|a total must be there"):
            kind_of(parameters).require(drawn)


def test_the_order_of_a_sum_is_no_part_of_the_release() -> None:
    """It is shown of the same release, whole or cut; only where it is cut do the values decide what is shown."""
    by_count = resolve(SUMS, POLICY, now=0).parameters
    ordered = replace(SUMS, ordered_by=0)
    assert resolve(ordered, POLICY, now=0).query == resolve(SUMS, POLICY, now=0).query
    drawn = MechanismOutput(SELECTION, sums=(NOISY_SUMS,))
    whole = resolve(ordered, POLICY, now=0).parameters
    assert whole.specified(drawn_by=(1, 1)) == by_count.specified(drawn_by=(1, 1))
    for parameters, rows, kind in (
        (whole, (0, 1, 2), IntervalKind.PLAIN),
        (resolve(replace(ordered, k=2), POLICY, now=0).parameters, (0, 1), IntervalKind.SIMULTANEOUS),
    ):
        view = shown(carried(parameters), drawn, confidence=0.95)
        assert (view.rows, view.count, view.interval_kind) == (rows, len(rows), kind)
    # Half of them are 50, 10 and -20; and then -450, 10 and 150.
    moved = MechanismOutput(SELECTION, sums=(np.array([-900, 20, 300]),))
    view = shown(whole, moved, confidence=0.95)
    assert view.rows == (2, 1, 0)
    assert [each.value for each in view.aggregates[0].answers if each] == [150, 10, -450]
    assert view.intervals is not None
    plain = shown(by_count, moved, confidence=0.95)
    assert plain.intervals is not None
    assert view.intervals.lower.tolist() == plain.intervals.lower[::-1].tolist()
    assert view.aggregates[0].answers == plain.aggregates[0].answers[::-1]


def test_a_list_is_only_in_the_order_of_what_it_shows() -> None:
    """A place beyond the question's sums and averages is refused."""
    for place in (-1, 1):
        with pytest.raises(QuestionError, match="that the question asks for"):
            replace(SUMS, ordered_by=place)
    with pytest.raises(QuestionError, match="that the question asks for"):
        replace(COUNTS, ordered_by=0)
