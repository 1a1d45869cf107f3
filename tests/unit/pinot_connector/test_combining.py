"""Sums, differences and quotients of numbers of answers: coverage by enumerating all noise, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from gris_api.dp.v1 import question_pb2

from pinot_connector import PrivateClient
from pinot_connector.combining import Coefficient, DiscreteLaplace, Gaussian, Part, combined, quotient
from pinot_connector.coverage import AtLeast, Coverage, Least, Noise, NoiseAlone, TwoSided
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.errors import InvalidQuestion
from tests.support.clients import own_client
from tests.support.paths import EXAMPLES

DATA = EXAMPLES / "online_retail" / "purchases.parquet"
POLICY = """
epsilon_per: 1
count_noise: gaussian
delta: 1e-10
tables:
  t:
    member: member_id
    contributions: {bound: in_query, units: 20, min_count: 1}
    measures: {distinct_members: true}
    columns:
      member_id: {type: string}
      country: {type: string, group_by: true, typical: 4, domain: [France, Germany, Italy, Spain]}
      stock_code: {type: string, group_by: true, typical: 4}
  weighted:
    member: member_id
    contributions: {bound: in_query, units: 20}
    measures: {distinct_members: true}
    columns:
      member_id: {type: string}
      country: {type: string, group_by: true, typical: 2, domain: [France, Germany, Italy, Spain]}
"""
BY_COUNTRY = "SELECT country, COUNT(DISTINCT member_id) FROM t GROUP BY country"
TOP = "SELECT stock_code, COUNT(DISTINCT member_id) FROM t GROUP BY stock_code ORDER BY 2 DESC LIMIT 3"
VARIANCE = 2
ALPHA = Fraction(1, 10)
NOTHING_CUT = TwoSided()


@cache
def masses() -> dict[int, float]:
    """Return the law of one draw."""
    weights = {z: math.exp(-z * z / (2 * VARIANCE)) for z in range(-9, 10)}
    return {z: weight / sum(weights.values()) for z, weight in weights.items()}


def on_grid(numerator: int, name: str) -> Part:
    """Return a count in hundredths, with noise of a few of them."""
    value = Fraction(numerator, 100)
    return Part(value, (value - 1, value + 1), ALPHA, law(name, Fraction(1, 100)), TwoSided())


def law(name: str, step: Fraction = Fraction(1)) -> Gaussian:
    """Return the noise of a number that is one draw."""
    return Gaussian((((name,), step, Fraction(VARIANCE)),))


def part(value: int, name: str, *, selected: bool = False, covers: Coverage = NOTHING_CUT) -> Part:
    """Return a number of an answer; of a selected one the law is not known."""
    width = next(w for w in range(9) if sum(p for z, p in masses().items() if abs(z) > w) <= ALPHA)
    interval = Fraction(value - width), Fraction(value + width)
    return Part(Fraction(value), interval, ALPHA, None if selected else law(name), covers)


@pytest.mark.parametrize("weights", [(1, 1), (1, -1), (Fraction(-3, 2), 2), (0.5, Fraction(1, 3))])
@pytest.mark.parametrize("selected", [False, True])
def test_a_combination_covers_as_often_as_it_says(
    weights: tuple[Coefficient, Coefficient], selected: bool
) -> None:
    """By the law of its noise, or in the box of its numbers' intervals."""
    truth = sum(Fraction(str(weight)) * n for weight, n in zip(weights, (40, 15), strict=True))
    covered, confidence = 0.0, 1.0
    for one, other in product(masses(), repeat=2):
        parts = (part(40 + one, "one", selected=selected), part(15 + other, "other"))
        found = combined(list(zip(parts, weights, strict=True)), 1)
        assert found.interval is not None
        confidence = found.confidence
        covered += masses()[one] * masses()[other] * (found.interval[0] <= truth <= found.interval[-1])
    assert confidence == pytest.approx(0.8 if selected else 0.9)
    assert covered >= confidence


@pytest.mark.parametrize("weights", [(1, 1), (2, -1), (0.5, Fraction(1, 3))])
def test_counts_on_a_grid_have_an_interval_in_its_steps(weights: tuple[Coefficient, Coefficient]) -> None:
    """It covers, and is as narrow as the noise: some of it is beyond."""
    truth = sum(Fraction(str(weight)) * n for weight, n in zip(weights, (40, 15), strict=True))
    covered = 0.0
    for one, other in product(masses(), repeat=2):
        parts = (on_grid(4000 + one, "one"), on_grid(1500 + other, "other"))
        found = combined(list(zip(parts, weights, strict=True)), 1)
        assert found.interval is not None
        covered += masses()[one] * masses()[other] * (found.interval[0] <= truth <= found.interval[-1])
    assert 0.9 <= covered < 0.97


@pytest.mark.parametrize("truth", [(3, 10), (40, 20), (0, 15)])
def test_a_quotient_covers_as_often_as_it_says(truth: tuple[int, int]) -> None:
    """Where the divisor's interval holds 0, it has no value."""
    covered = answered = 0.0
    for one, other in product(masses(), repeat=2):
        found = quotient(part(truth[0] + one, "one"), part(truth[1] + other, "other"), 1)
        chance = masses()[one] * masses()[other]
        if found.interval is not None:
            answered += chance
            covered += chance * (found.interval[0] <= Fraction(*truth) <= found.interval[-1])
    assert answered > 0.99
    assert covered >= answered - float(ALPHA)


def test_the_same_noise_in_two_answers_cancels() -> None:
    """It is one draw of one release."""
    found = combined([(part(40, "one"), 1), (part(40, "one"), -1)], 1)
    assert found.interval == (Fraction(0), Fraction(0))


@pytest.mark.parametrize(
    ("coverages", "weights", "expected"),
    [
        ((AtLeast(), TwoSided()), (1, 2), AtLeast()),
        ((AtLeast(Fraction(1, 16)), AtLeast(Fraction(1, 16))), (1, 1), AtLeast()),
        ((AtLeast(), TwoSided()), (1, -1), NoiseAlone()),
        ((NoiseAlone(), TwoSided()), (1, 1), NoiseAlone()),
        ((AtLeast(), TwoSided()), (0, 1), TwoSided()),
    ],
)
@pytest.mark.parametrize("selected", [False, True])
def test_what_is_computed_of_cut_numbers_is_at_best_a_lower_bound(
    coverages: tuple[Coverage, Coverage], weights: tuple[int, int], expected: Coverage, selected: bool
) -> None:
    """Of a sum; a difference or a quotient of them is of what counts."""
    one, other = (
        part(40, name, selected=selected, covers=covers)
        for name, covers in zip(("one", "other"), coverages, strict=True)
    )
    found = combined([(one, weights[0]), (other, weights[1])], 1)
    assert found.coverage == expected
    assert isinstance(found.interval, Least) is isinstance(expected, AtLeast)
    assert quotient(one, other, 1).coverage == NoiseAlone()
    assert isinstance(quotient(one, other, 1).interval, Noise)


@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(1, 40), Fraction(1, 3)])
@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(20, 3), Fraction(100)])
def test_a_width_of_laplace_noise_is_the_least_that_is_rarely_exceeded(
    alpha: Fraction, scale: Fraction
) -> None:
    """By its exact tails, at another alpha than that of the answer."""
    width = int(DiscreteLaplace(scale).width(alpha))
    beyond = [2 * math.exp(-(h + 1) / scale) / (1 + math.exp(-1 / scale)) for h in (width, width - 1)]
    assert beyond[0] <= alpha
    assert width == 0 or beyond[1] > alpha * Fraction(999, 1000)


def test_a_divisor_that_may_be_0_leaves_no_value() -> None:
    """And the statement says why."""
    found = quotient(part(40, "one"), part(2, "other"), 1)
    assert (found.value, found.interval) == (None, None)
    assert "holds 0" in found.statement


def test_candidates_make_intervals_wider() -> None:
    """Of counts, at the same confidence; of intervals that are as they are, at a lower one."""
    pair = (part(40, "one"), part(15, "other"))
    one, many = (combined([(pair[0], 1), (pair[1], -1)], candidates) for candidates in (1, 50))
    assert one.interval is not None
    assert many.interval is not None
    assert one.confidence == many.confidence
    assert many.interval[0] < one.interval[0]
    assert quotient(part(40, "one", selected=True), pair[1], 3).confidence == pytest.approx(0.4)
    with pytest.raises(InvalidQuestion, match="higher confidence"):
        quotient(part(40, "one", selected=True), pair[1], 50)


@pytest.mark.parametrize("coefficient", [math.nan, math.inf, 1e10, 1e-10, "1", True, None])
def test_coefficients_are_finite_numbers(coefficient: Coefficient) -> None:
    """Neither huge nor tiny, and no text."""
    with pytest.raises(InvalidQuestion, match="coefficients"):
        combined([(part(40, "one"), coefficient)], 1)


@pytest.mark.parametrize("candidates", [0, -1, 1.5, True])
def test_candidates_are_a_whole_number(candidates: int) -> None:
    """From 1 on."""
    with pytest.raises(InvalidQuestion, match="candidates"):
        quotient(part(40, "one"), part(15, "other"), candidates)


@pytest.fixture
def client(services: EmbeddedServices) -> Iterator[PrivateClient]:
    """A client with an account of its own."""
    with own_client(services, {"t": DATA}) as client:
        yield client


def test_answers_combine_their_own_elements_and_those_of_others(client: PrivateClient) -> None:
    """Elements are named by their values."""
    answer = client.histogram("t", "country")
    counts = {row.element[0]: Fraction(row.noisy_count or 0) for row in answer.rows}
    found = answer.combine({"France": 1, ("Germany",): -2.5})
    assert found.value == counts["France"] - Fraction(5, 2) * counts["Germany"]
    assert found.confidence == pytest.approx(answer.confidence)
    again = client.ask(question_pb2.Question(sql=BY_COUNTRY), confidence=0.8)
    assert answer.combine({"France": 1, again.part("France"): -1}).interval == (Fraction(0), Fraction(0))
    ratio = answer.ratio("France", "Germany")
    assert ratio.interval is not None
    assert ratio.value == counts["France"] / counts["Germany"]
    assert ratio.interval[0] < ratio.value < ratio.interval[-1]


def test_what_is_combined_is_what_was_released_and_not_what_is_shown(services: EmbeddedServices) -> None:
    """Counts of weighted members are in hundredths, and shown rounded: half a count of each would add up."""
    with own_client(services, {"weighted": DATA}) as client:
        answer = client.histogram("weighted", "country")
    found = answer.combine({row.element: 1 for row in answer.rows})
    bounded = answer.parameters.bounded
    assert found.value is not None
    assert found.interval is not None
    assert bounded is not None
    assert abs(found.value - sum(row.noisy_count or 0 for row in answer.rows)) <= len(answer.rows) / 2
    # One in a hundred sums of hundredths is a whole number; four counts that all are, one in a hundred million.
    counts = [answer.combine({row.element: 1}).value or Fraction(0) for row in answer.rows]
    assert found.value == sum(counts)
    assert any(each.denominator > 1 for each in counts)
    deviation = math.sqrt(len(answer.rows) * bounded.noise_variance)
    # Of a variance below 1 a width is that of a sub-Gaussian law: sqrt(2 ln(2 / 0.05)) deviations.
    assert 1.96 * deviation <= float(found.value - found.interval[0]) <= 2.72 * deviation + 1


def test_a_list_over_an_unknown_domain_adds_up_the_errors_of_its_intervals(client: PrivateClient) -> None:
    """Its threshold selected each count. Asked again with more confidence, which is free, the box holds with 95 %."""
    answer = client.sql(TOP)
    first, second, _ = (row.element for row in answer.rows)
    assert answer.ratio(first, second).confidence == pytest.approx(0.9)
    finer = client.ask(question_pb2.Question(sql=TOP), confidence=0.975)
    assert finer.charged.information == 0
    assert finer.ratio(first, second).confidence == pytest.approx(0.95)


@pytest.mark.parametrize("element", ["Atlantis", ("France", "Germany"), 7])
def test_an_element_that_is_not_shown_is_refused(client: PrivateClient, element: str) -> None:
    """As is a number that the answer does not have, and a combination of nothing."""
    answer = client.histogram("t", "country")
    with pytest.raises(InvalidQuestion, match="element"):
        answer.combine({element: 1})
    with pytest.raises(InvalidQuestion, match="number"):
        answer.combine({"France": 1}, number="amount")
    with pytest.raises(InvalidQuestion, match="coefficients"):
        answer.combine({})
