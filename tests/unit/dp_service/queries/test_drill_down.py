"""Questions for totals: what the policy has to say, what is resolved, and the query that is written."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dp_service.parameters.aggregates import TotalsReleased
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import PolicyError, QuestionError
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery

NOW = 1_700_000_000
POLICY = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    measures: {distinct_members: true, events: {tau: 2, tau_is: clipped}}
    contributions:
      bound: in_query
      typical: 3
      units: 10
      min_count: 5
      shift: true
      totals: {share: 1/5, one_value: [b]}
    columns:
      member: {type: string}
      a: {type: string, group_by: true}
      b: {type: string, group_by: true}
"""


def asked(totals_by: str | None = "a") -> HistogramQuery:
    """Return a question by two columns."""
    return HistogramQuery("t", ("a", "b"), Measure.EVENTS, totals_by=totals_by)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_query_for_totals_leaves_out_no_small_count(dialect: str) -> None:
    """That of the list alone does, and they differ in nothing else."""
    under = parse_policy(POLICY)
    plain = render(resolve(asked(None), under, now=NOW), dialect)
    found = render(resolve(asked(), under, now=NOW), dialect)
    head, having, rest = plain.partition(" HAVING ")
    assert having
    assert " HAVING " not in found
    assert found == f"{head} {rest[rest.index('ORDER BY') :]}"


def test_totals_are_answered_as_the_policy_states() -> None:
    """Members have one value of the other column where the policy says so."""
    under = parse_policy(POLICY)
    of_a = resolve(asked(), under, now=NOW).parameters.totals
    assert of_a == TotalsReleased(0, "a", Fraction(1, 5), one_value=True)
    of_b = resolve(asked("b"), under, now=NOW).parameters.totals
    assert of_b == TotalsReleased(1, "b", Fraction(1, 5), one_value=False)


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("one_value: [b]", "one_value: [member]", "totals.one_value", "questions may group by"),
        ("one_value: [b]", "one_value: [b, b]", "totals.one_value", "each column once"),
        ("share: 1/5", "share: 1", "totals.share", "less than 1"),
        ("share: 1/5", "share: '1e-30'", "totals.share", "too large to be drawn"),
    ],
)
def test_what_a_policy_says_wrong_of_totals_is_refused(old: str, new: str, key: str, message: str) -> None:
    """With the key."""
    with pytest.raises(PolicyError, match=message) as refused:
        parse_policy(POLICY.replace(old, new))
    assert key in str(refused.value)


def test_more_totals_than_intervals_are_computed_for_are_refused() -> None:
    """Over a known domain all are shown, so how many there are is public."""
    values = ", ".join(f"v{i:04}" for i in range(1001))
    known = POLICY.replace(
        "a: {type: string, group_by: true}", f"a: {{type: string, group_by: true, domain: [{values}]}}"
    )
    known = known.replace(
        "b: {type: string, group_by: true}", "b: {type: string, group_by: true, domain: [x, y]}"
    )
    with pytest.raises(QuestionError, match="at most 1000 values") as refused:
        resolve(asked(), parse_policy(known), now=NOW)
    assert refused.value.field == "totals_by"
    found = resolve(asked("b"), parse_policy(known), now=NOW).parameters
    assert found.contributions is not None
    assert not found.contributions.shifted
