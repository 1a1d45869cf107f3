"""Arithmetic over released numbers: coverage by enumerating all noise, and what has no value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from dp_service.mechanisms.aggregates.added_draws import Draws, half_width
from dp_service.parameters.expressions import (
    Expression,
    Number,
    OverAll,
    Product,
    Quotient,
    Released,
    Sum,
    negative,
)
from dp_service.releases.kinds.arithmetic import Arithmetic, Noise
from dp_service.releases.kinds.linear import Ends
from dp_service.releases.kinds.views import Answer

A, B = Released(0), Released(1)
DIFFERENCE = Sum((A, negative(B)))
VARIANCE = Fraction(2)
REACH = 9
ALPHA = Fraction(1, 10)
SELECTED = frozenset({0})


def number(value: str) -> Number:
    """Return a stated number."""
    return Number(Fraction(value))


@cache
def masses() -> dict[int, float]:
    """Return the law of one draw."""
    weights = {z: math.exp(-z * z / (2 * float(VARIANCE))) for z in range(-REACH, REACH + 1)}
    return {z: weight / sum(weights.values()) for z, weight in weights.items()}


@cache
def plain_width(alpha: Fraction) -> int:
    """Return how far one draw reaches."""
    return next(w for w in range(REACH) if sum(p for z, p in masses().items() if abs(z) > w) <= alpha)


@dataclass(frozen=True)
class Known:
    """Numbers of rows, each with a draw of its own; those of `selected` places have their intervals alone."""

    table: Sequence[Sequence[Fraction | None]]
    selected: frozenset[int] = frozenset()
    candidates: int = 1

    @property
    def rows(self) -> int:
        """How many rows are shown."""
        return len(self.table)

    @property
    def variances(self) -> Mapping[int, Fraction]:
        """The variance of each draw that is not selected."""
        return {place: VARIANCE for place in range(2) if place not in self.selected}

    def values(self, place: int) -> Sequence[Fraction | None]:
        """Return a number of each row."""
        return [row[place] for row in self.table]

    def ends(self, place: int, alpha: Fraction) -> Sequence[Ends | None]:
        """Return its intervals."""
        width = plain_width(alpha / self.candidates)
        return [None if each is None else Ends(each - width, each + width) for each in self.values(place)]

    def noise(self, place: int) -> Noise | None:
        """Return its noise."""
        return {place: Fraction(1)}


def shown(
    expression: Expression,
    *rows: Sequence[int | None],
    selected: frozenset[int] = frozenset(),
    candidates: int = 1,
) -> list[Answer | None]:
    """Return the answer in each row."""
    table = [[None if each is None else Fraction(each) for each in row] for row in rows]
    return list(Arithmetic(expression, Known(table, selected, candidates), ALPHA).answers())


def coverage(
    expression: Expression, truth: tuple[int, int], value: Fraction, selected: frozenset[int] = frozenset()
) -> tuple[float, float]:
    """Return the chances that the interval holds the truth, and that there is an interval."""
    covered = answered = 0.0
    for drawn in product(masses(), repeat=2):
        chance = math.prod(masses()[z] for z in drawn)
        (answer,) = shown(expression, [n + z for n, z in zip(truth, drawn, strict=True)], selected=selected)
        if answer is not None:
            answered += chance
            covered += chance * (answer.lower <= value <= answer.upper)
    return covered, answered


@pytest.mark.parametrize(
    ("expression", "of"),
    [
        (Sum((A, B)), lambda a, b: a + b),
        (DIFFERENCE, lambda a, b: a - b),
        (
            Sum((Product((number("-3/2"), A)), Product((number("2"), B)), number("7"))),
            lambda a, b: 7 + 2 * b - Fraction(3, 2) * a,
        ),
        (Sum((A, Product((number("1/3"), B)))), lambda a, b: a + Fraction(b, 3)),
    ],
)
@pytest.mark.parametrize("selected", [frozenset(), SELECTED])
def test_a_linear_combination_covers_as_often_as_it_says(
    expression: Expression, of: Callable[[int, int], Fraction], selected: frozenset[int]
) -> None:
    """By the law of its noise, or in the box where a number was selected."""
    covered, answered = coverage(expression, (20, 5), Fraction(of(20, 5)), selected)
    assert answered == pytest.approx(1)
    assert covered >= 1 - ALPHA


def test_the_law_of_a_sum_is_no_wider_than_it_has_to_be() -> None:
    """One step less covers too seldom."""
    width = half_width([Draws(Fraction(1), VARIANCE), Draws(Fraction(-1), VARIANCE)], ALPHA)
    beyond = sum(
        masses()[one] * masses()[other]
        for one, other in product(masses(), repeat=2)
        if abs(one - other) > width - 1
    )
    assert beyond > ALPHA


@pytest.mark.parametrize("draws", [[(1, 1, 1)], [(3, "1/5", 2), (1, 4, 3)], [("1/3", 2, 1), ("1/2", 2, 1)]])
def test_half_widths_hold_for_small_and_for_uneven_noise(draws: list[tuple[str, str, int]]) -> None:
    """By convolving the laws of all draws."""
    law = {Fraction(0): 1.0}
    for weight, variance, times in draws:
        one = {z: math.exp(-z * z / (2 * float(Fraction(variance)))) for z in range(-12, 13)}
        for _ in range(times):
            added: dict[Fraction, float] = {}
            for so_far, chance in law.items():
                for z, mass in one.items():
                    at = so_far + Fraction(weight) * z
                    added[at] = added.get(at, 0) + chance * mass / sum(one.values())
            law = added
    of = [Draws(Fraction(weight), Fraction(variance), times) for weight, variance, times in draws]
    for alpha in (Fraction(1, 20), Fraction(1, 3)):
        width = half_width(of, alpha)
        assert sum(chance for at, chance in law.items() if abs(at) > width) <= alpha


@pytest.mark.parametrize("truth", [(3, 10), (20, 12), (0, 9)])
def test_a_quotient_covers_as_often_as_it_says(truth: tuple[int, int]) -> None:
    """In the box of both; where the divisor's interval holds 0 there is no value."""
    covered, answered = coverage(Quotient(A, B), truth, Fraction(*truth))
    assert answered > 0.9
    assert covered >= answered - ALPHA


def test_a_selected_number_takes_the_box() -> None:
    """That is wider than the law of both together."""
    (box,), (law,) = shown(DIFFERENCE, (20, 5), selected=SELECTED), shown(DIFFERENCE, (20, 5))
    assert box is not None
    assert law is not None
    assert box.upper - box.lower > law.upper - law.lower


def test_candidates_divide_the_error() -> None:
    """Of numbers that were picked by their values."""
    (one,), (many,) = shown(DIFFERENCE, (20, 5)), shown(DIFFERENCE, (20, 5), candidates=50)
    assert one is not None
    assert many is not None
    assert many.lower < one.lower


@pytest.mark.parametrize(
    ("expression", "row"),
    [
        (Quotient(A, B), (20, 1)),
        (Quotient(A, B), (20, 0)),
        (Quotient(A, Sum((B, number("-20")))), (5, 20)),
        (Quotient(number("1"), Quotient(A, B)), (0, 50)),
        (Quotient(A, Product((B, B))), (20, 1)),
        (Sum((A, B)), (20, None)),
    ],
)
def test_what_may_be_divided_by_0_has_no_value(expression: Expression, row: tuple[int | None, ...]) -> None:
    """Nor has what lacks one of its numbers."""
    assert shown(expression, row) == [None]


def test_shares_of_the_rows_add_up_and_stay_below_1() -> None:
    """The number of a row is a part of the sum, so both move together."""
    shares = shown(Quotient(A, OverAll(0)), (300, 0), (200, 0), (500, 0), selected=SELECTED)
    assert sum(each.value for each in shares if each is not None) == 1
    assert all(each is not None and 0 < each.lower < each.value < each.upper < 1 for each in shares)


def test_the_only_row_is_all_of_the_sum() -> None:
    """Whatever its noise is."""
    assert shown(Quotient(A, OverAll(0)), (300, 0)) == [Answer(Fraction(1), Fraction(1), Fraction(1))]


def test_no_row_has_no_answer() -> None:
    """An empty list is one, too."""
    assert shown(Quotient(A, OverAll(0))) == []


def test_one_number_times_a_factor_has_the_ends_of_that_number() -> None:
    """Turned around by a negative factor."""
    (answer,) = shown(Product((number("-2"), A)), (20, 5))
    width = plain_width(ALPHA)
    assert answer == Answer(Fraction(-40), Fraction(-40 - 2 * width), Fraction(-40 + 2 * width))
