"""UnkGumb's draws, by the weights that it really draws with, are an interaction of theorem A: proofs/prices.v."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_service.mechanisms import Currency, UnkGumb
from dp_service.mechanisms.unk_gumb import selection_weights, threshold_weights
from research.accounting.adaptive import UpperTable, upper_tables
from tests.unit.dp_service.mechanisms.enumeration import log_weights
from tests.unit.dp_service.mechanisms.neighbours import laws_over_unknown_domain

E = Fraction("0.7")
CURRENCY = Currency(E, Fraction("0.05"))
ROWS = 4
CLOSE = 1e-9


@dataclass(frozen=True)
class Interaction:
    """`interaction` of proofs/adaptive.v: laws of outcomes under two neighbours, and what follows; none: it stops.

    Where it stops, `met` are the elements that were met, and bottom, which is `ROWS`, in their order.
    """

    first: list[float] = field(default_factory=list)
    second: list[float] = field(default_factory=list)
    cost: int = 1
    following: list[Interaction] = field(default_factory=list)
    met: tuple[int, ...] = ()


def is_law(law: list[float]) -> bool:
    """`law`."""
    return min(law) >= 0 and math.isclose(sum(law), 1, rel_tol=CLOSE)


def has_bounded_range(first: list[float], second: list[float]) -> bool:
    """`bounded_range`."""
    grown = math.exp(E) * (1 + CLOSE)
    return all(
        one * other <= grown * back * forth + 1e-300
        for one, forth in zip(first, second, strict=True)
        for back, other in zip(first, second, strict=True)
    )


def keeps(tree: Interaction, units: int) -> bool:
    """`keeps`, of free steps and units."""
    if not tree.following:
        return True
    is_allowed = has_bounded_range(tree.first, tree.second) if tree.cost else tree.first == tree.second
    return (
        is_law(tree.first)
        and is_law(tree.second)
        and is_allowed
        and tree.cost <= units
        and all(keeps(each, units - tree.cost) for each in tree.following)
    )


def histories(tree: Interaction) -> Iterator[tuple[int, tuple[int, ...], float, float]]:
    """Yield the length of every complete history, what it met, and its chances."""
    if not tree.following:
        yield 0, tree.met, 1.0, 1.0
    for outcome, each in enumerate(tree.following):
        for length, met, one, other in histories(each):
            yield length + 1, met, tree.first[outcome] * one, tree.second[outcome] * other


@dataclass(frozen=True)
class Draws:
    """What UnkGumb draws for two neighbours, of whose rows it is given those of all elements."""

    mechanism: UnkGumb
    one: tuple[int, ...]
    other: tuple[int, ...]

    def tree(self) -> Interaction:
        """Return the index of the threshold, then what it leads to."""
        indices = np.arange(self.mechanism.k, ROWS)
        first, second = [
            chosen(log_weights(threshold_weights(self.mechanism, descending(counts), indices)))
            for counts in (self.one, self.other)
        ]
        return Interaction(first, second, following=[self._peeled(int(index)) for index in indices])

    def choices(self, k_bar: int) -> tuple[list[list[float]], list[set[int]]]:
        """Return logarithms of the weights of elements and bottom, and the candidates and bottom, of each."""
        weights = [
            selection_weights(self.mechanism, np.array(each), k_bar, int(descending(each)[k_bar]))
            for each in (self.one, self.other)
        ]
        eligible = [
            np.ones(ROWS + 1, np.bool_) if each.eligible is None else each.eligible for each in weights
        ]
        return [log_weights(each) for each in weights], [
            {*np.flatnonzero(each).tolist()} for each in eligible
        ]

    def _peeled(self, k_bar: int) -> Interaction:
        logs, (first, second) = self.choices(k_bar)
        return self._met(logs, sorted(first & second), ())

    def _met(self, logs: list[list[float]], left: list[int], met: tuple[int, ...]) -> Interaction:
        if len(met) == self.mechanism.k:
            return self._counted(met, met)
        first, second = [chosen([each[i] for i in left]) for each in logs]
        return Interaction(
            first,
            second,
            following=[
                self._counted(met, (*met, ROWS))
                if i == ROWS
                else self._met(logs, [j for j in left if j != i], (*met, i))
                for i in left
            ],
        )

    def _counted(self, left: tuple[int, ...], met: tuple[int, ...]) -> Interaction:
        if not left or not self.mechanism.with_counts:
            return Interaction(met=met)
        scale = float(self.mechanism.count_inverse_scale)
        first, second = [
            chosen([-scale * abs(shown - counts[left[0]]) for shown in (-1, 1, 4)])
            for counts in (self.one, self.other)
        ]
        return Interaction(first, second, following=[self._counted(left[1:], met)] * len(first))


def descending(counts: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return counts as the threshold is chosen from them."""
    return np.sort(np.array(counts))[::-1]


def chosen(logs: list[float]) -> list[float]:
    """Return the law of one choice among weights."""
    weights = [math.exp(each - max(logs)) for each in logs]
    return [each / sum(weights) for each in weights]


@cache
def table(units: int) -> UpperTable:
    """Return the bound of so many units."""
    return next(islice(upper_tables(E), units, None))


@st.composite
def draws(draw: st.DrawFn) -> Draws:
    """A mechanism and neighbours: one member moves each count by 0 to tau, all in one direction."""
    tau = draw(st.integers(1, 2))
    fewer = draw(st.lists(st.integers(0, 3), min_size=ROWS, max_size=ROWS))
    moved = draw(st.lists(st.integers(0, tau), min_size=ROWS, max_size=ROWS))
    pair = [tuple(fewer), tuple(a + b for a, b in zip(fewer, moved, strict=True))]
    one, other = draw(st.permutations(pair))
    k = draw(st.integers(1, 2))
    return Draws(UnkGumb(CURRENCY, k, ROWS - 1, tau, with_counts=draw(st.booleans())), one, other)


@given(draws())
def test_the_draws_are_an_interaction_that_keeps_its_price(drawn: Draws) -> None:
    """`unk_gumb_keeps`: of units, and no course costs more than what is reserved, nor does what theorem A says fail."""
    tree, worst = drawn.tree(), drawn.mechanism.worst_case_cost().information
    assert keeps(tree, worst)
    longest = max(length for length, *_ in histories(tree))
    assert not keeps(tree, longest - 1)
    for epsilon in (0.0, 0.5, 1.5):
        x = math.exp(epsilon)
        excess = sum(max(0.0, one - x * other) for *_, one, other in histories(tree))
        assert excess <= table(worst).delta(epsilon) * (1 + CLOSE)


@given(draws())
def test_newcomers_are_few_and_all_others_move_together(drawn: Draws) -> None:
    """`few`, `few'` and `common_moved` of proofs/newcomers.v, at every threshold."""
    for k_bar in range(drawn.mechanism.k, ROWS):
        logs, candidates = drawn.choices(k_bar)
        common = candidates[0] & candidates[1]
        for each, own in zip(logs, candidates, strict=True):
            assert sum(math.exp(each[i] - each[ROWS]) for i in own - common) <= CURRENCY.delta * (1 + CLOSE)
        moves = [logs[1][i] - logs[0][i] for i in common]
        assert -CLOSE <= min(moves) or max(moves) <= CLOSE
        assert max(map(abs, moves)) <= E * (1 + CLOSE)


@given(draws())
def test_what_is_paid_is_the_number_of_draws(drawn: Draws) -> None:
    """`unk_gumb_spent`: the price of an outcome is that of the history that leads to it."""
    for length, met, _, _ in histories(drawn.tree()):
        bottom = ROWS in met
        assert drawn.mechanism.cost(len(met) - bottom, bottom).information == length


@pytest.mark.parametrize("counts", [(3, 1, 0, 2), (2, 2, 1, 1), (0, 0, 0, 0), (1, 0, 3, 3)])
@pytest.mark.parametrize("k", [1, 2])
def test_the_tree_is_the_law_of_the_mechanism(counts: tuple[int, ...], k: int) -> None:
    """Of one table, for which nobody is a newcomer: its answers have the chances that the mechanism gives them."""
    drawn = Draws(UnkGumb(CURRENCY, k, ROWS - 1, 1, with_counts=False), counts, counts)
    law = laws_over_unknown_domain(drawn.mechanism, [counts], d_bar=ROWS - 1, radius=0)[counts]
    found: dict[tuple[int, ...], float] = {}
    for _, met, chance, _ in histories(drawn.tree()):
        found[met] = found.get(met, 0.0) + chance
    ends = {True: (ROWS,), False: ()}
    expected = {(*each.elements, *ends[each.ended_in_bottom]): mass for each, mass in law.mass.items()}
    assert found == pytest.approx(expected)


def test_wrong_trees_do_not_keep_their_price() -> None:
    """A unit that costs nothing, laws without mean 1, and a range that is too wide."""
    half = Interaction([0.5, 0.5], [0.6, 0.4], following=[Interaction()] * 2)
    assert keeps(half, 1)
    assert not keeps(half, 0)
    for wrong in (
        Interaction(half.first, half.second, 0, half.following),
        Interaction(half.first, [0.6, 0.3], 1, half.following),
        Interaction([0.5, 0.5], [0.7, 0.3], 1, half.following),
        Interaction([1.0, 0.0], [0.9, 0.1], 1, half.following),
    ):
        assert not keeps(wrong, 1)
