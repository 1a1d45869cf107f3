"""How exact an answer will be is computed once, by its kind, and what is said of it are those numbers."""

from __future__ import annotations

import pytest

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.views import ExpectedAccuracy
from dp_service.releases.saying import of_question
from tests.support.typical import typically

POLICY = """
epsilon_per: 0.15
delta: 1e-10
tables:
  t:
    member: m
    measures: {distinct_members: true}
    columns:
      m: {type: string}
      any: {type: string, group_by: true}
      one: {type: string, group_by: true, delta: 1}
      three: {type: string, group_by: true, delta: 3}
      known: {type: int64, group_by: true, domain: [1, 2, 3]}
"""
GAUSSIAN = f"count_noise: gaussian\n{POLICY}"
BOUNDED = GAUSSIAN.replace("member: m", "member: m\n    contributions: {bound: in_query, units: 4}")
BOUNDED = typically(4, BOUNDED.replace(", delta: 1}", "}").replace(", delta: 3}", "}"))


def asked(by: str, policy: str = POLICY, *, counts: bool = True) -> Resolution:
    """Return a question for the ten largest elements, or the two largest of a known domain."""
    k = 2 if by == "known" else 10
    query = HistogramQuery("t", (by,), Measure.DISTINCT_MEMBERS, k=k, omit_counts=not counts)
    return resolve(query, parse_policy(policy), now=0)


def expected(resolution: Resolution) -> ExpectedAccuracy:
    """Return how exact the answer is expected to be."""
    return kind_of(resolution.parameters).accuracy()


def numbers(accuracy: ExpectedAccuracy) -> tuple[int | None, int | None, int | None]:
    """Return which counts are found with 50 % and 95 %, and how exact a count is."""
    return accuracy.found_half, accuracy.found_mostly, accuracy.half_width


def said(resolution: Resolution) -> dict[str, str]:
    """Return what is said of accuracy, by the last part of its code."""
    cost = kind_of(resolution.parameters).mechanism.worst_case_cost()
    statements = of_question(resolution, cost, expected(resolution))
    return {each.code.removeprefix("accuracy."): each.text for each in statements if "accuracy." in each.code}


def test_what_to_expect_of_a_resolved_question() -> None:
    """Both unknown domains have a threshold, known ones none; without counts there is no width."""
    usual, gaussian = expected(asked("any")), expected(asked("any", GAUSSIAN))
    restricted = expected(asked("one"))
    assert (201, 221, 40) == numbers(usual)
    assert (201, 221, 26) == numbers(gaussian)
    assert (345, 389, 40) == numbers(restricted)
    assert (1075, 1206, 120) == numbers(expected(asked("three")))
    assert (None, None, None) == numbers(expected(asked("known", counts=False)))
    assert (20, None) == (usual.ordered_mostly, restricted.ordered_mostly)
    assert (13.321, 10.638) == (usual.mean_error, gaussian.mean_error)


def test_only_unk_gumb_has_a_price_that_depends_on_what_is_found() -> None:
    """Without counts half as much an element, besides the threshold and bottom."""
    half, mostly = expected(asked("any")).prices
    assert (201, 221) == (half.above, mostly.above)
    assert half.found < mostly.found < 10
    assert half.information == pytest.approx(2 * half.found + 2, abs=0.2)
    assert expected(asked("any", counts=False)).prices[0].information == pytest.approx(
        half.found + 2, abs=0.2
    )
    for resolution in (asked("one"), asked("known"), asked("any", BOUNDED)):
        assert () == expected(resolution).prices
        assert "The price is the same, whatever is found." == said(resolution)["price"]


def test_what_is_said_are_the_numbers_and_no_threshold_is_made_up() -> None:
    """Counts that were chosen with noise of its own are as exact as others, close to a threshold or not."""
    assert said(asked("any")) == {
        "width": "By its noise alone a count is off by at most 40 with 95 %, and is off by 13.3 on average.",
        "threshold": (
            "An element passes the threshold with 50 % if its count is 201 above that at rank 1001 (0 if there are "
            "fewer elements), with 95 % from 221 on."
        ),
        "order": "Two counts that lie 20 apart are ranked in their order before noise with 95 %.",
        "price": (
            "The price is 2 information and 2 for each element found, of which only an answer shows how many there "
            "are: if all 10 counts lie 201 above that at rank 1001, 5.17 are found and 12.2 information paid on "
            "average; if all 10 counts lie 221 above that at rank 1001, 9.55 are found and 20.2 information paid on "
            "average."
        ),
    }
    assert said(asked("known", counts=False)).keys() == {"order", "price"}
    assert said(asked("one"))["width"].endswith("where noisy counts decide what is shown, less surely.")
    assert "above" not in said(asked("any", BOUNDED))["threshold"]
