"""What an answer is short of is said of what it shows: too few elements, noise as large as counts, sums around 0."""

from __future__ import annotations

import numpy as np
import pytest

from dp_service.mechanisms.intervals import CountIntervals
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.views import Counts, IntervalKind, ReleaseView
from dp_service.releases.looks import is_first_look, names_of, second_plan
from dp_service.releases.plan import Plan
from dp_service.releases.releasing import release
from dp_service.releases.saying import of_answer
from dp_service.releases.statements import Statement
from tests.unit.dp_service.asked_plans import (
    AMOUNT,
    BOUNDED,
    COUNT,
    CUT,
    KINDS,
    SUM,
    SUMS,
    Asked,
    histogram_of,
    plans,
)
from tests.unit.dp_service.identities import KEY

CONFIDENCE = 0.95
LOOKS = BOUNDED % ", longest_list: 3"


def answered(asked: Asked, counts: dict[str, int]) -> tuple[Plan, ReleaseView, dict[str, Statement]]:
    """Return the answer to a question on some counts, with what is said of it by code."""
    plan = next(plans(asked, list(counts)))
    answer = histogram_of(plan, counts)
    if is_first_look(plan):
        plan = second_plan(plan, names_of(plan, answer, KEY), now=0)
        answer = histogram_of(plan, counts) if plan.row_limit else answer.rows([])
    found = release(plan, answer, KEY, confidence=CONFIDENCE)
    shown = None if found.noisy_counts is None else Counts(found.noisy_counts, found.denominator)
    said = of_answer(plan, shown, found.shown, bottom=found.bottom, confidence=CONFIDENCE)
    return plan, found.shown, {each.code: each for each in said}


UNKNOWN = {
    "laplace": (KINDS["laplace, unknown, cut"], "tau = 1 and Delta = 2"),
    "gumbel": (KINDS["gumbel, unknown"], "tau = 1"),
    "bounded": (Asked(BOUNDED % "", sql=COUNT + CUT), "typical = 2"),
    "two looks": (Asked(LOOKS, sql=COUNT + CUT), "names.typical = 1"),
    "values": (KINDS["distinct values, unknown, cut"], "typical = 2 and tau = 2"),
    "sums": (Asked(BOUNDED % SUMS, sql=SUM + CUT, values=AMOUNT), "typical = 2"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_list_that_finds_little_says_what_an_element_needs(name: str) -> None:
    """By the law of its own threshold, with the settings that it grows with; one that is whole says nothing."""
    asked, settings = UNKNOWN[name]
    plan, view, said = answered(asked, {f"n{place}": 1 for place in range(8)})
    needed = kind_of(plan.parameters).accuracy().found_mostly
    assert view.count < (plan.parameters.k or 0)
    few = said["list.few"]
    assert few.values == (str(view.count), str(needed))
    assert few.text.startswith(f"{view.count} of {plan.parameters.k} element")
    assert f"needs a count of about {needed}" in few.text
    assert ("more than that at rank 1001 (0 if there are" in few.text) is (name in ("laplace", "gumbel"))
    assert f"grows with {settings}. " in few.text
    assert "more units, or other bounds" in few.text
    _, _, said = answered(asked, {f"n{place}": 4000 + 100 * place for place in range(8)})
    assert "list.few" not in said
    assert "counts.noisy" not in said


def test_a_list_without_a_limit_says_it_where_it_is_empty() -> None:
    """How many elements there are is not known, so one that shows some is not called short."""
    _, _, said = answered(KINDS["bounded, unknown"], {"n0": 1})
    assert said["list.few"].text.startswith("No element is shown. ")
    for sql in (COUNT, COUNT + CUT.replace("4", "1000")):
        _, _, said = answered(Asked(BOUNDED % "", sql=sql), {"n0": 900, "n1": 1})
        assert "list.few" not in said


def test_settings_are_not_blamed_for_what_the_question_left_out() -> None:
    """A list that HAVING has filtered says nothing of thresholds."""
    filtered = Asked(BOUNDED % "", sql=f"{COUNT} HAVING COUNT(DISTINCT m) > 900{CUT}")
    _, view, said = answered(filtered, {f"n{place}": 400 for place in range(8)})
    assert view.count == 0
    assert "list.few" not in said


def test_a_list_says_that_a_setting_ended_it() -> None:
    """With as many names as the policy lets a first look have; not where the question asks for no more."""
    counts = {f"n{place}": 4000 + 100 * place for place in range(8)}
    _, view, said = answered(Asked(LOOKS), counts)
    assert view.count == 3
    assert said["list.full"].values == ("3",)
    assert "list.full" not in answered(Asked(LOOKS, sql=COUNT + CUT.replace("4", "3")), counts)[2]
    assert "list.full" not in answered(KINDS["bounded, unknown"], counts)[2]


def said_of(noisy: list[int], denominator: int = 1) -> dict[str, Statement]:
    """Return what is said of these counts, of which noise is off by up to a known number with 95 %."""
    plan, _, _ = answered(KINDS["bounded, known"], {"n0": 1, "n1": 1})
    ends = CountIntervals(np.zeros(len(noisy), np.int64), np.full(len(noisy), 10**9, np.int64))
    view = ReleaseView(len(noisy), ends, IntervalKind.PLAIN)
    counts = Counts(np.array(noisy, dtype=np.int64), denominator)
    return {each.code: each for each in of_answer(plan, counts, view, bottom=None, confidence=CONFIDENCE)}


def test_counts_as_small_as_their_noise_are_said_to_be() -> None:
    """Where noise may be half of what is shown, for half of the counts at least; multiples of 1 / b are counts too."""
    plan, _, _ = answered(KINDS["bounded, known"], {"n0": 1, "n1": 1})
    half = kind_of(plan.parameters).accuracy().half_width
    assert half is not None
    assert said_of([2 * half, 2 * half + 1])["counts.noisy"].values == (str(half), "1")
    assert "counts.noisy" not in said_of([2 * half, 2 * half + 1, 900])
    assert "counts.noisy" in said_of([7 * 2 * half], denominator=7)
    assert "counts.noisy" not in said_of([7 * 2 * half + 1], denominator=7)
    assert said_of([])["method.mechanism"]
    _, _, said = answered(KINDS["laplace, known, cut"], {f"n{place}": 3 for place in range(8)})
    assert "with 95 %, and less surely where counts decide what is shown" in said["counts.noisy"].text


def test_counts_below_0_are_explained() -> None:
    """They are what noise makes of small ones."""
    assert said_of([-3, 0, 50])["counts.negative"].text.endswith("counts would add up to too much.")
    assert "1 of 3 counts shown" in said_of([-3, 0, 50])["counts.negative"].text
    assert "counts.negative" not in said_of([0, 50])


def test_sums_whose_interval_holds_0_are_said_to_be_noise_perhaps() -> None:
    """Of each column, by what is shown alone."""
    _, view, said = answered(KINDS["sums"], {"n0": 1, "n1": 5000})
    (sums,) = view.aggregates
    holding = [each is not None and each.lower <= 0 <= each.upper for each in sums.answers]
    assert holding.count(True) == 1
    uncertain = said["sums.uncertain"]
    assert (uncertain.column, uncertain.values) == ("amount", ("1",))
    assert uncertain.text.startswith("The intervals of 1 of 2 values of sum_amount_of_rows hold 0, ")
    assert "sums.uncertain" not in answered(KINDS["sums"], {"n0": 5000, "n1": 5000})[2]
